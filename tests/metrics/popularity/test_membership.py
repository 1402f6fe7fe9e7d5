import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import membership_loss, neighbourhood_score


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
