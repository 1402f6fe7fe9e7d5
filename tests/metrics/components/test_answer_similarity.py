import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as npst
from scipy import stats
from scipy.optimize import OptimizeResult, linear_sum_assignment

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics.components.answer_similarity import (
    _best_plan,
    assignment_similarity,
    token_similarity,
    transport_similarity,
)

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
        first, second = set(np.flatnonzero(short[i])), set(np.flatnonzero(long[j]))
        common, least, both = len(first & second), min(map(len, (first, second))), first | second
        assert inside[i, j] == pytest.approx(common / least if least else np.nan, nan_ok=True)
        assert over[i, j] == pytest.approx(common / len(both) if both else np.nan, nan_ok=True)


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
        ([[1, 2]], [[1, 2]], "cosine", ValueError, "metric must be 'pearson', 'spearman"),
    ],
)
def test_token_similarity_rejects_bad_input(short, long, metric, error, message):
    with pytest.raises(error, match=message):
        token_similarity(short, long, metric=metric)


matrices = st.tuples(st.integers(1, 6), st.integers(1, 6)).flatmap(
    lambda shape: npst.arrays(
        np.float64, shape, elements=st.integers(-100, 100).map(lambda k: k / 100)
    )
)


def by_copies(matrix):
    """Equal weights as an assignment: copy each token until both answers are equally long."""
    n_short, n_long = matrix.shape
    size = math.lcm(n_short, n_long)
    copies = np.kron(matrix, np.ones((size // n_short, size // n_long)))
    rows, columns = linear_sum_assignment(copies, maximize=True)
    return copies[rows, columns].mean()


@settings(deadline=None, max_examples=60)
@given(matrices)
def test_transport_similarity_agrees_with_copied_tokens(matrix):
    result = transport_similarity(matrix)

    assert result == pytest.approx(by_copies(matrix), abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(matrices)
def test_transport_similarity_agrees_with_pot(matrix):
    ot = pytest.importorskip("ot")
    weights = [np.full(size, 1 / size) for size in matrix.shape]

    result = transport_similarity(matrix)

    plan = ot.emd(*weights, -matrix)
    assert result == pytest.approx((plan * matrix).sum(), abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(matrices)
def test_transport_plan_obeys_its_constraints(matrix):
    """Every token hands out exactly its weight, and the similarity is a mean of entries."""
    similarity = transport_similarity(matrix)

    weights = [np.full(size, 1 / size) for size in matrix.shape]
    plan = _best_plan(matrix)
    assert (plan >= 0).all()
    assert plan.sum(axis=1) == pytest.approx(weights[0])
    assert plan.sum(axis=0) == pytest.approx(weights[1])
    assert matrix.mean() - 1e-9 <= similarity <= matrix.max() + 1e-9
    assert similarity <= matrix.max(axis=1).mean() + 1e-9


@settings(deadline=None, max_examples=40)
@given(matrices, st.integers(0, 2**16))
def test_transport_similarity_is_symmetric_and_free_of_order(matrix, seed):
    rng = np.random.default_rng(seed)
    rows, columns = (rng.permutation(size) for size in matrix.shape)

    similarity = transport_similarity(matrix)

    assert transport_similarity(matrix.T) == pytest.approx(similarity)
    assert transport_similarity(matrix[rows][:, columns]) == pytest.approx(similarity)
    assert transport_similarity(matrix + 0.5) == pytest.approx(similarity + 0.5)


@settings(deadline=None, max_examples=40)
@given(matrices)
def test_transport_and_assignment_agree_for_equal_lengths(matrix):
    """The two aggregations of the paper differ only where answers differ in length."""
    size = min(matrix.shape)

    square, whole = matrix[:size, :size], assignment_similarity(matrix)

    assert transport_similarity(square) == pytest.approx(assignment_similarity(square))
    assert whole >= transport_similarity(matrix) - 1e-9


@settings(deadline=None, max_examples=60)
@given(matrices.filter(lambda matrix: max(matrix.shape) <= 5))
def test_assignment_similarity_agrees_with_all_matchings(matrix):
    tall = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    fewer, more = tall.shape
    best = max(
        sum(tall[i, j] for i, j in enumerate(chosen))
        for chosen in itertools.permutations(range(more), fewer)
    )

    ignored = assignment_similarity(matrix)
    as_zero = assignment_similarity(matrix, unmatched="zero")

    assert ignored == pytest.approx(best / fewer)
    assert as_zero == pytest.approx(best / more)


def test_identical_answers_are_fully_similar_in_any_order():
    """The same tokens in another order transport onto themselves."""
    rng = np.random.default_rng(5)
    short = rng.normal(size=(6, 30))

    for metric in ("pearson", "spearman"):
        matrix = token_similarity(short, short[rng.permutation(6)], metric=metric)
        assert transport_similarity(matrix) == pytest.approx(1.0)
        assert assignment_similarity(matrix) == pytest.approx(1.0)


def test_transport_similarity_takes_a_single_token():
    assert transport_similarity([[0.5, 0.9]]) == pytest.approx(0.7)
    assert assignment_similarity([[0.5, 0.9]]) == 0.9


@pytest.mark.parametrize("function", [transport_similarity, assignment_similarity])
@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([], "matrix must have shape"),
        ([[]], r"\(n_short_tokens, n_long_tokens\) and hold something; got \(1, 0\)"),
        ([0.5], r"hold something; got \(1,\)"),
        ([[0.5, float("nan")]], r"matrix\[0, 1\] is not finite \(nan\): leave undefined tokens"),
        ([[float("inf")]], r"matrix\[0, 0\] is not finite \(inf\)"),
    ],
)
def test_aggregations_reject_bad_matrices(function, matrix, message):
    with pytest.raises(ValueError, match=message):
        function(matrix)


def test_assignment_similarity_rejects_an_unknown_rule():
    with pytest.raises(ValueError, match="unmatched must be 'ignore' or 'zero'; got 'drop'"):
        assignment_similarity([[0.5]], unmatched="drop")


def test_transport_similarity_says_when_it_cannot_be_solved(monkeypatch):
    monkeypatch.setattr(
        "surface_consistency.metrics.components.answer_similarity.linprog",
        lambda *_, **__: OptimizeResult(x=None, message="time limit"),
    )

    with pytest.raises(RuntimeError, match="the transport plan could not be found: time limit"):
        transport_similarity([[0.5, 0.1], [0.2, 0.3]])
