import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from surface_consistency.errors import ColumnNotFoundError, UnscoredWarning
from surface_consistency.metrics.positions.alignment import topic_counts
from surface_consistency.metrics.positions.momentum_curves import momentum
from surface_consistency.metrics.positions.positions import position_curve
from surface_consistency.metrics.positions.topic_layout import (
    is_balanced,
    reorder_to_slots,
    slot_counts,
    topic_arrays,
)
from surface_consistency.metrics.uncertainty.intervals import Intervals

LATIN = [[0, 1, 2, 3, 4], [1, 2, 3, 4, 0], [2, 3, 4, 0, 1], [3, 4, 0, 1, 2], [4, 0, 1, 2, 3]]


@st.composite
def ordered_verdicts(draw):
    n_topics, n_permutations, n_slots = (draw(st.integers(1, 4)) for _ in range(3))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    labels = np.tile(np.arange(n_slots), (n_topics, n_permutations, 1))
    return rng.random(labels.shape) < 0.5, rng.permuted(labels, axis=-1)


@given(ordered_verdicts())
def test_reorder_to_slots_agrees_with_a_naive_loop(data):
    """Slot j holds the verdict on the sub-question that stands there."""
    verdicts, orders = data

    laid_out = reorder_to_slots(verdicts, orders)

    for place in np.ndindex(orders.shape):
        assert laid_out[place] == verdicts[(*place[:-1], orders[place])]


def test_reorder_to_slots_keeps_values_of_any_type():
    assert reorder_to_slots([[1.0, np.nan]], [[1, 0]]).tolist()[0][1] == 1.0
    assert reorder_to_slots(np.array([[True, None]], dtype=object), [[1, 0]]).tolist() == [
        [None, True]
    ]


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


@pytest.mark.parametrize("function", [reorder_to_slots])
def test_layouts_reject_unequal_shapes(function):
    with pytest.raises(ValueError, match=r"must have the same shape.*got \(1, 3\) and \(1, 2\)"):
        function([[1, 0, 1]], [[0, 1]])


SLOTS = 3
LATIN_ORDERS = (np.arange(SLOTS)[:, None] + np.arange(SLOTS)) % SLOTS


def arrays_and_frame(seed=0, n_topics=30):
    """The same verdicts as arrays and as a frame whose rows stand in random order."""
    rng = np.random.default_rng(seed)
    orders = rng.permuted(np.tile(np.arange(SLOTS), (n_topics, 1)), axis=1)[:, LATIN_ORDERS]
    short = rng.random((n_topics, SLOTS)) < 0.5
    long = rng.random(orders.shape) < 0.4
    rows = [
        {
            "topic_id": f"topic {topic}",
            "question_id": f"q{question}",
            "permutation": permutation,
            "slot": int(np.flatnonzero(orders[topic, permutation] == question)[0]) + 1,
            "first_correct": short[topic, question],
            "second_correct": long[topic, permutation, question],
        }
        for topic, permutation, question in np.ndindex(orders.shape)
    ]
    return short, long, orders, pd.DataFrame(rows)


def test_topic_arrays_agree_with_the_arrays_of_a_sorted_frame():
    short, long, orders, frame = arrays_and_frame()

    laid_out = topic_arrays(frame)

    assert laid_out["topics"].tolist() == [f"topic {topic}" for topic in range(30)]
    assert (laid_out["short"] == short).all()
    assert (laid_out["long"] == long).all()
    assert (laid_out["orders"] == orders).all()
    assert (laid_out["slots"] == reorder_to_slots(long, orders)).all()


def test_topic_arrays_are_free_of_row_order():
    """Whatever the order of the rows, the metrics come out the same."""
    short, long, orders, frame = arrays_and_frame(1)
    shuffled = topic_arrays(frame.sample(frac=1.0, random_state=3))

    counts = topic_counts(shuffled["short"], shuffled["long"], missing="raise")
    runs, _ = momentum(
        shuffled["slots"], orders=shuffled["orders"], intervals=Intervals(n_resamples=10), n_null=10
    )
    places = position_curve(
        shuffled["slots"], shuffled["orders"], intervals=Intervals(n_resamples=10)
    )

    expected = topic_counts(short, long, missing="raise")
    assert sorted(counts.tolist()) == sorted(expected.tolist())
    direct, _ = momentum(
        reorder_to_slots(long, orders),
        orders=orders,
        intervals=Intervals(n_resamples=10),
        n_null=10,
    )
    assert runs["n_correct"].tolist() == direct["n_correct"].tolist()
    expected = position_curve(
        reorder_to_slots(long, orders), orders, intervals=Intervals(n_resamples=10)
    )
    assert places["accuracy"].tolist() == expected["accuracy"].tolist()


def test_topic_arrays_keep_missing_verdicts():
    _, _, _, frame = arrays_and_frame(2, n_topics=4)
    frame["second_correct"] = frame["second_correct"].astype(object)
    frame.loc[4, "second_correct"] = None

    laid_out = topic_arrays(frame)

    assert np.isnan(laid_out["long"][0, 1, 1])
    assert np.isnan(laid_out["long"]).sum() == 1
    with pytest.warns(UnscoredWarning, match="1 of 36 pairs"):
        topic_counts(laid_out["short"], laid_out["long"], missing="drop")


def test_topic_arrays_take_columns_by_other_names():
    short, long, _, frame = arrays_and_frame(3, n_topics=2)
    names = {"topic_id": "Topic", "first_correct": "S", "second_correct": "L"}

    laid_out = topic_arrays(frame.rename(columns=names), topic="Topic", short="S", long="L")

    assert (laid_out["short"] == short).all()
    assert (laid_out["long"] == long).all()


def test_topic_arrays_count_a_missing_short_verdict_as_the_same():
    _, _, _, frame = arrays_and_frame(4, n_topics=2)
    frame["first_correct"] = frame["first_correct"].astype(float)
    frame.loc[frame["question_id"] == "q1", "first_correct"] = np.nan

    assert np.isnan(topic_arrays(frame)["short"][:, 1]).all()


def change(frame, row, column, value):
    frame = frame.astype(object)
    frame.loc[row, column] = value
    return frame.infer_objects()


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda f: f.drop(columns="slot"), ColumnNotFoundError, "'slot' is not in the frame"),
        (lambda f: f.iloc[:0], ValueError, "frame has no rows"),
        (lambda f: f.drop(index=4), ValueError, "'topic 0' must have one row .* 1 are not there"),
        (
            lambda f: pd.concat((f, f.iloc[[4]])),
            ValueError,
            "'topic 0' must have one row .* 1 stand there more than once",
        ),
        (
            lambda f: f[(f["topic_id"] != "topic 1") | (f["question_id"] != "q2")],
            ValueError,
            "equally many values of 'question_id': 'topic 1' has 2 and 'topic 0' has 3",
        ),
        (
            lambda f: f[(f["topic_id"] != "topic 1") | (f["permutation"] != 2)],
            ValueError,
            "equally many values of 'permutation': 'topic 1' has 2 and 'topic 0' has 3",
        ),
        (
            lambda f: change(f, 0, "slot", f["slot"][1]),
            ValueError,
            r"'slot' must hold 1 to 3 once in each",
        ),
        (lambda f: f.assign(slot=f["slot"] - 1), ValueError, r"one holds \[0, 1, 2\]"),
        (lambda f: f.assign(slot="first"), TypeError, r"slot\[0\] is 'first', which is no number"),
        (lambda f: f.assign(slot=np.nan), ValueError, "'slot' must hold the number of the slot"),
        (
            lambda f: f.assign(first_correct=np.arange(len(f)) % 2),
            ValueError,
            "'first_correct' differs between rows of one sub-question of topic 'topic 0'",
        ),
        (
            lambda f: f.assign(second_correct=2),
            ValueError,
            r"second_correct\[0\] is 2, which is no verdict",
        ),
        (lambda f: f.to_dict("records"), TypeError, "frame must be a pandas DataFrame, one row a"),
        (lambda f: change(f, 5, "topic_id", None), ValueError, "'topic_id' has no value in row 5"),
        (lambda f: change(f, 5, "question_id", np.nan), ValueError, "'question_id' has no value"),
    ],
)
def test_topic_arrays_reject_bad_frames(spoil, error, message):
    _, _, _, frame = arrays_and_frame(5, n_topics=3)

    with pytest.raises(error, match=message):
        topic_arrays(spoil(frame))
