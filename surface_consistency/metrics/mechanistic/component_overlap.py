"""Overlap of two sets of components: containment and intersection over union."""

import math
import warnings
from collections.abc import Collection, Hashable

from surface_consistency.errors import UndefinedMetricWarning

__all__ = ["containment", "intersection_over_union"]


def containment(first: Collection[Hashable], second: Collection[Hashable]) -> float:
    """Return the share of the smaller set that the larger one holds.

    |C1 and C2| / min(|C1|, |C2|).

    Args:
        first: Components of one answer token, such as `MinimalComponentsResult.components`.
        second: Components of another.

    Returns:
        The containment, in [0, 1]; higher is more alike, 1 where one set holds the other.

    Raises:
        TypeError: When an argument is a string.

    Notes:
        Symmetric. An empty set makes it NaN, with an `UndefinedMetricWarning`. Repeated components
        count once, and their order does not matter. At least the intersection over union.

    References:
        SLAQ, arXiv 2510.11218, eq. 7.

    Examples:
        >>> containment({1, 2, 3}, {2, 3, 4, 5})
        0.6666666666666666
    """
    ours, theirs = _sets(first, second)
    return _share("containment", len(ours & theirs), min(len(ours), len(theirs)))


def intersection_over_union(first: Collection[Hashable], second: Collection[Hashable]) -> float:
    """Return the share of the components of either set that stand in both.

    |C1 and C2| / |C1 or C2|, the Jaccard index.

    Args:
        first: Components of one answer token, such as `MinimalComponentsResult.components`.
        second: Components of another.

    Returns:
        The overlap, in [0, 1]; higher is more alike, 1 for equal sets.

    Raises:
        TypeError: When an argument is a string.

    Notes:
        Symmetric. Two empty sets make it NaN, with an `UndefinedMetricWarning`; one makes it 0.
        Repeated components count once, and their order does not matter.

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
    """Return both collections as sets."""
    for name, components in (("first", first), ("second", second)):
        if isinstance(components, str | bytes):
            raise TypeError(f"{name} must be a collection of components; got {components!r}")
    return set(first), set(second)


def _share(name: str, part: int, whole: int) -> float:
    """Return a share, with a warning where it is undefined."""
    if whole:
        return part / whole
    warnings.warn(
        f"the {name} is undefined (NaN): there are no components to share",
        UndefinedMetricWarning,
        stacklevel=3,
    )
    return math.nan
