"""Similarity of every token of a short answer to every token of a long one."""

import warnings
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics._shared.correlations import unit_deviations
from surface_consistency.metrics._shared.ranks import average_ranks

__all__ = ["TokenMetric", "token_similarity"]

TokenMetric: TypeAlias = Literal["pearson", "spearman", "containment", "iou"]
"""How two tokens are compared: by importances, or by minimal sets of components."""

_Floats = npt.NDArray[np.float64]


def token_similarity(
    short: npt.ArrayLike, long: npt.ArrayLike, *, metric: TokenMetric
) -> npt.NDArray[np.float64]:
    """Compare the tokens of two answers by the components that they use.

    Args:
        short: One row for each token of the short answer, shape `(n_short_tokens, n_components)`:
            importances for "pearson" and "spearman", membership of the minimal set, True or False,
            for "containment" and "iou".
        long: The same for the tokens of the long answer, of the same components.
        metric: "pearson" or "spearman" correlation of importances, or "containment" or "iou"
            (intersection over union) of sets.

    Returns:
        The matrix M of shape `(n_short_tokens, n_long_tokens)`: in [-1, 1] for correlations, in
        [0, 1] for sets; higher is more alike.

    Raises:
        TypeError: When a set metric is given anything but True and False, or a correlation no
            numbers.
        ValueError: When shapes do not fit, an importance is not finite, there is a single component
            under a correlation, or `metric` is unknown.

    Notes:
        A token whose importances are all alike, or whose set is empty, makes its row or column NaN,
        with an `UndefinedMetricWarning`; under "iou" only against another empty set. Swapping the
        answers transposes M. The order of the components does not matter.

    References:
        SLAQ, arXiv 2510.11218, eqs. 7 and 8 and section 5.1 (M_ij).

    Examples:
        >>> short, long = [[0.5, 0.3, 0.1, 0.0]], [[0.4, 0.3, 0.2, 0.1], [0.0, 0.1, 0.3, 0.5]]
        >>> token_similarity(short, long, metric="spearman").round(2).tolist()
        [[1.0, -1.0]]
        >>> short, long = [[True, True, False]], [[True, False, True]]
        >>> token_similarity(short, long, metric="containment").tolist()
        [[0.5]]
    """
    if metric not in ("pearson", "spearman", "containment", "iou"):
        raise ValueError(f"metric must be pearson, spearman, containment or iou; got {metric!r}")
    kinds = "b" if metric in ("containment", "iou") else "iuf"
    ours, theirs = _rows(short, "short", kinds), _rows(long, "long", kinds)
    if ours.shape[1] != theirs.shape[1]:
        raise ValueError(
            "short and long must be about the same components; got "
            f"{ours.shape[1]} and {theirs.shape[1]}"
        )
    if metric == "pearson" or metric == "spearman":
        if ours.shape[1] < 2:
            raise ValueError("a correlation needs two components or more; got 1")
        similarity = _units(ours, metric) @ _units(theirs, metric).T
        similarity = np.clip(similarity, -1.0, 1.0)
    else:
        similarity = _overlaps(ours, theirs, metric)
    undefined = int(np.isnan(similarity).sum())
    if undefined:
        warnings.warn(
            f"{undefined} of {similarity.size} token similarities are undefined (NaN): a token has "
            "constant importances or no components",
            UndefinedMetricWarning,
            stacklevel=2,
        )
    return np.asarray(similarity)


def _rows(values: npt.ArrayLike, name: str, kinds: str) -> _Floats:
    """Return a matrix of tokens by components."""
    array = np.asarray(values)
    if array.dtype.kind not in kinds:
        wanted = "True or False for each component" if kinds == "b" else "importances"
        raise TypeError(f"{name} must hold {wanted}; got dtype {array.dtype}")
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"{name} must have shape (n_tokens, n_components) and hold something; got {array.shape}"
        )
    if not np.isfinite(array).all():
        token, component = (int(index) for index in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name}[{token}, {component}] is not finite: leave such tokens out")
    return array.astype(np.float64)


def _units(rows: _Floats, metric: TokenMetric) -> _Floats:
    """Return the deviations of each row, or of its ranks, at unit length; NaN for a constant."""
    units = np.full(rows.shape, np.nan)
    for token, row in enumerate(rows):
        unit = unit_deviations(average_ranks(row) if metric == "spearman" else row)
        if unit is not None:
            units[token] = unit
    return units


def _overlaps(ours: _Floats, theirs: _Floats, metric: TokenMetric) -> _Floats:
    """Return containment or intersection over union of each two sets."""
    common = ours @ theirs.T
    sizes = ours.sum(axis=1)[:, None], theirs.sum(axis=1)[None, :]
    whole = np.minimum(*sizes) if metric == "containment" else sizes[0] + sizes[1] - common
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(common / whole)
