"""The design effect: how many times wider does clustering make the variance of a rate?"""

import math
import warnings

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics.paired._pair_counts import pair_counts
from surface_consistency.metrics.paired.rates import PAIRED_RATES, CountRatio

__all__ = ["design_effect"]


def design_effect(
    counts: npt.ArrayLike, *, rate: str | CountRatio = "accuracy_difference"
) -> float:
    """Return the variance of a rate under clustering over that of as many independent pairs.

    Both variances are those of the linearised ratio: a pair of cell j adds
    u_j = numerator_j - rate * denominator_j. The clustered one sums u within clusters before it
    squares, K / (K - 1) sum_k (sum u)^2; the other squares each pair's, n / (n - 1) sum u^2.

    Args:
        counts: Counts of each cluster, shape `(n_clusters, 4)`, as from `cluster_counts`.
        rate: Name in `PAIRED_RATES`, or a ratio of one's own.

    Returns:
        The design effect, at least 0: 1 for pairs that are as good as independent, and close to m
        where each of many clusters holds m copies of one pair.

    Raises:
        TypeError: When `counts` holds no numbers or `rate` is neither name nor ratio.
        ValueError: When `counts` has another shape, a count is negative or no whole number, there
            is no pair, or the name is unknown.

    Notes:
        One pair a cluster gives exactly 1. Values below 1 mean that the pairs of a cluster
        compensate each other. NaN, with an `UndefinedMetricWarning`, for a single cluster and for a
        rate that is undefined or does not vary. Divide a number of pairs by it to get the number of
        independent pairs that they are worth.

    References:
        L. Kish, Survey Sampling, Wiley 1965, section 5.4; Cochran, Sampling Techniques, 1977,
        section 9A.

    Examples:
        >>> counts = [[0, 2, 0, 0], [2, 0, 0, 0], [0, 0, 2, 0], [0, 2, 0, 0]] * 50
        >>> round(design_effect(counts), 2)
        2.01
    """
    cells = pair_counts(counts)
    ratio = _ratio(rate)
    totals = cells.sum(axis=0)
    value = float(ratio(totals))
    weights = np.asarray(ratio.numerator) - value * np.asarray(ratio.denominator)
    n_clusters, n_pairs = len(cells), float(totals.sum())
    effect = math.nan
    if n_clusters > 1 and math.isfinite(value):
        within = float(totals @ weights**2) * n_pairs / (n_pairs - 1.0)
        between = float(((cells @ weights) ** 2).sum()) * n_clusters / (n_clusters - 1.0)
        effect = between / within if within > 0.0 else math.nan
    if math.isnan(effect):
        warnings.warn(
            "the design effect is undefined (NaN): it needs two clusters and a rate that varies",
            UndefinedMetricWarning,
            stacklevel=2,
        )
    return effect


def _ratio(rate: object) -> CountRatio:
    """Return the ratio of counts that is meant."""
    if isinstance(rate, CountRatio):
        return rate
    if not isinstance(rate, str):
        raise TypeError(f"rate must be a name or a CountRatio; got {type(rate).__name__}")
    found = PAIRED_RATES.get(rate)
    if not isinstance(found, CountRatio):
        raise ValueError(f"rate must be one of {', '.join(PAIRED_RATES)}; got {rate!r}")
    return found
