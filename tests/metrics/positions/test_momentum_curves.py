import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as npst
from pandas.testing import assert_frame_equal

from surface_consistency.errors import (
    SurfaceConsistencyWarning,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.metrics import Intervals
from surface_consistency.metrics.positions import _momentum_null, momentum_curves
from surface_consistency.metrics.positions._momentum_null import (
    null_by_moving,
    null_by_pattern,
    slopes,
    streak_counts,
)
from surface_consistency.metrics.positions.momentum_curves import _accepted, _p_value
from surface_consistency.metrics.positions.topic_layout import reorder_to_slots
from tests.refusals import refusals

SLOTS = 5
LATIN = (np.arange(SLOTS)[:, None] + np.arange(SLOTS)) % SLOTS

responses = st.tuples(st.integers(1, 6), st.integers(2, 6)).flatmap(
    lambda shape: npst.arrays(np.int8, shape, elements=st.integers(0, 1))
)


def naive_counts(verdicts):
    """Go back from each slot until the label changes."""
    n_slots = verdicts.shape[1]
    counts = np.zeros((2, n_slots, 2), dtype=int)
    for row in verdicts.tolist():
        for slot in range(1, n_slots):
            for kind, streak in enumerate((1, 0)):
                run = len(
                    list(itertools.takewhile(lambda v, s=streak: v == s, row[slot - 1 :: -1]))
                )
                counts[kind, run] += (1, row[slot])
    return counts


def planted(kind, seed, n_topics=600):
    """Long answers of SLAQ's size over Latin squares, in slot order, with a planted effect."""
    rng = np.random.default_rng(seed)
    labels = rng.permuted(np.tile(np.arange(SLOTS), (n_topics, 1)), axis=1)
    orders = labels[:, LATIN]
    ease = 0.5 * rng.beta(1, 1.5, (n_topics, 1)) + 0.5 * rng.beta(1, 1.5, (n_topics, SLOTS))
    ease = reorder_to_slots(np.repeat(ease[:, None], SLOTS, axis=1), orders)
    slots = np.empty(orders.shape, dtype=np.int8)
    for slot in range(SLOTS):
        chance = ease[..., slot]
        if kind == "momentum" and slot:
            chance = np.clip(chance + 0.15 * (2 * slots[..., slot - 1] - 1), 0, 1)
        if kind == "fading":
            chance = chance * (1 - 0.1 * slot)
        slots[..., slot] = rng.random(chance.shape) < chance
    return slots, orders


def fixed_order(seed, n_permutations=5):
    """Long answers of 40 topics, each queried several times in one order, without momentum."""
    rng = np.random.default_rng(seed)
    slots = rng.random((40, n_permutations, SLOTS)) < rng.beta(0.5, 0.5, (40, 1, SLOTS))
    return slots, np.broadcast_to(np.arange(SLOTS), slots.shape)


def momentum(*args, **options):
    """Points of both curves, and the slopes by streak."""
    points, curves = momentum_curves.momentum(*args, **options)
    assert curves["streak"].tolist() == [1, 0]
    return points, curves.set_index("streak")


def probabilities(points, streak, name="probability"):
    return points.loc[points["streak"] == streak, name].tolist()


@given(responses)
def test_streak_counts_agree_with_a_naive_loop(verdicts):
    groups = np.zeros(len(verdicts), dtype=np.int64)

    counts = streak_counts(verdicts, groups, 1)[0]

    assert (counts == naive_counts(verdicts)).all()
    alone = streak_counts(verdicts, np.arange(len(verdicts)), len(verdicts))
    assert (alone.sum(axis=0) == counts).all()
    assert counts[:, :, 0].sum() == 2 * verdicts[:, 1:].size
    # Negated labels exchange runs of 1s and runs of 0s.
    turned = streak_counts((1 - verdicts).astype(np.int8), groups, 1)[0]
    assert (turned[::-1, :, 0] == counts[:, :, 0]).all()
    assert (turned[::-1, :, 1] == counts[:, :, 0] - counts[:, :, 1]).all()


@given(npst.arrays(np.int64, (6, 2), elements=st.integers(0, 50)))
def test_slopes_agree_with_least_squares(pairs):
    slots, right = np.maximum(pairs[:, 0], pairs[:, 1]), np.minimum(pairs[:, 0], pairs[:, 1])
    x = np.repeat(np.arange(6), slots)
    y = np.concatenate([np.arange(n) < k for n, k in zip(slots, right, strict=True)])

    slope = float(slopes(np.column_stack((slots, right)).astype(float)))

    if np.unique(x).size < 2:
        assert math.isnan(slope)
    else:
        assert slope == pytest.approx(np.polyfit(x, y.astype(float), 1)[0], abs=1e-9)
    # arXiv 2510.11218, section 4.2: from 30 % to 57 % over four correct facts is about 7 % each.
    counts = np.array([[1000, 300 + 67.5 * length] for length in range(5)])
    assert slopes(counts) == pytest.approx(0.0675)


@pytest.mark.parametrize("keep_slots", [False, True])
def test_pattern_null_preserves_the_number_of_correct_slots(keep_slots):
    """All draws have the same numbers of slots and correct slots; only positions are random."""
    slots, _ = planted("fading", 1, n_topics=80)
    verdicts = slots.reshape(-1, SLOTS)

    counts = null_by_pattern(verdicts, 4000, np.random.default_rng(0), keep_slots=keep_slots)

    assert (counts[:, :, :, 0].sum(axis=2) == verdicts[:, 1:].size).all()
    # Correct slots from the second on are all correct slots minus those in the first slot.
    in_first = verdicts.sum() - counts[:, 0, :, 1].sum(axis=1)
    expected = verdicts[:, 0].sum() if keep_slots else verdicts.sum() / SLOTS
    assert in_first.mean() == pytest.approx(expected, rel=0.01)


def test_pattern_null_agrees_with_all_rearrangements():
    """Without slot effects, each rearrangement of a response is as likely as any other."""
    verdicts = np.array([[1, 1, 0, 0], [1, 0, 0, 0]], dtype=np.int8)
    arrangements = [sorted(set(itertools.permutations(row))) for row in verdicts.tolist()]
    exact = [naive_counts(np.array(pair)) for pair in itertools.product(*arrangements)]

    drawn = null_by_pattern(verdicts, 20_000, np.random.default_rng(0), keep_slots=False)

    assert drawn.mean(axis=0) == pytest.approx(np.mean(exact, axis=0), abs=0.03)
    assert drawn.var(axis=0) == pytest.approx(np.var(exact, axis=0), abs=0.05)


def test_pattern_null_agrees_with_the_model_of_slots():
    """Given two correct slots of three with weights 1, 2 and 3, the pairs come as 2 : 3 : 6."""
    patterns = [[1, 1, 0]] * 200 + [[1, 0, 1]] * 300 + [[0, 1, 1]] * 600
    verdicts = np.array(patterns, dtype=np.int8)

    drawn = null_by_pattern(verdicts, 2000, np.random.default_rng(1), keep_slots=True)

    observed = streak_counts(verdicts, np.zeros(1100, dtype=np.int64), 1)[0]
    assert drawn.mean(axis=0) == pytest.approx(observed, abs=2.0)


def test_pattern_null_accepts_slots_that_are_always_or_never_correct():
    """A slot without variance has no finite weight, but its accuracy is preserved."""
    rng = np.random.default_rng(2)
    verdicts = (rng.random((500, SLOTS)) < 0.4).astype(np.int8)
    verdicts[:, 0], verdicts[:, 3] = 1, 0

    counts = null_by_pattern(verdicts, 500, np.random.default_rng(3), keep_slots=True)

    in_first = verdicts.sum() - counts[:, 0, :, 1].sum(axis=1)
    assert in_first.min() >= 497
    # Slot 4 is never correct, so that no run of 1s before slot 5 is longer than 0.
    assert counts[:, 0, 4, 0].max() == 0


def test_moving_null_agrees_with_all_relabellings():
    """The sub-questions of a topic are permuted in all its responses together."""
    by_question = np.array([[1, 0, 1], [1, 0, 0], [1, 1, 0]], dtype=np.int8)
    orders = np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    slots = np.take_along_axis(by_question, orders, axis=1)
    exact = [
        naive_counts(np.take_along_axis(by_question[:, list(label)], orders, axis=1))
        for label in itertools.permutations(range(3))
    ]

    drawn = null_by_moving(
        slots, np.zeros(3, dtype=np.int64), orders, 20_000, np.random.default_rng(0)
    )

    assert drawn.mean(axis=0) == pytest.approx(np.mean(exact, axis=0), abs=0.03)
    assert {tuple(counts.ravel()) for counts in drawn.astype(int)} == {
        tuple(counts.ravel()) for counts in exact
    }


@pytest.mark.parametrize("chunk", [1, 2**21])
def test_moving_null_is_the_same_listed_and_drawn(monkeypatch, chunk):
    """Listing all orders and drawing them one by one give the same distribution."""
    slots, orders = planted("none", 2, n_topics=30)
    topics, rows = np.repeat(np.arange(30), SLOTS), (-1, SLOTS)
    arguments = (slots.reshape(rows), topics, orders.reshape(rows), 1500)
    monkeypatch.setattr(_momentum_null, "_CHUNK_CELLS", chunk)

    listed = slopes(null_by_moving(*arguments, np.random.default_rng(0)))
    monkeypatch.setattr(_momentum_null, "_MAX_LISTED_SLOTS", 1)
    monkeypatch.setattr(_momentum_null, "_CHUNK_CELLS", 2**16)
    drawn = slopes(null_by_moving(*arguments, np.random.default_rng(1)))

    assert listed.mean(axis=0) == pytest.approx(drawn.mean(axis=0), abs=0.004)
    assert listed.std(axis=0) == pytest.approx(drawn.std(axis=0), rel=0.12)


def test_curves_of_difficulty_are_within_the_band_and_planted_momentum_is_not():
    """Correct slots follow correct slots because topics differ, and the band includes this."""
    slots, orders = planted("none", 3)
    points, curves = momentum(slots, orders=orders)

    assert probabilities(points, 1) == sorted(probabilities(points, 1))
    assert curves["slope"][1] > 0.04
    assert curves["slope"].between(curves["null_slope_low"], curves["null_slope_high"]).all()
    assert (curves["p_value"] > 0.05).all()
    assert curves["null_slope"].tolist() == pytest.approx(curves["slope"].tolist(), abs=0.02)

    slots, orders = planted("momentum", 4)
    for null in ("topic", "topic-and-slot"):
        _, curves = momentum(slots, orders=orders, null=null)
        right, wrong = curves.loc[1], curves.loc[0]
        assert right["slope"] > right["null_slope_high"]
        assert wrong["slope"] < wrong["null_slope_low"]
        assert curves["p_value"].max() < 0.01
        assert right["slope_low"] > right["null_slope"]
        assert right["excess_slope_low"] > 0 > wrong["excess_slope_high"]
        assert right["excess_slope"] == pytest.approx(right["slope"] - right["null_slope"])

    # Long runs of incorrect slots are late, at slots with low accuracy.
    slots, orders = planted("fading", 5)
    plain, kept = (momentum(slots, orders=orders, null=null)[1] for null in ("topic", None))
    assert [*plain["null"], *kept["null"]] == ["topic"] * 2 + ["topic-and-slot"] * 2
    assert plain["band_p_value"].max() <= 0.05 < kept["band_p_value"].min()
    assert plain["p_value"][0] < 0.01
    assert kept["p_value"].min() > 0.05


@pytest.mark.parametrize("n_null", [19, 39, 40, 99, 200])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95])
def test_slopes_are_outside_the_null_interval_exactly_if_p_is_small(n_null, confidence):
    """Every rank that a slope can have among the draws is tested."""
    draws = np.random.default_rng(n_null).permutation(np.arange(n_null) / n_null - 0.5)
    low, high = _accepted(np.r_[draws, np.nan], confidence)

    for slope in np.arange(-0.5, n_null) / n_null - 0.5:
        p_value = _p_value(float(slope), draws)
        assert (p_value < 1 - confidence - 1e-9) == (not low <= slope <= high)
    assert (low, high) == (-1, 1) or low in draws


@pytest.mark.parametrize(
    ("null", "design"),
    [*itertools.product(("topic", "topic-and-slot"), ("single", "latin")), ("topic", "fixed")],
)
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_momentum_p_values_are_nominal_without_momentum(null, design):
    """Without momentum, p is below 0.1 in about one of ten data sets."""
    p_values = []
    for seed in range(150):
        slots, orders = planted("none", 100 + seed, n_topics=40)
        if design == "single":
            slots, orders = slots[:, 0], None
        elif design == "fixed":
            slots, orders = fixed_order(seed)
        options = {"intervals": Intervals(resamples=1, seed=seed), "n_null": 99}
        _, curves = momentum(slots, orders=orders, null=null, **options)
        p_values.append(curves["p_value"][1])

    # A binomial count of 150 trials at 0.1 lies within 5 and 27 with probability 0.999.
    assert 5 <= sum(p < 0.1 for p in p_values) <= 27


@pytest.mark.parametrize("kind", ["none", "fading"])
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_null_data_stay_within_the_simultaneous_band(kind):
    """With a pointwise 95 % band some point would be outside in a third of such data."""
    outside = []
    for seed in range(100):
        slots, orders = planted(kind, seed, n_topics=40)
        points, curves = momentum(
            slots, orders=orders, intervals=Intervals(resamples=1, seed=seed), n_null=1_000
        )
        below = points["null_probability_low"] - points["probability"]
        above = points["probability"] - points["null_probability_high"]
        outside.append(bool(((below > 1e-12) | (above > 1e-12)).any()))
        assert (outside[-1] == (curves["band_p_value"] < 0.05)).all()

    # A binomial count of 100 trials at 0.05 exceeds 13 with probability 0.0005.
    assert sum(outside) <= 13


def naive_depths(curves):
    """Sorted depths of each curve, by counting the values that are at least as extreme."""
    depths = []
    for curve in curves:
        shares = []
        for point, value in enumerate(curve):
            column = [other for other in curves[:, point] if other == other]
            below = sum(other <= value + 1e-12 for other in column)
            above = sum(other >= value - 1e-12 for other in column)
            shares.append(min(below, above) / len(column) if value == value else 1.0)
        depths.append(sorted(shares))
    return depths


def test_envelope_agrees_with_extreme_rank_lengths_of_a_naive_loop():
    """Myllymaki et al. 2017, section 4.2: rank vectors in lexicographic order."""
    rng = np.random.default_rng(3)
    curves = np.round(rng.normal(size=(60, 4)), 1)
    curves[:10, 3] = np.nan
    depths = naive_depths(curves)
    p_values = [sum(other <= own for other in depths) / 60 for own in depths]

    for place in range(60):
        others = np.delete(curves, place, axis=0)
        (low, high), p_value = momentum_curves._envelope(curves[place], others, 0.9)

        assert p_value == pytest.approx(p_values[place])
        known = curves[place] == curves[place]
        is_outside = ((curves[place] < low) | (curves[place] > high))[known].any()
        assert is_outside == (p_value < 0.1)


def test_ties_of_the_most_extreme_point_are_broken_by_the_next_ones():
    """One curve of 100 is the most extreme at both points, ten others at one of them."""
    curves = np.tile(np.linspace(-1, 1, 100)[:, None], (1, 10))
    for column in range(1, 10):
        curves[:, column] = np.roll(curves[:, 0], 7 * column)
    observed = np.full(10, 2.0)

    _, p_value = momentum_curves._envelope(observed, curves, 0.95)

    assert p_value == 1 / 101
    # A point that only the observed curve has is not extreme.
    assert math.isnan(momentum_curves._envelope(np.array([1.0]), np.full((9, 1), np.nan), 0.9)[1])


def test_strong_momentum_attains_the_smallest_reported_p_values():
    slots, orders = planted("momentum", 4)
    _, curves = momentum(slots, orders=orders)

    smallest = curves[["n_null", "p_value_smallest", "band_p_value_smallest"]]
    assert smallest.values.tolist() == [[2499, 2 / 2500, 1 / 2500]] * 2
    assert (curves["band_p_value"] == 1 / 2500).all()
    assert (curves["p_value"] == 2 / 2500).all()


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_default_null_is_topic_if_responses_repeat_their_order_or_are_long():
    """With more than twelve slots there are too many patterns to list."""
    slots, orders = fixed_order(1, n_permutations=20)
    long = np.random.default_rng(13).random((60, 14)) < 0.5

    (_, repeated), (_, shuffled) = momentum(slots, orders=orders, n_null=20), momentum(long)
    with pytest.warns(SurfaceConsistencyWarning, match="760 of 800 responses repeat") as caught:
        momentum_curves.momentum(slots, orders=orders, null="topic-and-slot", n_null=20)

    assert [*repeated["null"], *shuffled["null"]] == ["topic"] * 4
    assert shuffled["p_value"][1] > 0.01
    assert shuffled["null_slope"][1] == pytest.approx(shuffled["slope"][1], abs=0.05)
    assert caught[0].filename == __file__


def test_momentum_intervals_are_clustered_by_topic():
    """Repeating every response five times adds responses and no evidence."""
    slots, orders = (array[:, :1] for array in planted("none", 6, n_topics=100))
    options = {"intervals": Intervals(resamples=4000), "n_null": 10}

    once, _ = momentum(slots, **options)
    repeated, _ = momentum(slots.repeat(5, axis=1), orders=orders.repeat(5, axis=1), **options)

    assert repeated["n"].tolist() == (5 * once["n"]).tolist()
    for name, slack in (
        ("probability", 1e-9),
        ("probability_low", 0.02),
        ("probability_high", 0.02),
    ):
        assert repeated[name].tolist()[:3] == pytest.approx(once[name].tolist()[:3], abs=slack)


def test_momentum_is_mirrored_by_negation_and_independent_of_order():
    """Exchanging correct and incorrect exchanges the curves and changes p into 1 - p."""
    rng = np.random.default_rng(8)
    slots, orders = planted("momentum", 7, n_topics=50)
    places = np.ix_(rng.permutation(50), rng.permutation(SLOTS))
    options = {"intervals": Intervals(resamples=100, seed=4), "n_null": 50}

    points, curves = momentum(slots, orders=orders, **options)

    turned, their_curves = momentum(1 - slots, orders=orders, **options)
    mirrored = [1 - p for p in probabilities(points, 1)]
    assert probabilities(turned, 0) == pytest.approx(mirrored)
    assert their_curves["slope"][1] == pytest.approx(-curves["slope"][0])
    moved, _ = momentum(slots[places], orders=orders[places], **options)
    assert probabilities(moved, 1) == probabilities(points, 1)
    flat, nested = (momentum(array, **options) for array in (slots[:, 0], slots[:, :1]))
    for one, other in (
        (flat, nested),
        (momentum(slots, orders=orders, **options), (points, curves)),
    ):
        assert_frame_equal(one[0], other[0])
        assert_frame_equal(one[1], other[1])
    assert flat[1][["n_topics", "n_responses"]].values.tolist() == [[50, 50]] * 2


def test_momentum_excludes_incomplete_responses():
    """A missing label interrupts a run, so the response is excluded, but not its topic."""
    slots, orders = planted("none", 11, n_topics=20)
    gaps = slots.astype(float)
    gaps[3, 2, 4] = np.nan
    gaps[7, :, 0] = np.nan

    with pytest.warns(UnscoredWarning, match="6 of 100 responses lack a label"):
        points, curves = momentum(
            gaps, orders=orders, missing="drop", intervals=Intervals(resamples=20), n_null=20
        )

    kept = np.delete(slots.reshape(-1, SLOTS), [3 * SLOTS + 2, *range(35, 40)], axis=0)
    assert (points[["n", "n_correct"]] == naive_counts(kept).reshape(-1, 2)).all(axis=None)
    counts = curves[["n_topics", "n_responses", "n_missing"]]
    assert counts.values.tolist() == [[19, 94, 6]] * 2


def test_momentum_of_constant_labels_is_undefined_for_runs_that_do_not_occur():
    with pytest.warns(UndefinedMetricWarning, match="runs of 0s of length 1, 2") as caught:
        points, curves = momentum([[1, 1, 1]] * 5, intervals=Intervals(resamples=10), n_null=10)

    assert len(caught) == 1
    assert "the slope after runs of 0s" in str(caught[0].message)
    assert curves.loc[1, ["slope", "p_value"]].tolist() == [0.0, 1.0]
    assert curves.loc[0, ["slope", "p_value"]].isna().all()
    for name in ("probability", "probability_low", "null_probability"):
        assert math.isnan(probabilities(points, 0, name)[1])
    for null, verdict in itertools.product(("topic", "topic-and-slot"), (0, 1)):
        with pytest.warns(UndefinedMetricWarning, match="runs of"):
            points, _ = momentum([[verdict] * 4] * 3, null=null, n_null=10)
        assert probabilities(points, verdict, "null_probability")[1:] == [float(verdict)] * 3
    slots, orders = planted("none", 12, n_topics=1)
    with pytest.warns(UndefinedMetricWarning, match=r"all intervals \(one topic\)"):
        _, curves = momentum(slots, orders=orders, n_null=10)
    assert curves.loc[1, ["slope_low", "null_slope_low"]].isna().tolist() == [True, False]


@pytest.mark.parametrize("options", [{}, {"orders": [[0, 1]] * 2, "null": "topic"}])
def test_momentum_without_a_complete_response_is_nan(options):
    missing = pytest.warns(UnscoredWarning, match="2 of 2 responses lack a label")
    with missing, pytest.warns(UndefinedMetricWarning, match="all values .no response has a corr"):
        points, slopes = momentum([[1, None]] * 2, missing="drop", **options)

    assert points[["probability", "probability_low", "null_probability"]].isna().all(axis=None)
    assert slopes[["slope", "slope_low", "p_value", "band_p_value"]].isna().all(axis=None)


test_momentum_rejects_bad_input = refusals(
    lambda slots, options: momentum(slots, **options),
    ([[1], [0]], {}, "at least two slots per response"),
    ([[1, 0], [1]], {}, "slots must have the same number of slots"),
    ([1, 0, 1], {}, r"slots must have shape .*; got \(3,\)"),
    ([], {}, r"slots must have shape .*; got \(0,\)"),
    ([[1, 3]], {}, r"slots\[0\]\[1\] is 3, which is not a correctness label"),
    ([[1, None]], {}, r"slots\[0, 1\] has no label"),
    ([[1, 0]], {"null": "slot"}, "null must be 'topic' or 'topic-and-slot'"),
    ([[1, 0]], {"n_null": 0}, "n_null must be at least 1"),
    ([[1, 0]], {"n_null": 1.5}, TypeError, "n_null must be an integer"),
    ([[1, 0]], {"orders": [[0, 1, 2]]}, "slots and orders must have the same"),
    ([[1, 0]], {"orders": [[1, 2]]}, "each row must contain the sub-questions"),
    ([[1] * 13], {"null": "topic-and-slot"}, "at most 12 slots, got 13"),
    ([[[1, 0]] * 5], {"null": "topic"}, "orders must give .* has 5 permutations"),
    ([[[1, 0]] * 5], {}, "orders must give .* a topic has 5 permutations"),
)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**16))
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_momentum_is_bounded(seed):
    rng = np.random.default_rng(seed)
    slots = rng.random((rng.integers(2, 8), rng.integers(1, 4), rng.integers(2, 6))) < rng.random()
    orders = rng.permuted(np.broadcast_to(np.arange(slots.shape[2]), slots.shape), axis=2)

    points, curves = momentum(slots, orders=orders, intervals=Intervals(resamples=20), n_null=20)

    p_values, low, high = curves["p_value"], points["probability_low"], points["probability_high"]
    assert (p_values.isna() | (p_values > 0) & (p_values <= 1)).all()
    assert points["n_correct"].between(0, points["n"]).all()
    assert (points["probability"].isna() == (points["n"] == 0)).all()
    known = low.notna() & (points["n"] > 0)
    assert ((low >= 0) & (low <= high) & (high <= 1))[known].all()
