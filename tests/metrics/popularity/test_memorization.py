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

texts = st.lists(st.sampled_from(["a b", "a c", "A b"]), min_size=1, max_size=20)


@settings(deadline=None)
@given(expected=texts, data=st.data())
def test_extraction_accuracy_agrees_with_a_naive_loop(expected, data):
    size = len(expected)
    generated = data.draw(
        st.lists(st.sampled_from(["a b", "a c", "A b"]), min_size=size, max_size=size)
    )

    result = extraction_accuracy(generated, expected)

    hits = sum(a == b for a, b in zip(generated, expected, strict=True))
    assert result == hits / size


def test_nothing_is_normalised():
    assert extraction_accuracy(["Paris ", "paris", "Paris"], ["Paris"] * 3) == 1 / 3


def test_tokens_are_compared_whatever_holds_them():
    assert extraction_accuracy([[1, 2], (3,)], [(1, 2), [3]]) == 1


def test_missing_continuations_are_left_out_and_counted():
    with pytest.warns(UnscoredWarning, match="1 of 3 instances lack a continuation"):
        result = extraction_accuracy(["a", None, "b"], ["a", "b", "c"], missing="drop")

    assert result == 0.5


@pytest.mark.parametrize(
    ("generated", "expected", "options", "error", "message"),
    [
        (["a"], ["a", "b"], {}, ValueError, "equally long; got 1 and 2"),
        ([None], ["a"], {}, ValueError, r"generated\[0\] is missing"),
        ([None], ["a"], {"missing": "drop"}, ValueError, "no continuation to compare"),
        ([], [], {}, ValueError, "no continuation to compare"),
        (["a"], [[1]], {}, TypeError, r"generated\[0\] and expected\[0\] must both be texts"),
        (["a"], ["a"], {"missing": "skip"}, ValueError, "missing must be"),
    ],
)
def test_extraction_accuracy_rejects_bad_input(generated, expected, options, error, message):
    with pytest.raises(error, match=message):
        extraction_accuracy(generated, expected, **options)


@settings(deadline=None)
@given(rows=st.lists(st.lists(st.floats(-20, 0), min_size=2, max_size=12), min_size=1, max_size=10))
def test_log_likelihood_of_the_second_half_is_a_sum(rows):
    """With half the tokens as prefix, the two halves add up to the whole."""
    sums = extraction_log_likelihood(rows)

    for row, total in zip(rows, sums, strict=True):
        second = row[len(row) // 2 :]
        assert total == pytest.approx(sum(second), abs=1e-9)
        assert total <= 0


def test_prefix_lengths_may_be_given():
    found = extraction_log_likelihood([[-1.0, -2.0, -4.0], [-1.0, -2.0]], prefix_lengths=[1, 0])

    assert found.tolist() == [-6.0, -3.0]


def test_instance_without_second_half_is_undefined():
    with pytest.warns(UndefinedMetricWarning, match="2 of 3 instances have no second half"):
        found = extraction_log_likelihood([[-1.0, -2.0], [-1.0], [None]], prefix_lengths=[2, 0, 0])

    assert [math.isnan(value) for value in found] == [True, False, True]


@pytest.mark.parametrize(
    ("rows", "options", "error", "message"),
    [
        ([[-1.0, 0.5]], {}, ValueError, r"log_likelihoods\[0\] must hold natural logarithms"),
        ([[-1.0, None]], {}, ValueError, "only the first token may lack one"),
        ([[[-1.0]]], {}, ValueError, "one number a token"),
        ([[-1.0]], {"prefix_lengths": [2]}, ValueError, r"prefix_lengths\[0\] is 2.* has 1 tokens"),
        ([[-1.0]], {"prefix_lengths": []}, ValueError, "got 0 for 1"),
        ([[-1.0]], {"prefix_lengths": [0.5]}, TypeError, r"prefix_lengths\[0\] must be an integer"),
    ],
)
def test_extraction_log_likelihood_rejects_bad_input(rows, options, error, message):
    with pytest.raises(error, match=message):
        extraction_log_likelihood(rows, **options)


@settings(deadline=None)
@given(rows=st.lists(st.lists(st.floats(-20, 0), min_size=1, max_size=12), min_size=1, max_size=10))
def test_membership_loss_is_the_mean_negative_log_likelihood(rows):
    losses = membership_loss(rows)

    assert losses == pytest.approx([-sum(row) / len(row) for row in rows], abs=1e-9)
    assert (losses >= 0).all()


def test_first_token_without_value_is_left_out():
    assert membership_loss([[None, -2.0, -4.0], [math.nan, -1.0]]).tolist() == [3.0, 1.0]


def test_loss_is_the_logarithm_of_the_perplexity():
    """Tokens of probability 1/8 each have a perplexity of 8."""
    assert math.exp(membership_loss([[math.log(1 / 8)] * 5])[0]) == pytest.approx(8)


def test_text_without_tokens_is_undefined():
    with pytest.warns(UndefinedMetricWarning, match="2 of 3 texts have no tokens"):
        losses = membership_loss([[], [None], [-1.0]])

    assert np.isnan(losses).tolist() == [True, True, False]


def test_membership_loss_rejects_losses():
    with pytest.raises(ValueError, match="natural logarithms of probabilities"):
        membership_loss([[2.3, 1.1]])


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
    """It does not see a constant that all losses of a text share."""
    losses = [loss for loss, _ in rows]
    neighbours = [row for _, row in rows]

    scores = neighbourhood_score(losses, neighbours)

    assert scores == pytest.approx([loss - np.mean(row) for loss, row in rows], abs=1e-9)
    shifted = neighbourhood_score(np.add(losses, shift), [np.add(row, shift) for row in neighbours])
    assert shifted == pytest.approx(scores, abs=1e-9)


def test_text_without_neighbours_is_undefined():
    with pytest.warns(UndefinedMetricWarning, match="1 of 2 texts have no neighbours"):
        scores = neighbourhood_score([1.0, 2.0], [[], [1.0]])

    assert math.isnan(scores[0])
    assert scores[1] == 1.0


@pytest.mark.parametrize(
    ("losses", "neighbours", "message"),
    [
        ([1.0], [[1.0], [2.0]], "one loss a text"),
        (1.0, [[1.0]], "one loss a text"),
        ([math.nan], [[1.0]], "text 0 has a loss that is not finite"),
        ([1.0], [[math.inf]], "text 0 has a loss that is not finite"),
    ],
)
def test_neighbourhood_score_rejects_bad_input(losses, neighbours, message):
    with pytest.raises(ValueError, match=message):
        neighbourhood_score(losses, neighbours)


def test_min_k_takes_the_least_likely_tokens():
    """Shi et al.: the lowest fifth of the tokens, one at least."""
    rows = [[None, -1.0, -5.0, -2.0, -4.0], [-3.0], [-1.0] * 9 + [-7.0, -9.0]]

    assert min_k_probability(rows).tolist() == [-5.0, -3.0, -8.0]
    assert min_k_probability(rows, k=1.0) == pytest.approx(-membership_loss(rows))


def test_min_k_plus_plus_standardises_by_the_vocabulary():
    """Zhang et al.: against a naive loop over a known distribution at each place."""
    rng = np.random.default_rng(0)
    told = np.log(rng.dirichlet(np.ones(7), size=12))
    rows, means, deviations = [told[:, 0].tolist()], [[]], [[]]
    for place in told:
        mean = sum(math.exp(value) * value for value in place)
        means[0].append(mean)
        deviations[0].append(sum(math.exp(v) * (v - mean) ** 2 for v in place) ** 0.5)
    standardised = [
        (value - mean) / spread
        for value, mean, spread in zip(rows[0], means[0], deviations[0], strict=True)
    ]

    found = min_k_plus_plus(rows, means, deviations, k=0.25)

    assert found[0] == pytest.approx(np.mean(sorted(standardised)[:3]))


def test_min_k_of_texts_without_tokens_and_of_certain_models():
    with pytest.warns(UndefinedMetricWarning, match="1 of 1 texts have no tokens"):
        assert np.isnan(min_k_probability([[None]])).all()
    assert min_k_plus_plus([[None, 0.0]], [[None, 0.0]], [[None, 0.0]]).tolist() == [0.0]


@pytest.mark.parametrize("k", [0.0, 1.5])
def test_min_k_rejects_a_share_out_of_range(k):
    with pytest.raises(ValueError, match="k is a share of the tokens"):
        min_k_probability([[-1.0]], k=k)


def test_min_k_plus_plus_rejects_other_lengths():
    with pytest.raises(ValueError, match="one number a token"):
        min_k_plus_plus([[-1.0]], [[-1.0, -2.0]], [[1.0]])
