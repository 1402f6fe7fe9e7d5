"""The values of many statistics of one group, with intervals from one set of resamples."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.quantiles import quantiles
from surface_consistency.metrics.uncertainty._bca import acceleration, bca_bounds
from surface_consistency.metrics.uncertainty.bootstrap import Statistic, resample_counts

__all__ = [
    "INTERVALS",
    "GroupValue",
    "IntervalMethod",
    "cluster_sums",
    "group_values",
    "value_columns",
]

IntervalMethod = Literal["percentile", "bca"]
"""How the interval is read from the resamples."""

INTERVALS: tuple[IntervalMethod, ...] = ("percentile", "bca")
"""Names of the methods."""


class GroupValue(NamedTuple):
    """A statistic of one group."""

    value: float
    """Of all clusters; NaN where undefined."""

    low: float
    """Lower bound; NaN where undefined."""

    high: float
    """Upper bound; NaN where undefined."""

    n_undefined: int
    """Resamples in which it was NaN."""


def cluster_sums(
    counts: npt.NDArray[np.number], clusters: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Sum the rows of each cluster, shape `(n_clusters, n_columns)`, in order of cluster code."""
    distinct, codes = np.unique(clusters, return_inverse=True)
    columns = [np.bincount(codes, weights=column, minlength=distinct.size) for column in counts.T]
    return np.stack(columns, axis=1)


def group_values(
    sums: npt.NDArray[np.float64],
    statistics: Mapping[str, Statistic],
    *,
    confidence: float,
    n_resamples: int,
    method: IntervalMethod,
    rng: np.random.Generator,
) -> dict[str, GroupValue]:
    """Return each statistic of the summed rows of `sums`, resampled together."""
    totals = sums.sum(axis=0)
    drawn = np.empty((0, sums.shape[1]))
    if len(sums) > 1:
        drawn = resample_counts(sums, n_resamples=n_resamples, rng=rng)
    tail = (1.0 - confidence) / 2.0
    found = {}
    for name, statistic in statistics.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.asarray(statistic(drawn), dtype=np.float64)
            value = float(np.asarray(statistic(totals)))
        if method == "bca" and values.size:
            skewness = acceleration(statistic, sums, np.ones(len(sums)))
            low, high = bca_bounds(values, value, skewness, confidence)
        else:
            low, high = quantiles(values, (tail, 1.0 - tail))
        found[name] = GroupValue(value, low, high, int(np.count_nonzero(np.isnan(values))))
    return found


def value_columns(values: Mapping[str, GroupValue]) -> dict[str, object]:
    """Return the columns of the statistics of a group: n_undefined, each value and its bounds."""
    row: dict[str, object] = {
        "n_undefined": max((found.n_undefined for found in values.values()), default=0)
    }
    for name, found in values.items():
        row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
    return row
