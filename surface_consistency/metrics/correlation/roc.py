"""The area under the ROC curve for clustered examples."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import (
    Flags,
    Floats,
    Integers,
    check_confidence_level,
    label_codes,
    plain,
    warn_undefined,
)
from surface_consistency.metrics.correlation._correlations import average_ranks
from surface_consistency.metrics.uncertainty import intervals


def clustered_auc(
    scores: npt.ArrayLike,
    labels: npt.ArrayLike,
    clusters: Sequence[Hashable] | npt.NDArray[np.generic] | None = None,
    *,
    confidence: float = 0.95,
) -> dict[str, Any]:
    """Compute the area under the ROC curve with a cluster-robust interval and test.

    Args:
        scores: Scores of shape (n,), finite or infinite; higher means positive.
        labels: Labels of shape (n,): True or 1 for positives, False or 0 for negatives.
        clusters: Cluster of each example, such as the entity that a positive and the negatives made
            from it share; None makes each example a separate cluster.
        confidence: Nominal coverage, in (0, 1).

    Returns:
        auc, the probability that a random positive scores higher than a random negative, ties
        counted half, in [0, 1]; auc_low and auc_high; p_value (two-sided, null hypothesis: an area
        of 0.5); reason (why numbers are NaN; otherwise empty); tied_share (proportion of pairs of a
        positive and a negative with equal scores); n_positive, n_negative and n_clusters.

    Raises:
        ValueError: If lengths differ, a score is NaN, a label is neither 0 nor 1, or the confidence
            level is out of range.

    Notes:
        Interval and p-value are computed on the logit of the area, with Obuchowski's variance and
        Student's t. The degrees of freedom are one less than the effective number of clusters
        (Kish), which is computed for the clusters with positives and for those with negatives; the
        smaller one is used. If it is below four, as if three clusters contain all positives or one
        contains half of them, there is no interval, and `reason` reports it. An area of 0 or 1 has
        no variance; its interval is Wilson's with clusters as trials. If all scores are tied, or
        all labels are equal, the area is NaN, with an `UndefinedMetricWarning`. The order of the
        examples does not matter.

    References:
        Obuchowski (1997), Nonparametric analysis of clustered ROC curve data, Biometrics 53, 567;
        Kish, Survey Sampling, 1965 (clusters of unequal size).

    Examples:
        >>> clustered_auc([0.9, 0.4, 0.6, 0.1], [1, 1, 0, 0])["auc"]
        0.75
    """
    check_confidence_level(confidence)
    values = np.asarray(plain(scores), dtype=np.float64)
    marks = np.asarray(plain(labels), dtype=np.float64)
    if values.shape != marks.shape or values.ndim != 1:
        raise ValueError(
            "scores and labels must be one-dimensional, of equal lengths, one entry per example; "
            f"got shapes {values.shape} and {marks.shape}"
        )
    if np.isnan(values).any():
        raise ValueError(f"scores[{int(np.isnan(values).argmax())}] is NaN; drop that example")
    if not np.isin(marks, (0.0, 1.0)).all():
        raise ValueError("labels must be 0 or 1, False or True")
    positive = marks == 1.0
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    codes = label_codes(clusters, values.size, "clusters", row="example")
    n_clusters = int(codes.max(initial=-1)) + 1
    auc = tied_share = p_value = math.nan
    low = high = math.nan
    reason = f"there are {n_positive} positives and {n_negative} negatives"
    if n_positive and n_negative:
        above = _placements(values, positive)
        tied_share = _tied_share(values, positive)
        reason = "all scores are tied"
        if tied_share < 1.0:
            auc = float(above[positive].mean())
            low, high, p_value, reason = _inference(auc, above - auc, positive, codes, confidence)
    if math.isnan(auc):
        warn_undefined(f"the area under the curve is undefined (NaN): {reason}", stacklevel=2)
    return {
        "auc": auc,
        "auc_low": low,
        "auc_high": high,
        "p_value": p_value,
        "reason": reason,
        "tied_share": tied_share,
        "n_positive": n_positive,
        "n_negative": n_negative,
        "n_clusters": n_clusters,
    }


def area_under_curve(scores: npt.ArrayLike, positive: Flags) -> float:
    """Return the probability that a positive scores above a negative; NaN with only one class."""
    if positive.all() or not positive.any():
        return math.nan
    return float(_placements(np.asarray(scores, dtype=np.float64), positive)[positive].mean())


def _placements(values: Floats, positive: Flags) -> Floats:
    """Return the position of each example among those of the other class; ties count half.

    For a positive, the proportion of negatives below it; for a negative, of positives above it.
    """
    ranks = average_ranks(values)
    placed = np.empty_like(values)
    for mine, sign in ((positive, 1.0), (~positive, -1.0)):
        within = average_ranks(values[mine])
        n_others = values.size - int(mine.sum())
        below = (ranks[mine] - within) / n_others
        placed[mine] = below if sign > 0 else 1.0 - below
    return placed


def _tied_share(values: Floats, positive: Flags) -> float:
    """Return the proportion of pairs of a positive and a negative with equal scores."""
    _, scores = np.unique(values, return_inverse=True)
    counts = [
        np.bincount(scores[mine], minlength=scores.max() + 1) for mine in (positive, ~positive)
    ]
    return float(counts[0] @ counts[1]) / float(counts[0].sum() * counts[1].sum())


def _inference(
    auc: float, centred: Floats, positive: Flags, codes: Integers, confidence: float
) -> tuple[float, float, float, str]:
    """Return bounds and p-value from the centred placements, or the reason for their absence."""
    sides = {"positive": positive, "negative": ~positive}
    sizes = {name: np.bincount(codes[mine]).astype(np.float64) for name, mine in sides.items()}
    n_effective = {name: float(intervals.effective_number(n)) for name, n in sizes.items()}
    fewest = min(n_effective, key=lambda name: n_effective[name])
    n, undefined = n_effective[fewest], (math.nan, math.nan, math.nan)
    if not intervals.enough_clusters(n):
        return *undefined, f"{fewest}s: {intervals.too_few_clusters(n)}"
    quantile = float(intervals.t_quantile(n - 1.0, confidence))
    if auc in (0.0, 1.0):
        bound = quantile**2 / (n + quantile**2)
        low, high = (0.0, bound) if auc == 0.0 else (1.0 - bound, 1.0)
        return low, high, float(intervals.t_p_value(math.sqrt(n), n - 1.0)), ""
    n_clusters, variance = int(codes.max()) + 1, 0.0
    sums = {
        name: np.bincount(codes[mine], centred[mine], minlength=n_clusters) / mine.sum()
        for name, mine in sides.items()
    }
    for name, of_class in sums.items():
        n_with = np.count_nonzero(sizes[name])
        variance += float((of_class**2).sum()) * n_with / (n_with - 1)
    variance += 2 * float(sums["positive"] @ sums["negative"]) * n_clusters / (n_clusters - 1)
    if not variance > 0.0:
        return *undefined, "the clusters do not vary"
    error, logit = math.sqrt(variance) / (auc * (1 - auc)), math.log(auc / (1 - auc))
    low, high = (
        (1.0 + math.tanh((logit + sign * quantile * error) / 2.0)) / 2.0 for sign in (-1.0, 1.0)
    )
    return low, high, float(intervals.t_p_value(logit / error, n - 1.0)), ""
