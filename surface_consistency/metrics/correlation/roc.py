"""The area under the ROC curve where examples come in clusters."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import (
    Flags,
    Floats,
    Integers,
    check_confidence_level,
    label_codes,
    warn_undefined,
)
from surface_consistency.metrics.correlation._correlations import average_ranks
from surface_consistency.metrics.uncertainty.intervals import (
    Interval,
    t_quantile,
    undefined_interval,
)

__all__ = ["AreaUnderCurveResult", "area_under_curve", "clustered_auc"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaUnderCurveResult:
    """How well scores tell positives from negatives; see `clustered_auc`."""

    auc: float
    """Probability that a positive scores above a negative, ties counting half, in [0, 1]; NaN
    without both."""

    auc_interval: Interval
    """Interval of `auc`, in [0, 1], by the logit and Student's t; NaN bounds for fewer than two
    clusters, or without any variation between them."""

    n_positive: int
    """Positives."""

    n_negative: int
    """Negatives."""

    n_clusters: int
    """Clusters."""


def clustered_auc(
    scores: npt.ArrayLike,
    labels: npt.ArrayLike,
    clusters: Sequence[Hashable] | npt.NDArray[np.generic] | None = None,
    *,
    confidence_level: float = 0.95,
) -> AreaUnderCurveResult:
    """Compute the area under the ROC curve with an interval that respects clusters.

    Args:
        scores: Scores of shape (n,), finite or infinite; higher means positive.
        labels: Labels of shape (n,): True or 1 for positives, False or 0 for negatives.
        clusters: Cluster of each example, such as the entity that a positive and the negatives made
            from it share; None takes each for a cluster of its own.
        confidence_level: Nominal coverage, in (0, 1).

    Returns:
        The area and its interval.

    Raises:
        ValueError: If lengths differ, a score is NaN, a label is neither 0 nor 1, or the confidence
            level is out of range.

    Notes:
        The interval is symmetric on the logit scale, with Obuchowski's variance and quantiles of
        Student's t with one degree of freedom less than there are clusters. An area of 0 or 1 has
        no variance; its interval is Wilson's for as many trials as there are clusters. The order of
        the examples does not matter. Without both labels the area is NaN, with a warning.

    References:
        Obuchowski (1997), Nonparametric analysis of clustered ROC curve data, Biometrics 53, 567.

    Examples:
        >>> clustered_auc([0.9, 0.4, 0.6, 0.1], [1, 1, 0, 0]).auc
        0.75
    """
    check_confidence_level(confidence_level)
    values = np.asarray(scores, dtype=np.float64)
    marks = np.asarray(labels, dtype=np.float64)
    if values.shape != marks.shape or values.ndim != 1:
        raise ValueError(
            "scores and labels must have equal lengths, one entry an example; got shapes "
            f"{values.shape} and {marks.shape}"
        )
    if np.isnan(values).any():
        raise ValueError(f"scores[{int(np.isnan(values).argmax())}] is NaN; leave that example out")
    if not np.isin(marks, (0.0, 1.0)).all():
        raise ValueError("labels must be 0 or 1, False or True")
    positive = marks == 1.0
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    codes = label_codes(clusters, values.size, "clusters", row="example")
    n_clusters = int(codes.max(initial=-1)) + 1
    auc, interval = math.nan, undefined_interval(confidence_level, "logit-t")
    if n_positive and n_negative:
        above = _placements(values, positive)
        auc = float(above[positive].mean())
        if n_clusters > 1:
            interval = _interval(auc, above - auc, positive, codes, confidence_level)
    else:
        warn_undefined(
            f"the area under the curve is undefined (NaN): {n_positive} positives and {n_negative} "
            "negatives",
            stacklevel=2,
        )
    return AreaUnderCurveResult(
        auc=auc,
        auc_interval=interval,
        n_positive=n_positive,
        n_negative=n_negative,
        n_clusters=n_clusters,
    )


def area_under_curve(scores: npt.ArrayLike, positive: Flags) -> float:
    """Return the chance that a positive scores above a negative; NaN for one class alone."""
    if positive.all() or not positive.any():
        return math.nan
    return float(_placements(np.asarray(scores, dtype=np.float64), positive)[positive].mean())


def _placements(values: Floats, positive: Flags) -> Floats:
    """Place each example among those of the other class, ties counting half.

    For a positive the share of negatives below it, for a negative that of positives above it.
    """
    ranks = average_ranks(values)
    placed = np.empty_like(values)
    for mine, sign in ((positive, 1.0), (~positive, -1.0)):
        within = average_ranks(values[mine])
        n_others = values.size - int(mine.sum())
        below = (ranks[mine] - within) / n_others
        placed[mine] = below if sign > 0 else 1.0 - below
    return placed


def _interval(
    auc: float, centred: Floats, positive: Flags, codes: Integers, level: float
) -> Interval:
    """Compute the interval from the sums of centred placements by cluster, of two or more."""
    n_clusters = int(codes.max()) + 1
    if auc in (0.0, 1.0):
        square = float(t_quantile(n_clusters - 1, level)) ** 2
        bound = square / (n_clusters + square)
        low, high = (0.0, bound) if auc == 0.0 else (1.0 - bound, 1.0)
        return Interval(low=low, high=high, confidence_level=level, method="wilson")
    sums = np.stack(
        [
            np.bincount(codes[mine], centred[mine], minlength=n_clusters) / mine.sum()
            for mine in (positive, ~positive)
        ]
    )
    variance = 0.0
    for of_class, mine in zip(sums, (positive, ~positive), strict=True):
        n_holding = np.unique(codes[mine]).size
        variance += float((of_class**2).sum()) * n_holding / max(n_holding - 1, 1)
    variance += 2 * float((sums[0] * sums[1]).sum()) * n_clusters / (n_clusters - 1)
    if not variance > 0.0:
        return undefined_interval(level, "logit-t")
    reach = float(t_quantile(n_clusters - 1, level)) * math.sqrt(variance) / (auc * (1 - auc))
    logit = math.log(auc / (1 - auc))
    low, high = ((1.0 + math.tanh((logit + sign * reach) / 2.0)) / 2.0 for sign in (-1.0, 1.0))
    return Interval(low=low, high=high, confidence_level=level, method="logit-t")
