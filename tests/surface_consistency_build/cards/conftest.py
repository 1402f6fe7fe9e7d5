"""Fixtures of cards."""

from tests.made_data import built_rows, manifest, own_caches, subset, write_lines  # noqa: F401 - fixtures
