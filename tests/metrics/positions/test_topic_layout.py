import numpy as np
import pandas as pd
from hypothesis import given, strategies as st

from surface_consistency.errors import ColumnNotFoundError
from surface_consistency.metrics.positions.topic_layout import (
    is_balanced,
    reorder_to_slots,
    slot_counts,
    topic_arrays,
)
from tests.refusals import refusals

LATIN = [[0, 1, 2, 3, 4], [1, 2, 3, 4, 0], [2, 3, 4, 0, 1], [3, 4, 0, 1, 2], [4, 0, 1, 2, 3]]


@st.composite
def ordered_verdicts(draw):
    n_topics, n_permutations, n_slots = (draw(st.integers(1, 4)) for _ in range(3))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    labels = np.tile(np.arange(n_slots), (n_topics, n_permutations, 1))
    return rng.random(labels.shape) < 0.5, rng.permuted(labels, axis=-1)


@given(ordered_verdicts())
def test_slots_agree_with_a_naive_loop(data):
    """Slot j has the label of the sub-question in it."""
    verdicts, orders = data

    laid_out, counts = reorder_to_slots(verdicts, orders), slot_counts(orders)

    for place in np.ndindex(orders.shape):
        assert laid_out[place] == verdicts[(*place[:-1], orders[place])]
    for topic, question, slot in np.ndindex(counts.shape):
        assert counts[topic, question, slot] == (orders[topic, :, slot] == question).sum()


def test_reorder_to_slots_keeps_values_of_any_type():
    assert reorder_to_slots([[1.0, np.nan]], [[1, 0]]).tolist()[0][1] == 1.0
    verdicts = np.array([[True, None]], dtype=object)
    assert reorder_to_slots(verdicts, [[1, 0]]).tolist() == [[None, True]]


def test_is_balanced_accepts_only_latin_squares():
    assert is_balanced([LATIN])
    assert is_balanced([LATIN + LATIN[::-1]])
    for orders in ([LATIN[:4]], [LATIN, LATIN[:4] + LATIN[:1]], [[0, 1, 2]]):
        assert not is_balanced(orders)


test_invalid_orders_are_rejected = refusals(
    lambda orders, call=is_balanced: call(orders),
    ([[1, 2]], r"topic 0, permutation 0 is \[1, 2\]: each row"),
    ([[[0, 1], [0, 0]]], r"permutation 1 is \[0, 0\]"),
    ([[0.0, 1.0]], TypeError, "orders must be integers"),
    ([0, 1], r"orders must have shape .*; got \(2,\)"),
    ([[[]]], TypeError, "orders must be integers"),
    ([[0, 1]], lambda orders: reorder_to_slots([[1, 0, 1]], orders), r"same shape.*got \(1, 3\)"),
)


def arrays_and_frame(n_topics=30):
    """Arrays of labels, NaN if missing, and the same as a frame with one row per label."""
    rng = np.random.default_rng(0)
    square = (np.arange(3)[:, None] + np.arange(3)) % 3
    orders = rng.permuted(np.tile(np.arange(3), (n_topics, 1)), axis=1)[:, square]
    short = (rng.random((n_topics, 3)) < 0.5).astype(float)
    long = (rng.random(orders.shape) < 0.4).astype(float)
    short[1, 1] = long[0, 1, 1] = np.nan
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
    names = {"topic_id": "Topic", "first_correct": "S", "second_correct": "L"}
    renamed = topic_arrays(frame.rename(columns=names), topic="Topic", short="S", long="L")

    for laid_out in (topic_arrays(frame), renamed):
        assert laid_out["topics"].tolist() == [f"topic {topic}" for topic in range(30)]
        expected = {"short": short, "long": long, "orders": orders}
        expected["slots"] = reorder_to_slots(long, orders)
        for name, array in expected.items():
            np.testing.assert_array_equal(laid_out[name], array)


def test_topic_arrays_are_independent_of_row_order():
    """Each label remains with its topic, its sub-question and its slot."""
    *_, frame = arrays_and_frame()
    expected, shuffled = topic_arrays(frame), topic_arrays(frame.sample(frac=1.0, random_state=3))

    def topics(arrays):
        """Rows of short label, slot and long label of each topic, by permutation."""
        places, short = np.argsort(arrays["orders"], axis=-1), arrays["short"][:, None]
        rows = np.stack(np.broadcast_arrays(short, places, arrays["long"]), axis=-1)
        sorted_rows = [sorted(sorted(map(str, one.tolist())) for one in topic) for topic in rows]
        return dict(zip(arrays["topics"], sorted_rows, strict=True))

    assert topics(shuffled) == topics(expected)


def change(frame, row, column, value):
    frame = frame.astype(object)
    frame.loc[row, column] = value
    return frame.infer_objects()


def lacking(frame, column, value):
    """The frame without these rows of one topic."""
    return frame[(frame["topic_id"] != "topic 1") | (frame[column] != value)]


UNEVEN, SIZES = "equally many values of", "'topic 1' has 2 and 'topic 0' has 3"


test_topic_arrays_reject_bad_frames = refusals(
    lambda spoil: topic_arrays(spoil(arrays_and_frame(n_topics=3)[-1])),
    (lambda f: f.drop(columns="slot"), ColumnNotFoundError, "'slot' not found; pass"),
    (lambda f: f.iloc[:0], "frame has no rows"),
    (lambda f: f.drop(index=4), "'topic 0' must have one row .* 1 are missing"),
    (lambda f: pd.concat((f, f.iloc[[4]])), "'topic 0' must .* 1 occur more"),
    (lambda f: lacking(f, "question_id", "q2"), f"{UNEVEN} 'question_id': {SIZES}"),
    (lambda f: lacking(f, "permutation", 2), f"{UNEVEN} 'permutation': {SIZES}"),
    (lambda f: change(f, 0, "slot", f["slot"][1]), "must contain 1 to 3 once in each"),
    (lambda f: f.assign(slot=f["slot"] - 1), r"one has \[0, 1, 2\]"),
    (lambda f: f.assign(slot="first"), TypeError, r"slot\[0\] is 'first', which is not a number"),
    (lambda f: f.assign(slot=np.nan), "'slot' must contain the number of the slot"),
    (
        lambda f: f.assign(first_correct=np.arange(len(f)) % 2),
        "'first_correct' differs between rows of one sub-question of topic 'topic 0'",
    ),
    (lambda f: f.assign(second_correct=2), r"second_correct\[0\] is 2, which is"),
    (lambda f: f.to_dict("records"), TypeError, "frame must be a pandas DataFrame, one row per"),
    (lambda f: change(f, 5, "topic_id", None), "'topic_id' has no value in row 5"),
    (lambda f: change(f, 5, "question_id", np.nan), "'question_id' has no value"),
)
