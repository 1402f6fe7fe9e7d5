"""Fixtures of the engine."""

from tests.made_rows import data, rows  # noqa: F401 - fixtures
