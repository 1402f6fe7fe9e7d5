"""Fixtures of the data sets."""

from tests.made_data import own_caches, row, rows, write_csv, write_lines  # noqa: F401 - fixtures
