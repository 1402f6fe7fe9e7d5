import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from surface_consistency_build.counting import SurfaceTable
from surface_consistency_build.counting.pairs import PairCounter

from surface_consistency.errors import DataError

NAMES = "Q90|Paris Q90|City_of_Light Q142|France Q47899|Paris_Hilton Q830149|Paris"
TABLE = SurfaceTable.from_records([name.replace("_", " ").split("|") for name in NAMES.split()])
PAIRS = [("Q90", "Q142"), ("Q830149", "Q142"), ("Q90", "Q47899"), ("Q142", "Q90")]


def both(documents, **options):
    counter = PairCounter(TABLE, PAIRS, **options)
    counter.feed(documents)
    return counter.result().n_documents_both.tolist()


def test_documents_with_both_entities_under_any_name_are_counted():
    documents = ["Paris. France. Paris.", "City of Light, France", "Paris", "France", "", "x"]

    assert both(documents) == [2, 1, 0, 2]


def test_name_within_a_longer_name_counts_only_with_bounded():
    documents = ["Paris Hilton", "Paris Hilton in Paris"]

    assert both(documents) == [0, 0, 1, 0]
    assert both(documents, occurrences="bounded") == [0, 0, 2, 0]


@given(st.lists(st.lists(st.sampled_from("abcdxy"), max_size=12), max_size=5))
@settings(max_examples=80, deadline=None)
def test_counts_agree_with_loops(documents):
    table = SurfaceTable.from_records([(f"Q{n % 3}", "abcd"[n]) for n in range(4)])
    pairs = [("Q0", "Q1"), ("Q1", "Q2"), ("Q2", "Q0")]
    owner = {"a": "Q0", "b": "Q1", "c": "Q2", "d": "Q0"}
    counter = PairCounter(table, pairs)
    counter.feed([" ".join(words) for words in documents])

    named = [{owner[word] for word in words if word in owner} for words in documents]
    expected = [
        [
            sum(needed <= entities for entities in named)
            for needed in ({*pair}, {pair[0]}, {pair[1]})
        ]
        for pair in pairs
    ]
    found = counter.result()
    counts = (found.n_documents_both, found.n_documents_subject, found.n_documents_object)
    assert np.transpose(counts).tolist() == expected


@pytest.mark.parametrize(
    ("pairs", "options", "error", "message"),
    [
        ([], {}, DataError, "no pairs to count"),
        ([("Q90", "Q90")], {}, DataError, "the pair of 'Q90' with itself cannot be counted"),
        ([("Q90", "Q1")], {}, DataError, "needs names of 'Q1', which the table lacks"),
        (PAIRS, {"occurrences": "all"}, ValueError, "occurrences must be longest or bounded"),
    ],
)
def test_invalid_pairs_are_rejected(pairs, options, error, message):
    with pytest.raises(error, match=message):
        PairCounter(TABLE, pairs, **options)
