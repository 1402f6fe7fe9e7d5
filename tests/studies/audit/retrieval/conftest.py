"""Small stores, databases and facts, table-based encoders, and the published files."""

import hashlib

import numpy as np
import pytest

from surface_consistency.schemas import AuditPrompt, LookupQuery, Triplet
from surface_consistency.studies.audit import find_conditions
from surface_consistency.studies.audit.retrieval import Triplets


class TableEncoder:
    """Returns the vector of a text from a table, or one seeded by the text."""

    def __init__(self, vectors=None, *, dimension=16, name="table"):
        self.vectors = vectors or {}
        self.dimension = dimension
        self.name = name
        self.seen = []

    def fingerprint(self):
        return {"encoder": self.name, "dimension": self.dimension}

    def encode(self, texts):
        self.seen += texts
        return np.array([self.vector(text) for text in texts], np.float32)

    def vector(self, text):
        if text in self.vectors:
            return self.vectors[text]
        seed = hashlib.sha256(f"{self.name} {text}".encode()).digest()
        drawn = np.random.default_rng(list(seed)).standard_normal(self.dimension)
        return drawn / np.linalg.norm(drawn)


@pytest.fixture(scope="session")
def table_encoder():
    """The class `TableEncoder`."""
    return TableEncoder


@pytest.fixture(scope="session")
def facts():
    """Six entries; the second and the last have one key."""
    return [
        Triplet("France", "capital", "Paris"),
        Triplet("Chad", "capital", "N'Djamena"),
        Triplet("France", "continent", "Europe"),
        Triplet("Chad", "ISO code", "TD"),
        Triplet("日本", "首都", "東京"),
        Triplet("chad", "Capital", "Fort-Lamy"),
    ]


@pytest.fixture(scope="session")
def database(facts):
    """The six entries as a database."""
    return Triplets.of(facts)


@pytest.fixture(scope="session")
def ask():
    """A function that makes a query."""
    return lambda entity, relation: LookupQuery(entity=entity, relation=relation)


@pytest.fixture(scope="session")
def published(data_files):
    """Database and direct questions of each of the thirteen published databases, by name."""
    found = find_conditions(data_files / "lmlm_audit" / "data", styles=["direct_questions"])
    return {one.label.database: (one.database, one.prompts) for one in found}


@pytest.fixture(scope="session")
def make():
    """Make a database of triplets."""
    return lambda *triplets: Triplets.of(triplets)


@pytest.fixture(scope="session")
def fact():
    """Make a fact."""

    def target(subject, relation, gold, *, subjects=(), relations=(), objects=()):
        names = {"subject": subject, "relation": relation, "gold_object": gold}
        names |= {"subject_aliases": tuple(subjects), "relation_aliases": tuple(relations)}
        names |= {"prompt_text": "?", "object_aliases": tuple(objects)}
        return AuditPrompt(prompt_id=0, fact_id=0, **names)

    return target
