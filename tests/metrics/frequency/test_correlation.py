import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics.frequency.correlation import correlation

METHODS = ["pearson", "spearman"]
rows = st.lists(
    st.tuples(st.integers(-50, 50), st.integers(-4, 4)), min_size=5, max_size=40
).filter(lambda pairs: all(len({pair[k] for pair in pairs}) > 1 for k in (0, 1)))


def correlated(seed, n, slope=0.5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return x, slope * x + rng.normal(size=n)


@pytest.mark.parametrize("n", [4, 30, 4284])
def test_pearson_agrees_with_scipy(n):
    stats = pytest.importorskip("scipy.stats")
    x, y = correlated(n, n)
    theirs = stats.pearsonr(x, y)
    interval = theirs.confidence_interval(0.9)

    ours = correlation(x, y, confidence=0.9)

    assert ours.coefficient == pytest.approx(theirs.statistic, rel=1e-12)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-9)
    assert (ours.interval.low, ours.interval.high) == pytest.approx((interval.low, interval.high))
    assert (ours.n, ours.n_dropped, ours.n_controls, ours.method) == (n, 0, 0, "pearson")
    assert (ours.interval.confidence, ours.interval.method) == (0.9, "fisher-z")


@pytest.mark.parametrize("n", [5, 30, 4284])
def test_spearman_with_ties_agrees_with_scipy(n):
    stats = pytest.importorskip("scipy.stats")
    x, y = correlated(n, n)
    y = np.round(y)
    theirs = stats.spearmanr(x, y)

    ours = correlation(x, y, method="spearman")

    assert ours.coefficient == pytest.approx(theirs.statistic, rel=1e-12)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-9)


def test_far_tail_of_the_p_value_agrees_with_scipy():
    """A p-value far below rounding of 1 is not 0."""
    stats = pytest.importorskip("scipy.stats")
    x, y = correlated(0, 500, slope=2.0)

    p_value = correlation(x, y).p_value

    assert 0.0 < p_value < 1e-100
    assert p_value == pytest.approx(stats.pearsonr(x, y).pvalue, rel=1e-6)


def test_interval_of_ranks_is_that_of_bonett_and_wright():
    """The variance of atanh(r) is (1 + r^2 / 2) / (n - 3)."""
    x = np.arange(12.0)
    y = np.array([1, 0, 3, 2, 7, 4, 11, 5, 6, 9, 8, 10.0])
    r = correlation(x, y, method="spearman").coefficient
    half = 1.959963984540054 * math.sqrt((1 + r * r / 2) / 9)

    interval = correlation(x, y, method="spearman").interval

    assert interval.method == "bonett-wright"
    assert interval.low == pytest.approx(math.tanh(math.atanh(r) - half))
    assert interval.high == pytest.approx(math.tanh(math.atanh(r) + half))


def test_interval_of_ranks_covers_where_fishers_does_not():
    """Of 2,000 samples of 40 with a strong correlation, 93 to 97 % of the intervals hold it."""
    rng = np.random.default_rng(3)
    rho = 0.9
    truth = 6 / math.pi * math.asin(rho / 2)
    covered = by_fisher = 0
    for _ in range(2000):
        x = rng.normal(size=40)
        y = rho * x + math.sqrt(1 - rho * rho) * rng.normal(size=40)
        result = correlation(x, y, method="spearman")
        half = 1.959963984540054 / math.sqrt(37)
        centre = math.atanh(result.coefficient)
        covered += result.interval.low <= truth <= result.interval.high
        by_fisher += math.tanh(centre - half) <= truth <= math.tanh(centre + half)

    assert 0.93 <= covered / 2000 <= 0.97
    assert by_fisher / 2000 < 0.925


@given(pairs=rows, method=st.sampled_from(METHODS), data=st.data())
@settings(deadline=None)
def test_correlation_is_bounded_symmetric_and_free_of_order(pairs, method, data):
    x, y = np.array(pairs, dtype=float).T
    order = data.draw(st.permutations(range(len(pairs))))

    result = correlation(x, y, method=method)
    shuffled = correlation(x[order], y[order], method=method)

    assert -1 <= result.interval.low <= result.coefficient <= result.interval.high <= 1
    assert 0 <= result.p_value <= 1
    assert correlation(y, x, method=method).coefficient == pytest.approx(
        result.coefficient, abs=1e-12
    )
    assert shuffled.coefficient == pytest.approx(result.coefficient, abs=1e-12)


@given(
    pairs=rows,
    method=st.sampled_from(METHODS),
    scale=st.floats(1e-3, 1e3),
    shift=st.floats(-100, 100),
)
@settings(deadline=None)
def test_correlation_is_free_of_scale_and_turns_with_the_sign(pairs, method, scale, shift):
    x, y = np.array(pairs, dtype=float).T
    coefficient = correlation(x, y, method=method).coefficient

    assert correlation(scale * x + shift, y, method=method).coefficient == pytest.approx(
        coefficient, abs=1e-9
    )
    assert correlation(-x, y, method=method).coefficient == pytest.approx(-coefficient, abs=1e-12)


@given(pairs=rows)
@settings(deadline=None)
def test_spearman_is_free_of_increasing_changes(pairs):
    x, y = np.array(pairs, dtype=float).T

    ours = correlation(np.exp(x / 10), y**3, method="spearman")

    assert ours.coefficient == pytest.approx(correlation(x, y, method="spearman").coefficient)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200, 1e307])
def test_correlation_is_exact_at_extreme_scales(scale):
    """Neither squares that overflow nor squares that vanish spoil a correlation."""
    x, y = correlated(5, 50)

    assert correlation(x * scale, y).coefficient == pytest.approx(correlation(x, y).coefficient)


def test_perfect_correlation_has_no_width():
    result = correlation([1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 8.0])

    assert result.coefficient == pytest.approx(1)
    assert result.p_value == pytest.approx(0, abs=1e-12)
    assert result.interval.low == pytest.approx(1)


def test_missing_values_are_dropped_pairwise_with_a_count():
    x = [1.0, None, 3.0, 4.0, 5.0, 7.0]
    y = pd.array([1, 2, pd.NA, 4, 6, 5], dtype="Int64")

    result = correlation(x, y, missing="drop")

    expected = dataclasses.replace(correlation([1, 4, 5, 7], [1, 4, 6, 5]), n_dropped=2)
    assert result == expected
    assert (result.n, result.n_dropped) == (4, 2)


def test_masked_entries_are_missing():
    x = np.ma.masked_equal([1.0, 2.0, -9.0, 4.0, 6.0], -9.0)

    assert correlation(x, [1, 2, 3, 5, 4], missing="drop").n_dropped == 1


def test_correlation_rejects_missing_values_by_default():
    with pytest.raises(ValueError, match=r"y\[1\] is missing \(in all 2 of 4\).*missing='drop'"):
        correlation([1, 2, 3, 4], [1, math.nan, None, 4])


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([2.0, 2.0, 2.0, 2.0], [1, 2, 3, 4], "undefined.*: x is constant"),
        ([1, 2, 3, 4], [0.1] * 4, "undefined.*: y is constant"),
        # Equal up to the rounding of sums.
        ([0.1 + 0.2, 0.3, 0.3, 0.3], [1, 2, 3, 5], "undefined.*: x is constant"),
        ([1e9, 1e9 + 1e-7, 1e9, 1e9], [1, 2, 3, 5], "undefined.*: x is constant"),
        ([0, 0, 0], [0, 0, 0], "x is constant; y is constant"),
        ([], [], "there are 0 rows, and it needs 3"),
        ([1.0], [2.0], "there are 1 rows, and it needs 3"),
        ([1.0, 2.0], [2.0, 3.0], "there are 2 rows, and it needs 3"),
    ],
)
def test_undefined_correlation_is_nan_with_a_warning(x, y, message):
    with pytest.warns(UndefinedMetricWarning, match=message) as caught:
        result = correlation(x, y)

    assert math.isnan(result.coefficient)
    assert math.isnan(result.p_value)
    assert math.isnan(result.interval.low)
    assert caught[0].filename == __file__


def test_ranks_of_a_constant_are_nan_with_a_warning():
    with pytest.warns(UndefinedMetricWarning, match="y is constant"):
        result = correlation([3, 1, 2, 5], [7, 7, 7, 7], method="spearman")

    assert math.isnan(result.coefficient)


def test_three_rows_have_no_interval():
    with pytest.warns(
        UndefinedMetricWarning, match="interval is undefined.*3 rows, and it needs 4"
    ):
        result = correlation([1, 2, 3], [1, 3, 2])

    assert result.coefficient == pytest.approx(0.5)
    # t = .5 / sqrt(.75) on one degree of freedom: p = 2/3.
    assert result.p_value == pytest.approx(2 / 3)
    assert math.isnan(result.interval.low)


@pytest.mark.parametrize(
    ("x", "y", "options", "error", "message"),
    [
        ([1, 2], [1, 2, 3], {}, ValueError, "x and y must have equal lengths; got 2 and 3"),
        ([[1, 2]], [1, 2], {}, ValueError, r"x must be one-dimensional; got shape \(1, 2\)"),
        ([1, 2, math.inf], [1, 2, 3], {}, ValueError, r"x\[2\] is inf: .*log_frequency"),
        ([1, "2", 3], [1, 2, 3], {}, TypeError, r"x\[1\] is '2', which is no number"),
        ([1, 2j, 3], [1, 2, 3], {}, TypeError, "is no number|which is no number"),
        ([1, 2], [1, 2], {"method": "kendall"}, ValueError, "method must be 'pearson' or"),
        ([1, 2], [1, 2], {"missing": "omit"}, ValueError, "missing must be 'raise' or 'drop'"),
        ([1, 2], [1, 2], {"confidence": 95}, ValueError, "confidence must lie strictly"),
    ],
)
def test_correlation_rejects_bad_arguments(x, y, options, error, message):
    with pytest.raises(error, match=message):
        correlation(x, y, **options)
