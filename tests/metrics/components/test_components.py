import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as npst

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import (
    component_importance,
    containment,
    intersection_over_union,
    minimal_components,
)
from tests.refusals import refusals

logits = st.floats(0.5, 50).map(lambda value: round(value, 3))


@st.composite
def ablations(draw):
    n_tokens, n_components = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    base = draw(npst.arrays(np.float64, n_tokens, elements=logits))
    ablated = draw(npst.arrays(np.float64, (n_tokens, n_components), elements=st.floats(-50, 50)))
    return base, ablated


@given(ablations(), st.floats(0.1, 10))
def test_component_importance_agrees_with_a_naive_loop(data, scale):
    """Equation 6, one component and one token at a time; section 2's formula has no sign."""
    base, ablated = data

    importance = component_importance(base, ablated)

    for (token, component), value in np.ndenumerate(importance):
        expected = (base[token] - ablated[token, component]) / base[token]
        assert value == pytest.approx(expected)
    magnitude = component_importance(base, ablated, form="magnitude")
    assert magnitude == pytest.approx(np.abs(importance))
    scaled = component_importance(scale * base, scale * ablated)
    assert scaled == pytest.approx(importance, abs=1e-9)


@pytest.mark.parametrize(
    ("base", "ablated", "options", "expected"),
    [
        # Removing a component without effect has importance 0; removing all has importance 1.
        ([8.0], [[8.0, 0.0, -8.0]], {}, [[0.0, 1.0, 2.0]]),
        # A component whose removal lowers a negative logit is important, unlike in eq. 6.
        ([-20.0], [[-25.0, -15.0]], {"negative": "absolute"}, [[0.25, -0.25]]),
        ([-20.0], [[-25.0, -15.0]], {"form": "magnitude"}, [[0.25, 0.25]]),
    ],
)
def test_component_importance_equals_examples_computed_by_hand(base, ablated, options, expected):
    assert component_importance(base, ablated, **options).tolist() == expected


def test_component_importance_is_nan_for_a_logit_of_zero():
    with pytest.warns(UndefinedMetricWarning, match="1 of 2 tokens, whose base logit is 0"):
        importance = component_importance([0.0, 2.0], [[1.0], [1.0]])

    assert np.isnan(importance[0, 0])
    assert importance[1, 0] == 0.5


importances = st.lists(st.integers(-40, 60).map(lambda k: k / 100), min_size=1, max_size=8)


@given(importances, st.floats(0.1, 1.0))
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_minimal_components_agree_with_a_naive_loop(values, threshold):
    """Add the most important remaining component until 90 % are recovered."""
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
    if result.is_reached:
        # No smaller set of components adds up to the threshold.
        for smaller in itertools.combinations(values, len(taken) - 1):
            assert math.fsum(smaller) < 0.9
    less = minimal_components(values, threshold=threshold / 2).components
    more = minimal_components(values, threshold=threshold).components
    assert more[: len(less)] == less


def test_minimal_components_reach_the_threshold_through_rounding():
    """0.5 + 0.3 + 0.1 is 0.9, although the floating-point sum is smaller."""
    assert minimal_components([0.1, 0.5, 0.3]).components == (1, 2, 0)
    assert minimal_components([0.1, 0.5, 0.3]).is_reached
    assert minimal_components([0.5, 0.5, 0.5], threshold=0.9).components == (0, 1)


@pytest.mark.parametrize(
    ("values", "recovery", "components"),
    [([0.2, -0.5, 0.1, 0.0], "0.3", (0, 2)), ([-0.1, 0.0], "0", ())],
)
def test_minimal_components_below_the_threshold_give_a_warning(values, recovery, components):
    with pytest.warns(UndefinedMetricWarning, match=f"recover {recovery} of the baseline logit"):
        result = minimal_components(values)

    assert result.components == components
    assert not result.is_reached


def importance(base, ablated, **options):
    return lambda: component_importance(base, ablated, **options)


def minimal(values, **options):
    return lambda: minimal_components(values, **options)


test_bad_input_is_rejected = refusals(
    lambda call: call(),
    (lambda: containment("L0H1", {"L0H1"}), TypeError, "a collection of components; got 'L0H1'"),
    (lambda: intersection_over_union("a", {"a"}), TypeError, "first must be a collection .* 'a'"),
    (importance([3.0, -2.0], [[1.0], [1.0]]), r"base\[1\] is -2: dividing by a"),
    (importance([1.0, 2.0], [[1.0]]), r"same tokens, .* got \(2,\) and \(1, 1\)"),
    (importance([[1.0]], [[1.0]]), r"base must have shape \(n_tokens,\) .*\(1, 1"),
    (importance([1.0], [1.0]), r"ablated must have shape \(n_tokens, n_comp.*\(1"),
    (importance([], [[]]), r"base must have shape .* and not be empty"),
    (importance([1.0], [[np.nan]]), r"ablated\[0, 0\] is not finite"),
    (importance([np.inf], [[1.0]]), r"base\[0\] is not finite"),
    (importance(["a"], [[1.0]]), TypeError, "base must contain logits"),
    (importance([1.0], [[1.0]], form="abs"), "form must be 'signed' or 'magnit"),
    (importance([1.0], [[1.0]], negative="drop"), "negative must be 'raise' or"),
    (minimal([]), r"importance must have shape \(n_components,\)"),
    (minimal([[0.5]]), r"importance must have shape .* got \(1, 1\)"),
    (minimal([0.5, math.nan]), r"importance\[1\] is not finite \(nan\): drop"),
    (minimal([0.5, math.inf]), r"importance\[1\] is not finite \(inf\)"),
    (minimal([0.5], threshold=0), r"threshold must be in \(0, 1\]"),
    (minimal([0.5], threshold=90), r"such as 0.9; got 90"),
)


sets = st.frozensets(st.integers(0, 12), min_size=1, max_size=10)


@given(sets, sets)
def test_overlaps_agree_with_a_naive_loop_and_are_bounded_and_symmetric(first, second):
    """Equations 7 and 8, by counting."""
    common = sum(1 for component in first if component in second)
    either = len([c for c in range(13) if c in first or c in second])

    inside, over = containment(first, second), intersection_over_union(first, second)

    assert inside == containment(second, first) == common / min(len(first), len(second))
    assert over == intersection_over_union(second, first) == common / either
    assert 0 <= over <= inside <= 1
    assert (over == 1) == (first == second)
    assert (inside == 1) == (first <= second or second <= first)


def test_overlaps_accept_any_collection_and_are_nan_for_empty_ones():
    assert containment((1, 2, 2, 3), [3, 2]) == 1.0
    assert intersection_over_union(["L0H1", "L2H3"], {"L2H3"}) == 0.5
    assert intersection_over_union({1}, ()) == 0.0
    with pytest.warns(UndefinedMetricWarning, match="the containment is undefined"):
        assert math.isnan(containment((), {1}))
    with pytest.warns(UndefinedMetricWarning, match="intersection over union is undefined"):
        assert math.isnan(intersection_over_union((), ()))
