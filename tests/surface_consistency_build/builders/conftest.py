"""The miniature wiki, which the builders are tested on."""

from pathlib import Path

import pytest

from tests.made_data import own_caches, rows, write_lines  # noqa: F401 - fixtures


@pytest.fixture(scope="session")
def dumps():
    """Folder of the miniature wiki's dumps."""
    return Path(__file__).resolve().parents[1] / "wikimedia" / "mini"
