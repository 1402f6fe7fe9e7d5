"""The thirteen published databases, and tables of facts made up for the tests."""

import pytest

from surface_consistency.data.audit import DOMAINS, PUBLISHED_TOPOLOGIES, Aliases, FactTable
from surface_consistency.schemas import Triplet


@pytest.fixture(scope="session")
def published(shared_dir):
    """Database file and prompt folder of each published database, by name."""
    root = shared_dir / "data" / "lmlm_audit" / "data"
    custom = root / "custom_databases"
    cells = {
        f"{domain}/{topology}": (
            custom / domain / f"{topology}.json",
            custom / domain / "prompts" / topology,
        )
        for domain in DOMAINS
        for topology in PUBLISHED_TOPOLOGIES
    }
    released = root / "released_database"
    return cells | {"released": (released / "lmlm_database.json", released / "prompts")}


@pytest.fixture
def rivers():
    """A table without decoys and near misses."""
    return FactTable(
        name="rivers",
        facts=(
            Triplet("Rhine", "Mouth", "North Sea"),
            Triplet("Danube", "Mouth", "Black Sea"),
            Triplet("Danube", "Length", "2,850 km"),
        ),
        aliases=(
            Aliases(name="Danube", aliases=("Donau", "Duna", "Dunaj"), roles=("subject",)),
            Aliases(name="Mouth", aliases=("Flows Into",), roles=("relation",)),
            Aliases(name="Black Sea", aliases=("Pontos",), roles=("object",)),
        ),
    )
