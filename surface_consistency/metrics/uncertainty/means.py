"""The mean of a score in every group of a frame, with its clustered t interval."""

import math
from collections.abc import Sequence
from typing import Final

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
    """Compute the mean score of each group, with an interval that respects clusters.

    Args:
        frame: One row per observation, with the columns named below.
        by: Columns that make the groups; none of them gives one row.
        score: Column of finite numbers, such as 0 and 1, a graded score or a difference.
        cluster: Column of dependent rows; None for independent rows.
        scale: Smallest and largest possible score; None for 0 and 1 if all scores are in [0, 1],
            and for no limits otherwise. Differences of scores in [0, 1] have the scale (-1, 1).
        intervals: Confidence level; the method is "auto".
        missing: "drop" excludes rows without a score, with a count in `n_missing` and an
            `UnscoredWarning`; "raise" rejects them.

    Returns:
        One row per group, sorted by label, with the columns `by`; mean, mean_low, mean_high;
        p_value (two-sided, of a mean of 0, from the t of the interval); n, n_clusters, few_clusters
        (fewer than 20), n_missing and not_inferred (why the interval is NaN; empty otherwise).

    Raises:
        ColumnNotFoundError: If a named column is not in the frame.
        TypeError: If `frame` is not a DataFrame, or a score is not a number.
        ValueError: If the frame is empty, a score is infinite or (under "raise") missing, a cluster
            id is missing, a score is outside `scale`, or the method of the intervals is not "auto".

    Notes:
        The interval is the t interval of `compare_models`: the mean of a model there equals the
        mean of its rows here. Between the ends graded scores may vary as little as they do.

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
        raise ValueError(f"intervals of means have method='auto'; got {intervals.method!r}")
    keys = _groups.grouping_columns(by, _COLUMNS)
    needed = [*keys, score, *filter(None, (cluster,))]
    _groups.check_frame(frame, needed, options="by, score or cluster", row="row")
    values = _inputs.numeric_vector(frame[score].array, score)
    absent = np.isnan(values)
    _inputs.refuse_missing(absent, score, missing)
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
    inferred = _inference(values, codes, scale, has_differences=is_given and scale[0] < 0.0)
    low, high = np.clip(inferred.bounds(confidence), *scale)
    return row | {
        "mean": float(inferred.value),
        "mean_low": float(low),
        "mean_high": float(high),
        "p_value": float(inferred.p_value()),
        "not_inferred": inferred.not_inferred,
    }


def _inference(
    values: _inputs.Floats,
    codes: npt.NDArray[np.intp],
    scale: tuple[float, float],
    *,
    has_differences: bool,
) -> ClusterT:
    """Return the t inference of the mean of values."""
    ends, reach = scale, math.nan
    if has_differences:
        # The events of a difference are as large as they were seen.
        size = np.abs(values).sum()
        reach = float((values**2).sum() / size) if size > 0.0 else scale[1]
    elif not np.isin(values, (0.0, 1.0)).all():
        ends = (-math.inf, math.inf)
    sums = [np.bincount(codes, part) for part in (np.maximum(values, 0), np.maximum(-values, 0))]
    part = Part(1.0, (1.0, -1.0, 0.0), (0.0, 0.0, 1.0), *ends, reach)
    inferred = cluster_t([part], np.column_stack([*sums, np.bincount(codes)]).astype(np.float64))
    if inferred is None:  # pragma: no cover - scores within their scale make means
        raise ValueError(f"scores are outside their scale {scale}")
    return inferred
