"""Exact search over vectors: deletion before ranking, ties by index, equal in any batch."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import RunnerError
from surface_consistency.models.encoders import CachedEncoder
from surface_consistency.schemas import Triplet
from surface_consistency.studies.audit.retrieval import Retriever
from surface_consistency.studies.audit.retrieval.retriever import lookup_key
from surface_consistency.studies.audit.retrieval.retrievers import EmbeddingRetriever

# Sums of halves and quarters are exact, so ties are ties in any order of summation.
HALVES = st.lists(st.sampled_from([-0.5, 0.0, 0.5]), min_size=4, max_size=4)


def naive(vectors, queries, k, deleted):
    """Rebuild the store without the deleted entries for each query, score it, and sort."""
    indices = np.full((len(queries), k), -1, np.int64)
    scores = np.full((len(queries), k), -np.inf, np.float32)
    for row, query in enumerate(queries):
        gone = set() if deleted is None or deleted[row] is None else {*map(int, deleted[row])}
        alive = np.array([i for i in range(len(vectors)) if i not in gone], np.int64)
        values = (vectors[alive].astype(np.float64) @ query.astype(np.float64)).astype(np.float32)
        order = np.lexsort((alive, -values))[:k]
        indices[row, : len(order)] = alive[order]
        scores[row, : len(order)] = values[order]
    return indices, scores


def store_of(key_vectors, key_of, encoder_class):
    """Return a retriever whose entry i has key `key_of[i]`, and the entries' vectors."""
    triplets = [Triplet(f"s{key}", "r", f"o{i}") for i, key in enumerate(key_of)]
    table = {lookup_key(f"s{i}", "r"): np.array(v) for i, v in enumerate(key_vectors)}
    retriever = EmbeddingRetriever(triplets, encoder_class(table))
    return retriever, np.array([key_vectors[key] for key in key_of], np.float32)


@st.composite
def searches(draw):
    key_vectors = draw(st.lists(HALVES, min_size=1, max_size=12))
    n_keys = len(key_vectors)
    key_of = draw(st.lists(st.integers(0, n_keys - 1), min_size=1, max_size=25))
    queries = np.array(draw(st.lists(HALVES, min_size=1, max_size=4)), np.float32)
    entries = st.lists(st.integers(0, len(key_of) - 1), max_size=len(key_of) + 2)
    row = st.none() | entries
    deleted = draw(st.none() | st.lists(row, min_size=len(queries), max_size=len(queries)))
    return key_vectors, key_of, queries, deleted, draw(st.integers(1, 30))


@settings(max_examples=200, deadline=None)
@given(search=searches())
def test_masked_search_agrees_with_a_rebuilt_store(search, table_encoder):
    """A search after deletion equals a search of a store without the entries."""
    key_vectors, key_of, queries, deleted, k = search
    retriever, vectors = store_of(key_vectors, key_of, table_encoder)

    hits = retriever.search_vectors(queries, k=k, deleted=deleted)

    indices, scores = naive(vectors, queries, k, deleted)
    np.testing.assert_array_equal(hits.indices, indices)
    np.testing.assert_array_equal(hits.scores, scores)


@pytest.fixture(scope="module")
def large(table_encoder):
    """A store of several column blocks: 5,000 entries of 4,500 keys."""
    rng = np.random.default_rng(11)
    drawn = rng.standard_normal((4_500, 24))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    key_of = np.r_[np.arange(4_500), rng.integers(0, 4_500, 500)]
    retriever, vectors = store_of(list(drawn), key_of, table_encoder)
    queries = rng.standard_normal((600, 24)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    return retriever, vectors, queries


def nearest_and_random(large, rng):
    """Delete for each query some of its nearest entries and some others."""
    _, vectors, queries = large
    nearest = np.argsort(-(queries @ vectors.T), axis=1)[:, :40]
    return [
        np.r_[rng.choice(row, rng.integers(0, 30), replace=False), rng.integers(0, 5_000, 5)]
        for row in nearest
    ]


def test_search_of_many_blocks_agrees_with_a_rebuilt_store(large):
    retriever, vectors, queries = large
    deleted = nearest_and_random(large, np.random.default_rng(5))

    hits = retriever.search_vectors(queries, k=7, deleted=deleted)

    indices, scores = naive(vectors, queries, 7, deleted)
    np.testing.assert_array_equal(hits.indices, indices)
    np.testing.assert_allclose(hits.scores, scores, rtol=0, atol=1e-7)
    plain = retriever.search_vectors(queries, k=7).indices
    assert (plain == hits.indices).all(axis=1).mean() < 0.2


def test_hits_are_bitwise_equal_in_any_batch(large):
    retriever, _, queries = large
    deleted = nearest_and_random(large, np.random.default_rng(6))
    whole = retriever.search_vectors(queries, k=5, deleted=deleted)

    for row in (0, 3, 299, 599):
        alone = retriever.search_vectors(queries[[row]], k=5, deleted=[deleted[row]])
        np.testing.assert_array_equal(alone.indices[0], whole.indices[row])
        np.testing.assert_array_equal(alone.scores[0], whole.scores[row])


def test_thousands_of_ties_are_ranked_by_index(table_encoder):
    """A key whose lowest entry is deleted is ranked after tied keys with lower entries."""
    same = [[0.5, 0.5, 0.5, 0.5]] * 3_000
    query = np.array([[0.5, 0.5, 0.0, 0.0]], np.float32)

    retriever, _ = store_of(same, range(3_000), table_encoder)
    hits = retriever.search_vectors(query, k=4, deleted=[[1, 3]])
    twice, _ = store_of(same, [*range(3_000), *range(3_000)], table_encoder)
    left = twice.search_vectors(query, k=2, deleted=[range(1_500)])

    assert hits.indices.tolist() == [[0, 2, 4, 5]]
    assert hits.scores.tolist() == [[0.5] * 4]
    assert left.indices.tolist() == [[1_500, 1_501]]


def test_hits_are_ordered_by_exact_scores(table_encoder):
    """If scores differ by less than the error of single precision, the double sum decides."""
    rng = np.random.default_rng(7)
    base = rng.standard_normal(384).astype(np.float32)
    base /= 1.0001 * np.linalg.norm(base)
    near = [base * np.float32(1) + rng.integers(-2, 3, 384) * np.spacing(base) for _ in range(800)]
    far = rng.standard_normal((1_500, 384)) / 40.0
    retriever, vectors = store_of([*far[:900], *near, *far[900:]], range(2_300), table_encoder)
    queries = np.stack([base, near[3]]).astype(np.float32)
    deleted = [[905], range(900, 1_000)]

    hits = retriever.search_vectors(queries, k=20, deleted=deleted)

    indices, scores = naive(vectors, queries, 20, deleted)
    np.testing.assert_array_equal(hits.indices, indices)
    np.testing.assert_array_equal(hits.scores, scores)


def test_each_distinct_text_is_encoded_once(facts, ask, table_encoder):
    encoder = table_encoder()
    shared = CachedEncoder(encoder)
    first = EmbeddingRetriever(facts, shared)
    second = EmbeddingRetriever(facts[:3], shared)

    for retriever in (first, second):
        retriever.search([ask("France", "capital"), ask("Peru", "capital")] * 3, k=1)
        retriever.search([ask("peru", "Capital")], k=1)

    assert sorted(encoder.seen) == sorted({*encoder.seen})
    assert len(encoder.seen) == 5 + 1


def test_fingerprint_depends_on_content_and_encoder(facts, table_encoder):
    prints = [
        EmbeddingRetriever(facts, table_encoder()).fingerprint(),
        EmbeddingRetriever(facts[::-1], table_encoder()).fingerprint(),
        EmbeddingRetriever(facts, table_encoder(name="other")).fingerprint(),
    ]

    assert prints[0] == EmbeddingRetriever(facts, table_encoder()).fingerprint()
    assert prints[0] != prints[1] != prints[2] != prints[0]
    assert isinstance(EmbeddingRetriever(facts, table_encoder()), Retriever)


@pytest.mark.parametrize(
    ("deleted", "message"),
    [
        ([[6]], r"deleted\[0\] contains entry 6, but the store has 6 entries"),
        ([[-1]], r"deleted\[0\] contains entry -1"),
        ([np.zeros(6, bool)], r"deleted\[0\] must be .* indices; got shape \(6,\) of bool"),
        ([[[1]]], r"deleted\[0\] must be a one-dimensional array"),
        ([[0.5]], r"of float64"),
        ([[1], [2]], "one item per query; got 2 for 1 queries"),
    ],
    ids=["too_large", "negative", "mask", "nested", "float", "too_many"],
)
def test_search_rejects_invalid_deletions(facts, ask, table_encoder, deleted, message):
    retriever = EmbeddingRetriever(facts, table_encoder())

    with pytest.raises(ValueError, match=message):
        retriever.search([ask("France", "capital")], k=1, deleted=deleted)


def test_search_rejects_k_below_one_and_other_dimensions(facts, ask, table_encoder):
    retriever = EmbeddingRetriever(facts, table_encoder())

    with pytest.raises(ValueError, match="k must be at least 1; got 0"):
        retriever.search([ask("France", "capital")], k=0)
    with pytest.raises(ValueError, match=r"shape \(n, 16\) of the index; got \(1, 3\)"):
        retriever.search_vectors(np.zeros((1, 3), np.float32), k=1)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 3.0], ids=["nan", "inf", "long"])
def test_invalid_vectors_are_errors_with_their_text(facts, ask, table_encoder, bad):
    vector = np.full(16, bad)
    what = "longer than 1" if bad == 3.0 else "not finite"

    with pytest.raises(RunnerError, match=f"vector of 'france capital' is {what}"):
        EmbeddingRetriever(facts, table_encoder({"france capital": vector}))
    with pytest.raises(RunnerError, match=f"vector of 'peru flag' is {what}"):
        EmbeddingRetriever(facts, table_encoder({"peru flag": vector})).search(
            [ask("Peru", "flag")], k=1
        )
    with pytest.raises(RunnerError, match=f"vector of 1 is {what}"):
        EmbeddingRetriever(facts, table_encoder()).search_vectors(
            np.stack([np.zeros(16), vector]).astype(np.float32), k=1
        )


@pytest.mark.parametrize("n_keys", [5, 3_000])
def test_index_with_nan_is_an_error(table_encoder, n_keys):
    """All comparisons with NaN are false, so its entry would silently be missing."""
    triplets = [Triplet(f"s{i}", "r", "o") for i in range(n_keys)]
    retriever = EmbeddingRetriever(triplets, table_encoder())
    retriever.index.vectors[-1] = np.nan

    with pytest.raises(RunnerError, match=rf"scores of 1 keys are NaN \('s{n_keys - 1} r'\)"):
        retriever.search_vectors(retriever.index.vectors[:2], k=1)
