"""Fixtures of writers."""

from tests.made_data import article, own_caches, row, write_csv, write_lines, written  # noqa: F401 - fixtures
from tests.made_topics import make_topic  # noqa: F401 - fixtures
