import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from surface_consistency.metrics import form_answers_by, rank_agreement
from tests.metrics.harness import long

ROWS = [("a", "xxyy"), ("b", "zzzz"), ("c", "xyzw"), ("d", "xx"), ("e", "q")]


@pytest.fixture
def frame():
    """Answers of five facts in up to four forms."""
    rows = [(fact, form, one) for fact, answers in ROWS for form, one in enumerate(answers)]
    return pd.DataFrame(rows, columns=["item", "form", "answer"])


def test_agreement_is_the_mean_over_facts_of_equal_pairs(frame):
    row = form_answers_by(frame).iloc[0]

    assert row["same_answer"] == pytest.approx((2 / 6 + 1 + 0 + 1) / 4)
    assert (row["n_items"], row["n_single"], row["n_answers"]) == (4, 1, 14)


def test_kappa_agrees_with_statsmodels_for_equal_numbers_of_forms():
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")
    rng = np.random.default_rng(0)
    answers = rng.integers(0, 3, (50, 4)) * rng.integers(0, 2, (50, 1))
    counted, _ = inter_rater.aggregate_raters(answers)

    kappa = form_answers_by(long(answers, "answer"))["kappa"].iloc[0]
    assert kappa == pytest.approx(inter_rater.fleiss_kappa(counted))


def test_bounds_of_kappa_equal_the_jackknife():
    answers = np.random.default_rng(2).integers(0, 3, (12, 4))
    frame = long(answers, "answer")
    row = form_answers_by(frame).iloc[0]

    left = [form_answers_by(frame[frame["item"] != one])["kappa"].iloc[0] for one in range(12)]
    error = np.sqrt(11 / 12 * ((left - np.mean(left)) ** 2).sum())
    assert row["kappa_high"] - row["kappa"] == pytest.approx(2.200985 * error, rel=1e-6)


def test_missing_answers_are_counted_and_excluded(frame):
    frame.loc[frame["item"] == "b", "answer"] = [None, None, None, "z"]
    row = form_answers_by(frame).iloc[0]

    assert (row["n_missing"], row["n_single"]) == (3, 2)
    assert row["same_answer"] == pytest.approx((2 / 6 + 0 + 1) / 3)


@pytest.mark.parametrize(
    ("n", "chance"),
    # sum_j softmax(N, ..., 1)_j j / N, by hand: .731 / 2 + .269 for N = 2.
    [(1, 1.0), (2, 0.6345), (3, 0.4749), (10, 0.1581)],
)
def test_chance_agreement_of_rankings_decreases_with_the_number_of_candidates(n, chance):
    ranking = list(range(n))
    assert rank_agreement([ranking], [ranking])[0] == pytest.approx([1.0, chance], abs=1e-4)


def test_random_rankings_agree_by_chance():
    rng = np.random.default_rng(3)
    first, second = (rng.permuted(np.tile(np.arange(6), (4000, 1)), axis=1) for _ in "ab")
    agreement, chance = rank_agreement(first.tolist(), second.tolist()).mean(axis=0)

    assert agreement == pytest.approx(chance, abs=0.01)


def test_the_same_first_candidate_gives_most_of_the_agreement():
    # Ten candidates with the same first one, the rest random: .83 (Qi et al. weigh the first .63).
    rng = np.random.default_rng(4)
    first, second = (
        [[0, *rng.permutation(np.arange(1, 10)).tolist()] for _ in range(4000)] for _ in "ab"
    )
    assert rank_agreement(first, second)[:, 0].mean() == pytest.approx(0.83, abs=0.01)


@given(st.permutations(range(7)), st.permutations(range(7)))
def test_ranking_agreement_is_symmetric_and_at_most_one(first, second):
    one, other = rank_agreement([first], [second]), rank_agreement([second], [first])

    assert one == pytest.approx(other)
    assert 0.0 <= one[0, 0] <= 1.0 + 1e-12
    with pytest.raises(ValueError, match="item 0: both rankings must contain the same candidates"):
        rank_agreement([["a", "b"]], [["a", "c"]])
