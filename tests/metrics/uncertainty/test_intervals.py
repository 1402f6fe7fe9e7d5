import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy import optimize, special, stats

from surface_consistency.clusters import FEW_CLUSTERS
from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import (
    PAIRED_RATES,
    CountRatio,
    cluster_bootstrap,
    forms_by,
    judge_agreement,
    paired_by,
    wilson_interval,
)
from surface_consistency.metrics.paired.effect_sizes import DISCORDANT_ODDS, kappa_of_counts
from surface_consistency.metrics.uncertainty.cluster_bounds import Part, cluster_t, statistic_bounds
from surface_consistency.metrics.uncertainty.intervals import Intervals, quantiles, t_quantile
from tests.metrics.harness import long
from tests.refusals import refusals


# Newcombe, Statistics in Medicine 17, 1998, table I, method 3 (95 %).
@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_interval_agrees_with_newcombe(successes, n, low, high):
    interval = wilson_interval(successes, n)

    assert interval == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
@pytest.mark.parametrize(("successes", "n"), [(0, 7), (7, 7), (3, 7), (3433, 4303)])
def test_wilson_interval_agrees_with_statsmodels(successes, n, confidence):
    proportion = pytest.importorskip("statsmodels.stats.proportion")

    low, high = proportion.proportion_confint(successes, n, alpha=1 - confidence, method="wilson")
    ours = wilson_interval(successes, n, confidence=confidence)

    assert ours == pytest.approx((low, high), abs=1e-12)


@given(n=st.integers(1, 10_000), data=st.data())
def test_wilson_interval_contains_the_proportion_and_is_mirrored(n, data):
    """It is in [0, 1] around the proportion, and failures mirror successes."""
    successes = data.draw(st.integers(0, n) | st.sampled_from([0, n]))

    ours, mirror = wilson_interval(successes, n), wilson_interval(n - successes, n)

    assert 0 <= ours[0] <= successes / n <= ours[1] <= 1
    assert ours[0] < ours[1]
    assert ours[0] == pytest.approx(1 - mirror[1], abs=1e-12)
    assert (ours[0] == 0.0) == (successes == 0)
    assert (ours[1] == 1.0) == (successes == n)


def test_wilson_interval_of_no_trials_is_nan_with_a_warning():
    with pytest.warns(UndefinedMetricWarning, match="0 trials"):
        assert all(map(math.isnan, wilson_interval(0, 0)))


test_options_of_intervals_out_of_range_are_rejected = refusals(
    lambda call, options: call(
        **({"successes": 1, "n": 3} if call is wilson_interval else {}) | options
    ),
    (Intervals, {"confidence": 95}, "confidence must be strictly between 0 and 1.*got 95"),
    (Intervals, {"confidence": 1.0}, "confidence must be strictly"),
    (Intervals, {"confidence": 0}, "confidence must be strictly"),
    (Intervals, {"confidence": math.nan}, "confidence must be strictly"),
    (Intervals, {"method": "bca"}, "must be 'auto' or 'percentile'; got 'bca'"),
    (Intervals, {"resamples": 0}, "resamples must be at least 1"),
    (Intervals, {"resamples": -5}, "resamples must be a count of at least 0"),
    (Intervals, {"resamples": 1e4}, TypeError, "resamples must be an integer"),
    (Intervals, {"seed": -1}, "seed must be a seed of at least 0; got -1"),
    (Intervals, {"seed": 0.5}, TypeError, "seed must be an integer seed, a numpy Generator"),
    (Intervals, {"seed": True}, TypeError, "seed must be an integer seed"),
    (wilson_interval, {"successes": 4}, "must not exceed n; got 4 of 3"),
    (wilson_interval, {"n": -3}, "n must be a count of at least 0"),
    (wilson_interval, {"successes": 0.5}, TypeError, "successes must be an integer count"),
    (wilson_interval, {"confidence": 95}, "confidence must be"),
)


def test_intervals_accept_numpy_numbers():
    intervals = Intervals(resamples=np.int64(50), seed=np.int32(3))

    assert intervals == Intervals(resamples=50, seed=3)
    assert intervals.generator().random() == np.random.default_rng(3).random()


@given(values=st.lists(st.floats(-1e6, 1e6), max_size=50), confidence=st.floats(0, 1))
def test_quantiles_agree_with_numpy(values, confidence):
    """NaN is excluded, and an infinite odds ratio is a large value, not an undefined one."""
    expected = np.quantile(values, [confidence, 1 - confidence]) if values else [math.nan] * 2

    found = quantiles(np.array([math.nan, *values, math.nan]), (confidence, 1 - confidence))

    assert found == pytest.approx(tuple(expected), rel=1e-9, abs=1e-6, nan_ok=True)
    odds = quantiles(np.array([1.0, 2.0, 3.0, *[math.inf] * 7]), (0.1, 0.9))
    assert odds == pytest.approx((1.9, math.inf))


SHARE = CountRatio(numerator=(1, 0), denominator=(0, 1))
SHARE_PART = Part(1.0, (1, 0), (0, 1))


@pytest.mark.parametrize(("successes", "n"), [(0, 12), (12, 12), (0, 200)])
def test_proportion_without_events_agrees_with_statsmodels(successes, n):
    """Wilson's interval with t if the spread between clusters is unknown."""
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    sums = np.column_stack([np.arange(n) < successes, np.ones(n)]).astype(float)
    alpha = 2 * stats.norm.sf(stats.t.ppf(0.975, n - 1))

    low, high = statistic_bounds(SHARE, sums, 0.95)

    expected = proportion.proportion_confint(successes, n, alpha=alpha, method="wilson")
    # The tail of a t and back, in scipy 1.15, leaves 2e-12 of it.
    assert (low, high) == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("n", [5, 10, 20, 50, 200])
def test_proportions_of_single_trials_cover_at_every_rate(n):
    """Summed over all outcomes; the coverage of Wilson's interval drops to 0.84 for rare events."""
    sums = np.stack([np.tri(n + 1, n, -1), np.ones((n + 1, n))], axis=-1)

    low, high = statistic_bounds(SHARE, sums, 0.95)

    rates = np.geomspace(1e-4, 0.5, 400)[:, None]
    chances = stats.binom.pmf(np.arange(n + 1), n, rates)
    covered = (chances * ((low <= rates) & (rates <= high))).sum(axis=1)
    assert covered.min() > 0.92


def plain_t(clusters, weights, ranges):
    """Infer a sum of means cluster after cluster: value, variance by value, degrees, Kish's least.

    `clusters` contains a pair (above, below) for each mean.
    """
    indices, n_clusters = range(len(weights)), len(clusters)
    totals = [[sum(c[i][side] for c in clusters) for side in (0, 1)] for i in indices]
    means = [above / below for above, below in totals]
    steps = [
        [
            w * ((above - a) / (below - b) - above / below)
            for w, (above, below), (a, b) in zip(weights, totals, cluster, strict=True)
        ]
        for cluster in clusters
    ]

    def jackknife(parts, k):
        return (k - 1) / k * sum(part**2 for part in parts)

    def rests_on(parts):
        squares = [part**2 for part in parts]
        return sum(squares) ** 2 / sum(x**2 for x in squares) if any(squares) else 0.0

    alone = [[step[i] for step in steps] for i in indices]
    joined = [sum(step) for step in steps]
    sizes = [[c[i][1] / totals[i][1] for c in clusters] for i in indices]
    kish = [1 / sum(size**2 for size in one) for one in sizes]
    scale = [w**2 / k for w, k in zip(weights, kish, strict=True)]
    largest = max(abs(w) / k for w, k in zip(weights, kish, strict=True))
    unseen = max(
        1 / (1 + rests_on(joined)),
        sum(s / sum(scale) / (1 + rests_on(a)) for s, a in zip(scale, alone, strict=True)),
    )
    contained = [sum(c[i][1] > 0 for c in clusters) for i in indices]
    spreads = [jackknife(a, k) for a, k in zip(alone, contained, strict=True)]
    # The variance of one cluster, averaged over the means with their clusters for weights.
    of_one = [v * k / w**2 for v, k, w in zip(spreads, kish, weights, strict=True)]
    mean_of_one = sum(v * k * w**2 for v, k, w in zip(of_one, kish, weights, strict=True))
    pooled = sum(scale) * mean_of_one / sum(kish)
    variance = jackknife(joined, n_clusters) + unseen * max(pooled - sum(spreads), 0.0)
    value = sum(w * mean for w, mean in zip(weights, means, strict=True))
    ends = [sorted((w * low, w * high)) for w, (low, high) in zip(weights, ranges, strict=True)]
    least, most = (sum(end[side] for end in ends) for side in (0, 1))

    def variance_at(null):
        reach, size, seen = max(-least, most), abs(value), variance
        added = largest * unseen * (abs(null) * reach - null**2)
        if least < 0 and abs(null) < size:
            seen += largest / (1 + rests_on(joined)) ** 2 * (value**2 - null**2)
        if null * value > 0:
            return seen + added
        if size == 0.0:
            return seen + added
        within = largest / (1 + rests_on(joined)) ** 2 * value**2 if least < 0 else 0.0
        return min(seen + added, (variance + within) * (1 + abs(null) / size) ** 2)

    per_cluster = [
        sum(s * one[j] for s, one in zip(scale, sizes, strict=True)) for j in range(n_clusters)
    ]
    df = sum(per_cluster) ** 2 / sum(x**2 for x in per_cluster) - 1
    return value, variance_at, df, min(kish), (least, most)


def two_groups():
    """Clusters with rows of one group, of the other, or of both."""
    counts = st.integers(1, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
    side = st.one_of(st.just((0, 0)), counts)
    clusters = st.lists(st.tuples(side, side), min_size=8, max_size=25)
    return clusters.filter(lambda rows: all(sum(r[i][1] > 0 for r in rows) > 4 for i in (0, 1)))


CONTRAST = (Part(1.0, (1, 0, 0, 0), (0, 1, 0, 0)), Part(-1.0, (0, 0, 1, 0), (0, 0, 0, 1)))


@given(rows=two_groups(), confidence=st.sampled_from([0.9, 0.95, 0.99]))
@settings(deadline=None)
def test_contrast_of_proportions_agrees_with_its_formulas(rows, confidence):
    rows = [row for row in rows if row[0][1] or row[1][1]]
    value, variance_at, df, n_effective, _ = plain_t(rows, (1, -1), [(0, 1)] * 2)

    found = cluster_t(CONTRAST, np.asarray(rows, dtype=float).reshape(-1, 4))

    assert (float(found.value), float(found.df)) == pytest.approx((value, df), abs=1e-9)
    assert float(found.n_effective) == pytest.approx(n_effective)
    if not found.is_inferred:
        assert np.isnan(found.bounds(confidence)).all()
        return
    for null in (0.0, value / 2, -value / 3):
        if abs(value) > 1e-12 and null != value:
            statistic = (value - null) / math.sqrt(variance_at(null))
            expected = 2 * stats.t.sf(abs(statistic), df)
            assert float(found.p_value(null)) == pytest.approx(expected, abs=1e-8)
    quantile = stats.t.ppf((1 + confidence) / 2, df)
    for bound in map(float, found.bounds(confidence)):
        if -1 < bound < 1 and abs(bound - value) > 1e-6:
            distance = (value - bound) ** 2 - quantile**2 * variance_at(bound)
            assert distance == pytest.approx(0.0, abs=1e-8)


@given(rows=st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=4, max_size=25))
@settings(deadline=None)
def test_difference_on_the_same_pairs_agrees_with_its_formulas(rows):
    rows = [row for row in rows if sum(row)]
    assume(len(rows) > 3)
    plain = [((c - b, b + c + same),) for b, c, same in rows]
    value, variance_at, df, n_effective, _ = plain_t(plain, (1,), [(-1, 1)])

    part = Part(1.0, (-1, 1, 0), (1, 1, 1), -1.0, 1.0)
    found = cluster_t((part,), np.asarray(rows, dtype=float))

    assume(n_effective >= 4 + 1e-6)
    expected = 2 * stats.t.sf(abs(value) / math.sqrt(variance_at(0.0)), df) if value else 1.0
    assert float(found.p_value()) == pytest.approx(expected, abs=1e-8)
    low, high = found.bounds(0.95)
    assert low <= value <= high
    assert (expected < 0.05) == (low > 0 or high < 0) or expected == pytest.approx(0.05)


def paired_t(losses, gains, n):
    """Return the inference of a difference of independent pairs."""
    place = np.arange(n)
    sums = [place < losses, (losses <= place) & (place < losses + gains), np.ones(n)]
    part = Part(1.0, (-1.0, 1.0, 0.0), (0.0, 0.0, 1.0), -1.0, 1.0)
    return cluster_t((part,), np.stack(np.broadcast_arrays(*sums), axis=-1).astype(float))


@given(losses=st.integers(0, 40), gains=st.integers(0, 40), null=st.floats(-0.9, 0.9))
@settings(deadline=None)
def test_variance_far_from_the_estimate_uses_constrained_rates(losses, gains, null):
    """Tango 1998: the rates that maximize the likelihood under the null, found numerically."""
    n, value = 80, (gains - losses) / 80
    assume(losses + gains and abs(null) > 0.01 and abs(null) > abs(value) + 0.01)
    found = paired_t(losses, gains, n)

    def minus_log_likelihood(lost):
        cells = np.array([lost, lost + null, 1.0 - 2.0 * lost - null])
        counts = np.array([losses, gains, n - losses - gains])
        return -special.xlogy(counts, cells).sum()

    ends = (max(0.0, -null) + 1e-12, (1.0 - null) / 2.0 - 1e-12)
    lost = optimize.minimize_scalar(
        minus_log_likelihood, bounds=ends, method="bounded", options={"xatol": 1e-10}
    ).x
    rate = (losses + gains) / n - value**2
    assume(rate > 0.0)
    expected = float(found.variance) / rate * (2.0 * lost + null - null**2)
    limit = float(found.variance_at(0.0))
    assert float(found.variance_at(null)) >= 0.999 * min(expected, limit)
    if null * value > 0 or not value:
        assert float(found.variance_at(null)) >= 0.999 * expected


@pytest.mark.parametrize("n", [30, 100, 200, 300])
@pytest.mark.parametrize("ratio", [0.0, 0.25, 1.0], ids=["no gains", "a quarter", "as many"])
def test_one_sided_tests_at_a_margin_have_their_nominal_level(n, ratio):
    """Exact sums over losses and gains; without a constrained variance they reach 0.062."""
    for margin in (0.02, 0.05, 0.1):
        lost = margin / (1.0 - ratio) if ratio < 1.0 else margin + 0.05
        law = (lost, lost - margin, 1.0 - 2.0 * lost + margin)
        counts = np.stack(np.divmod(np.arange(61 * 31), 31), axis=-1)
        counts = counts[(counts.sum(axis=1) <= n) & ((counts[:, 1] == 0) | (law[1] > 0.0))]
        chances = stats.multinomial.pmf(np.column_stack([counts, n - counts.sum(axis=1)]), n, law)
        counts, chances = counts[chances > 1e-6], chances[chances > 1e-6]
        assert chances.sum() > 0.99
        found = paired_t(counts[:, :1], counts[:, 1:], n)
        p_value = found.p_value(-margin) / 2.0
        is_not_worse = np.where(found.value > -margin, p_value, 1.0 - p_value) < 0.025
        assert chances[is_not_worse].sum() <= (0.0275 if n >= 100 else 0.03)


@given(rows=st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=5, max_size=20))
@settings(deadline=None)
def test_values_that_are_not_rejected_are_within_the_interval(rows):
    rows = [row for row in rows if sum(row)]
    assume(len(rows) > 4)
    part = Part(1.0, (-1, 1, 0), (1, 1, 1), -1.0, 1.0)
    found = cluster_t((part,), np.asarray(rows, dtype=float))
    assume(found.is_inferred)
    low, high = found.bounds(0.95)
    nulls = np.linspace(-0.995, 0.995, 200)
    is_accepted = np.array([float(found.p_value(null)) >= 0.05 for null in nulls])
    is_clear = (np.abs(nulls - low) > 1e-6) & (np.abs(nulls - high) > 1e-6)
    assert (is_accepted == (low <= nulls) & (nulls <= high))[is_clear].all()


def test_degrees_of_freedom_and_threshold_follow_kish():
    giant = np.array([[5.0, 10.0]] + [[1.0, 2.0]] * 5)

    assert not cluster_t((SHARE_PART,), giant).is_inferred
    assert float(cluster_t((SHARE_PART,), giant).n_effective) == pytest.approx(20**2 / 120)
    assert float(cluster_t((SHARE_PART,), np.array([[1.0, 2.0]] * 9)).df) == pytest.approx(8.0)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("n_clusters", [10, 20, 50])
def test_contrasts_of_equal_groups_cover_and_keep_their_level(shared, n_clusters):
    """1,000 data sets of three rows per cluster that are nearly copies."""
    rng = np.random.default_rng([n_clusters, shared])
    own = rng.random((2, 1000, n_clusters)) < 0.2
    if shared:
        own[1] = np.where(rng.random(own[1].shape) < 0.8, own[0], own[1])
    events = np.where(own, 3, 0) * 1.0
    zero, full = np.zeros_like(events[0]), np.full_like(events[0], 3.0)
    if shared:
        sums = np.stack([events[0], full, events[1], full], axis=-1)
    else:
        first = np.stack([events[0], full, zero, zero], axis=-1)
        second = np.stack([zero, zero, events[1], full], axis=-1)
        sums = np.concatenate([first, second], axis=1)

    found = cluster_t(CONTRAST, sums)
    low, high = found.bounds(0.95)

    assert ((low > 0.0) | (high < 0.0)).tolist() == (found.p_value() < 0.05).tolist()
    assert (found.p_value() < 0.05).mean() < 0.07


def lost_and_gained(n_clusters, lost, gained, rng):
    """2,000 data sets of clusters of unequal size, whose rows are copies of each other."""
    sizes = rng.geometric(1 / 3, (2000, n_clusters)) * 1.0
    drawn = rng.random(sizes.shape)
    change = np.where(drawn < lost, -sizes, np.where(drawn < lost + gained, sizes, 0.0))
    return cluster_t((Part(1.0, (1, 0), (0, 1), -1.0, 1.0),), np.stack([change, sizes], axis=-1))


@pytest.mark.parametrize("n_clusters", [50, 200])
@pytest.mark.parametrize(("lost", "gained"), [(0.9, 0.05), (0.97, 0.01), (0.05, 0.9)])
def test_intervals_cover_differences_near_their_limits(n_clusters, lost, gained):
    """Without the term for few events, coverage for these data sets of 50 clusters is .88."""
    found = lost_and_gained(n_clusters, lost, gained, np.random.default_rng(n_clusters))

    low, high = found.bounds(0.95)

    assert ((low <= gained - lost) & (gained - lost <= high)).mean() > 0.92
    assert ((low > 0.0) | (high < 0.0)).tolist() == (found.p_value() < 0.05).tolist()


cells = st.lists(st.tuples(*[st.integers(0, 4)] * 4).filter(any), min_size=4, max_size=30)


@given(rows=cells, data=st.data())
@settings(deadline=None)
def test_intervals_contain_estimates_widen_with_the_level_and_ignore_the_order(rows, data):
    sums = np.asarray(rows, dtype=float)
    shuffled = sums[data.draw(st.permutations(range(len(rows))))]
    statistics = {**PAIRED_RATES, "kappa": kappa_of_counts, "odds": DISCORDANT_ODDS}

    for name, statistic in statistics.items():
        with np.errstate(all="ignore"):
            estimate = float(statistic(sums.sum(axis=0)))
        if math.isnan(estimate):
            continue
        narrow, wide = (statistic_bounds(statistic, sums, confidence) for confidence in (0.8, 0.99))
        if np.isnan(wide[0]):
            continue
        least = {"signed_alignment": -1, "accuracy_difference": -1, "kappa": -1}.get(name, 0)
        most = math.inf if name == "odds" else 1
        assert least - 1e-12 <= wide[0] <= narrow[0] <= estimate
        assert estimate <= narrow[1] <= wide[1] <= most + 1e-12
        assert wide[0] < wide[1]
        again = np.asarray(statistic_bounds(statistic, shuffled, 0.8))
        assert again.tolist() == pytest.approx(np.asarray(narrow).tolist(), abs=1e-9)


def test_few_data_without_an_event_have_a_wide_interval():
    frame = pd.DataFrame({"item": range(4), "first_correct": 1, "second_correct": 1})
    with pytest.warns(UndefinedMetricWarning, match="consistency_given_first_incorrect"):
        row = paired_by(frame).iloc[0]
    assert (row["consistency"], row["consistency_high"]) == (1.0, 1.0)
    assert 0.2 < row["consistency_low"] < 0.5
    assert row["accuracy_difference_low"] < 0.0 < row["accuracy_difference_high"]
    assert bool(row["few_clusters"]) is True
    assert FEW_CLUSTERS == 20

    judged = judge_agreement([1] * 20 + [0] * 20, [1] * 20 + [0] * 20)
    assert judged["kappa"] == judged["kappa_high"] == 1.0
    assert 0.75 < judged["kappa_low"] < 0.9

    # Wilson's limit of 5 of 5 with t on four degrees of freedom, as odds.
    odds = cluster_bootstrap([[0, 1, 0, 0]] * 5, DISCORDANT_ODDS)
    assert odds[1:] == pytest.approx((5 / stats.t.ppf(0.975, 4) ** 2, math.inf))

    row = forms_by(long(np.repeat([[0], [1]] * 6, 3, axis=1))).iloc[0]
    assert row["intraclass_correlation"] == 1.0
    assert 0.0 < row["intraclass_correlation_low"] < 0.7
    assert 0.3 < row["within_item_share_high"] < 1.0


@pytest.mark.parametrize("n_clusters", [5, 10, 20])
@pytest.mark.parametrize(
    ("law", "name"),
    [
        ((0.4, 0.15, 0.1, 0.35), "flip_rate"),
        ((0.4, 0.15, 0.1, 0.35), "accuracy_difference"),
        ((0.4, 0.15, 0.1, 0.35), "signed_alignment"),
        ((0.98, 0.008, 0.008, 0.004), "first_accuracy"),
        ((0.49, 0.005, 0.005, 0.5), "kappa"),
    ],
)
def test_default_intervals_cover_with_few_clusters(law, name, n_clusters):
    """1,000 data sets of clusters whose pairs correlate by 0.3; percentiles cover .15 to .90."""
    rng = np.random.default_rng(n_clusters)
    shares = rng.gamma(np.asarray(law) * 7 / 3, size=(1000, n_clusters, 4))
    shares /= shares.sum(axis=-1, keepdims=True)
    sums = rng.multinomial(5, shares).astype(float)
    statistic = {**PAIRED_RATES, "kappa": kappa_of_counts}[name]
    truth = float(statistic(law))

    low, high = statistic_bounds(statistic, sums, 0.95)

    contained = (low <= truth) & (truth <= high) | np.isnan(low)
    assert contained.mean() > (0.92 if n_clusters >= 20 else 0.9)


@settings(deadline=None)
@given(df=st.floats(1.0, 1e6), confidence=st.floats(0.01, 0.9999))
def test_quantiles_of_t_agree_with_scipy(df, confidence):
    expected = stats.t.ppf((1 + confidence) / 2, df)

    assert float(t_quantile(df, confidence)) == pytest.approx(expected, rel=1e-8)
    assert t_quantile(np.array([df]), confidence).tolist() == pytest.approx([expected], rel=1e-8)
    assert math.isnan(float(t_quantile(0.0, confidence)))
