import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import stats

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics.mechanistic.component_overlap import (
    containment,
    intersection_over_union,
)
from surface_consistency.metrics.mechanistic.token_similarity import token_similarity

METRICS = ("pearson", "spearman", "containment", "iou")


@st.composite
def answers(draw, dtype, element):
    n_components = draw(st.integers(2, 7))
    shapes = [(draw(st.integers(1, 4)), n_components) for _ in range(2)]
    return [draw(npst.arrays(dtype, shape, elements=element)) for shape in shapes]


def random_answers(seed, metric, shape=(5, 7, 40)):
    rng = np.random.default_rng(seed)
    short, long = rng.normal(size=shape[::2]), rng.normal(size=shape[1:])
    return (short > 0.5, long > 0.5) if metric in ("containment", "iou") else (short, long)


@settings(max_examples=60, deadline=None)
@given(answers(np.int64, st.integers(-20, 20)), st.sampled_from(["pearson", "spearman"]))
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
@pytest.mark.filterwarnings("ignore::scipy.stats.ConstantInputWarning")
def test_correlations_agree_with_scipy(data, metric):
    short, long = data
    reference = {"pearson": stats.pearsonr, "spearman": stats.spearmanr}[metric]

    matrix = token_similarity(short, long, metric=metric)

    for (i, j), value in np.ndenumerate(matrix):
        expected = float(reference(short[i], long[j]).statistic)
        assert value == pytest.approx(expected, abs=1e-9, nan_ok=True)


@given(answers(np.bool_, st.booleans()))
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_overlaps_agree_with_those_of_sets(data):
    short, long = data

    inside = token_similarity(short, long, metric="containment")
    over = token_similarity(short, long, metric="iou")

    for i, j in np.ndindex(inside.shape):
        sets = set(np.flatnonzero(short[i])), set(np.flatnonzero(long[j]))
        assert inside[i, j] == pytest.approx(containment(*sets), nan_ok=True)
        assert over[i, j] == pytest.approx(intersection_over_union(*sets), nan_ok=True)


@pytest.mark.parametrize("metric", METRICS)
def test_token_similarity_is_symmetric_and_free_of_order(metric):
    """Swapping the answers transposes the matrix; components may stand in any order."""
    short, long = random_answers(1, metric)
    order = np.random.default_rng(1).permutation(short.shape[1])

    matrix = token_similarity(short, long, metric=metric)

    assert token_similarity(long, short, metric=metric) == pytest.approx(matrix.T)
    assert token_similarity(short[:, order], long[:, order], metric=metric) == pytest.approx(matrix)
    assert matrix[2, 3] == pytest.approx(
        token_similarity(short[[2]], long[[3]], metric=metric)[0, 0]
    )


@pytest.mark.parametrize("metric", METRICS)
def test_token_similarity_of_a_token_with_itself_is_one(metric):
    short, _ = random_answers(2, metric)

    matrix = token_similarity(short, short, metric=metric)

    assert np.diag(matrix) == pytest.approx(1.0)
    assert (np.abs(matrix) <= 1.0).all()


def test_spearman_is_free_of_monotone_change():
    short, long = random_answers(3, "spearman")

    assert token_similarity(np.exp(short), long**3, metric="spearman") == pytest.approx(
        token_similarity(short, long, metric="spearman")
    )


def test_token_similarity_is_nan_where_nothing_is_measured():
    with pytest.warns(UndefinedMetricWarning, match="2 of 4 token similarities are undefined"):
        matrix = token_similarity(
            [[0.1, 0.1, 0.1], [0.1, 0.2, 0.4]], [[1, 2, 3], [3, 2, 1]], metric="pearson"
        )

    assert np.isnan(matrix).tolist() == [[True, True], [False, False]]
    with pytest.warns(UndefinedMetricWarning, match="1 of 2 token similarities"):
        matrix = token_similarity([[False, False]], [[False, False], [True, False]], metric="iou")
    assert matrix[0, 1] == 0.0
    with pytest.warns(UndefinedMetricWarning, match="2 of 2 token similarities"):
        token_similarity([[False, False]], [[False, True], [True, False]], metric="containment")


@pytest.mark.parametrize(
    ("short", "long", "metric", "error", "message"),
    [
        ([[1, 2]], [[1, 2, 3]], "pearson", ValueError, "same components; got 2 and 3"),
        ([1, 2], [[1, 2]], "pearson", ValueError, r"short must have shape .*; got \(2,\)"),
        ([["a", "b"]], [[1, 2]], "pearson", TypeError, "short must hold importances"),
        (np.empty((0, 2)), [[1, 2]], "pearson", ValueError, r"got \(0, 2\)"),
        ([[1, np.nan]], [[1, 2]], "spearman", ValueError, r"short\[0, 1\] is not finite"),
        ([[1]], [[2]], "pearson", ValueError, "a correlation needs two components or more"),
        ([[1, 0]], [[True, False]], "iou", TypeError, "short must hold True or False"),
        ([[True, False]], [[0.1, 0.2]], "pearson", TypeError, "short must hold importances"),
        ([[1, 2]], [[1, 2]], "cosine", ValueError, "metric must be pearson, spearman"),
    ],
)
def test_token_similarity_rejects_bad_input(short, long, metric, error, message):
    with pytest.raises(error, match=message):
        token_similarity(short, long, metric=metric)
