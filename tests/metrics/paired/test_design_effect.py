import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import (
    PAIRED_RATES,
    CountRatio,
    cluster_bootstrap,
    design_effect,
)

counts_of_clusters = st.lists(
    st.tuples(*[st.integers(0, 4)] * 4).filter(lambda row: sum(row) > 0), min_size=2, max_size=12
)


@settings(deadline=None)
@given(cells=st.lists(st.integers(0, 3), min_size=2, max_size=60))
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_one_pair_a_cluster_has_a_design_effect_of_one(cells):
    effect = design_effect(np.eye(4)[cells])

    assert math.isnan(effect) or effect == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("copies", [2, 5])
def test_copies_of_pairs_have_their_number_as_design_effect(copies):
    rng = np.random.default_rng(4)
    single = np.eye(4, dtype=int)[rng.choice(4, p=[0.4, 0.3, 0.1, 0.2], size=4000)]

    effect = design_effect(copies * single)

    assert effect == pytest.approx(copies, rel=0.001)


@settings(deadline=None)
@given(counts=counts_of_clusters)
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_design_effect_agrees_with_a_naive_loop(counts):
    """Residuals of single pairs, summed within clusters or not, give the two variances."""
    n = sum(sum(row) for row in counts)
    difference = sum(c - b for _, b, c, _ in counts) / n
    by_pair, by_cluster = 0.0, 0.0
    for row in counts:
        residuals = [
            value - difference
            for value, k in zip((0, -1, 1, 0), row, strict=True)
            for _ in range(k)
        ]
        by_pair += sum(r * r for r in residuals)
        by_cluster += sum(residuals) ** 2
    size = len(counts)

    effect = design_effect(counts)

    if math.isnan(effect):
        assert by_pair == pytest.approx(0, abs=1e-9) or n == size == 1
    else:
        expected = (by_cluster * size / (size - 1)) / (by_pair * n / (n - 1))
        assert effect == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("rate", ["consistency", "accuracy_difference", "flip_rate"])
def test_design_effect_agrees_with_the_bootstrap(rate):
    """The ratio of bootstrap variances, clusters over rows, is the design effect."""
    rng = np.random.default_rng(9)
    counts = []
    for _ in range(1500):
        size = rng.integers(1, 8)
        lean = rng.dirichlet([0.6, 0.5, 0.3, 0.6])
        counts.append(rng.multinomial(size, lean))
    counts = np.asarray(counts)
    rows = np.repeat(np.eye(4), counts.sum(axis=0), axis=0)

    clustered = cluster_bootstrap(counts, PAIRED_RATES[rate]).standard_error
    unclustered = cluster_bootstrap(rows, PAIRED_RATES[rate]).standard_error

    assert design_effect(counts, rate=rate) == pytest.approx(
        (clustered / unclustered) ** 2, rel=0.08
    )
    assert design_effect(counts, rate=rate) > 1.5


def test_design_effect_takes_a_ratio_of_ones_own():
    counts = [[2, 1, 0, 1], [0, 2, 1, 0], [3, 0, 0, 1], [1, 1, 1, 1]]
    own = CountRatio(numerator=(0, -1, 1, 0), denominator=(1, 1, 1, 1))

    assert design_effect(counts, rate=own) == design_effect(counts)


@pytest.mark.parametrize(
    ("counts", "rate"),
    [
        ([[3, 1, 0, 0]], "consistency"),
        ([[3, 0, 0, 0], [2, 0, 0, 0]], "consistency"),
        ([[0, 0, 1, 0], [0, 0, 1, 1]], "consistency_given_first_correct"),
    ],
)
def test_design_effect_of_what_does_not_vary_is_undefined(counts, rate):
    with pytest.warns(UndefinedMetricWarning, match="design effect is undefined"):
        effect = design_effect(counts, rate=rate)

    assert math.isnan(effect)


@pytest.mark.parametrize(
    ("counts", "rate", "error", "message"),
    [
        ([[1, 1, 1, 1]], "recall", ValueError, "one of consistency, flip_rate.*got 'recall'"),
        ([[1, 1, 1, 1]], 3, TypeError, "a name or a CountRatio; got int"),
        ([[1, 1, 1]], "consistency", ValueError, "shape"),
    ],
)
def test_design_effect_rejects_bad_input(counts, rate, error, message):
    with pytest.raises(error, match=message):
        design_effect(counts, rate=rate)
