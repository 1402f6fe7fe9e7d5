import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import (
    extraction_accuracy,
    membership_loss,
    min_k_plus_plus,
    min_k_probability,
    neighbourhood_score,
)
from surface_consistency.metrics.popularity.memorization import extraction_log_likelihood
from tests.refusals import refusals

pairs = st.tuples(*[st.sampled_from(["a b", "a c", "A b"])] * 2)
token_rows = st.lists(st.lists(st.floats(-20, 0), min_size=2, max_size=12), min_size=1, max_size=10)


@given(rows=st.lists(pairs, min_size=1, max_size=20))
def test_extraction_accuracy_agrees_with_a_naive_loop(rows):
    generated, expected = zip(*rows, strict=True)

    assert extraction_accuracy(generated, expected) == np.mean([a == b for a, b in rows])


def test_continuations_are_compared_without_normalisation():
    assert extraction_accuracy(["Paris ", "paris", "Paris"], ["Paris"] * 3) == 1 / 3
    assert extraction_accuracy([[1, 2], (3,)], [(1, 2), [3]]) == 1
    with pytest.warns(UnscoredWarning, match="1 of 3 instances lack a continuation"):
        result = extraction_accuracy(["a", None, "b"], ["a", "b", "c"], missing="drop")
    assert result == 0.5


@settings(deadline=None)
@given(rows=token_rows)
def test_likelihoods_agree_with_naive_sums(rows):
    """With half the tokens as prefix; the loss is that of all tokens."""
    second = [sum(row[len(row) // 2 :]) for row in rows]

    assert extraction_log_likelihood(rows) == pytest.approx(second, abs=1e-9)
    expected = [-sum(row) / len(row) for row in rows]
    assert membership_loss(rows) == pytest.approx(expected, abs=1e-9)
    assert min_k_probability(rows, k=1.0) == pytest.approx(-membership_loss(rows))


def test_likelihoods_of_examples():
    rows = [[-1.0, -2.0, -4.0], [-1.0, -2.0]]
    assert extraction_log_likelihood(rows, prefix_lengths=[1, 0]).tolist() == [-6.0, -3.0]
    # A first token without a value is excluded.
    assert membership_loss([[None, -2.0, -4.0], [math.nan, -1.0]]).tolist() == [3.0, 1.0]
    # Tokens of probability 1/8 each have a perplexity of 8.
    assert math.exp(membership_loss([[math.log(1 / 8)] * 5])[0]) == pytest.approx(8)
    # Shi et al.: the lowest fifth of the tokens, one at least.
    rows = [[None, -1.0, -5.0, -2.0, -4.0], [-3.0], [-1.0] * 9 + [-7.0, -9.0]]
    assert min_k_probability(rows).tolist() == [-5.0, -3.0, -8.0]


@settings(deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.floats(0, 9), st.lists(st.floats(0, 9), min_size=1, max_size=6)),
        min_size=1,
        max_size=10,
    ),
    shift=st.floats(-3, 3),
)
def test_neighbourhood_score_is_a_difference_of_losses(rows, shift):
    """It does not depend on a constant that all losses of a text share."""
    losses, neighbours = zip(*rows, strict=True)

    scores = neighbourhood_score(losses, neighbours)

    assert scores == pytest.approx([loss - np.mean(row) for loss, row in rows], abs=1e-9)
    shifted = neighbourhood_score(np.add(losses, shift), [np.add(row, shift) for row in neighbours])
    assert shifted == pytest.approx(scores, abs=1e-9)


def test_min_k_plus_plus_standardises_by_the_vocabulary():
    """Zhang et al.: compared with a naive loop over a known distribution at each position."""
    rng = np.random.default_rng(0)
    places = np.log(rng.dirichlet(np.ones(7), size=12))
    rows, means, deviations = [places[:, 0].tolist()], [[]], [[]]
    for place in places:
        mean = sum(math.exp(value) * value for value in place)
        means[0].append(mean)
        deviations[0].append(sum(math.exp(v) * (v - mean) ** 2 for v in place) ** 0.5)
    standardised = (np.array(rows[0]) - means[0]) / deviations[0]

    found = min_k_plus_plus(rows, means, deviations, k=0.25)

    assert found[0] == pytest.approx(np.mean(sorted(standardised)[:3]))
    # A certain model has deviation 0.
    assert min_k_plus_plus([[None, 0.0]], [[None, 0.0]], [[None, 0.0]]).tolist() == [0.0]


extraction, likelihood = extraction_accuracy, extraction_log_likelihood
TOKENS = [[-1.0, -2.0], [-1.0], [None]]


@pytest.mark.parametrize(
    ("function", "arguments", "message", "is_nan"),
    [
        (likelihood, (TOKENS, [2, 0, 0]), "2 of 3 instances have no second half", [1, 0, 1]),
        (membership_loss, ([[], [None], [-1.0]],), "2 of 3 texts have no tokens", [1, 1, 0]),
        (min_k_probability, ([[None]],), "1 of 1 texts have no tokens", [1]),
        (neighbourhood_score, ([1, 2], [[], [1]]), "1 of 2 texts have no neighbours", [1, 0]),
    ],
)
def test_texts_without_tokens_are_nan_with_a_warning(function, arguments, message, is_nan):
    options = {"prefix_lengths": arguments[1]} if function is likelihood else {}
    arguments = arguments[:1] if options else arguments

    with pytest.warns(UndefinedMetricWarning, match=message) as caught:
        scores = function(*arguments, **options)

    assert np.isnan(scores).tolist() == is_nan
    assert caught[0].filename == __file__


test_bad_input_is_rejected = refusals(
    lambda call: call(),
    (lambda: extraction(["a"], ["a", "b"]), "equally long; got 1 and 2"),
    (lambda: extraction([None], ["a"]), r"generated\[0\] is missing"),
    (lambda: extraction([None], ["a"], missing="drop"), "no continuation to comp"),
    (lambda: extraction([], []), "no continuation to compare"),
    (lambda: extraction(["a"], [[1]]), TypeError, r"expected\[0\] must both be texts"),
    (lambda: extraction(["a"], ["a"], missing="skip"), "missing must be"),
    (lambda: likelihood([[-1.0, 0.5]]), r"log_likelihoods\[0\] must be natural"),
    (lambda: likelihood([[-1.0, None]]), "only the first token may be missing"),
    (lambda: likelihood([[[-1.0]]]), "one number per token"),
    (lambda: likelihood([[-1.0]], prefix_lengths=[2]), r"\[0\] is 2.* has 1 tok"),
    (lambda: likelihood([[-1.0]], prefix_lengths=[]), "got 0 for 1"),
    (lambda: likelihood([[-1.0]], prefix_lengths=[0.5]), TypeError, r"\[0\] must be an integ"),
    (lambda: membership_loss([[2.3, 1.1]]), "natural logarithms of probabilities"),
    (lambda: neighbourhood_score([1.0], [[1.0], [2.0]]), "one loss per text"),
    (lambda: neighbourhood_score(1.0, [[1.0]]), "one loss per text"),
    (lambda: neighbourhood_score([math.nan], [[1.0]]), "text 0 has a loss that is"),
    (lambda: neighbourhood_score([1.0], [[math.inf]]), "text 0 has a loss that is"),
    (lambda: min_k_probability([[-1.0]], k=0.0), "k must be a proportion"),
    (lambda: min_k_probability([[-1.0]], k=1.5), "k must be a proportion"),
    (lambda: min_k_plus_plus([[-1.0]], [[-1.0, -2.0]], [[1.0]]), "one number per t"),
    (lambda: min_k_plus_plus([[-1.0]], [[-1.0]], [[-1.0]]), "at least 0"),
)
