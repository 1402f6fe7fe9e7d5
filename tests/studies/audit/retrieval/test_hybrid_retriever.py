"""Reciprocal rank fusion."""

import numpy as np
import pytest

from surface_consistency.errors import RunnerError
from surface_consistency.studies.audit.retrieval.retrievers import (
    EmbeddingRetriever,
    FuzzyRetriever,
    HybridRetriever,
)


@pytest.fixture
def parts(facts, table_encoder):
    return [EmbeddingRetriever(facts, table_encoder()), FuzzyRetriever(facts)]


def naive(parts, query, k, deleted):
    """Sum 1 / (60 + rank) in dictionaries."""
    sums = {}
    for part in parts:
        hits = part.search([query], k=100, deleted=[deleted]).indices[0]
        for rank, entry in enumerate((i for i in hits.tolist() if i >= 0), start=1):
            sums[entry] = sums.get(entry, 0.0) + 1 / (60 + rank)
    best = len(parts) / 61
    ranked = sorted(sums, key=lambda i: (-np.float32(sums[i] / best), i))[:k]
    return ranked, [sums[i] / best for i in ranked]


@pytest.mark.parametrize("deleted", [[], [0], [1, 5], [0, 1, 2, 3]], ids=["0", "1", "2", "4"])
def test_hybrid_agrees_with_a_plain_loop(parts, ask, deleted):
    hybrid = HybridRetriever(parts)
    query = ask("Chad", "capitale")

    hits = hybrid.search([query, query], k=3, deleted=[deleted, None])

    ranked, scores = naive(parts, query, 3, deleted)
    found = hits.indices[0] >= 0
    assert hits.indices[0][found].tolist() == ranked
    np.testing.assert_allclose(hits.scores[0][found], scores, rtol=1e-6)
    agreed = hybrid.search([ask("France", "continent")], k=9)
    assert (agreed.indices[0, 0], agreed.scores[0, 0]) == (2, 1.0)
    alone, one = (some.search([query], k=6) for some in (parts[1], HybridRetriever(parts[1:])))
    np.testing.assert_array_equal(one.indices, alone.indices)


def test_hybrid_rejects_missing_retrievers_and_different_stores(parts, facts):
    with pytest.raises(ValueError, match="at least one retriever"):
        HybridRetriever([])
    with pytest.raises(RunnerError, match="built over different stores"):
        HybridRetriever([parts[0], FuzzyRetriever(facts[1:])])


def test_hybrid_has_the_content_digest_of_its_parts(parts, facts):
    hybrid = HybridRetriever(parts)

    assert hybrid.fingerprint()["content"] == parts[0].fingerprint()["content"]
    with pytest.raises(RunnerError, match="built over different stores"):
        HybridRetriever([hybrid, FuzzyRetriever(facts[1:])])
