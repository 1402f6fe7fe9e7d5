"""Mean accuracy in bins of frequency with equal numbers of surface instances."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from surface_consistency.metrics._groups import root_seed
from surface_consistency.metrics._inputs import Floats, Integers, MissingPolicy, check_count
from surface_consistency.metrics.correlation._correlations import average_ranks
from surface_consistency.metrics.frequency.frequency_rows import read_rows, warn_missing
from surface_consistency.metrics.paired.paired_tables import CountRatio
from surface_consistency.metrics.uncertainty.bootstrap import cluster_sums, group_values
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals

_MEAN = CountRatio(numerator=(1, 0), denominator=(0, 1))


def _points(
    frequency: Floats, accuracy: Floats, clusters: Integers, n_bins: int, intervals: Intervals
) -> pd.DataFrame:
    """Return the mean accuracy of each bin with at least one row, with its interval."""
    generator = np.random.default_rng(intervals.seed)
    bins = np.floor(n_bins * (average_ranks(frequency) - 0.5) / frequency.size).astype(np.int64)
    rows = []
    for number in np.unique(bins):
        chosen = bins == number
        _, codes = np.unique(clusters[chosen], return_inverse=True)
        sums = cluster_sums(np.column_stack([accuracy[chosen], np.ones(codes.size)]), codes)
        drawn = replace(intervals, seed=generator)
        bounds = group_values(sums, {"accuracy": _MEAN}, drawn)["accuracy"]
        rows.append(
            {
                "bin": int(number),
                "frequency_min": float(frequency[chosen].min()),
                "frequency_max": float(frequency[chosen].max()),
                "n": codes.size,
                "n_clusters": len(sums),
                "accuracy": float(accuracy[chosen].mean()),
                "accuracy_low": bounds.low,
                "accuracy_high": bounds.high,
            }
        )
    return pd.DataFrame(rows)


_RESULT = (
    *("model", "subset", "frequency", "bin", "frequency_min", "frequency_max", "n"),
    *("n_clusters", "accuracy", "accuracy_low", "accuracy_high"),
)


def frequency_curves(
    frame: pd.DataFrame,
    *,
    accuracy: str | Sequence[str] = "accuracy",
    entity_frequency: str = "entity_frequency",
    surface_frequency: str = "surface_frequency",
    is_canonical: str = "is_canonical",
    by: str | Sequence[str] = (),
    cluster: str | None = "item",
    n_bins: int = 20,
    high_frequency_above: float = 10.0,
    intervals: Intervals = DEFAULT_INTERVALS,
    missing: MissingPolicy = "drop",
) -> pd.DataFrame:
    """Return mean accuracy in bins of frequency, on the rows that `frequency_analysis` uses.

    Args:
        frame: One row per surface instance, with the columns named below.
        accuracy: Column of accuracies in [0, 1], or several columns, one per model.
        entity_frequency: Column of the number of mentions of the entity under any surface.
        surface_frequency: Column of the number of mentions under this surface.
        is_canonical: Column with True for canonical surfaces and False for redirects.
        by: Columns of the groups, which are binned separately.
        cluster: Column of the clusters; None assumes independent rows.
        n_bins: Number of bins with about equal numbers of rows.
        high_frequency_above: Threshold; rows of "redirect_high_frequency" have a surface frequency
            above it.
        intervals: Options of the intervals; each bin is resampled separately.
        missing: "drop" excludes rows without a frequency or an accuracy, with an `UnscoredWarning`;
            "raise" raises an error.

    Returns:
        One row per bin of each group, model, subset and frequency ("entity" or "surface"): the
        columns `by`; model (if `accuracy` has several columns); subset, frequency; bin (from 0, the
        lowest frequencies); frequency_min and frequency_max (the extremes of its rows); n;
        n_clusters; and accuracy (their mean, in [0, 1]) with its bounds.

    Raises:
        ColumnNotFoundError: If a named column is not in the frame.
        TypeError: If `frame` is not a DataFrame, a value is not a number, or a count option is not
            an integer.
        ValueError: As for `frequency_analysis`, and if `n_bins` is less than 1.

    Notes:
        A row of average rank r is in bin floor(n_bins (r - 1/2) / n), so that equal frequencies are
        in the same bin, for any order of the rows. With many ties bins are uneven, and empty bins
        are omitted. Rows with a zero frequency are excluded from both curves. A subset without rows
        has no bins. If no subset has rows, the result is empty. Bounds are NaN in a bin with one
        cluster.

    References:
        Figure 3 of arXiv 2604.21882.

    Examples:
        >>> import pandas as pd
        >>> rows = np.arange(200)
        >>> frame = pd.DataFrame(
        ...     {"item": rows // 2, "is_canonical": rows % 2 == 0, "entity_frequency": rows + 1,
        ...      "surface_frequency": rows // 2 + 1, "accuracy": rows / 199})
        >>> curves = frequency_curves(frame, n_bins=4)
        >>> curves.groupby(["subset", "frequency"], sort=False)["n"].sum().tolist()
        [200, 200, 100, 100, 100, 100, 90, 90]
    """
    if check_count(n_bins, "n_bins") == 0:
        raise ValueError("n_bins must be at least 1; got 0")
    data = read_rows(
        frame,
        _RESULT,
        accuracy=accuracy,
        entity_frequency=entity_frequency,
        surface_frequency=surface_frequency,
        is_canonical=is_canonical,
        by=by,
        cluster=cluster,
        high_frequency_above=high_frequency_above,
        missing=missing,
    )
    drawn, parts = replace(intervals, seed=root_seed(intervals.seed)), list[pd.DataFrame]()
    for labels, chosen, column in data.cells():
        rows = chosen.positions[~np.isnan(data.accuracies[chosen.positions, column])]
        accuracies = data.accuracies[rows, column]
        clusters = pd.factorize(data.clusters[rows])[0]
        parts += [
            _points(values[rows], accuracies, clusters, n_bins, drawn).assign(
                **labels, frequency=name
            )
            for name, values in (("entity", data.entity), ("surface", data.surface))
            if rows.size
        ]
    warn_missing(data, len(frame), stacklevel=2)
    if not parts:
        return pd.DataFrame(columns=data.columns)
    return pd.concat(parts, ignore_index=True)[data.columns]
