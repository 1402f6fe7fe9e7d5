import numpy as np
import pytest

from surface_consistency.metrics.comparison.ranks import rank_intervals


def test_decisions_about_all_pairs_bound_the_ranks():
    p_above = np.full((4, 4), 0.5)
    p_above[0, 1:] = 1e-6
    p_above[1:, 0] = 1 - 1e-6

    low, high = rank_intervals(p_above)

    assert low.tolist() == [1, 2, 2, 2]
    assert high.tolist() == [1, 4, 4, 4]


def test_holm_counts_every_ordered_pair():
    p_above = np.full((3, 3), 0.9)
    p_above[0, 1] = 0.05 / 6 + 1e-6

    assert rank_intervals(p_above)[1].tolist() == [3, 3, 3]
    p_above[0, 1] -= 2e-6
    assert rank_intervals(p_above)[1].tolist() == [2, 3, 3]


def test_tests_that_could_not_be_made_decide_nothing():
    low, high = rank_intervals(np.full((3, 3), np.nan))

    assert low.tolist() == [1, 1, 1]
    assert high.tolist() == [3, 3, 3]


def test_p_values_must_be_square():
    with pytest.raises(ValueError, match="must be square, a row a model"):
        rank_intervals([[0.1, 0.2]])
