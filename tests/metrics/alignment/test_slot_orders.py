import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surface_consistency.metrics.alignment.slot_orders import (
    by_question,
    by_slot,
    is_balanced,
    slot_counts,
)

LATIN = [[0, 1, 2, 3, 4], [1, 2, 3, 4, 0], [2, 3, 4, 0, 1], [3, 4, 0, 1, 2], [4, 0, 1, 2, 3]]


@st.composite
def ordered_verdicts(draw):
    n_topics, n_permutations, n_slots = (draw(st.integers(1, 4)) for _ in range(3))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    labels = np.tile(np.arange(n_slots), (n_topics, n_permutations, 1))
    return rng.random(labels.shape) < 0.5, rng.permuted(labels, axis=-1)


@given(ordered_verdicts())
def test_by_slot_is_undone_by_by_question(data):
    verdicts, orders = data

    assert (by_question(by_slot(verdicts, orders), orders) == verdicts).all()
    assert (by_slot(by_question(verdicts, orders), orders) == verdicts).all()


@given(ordered_verdicts())
def test_by_slot_agrees_with_a_naive_loop(data):
    """Slot j holds the verdict on the sub-question that stands there."""
    verdicts, orders = data

    laid_out = by_slot(verdicts, orders)

    for place in np.ndindex(orders.shape):
        assert laid_out[place] == verdicts[(*place[:-1], orders[place])]


def test_by_slot_keeps_values_of_any_type():
    assert by_slot([[1.0, np.nan]], [[1, 0]]).tolist()[0][1] == 1.0
    assert by_slot(np.array([[True, None]], dtype=object), [[1, 0]]).tolist() == [[None, True]]


@given(ordered_verdicts())
def test_slot_counts_agree_with_a_naive_loop(data):
    _, orders = data

    counts = slot_counts(orders)

    for topic, question, slot in np.ndindex(counts.shape):
        assert counts[topic, question, slot] == (orders[topic, :, slot] == question).sum()


def test_is_balanced_knows_a_latin_square():
    assert is_balanced([LATIN])
    assert is_balanced([LATIN + LATIN[::-1]])
    assert not is_balanced([LATIN[:4]])
    assert not is_balanced([LATIN, LATIN[:4] + LATIN[:1]])
    assert not is_balanced([[0, 1, 2]])


@pytest.mark.parametrize(
    ("orders", "error", "message"),
    [
        ([[1, 2]], ValueError, r"topic 0, permutation 0 is \[1, 2\]: each row must hold"),
        ([[[0, 1], [0, 0]]], ValueError, r"topic 0, permutation 1 is \[0, 0\]"),
        ([[0.0, 1.0]], TypeError, "orders must hold integers"),
        ([0, 1], ValueError, r"orders must have shape .*; got \(2,\)"),
        ([[[]]], TypeError, "orders must hold integers"),
    ],
)
def test_orders_reject_what_is_no_order(orders, error, message):
    with pytest.raises(error, match=message):
        is_balanced(orders)


@pytest.mark.parametrize("function", [by_slot, by_question])
def test_layouts_reject_unequal_shapes(function):
    with pytest.raises(ValueError, match=r"must have the same shape.*got \(1, 3\) and \(1, 2\)"):
        function([[1, 0, 1]], [[0, 1]])
