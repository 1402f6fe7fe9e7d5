import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import (
    PairedTable,
    cluster_bootstrap,
    cohen_kappa,
    kappa_of_counts,
)

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

    result = cluster_bootstrap(counts, kappa_of_counts, n_resamples=2000)

    assert result.interval.low < result.estimate < result.interval.high
    assert result.estimate == kappa_of_counts(np.sum(counts, axis=0))


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
