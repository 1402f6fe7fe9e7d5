import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import CountRatio, Intervals, cluster_bootstrap
from surface_consistency.metrics.positions import positions
from surface_consistency.metrics.positions.topic_layout import reorder_to_slots

SLOTS = 5
LATIN = (np.arange(SLOTS)[:, None] + np.arange(SLOTS)) % SLOTS


def balanced(seed, n_topics=600, fade=0.0):
    """Long answers over Latin squares, whose accuracy falls by `fade` from slot to slot."""
    rng = np.random.default_rng(seed)
    orders = rng.permuted(np.tile(np.arange(SLOTS), (n_topics, 1)), axis=1)[:, LATIN]
    ease = reorder_to_slots(np.repeat(rng.beta(2, 2, (n_topics, 1, SLOTS)), SLOTS, axis=1), orders)
    return rng.random(orders.shape) < ease * (1 - fade * np.arange(SLOTS)), orders


def position_curve(*args, **options):
    """What `metrics.position_curve` gives: points, and the numbers of all rows, by attribute."""
    rows = positions.position_curve(*args, **options)
    whole = rows.drop(
        columns=["slot", "n", "n_correct", "accuracy", "accuracy_low", "accuracy_high"]
    )
    assert len(whole.drop_duplicates()) == 1
    points = [SimpleNamespace(**row) for row in rows.to_dict("records")]
    return SimpleNamespace(points=points, **whole.iloc[0])


def accuracies(result):
    return [point.accuracy for point in result.points]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**16))
def test_position_curve_agrees_with_a_naive_loop(seed):
    slots, orders = balanced(seed, n_topics=6)

    result = position_curve(slots, orders, intervals=Intervals(n_resamples=10))

    expected = [np.mean([s for topic in slots for s in topic[:, j]]) for j in range(SLOTS)]
    assert accuracies(result) == pytest.approx(expected)
    assert [point.slot for point in result.points] == [1, 2, 3, 4, 5]
    assert all(point.n == 30 for point in result.points)
    assert result.slope == pytest.approx(np.polyfit(range(SLOTS), expected, 1)[0])
    assert sum(p.n_correct for p in result.points) == slots.sum()


def test_position_curve_finds_a_planted_effect():
    faded = position_curve(*balanced(1, fade=0.1), intervals=Intervals(n_resamples=500))
    level = position_curve(*balanced(2), intervals=Intervals(n_resamples=500))

    assert faded.slope == pytest.approx(-0.05, abs=0.015)
    assert faded.slope_high < 0
    assert level.slope_low < 0 < level.slope_high


def test_position_curve_is_flat_when_slots_do_nothing():
    """In balanced orders, facts whose verdict never changes fill each slot equally often."""
    _, orders = balanced(3, n_topics=20)
    facts = np.random.default_rng(3).random((20, 1, SLOTS)) < 0.5
    slots = reorder_to_slots(np.repeat(facts, SLOTS, axis=1), orders)

    result = position_curve(slots, orders, intervals=Intervals(n_resamples=200))

    assert len(set(accuracies(result))) == 1
    assert result.slope == pytest.approx(0.0)
    assert -0.2 < result.slope_low < 0.0 < result.slope_high < 0.2


def test_position_intervals_agree_with_the_cluster_bootstrap():
    slots, orders = balanced(4, n_topics=100)
    counts = np.column_stack((slots[:, :, 2].sum(axis=1), np.full(100, SLOTS)))

    result = position_curve(slots, orders, intervals=Intervals(n_resamples=20_000, rng=1))
    reference = cluster_bootstrap(
        counts,
        CountRatio(numerator=(1, 0), denominator=(0, 1)),
        intervals=Intervals(n_resamples=20_000, rng=2),
    )

    point = result.points[2]
    found = (point.accuracy, point.accuracy_low, point.accuracy_high)
    assert found == pytest.approx(reference, abs=0.006)


def test_position_curve_is_free_of_order():
    rng = np.random.default_rng(5)
    slots, orders = balanced(5, n_topics=20)
    topics, permutations = rng.permutation(20), rng.permutation(SLOTS)

    result = position_curve(slots, orders, intervals=Intervals(n_resamples=10))
    moved = position_curve(
        slots[topics][:, permutations],
        orders[topics][:, permutations],
        intervals=Intervals(n_resamples=10),
    )

    assert accuracies(moved) == accuracies(result)


def test_position_curve_leaves_out_a_sub_question_in_all_its_orders():
    """What is left of a topic is as balanced as before, and each slot loses as many answers."""
    slots, orders = balanced(6, n_topics=10)
    gaps = slots.astype(float)
    gaps[4, 1, 3] = np.nan
    lost = orders[4, 1, 3]

    with pytest.warns(UnscoredWarning, match="1 of 50 sub-questions lack a verdict"):
        result = position_curve(gaps, orders, missing="drop", intervals=Intervals(n_resamples=10))

    for slot, point in enumerate(result.points):
        kept = [
            slots[topic, permutation, slot]
            for topic in range(10)
            for permutation in range(orders.shape[1])
            if (topic, orders[topic, permutation, slot]) != (4, lost)
        ]
        assert (point.n, point.n_correct) == (len(kept), sum(kept))
    assert (result.n_topics, result.n_missing) == (10, 1)


def test_position_curve_agrees_with_leaving_out_topics_that_lack_all():
    slots, orders = balanced(6, n_topics=10)
    gaps = slots.astype(float)
    gaps[4] = np.nan

    with pytest.warns(UnscoredWarning, match="5 of 50 sub-questions"):
        result = position_curve(gaps, orders, missing="drop", intervals=Intervals(n_resamples=10))

    expected = position_curve(
        np.delete(slots, 4, axis=0),
        np.delete(orders, 4, axis=0),
        intervals=Intervals(n_resamples=10),
    )
    assert accuracies(result) == accuracies(expected)
    assert result.n_topics == 9


def test_position_curve_rejects_a_fixed_order():
    """From one order, the difficulty of a sub-question passes for an effect of its slot."""
    slots, _ = balanced(7, n_topics=3)
    orders = np.tile(np.arange(SLOTS), (3, SLOTS, 1))

    with pytest.raises(
        ValueError,
        match=r"not counter-balanced: in topic 0 sub-question 0 stands 5 times in slot 1 and 0 "
        r"times in slot 2 \(3 of 3 topics are uneven\)",
    ):
        position_curve(slots, orders)


def test_position_curve_rejects_random_orders_of_the_paper():
    """Five random orders a topic, as the paper draws them, are not balanced."""
    rng = np.random.default_rng(8)
    orders = rng.permuted(np.tile(np.arange(SLOTS), (600, SLOTS, 1)), axis=2)

    with pytest.raises(ValueError, match="orders are not counter-balanced"):
        position_curve(rng.random(orders.shape) < 0.5, orders)


def test_position_curve_rejects_one_uneven_topic():
    slots, orders = balanced(9, n_topics=4)
    orders[2, 0], orders[2, 1] = orders[2, 1].copy(), orders[2, 1].copy()

    with pytest.raises(ValueError, match=r"in topic 2 .* \(1 of 4 topics are uneven\)"):
        position_curve(slots, orders)


@pytest.mark.parametrize(
    ("slots", "orders", "error", "message"),
    [
        ([[[1, 0], [0, 1]]], [[0, 1]], ValueError, "slots and orders must have the same shape"),
        ([[[1, 0], [0, 1]]], [[[0, 1], [2, 0]]], ValueError, "each row must hold"),
        ([[[1, 0], [0, 1]]], [[[0.0, 1], [1, 0]]], TypeError, "orders must hold integers"),
        ([[[1, 7], [0, 1]]], [[[0, 1], [1, 0]]], ValueError, "which is no verdict"),
        ([[[1, None], [0, 1]]], [[[0, 1], [1, 0]]], ValueError, "has no verdict"),
        ([[1, 0]], [[0, 1]], ValueError, "not counter-balanced"),
    ],
)
def test_position_curve_rejects_bad_input(slots, orders, error, message):
    with pytest.raises(error, match=message):
        position_curve(slots, orders)


def test_position_curve_rejects_topics_without_verdicts():
    with pytest.raises(ValueError, match="no sub-question has its verdicts in all orders"):
        position_curve([[[1, None], [0, None]]], [[[0, 1], [1, 0]]], missing="drop")


def test_position_curve_of_one_topic_has_no_intervals():
    with pytest.warns(UndefinedMetricWarning, match="worth 1 cluster, under 4"):
        result = position_curve([[[1, 0], [0, 1]]], [[[0, 1], [1, 0]]])

    assert accuracies(result) == [0.5, 0.5]
    assert math.isnan(result.points[0].accuracy_low)
    assert math.isnan(result.slope_high)


def test_position_curve_of_one_slot_has_no_slope():
    with pytest.warns(UndefinedMetricWarning, match="there is one slot"):
        result = position_curve([[[1]], [[0]]], [[[0]], [[0]]], intervals=Intervals(n_resamples=50))

    assert accuracies(result) == [0.5]
    assert math.isnan(result.slope)


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**16),
    n_topics=st.integers(4, 25),
    fade=st.sampled_from([0.0, 0.1, 0.2]),
    level=st.sampled_from([0.5, 0.9, 0.95]),
)
def test_trends_leave_out_0_exactly_where_their_tests_reject(seed, n_topics, fade, level):
    result = position_curve(*balanced(seed, n_topics, fade), intervals=Intervals(level=level))

    first, *_, last = accuracies(result)
    assert result.last_difference == pytest.approx(last - first)
    for name in ("slope", "last_difference"):
        value, low, high, p_value = (
            getattr(result, name + end) for end in ("", "_low", "_high", "_p_value")
        )
        assert low <= value + 1e-12
        assert value - 1e-12 <= high
        if abs(p_value - (1 - level)) > 1e-9:
            assert (p_value < 1 - level) == (low > 0 or high < 0)


def test_trends_of_many_topics_are_the_t_of_their_own():
    """With equal answers a slot the slope is the mean of the topics' slopes."""
    stats = pytest.importorskip("scipy.stats")
    slots, orders = balanced(11, n_topics=3000, fade=0.02)
    means = slots.mean(axis=1)
    slopes = np.polyfit(np.arange(SLOTS), means.T, 1)[0]

    result = position_curve(slots, orders)

    for name, values in (("slope", slopes), ("last_difference", means[:, -1] - means[:, 0])):
        bounds = stats.ttest_1samp(values, 0).confidence_interval()
        found = getattr(result, f"{name}_low"), getattr(result, f"{name}_high")
        assert found == pytest.approx((bounds.low, bounds.high), abs=1e-3)


@pytest.mark.parametrize(("n_topics", "power"), [(8, 0.1), (40, 0.95)])
def test_trends_keep_their_level_and_find_a_planted_fall(n_topics, power):
    tries, rejected, found = 200, np.zeros(2), np.zeros(2)
    for seed in range(tries):
        level = position_curve(*balanced(seed, n_topics))
        faded = position_curve(*balanced(seed, n_topics, fade=0.15))
        rejected += level.slope_p_value < 0.05, level.last_difference_p_value < 0.05
        found += faded.slope_high < 0, faded.last_difference_high < 0

    assert (rejected / tries <= 0.08).all()
    assert (found / tries > power).all()


def test_trends_of_three_topics_are_not_inferred():
    with pytest.warns(UndefinedMetricWarning, match="the intervals, worth 3 clusters, under 4"):
        result = position_curve(*balanced(0, n_topics=3))

    assert not math.isnan(result.slope)
    assert math.isnan(result.slope_p_value)
    assert math.isnan(result.last_difference_low)
