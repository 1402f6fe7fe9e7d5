"""Fixtures of writers."""

from tests.made_data import own_caches, row, write_csv, write_lines  # noqa: F401 - fixtures
from tests.surface_consistency_build.made_records import article, written  # noqa: F401 - fixtures
