"""Mean accuracy in bins of frequency that hold equally many surface instances."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics._groups import (
    root_seed,
)
from surface_consistency.metrics._inputs import (
    Floats,
    Integers,
    MissingPolicy,
    check_count,
    check_same_index,
    complete_rows,
    label_codes,
    numeric_vector,
    warn_unscored,
)
from surface_consistency.metrics.correlation._correlations import average_ranks
from surface_consistency.metrics.frequency.frequency_rows import (
    read_rows,
    warn_missing,
)
from surface_consistency.metrics.paired.paired_tables import CountRatio
from surface_consistency.metrics.uncertainty.bootstrap import cluster_sums, group_values
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals


def binned_curve(
    frequency: npt.ArrayLike,
    accuracy: npt.ArrayLike,
    *,
    n_bins: int = 20,
    clusters: Iterable[Hashable] | None = None,
    intervals: Intervals = DEFAULT_INTERVALS,
    missing: MissingPolicy = "raise",
) -> pd.DataFrame:
    """Average accuracy in bins of frequency with about equally many rows.

    Args:
        frequency: Numbers of shape `(n_rows,)` to bin by: frequencies, or their logarithms, which
            give the same bins.
        accuracy: Accuracies of the same rows, in [0, 1].
        n_bins: Number of bins; RedirectQA's figure 3 has 20.
        clusters: The cluster of each row, such as its fact, for intervals that resample clusters
            within a bin; None takes each row for its own.
        intervals: How intervals are made; each bin is resampled by itself.
        missing: "raise" refuses rows in which a value is missing; "drop" leaves them out, with
            an `UnscoredWarning` that says how many.

    Returns:
        One row a bin that holds any, the lowest first: bin (from 0), frequency_min and
        frequency_max (the extremes of the rows in it), n, n_clusters, accuracy (their mean, in
        [0, 1]), low and high.

    Raises:
        TypeError: When a value is no number or a count no integer.
        ValueError: When the lengths differ, there are no complete rows, an accuracy is outside
            [0, 1], a value is (under "raise") missing, or `n_bins` is less than 1.

    Notes:
        A row of average rank r goes to bin floor(n_bins (r - 1/2) / n), so equal frequencies share
        a bin whatever the order of the rows; with many ties bins are uneven and some are empty and
        left out. Bounds are NaN in a bin with one cluster.

    References:
        Figure 3 of arXiv 2604.21882.

    Examples:
        >>> curve = binned_curve([1, 2, 3, 4, 5, 6], [0, 0, 0.5, 0.5, 0.5, 1], n_bins=3)
        >>> curve[["bin", "frequency_min", "frequency_max", "n", "accuracy"]].values.tolist()
        [[0.0, 1.0, 2.0, 2.0, 0.0], [1.0, 3.0, 4.0, 2.0, 0.5], [2.0, 5.0, 6.0, 2.0, 0.75]]
    """
    _check_bins(n_bins)
    check_same_index(frequency=frequency, accuracy=accuracy, clusters=clusters)
    columns = {
        "frequency": numeric_vector(frequency, "frequency"),
        "accuracy": numeric_vector(accuracy, "accuracy"),
    }
    n_rows = columns["frequency"].size
    codes = label_codes(clusters, n_rows, "clusters")
    columns["clusters"] = codes.astype(np.float64)
    columns, n_dropped = complete_rows(columns, missing=missing)
    outside = (columns["accuracy"] < 0.0) | (columns["accuracy"] > 1.0)
    if outside.any():
        raise ValueError(
            f"accuracy must lie in [0, 1]; got {columns['accuracy'][int(np.argmax(outside))]:g}"
        )
    if columns["accuracy"].size == 0:
        raise ValueError("there must be at least one complete row to bin; got 0")
    drawn = replace(intervals, rng=np.random.default_rng(root_seed(intervals.rng)))
    warn_unscored(n_dropped, n_rows, what="rows", lack="a frequency or accuracy", stacklevel=2)
    bins = _bins(columns["frequency"], n_bins)
    rows = [
        {"bin": int(number)} | _point({k: v[bins == number] for k, v in columns.items()}, drawn)
        for number in np.unique(bins)
    ]
    return pd.DataFrame(rows)


def _check_bins(n_bins: object) -> None:
    """Refuse what is no number of bins."""
    if check_count(n_bins, "n_bins") == 0:
        raise ValueError("n_bins must be at least 1; got 0")


def _bins(frequency: Floats, n_bins: int) -> Integers:
    shares = (average_ranks(frequency) - 0.5) / frequency.size
    return np.floor(shares * n_bins).astype(np.int64)


_MEAN = CountRatio(numerator=(1, 0), denominator=(0, 1))


def _point(columns: dict[str, Floats], intervals: Intervals) -> dict[str, object]:
    """Return the mean accuracy of one bin, with its interval."""
    accuracy = columns["accuracy"]
    _, codes = np.unique(columns["clusters"], return_inverse=True)
    sums = cluster_sums(np.column_stack([accuracy, np.ones_like(accuracy)]), codes)
    bounds = group_values(sums, {"accuracy": _MEAN}, intervals)["accuracy"]
    return {
        "frequency_min": float(columns["frequency"].min()),
        "frequency_max": float(columns["frequency"].max()),
        "n": accuracy.size,
        "n_clusters": len(sums),
        "accuracy": float(accuracy.mean()),
        "accuracy_low": bounds.low,
        "accuracy_high": bounds.high,
    }


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
    cluster: str | None = "fact_id",
    n_bins: int = 20,
    high_frequency_above: float = 10.0,
    intervals: Intervals = DEFAULT_INTERVALS,
    missing: MissingPolicy = "drop",
) -> pd.DataFrame:
    """Bin accuracy by entity and by surface frequency, on the rows of `frequency_analysis`.

    Args:
        frame: One row a surface instance, with the columns named below.
        accuracy: Column of accuracies in [0, 1], or several of them, one a model.
        entity_frequency: Column of how often the entity is mentioned under any surface.
        surface_frequency: Column of how often it is mentioned under this surface.
        is_canonical: Column that tells canonical surfaces (True) from redirects (False).
        by: Columns whose groups are binned apart.
        cluster: Column of what intervals take as a whole; None takes rows for independent.
        n_bins: Number of bins of about equally many rows.
        high_frequency_above: Surface frequency that the rows of "redirect_high_frequency" exceed.
        intervals: How intervals are made; each bin is resampled by itself.
        missing: "drop" leaves out rows that lack a frequency or an accuracy, with an
            `UnscoredWarning`; "raise" refuses them.

    Returns:
        One row a bin of each group, model, subset and frequency ("entity" or "surface"): the
        columns `by`; model (where `accuracy` names several); subset, frequency; and those of
        `binned_curve`.

    Raises:
        ColumnNotFoundError: When a named column is not in the frame.
        TypeError: When `frame` is no DataFrame, a value no number, or a count option no integer.
        ValueError: For what `frequency_analysis` refuses, or when `n_bins` is less than 1.

    Notes:
        Rows with a zero frequency are left out of both curves. A subset without rows has no bins,
        and where none has any the result is empty.
        Bounds are NaN in a bin with one cluster.

    References:
        Figure 3 of arXiv 2604.21882.

    Examples:
        >>> import pandas as pd
        >>> rows = np.arange(200)
        >>> frame = pd.DataFrame(
        ...     {"fact_id": rows // 2, "is_canonical": rows % 2 == 0, "entity_frequency": rows + 1,
        ...      "surface_frequency": rows // 2 + 1, "accuracy": rows / 199})
        >>> curves = frequency_curves(frame, n_bins=4)
        >>> curves.groupby(["subset", "frequency"], sort=False)["n"].sum().tolist()
        [200, 200, 100, 100, 100, 100, 90, 90]
    """
    _check_bins(n_bins)
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
    drawn, parts = replace(intervals, rng=root_seed(intervals.rng)), list[pd.DataFrame]()
    for labels, chosen, column in data.cells():
        rows = chosen.positions[~np.isnan(data.accuracies[chosen.positions, column])]
        parts += [
            binned_curve(
                values[rows],
                data.accuracies[rows, column],
                clusters=data.clusters[rows].tolist(),
                n_bins=n_bins,
                intervals=drawn,
            ).assign(**labels, frequency=name)
            for name, values in (("entity", data.entity), ("surface", data.surface))
            if rows.size
        ]
    warn_missing(data, len(frame), stacklevel=2)
    if not parts:
        return pd.DataFrame(columns=data.columns)
    return pd.concat(parts, ignore_index=True)[data.columns]
