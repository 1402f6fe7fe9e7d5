import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import CountRatio, Intervals, cluster_bootstrap, position_curve
from surface_consistency.metrics.positions.topic_layout import reorder_to_slots
from tests.refusals import refusals

SLOTS = 5
LATIN = (np.arange(SLOTS)[:, None] + np.arange(SLOTS)) % SLOTS


def balanced(seed, n_topics=600, fade=0.0):
    """Long answers over Latin squares, whose accuracy decreases by `fade` per slot."""
    rng = np.random.default_rng(seed)
    orders = rng.permuted(np.tile(np.arange(SLOTS), (n_topics, 1)), axis=1)[:, LATIN]
    ease = reorder_to_slots(np.repeat(rng.beta(2, 2, (n_topics, 1, SLOTS)), SLOTS, axis=1), orders)
    return rng.random(orders.shape) < ease * (1 - fade * np.arange(SLOTS)), orders


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**16),
    n_topics=st.integers(4, 25),
    fade=st.sampled_from([0.0, 0.1, 0.2]),
    confidence=st.sampled_from([0.5, 0.9, 0.95]),
)
def test_position_curve_agrees_with_a_naive_loop_and_its_tests(seed, n_topics, fade, confidence):
    slots, orders = balanced(seed, n_topics, fade)
    rng = np.random.default_rng(seed)
    topics, permutations = rng.permutation(n_topics), rng.permutation(SLOTS)

    rows = position_curve(slots, orders, intervals=Intervals(confidence=confidence))

    expected = [np.mean([s for topic in slots for s in topic[:, j]]) for j in range(SLOTS)]
    assert rows["accuracy"].tolist() == pytest.approx(expected)
    assert rows["slot"].tolist() == [1, 2, 3, 4, 5]
    assert (rows["n"] == n_topics * SLOTS).all()
    assert rows["n_correct"].sum() == slots.sum()
    assert ((rows["accuracy_low"] <= rows["accuracy"]) & (rows["accuracy_low"] >= 0)).all()
    whole = rows.drop(columns=[*rows.columns[:6]])
    assert len(whole.drop_duplicates()) == 1
    row = whole.iloc[0]
    assert row["slope"] == pytest.approx(np.polyfit(range(SLOTS), expected, 1)[0])
    assert row["last_difference"] == pytest.approx(expected[-1] - expected[0])
    # An interval excludes 0 exactly if its test rejects.
    for name in ("slope", "last_difference"):
        low, high, p_value = (row[f"{name}_{end}"] for end in ("low", "high", "p_value"))
        assert low - 1e-12 <= row[name] <= high + 1e-12
        if abs(p_value - (1 - confidence)) > 1e-9:
            assert (p_value < 1 - confidence) == (low > 0 or high < 0)
    places = np.ix_(topics, permutations)
    moved = position_curve(
        slots[places], orders[places], intervals=Intervals(confidence=confidence)
    )
    assert moved["accuracy"].tolist() == rows["accuracy"].tolist()


def test_position_curve_is_flat_if_slots_have_no_effect():
    """In balanced orders, facts with constant labels are in each slot equally often."""
    _, orders = balanced(3, n_topics=20)
    facts = np.random.default_rng(3).random((20, 1, SLOTS)) < 0.5

    rows = position_curve(reorder_to_slots(np.repeat(facts, SLOTS, axis=1), orders), orders)

    assert rows["accuracy"].nunique() == 1
    assert rows["slope"][0] == pytest.approx(0.0)
    assert -0.2 < rows["slope_low"][0] < 0.0 < rows["slope_high"][0] < 0.2


def test_position_intervals_agree_with_the_cluster_bootstrap():
    slots, orders = balanced(4, n_topics=100)
    counts = np.column_stack((slots[:, :, 2].sum(axis=1), np.full(100, SLOTS)))
    reference = cluster_bootstrap(counts, CountRatio(numerator=(1, 0), denominator=(0, 1)))

    row = position_curve(slots, orders).iloc[2]

    found = row[["accuracy", "accuracy_low", "accuracy_high"]].tolist()
    assert found == pytest.approx(reference, abs=0.006)


def test_position_curve_excludes_a_sub_question_from_all_its_orders():
    """The rest of a topic remains balanced, and each slot loses the same number of answers."""
    slots, orders = balanced(6, n_topics=10)
    gaps = slots.astype(float)
    gaps[4, 1, 3] = np.nan
    gaps[7] = np.nan

    with pytest.warns(UnscoredWarning, match="6 of 50 sub-questions lack a label"):
        rows = position_curve(gaps, orders, missing="drop")

    is_kept = orders != orders[4, 1, 3]
    is_kept[np.arange(10) != 4] = True
    is_kept[7] = False
    for slot in range(SLOTS):
        kept = slots[:, :, slot][is_kept[:, :, slot]]
        assert rows.loc[slot, ["n", "n_correct"]].tolist() == [kept.size, kept.sum()]
    assert (rows["n_topics"][0], rows["n_missing"][0]) == (9, 6)


def test_position_curve_without_a_complete_sub_question_is_nan():
    missing = pytest.warns(UnscoredWarning, match="2 of 2 sub-questions")
    with missing, pytest.warns(UndefinedMetricWarning, match="all values, the statistic of all"):
        row = position_curve([[[1, None], [0, None]]], [PAIR], missing="drop").iloc[0]

    assert row[["accuracy", "accuracy_low", "slope", "slope_p_value"]].isna().all()


def test_trends_of_many_topics_have_the_t_test_of_their_slopes():
    """With equal numbers of answers per slot the slope is the mean of the topics' slopes."""
    slots, orders = balanced(11, n_topics=3000, fade=0.02)
    means = slots.mean(axis=1)
    slopes = np.polyfit(np.arange(SLOTS), means.T, 1)[0]

    row = position_curve(slots, orders).iloc[0]

    for name, values in (("slope", slopes), ("last_difference", means[:, -1] - means[:, 0])):
        bounds = stats.ttest_1samp(values, 0).confidence_interval()
        found = row[f"{name}_low"], row[f"{name}_high"]
        assert found == pytest.approx((bounds.low, bounds.high), abs=1e-3)


PAIR = [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("slots", "orders", "message", "is_nan"),
    [
        ([[[1, 0], [0, 1]]], [PAIR], "effective number of clusters 1, minimum 4", (0, 1)),
        ([[[1, 0], [0, 1]]] * 3, [PAIR] * 3, "intervals, effective.* 3, minimum 4", (0, 1)),
        ([[[1]], [[0]]] * 4, [[[0]]] * 8, "there is only one slot", (1, 0)),
    ],
)
def test_values_that_cannot_be_inferred_are_nan(slots, orders, message, is_nan):
    with pytest.warns(UndefinedMetricWarning, match=message):
        row = position_curve(slots, orders).iloc[0]

    assert row["accuracy"] == 0.5
    assert (math.isnan(row["slope"]), math.isnan(row["accuracy_low"])) == is_nan
    assert math.isnan(row["slope_p_value"])


ONCE = np.tile(np.arange(SLOTS), (3, SLOTS, 1))
RANDOM = np.random.default_rng(8).permuted(np.tile(np.arange(SLOTS), (600, SLOTS, 1)), axis=2)
TORN = r"in topic 0 sub-question 0 is 5 times in slot 1 and 0 times in slot 2 \(3 of 3 topics"
UNEVEN = balanced(9, n_topics=4)[1]
UNEVEN[2, 0], UNEVEN[2, 1] = UNEVEN[2, 1].copy(), UNEVEN[2, 1].copy()


test_position_curve_rejects_bad_input = refusals(
    lambda slots, orders, missing="raise": position_curve(slots, orders, missing=missing),
    # In one order, the difficulty of sub-questions and the effect of slots are confounded.
    (np.ones(ONCE.shape), ONCE, f"not counter-balanced: {TORN}"),
    # Five random orders per topic, as in the paper.
    (np.ones(RANDOM.shape), RANDOM, "orders are not counter-balanced"),
    (np.ones(UNEVEN.shape), UNEVEN, r"in topic 2 .* \(1 of 4 topics are uneven\)"),
    ([[[1, 0], [0, 1]]], [[0, 1]], "slots and orders must have the same shape"),
    ([[[1, 0], [0, 1]]], [[[0, 1], [2, 0]]], "each row must contain"),
    ([[[1, 0], [0, 1]]], [[[0.0, 1], [1, 0]]], TypeError, "orders must be integers"),
    ([[[1, 7], [0, 1]]], [PAIR], "which is not a correctness label"),
    ([[[1, None], [0, 1]]], [PAIR], "has no label"),
    ([[1, 0]], [[0, 1]], "not counter-balanced"),
)
