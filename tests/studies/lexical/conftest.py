"""Fixtures of lexical popularity."""

from tests.made_rows import data, rows  # noqa: F401 - fixtures
