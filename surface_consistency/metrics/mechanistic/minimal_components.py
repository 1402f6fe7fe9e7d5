"""The smallest set of components that brings a token's logit back, by greedy selection."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import UndefinedMetricWarning

__all__ = ["MinimalComponentsResult", "component_masks", "minimal_components"]

# A sum such as 0.5 + 0.3 + 0.1 must reach 0.9.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimalComponentsResult:
    """Result of `minimal_components`."""

    components: tuple[int, ...]
    """Indices of the selected components, the most important first."""
    recovery: float
    """Share of the baseline logit that they recover; may exceed 1."""
    is_reached: bool
    """Whether `recovery` reaches the threshold."""
    n_components: int
    """Number of components to choose from."""


def minimal_components(
    importance: npt.ArrayLike,
    *,
    threshold: float = 0.9,
    recovered: Callable[[tuple[int, ...]], float] | None = None,
) -> MinimalComponentsResult:
    """Select components, most important first, until they recover the baseline logit.

    Args:
        importance: Importance of each component for one token, shape `(n_components,)`, as in a row
            of `component_importance`.
        threshold: Share of the baseline logit to recover, in (0, 1].
        recovered: Runs the model with these components alone and returns the share of the baseline
            logit. It is called with growing tuples until the threshold is reached. Without it the
            recovery is the sum of the importances, as if components added up.

    Returns:
        The selected components in order, what they recover, and whether that reaches the threshold.

    Raises:
        ValueError: When `importance` is not one-dimensional, is empty or holds a value that is not
            finite, `threshold` is out of range, or `recovered` returns NaN.

    Notes:
        Ties go to the component with the lower index. Where all components together do not reach
        the threshold, the result holds those with positive importance (with `recovered`, all of
        them), `is_reached` is False, and an `UndefinedMetricWarning` says so: such a set is not
        minimal. The paper does not say how it measures what a subset recovers; its remark that the
        token is always recovered suggests a run of the model, which `recovered` stands for, while
        the sum needs no further run and is exact for a model that adds its components up.

    References:
        SLAQ, arXiv 2510.11218, section 5.1 (sets C_t, 90 %).

    Examples:
        >>> minimal_components([0.1, 0.5, 0.05, 0.35]).components
        (1, 3, 0)
        >>> minimal_components([0.1, 0.5, 0.05, 0.35], threshold=0.8).components
        (1, 3)
    """
    values = np.asarray(importance, dtype=np.float64)
    if values.ndim != 1 or not values.size:
        raise ValueError(f"importance must have shape (n_components,); got {values.shape}")
    if not np.isfinite(values).all():
        index = int(np.argmin(np.isfinite(values)))
        raise ValueError(f"importance[{index}] is {values[index]}: leave undefined tokens out")
    if not 0.0 < threshold <= 1.0:
        raise ValueError(f"threshold must be a share in (0, 1], as in 0.9; got {threshold!r}")
    order = tuple(int(index) for index in np.argsort(-values, kind="stable"))
    if recovered is None:
        selected, recovery = _by_sum(values, order, threshold)
    else:
        selected, recovery = _by_runs(order, threshold, recovered)
    is_reached = recovery >= threshold - _ROUNDING
    if not is_reached:
        warnings.warn(
            f"the components recover {recovery:.3g} of the baseline logit, not {threshold:g}: "
            "the set is not minimal",
            UndefinedMetricWarning,
            stacklevel=2,
        )
    return MinimalComponentsResult(
        components=selected,
        recovery=recovery,
        is_reached=is_reached,
        n_components=values.size,
    )


def component_masks(sets: Sequence[MinimalComponentsResult]) -> npt.NDArray[np.bool_]:
    """Return minimal sets as rows of True and False, as `token_similarity` takes them.

    Args:
        sets: The minimal set of each answer token, chosen from the same components.

    Returns:
        Membership, shape `(n_tokens, n_components)`.

    Raises:
        ValueError: When there are no sets, or they were chosen from different numbers of
            components.

    Notes:
        The order of selection is lost.

    References:
        SLAQ, arXiv 2510.11218, section 5.1.

    Examples:
        >>> component_masks([minimal_components([0.1, 0.5, 0.45])]).tolist()
        [[False, True, True]]
    """
    sizes = sorted({chosen.n_components for chosen in sets})
    if len(sizes) != 1:
        raise ValueError(
            "sets must be one or more, chosen from the same components; got sets out of "
            f"{sizes} components"
        )
    masks = np.zeros((len(sets), sizes[0]), dtype=np.bool_)
    for token, chosen in enumerate(sets):
        masks[token, list(chosen.components)] = True
    return masks


def _by_sum(
    values: npt.NDArray[np.float64], order: tuple[int, ...], threshold: float
) -> tuple[tuple[int, ...], float]:
    """Add importances up until their sum reaches the threshold; negative ones would lower it."""
    positive = [index for index in order if values[index] > 0]
    sums = np.cumsum(values[positive])
    reached = np.flatnonzero(sums >= threshold - _ROUNDING)
    size = int(reached[0]) + 1 if reached.size else len(positive)
    return tuple(positive[:size]), float(sums[size - 1]) if size else 0.0


def _by_runs(
    order: tuple[int, ...], threshold: float, recovered: Callable[[tuple[int, ...]], float]
) -> tuple[tuple[int, ...], float]:
    """Ask for the recovery of growing sets until it reaches the threshold."""
    recovery = math.nan
    for size in range(1, len(order) + 1):
        recovery = float(recovered(order[:size]))
        if math.isnan(recovery):
            raise ValueError(f"recovered returned NaN for the components {order[:size]}")
        if recovery >= threshold - _ROUNDING:
            return order[:size], recovery
    return order, recovery
