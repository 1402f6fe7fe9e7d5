"""FAISS gives the same hits, and is left as it was found."""

import numpy as np
import pytest

from surface_consistency.errors import MissingDependencyError, RetrievalError
from surface_consistency.schemas import Triplet
from surface_consistency.studies.audit.retrieval import (
    EmbeddingIndex,
    EmbeddingRetriever,
    FaissRetriever,
    build_index,
)

faiss = pytest.importorskip("faiss")


@pytest.fixture(scope="module")
def store():
    """Entries, 300 of them under keys that others have too."""
    rng = np.random.default_rng(2)
    keys = np.r_[np.arange(2_000), rng.integers(0, 2_000, 300)]
    return [Triplet(f"s{key}", "r", f"o{i}") for i, key in enumerate(keys)]


def test_faiss_agrees_with_numpy(store, table_encoder):
    """Whether few entries are deleted, many, or all: the same bits."""
    rng = np.random.default_rng(3)
    index = build_index(store, table_encoder())
    ours = EmbeddingRetriever(store, table_encoder(), index=index)
    theirs = FaissRetriever(store, table_encoder(), index=index)
    queries = rng.standard_normal((300, 16)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    nearest = ours.search_vectors(queries, k=60).indices
    sizes = rng.integers(0, 60, len(queries))
    deleted = [row[:size] for row, size in zip(nearest, sizes, strict=True)]
    deleted[:3] = [np.arange(2_300), None, np.arange(2_295)]

    for gone in (None, deleted):
        expected = ours.search_vectors(queries, k=9, deleted=gone)
        hits = theirs.search_vectors(queries, k=9, deleted=gone)
        np.testing.assert_array_equal(hits.indices, expected.indices)
        np.testing.assert_array_equal(hits.scores, expected.scores)
    assert (expected.indices[0] == -1).all()


def test_faiss_has_no_hit_in_an_empty_store(ask, table_encoder):
    retriever = FaissRetriever([], table_encoder())

    assert retriever.search([ask("a", "b")], k=2).indices.tolist() == [[-1, -1]]


def test_faiss_threshold_is_put_back(store, ask, table_encoder, monkeypatch):
    """After a search and after one that failed."""
    retriever = FaissRetriever(store, table_encoder())
    before = faiss.cvar.distance_compute_blas_threshold
    during = []

    class Spy:
        def search(self, queries, k):
            during.append(faiss.cvar.distance_compute_blas_threshold)
            raise RuntimeError("planted")

    retriever.search([ask("s1", "r")], k=1)
    assert faiss.cvar.distance_compute_blas_threshold == before

    monkeypatch.setattr(retriever, "_flat", Spy())
    with pytest.raises(RuntimeError, match="planted"):
        retriever.search([ask("s1", "r")], k=1)
    assert during == [20]
    assert faiss.cvar.distance_compute_blas_threshold == before


def test_faiss_names_its_extra(table_encoder, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)

    with pytest.raises(MissingDependencyError, match=r"surface-consistency\[faiss\]"):
        FaissRetriever([], table_encoder())


def test_faiss_rejects_an_index_that_holds_nan(store, table_encoder):
    index = build_index(store, table_encoder())
    vectors = index.vectors.copy()
    vectors[7] = np.nan
    broken = EmbeddingIndex(vectors=vectors, identity=index.identity)

    with pytest.raises(RetrievalError, match="vector of 's7 r' is not finite"):
        FaissRetriever(store, table_encoder(), index=broken)
