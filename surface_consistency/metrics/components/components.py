"""Components of a model: importance for a token, minimal sets, and overlap of sets."""

import math
from collections.abc import Collection, Hashable, Set
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import (
    Floats,
    check_choice,
    plain,
    plain_list,
    warn_undefined,
)
from surface_consistency.truth import NoTruthValue

ImportanceForm: TypeAlias = Literal["signed", "magnitude"]
"""Form of the importance: with the sign of the change (eq. 6), or without it (section 2)."""


def component_importance(
    base: npt.ArrayLike,
    ablated: npt.ArrayLike,
    *,
    form: ImportanceForm = "signed",
    negative: Literal["raise", "absolute"] = "raise",
) -> npt.NDArray[np.float64]:
    """Return the importance of each component for each answer token.

    "signed" is (base - ablated) / base: the proportion of the logit of the token that is lost if
    the component is removed. "magnitude" is |base - ablated| / |base|.

    Args:
        base: Logit of each gold token in the unchanged model, shape `(n_tokens,)`.
        ablated: Logit of each gold token with one component set to zero, shape
            `(n_tokens, n_components)`.
        form: "signed" or "magnitude".
        negative: Treatment of a negative base logit under "signed", for which the formula changes
            the sign of every importance: "raise" raises an error, "absolute" divides by |base|.

    Returns:
        Importance, shape `(n_tokens, n_components)`. It is positive if removing the component
        lowers the logit, and negative if that raises it. It is unbounded, but at least 0 under
        "magnitude".

    Raises:
        ValueError: If shapes do not match, a logit is not finite, a base logit is negative under
            "signed" and "raise", or an option is unknown.
        TypeError: If an input is not numeric.

    Notes:
        If the base logit of a token is 0, its row is NaN, with an `UndefinedMetricWarning`. The
        paper gives both forms (eq. 6 and section 2) and does not define them for negative logits;
        in some model families all logits are negative. The scale of the logits does not matter.

    References:
        SLAQ, arXiv 2510.11218, eq. 6 and section 2.

    Examples:
        >>> component_importance([20.0], [[15.0, 20.0, 22.0]]).tolist()
        [[0.25, 0.0, -0.1]]
    """
    check_choice(form, ("signed", "magnitude"), "form")
    check_choice(negative, ("raise", "absolute"), "negative")
    whole = finite_array(base, "base", "(n_tokens,)", what="logits")
    without = finite_array(ablated, "ablated", "(n_tokens, n_components)", what="logits")
    if len(whole) != len(without):
        raise ValueError(
            "base and ablated must have the same tokens, shapes (n_tokens,) and "
            f"(n_tokens, n_components); got {whole.shape} and {without.shape}"
        )
    if form == "signed" and negative == "raise" and (whole < 0).any():
        token = int(np.argmax(whole < 0))
        raise ValueError(
            f"base[{token}] is {whole[token]:g}: dividing by a negative logit changes the sign of "
            "every importance; pass negative='absolute' to divide by its magnitude, or "
            "form='magnitude'"
        )
    if (whole == 0).any():
        warn_undefined(
            f"importance is undefined (NaN) for {int((whole == 0).sum())} of {whole.size} tokens, "
            f"whose base logit is 0, such as token {int(np.argmax(whole == 0))}"
        )
    change = whole[:, None] - without
    scale = np.where(whole == 0, np.nan, np.abs(whole))[:, None]
    return np.asarray((np.abs(change) if form == "magnitude" else change) / scale)


def finite_array(
    values: npt.ArrayLike, name: str, shape: str, *, what: str, kinds: str = "iuf"
) -> Floats:
    """Return finite numbers of a shape such as "(n_tokens, n_components)", at least one."""
    array = np.asarray(plain(values))
    if array.dtype.kind not in kinds and array.size:
        raise TypeError(f"{name} must contain {what}; got dtype {array.dtype}")
    if array.ndim != shape.count("n_") or 0 in array.shape:
        raise ValueError(f"{name} must have shape {shape} and not be empty; got {array.shape}")
    if not np.isfinite(array).all():
        first = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
        raise ValueError(
            f"{name}[{', '.join(map(str, first))}] is not finite ({array[first]}): drop undefined "
            "tokens"
        )
    return array.astype(np.float64)


# A sum such as 0.5 + 0.3 + 0.1 must reach 0.9.
_ROUNDING = 1e-12


def containment(first: Collection[Hashable], second: Collection[Hashable]) -> float:
    """Return the proportion of the smaller set of components that is in the larger one.

    |C1 and C2| / min(|C1|, |C2|).

    Args:
        first: Components of one answer token, such as `MinimalComponentsResult.components`; or a
            boolean mask over the components of the model.
        second: Components of another, or a mask of the same length.

    Returns:
        The containment, in [0, 1]; higher is more similar, 1 if one set contains the other.

    Raises:
        TypeError: If an argument is a string.
        ValueError: If one argument is a mask and the other is not, or their lengths differ.

    Notes:
        Containment is symmetric, and at least as large as the intersection over union. For an empty
        set it is NaN, with an `UndefinedMetricWarning`. Repeated components count once, and their
        order does not matter.

    References:
        SLAQ, arXiv 2510.11218, eq. 7.

    Examples:
        >>> containment({1, 2, 3}, {2, 3, 4, 5})
        0.6666666666666666
    """
    ours, theirs = _sets(first, second)
    return _share("containment", len(ours & theirs), min(len(ours), len(theirs)))


def intersection_over_union(first: Collection[Hashable], second: Collection[Hashable]) -> float:
    """Return the number of components in both sets, divided by the number in either.

    |C1 and C2| / |C1 or C2|, the Jaccard index.

    Args:
        first: Components of one answer token, such as `MinimalComponentsResult.components`; or a
            boolean mask over the components of the model.
        second: Components of another, or a mask of the same length.

    Returns:
        The overlap, in [0, 1]; higher is more similar, 1 for equal sets.

    Raises:
        TypeError: If an argument is a string.
        ValueError: If one argument is a mask and the other is not, or their lengths differ.

    Notes:
        The overlap is symmetric. For two empty sets it is NaN, with an `UndefinedMetricWarning`;
        for one it is 0. Repeated components count once, and their order does not matter.

    References:
        SLAQ, arXiv 2510.11218, eq. 8.

    Examples:
        >>> intersection_over_union({1, 2, 3}, {2, 3, 4, 5})
        0.4
    """
    ours, theirs = _sets(first, second)
    return _share("intersection over union", len(ours & theirs), len(ours | theirs))


def _sets(
    first: Collection[Hashable], second: Collection[Hashable]
) -> tuple[set[Hashable], set[Hashable]]:
    """Return two sets of components, from collections or from two masks over all components."""
    for name, components in (("first", first), ("second", second)):
        if isinstance(components, str | bytes):
            raise TypeError(f"{name} must be a collection of components; got {components!r}")
    ours, theirs = (plain_list(components) for components in (first, second))
    are_masks = [any(isinstance(one, bool | np.bool_) for one in part) for part in (ours, theirs)]
    if not any(are_masks):
        return set(ours), set(theirs)
    if (
        not all(isinstance(one, bool | np.bool_) for one in (*ours, *theirs))
        or len(ours) != len(theirs)
        or isinstance(first, Set)
        or isinstance(second, Set)
    ):
        raise ValueError(
            "first and second must both list components, or both be boolean masks with one value "
            f"per component of the model; got {len(ours)} and {len(theirs)} values of which some "
            "are booleans; list the components of a mask by numpy.flatnonzero(mask)"
        )
    return {*np.flatnonzero(ours).tolist()}, {*np.flatnonzero(theirs).tolist()}


def _share(name: str, part: int, whole: int) -> float:
    if whole:
        return part / whole
    warn_undefined(f"the {name} is undefined (NaN): there are no components", stacklevel=3)
    return math.nan


@dataclass(frozen=True, slots=True)
class MinimalComponentsResult(NoTruthValue):
    """Result of `minimal_components`."""

    truth = "result.is_reached, or len(result.components)"

    components: tuple[int, ...]
    """Indices of the selected components, most important first."""
    recovery: float
    """Proportion of the baseline logit that they recover, which may exceed 1."""
    is_reached: bool
    """Whether `recovery` reaches the threshold."""


def minimal_components(
    importance: npt.ArrayLike, *, threshold: float = 0.9
) -> MinimalComponentsResult:
    """Select components, most important first, until they recover the baseline logit.

    Args:
        importance: Importance of each component for one token, shape `(n_components,)`, as in a row
            of `component_importance`.
        threshold: Proportion of the baseline logit to recover, in (0, 1].

    Returns:
        The selected components in order, the sum of their importances, and whether the sum reaches
        the threshold.

    Raises:
        ValueError: If `importance` is not one-dimensional, is empty or has a value that is not
            finite, or `threshold` is out of range.

    Notes:
        Of components with equal importance, the one with the lower index comes first. If all
        components together do not reach the threshold, the result contains those with positive
        importance, `is_reached` is False, and an `UndefinedMetricWarning` reports it: such a set is
        not minimal. The paper does not define how the recovery of a subset is measured. The sum of
        importances needs no further run of the model; it is exact if the logit is the sum of the
        contributions of the components. To measure the sets by runs of the model, use the study
        (`--setting sets=run`).

    References:
        SLAQ, arXiv 2510.11218, section 5.1 (sets C_t, 90 %).

    Examples:
        >>> minimal_components([0.1, 0.5, 0.05, 0.35]).components
        (1, 3, 0)
        >>> minimal_components([0.1, 0.5, 0.05, 0.35], threshold=0.8).components
        (1, 3)
    """
    values = finite_array(importance, "importance", "(n_components,)", what="importances")
    if not 0.0 < threshold <= 1.0:
        raise ValueError(f"threshold must be in (0, 1], such as 0.9; got {threshold!r}")
    # Negative importances would lower the sum.
    positive = [k for k in np.argsort(-values, kind="stable").tolist() if values[k] > 0]
    sums = np.cumsum(values[positive])
    size = min(int(np.searchsorted(sums, threshold - _ROUNDING)) + 1, len(positive))
    recovery = float(sums[size - 1]) if size else 0.0
    is_reached = recovery >= threshold - _ROUNDING
    if not is_reached:
        warn_undefined(
            f"the components recover {recovery:.3g} of the baseline logit, not {threshold:g}: "
            "the set is not minimal"
        )
    return MinimalComponentsResult(tuple(positive[:size]), recovery, is_reached)
