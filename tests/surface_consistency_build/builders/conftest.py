"""The miniature wiki for tests of the builders."""

from pathlib import Path

import pytest
from surface_consistency_build.builders.audit_databases.fact_tables import Aliases, FactTable

from surface_consistency.schemas import Triplet
from tests.made_data import own_caches, rows, write_lines  # noqa: F401 - fixtures


@pytest.fixture(scope="session")
def dumps():
    """Folder of the miniature wiki's dumps."""
    return Path(__file__).resolve().parents[1] / "wikimedia" / "mini"


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
