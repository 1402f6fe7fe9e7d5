"""Small databases, facts, and the published files."""

import pytest

from surface_consistency.data.audit_files import read_audit_prompts, read_database
from surface_consistency.data.audit_topologies import PUBLISHED_TOPOLOGIES
from surface_consistency.data.fact_tables import DOMAINS
from surface_consistency.schemas import AuditPrompt, Triplet, TripletDatabase


@pytest.fixture(scope="session")
def published(shared_dir):
    """Database and direct questions of each published database, by name."""
    root = shared_dir / "data" / "lmlm_audit" / "data"
    custom = root / "custom_databases"
    file = "prompts_direct_questions.jsonl"
    found = {
        f"{domain}/{topology}": (
            read_database(custom / domain / f"{topology}.json"),
            read_audit_prompts(custom / domain / "prompts" / topology / file),
        )
        for domain in DOMAINS
        for topology in PUBLISHED_TOPOLOGIES
    }
    released = root / "released_database"
    return found | {
        "released": (
            read_database(released / "lmlm_database.json"),
            read_audit_prompts(released / "prompts" / file),
        )
    }


@pytest.fixture(scope="session")
def make():
    """Make a database of triplets; its lists of names are not looked at."""

    def database(*triplets):
        return TripletDatabase(
            entities=(),
            relationships=(),
            return_values=(),
            triplets=tuple(Triplet(*parts) for parts in triplets),
        )

    return database


@pytest.fixture(scope="session")
def fact():
    """Make a fact."""

    def target(subject, relation, gold, *, subjects=(), relations=(), objects=()):
        return AuditPrompt(
            prompt_id=0,
            fact_id=0,
            subject=subject,
            relation=relation,
            gold_object=gold,
            prompt_text="?",
            subject_aliases=tuple(subjects),
            relation_aliases=tuple(relations),
            object_aliases=tuple(objects),
        )

    return target
