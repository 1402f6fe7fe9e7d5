import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import Interval, percentile_interval, wilson_interval


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

    assert (interval.low, interval.high) == pytest.approx((low, high), abs=5e-5)
    assert (interval.confidence_level, interval.method) == (0.95, "wilson")


@pytest.mark.parametrize("confidence_level", [0.5, 0.9, 0.99])
@pytest.mark.parametrize(("successes", "n"), [(0, 7), (7, 7), (3, 7), (3433, 4303)])
def test_wilson_interval_agrees_with_statsmodels(successes, n, confidence_level):
    proportion = pytest.importorskip("statsmodels.stats.proportion")

    low, high = proportion.proportion_confint(
        successes, n, alpha=1 - confidence_level, method="wilson"
    )
    ours = wilson_interval(successes, n, confidence_level=confidence_level)

    assert (ours.low, ours.high) == pytest.approx((low, high), abs=1e-12)


@given(n=st.integers(1, 10_000), data=st.data())
def test_wilson_interval_holds_the_proportion_and_mirrors(n, data):
    """It lies in [0, 1] around the proportion, and failures mirror successes."""
    successes = data.draw(st.integers(0, n))

    ours, mirror = wilson_interval(successes, n), wilson_interval(n - successes, n)

    assert 0 <= ours.low <= successes / n <= ours.high <= 1
    assert ours.low < ours.high
    assert ours.low == pytest.approx(1 - mirror.high, abs=1e-12)


def test_wilson_interval_of_extremes_touches_the_bound_exactly():
    assert wilson_interval(0, 30).low == 0.0
    assert wilson_interval(30, 30).high == 1.0


def test_wilson_interval_of_no_trials_is_nan_with_a_warning():
    with pytest.warns(UndefinedMetricWarning, match="0 trials"):
        interval = wilson_interval(0, 0)

    assert math.isnan(interval.low)
    assert math.isnan(interval.high)


def test_wilson_interval_rejects_impossible_counts():
    with pytest.raises(ValueError, match="successes must not exceed n; got 4 of 3"):
        wilson_interval(4, 3)
    with pytest.raises(ValueError, match="n must be a count of at least 0"):
        wilson_interval(0, -3)
    with pytest.raises(TypeError, match="successes must be an integer count"):
        wilson_interval(0.5, 3)


@pytest.mark.parametrize("confidence_level", [0, 1, 95, -0.1, math.nan])
def test_intervals_reject_a_confidence_outside_0_and_1(confidence_level):
    with pytest.raises(ValueError, match="confidence_level must lie strictly between 0 and 1"):
        wilson_interval(1, 3, confidence_level=confidence_level)
    with pytest.raises(ValueError, match="confidence_level must lie strictly between 0 and 1"):
        percentile_interval([1.0], confidence_level=confidence_level)


def test_interval_rejects_crossed_bounds():
    with pytest.raises(ValueError, match="low must not exceed high"):
        Interval(low=0.5, high=0.4, confidence_level=0.95, method="wilson")


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), share=st.floats(0.01, 0.99))
def test_percentile_interval_agrees_with_numpy(values, share):
    expected = np.quantile(values, [(1 - share) / 2, (1 + share) / 2])

    interval = percentile_interval(values, confidence_level=share)

    assert (interval.low, interval.high) == pytest.approx(tuple(expected), rel=1e-9, abs=1e-6)


def test_percentile_interval_leaves_nan_out():
    values = np.random.default_rng(3).random(1000)

    with_gaps = np.insert(values, [0, 10, 500, 1000], np.nan)

    assert percentile_interval(with_gaps) == percentile_interval(values)


def test_percentile_interval_keeps_infinities():
    """An infinite odds ratio is a large one, not an undefined one."""
    interval = percentile_interval([1.0, 2.0, 3.0, *[math.inf] * 7], confidence_level=0.8)

    assert interval.low == pytest.approx(1.9)
    assert interval.high == math.inf


@pytest.mark.parametrize("values", [[], [math.nan, math.nan]])
def test_percentile_interval_of_nothing_is_nan(values):
    interval = percentile_interval(values)

    assert math.isnan(interval.low)
    assert math.isnan(interval.high)


def test_percentile_interval_rejects_a_matrix():
    with pytest.raises(ValueError, match=r"one-dimensional; got shape \(2, 2\)"):
        percentile_interval(np.ones((2, 2)))
