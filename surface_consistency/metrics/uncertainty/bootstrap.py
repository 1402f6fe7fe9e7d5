"""Statistics of summed counts with their intervals, analytic or by the cluster bootstrap."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from surface_consistency.clusters import LEAST_CLUSTERS
from surface_consistency.metrics._inputs import Floats, Integers, check_n_resamples, warn_undefined
from surface_consistency.metrics.uncertainty.cluster_bounds import (
    ClusterT,
    cluster_ts,
    inferred_bounds,
    statistic_bounds,
)
from surface_consistency.metrics.uncertainty.intervals import (
    DEFAULT_INTERVALS,
    Intervals,
    quantiles,
    too_few_clusters,
)

Statistic: TypeAlias = Callable[[npt.NDArray[np.float64]], npt.ArrayLike]
"""A function from summed counts of shape `(..., k)` to values of shape `(...)`."""


# Size limit of the arrays of a chunk of draws: 8 MiB for any number of clusters.
_CHUNK_CELLS = 2**20
# A binomial draw of the multinomial takes about as long as drawing and counting ten clusters.
_CLUSTERS_PER_PATTERN = 10
# Ratio of codes to rows above which clusters are renumbered before they are summed.
_MOST_EMPTY = 4


def resample_counts(
    counts: npt.ArrayLike, *, resamples: int = 10_000, seed: np.random.Generator | int | None = 0
) -> npt.NDArray[np.float64]:
    """Return the summed counts of clusters that are drawn with replacement, for each resample.

    Use it to compute intervals of several statistics from the same resamples.

    Args:
        counts: Counts, or other sums, of each cluster, shape `(n_clusters, k)`.
        resamples: Number of resamples, each of `n_clusters` clusters.
        seed: Seed, random generator, or None for fresh entropy.

    Returns:
        The summed counts of each resample, shape `(resamples, k)`.

    Raises:
        ValueError: If `counts` is not a finite matrix with at least one row and one column, or
            `resamples` is less than 1.
        TypeError: If `counts` is not numeric or `resamples` is not an integer.

    Notes:
        The order of the clusters does not matter. Sums of integers are exact up to 2**53. In
        addition to the result, less than about 50 MB of memory is used for up to a million
        clusters. With one cluster, all resamples are equal to it.

    References:
        Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 3.8.

    Examples:
        >>> totals = resample_counts([[1, 0], [0, 1], [0, 1]], resamples=5, seed=1)
        >>> totals.shape, totals.sum(axis=1).tolist()
        ((5, 2), [3.0, 3.0, 3.0, 3.0, 3.0])
    """
    resamples, (patterns, frequencies) = (check_n_resamples(resamples), _patterns(_matrix(counts)))
    n_clusters, n_patterns = int(frequencies.sum()), len(patterns)
    by_pattern = n_patterns * _CLUSTERS_PER_PATTERN <= n_clusters
    if not by_pattern:
        patterns = np.repeat(patterns, frequencies.astype(np.int64), axis=0)
    size = max(1, _CHUNK_CELLS // (n_patterns if by_pattern else n_clusters))
    totals, generator = np.empty((resamples, patterns.shape[1])), np.random.default_rng(seed)
    for start in range(0, resamples, size):
        rows = min(size, resamples - start)
        if by_pattern:
            drawn = generator.multinomial(n_clusters, frequencies / n_clusters, size=rows)
        else:
            drawn = generator.integers(0, n_clusters, size=(rows, n_clusters))
            drawn += n_clusters * np.arange(rows)[:, None]
            drawn = np.bincount(drawn.ravel(), minlength=rows * n_clusters).reshape(drawn.shape)
        np.matmul(drawn.astype(np.float64), patterns, out=totals[start : start + rows])
    return totals


def cluster_bootstrap(
    counts: npt.ArrayLike, statistic: Statistic, *, intervals: Intervals = DEFAULT_INTERVALS
) -> tuple[float, float, float]:
    """Return a statistic of summed counts with a cluster-robust confidence interval.

    Pairs of one fact are not independent. Therefore the jackknife omits facts, not pairs, and
    "percentile" resamples facts.

    Args:
        counts: Counts, or other sums, of each cluster, shape `(n_clusters, k)`, as from
            `cluster_counts`.
        statistic: Maps summed counts of shape `(..., k)` to values of shape `(...)`; any entry of
            `PAIRED_RATES`, or a custom vectorised function.
        intervals: Level, method, resamples and seed of the interval.

    Returns:
        The statistic of all clusters, and the lower and upper bound of its interval.

    Raises:
        ValueError: If `counts` is not a finite matrix with at least one row and one column, or the
            shape of the values of `statistic` is not `(...)`.
        TypeError: If `counts` is not numeric.

    Notes:
        The bounds are NaN, with an `UndefinedMetricWarning` that gives the reason, in these cases:
        there are fewer than four clusters, or an effective number (Kish) below four, as if one
        cluster has half of the pairs; the estimate is undefined; the statistic is undefined in
        every resample; a custom statistic is undefined without one of the clusters, or does not
        depend on which one is omitted. If the statistic is undefined only in some resamples, these
        are excluded. Under "percentile" a statistic that never varies has an interval of width 0,
        and coverage is too low near 0 and 1 and with fewer than about 50 clusters. The order of the
        clusters does not matter. A custom statistic is treated as a proportion or a difference of
        proportions if it is a `CountRatio`.

    References:
        B. Efron, The Jackknife, the Bootstrap and Other Resampling Plans, SIAM 1982, chapter 3;
        E. B. Wilson, Journal of the American Statistical Association 22, 1927 (variance at the
        hypothesised value); L. Kish, Survey Sampling, Wiley 1965; Efron and Tibshirani, An
        Introduction to the Bootstrap, 1993, chapter 11 and section 13.3; Field and Welsh,
        Journal of the Royal Statistical Society B 69, 2007 (clusters).

    Examples:
        >>> from surface_consistency.metrics.paired.paired_tables import PAIRED_RATES
        >>> counts = [[2, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 2], [0, 2, 1, 0]] * 50
        >>> [round(x, 2) for x in cluster_bootstrap(counts, PAIRED_RATES["consistency"])]
        [0.6, 0.54, 0.66]
    """
    sums = _matrix(counts)
    # Sorted, so that rounding of sums does not depend on the order of the clusters.
    sums = sums[np.lexsort(sums.T)]
    # A statistic that does not keep the leading axes is rejected before use.
    _evaluate(statistic, sums)
    result = group_values(sums, {"": statistic}, intervals)[""]
    if result.not_inferred:
        warn_undefined(f"the interval is undefined (NaN): {result.not_inferred}", stacklevel=2)
    return result.value, result.low, result.high


def _matrix(counts: npt.ArrayLike) -> Floats:
    """Return the counts as a checked matrix of floats."""
    array = np.asarray(counts)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"counts must be numeric; got dtype {array.dtype}")
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            "counts must have shape (n_clusters, k) with at least one cluster and one column; "
            f"got {array.shape}"
        )
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array).all(axis=1)))
        raise ValueError(f"counts must be finite; row {row} is {array[row].tolist()}")
    return array.astype(np.float64)


def _patterns(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the distinct rows and their frequencies, most frequent first."""
    order = np.lexsort(matrix.T)
    ordered = matrix[order]
    starts = np.flatnonzero(np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)])
    frequencies = np.diff(np.r_[starts, len(ordered)])
    by_frequency = np.argsort(-frequencies, kind="stable")
    return ordered[starts][by_frequency], frequencies[by_frequency].astype(np.float64)


def _evaluate(statistic: Statistic, totals: Floats) -> Floats:
    """Apply the statistic, and check that it keeps the leading axes."""
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.asarray(statistic(totals), dtype=np.float64)
    if values.shape != totals.shape[:-1]:
        raise ValueError(
            "statistic must map summed counts of shape (..., k) to values of shape (...): for "
            f"{totals.shape} it returned {values.shape}; sum over axis=-1"
        )
    return values


class GroupValue(NamedTuple):
    """A statistic of one group."""

    value: float
    """Value over all clusters; NaN if undefined."""

    low: float
    """Lower bound of its interval; NaN if undefined."""

    high: float
    """Upper bound of its interval; NaN if undefined."""

    n_undefined: int
    """Number of resamples in which it was NaN; 0 if the interval needs no resamples."""

    not_inferred: str
    """Reason why it has no interval; empty if it has one."""

    inferred: ClusterT | None
    """Inference of the statistic, if it is a sum of means; None with resamples."""

    @property
    def p_value(self) -> float:
        """Two-sided p-value of 0, from the t of the interval; NaN if there is no such t."""
        return math.nan if self.inferred is None else float(self.inferred.p_value())


def cluster_sums(counts: npt.NDArray[np.number], clusters: Integers) -> Floats:
    """Sum the rows of each cluster, shape `(n_clusters, n_columns)`, in order of cluster code."""
    n_codes = int(clusters.max(initial=-1)) + 1
    if n_codes > _MOST_EMPTY * clusters.size:
        clusters = np.unique(clusters, return_inverse=True)[1]
        n_codes = int(clusters.max(initial=-1)) + 1
    columns = [np.bincount(clusters, weights=column, minlength=n_codes) for column in counts.T]
    has_rows = np.bincount(clusters, minlength=n_codes) > 0
    return np.asarray(np.stack(columns, axis=1)[has_rows], dtype=np.float64)


def group_values(
    sums: Floats, statistics: Mapping[str, Statistic], intervals: Intervals
) -> dict[str, GroupValue]:
    """Return each statistic of the summed rows of `sums`, computed on the same resamples."""
    return values_of_groups([(sums, intervals)], statistics)[0]


def values_of_groups(
    groups: Iterable[tuple[Floats, Intervals]], statistics: Mapping[str, Statistic]
) -> list[dict[str, GroupValue]]:
    """Return each statistic of several groups with the same confidence level.

    Args:
        groups: The sums of the clusters of each group, and its intervals.
        statistics: The statistics by name.

    Returns:
        The values of each group by name, as `group_values` returns them.
    """
    values, totals, confidence = [], [], 0.0
    for sums, intervals in groups:
        totals.append(sums.sum(axis=0))
        values.append(_values(sums, totals[-1], statistics, intervals))
        confidence = intervals.confidence
    for name, statistic in statistics.items():
        ts = {
            place: group[name].inferred or ()
            for place, group in enumerate(values)
            if group[name].inferred and not group[name].not_inferred
        }
        if not ts:
            continue
        inferred = ClusterT._make(map(np.array, zip(*ts.values(), strict=True)))
        of_places = np.array([totals[place] for place in ts])
        bounds = inferred_bounds(statistic, of_places, inferred, confidence)
        for place, low, high, reason in zip(ts, *bounds, inferred.reasons(), strict=True):
            known = values[place][name]
            values[place][name] = known._replace(
                low=float(low), high=float(high), not_inferred=reason if np.isnan(low) else ""
            )
    return values


def _values(
    sums: Floats, totals: Floats, statistics: Mapping[str, Statistic], intervals: Intervals
) -> dict[str, GroupValue]:
    """Return each statistic of one group; limits from a `ClusterT` are not computed here."""
    drawn, inferred = np.empty((0, sums.shape[1])), dict[str, ClusterT]()
    if len(sums) and intervals.method == "auto":
        inferred = cluster_ts(statistics, sums)
    elif len(sums) > 1:
        drawn = resample_counts(sums, resamples=intervals.resamples, seed=intervals.seed)
    group = {}
    for name, statistic in statistics.items():
        values, value = _evaluate(statistic, drawn), float(_evaluate(statistic, totals))
        n_undefined = int(np.count_nonzero(np.isnan(values)))
        t = inferred.get(name)
        low, high, reason = _interval(statistic, sums, values, value, intervals, t)
        group[name] = GroupValue(value, low, high, n_undefined, reason, t)
    return group


def _interval(
    statistic: Statistic,
    sums: Floats,
    drawn: Floats,
    estimate: float,
    intervals: Intervals,
    inferred: ClusterT | None,
) -> tuple[float, float, str]:
    """Return the interval of one statistic of clusters, and the reason if it is NaN.

    For a statistic with a `ClusterT` the limits are NaN here, without a reason.
    """
    confidence, method = intervals.confidence, intervals.method
    least = LEAST_CLUSTERS if method == "auto" else 2
    if math.isnan(estimate) or len(sums) < least:
        reason = "the statistic of all clusters is undefined"
        if not math.isnan(estimate):
            reason = too_few_clusters(len(sums), least)
        return math.nan, math.nan, reason
    if inferred is not None:
        return math.nan, math.nan, ""
    if method == "auto":
        low, high = statistic_bounds(statistic, sums, confidence)
        reason = (
            "omitting a cluster makes the statistic undefined or changes nothing, so that its "
            "spread is unknown"
        )
    else:
        tails = ((1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0)
        low, high = map(np.asarray, quantiles(drawn, tails))
        reason = "the statistic is undefined in all resamples"
    return float(low), float(high), reason if np.isnan(low) else ""
