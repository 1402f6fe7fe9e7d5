"""The miniature wiki, which the builders are tested on."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def dumps():
    """Folder of the miniature wiki's dumps."""
    return Path(__file__).resolve().parents[1] / "wikimedia" / "mini"
