import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics.mechanistic.minimal_components import (
    component_masks,
    minimal_components,
)

importances = st.lists(st.integers(-40, 60).map(lambda k: k / 100), min_size=1, max_size=8)


@given(importances)
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_minimal_components_agree_with_a_naive_loop(values):
    """Take the most important component that is left until 90 % are recovered."""
    left, taken, recovery = list(enumerate(values)), [], 0.0
    while left and recovery < 0.9 - 1e-12:
        index, value = max(left, key=lambda item: item[1])
        if value <= 0:
            break
        left.remove((index, value))
        taken.append(index)
        recovery += value

    result = minimal_components(values)

    assert list(result.components) == taken
    assert result.recovery == pytest.approx(recovery)
    assert result.is_reached == (recovery >= 0.9 - 1e-12)


@given(importances)
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_minimal_components_are_minimal(values):
    """No smaller set of components adds up to the threshold."""
    result = minimal_components(values)

    if result.is_reached:
        size = len(result.components)
        for smaller in itertools.combinations(values, size - 1):
            assert math.fsum(smaller) < 0.9


@given(importances, st.floats(0.1, 1.0))
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_minimal_components_grow_with_the_threshold(values, threshold):
    less = minimal_components(values, threshold=threshold / 2)
    more = minimal_components(values, threshold=threshold)

    assert more.components[: len(less.components)] == less.components


def test_minimal_components_reach_the_threshold_through_rounding():
    """0.5 + 0.3 + 0.1 is 0.9, though its floating sum falls short."""
    assert minimal_components([0.1, 0.5, 0.3]).components == (1, 2, 0)
    assert minimal_components([0.1, 0.5, 0.3]).is_reached


def test_minimal_components_take_ties_in_order():
    assert minimal_components([0.5, 0.5, 0.5], threshold=0.9).components == (0, 1)


def test_minimal_components_run_the_model_when_it_is_there():
    """Two heads that back each other up look idle alone, and the run tells what a set recovers."""
    importance = [0.05, 0.30, 0.04, 0.02]
    asked = []

    def recovered(components):
        asked.append(components)
        return 0.4 * (1 in components) + 0.55 * (0 in components or 2 in components)

    result = minimal_components(importance, recovered=recovered)

    assert asked == [(1,), (1, 0)]
    assert result.components == (1, 0)
    assert result.recovery == pytest.approx(0.95)
    with pytest.warns(UndefinedMetricWarning, match=r"recover 0.41 of the baseline logit, not 0.9"):
        assert minimal_components(importance).components == (1, 0, 2, 3)


def test_minimal_components_that_fall_short_say_so():
    with pytest.warns(UndefinedMetricWarning, match="recover 0.3 of the baseline logit"):
        result = minimal_components([0.2, -0.5, 0.1, 0.0])

    assert result.components == (0, 2)
    assert not result.is_reached
    with pytest.warns(UndefinedMetricWarning, match="recover 0 of the baseline logit"):
        assert minimal_components([-0.1, 0.0]).components == ()
    with pytest.warns(UndefinedMetricWarning, match="recover 0.5"):
        result = minimal_components([0.2, 0.1], recovered=lambda components: 0.5)
    assert result.components == (0, 1)


def test_minimal_components_count_what_there_was():
    result = minimal_components(np.array([0.95, 0.01]))

    assert (result.n_components, result.components) == (2, (0,))


@pytest.mark.parametrize(
    ("importance", "options", "message"),
    [
        ([], {}, r"importance must have shape \(n_components,\)"),
        ([[0.5]], {}, r"importance must have shape \(n_components,\); got \(1, 1\)"),
        ([0.5, float("nan")], {}, r"importance\[1\] is nan: leave undefined tokens out"),
        ([0.5, float("inf")], {}, r"importance\[1\] is inf"),
        ([0.5], {"threshold": 0}, r"threshold must be a share in \(0, 1\]"),
        ([0.5], {"threshold": 90}, r"threshold must be a share in \(0, 1\], as in 0.9; got 90"),
        ([0.5], {"recovered": lambda c: math.nan}, r"recovered returned NaN for the components"),
    ],
)
def test_minimal_components_reject_bad_input(importance, options, message):
    with pytest.raises(ValueError, match=message):
        minimal_components(importance, **options)


def test_component_masks_hold_the_selected_components():
    sets = [minimal_components([0.95, 0.01, 0.5]), minimal_components([0.1, 0.5, 0.45])]

    masks = component_masks(sets)

    assert masks.tolist() == [[True, False, False], [False, True, True]]
    assert masks.sum(axis=1).tolist() == [len(chosen.components) for chosen in sets]


def test_component_masks_reject_sets_of_different_models():
    with pytest.raises(ValueError, match=r"same components; got sets out of \[1, 2\] components"):
        component_masks([minimal_components([1.0]), minimal_components([1.0, 0.0])])
    with pytest.raises(ValueError, match=r"sets must be one or more.* out of \[\] components"):
        component_masks([])
