import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import (
    PairedTable,
    cluster_bootstrap,
    cohen_kappa,
    discordant_odds_ratio,
    mcnemar,
)
from surface_consistency.metrics.paired.effect_sizes import DISCORDANT_ODDS, kappa_of_counts

cells = st.tuples(*[st.integers(0, 50)] * 4)


# The worked examples of many texts on kappa (Fleiss 1981 style): p_o 0.70 and p_e 0.50; p_o 0.60
# and p_e 0.54; p_o 0.60 and p_e 0.46.
@pytest.mark.parametrize(
    ("counts", "kappa"),
    [((20, 5, 10, 15), 0.4), ((45, 15, 25, 15), 0.1304), ((25, 35, 5, 35), 0.2593)],
)
def test_cohen_kappa_agrees_with_worked_examples(counts, kappa):
    table = PairedTable(
        both=counts[0], first_only=counts[1], second_only=counts[2], neither=counts[3]
    )

    assert cohen_kappa(table) == pytest.approx(kappa, abs=5e-5)


@settings(deadline=None)
@given(counts=cells)
def test_kappa_agrees_with_scikit_learn(counts):
    metrics = pytest.importorskip("sklearn.metrics")
    first = np.repeat([1, 1, 0, 0], counts)
    second = np.repeat([1, 0, 1, 0], counts)
    ours = float(kappa_of_counts(counts))
    if math.isnan(ours):
        return

    assert ours == pytest.approx(metrics.cohen_kappa_score(first, second), abs=1e-12)


@settings(deadline=None)
@given(counts=cells)
def test_kappa_agrees_with_its_definition(counts):
    """The closed form in counts is (p_o - p_e) / (1 - p_e)."""
    a, b, c, d = counts
    n = a + b + c + d
    ours = float(kappa_of_counts(counts))
    if n == 0 or math.isnan(ours):
        assert n == 0 or n in (a, d)
        return

    observed = (a + d) / n
    expected = ((a + b) * (a + c) + (c + d) * (b + d)) / n**2

    assert ours == pytest.approx((observed - expected) / (1 - expected), abs=1e-9)
    assert -1 <= ours <= 1


@settings(deadline=None)
@given(counts=cells)
def test_kappa_is_symmetric(counts):
    """Swapping the conditions, or calling right wrong, changes nothing."""
    a, b, c, d = counts

    values = kappa_of_counts([[a, b, c, d], [a, c, b, d], [d, b, c, a]])

    assert np.allclose(values, values[0], equal_nan=True)


def test_kappa_is_zero_for_independent_conditions():
    assert kappa_of_counts([12, 28, 18, 42]) == pytest.approx(0.0, abs=1e-12)


def test_kappa_bootstraps():
    """As a statistic of summed counts it takes an interval that holds the estimate."""
    counts = [[3, 1, 0, 0], [0, 0, 1, 2], [2, 0, 0, 1], [0, 1, 0, 3]] * 30

    kappa, low, high = cluster_bootstrap(counts, kappa_of_counts)

    assert low < kappa < high
    assert kappa == kappa_of_counts(np.sum(counts, axis=0))


@pytest.mark.parametrize("counts", [(5, 0, 0, 0), (0, 0, 0, 7), (0, 0, 0, 0)])
def test_kappa_without_variation_is_undefined(counts):
    table = PairedTable(
        both=counts[0], first_only=counts[1], second_only=counts[2], neither=counts[3]
    )

    with pytest.warns(UndefinedMetricWarning, match="kappa is undefined"):
        value = cohen_kappa(table)

    assert math.isnan(value)


def test_cohen_kappa_rejects_what_is_no_table():
    with pytest.raises(TypeError, match="must be a PairedTable; got list"):
        cohen_kappa([1, 2, 3, 4])


@pytest.mark.parametrize("counts", [3.0, [1, 2, 3]])
def test_kappa_of_counts_rejects_other_shapes(counts):
    with pytest.raises(ValueError, match="four cells along the last axis"):
        kappa_of_counts(counts)


def table(b, c):
    return PairedTable(both=3, first_only=b, second_only=c, neither=5)


# StatsDirect help, "McNemar and exact test for matched pairs", Armitage and Berry 1994 p. 127:
# 12 and 2 discordant pairs, R' = 6, exact 95 % interval 1.335744 to 55.197091.
def test_discordant_odds_ratio_agrees_with_statsdirect():
    odds_ratio, low, high = discordant_odds_ratio(table(12, 2))

    assert odds_ratio == 6
    assert low == pytest.approx(1.335744, abs=5e-7)
    assert high == pytest.approx(55.197091, abs=5e-6)


@settings(deadline=None)
@given(b=st.integers(0, 60), c=st.integers(0, 60))
def test_exact_interval_excludes_one_where_the_exact_test_is_significant(b, c):
    if b + c == 0:
        return

    _, low, high = discordant_odds_ratio(table(b, c))

    assert (low > 1 or high < 1) == (mcnemar(table(b, c), method="exact")[1] < 0.05)


def test_discordant_odds_ratio_without_flips_is_undefined():
    with pytest.warns(UndefinedMetricWarning, match="no pair is discordant"):
        result = discordant_odds_ratio(table(0, 0))

    assert all(map(math.isnan, result))


def test_odds_as_a_statistic_agree_with_the_result():
    assert DISCORDANT_ODDS([3, 12, 2, 5]) == discordant_odds_ratio(table(12, 2))[0]


def test_discordant_odds_ratio_rejects_what_is_no_table():
    with pytest.raises(TypeError, match="table must be a PairedTable; got list: count verdicts"):
        discordant_odds_ratio([1, 2, 3, 4])
