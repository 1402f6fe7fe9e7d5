import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics.mechanistic import _permuted_sums
from surface_consistency.metrics.mechanistic.group_difference import group_difference

samples = st.tuples(
    st.lists(st.integers(-20, 20), min_size=2, max_size=5),
    st.lists(st.integers(-20, 20), min_size=2, max_size=5),
)
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
    result = group_difference([aligned] * 3 + [misaligned] * 3, [1] * 3 + [0] * 3, n_resamples=20)

    assert 100 * result.relative_difference == pytest.approx(increase, abs=0.05)


@settings(deadline=None, max_examples=40)
@given(samples, st.sampled_from(ALTERNATIVES))
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_exact_p_agrees_with_scipy(data, alternative):
    values, members = joined(*data)

    result = group_difference(values, members, alternative=alternative, n_resamples=5)
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

    exact = group_difference(values, members, alternative=alternative, n_permutations=24_310)
    drawn = group_difference(values, members, alternative=alternative, n_permutations=20_000)

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

    result = group_difference(values, members, strata=strata, alternative="greater")

    assert result.is_exact
    expected = np.mean(np.array(differences) >= result.difference - 1e-9)
    assert result.p_value == pytest.approx(expected)


def test_strata_keep_the_differences_between_models():
    """Between models of unequal level and share, a difference is no effect of alignment."""
    rng = np.random.default_rng(3)
    model = np.repeat([0, 1], 100)
    aligned = np.r_[np.arange(100) < 80, np.arange(100) < 20]
    values = 0.3 * (1 - model) + rng.normal(0, 0.05, 200)

    pooled = group_difference(values, aligned, n_resamples=200)
    stratified = group_difference(values, aligned, strata=model, n_resamples=200)

    assert pooled.p_value < 0.001
    assert stratified.p_value > 0.01


def test_group_difference_finds_a_planted_one():
    values, aligned, model = slaq_like(4, 0.048)

    result = group_difference(values, aligned, strata=model, alternative="greater")

    assert result.p_value < 0.001
    assert result.interval.low > 0
    assert result.interval.low < result.difference < result.interval.high
    assert (result.n_group, result.n_other) == (180, 180)


def test_p_values_are_fair_without_a_difference():
    """Without a difference, p falls to 0.1 or below about once in ten times."""
    p_values = []
    for seed in range(200):
        values, aligned, model = slaq_like(100 + seed, 0.0)
        result = group_difference(
            values, aligned, strata=model, n_permutations=99, n_resamples=1, rng=seed
        )
        p_values.append(result.p_value)

    # A binomial count of 200 trials at 0.1 lies within 8 and 35 with probability 0.999.
    assert 8 <= sum(p <= 0.1 for p in p_values) <= 35


@settings(deadline=None, max_examples=40)
@given(samples)
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_group_difference_is_turned_by_swapping(data):
    there = group_difference(*joined(*data), n_resamples=5)
    back = group_difference(*joined(*data[::-1]), n_resamples=5)

    assert back.difference == pytest.approx(-there.difference)
    assert back.p_value == pytest.approx(there.p_value)
    assert 0 < there.p_value <= 1


@settings(deadline=None, max_examples=30)
@given(samples, st.randoms(use_true_random=False))
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_group_difference_is_free_of_order(data, random):
    rows = list(zip(*joined(*data), strict=True))
    random.shuffle(rows)

    shuffled = group_difference(*zip(*rows, strict=True), n_resamples=5)
    there = group_difference(*joined(*data), n_resamples=5)

    assert shuffled.difference == pytest.approx(there.difference)
    assert shuffled.p_value == pytest.approx(there.p_value)


def test_chunks_do_not_change_the_draws(monkeypatch):
    values, aligned, _ = slaq_like(5, 0.01)

    whole = group_difference(values, aligned, n_permutations=500, n_resamples=5)
    monkeypatch.setattr(_permuted_sums, "_CHUNK_CELLS", 1000)
    pieces = group_difference(values, aligned, n_permutations=500, n_resamples=5)

    assert pieces.p_value == whole.p_value


def test_clusters_widen_the_interval():
    """Facts of one topic that resemble each other are less evidence than they look."""
    rng = np.random.default_rng(6)
    topic = np.repeat(np.arange(40), 9)
    aligned = rng.random(40)[topic] < 0.5
    values = rng.normal(0, 1, 40)[topic] + rng.normal(0, 0.2, 360)

    rows = group_difference(values, aligned, n_permutations=10)
    topics = group_difference(values, aligned, clusters=topic, n_permutations=10)

    assert topics.interval.high - topics.interval.low > 1.5 * (
        rows.interval.high - rows.interval.low
    )


def test_equal_values_differ_by_nothing():
    result = group_difference([0.5] * 8, [1, 0] * 4)

    assert (result.difference, result.p_value) == (0.0, 1.0)
    assert (result.interval.low, result.interval.high) == (0.0, 0.0)


def test_undefined_parts_are_nan():
    with pytest.warns(UndefinedMetricWarning, match="since the other mean is 0"):
        result = group_difference([1.0, 2.0, 0.0, 0.0], [1, 1, 0, 0])
    assert math.isnan(result.relative_difference)
    with pytest.warns(UndefinedMetricWarning, match="there is a single cluster"):
        result = group_difference([1.0, 2.0, 3.0], [1, 0, 0], clusters=["t"] * 3)
    assert math.isnan(result.interval.low)


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
        ([1, 2], [1, 0], {"strata": ["a"]}, ValueError, "strata must name one label a row: got 1"),
        ([1, 2], [1, 0], {"clusters": ["a", None]}, ValueError, r"clusters\[1\] is None"),
        ([1, 2], [1, 0], {"alternative": "both"}, ValueError, "alternative must be"),
        ([1, 2], [1, 0], {"n_permutations": 0}, ValueError, "n_permutations must be at least 1"),
        ([1, 2], [1, 0], {"n_permutations": 1.0}, TypeError, "n_permutations must be an integer"),
        ([1, 2], [1, 0], {"n_resamples": 0}, ValueError, "n_resamples must be at least 1"),
        ([1, 2], [1, 0], {"confidence": 1}, ValueError, "confidence must lie"),
    ],
)
def test_group_difference_rejects_bad_input(values, members, options, error, message):
    with pytest.raises(error, match=message):
        group_difference(values, members, **options)
