"""The mean of a score, for every group of a frame, with its cluster-robust t interval."""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.clusters import FEW_CLUSTERS
from surface_consistency.metrics import _groups, _inputs
from surface_consistency.metrics.uncertainty.cluster_bounds import ClusterT, Part, cluster_t
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals

_COLUMNS: Final = (
    *("mean", "mean_low", "mean_high", "p_value", "n", "n_clusters"),
    *("few_clusters", "n_missing", "not_inferred"),
)


# Tolerance for rounding in a mean distance, as a fraction of the length of the scale.
_ROUNDING: Final = 1e-12


class MeanT(NamedTuple):
    """Means of scores; each is inferred as its distance from an end of the scale."""

    inferred: ClusterT
    """The distances, of one or many means."""
    end: _inputs.Floats
    """The end of the scale, or 0 if the scale has none."""
    sign: _inputs.Floats
    """-1 for the upper end, otherwise 1."""

    @property
    def value(self) -> _inputs.Floats:
        """Return the means."""
        return np.asarray(self.end + self.sign * self.inferred.value)

    def bounds(self, confidence: float) -> tuple[_inputs.Floats, _inputs.Floats]:
        """Return the limits at a confidence level."""
        low, high = (self.end + self.sign * one for one in self.inferred.bounds(confidence))
        is_rising = self.sign > 0.0
        return np.where(is_rising, low, high), np.where(is_rising, high, low)

    def p_value(self, null: float) -> _inputs.Floats:
        """Return the two-sided p-values of a mean."""
        return self.inferred.p_value(self.sign * (null - self.end))


class Distances(NamedTuple):
    """Distances of scores from the nearer end of their scale, or from 0 if the scale has no end."""

    sums: _inputs.Floats
    """Sums of the distances of each row, in the shape of the sums of the scores."""
    reaches: _inputs.Floats
    """Mean square over mean of the distances of each task; NaN if the scale has no ends."""
    ends: tuple[float, float]
    """Smallest and largest possible distance."""
    end: _inputs.Floats
    """The end of the scale, shape `(...)`, or 0 if the scale has none."""
    sign: _inputs.Floats
    """-1 if distances are measured from the upper end, otherwise 1."""

    def mean(self, inferred: ClusterT) -> MeanT:
        """Return the mean of the scores from the mean of the distances."""
        return MeanT(inferred, self.end, self.sign)


def distances(
    sums: _inputs.Floats,
    sizes: _inputs.Floats,
    of_tasks: tuple[_inputs.Floats, _inputs.Floats, _inputs.Floats],
    scale: tuple[float, float],
) -> Distances:
    """Convert scores to distances from the nearer end of their scale.

    The variance term for few scores away from that end assumes distances of the observed size, so
    that no result depends on the unit.

    Args:
        sums: Sum of the scores of each row, of clusters of a task, shape `(..., n_rows)`.
        sizes: Number of scores of each row.
        of_tasks: Number of scores, their sum and the sum of their squares, of each task, each of
            shape `(..., n_tasks)`.
        scale: Smallest and largest possible score; infinite if there is none.

    Returns:
        The distances.
    """
    n, total, squares = of_tasks
    full = scale[1] - scale[0]
    if not math.isfinite(full):
        ends, unknown = np.zeros(total.shape[:-1]), np.full(total.shape, math.nan)
        return Distances(sums, unknown, (-math.inf, math.inf), ends, ends + 1.0)
    is_low = (total / n).mean(axis=-1) <= scale[0] + full / 2.0
    end, sign = np.where(is_low, scale[0], scale[1]), np.where(is_low, 1.0, -1.0)
    ends, signs = end[..., None], sign[..., None]
    size = np.maximum(signs * (total - ends * n), 0.0)
    square = np.maximum(squares - 2.0 * ends * total + ends**2 * n, 0.0)
    is_seen = size > _ROUNDING * full * n
    reaches = np.where(is_seen, square / np.where(is_seen, size, 1.0), full)
    values = np.maximum(signs * (sums - ends * sizes), 0.0)
    return Distances(values, np.minimum(reaches, full), (0.0, full), end, sign)


def mean_by(
    frame: pd.DataFrame,
    *,
    by: str | Sequence[str] = (),
    score: str = "score",
    cluster: str | None = None,
    scale: tuple[float, float] | None = None,
    intervals: Intervals = DEFAULT_INTERVALS,
    missing: _inputs.MissingPolicy = "drop",
) -> pd.DataFrame:
    """Return the mean score of each group, with a cluster-robust interval.

    Args:
        frame: One row per observation, with the columns named below.
        by: Columns of the groups; an empty tuple gives one row.
        score: Column of finite numbers, such as 0 and 1, a graded score or a difference.
        cluster: Column of dependent rows; None for independent rows.
        scale: Smallest and largest possible score; None for 0 and 1 if all scores are in [0, 1],
            and for no limits otherwise. A scale that is symmetric about 0, such as (-1, 1), means
            that the scores are differences.
        intervals: Confidence level; the method must be "auto".
        missing: "drop" excludes rows without a score, with a count in `n_missing` and an
            `UnscoredWarning`; "raise" raises an error.

    Returns:
        One row per group, sorted by label, with the columns `by`; mean, mean_low, mean_high;
        p_value (two-sided, null hypothesis: a mean of 0; from the t of the interval); n,
        n_clusters, few_clusters (fewer than 20), n_missing and not_inferred (why the interval is
        NaN; empty otherwise).

    Raises:
        ColumnNotFoundError: If a named column is not in the frame.
        TypeError: If `frame` is not a DataFrame, or a score is not a number.
        ValueError: If the frame is empty, a score is infinite or (under "raise") missing, a cluster
            id is missing, a score is outside `scale`, or the method of the intervals is not "auto".

    Notes:
        The interval is the t interval of `compare_models`: the mean of a model there equals the
        mean of its rows here. Graded scores are measured from the nearer end of their scale, and
        the variance term for few scores away from it assumes distances of the observed size.

    References:
        Miller, "Adding error bars to evals", arXiv 2411.00640, section 2.2 (clustered standard
        errors of a mean score).

    Examples:
        >>> frame = pd.DataFrame({"article": np.arange(40) // 2, "score": [1, 0, 1, 1] * 10})
        >>> row = mean_by(frame, cluster="article").iloc[0]
        >>> [round(float(row[name]), 3) for name in ("mean", "mean_low", "mean_high")]
        [0.75, 0.62, 0.875]
    """
    if intervals.method != "auto":
        raise ValueError(f"intervals of means need method='auto'; got {intervals.method!r}")
    keys = _groups.grouping_columns(by, _COLUMNS)
    needed = [*keys, score, *filter(None, (cluster,))]
    _groups.check_frame(frame, needed, options="by, score or cluster", row="row")
    values = _inputs.numeric_vector(frame[score].array, score)
    absent = np.isnan(values)
    _inputs.check_complete(absent, score, missing)
    _inputs.warn_unscored(int(absent.sum()), absent.size, what="rows", lack="a score", stacklevel=2)
    clusters = _groups.cluster_codes(frame, cluster)
    ends = _scale(values[~absent], scale, score)
    rows = []
    for key, places in _groups.group_positions(frame, keys).items():
        known = places[~absent[places]]
        row: dict[str, object] = dict(zip(keys, key, strict=True))
        rows.append(
            row
            | {"n": known.size, "n_missing": places.size - known.size}
            | _mean(values[known], clusters[known], ends, intervals.confidence, scale is not None)
        )
    return pd.DataFrame(rows, columns=[*keys, *_COLUMNS])


def _scale(
    values: _inputs.Floats, scale: tuple[float, float] | None, score: str
) -> tuple[float, float]:
    """Return the smallest and the largest possible score."""
    low, high = float(values.min(initial=math.inf)), float(values.max(initial=-math.inf))
    if scale is None:
        return (0.0, 1.0) if low >= 0.0 and high <= 1.0 else (-math.inf, math.inf)
    if low < scale[0] or high > scale[1]:
        raise ValueError(
            f"column {score!r} has scores between {low:g} and {high:g}, outside the scale "
            f"{scale[0]:g} to {scale[1]:g}; pass the scale of the scores"
        )
    return scale


def _mean(
    values: _inputs.Floats,
    clusters: npt.NDArray[np.int64],
    scale: tuple[float, float],
    confidence: float,
    is_given: bool,
) -> dict[str, object]:
    """Return the mean of a group with its interval and test."""
    codes = np.unique(clusters, return_inverse=True)[1]
    n_clusters = int(codes.max(initial=-1)) + 1
    row: dict[str, object] = {"n_clusters": n_clusters, "few_clusters": n_clusters < FEW_CLUSTERS}
    if not n_clusters:
        undefined = dict.fromkeys(("mean", "mean_low", "mean_high", "p_value"), math.nan)
        return row | undefined | {"not_inferred": "no row has a score"}
    sizes = np.bincount(codes).astype(np.float64)
    if is_given and scale[0] == -scale[1]:
        mean = MeanT(_of_differences(values, codes, sizes, scale), np.zeros(()), np.ones(()))
    else:
        of_all = np.array([[values.size], [values.sum()], [values @ values]])
        seen = distances(_sums(codes, values), sizes, (of_all[0], of_all[1], of_all[2]), scale)
        sums = [np.maximum(seen.sums, 0.0), np.maximum(-seen.sums, 0.0)]
        mean = seen.mean(_of_sums(sums, sizes, seen.ends, float(seen.reaches[0])))
    low, high = np.clip(mean.bounds(confidence), *scale)
    return row | {
        "mean": float(mean.value),
        "mean_low": float(low),
        "mean_high": float(high),
        "p_value": float(mean.p_value(0.0)),
        "not_inferred": mean.inferred.not_inferred,
    }


def _of_differences(
    values: _inputs.Floats,
    codes: npt.NDArray[np.intp],
    sizes: _inputs.Floats,
    scale: tuple[float, float],
) -> ClusterT:
    """Return the t inference of a mean of differences, with events of the observed size."""
    size = np.abs(values).sum()
    reach = float(values @ values / size) if size > 0.0 else scale[1]
    sums = [_sums(codes, part) for part in (np.maximum(values, 0), np.maximum(-values, 0))]
    return _of_sums(sums, sizes, scale, reach, float(size / values.size))


def _sums(codes: npt.NDArray[np.intp], values: _inputs.Floats) -> _inputs.Floats:
    """Sum values by code."""
    return np.bincount(codes, values).astype(np.float64)


def _of_sums(
    sums: list[_inputs.Floats],
    sizes: _inputs.Floats,
    ends: tuple[float, float],
    reach: float,
    events: float = math.nan,
) -> ClusterT:
    """Return the t inference of a mean from the positive and negative sums of clusters."""
    part = Part(1.0, (1.0, -1.0, 0.0), (0.0, 0.0, 1.0), *ends, reach, events)
    inferred = cluster_t([part], np.column_stack([*sums, sizes]))
    if inferred is None:  # pragma: no cover - scores within their scale have a mean
        raise ValueError(f"scores are outside their scale {ends}")
    return inferred
