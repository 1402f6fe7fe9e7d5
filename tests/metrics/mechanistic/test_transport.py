import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.optimize import OptimizeResult, linear_sum_assignment

from surface_consistency.metrics.mechanistic.assignment import assignment_similarity
from surface_consistency.metrics.mechanistic.token_similarity import token_similarity
from surface_consistency.metrics.mechanistic.transport import transport_similarity

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

    assert result.similarity == pytest.approx(by_copies(matrix), abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(matrices, st.integers(0, 2**16))
def test_transport_similarity_agrees_with_pot(matrix, seed):
    ot = pytest.importorskip("ot")
    rng = np.random.default_rng(seed)
    weights = [rng.dirichlet(np.ones(size)) for size in matrix.shape]

    result = transport_similarity(matrix, short_weights=weights[0], long_weights=weights[1])

    plan = ot.emd(*weights, -matrix)
    assert result.similarity == pytest.approx((plan * matrix).sum(), abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(matrices)
def test_transport_plan_obeys_its_constraints(matrix):
    """Every token hands out exactly its weight, and the similarity is a mean of entries."""
    result = transport_similarity(matrix)

    n_short, n_long = matrix.shape
    assert (result.plan >= 0).all()
    assert result.plan.sum(axis=1) == pytest.approx(1 / n_short)
    assert result.plan.sum(axis=0) == pytest.approx(1 / n_long)
    assert matrix.mean() - 1e-9 <= result.similarity <= matrix.max() + 1e-9
    assert result.similarity <= matrix.max(axis=1).mean() + 1e-9


@settings(deadline=None, max_examples=40)
@given(matrices, st.integers(0, 2**16))
def test_transport_similarity_is_symmetric_and_free_of_order(matrix, seed):
    rng = np.random.default_rng(seed)
    rows, columns = (rng.permutation(size) for size in matrix.shape)

    similarity = transport_similarity(matrix).similarity

    assert transport_similarity(matrix.T).similarity == pytest.approx(similarity)
    assert transport_similarity(matrix[rows][:, columns]).similarity == pytest.approx(similarity)
    assert transport_similarity(matrix + 0.5).similarity == pytest.approx(similarity + 0.5)


@settings(deadline=None, max_examples=40)
@given(matrices)
def test_transport_and_assignment_agree_for_equal_lengths(matrix):
    """The two aggregations of the paper differ only where answers differ in length."""
    size = min(matrix.shape)

    square, whole = matrix[:size, :size], assignment_similarity(matrix)

    assert transport_similarity(square).similarity == pytest.approx(
        assignment_similarity(square).similarity
    )
    assert whole.similarity >= transport_similarity(matrix).similarity - 1e-9


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

    assert ignored.similarity == pytest.approx(best / fewer)
    assert as_zero.similarity == pytest.approx(best / more)
    assert ignored.n_unmatched == as_zero.n_unmatched == more - fewer
    assert len(ignored.pairs) == fewer
    assert sum(matrix[pair] for pair in ignored.pairs) == pytest.approx(best)


def test_identical_answers_are_fully_similar_in_any_order():
    """The same tokens in another order transport onto themselves."""
    rng = np.random.default_rng(5)
    short = rng.normal(size=(6, 30))

    for metric in ("pearson", "spearman"):
        matrix = token_similarity(short, short[rng.permutation(6)], metric=metric)
        assert transport_similarity(matrix).similarity == pytest.approx(1.0)
        assert assignment_similarity(matrix).similarity == pytest.approx(1.0)


def test_transport_weights_need_not_sum_to_one():
    matrix = [[0.9, 0.1], [0.2, 0.6]]

    counts = transport_similarity(matrix, short_weights=[3, 1])
    shares = transport_similarity(matrix, short_weights=[0.75, 0.25])

    assert counts.similarity == pytest.approx(shares.similarity)
    assert counts.plan.sum(axis=1) == pytest.approx([0.75, 0.25])


def test_transport_similarity_takes_a_single_token():
    assert transport_similarity([[0.5, 0.9]]).similarity == pytest.approx(0.7)
    assert assignment_similarity([[0.5, 0.9]]).similarity == 0.9
    assert transport_similarity([[0.3]]).plan.tolist() == [[1.0]]


@pytest.mark.parametrize("function", [transport_similarity, assignment_similarity])
@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([], "matrix must have shape"),
        ([[]], r"a token on each side; got \(1, 0\)"),
        ([0.5], r"a token on each side; got \(1,\)"),
        ([[0.5, float("nan")]], r"matrix\[0, 1\] is nan: leave out tokens"),
        ([[float("inf")]], r"matrix\[0, 0\] is inf"),
    ],
)
def test_aggregations_reject_bad_matrices(function, matrix, message):
    with pytest.raises(ValueError, match=message):
        function(matrix)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"short_weights": [1, 1, 1]}, r"short_weights must have shape \(2,\); got \(3,\)"),
        ({"long_weights": [1, -1]}, "long_weights must be finite, at least 0, and not all 0"),
        ({"long_weights": [0, 0]}, "long_weights must be finite"),
        ({"short_weights": [1, float("nan")]}, "short_weights must be finite"),
    ],
)
def test_transport_similarity_rejects_bad_weights(options, message):
    with pytest.raises(ValueError, match=message):
        transport_similarity([[0.5, 0.1], [0.2, 0.3]], **options)


def test_assignment_similarity_rejects_an_unknown_rule():
    with pytest.raises(ValueError, match="unmatched must be 'ignore' or 'zero'; got 'drop'"):
        assignment_similarity([[0.5]], unmatched="drop")


def test_transport_similarity_says_when_it_cannot_be_solved(monkeypatch):
    monkeypatch.setattr(
        "scipy.optimize.linprog", lambda *_, **__: OptimizeResult(x=None, message="time limit")
    )

    with pytest.raises(RuntimeError, match="the transport plan could not be found: time limit"):
        transport_similarity([[0.5, 0.1], [0.2, 0.3]])
