"""The area under the ROC curve where examples come in clusters."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from surface_consistency.metrics._correlations import average_ranks
from surface_consistency.metrics._inputs import check_confidence_level, warn_undefined

__all__ = ["AreaUnderCurveResult", "clustered_auc"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaUnderCurveResult:
    """How well scores tell positives from negatives; see `clustered_auc`."""

    auc: float
    """Probability that a positive scores above a negative, ties counting half, in [0, 1]; NaN
    without both."""

    auc_interval: tuple[float, float]
    """Interval for it, in [0, 1]; NaN for fewer than two clusters, or without any
    variation between them."""

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
    owners = np.arange(values.size) if clusters is None else np.asarray(clusters, dtype=object)
    if not values.shape == marks.shape == owners.shape or values.ndim != 1:
        raise ValueError(
            "scores, labels and clusters must have equal lengths, one entry an example; got shapes "
            f"{values.shape}, {marks.shape} and {owners.shape}"
        )
    if np.isnan(values).any():
        raise ValueError(f"scores[{int(np.isnan(values).argmax())}] is NaN; leave that example out")
    if not np.isin(marks, (0.0, 1.0)).all():
        raise ValueError("labels must be 0 or 1, False or True")
    positive = marks == 1.0
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    codes, n_clusters = _codes(owners)
    auc, interval = math.nan, (math.nan, math.nan)
    if n_positive and n_negative:
        above = _placements(values, positive)
        auc = float(above[positive].mean())
        interval = _interval(auc, above - auc, positive, codes, n_clusters, confidence_level)
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


def _codes(owners: npt.NDArray[np.generic]) -> tuple[npt.NDArray[np.int64], int]:
    """Number the clusters."""
    numbers: dict[object, int] = {}
    codes = [numbers.setdefault(owner, len(numbers)) for owner in owners.tolist()]
    return np.array(codes, dtype=np.int64), len(numbers)


def _placements(
    values: npt.NDArray[np.float64], positive: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
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
    auc: float,
    centred: npt.NDArray[np.float64],
    positive: npt.NDArray[np.bool_],
    codes: npt.NDArray[np.int64],
    n_clusters: int,
    confidence_level: float,
) -> tuple[float, float]:
    """Compute the interval from the sums of centred placements by cluster."""
    if n_clusters < 2:
        return (math.nan, math.nan)
    quantile = float(stats.t.ppf((1 + confidence_level) / 2, n_clusters - 1))
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
    spread = math.sqrt(max(variance, 0.0))
    if auc in (0.0, 1.0):
        bound = quantile**2 / (n_clusters + quantile**2)
        return (0.0, bound) if auc == 0.0 else (1.0 - bound, 1.0)
    if not spread:
        return (math.nan, math.nan)
    logit, step = math.log(auc / (1 - auc)), quantile * spread / (auc * (1 - auc))
    low, high = (float(special.expit(logit + sign * step)) for sign in (-1.0, 1.0))
    return (low, high)
