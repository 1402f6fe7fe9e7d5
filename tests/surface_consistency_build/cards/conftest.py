"""Fixtures of cards."""

from tests.made_data import own_caches, write_lines  # noqa: F401 - fixtures
from tests.surface_consistency_build.made_records import built_rows, manifest, subset  # noqa: F401 - fixtures
