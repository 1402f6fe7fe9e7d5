"""Retrievers by letters and by words."""

import math
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import MissingDependencyError
from surface_consistency.schemas import LookupQuery, Triplet
from surface_consistency.studies.audit.retrieval import Retriever
from surface_consistency.studies.audit.retrieval.retriever import lookup_key
from surface_consistency.studies.audit.retrieval.retrievers import (
    BM25Retriever,
    EmbeddingRetriever,
    FuzzyRetriever,
    HybridRetriever,
)
from surface_consistency.text import normalize, tokenize

WORDS = ["paris", "chad", "capital", "code", "of", "東京"]
BOTH = {"fuzzy": FuzzyRetriever, "bm25": BM25Retriever}


def fuzzy_scores(keys, query):
    fuzz = pytest.importorskip("rapidfuzz").fuzz
    return [fuzz.token_sort_ratio(query, key) / 100.0 for key in keys]


def bm25_scores(keys, query, k1=1.5, b=0.75):
    """BM25 in Lucene's form (Kamphuis et al., ECIR 2020), a word at a time."""
    texts = [Counter(tokenize(normalize(key))) for key in keys]
    lengths = [sum(text.values()) for text in texts]
    mean = sum(lengths) / len(lengths)
    scores = [0.0] * len(keys)
    for word in tokenize(normalize(query)):
        df = sum(word in text for text in texts)
        idf = math.log(1.0 + (len(keys) - df + 0.5) / (df + 0.5))
        for i, text in enumerate(texts):
            if text[word]:
                norm = k1 * (1.0 - b + b * lengths[i] / mean)
                scores[i] += idf * text[word] / (text[word] + norm)
    return scores


def naive(score, triplets, query, k, deleted):
    """Score all distinct keys, drop the deleted entries, sort."""
    keys = list(dict.fromkeys(lookup_key(s, r) for s, r, _ in triplets))
    of_key = dict(zip(keys, np.array(score(keys, query), np.float32), strict=True))
    left = [
        (-of_key[lookup_key(s, r)], i)
        for i, (s, r, _) in enumerate(triplets)
        if i not in deleted and (score is fuzzy_scores or of_key[lookup_key(s, r)] > 0)
    ]
    return [(i, -value) for value, i in sorted(left)[:k]]


names = st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join)


@pytest.mark.parametrize("kind", BOTH)
@settings(max_examples=60, deadline=None)
@given(
    store=st.lists(st.tuples(names, names), min_size=1, max_size=15),
    query=st.tuples(names, names),
    deleted=st.sets(st.integers(0, 14)),
    k=st.integers(1, 20),
)
def test_word_retriever_agrees_with_a_plain_loop(kind, store, query, deleted, k):
    """Deleted entries are excluded, and ties are ordered by index."""
    pytest.importorskip("bm25s")
    triplets = [Triplet(s, r, str(i)) for i, (s, r) in enumerate(store)]
    gone = {i for i in deleted if i < len(triplets)}

    hits = BOTH[kind](triplets).search(
        [LookupQuery(entity=query[0], relation=query[1])], k=k, deleted=[sorted(gone)]
    )

    score = fuzzy_scores if kind == "fuzzy" else bm25_scores
    expected = naive(score, triplets, lookup_key(*query), k, gone)
    found = hits.indices[0] >= 0
    assert hits.indices[0][found].tolist() == [i for i, _ in expected]
    np.testing.assert_allclose(hits.scores[0][found], [s for _, s in expected], rtol=1e-5)


@pytest.mark.parametrize("kind", [*BOTH, "embedding", "hybrid"])
def test_retrievers_accept_empty_stores_queries_and_deletions(kind, facts, ask, table_encoder):
    pytest.importorskip("bm25s")

    def make(entries):
        if kind in BOTH:
            return BOTH[kind](entries)
        embedding = EmbeddingRetriever(entries, table_encoder())
        return embedding if kind == "embedding" else HybridRetriever([embedding])

    retriever = make(facts)

    assert isinstance(retriever, Retriever)
    assert retriever.search([], k=3).indices.shape == (0, 3)
    assert retriever.search([], k=2, deleted=[]).scores.dtype == np.float32
    assert make([]).search([ask("a", "b")], k=2, deleted=[[]]).indices.tolist() == [[-1, -1]]
    assert make([Triplet("", " ", "x")]).search([ask("a", "b")], k=1).indices.shape == (1, 1)
    gone = retriever.search([ask("Chad", "x")], k=9, deleted=[range(6)])
    assert (gone.indices == -1).all()
    assert np.isneginf(gone.scores).all()
    assert retriever.search([ask("日本", "首都")], k=1).indices.tolist() == [[4]]
    blank, same = retriever.search([ask("", ""), ask(" ", "_")], k=9).indices
    np.testing.assert_array_equal(blank, same)
    if kind in BOTH:
        assert retriever.search([ask("\ud83d", "")], k=1).indices.shape == (1, 1)
    assert retriever.fingerprint() == make(facts).fingerprint() != make(facts[1:]).fingerprint()


@pytest.mark.parametrize("kind", BOTH)
def test_word_retriever_of_many_blocks_agrees_with_a_plain_loop(kind):
    """More keys than one block holds, most of them tied."""
    pytest.importorskip("bm25s")
    triplets = [Triplet(f"s{i % 1_900}", WORDS[i % 5], str(i)) for i in range(2_500)]
    queries = [LookupQuery(entity=f"s{i}", relation=WORDS[i % 4]) for i in (3, 1_100, 1_899)]
    gone = [[3, 1_903], [], range(0, 2_500, 2)]

    hits = BOTH[kind](triplets).search(queries, k=12, deleted=gone)

    score = fuzzy_scores if kind == "fuzzy" else bm25_scores
    for row, query in enumerate(queries):
        expected = naive(
            score, triplets, lookup_key(query.entity, query.relation), 12, {*gone[row]}
        )
        found = hits.indices[row] >= 0
        np.testing.assert_allclose(hits.scores[row][found], [s for _, s in expected], rtol=1e-5)
        if kind == "fuzzy":
            assert hits.indices[row].tolist() == [i for i, _ in expected]


@pytest.mark.parametrize("kind", BOTH)
def test_tied_keys_are_ranked_by_their_first_remaining_entry(kind, ask):
    """Keys of equal words tie; entry 0 of the first key is deleted, and entry 3 remains."""
    pytest.importorskip("bm25s")
    names = ["paris chad", "chad paris", "tokyo", "Paris_Chad"]
    triplets = [Triplet(name, "", str(i)) for i, name in enumerate(names)]

    hits = BOTH[kind](triplets).search([ask("Paris Chad", "")], k=1, deleted=[[0]])

    assert hits.indices.tolist() == [[1]]


def test_bm25_has_no_hit_without_a_shared_word_and_names_its_extra(facts, ask, monkeypatch):
    pytest.importorskip("bm25s")

    hits = BM25Retriever(facts).search([ask("Peru", "anthem"), ask("", ""), ask("Chad", "x")], k=2)

    assert hits.indices[:2].tolist() == [[-1, -1]] * 2
    assert (hits.indices[2] >= 0).all()
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(MissingDependencyError, match=r"surface-consistency\[retrieval\]"):
        BM25Retriever(facts)
