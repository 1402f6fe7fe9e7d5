import functools
import itertools
import math
import time
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy import stats

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import Intervals
from surface_consistency.metrics.paired import group_tests
from surface_consistency.metrics.paired.group_tests import group_difference

samples = st.tuples(
    st.lists(st.integers(-20, 20), min_size=2, max_size=5),
    st.lists(st.integers(-20, 20), min_size=2, max_size=5),
)
permuted = functools.partial(group_difference, test="permutation")

ALTERNATIVES = ("two-sided", "greater", "less")


def joined(first, second):
    values = [*first, *second]
    return values, [1] * len(first) + [0] * len(second)


def slaq_like(seed, gain):
    """Similarities of 60 pairs in each of six models, half of them aligned."""
    rng = np.random.default_rng(seed)
    model = np.repeat(np.arange(6), 60)
    aligned = np.tile(np.repeat([True, False], 30), 6)
    values = 0.26 + 0.03 * model + gain * aligned + rng.normal(0, 0.05, 360)
    return values, aligned, model


# arXiv 2510.11218, section 5.2: means of aligned and misaligned facts, and the printed increase.
@pytest.mark.parametrize(
    ("aligned", "misaligned", "increase"), [(0.309, 0.261, 18.4), (0.552, 0.493, 12.0)]
)
def test_relative_difference_agrees_with_the_paper(aligned, misaligned, increase):
    result = permuted([aligned] * 3 + [misaligned] * 3, [1] * 3 + [0] * 3)

    assert 100 * result.relative_difference == pytest.approx(increase, abs=0.05)


@settings(deadline=None, max_examples=40)
@given(samples, st.sampled_from(ALTERNATIVES))
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_exact_p_agrees_with_scipy(data, alternative):
    values, members = joined(*data)

    result = permuted(values, members, alternative=alternative, intervals=Intervals(n_resamples=5))
    reference = stats.permutation_test(
        data,
        lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis),
        vectorized=True,
        n_resamples=np.inf,
        alternative=alternative,
        axis=0,
    )

    assert result.is_exact
    assert result.difference == pytest.approx(float(reference.statistic))
    assert result.p_value == pytest.approx(float(reference.pvalue))


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_drawn_p_agrees_with_the_exact_one(alternative):
    rng = np.random.default_rng(2)
    values, members = np.r_[rng.normal(0.7, 1, 8), rng.normal(0, 1, 9)], [1] * 8 + [0] * 9

    exact = permuted(values, members, alternative=alternative, n_permutations=24_310)
    drawn = permuted(values, members, alternative=alternative, n_permutations=20_000)

    assert (exact.is_exact, drawn.is_exact) == (True, False)
    assert drawn.p_value == pytest.approx(exact.p_value, abs=0.015)


def test_stratified_exact_p_agrees_with_a_naive_loop():
    """Membership moves within strata only."""
    values = [3.0, 1.0, 2.0, 8.0, 9.0, 7.0]
    members, strata = [1, 0, 0, 0, 1, 1], ["a", "a", "a", "b", "b", "b"]
    differences = []
    for one in range(3):
        for left_out in range(3, 6):
            inside = [one, *(i for i in range(3, 6) if i != left_out)]
            outside = [i for i in range(6) if i not in inside]
            differences.append(
                np.mean([values[i] for i in inside]) - np.mean([values[i] for i in outside])
            )

    result = permuted(values, members, strata=strata, alternative="greater")

    assert result.is_exact
    expected = np.mean(np.array(differences) >= result.difference - 1e-9)
    assert result.p_value == pytest.approx(expected)


def test_strata_keep_the_differences_between_models():
    """Between models of unequal level and share, a difference is no effect of alignment."""
    rng = np.random.default_rng(3)
    model = np.repeat([0, 1], 100)
    aligned = np.r_[np.arange(100) < 80, np.arange(100) < 20]
    values = 0.3 * (1 - model) + rng.normal(0, 0.05, 200)

    pooled = permuted(values, aligned, intervals=Intervals(n_resamples=200))
    stratified = permuted(values, aligned, strata=model, intervals=Intervals(n_resamples=200))

    assert pooled.p_value < 0.001
    assert stratified.p_value > 0.01


def test_group_difference_finds_a_planted_one():
    values, aligned, model = slaq_like(4, 0.048)

    result = permuted(values, aligned, strata=model, alternative="greater")

    bounds = group_difference(values, aligned).difference_interval
    assert result.p_value < 0.001
    assert 0 < bounds.low < result.difference < bounds.high
    assert (result.n_group, result.n_other) == (180, 180)


def test_p_values_are_fair_without_a_difference():
    """Without a difference, p falls to 0.1 or below about once in ten times."""
    p_values = []
    for seed in range(200):
        values, aligned, model = slaq_like(100 + seed, 0.0)
        result = permuted(
            values,
            aligned,
            strata=model,
            n_permutations=99,
            intervals=Intervals(n_resamples=1, rng=seed),
        )
        p_values.append(result.p_value)

    # A binomial count of 200 trials at 0.1 lies within 8 and 35 with probability 0.999.
    assert 8 <= sum(p <= 0.1 for p in p_values) <= 35


@settings(deadline=None, max_examples=40)
@given(samples)
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_group_difference_is_turned_by_swapping(data):
    there = permuted(*joined(*data), intervals=Intervals(n_resamples=5))
    back = permuted(*joined(*data[::-1]), intervals=Intervals(n_resamples=5))

    assert back.difference == pytest.approx(-there.difference)
    assert back.p_value == pytest.approx(there.p_value)
    assert 0 < there.p_value <= 1


@settings(deadline=None, max_examples=30)
@given(samples, st.randoms(use_true_random=False))
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_group_difference_is_free_of_order(data, random):
    rows = list(zip(*joined(*data), strict=True))
    random.shuffle(rows)

    shuffled = permuted(*zip(*rows, strict=True), intervals=Intervals(n_resamples=5))
    there = permuted(*joined(*data), intervals=Intervals(n_resamples=5))

    assert shuffled.difference == pytest.approx(there.difference)
    assert shuffled.p_value == pytest.approx(there.p_value)


def test_chunks_do_not_change_the_draws(monkeypatch):
    values, aligned, _ = slaq_like(5, 0.01)

    whole = permuted(values, aligned, n_permutations=500, intervals=Intervals(n_resamples=5))
    monkeypatch.setattr(group_tests, "_CHUNK_ROWS", 1000)
    pieces = permuted(values, aligned, n_permutations=500, intervals=Intervals(n_resamples=5))

    assert pieces.p_value == whole.p_value


def test_clusters_widen_the_interval():
    """Facts of one topic that resemble each other are less evidence than they look."""
    rng = np.random.default_rng(6)
    topic = np.repeat(np.arange(40), 9)
    aligned = rng.random(40)[topic] < 0.5
    values = rng.normal(0, 1, 40)[topic] + rng.normal(0, 0.2, 360)

    rows = group_difference(values, aligned)
    topics = group_difference(values, aligned, clusters=topic)

    assert topics.difference_interval.high - topics.difference_interval.low > 1.5 * (
        rows.difference_interval.high - rows.difference_interval.low
    )


def test_equal_values_differ_by_nothing():
    result = permuted([0.5] * 8, [1, 0] * 4)
    assert (result.difference, result.p_value) == (0.0, 1.0)


@pytest.mark.parametrize("other", [0.5, 0.7])
def test_values_that_differ_by_group_alone_tell_nothing_of_their_spread(other):
    with pytest.warns(UndefinedMetricWarning, match="interval and p, alike in all clusters"):
        result = group_difference([0.5, other] * 8, [1, 0] * 8)

    assert result.difference == pytest.approx(0.5 - other)
    assert math.isnan(result.p_value)
    assert math.isnan(result.difference_interval.low)


def test_undefined_parts_are_nan():
    with pytest.warns(UndefinedMetricWarning, match="since the other mean is 0"):
        result = permuted([1.0, 2.0, 0.0, 0.0], [1, 1, 0, 0])
    assert math.isnan(result.relative_difference)
    with pytest.warns(UndefinedMetricWarning, match="interval and p, worth 1 cluster, under 4"):
        result = group_difference([1.0, 2.0, 3.0], [1, 0, 0], clusters=["t"] * 3)
    assert math.isnan(result.difference_interval.low)
    assert math.isnan(result.p_value)


def test_t_of_single_rows_agrees_with_scipy():
    """Equally many independent rows: Student's test, with its degrees less one."""
    rng = np.random.default_rng(2)
    first, second = rng.normal(0.4, 1.0, (2, 30))

    result = group_difference(*joined(first, second))

    expected = stats.ttest_ind(first, second)
    # Left out one at a time, rows have the variance of either group times 30 / 29, and a half
    # of the pooled degrees more.
    scale = math.sqrt(59 / 60 * 30 / 29)
    assert result.p_value == pytest.approx(2 * stats.t.sf(abs(expected.statistic) / scale, 59))
    low, high = result.difference_interval.low, result.difference_interval.high
    assert (result.p_value < 0.05) == (low > 0 or high < 0)


@settings(deadline=None)
@given(st.data())
def test_p_is_below_a_twentieth_exactly_where_the_interval_leaves_out_0(data):
    n = data.draw(st.integers(8, 40))
    values = data.draw(st.lists(st.integers(-5, 5), min_size=n, max_size=n))
    members = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    topics = data.draw(st.lists(st.integers(0, 12), min_size=n, max_size=n))
    assume(0 < sum(members) < n)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        result = group_difference(values, members, clusters=topics)

    bounds = result.difference_interval
    assert math.isnan(result.p_value) == math.isnan(bounds.low)
    assert (result.p_value < 0.05) == (bounds.low > 0 or bounds.high < 0)


def test_a_hundred_thousand_pairs_are_compared_at_once():
    rng = np.random.default_rng(0)
    start = time.perf_counter()

    result = group_difference(
        rng.random(100_000), rng.random(100_000) < 0.3, clusters=np.arange(100_000) // 5
    )

    assert time.perf_counter() - start < 5.0
    assert result.difference_interval.low < result.difference_interval.high


@pytest.mark.parametrize(
    ("values", "members", "options", "error", "message"),
    [
        ([1, 2], [1], {}, ValueError, "equal lengths; got 2 and 1"),
        ([1, 2], [1, 1], {}, ValueError, "must hold both kinds of rows; got 2 of 2"),
        ([], [], {}, ValueError, "must hold both kinds of rows; got 0 of 0"),
        ([1, np.nan], [1, 0], {}, ValueError, r"values\[1\] is missing: leave the row out"),
        ([1, np.inf], [1, 0], {}, ValueError, r"values\[1\] is inf"),
        ([1, "a"], [1, 0], {}, TypeError, r"values\[1\] is 'a', which is no number"),
        ([1, 2], [1, None], {}, ValueError, r"in_group\[1\] is missing"),
        ([1, 2], [1, 3], {}, ValueError, r"in_group\[1\] is 3"),
        ([1, 2], [1, 0], {"strata": ["a", "b"]}, ValueError, "none holds both kinds of rows"),
        ([1, 2], [1, 0], {"strata": ["a"]}, ValueError, "strata must hold one label a row: got 1"),
        ([1, 2], [1, 0], {"clusters": ["a", None]}, ValueError, r"clusters\[1\] is None"),
        ([1, 2], [1, 0], {"test": "z"}, ValueError, "test must be 't' or 'permutation'"),
        ([1, 2], [1, 0], {"alternative": "both"}, ValueError, "alternative must be"),
        ([1, 2], [1, 0], {"n_permutations": 0}, ValueError, "n_permutations must be at least 1"),
        ([1, 2], [1, 0], {"n_permutations": 1.0}, TypeError, "n_permutations must be an integer"),
    ],
)
def test_group_difference_rejects_bad_input(values, members, options, error, message):
    with pytest.raises(error, match=message):
        permuted(values, members, **options)


def test_t_under_strata_is_the_regression_with_an_intercept_a_stratum():
    """Models that differ in level and in share of the group show no difference."""
    rng = np.random.default_rng(3)
    model = np.repeat([0, 1, 2], 400)
    topic = np.tile(np.repeat(np.arange(40), 10), 3)
    aligned = rng.random(1200) < np.array([0.2, 0.5, 0.8])[model]
    values = 0.3 + 0.2 * model + rng.normal(0, 0.05, 1200)
    intercepts = model[:, None] == np.arange(3)
    slope = np.linalg.lstsq(np.column_stack([aligned, intercepts]), values, rcond=None)[0][0]

    whole = group_difference(values, aligned, clusters=topic)
    within = group_difference(values, aligned, strata=model, clusters=topic)

    assert whole.p_value < 1e-6
    assert within.p_value > 0.05
    assert within.difference_interval.low < 0.0 < within.difference_interval.high
    assert within.difference == pytest.approx(slope, abs=1e-12)
    assert (within.group_mean, within.other_mean) == (whole.group_mean, whole.other_mean)
    shown = group_difference(values + 0.05 * aligned, aligned, strata=model, clusters=topic)
    assert shown.difference == pytest.approx(slope + 0.05, abs=1e-12)
    assert shown.difference_interval.low > 0.0
    assert shown.p_value < 0.05


def test_t_under_one_stratum_is_that_of_all_rows():
    values, members = joined([0.9, 0.8, 0.7, 0.65], [0.3, 0.2, 0.1, 0.0])

    assert group_difference(values, members, strata=["m"] * 8) == group_difference(values, members)


def test_t_refuses_strata_of_one_kind_each():
    with pytest.raises(ValueError, match="strata must leave something to compare"):
        group_difference([1, 2], [1, 0], strata=["a", "b"])


def clustered(seed, kind):
    """Similarities without any effect of membership, alike within each of 30 topics."""
    rng = np.random.default_rng(seed)
    topic = np.repeat(np.arange(30), rng.integers(3, 12, 30))
    values = rng.normal(0, 1, 30)[topic] + rng.normal(0, 0.5, topic.size)
    chance = rng.permutation(np.arange(30) % 2) if kind == "whole" else rng.beta(0.7, 0.7, 30)
    return values, rng.random(topic.size) < chance[topic], topic


@pytest.mark.parametrize("kind", ["whole", "inside"])
def test_p_values_are_fair_with_clusters(kind):
    """Rows of a topic resemble each other; taken for independent they reject far too often."""
    by_topic, by_row = [], []
    for seed in range(200):
        values, aligned, topic = clustered(1000 + seed, kind)
        options = {"n_permutations": 99, "intervals": Intervals(rng=seed)}
        by_topic.append(permuted(values, aligned, clusters=topic, **options).p_value)
        by_row.append(permuted(values, aligned, **options).p_value)

    # A binomial count of 200 trials at 0.1 lies within 8 and 35 with probability 0.999.
    assert 8 <= sum(p <= 0.1 for p in by_topic) <= 35
    assert sum(p <= 0.1 for p in by_row) > 50


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_exact_p_of_whole_clusters_agrees_with_a_naive_loop(alternative):
    """Clusters of unequal size exchange membership within their stratum, and nothing else moves."""
    values = np.array([3.0, 1.0, 2.0, 8.0, 9.0, 7.0, 4.0, 6.0, 5.5, 0.5])
    topics = np.array([0, 0, 1, 2, 2, 2, 3, 3, 4, 5])
    strata = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1])
    aligned = np.isin(topics, [2, 3])
    differences = []
    for first, second in itertools.product([0, 1, 2], [3, 4, 5]):
        inside = np.isin(topics, [first, second])
        differences.append(values[inside].mean() - values[~inside].mean())

    result = permuted(
        values,
        aligned,
        strata=strata,
        clusters=topics,
        alternative=alternative,
        intervals=Intervals(n_resamples=50),
    )

    above = np.mean(np.array(differences) >= result.difference - 1e-9)
    below = np.mean(np.array(differences) <= result.difference + 1e-9)
    expected = {"greater": above, "less": below, "two-sided": min(1, 2 * min(above, below))}
    assert result.is_exact
    assert result.p_value == pytest.approx(expected[alternative])


def test_clusters_across_strata_exchange_whole_memberships():
    """A topic that stands in several models keeps its pattern over them together."""
    rng = np.random.default_rng(7)
    model, topic = np.tile([0, 1], 4), np.repeat(np.arange(4), 2)
    values, aligned = rng.normal(size=8), np.array([1, 0, 0, 0, 1, 1, 0, 1], dtype=bool)
    patterns = aligned.reshape(4, 2)
    shuffled = [patterns[list(order)].ravel() for order in itertools.permutations(range(4))]
    differences = np.array([values[m].mean() - values[~m].mean() for m in shuffled])

    result = permuted(
        values,
        aligned,
        strata=model,
        clusters=topic,
        alternative="greater",
        intervals=Intervals(n_resamples=50),
    )

    assert result.is_exact
    assert result.p_value == pytest.approx(np.mean(differences >= result.difference - 1e-9))


def test_drawn_p_of_whole_clusters_agrees_with_the_exact_one(monkeypatch):
    rng = np.random.default_rng(8)
    topic = np.repeat(np.arange(14), rng.integers(1, 5, 14))
    values, aligned = rng.normal(size=topic.size) + 0.4 * (topic < 7), topic < 7

    exact, drawn = (
        permuted(
            values, aligned, clusters=topic, n_permutations=n, intervals=Intervals(n_resamples=5)
        )
        for n in (3432, 3431)
    )
    monkeypatch.setattr(group_tests, "_CHUNK_CELLS", 500)
    pieces = permuted(
        values, aligned, clusters=topic, n_permutations=3431, intervals=Intervals(n_resamples=5)
    )

    assert (exact.is_exact, drawn.is_exact) == (True, False)
    assert drawn.p_value == pytest.approx(exact.p_value, abs=0.03)
    assert pieces.p_value == drawn.p_value


def naive_arrangements(values, aligned, topics):
    """Every exchange of shares between clusters with every choice of signs inside them."""
    names = list(dict.fromkeys(topics))
    rows = [np.flatnonzero(topics == name) for name in names]
    shares = [aligned[one].mean() for one in rows]
    inside = [((aligned[one] - aligned[one].mean()) * values[one]).sum() for one in rows]
    found = []
    for order in itertools.permutations(range(len(names))):
        for signs in itertools.product([1, -1], repeat=len(names)):
            total = size = 0.0
            for place, one in enumerate(rows):
                share = shares[order[place]]
                total += share * values[one].sum() + signs[place] * inside[place]
                size += share * len(one)
            found.append(total / size - (values.sum() - total) / (len(values) - size))
    return np.array(found)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_p_of_mixed_clusters_agrees_with_a_naive_loop(alternative):
    rng = np.random.default_rng(11)
    topics = np.repeat(np.arange(4), [3, 2, 4, 2])
    values = rng.normal(size=topics.size)
    aligned = np.array([1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0], dtype=bool)
    differences = naive_arrangements(values, aligned, topics)

    result = permuted(
        values,
        aligned,
        clusters=topics,
        alternative=alternative,
        intervals=Intervals(n_resamples=50),
    )

    assert result.is_exact
    above = np.mean(differences >= result.difference - 1e-9)
    below = np.mean(differences <= result.difference + 1e-9)
    expected = {"greater": above, "less": below, "two-sided": min(1, 2 * min(above, below))}
    assert result.p_value == pytest.approx(expected[alternative])


def recurring(seed, n_topics=20, n_models=6, n_facts=4):
    """Facts that stand in every model, with values and memberships of their own, unrelated."""
    rng = np.random.default_rng(seed)
    fact = np.repeat(np.arange(n_topics * n_facts), n_models)
    topic, model = fact // n_facts, np.tile(np.arange(n_models), n_topics * n_facts)
    values = rng.normal(0, 0.7, n_topics)[topic] + rng.normal(0, 1, n_topics * n_facts)[fact]
    values += 0.5 * model + rng.normal(0, 0.3, fact.size)
    return values, rng.random(fact.size) < rng.beta(0.4, 0.4, fact.max() + 1)[fact], topic, model


def test_p_values_are_fair_where_facts_recur_in_every_model():
    """The call of the guide; shuffling within topic and model rejects in a quarter of data sets."""
    p_values = []
    for seed in range(200):
        values, aligned, topic, model = recurring(seed)
        options = {"n_permutations": 199, "intervals": Intervals(rng=seed)}
        found = permuted(values, aligned, strata=model, clusters=topic, **options)
        p_values.append(found.p_value)

    # A binomial count of 200 trials at 0.05 lies within 2 and 21 with probability 0.999.
    assert 2 <= sum(p <= 0.05 for p in p_values) <= 21


def test_one_mixed_cluster_hardly_changes_p():
    rng = np.random.default_rng(12)
    topic = np.repeat(np.arange(30), 8)
    aligned = (topic % 2) == 0
    values = rng.normal(0, 1, 30)[topic] + rng.normal(0, 0.3, 240) + 1.2 * aligned
    mixed = aligned.copy()
    mixed[0] = False
    options = {"clusters": topic, "n_permutations": 2_000}

    whole = permuted(values, aligned, **options)
    almost = permuted(values, mixed, **options)

    assert whole.p_value < 0.05
    assert almost.p_value == pytest.approx(whole.p_value, abs=0.02)


def test_clusters_of_single_rows_change_nothing():
    values, aligned, model = slaq_like(9, 0.01)
    options = {"strata": model, "n_permutations": 500}

    alone = permuted(values, aligned, **options)

    # As text, where NaN is NaN.
    assert repr(permuted(values, aligned, clusters=range(360), **options)) == repr(alone)


def test_group_difference_rejects_clusters_that_leave_nothing_to_shuffle():
    with pytest.raises(ValueError, match="strata and clusters must leave something to shuffle"):
        permuted(
            [1.0, 2.0, 3.0, 4.0], [1, 1, 0, 0], strata=["a", "a", "a", "b"], clusters=[0, 0, 1, 1]
        )
