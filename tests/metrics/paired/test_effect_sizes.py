import math

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy import stats

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import PairedTable, cohen_kappa, discordant_odds_ratio, mcnemar
from surface_consistency.metrics.paired.effect_sizes import DISCORDANT_ODDS, kappa_of_counts
from surface_consistency.metrics.paired.paired_tables import table_of
from tests.refusals import refusals


# The worked examples of many texts on kappa (Fleiss 1981 style): p_o 0.70 and p_e 0.50; p_o 0.60
# and p_e 0.54; p_o 0.60 and p_e 0.46.
@pytest.mark.parametrize(
    ("counts", "kappa"),
    [((20, 5, 10, 15), 0.4), ((45, 15, 25, 15), 0.1304), ((25, 35, 5, 35), 0.2593)],
)
def test_cohen_kappa_agrees_with_worked_examples(counts, kappa):
    assert cohen_kappa(table_of(counts)) == pytest.approx(kappa, abs=5e-5)


@settings(deadline=None)
@given(counts=st.tuples(*[st.integers(0, 50)] * 4))
def test_kappa_agrees_with_scikit_learn_and_its_definition(counts):
    """(p_o - p_e) / (1 - p_e); swapping conditions, or correct and incorrect, changes nothing."""
    metrics = pytest.importorskip("sklearn.metrics")
    a, b, c, d = counts
    n = a + b + c + d

    values = kappa_of_counts([[a, b, c, d], [a, c, b, d], [d, b, c, a]])

    assert np.allclose(values, values[0], equal_nan=True)
    if n == 0 or math.isnan(values[0]):
        assert n == 0 or n in (a, d)
        return
    observed = (a + d) / n
    expected = ((a + b) * (a + c) + (c + d) * (b + d)) / n**2
    verdicts = np.repeat([1, 1, 0, 0], counts), np.repeat([1, 0, 1, 0], counts)
    assert values[0] == pytest.approx((observed - expected) / (1 - expected), abs=1e-9)
    assert values[0] == pytest.approx(metrics.cohen_kappa_score(*verdicts), abs=1e-12)
    assert -1 <= values[0] <= 1


@pytest.mark.parametrize("counts", [(5, 0, 0, 0), (0, 0, 0, 7), (0, 0, 0, 0)])
def test_kappa_without_variation_is_undefined(counts):
    with pytest.warns(UndefinedMetricWarning, match="kappa is undefined"):
        assert math.isnan(cohen_kappa(table_of(counts)))


def table(b, c):
    return PairedTable(both=3, first_only=b, second_only=c, neither=5)


# StatsDirect help, "McNemar and exact test for matched pairs", Armitage and Berry 1994 p. 127:
# 12 and 2 discordant pairs, R' = 6, exact 95 % interval 1.335744 to 55.197091.
def test_discordant_odds_ratio_agrees_with_statsdirect():
    odds_ratio, low, high = discordant_odds_ratio(table(12, 2))

    assert odds_ratio == DISCORDANT_ODDS([3, 12, 2, 5]) == 6
    assert low == pytest.approx(1.335744, abs=5e-7)
    assert high == pytest.approx(55.197091, abs=5e-6)


@settings(deadline=None)
@given(b=st.integers(0, 400), c=st.integers(0, 400), confidence=st.sampled_from([0.8, 0.95, 0.99]))
def test_odds_agree_with_scipy_and_are_inverted_by_swapping(b, c, confidence):
    """The bounds are the odds at scipy's, and exclude 1 if the exact test rejects."""
    assume(b + c > 0)
    share = stats.binomtest(b, b + c).proportion_ci(confidence)

    odds_ratio, low, high = discordant_odds_ratio(table(b, c), confidence=confidence)

    assert odds_ratio == (b / c if c else math.inf)
    assert low / (1 + low) == pytest.approx(share.low, abs=1e-9)
    assert (1.0 if math.isinf(high) else high / (1 + high)) == pytest.approx(share.high, abs=1e-9)
    assert low <= odds_ratio <= high
    p_value = mcnemar(table(b, c), method="exact")[1]
    assert (low > 1 or high < 1) == (p_value < 1 - confidence)
    assert (low == 0) == (b == 0)
    assert math.isinf(high) == (c == 0)
    if b and c:
        swapped = discordant_odds_ratio(table(c, b), confidence=confidence)
        assert swapped == pytest.approx((1 / odds_ratio, 1 / high, 1 / low), rel=1e-6)


def test_discordant_odds_ratio_without_flips_is_undefined():
    with pytest.warns(UndefinedMetricWarning, match="no pair is discordant"):
        assert all(map(math.isnan, discordant_odds_ratio(table(0, 0))))


test_effect_sizes_reject_bad_input = refusals(
    lambda call: call(),
    (
        lambda: cohen_kappa([1, 2, 3, 4]),
        TypeError,
        "must be a PairedTable or counts of the shape .2, 2.; got list",
    ),
    (lambda: kappa_of_counts(3.0), "length four along the last axis"),
    (lambda: kappa_of_counts([1, 2, 3]), "length four along the last axis"),
    (lambda: discordant_odds_ratio([1, 2, 3, 4]), TypeError, "got list of the shape"),
    (lambda: discordant_odds_ratio(table(1, 2), confidence=1), "confidence must be strictly"),
)
