import numpy as np
import pandas as pd
import pytest

from surface_consistency.errors import ColumnNotFoundError, UnscoredWarning
from surface_consistency.metrics.alignment.alignment import alignment_scores
from surface_consistency.metrics.alignment.momentum import momentum
from surface_consistency.metrics.alignment.position import position_curve
from surface_consistency.metrics.alignment.slot_orders import by_slot
from surface_consistency.metrics.alignment.topic_arrays import topic_arrays

SLOTS = 3
LATIN = (np.arange(SLOTS)[:, None] + np.arange(SLOTS)) % SLOTS


def arrays_and_frame(seed=0, n_topics=30):
    """The same verdicts as arrays and as a frame whose rows stand in random order."""
    rng = np.random.default_rng(seed)
    orders = rng.permuted(np.tile(np.arange(SLOTS), (n_topics, 1)), axis=1)[:, LATIN]
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

    assert laid_out.topics == tuple(f"topic {topic}" for topic in range(30))
    assert (laid_out.short == short).all()
    assert (laid_out.long == long).all()
    assert (laid_out.orders == orders).all()
    assert (laid_out.slots == by_slot(long, orders)).all()


def test_topic_arrays_are_free_of_row_order():
    """Whatever the order of the rows, the metrics come out the same."""
    short, long, orders, frame = arrays_and_frame(1)
    shuffled = topic_arrays(frame.sample(frac=1.0, random_state=3))

    scores = alignment_scores(shuffled.short, shuffled.long, n_resamples=10)
    runs = momentum(shuffled.slots, orders=shuffled.orders, n_resamples=10, n_null=10)
    places = position_curve(shuffled.slots, shuffled.orders, n_resamples=10)

    assert scores.alignment == pytest.approx(alignment_scores(short, long).alignment)
    direct = momentum(by_slot(long, orders), orders=orders, n_resamples=10, n_null=10)
    assert [p.n_correct for p in runs.correct.points] == [
        p.n_correct for p in direct.correct.points
    ]
    expected = position_curve(by_slot(long, orders), orders, n_resamples=10)
    assert [p.accuracy for p in places.points] == [p.accuracy for p in expected.points]


def test_topic_arrays_keep_missing_verdicts():
    _, _, _, frame = arrays_and_frame(2, n_topics=4)
    frame["second_correct"] = frame["second_correct"].astype(object)
    frame.loc[4, "second_correct"] = None

    laid_out = topic_arrays(frame)

    assert np.isnan(laid_out.long[0, 1, 1])
    assert np.isnan(laid_out.long).sum() == 1
    with pytest.warns(UnscoredWarning, match="1 of 36 pairs"):
        alignment_scores(laid_out.short, laid_out.long, missing="drop", n_resamples=10)


def test_topic_arrays_take_columns_by_other_names():
    short, long, _, frame = arrays_and_frame(3, n_topics=2)
    names = {"topic_id": "Topic", "first_correct": "S", "second_correct": "L"}

    laid_out = topic_arrays(frame.rename(columns=names), topic="Topic", short="S", long="L")

    assert (laid_out.short == short).all()
    assert (laid_out.long == long).all()


def test_topic_arrays_count_a_missing_short_verdict_as_the_same():
    _, _, _, frame = arrays_and_frame(4, n_topics=2)
    frame["first_correct"] = frame["first_correct"].astype(float)
    frame.loc[frame["question_id"] == "q1", "first_correct"] = np.nan

    assert np.isnan(topic_arrays(frame).short[:, 1]).all()


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
