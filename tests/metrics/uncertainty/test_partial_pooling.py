import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import optimize, stats

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import pooled_rates

# Tarone 1982, tumours in 70 historical groups of rats, as in Gelman et al., Bayesian Data Analysis,
# 3rd ed., table 5.1: tumours, rats, and in how many groups.
TUMOURS = (
    *((0, 20, 7), (0, 19, 4), (0, 18, 2), (0, 17, 1), (1, 20, 4), (1, 19, 2), (1, 18, 2)),
    *((2, 25, 1), (2, 24, 1), (2, 23, 1), (2, 20, 6), (1, 10, 1), (5, 49, 1), (2, 19, 1)),
    *((5, 46, 1), (3, 27, 1), (2, 17, 1), (7, 49, 1), (7, 47, 1), (3, 20, 2), (2, 13, 1)),
    *((9, 48, 1), (10, 50, 1), (4, 20, 7), (10, 48, 1), (4, 19, 3), (5, 22, 1), (11, 46, 1)),
    *((12, 49, 1), (5, 20, 2), (6, 23, 1), (5, 19, 1), (6, 22, 1), (6, 20, 3), (16, 52, 1)),
    *((15, 47, 1), (15, 46, 1), (9, 24, 1)),
)


def rats():
    rows = np.array([(x, n) for x, n, times in TUMOURS for _ in range(times)], dtype=float)
    return rows[:, 0], rows[:, 1]


def fitted_by_scipy(events, trials):
    """The beta-binomial of greatest likelihood, by another optimiser on other parameters."""

    def loss(parameters):
        a, b = np.exp(parameters)
        return -stats.betabinom.logpmf(events, trials, a, b).sum()

    found = optimize.minimize(loss, [0.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-8})
    return np.exp(found.x)


def test_pooled_rates_agree_with_the_rats():
    """The fit stands near Beta(1.4, 8.6), the book's estimate from the same groups by moments."""
    events, trials = rats()

    result = pooled_rates(events, trials)

    a, b = fitted_by_scipy(events, trials)
    assert result.mean == pytest.approx(a / (a + b), abs=1e-4)
    assert result.concentration == pytest.approx(a + b, rel=1e-3)
    assert result.mean == pytest.approx(1.4 / 10, abs=0.01)
    assert result.rates == pytest.approx((events + a) / (trials + a + b), abs=1e-4)
    law = stats.beta(events + a, trials - events + b)
    assert result.low == pytest.approx(law.ppf(0.025), abs=1e-4)
    assert result.high == pytest.approx(law.ppf(0.975), abs=1e-4)


def test_groups_that_differ_by_chance_alone_are_one():
    result = pooled_rates([3, 3, 4, 3, 3], [30] * 5)

    assert result.concentration == math.inf
    assert result.rates.tolist() == [16 / 150] * 5
    # One interval for all: Jeffreys' of 16 in 150, half an event and half a non-event added.
    law = stats.beta(16.5, 134.5)
    assert result.low == pytest.approx([law.ppf(0.025)] * 5, rel=1e-9)
    assert result.high == pytest.approx([law.ppf(0.975)] * 5, rel=1e-9)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(1, 30)).map(lambda pair: (min(pair), max(pair))),
        min_size=3,
        max_size=15,
    )
)
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_pooled_rates_lie_between_their_own_and_the_mean(groups):
    events, trials = np.array(groups, dtype=float).T

    result = pooled_rates(events, trials)

    if not math.isnan(result.mean):
        own = events / trials
        low, high = np.minimum(own, result.mean), np.maximum(own, result.mean)
        assert (result.rates >= low - 1e-9).all()
        assert (result.rates <= high + 1e-9).all()
        assert (result.low <= result.rates + 1e-9).all()
        assert (result.rates <= result.high + 1e-9).all()


@pytest.mark.parametrize("events", [[0, 1, 2], [0, 0, 2]])
def test_an_interval_of_a_skew_posterior_holds_its_rate(events):
    """Groups of a trial or two, all or nothing: the mean is beyond the 97.5th percentile."""
    result = pooled_rates(events, [1, 1, 2])

    assert result.concentration == pytest.approx(0.01)
    assert (result.low <= result.rates).all()
    assert (result.rates <= result.high).all()


def test_pooling_errs_less_where_groups_are_small():
    """33 categories of 23 to 35 pairs: the squared error of the rates shrinks."""
    rng = np.random.default_rng(5)
    own_error = pooled_error = covered = 0.0
    for _ in range(40):
        truth = rng.beta(5, 15, 33)
        trials = rng.integers(23, 36, 33)
        events = rng.binomial(trials, truth)
        result = pooled_rates(events, trials)
        own_error += ((events / trials - truth) ** 2).mean() / 40
        pooled_error += ((result.rates - truth) ** 2).mean() / 40
        covered += ((result.low <= truth) & (truth <= result.high)).mean() / 40

    assert pooled_error < 0.75 * own_error
    assert covered == pytest.approx(0.95, abs=0.025)


def test_pooled_rates_without_events_are_undefined():
    with pytest.warns(UndefinedMetricWarning, match="no group has an event"):
        result = pooled_rates([0, 0], [5, 6])

    assert np.isnan(result.rates).all()


@pytest.mark.parametrize(
    ("events", "trials", "options", "message"),
    [
        ([1], [1, 2], {}, "equal lengths; got 1 and 2"),
        ([2, 1], [1, 2], {}, "trials must be at least the events; group 0"),
        ([-1, 1], [1, 2], {}, "events must be at least 0; group 0"),
        ([0, 1], [0, 2], {}, "there must be two groups with trials"),
        ([1, 1], [2, 2], {"confidence_level": 1}, "confidence_level must lie"),
    ],
)
def test_pooled_rates_reject_bad_input(events, trials, options, message):
    with pytest.raises(ValueError, match=message):
        pooled_rates(events, trials, **options)
