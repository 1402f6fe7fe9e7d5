import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics.mechanistic.component_overlap import (
    containment,
    intersection_over_union,
)

sets = st.frozensets(st.integers(0, 12), min_size=1, max_size=10)


@given(sets, sets)
def test_overlaps_agree_with_a_naive_loop(first, second):
    """Equations 7 and 8, by counting."""
    common = sum(1 for component in first if component in second)
    either = len([c for c in range(13) if c in first or c in second])

    assert containment(first, second) == common / min(len(first), len(second))
    assert intersection_over_union(first, second) == common / either


@given(sets, sets)
def test_overlaps_are_bounded_and_symmetric(first, second):
    inside, over = containment(first, second), intersection_over_union(first, second)

    assert 0 <= over <= inside <= 1
    assert containment(second, first) == inside
    assert intersection_over_union(second, first) == over
    assert (over == 1) == (first == second)
    assert (inside == 1) == (first <= second or second <= first)


def test_overlaps_take_any_collection():
    assert containment((1, 2, 2, 3), [3, 2]) == 1.0
    assert intersection_over_union(["L0H1", "L2H3"], {"L2H3"}) == 0.5
    assert intersection_over_union({1}, ()) == 0.0


def test_overlaps_of_empty_sets_are_nan():
    with pytest.warns(UndefinedMetricWarning, match="the containment is undefined"):
        assert math.isnan(containment((), {1}))
    with pytest.warns(UndefinedMetricWarning, match="intersection over union is undefined"):
        assert math.isnan(intersection_over_union((), ()))


@pytest.mark.parametrize("function", [containment, intersection_over_union])
def test_overlaps_reject_a_string(function):
    with pytest.raises(TypeError, match="first must be a collection of components; got 'L0H1'"):
        function("L0H1", {"L0H1"})
