import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surface_consistency.metrics._shared.ranks import average_ranks


@given(values=st.lists(st.sampled_from([-2.0, -0.0, 0.0, 0.5, 1.0, 3.0]), max_size=30))
@settings(deadline=None)
def test_average_ranks_agree_with_a_naive_count(values):
    """A rank is the number of smaller values, and half of the equal ones with itself among them."""
    expected = [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
        for value in values
    ]

    assert average_ranks(np.array(values, dtype=float)).tolist() == expected


def test_average_ranks_agree_with_scipy():
    stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(0).integers(0, 500, 4284).astype(float)

    assert (average_ranks(values) == stats.rankdata(values)).all()
