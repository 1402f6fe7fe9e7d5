import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as npst
from scipy import stats
from scipy.optimize import OptimizeResult, linear_sum_assignment

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import (
    assignment_similarity,
    token_similarity,
    transport_similarity,
)
from tests.refusals import refusals

METRICS = ("pearson", "spearman", "containment", "iou")


@st.composite
def answers(draw, dtype, element):
    n_components = draw(st.integers(2, 7))
    shapes = [(draw(st.integers(1, 4)), n_components) for _ in range(2)]
    return [draw(npst.arrays(dtype, shape, elements=element)) for shape in shapes]


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
    """Equations 7 and 8, by counting."""
    short, long = data

    inside = token_similarity(short, long, metric="containment")
    over = token_similarity(short, long, metric="iou")

    for i, j in np.ndindex(inside.shape):
        first, second = set(np.flatnonzero(short[i])), set(np.flatnonzero(long[j]))
        common, least, both = len(first & second), min(len(first), len(second)), first | second
        assert inside[i, j] == pytest.approx(common / least if least else np.nan, nan_ok=True)
        assert over[i, j] == pytest.approx(common / len(both) if both else np.nan, nan_ok=True)


@pytest.mark.parametrize("metric", METRICS)
def test_token_similarity_is_symmetric_and_independent_of_order(metric):
    """Swapping the answers transposes the matrix; the order of components does not matter."""
    rng = np.random.default_rng(1)
    short, long = rng.normal(size=(5, 40)), rng.normal(size=(7, 40))
    if metric in ("containment", "iou"):
        short, long = short > 0.5, long > 0.5
    order = rng.permutation(40)

    matrix = token_similarity(short, long, metric=metric)

    assert token_similarity(long, short, metric=metric) == pytest.approx(matrix.T)
    assert token_similarity(short[:, order], long[:, order], metric=metric) == pytest.approx(matrix)
    itself = token_similarity(short, short, metric=metric)
    assert np.diag(itself) == pytest.approx(1.0)
    assert (np.abs(itself) <= 1.0).all()
    if metric == "spearman":
        changed = token_similarity(np.exp(short), long**3, metric=metric)
        assert changed == pytest.approx(matrix)


@pytest.mark.parametrize(
    ("short", "long", "metric", "places"),
    [
        ([[0.1] * 3, [0.1, 0.2, 0.4]], [[1, 2, 3], [3, 2, 1]], "pearson", [[1, 1], [0, 0]]),
        ([[False, False]], [[False, False], [True, False]], "iou", [[1, 0]]),
        ([[False, False]], [[False, True], [True, False]], "containment", [[1, 1]]),
    ],
)
def test_token_similarity_is_nan_without_components(short, long, metric, places):
    n, size = np.sum(places), np.size(places)

    with pytest.warns(UndefinedMetricWarning, match=f"{n} of {size} token similarities are undef"):
        matrix = token_similarity(short, long, metric=metric)

    assert np.isnan(matrix).astype(int).tolist() == places


matrices = st.tuples(st.integers(1, 6), st.integers(1, 6)).flatmap(
    lambda shape: npst.arrays(
        np.float64, shape, elements=st.integers(-100, 100).map(lambda k: k / 100)
    )
)


def by_copies(matrix):
    """Equal weights as an assignment: copy each token until both answers have equal length."""
    n_short, n_long = matrix.shape
    size = math.lcm(n_short, n_long)
    copies = np.kron(matrix, np.ones((size // n_short, size // n_long)))
    rows, columns = linear_sum_assignment(copies, maximize=True)
    return copies[rows, columns].mean()


@settings(deadline=None, max_examples=60)
@given(matrices, st.integers(0, 2**16))
def test_transport_similarity_agrees_with_pot_and_with_copied_tokens(matrix, seed):
    rng = np.random.default_rng(seed)
    rows, columns = (rng.permutation(size) for size in matrix.shape)

    similarity = transport_similarity(matrix)

    assert similarity == pytest.approx(by_copies(matrix), abs=1e-9)
    assert matrix.mean() - 1e-9 <= similarity <= matrix.max(axis=1).mean() + 1e-9
    assert transport_similarity(matrix.T) == pytest.approx(similarity)
    assert transport_similarity(matrix[rows][:, columns]) == pytest.approx(similarity)
    assert transport_similarity(matrix + 0.5) == pytest.approx(similarity + 0.5)
    ot = pytest.importorskip("ot")
    plan = ot.emd(*(np.full(size, 1 / size) for size in matrix.shape), -matrix)
    assert similarity == pytest.approx((plan * matrix).sum(), abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(matrices.filter(lambda matrix: max(matrix.shape) <= 5))
def test_assignment_similarity_agrees_with_all_matchings(matrix):
    """The two aggregations of the paper differ only if answers differ in length."""
    tall = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    fewer, more = tall.shape
    best = max(
        sum(tall[i, j] for i, j in enumerate(chosen))
        for chosen in itertools.permutations(range(more), fewer)
    )

    ignored = assignment_similarity(matrix)

    assert ignored == pytest.approx(best / fewer)
    assert assignment_similarity(matrix, unmatched="zero") == pytest.approx(best / more)
    assert ignored >= transport_similarity(matrix) - 1e-9
    square = matrix[:fewer, :fewer]
    assert transport_similarity(square) == pytest.approx(assignment_similarity(square))


test_token_similarity_rejects_bad_input = refusals(
    lambda short, long, metric: token_similarity(short, long, metric=metric),
    ([[1, 2]], [[1, 2, 3]], "pearson", "same components; got 2 and 3"),
    ([1, 2], [[1, 2]], "pearson", r"short must have shape .*; got \(2,\)"),
    ([["a", "b"]], [[1, 2]], "pearson", TypeError, "short must contain importances"),
    (np.empty((0, 2)), [[1, 2]], "pearson", r"got \(0, 2\)"),
    ([[1, np.nan]], [[1, 2]], "spearman", r"short\[0, 1\] is not finite"),
    ([[1]], [[2]], "pearson", "a correlation needs at least two components"),
    ([[1, 0]], [[True, False]], "iou", TypeError, "short must contain True or False"),
    ([[True, False]], [[0.1, 0.2]], "pearson", TypeError, "short must contain importances"),
    ([[1, 2]], [[1, 2]], "cosine", "metric must be 'pearson', 'spearman'"),
)


@pytest.mark.parametrize("function", [transport_similarity, assignment_similarity])
@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([], "matrix must have shape"),
        ([[]], r"\(n_short_tokens, n_long_tokens\) and not be empty; got \(1, 0\)"),
        ([0.5], r"not be empty; got \(1,\)"),
        ([[0.5, float("nan")]], r"matrix\[0, 1\] is not finite \(nan\): drop undefined tokens"),
        ([[float("inf")]], r"matrix\[0, 0\] is not finite \(inf\)"),
    ],
)
def test_aggregations_reject_bad_matrices(function, matrix, message):
    with pytest.raises(ValueError, match=message):
        function(matrix)


def test_aggregations_reject_an_unknown_rule_and_a_plan_that_is_not_found(monkeypatch):
    with pytest.raises(ValueError, match="unmatched must be 'ignore' or 'zero'; got 'drop'"):
        assignment_similarity([[0.5]], unmatched="drop")
    monkeypatch.setattr(
        "surface_consistency.metrics.components.answer_similarity.linprog",
        lambda *_, **__: OptimizeResult(x=None, message="time limit"),
    )
    with pytest.raises(RuntimeError, match="the transport plan could not be found: time limit"):
        transport_similarity([[0.5, 0.1], [0.2, 0.3]])
