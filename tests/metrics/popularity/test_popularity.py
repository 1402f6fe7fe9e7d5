import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import (
    PopularityScale,
    fit_popularity_scale,
    instance_popularity,
    relative_difference,
)
from tests.refusals import refusals


@settings(deadline=None)
@given(
    counts=st.lists(st.integers(0, 10**9), min_size=1, max_size=60),
    n_bins=st.integers(2, 12),
    data=st.data(),
)
def test_popularity_agrees_with_a_naive_loop(counts, n_bins, data):
    """The bin of a count is one more than the number of inner quantiles below it."""
    order = data.draw(st.permutations(counts))
    quantiles = [np.quantile(counts, k / n_bins) for k in range(1, n_bins)]

    scale = fit_popularity_scale(counts, n_bins=n_bins)

    expected = [1 + sum(edge < count for edge in quantiles) for count in counts]
    assert scale.popularity(counts).tolist() == expected
    assert scale.n_bins == n_bins
    assert fit_popularity_scale(order, n_bins=n_bins).edges == pytest.approx(scale.edges)
    assert (np.diff(scale.popularity(sorted(counts))) >= 0).all()


@pytest.mark.parametrize(
    ("counts", "popularity"),
    [
        # Six of ten n-grams are not in the corpus: their popularity is 1, the next one's 7.
        ([0, 0, 0, 0, 0, 0, 3, 5, 8, 13], [1, 1, 1, 1, 1, 1, 7, 8, 9, 10]),
        ([7, 7, 7], [1, 1, 1]),
        (np.arange(1000) ** 2, np.repeat(np.arange(1, 11), 100).tolist()),
    ],
)
def test_deciles_contain_a_tenth_each_and_ties_are_in_the_lowest_bin(counts, popularity):
    assert fit_popularity_scale(counts).popularity(counts).tolist() == popularity


@settings(deadline=None)
@given(rows=st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=8), min_size=1, max_size=9))
def test_instance_popularity_is_the_mean_over_its_ngrams(rows):
    scale = fit_popularity_scale([count for row in rows for count in row])

    scores = instance_popularity(rows)

    expected = [np.mean(scale.popularity(row)) for row in rows]
    assert scores == pytest.approx(expected, abs=1e-12)
    assert ((scores >= 1) & (scores <= 10)).all()


def test_perturbed_instances_are_scored_on_the_scale_of_the_original():
    original = [[5, 9, 40], [80, 100, 7], [3, 60, 20]]
    perturbed = [[0, 1, 2], [0, 0, 7], [1, 2, 3]]
    scale = fit_popularity_scale(np.concatenate(original))

    before = instance_popularity(original, scale=scale)
    after = instance_popularity(perturbed, scale=scale)

    assert (after < before).all()
    assert instance_popularity(perturbed).mean() > after.mean()


@settings(deadline=None)
@given(pairs=st.lists(st.tuples(st.floats(1, 10), st.floats(1, 10)), min_size=1, max_size=20))
def test_relative_difference_is_bounded_for_popularity(pairs):
    correct, wrong = np.transpose(pairs)

    values = relative_difference(correct, wrong)

    assert values == pytest.approx([(c - w) / c for c, w in pairs], abs=1e-12)
    assert ((values >= -9 - 1e-9) & (values <= 0.9 + 1e-9)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: instance_popularity([[], [4, 9]]), "1 of 2 instances have no n-gram"),
        (lambda: relative_difference([0.0, -2.0], [1.0, -3.0]), "1 correct scores of 0"),
    ],
)
def test_undefined_values_are_nan_with_a_warning(call, message):
    with pytest.warns(UndefinedMetricWarning, match=message):
        values = call()

    assert np.isnan(values).tolist() == [True, False]


test_popularity_rejects_bad_input = refusals(
    lambda call: call(),
    (lambda: fit_popularity_scale([]), "counts must be one-dimensional and not empty"),
    (lambda: fit_popularity_scale([[1, 2]]), "counts must be one-dimensional and not empty"),
    (lambda: fit_popularity_scale([1, -2]), "at least 0; got -2"),
    (lambda: fit_popularity_scale([1, 2, np.inf]), r"counts\[2\] is infinite"),
    (lambda: instance_popularity([[1, 2], [np.inf]]), r"counts\[1\] has an infinite"),
    (lambda: fit_popularity_scale([1, np.nan]), "at least 0; got nan"),
    (lambda: fit_popularity_scale([1, 2], n_bins=1), "n_bins must be at least 2"),
    (lambda: PopularityScale(edges=(1.5, 1.0)), "must not decrease"),
    (lambda: PopularityScale(edges=()), "finite numbers"),
    (lambda: PopularityScale(edges=(np.inf,)), "finite numbers"),
    (lambda: PopularityScale(edges=(1.0,)).popularity([-1]), "at least 0"),
    (lambda: instance_popularity([[1], [[2]]]), r"counts\[1\] must be one-dimensional"),
    (lambda: instance_popularity([]), "counts must be one-dimensional and not empty"),
    (lambda: relative_difference([1.0], [1.0, 2.0]), "equally long"),
    (lambda: relative_difference(1.0, 2.0), "one-dimensional"),
)
