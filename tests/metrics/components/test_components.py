import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as npst

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics.components.components import (
    component_importance,
    minimal_components,
)

logits = st.floats(0.5, 50).map(lambda value: round(value, 3))


@st.composite
def ablations(draw):
    n_tokens, n_components = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    base = draw(npst.arrays(np.float64, n_tokens, elements=logits))
    ablated = draw(npst.arrays(np.float64, (n_tokens, n_components), elements=st.floats(-50, 50)))
    return base, ablated


@given(ablations())
def test_component_importance_agrees_with_a_naive_loop(data):
    """Equation 6, one component and one token at a time."""
    base, ablated = data

    importance = component_importance(base, ablated)

    for (token, component), value in np.ndenumerate(importance):
        expected = (base[token] - ablated[token, component]) / base[token]
        assert value == pytest.approx(expected)


@given(ablations())
def test_magnitude_is_the_size_of_the_signed_importance(data):
    """Section 2's formula is eq. 6 without its sign."""
    signed = component_importance(*data)

    assert component_importance(*data, form="magnitude") == pytest.approx(np.abs(signed))


@given(ablations(), st.floats(0.1, 10))
def test_component_importance_is_free_of_scale(data, scale):
    base, ablated = data

    scaled = component_importance(scale * base, scale * ablated)

    assert scaled == pytest.approx(component_importance(base, ablated), abs=1e-9)


def test_component_importance_of_an_idle_component_is_zero():
    """Removing what does nothing costs nothing; removing all costs all."""
    assert component_importance([8.0], [[8.0, 0.0, -8.0]]).tolist() == [[0.0, 1.0, 2.0]]


def test_negative_logits_are_divided_by_their_magnitude_when_asked():
    """A component whose removal lowers a negative logit matters, and eq. 6 would say it harms."""
    base, ablated = [-20.0], [[-25.0, -15.0]]

    importance = component_importance(base, ablated, negative="absolute")

    assert importance.tolist() == [[0.25, -0.25]]
    assert component_importance(base, ablated, form="magnitude").tolist() == [[0.25, 0.25]]


def test_component_importance_rejects_negative_logits():
    with pytest.raises(ValueError, match=r"base\[1\] is -2: dividing by a negative logit"):
        component_importance([3.0, -2.0], [[1.0], [1.0]])


def test_component_importance_is_nan_for_a_logit_of_zero():
    with pytest.warns(UndefinedMetricWarning, match="1 of 2 tokens, whose base logit is 0"):
        importance = component_importance([0.0, 2.0], [[1.0], [1.0]])

    assert np.isnan(importance[0, 0])
    assert importance[1, 0] == 0.5


@pytest.mark.parametrize(
    ("base", "ablated", "options", "error", "message"),
    [
        ([1.0, 2.0], [[1.0]], {}, ValueError, r"same tokens, .* got \(2,\) and \(1, 1\)"),
        ([[1.0]], [[1.0]], {}, ValueError, r"base must have shape \(n_tokens,\) .* got \(1, 1\)"),
        ([1.0], [1.0], {}, ValueError, r"ablated must have shape \(n_tokens, n_comp.* got \(1,\)"),
        ([], [[]], {}, ValueError, r"base must have shape .* and hold something"),
        ([1.0], [[np.nan]], {}, ValueError, r"ablated\[0, 0\] is not finite"),
        ([np.inf], [[1.0]], {}, ValueError, r"base\[0\] is not finite"),
        (["a"], [[1.0]], {}, TypeError, "base must hold logits"),
        ([1.0], [[1.0]], {"form": "abs"}, ValueError, "form must be 'signed' or 'magnitude'"),
        ([1.0], [[1.0]], {"negative": "drop"}, ValueError, "negative must be 'raise' or 'abs"),
    ],
)
def test_component_importance_rejects_bad_input(base, ablated, options, error, message):
    with pytest.raises(error, match=message):
        component_importance(base, ablated, **options)


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


def test_minimal_components_that_fall_short_say_so():
    with pytest.warns(UndefinedMetricWarning, match="recover 0.3 of the baseline logit"):
        result = minimal_components([0.2, -0.5, 0.1, 0.0])

    assert result.components == (0, 2)
    assert not result.is_reached
    with pytest.warns(UndefinedMetricWarning, match="recover 0 of the baseline logit"):
        assert minimal_components([-0.1, 0.0]).components == ()


@pytest.mark.parametrize(
    ("importance", "options", "message"),
    [
        ([], {}, r"importance must have shape \(n_components,\)"),
        ([[0.5]], {}, r"importance must have shape \(n_components,\) .* got \(1, 1\)"),
        (
            [0.5, float("nan")],
            {},
            r"importance\[1\] is not finite \(nan\): leave undefined tokens out",
        ),
        ([0.5, float("inf")], {}, r"importance\[1\] is not finite \(inf\)"),
        ([0.5], {"threshold": 0}, r"threshold must be a share in \(0, 1\]"),
        ([0.5], {"threshold": 90}, r"threshold must be a share in \(0, 1\], as in 0.9; got 90"),
    ],
)
def test_minimal_components_reject_bad_input(importance, options, message):
    with pytest.raises(ValueError, match=message):
        minimal_components(importance, **options)
