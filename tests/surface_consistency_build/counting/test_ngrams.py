from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from surface_consistency_build.counting import ngrams
from surface_consistency_build.counting.ngrams import NgramCounter, count_ngrams
from surface_consistency_build.counting.texts import PackedTexts

from surface_consistency.text import tokenize


def naive(instances, documents, n):
    """Count all n-grams of documents with a Counter."""
    found = Counter()
    for text in documents:
        words = text.split()
        found.update(tuple(words[k : k + n]) for k in range(len(words) - n + 1))
    rows = []
    for text in instances:
        words = text.split()
        grams = dict.fromkeys(tuple(words[k : k + n]) for k in range(len(words) - n + 1))
        rows.append([found[gram] for gram in grams])
    return rows


sentences = st.lists(st.lists(st.sampled_from("abc"), max_size=15).map(" ".join), max_size=5)


@given(sentences, sentences, st.integers(1, 7))
@settings(max_examples=100, deadline=None)
def test_counts_agree_with_a_dictionary(instances, documents, n):
    counts = count_ngrams(instances, [documents], n=n)

    assert [row.tolist() for row in counts] == naive(instances, documents, n)


@given(
    st.lists(
        st.text(
            alphabet="ab \t\n\x1c\u3000\u2009\u00e9e\u0301\u4eac東京タワーก한글—𠮷a", max_size=30
        )
    ),
    st.integers(1, 3),
)
def test_words_of_all_scripts_equal_those_of_the_tokenizer(documents, n):
    instances = ["a b é 京 京都 東 タワー ก", *documents[:2], "한글 — 𠮷 a"]

    counts = count_ngrams(instances, [documents], n=n)

    slow = count_ngrams(instances, [documents], n=n, tokenize=lambda text: tokenize(text))
    assert [row.tolist() for row in counts] == [row.tolist() for row in slow]


def test_all_characters_that_separate_words_are_searched():
    texts = [f"a{chr(c)}b" for c in range(0x80, 0x110000) if not 0xD800 <= c < 0xE000]
    found = set(ngrams._may_lack_spaces(PackedTexts.pack(texts)))

    separated = [k for k, text in enumerate(texts) if tokenize(text) != text.split()]

    assert len(separated) > 90_000
    assert found.issuperset(separated)


def test_tokens_can_be_ids_and_ngrams_do_not_span_documents():
    tokenize = lambda text: [ord(c) for c in text]  # noqa: E731

    counts = count_ngrams(["abc"], [["ab", "c", "abcab"]], n=3, tokenize=tokenize)

    assert [row.tolist() for row in counts] == [[1]]


def test_colliding_hashes_are_hashed_again(monkeypatch):
    monkeypatch.setattr(ngrams, "_MULTIPLIERS", [0, *ngrams._MULTIPLIERS])

    counts = count_ngrams(["a b", "b a"], [["a b a b"]], n=2)

    assert [row.tolist() for row in counts] == [[2], [1]]


def test_counts_of_parts_are_added_and_other_instances_rejected():
    first, second = NgramCounter(["a b c"], n=2), NgramCounter(["a b c"], n=2)
    first.feed(["a b c"])
    second.feed(["b c b c", ""])
    first.add(second.counts)

    assert first.counts.tolist() == [1, 3]
    with pytest.raises(ValueError, match="counts must have 2 n-grams, those of the same"):
        first.add(np.zeros(3, dtype=np.int64))
    assert [len(row) for row in NgramCounter(["a b c d e f g h", "a b", ""]).result()] == [2, 0, 0]
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        NgramCounter([], n=0)
