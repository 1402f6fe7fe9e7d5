"""Mean accuracy in bins of frequency that hold equally many surface instances."""

import math
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.checks import (
    check_confidence,
    check_count,
    check_n_resamples,
)
from surface_consistency.metrics._shared.frames import checked_seed
from surface_consistency.metrics._shared.labels import label_codes
from surface_consistency.metrics._shared.ranks import average_ranks
from surface_consistency.metrics._shared.vectors import Floats, complete_rows, numeric_vector
from surface_consistency.metrics._shared.verdicts import MissingPolicy, warn_unscored
from surface_consistency.metrics.uncertainty.bootstrap import resample_counts
from surface_consistency.metrics.uncertainty.interval import percentile_interval

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["binned_curve"]


def binned_curve(
    frequency: npt.ArrayLike,
    accuracy: npt.ArrayLike,
    *,
    n_bins: int = 20,
    clusters: Iterable[Hashable] | None = None,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
    missing: MissingPolicy = "raise",
) -> "pd.DataFrame":
    """Average accuracy in bins of frequency with about equally many rows.

    Args:
        frequency: Numbers of shape `(n_rows,)` to bin by: frequencies, or their logarithms, which
            give the same bins.
        accuracy: Accuracies of the same rows, in [0, 1].
        n_bins: Number of bins; RedirectQA's figure 3 has 20.
        clusters: The cluster of each row, such as its fact, for intervals that resample clusters
            within a bin; None takes each row for its own.
        confidence: Nominal coverage of the intervals, in (0, 1).
        n_resamples: Number of resamples of each bin.
        seed: Seed of the resampling.
        missing: "raise" refuses rows in which a value is missing; "drop" leaves them out, with
            an `UnscoredWarning` that says how many.

    Returns:
        One row a bin that holds any, the lowest first: bin (from 0), frequency_low and
        frequency_high (the extremes of the rows in it), n, n_clusters, accuracy (their mean, in
        [0, 1]), low and high.

    Raises:
        TypeError: When a value is no number or a count no integer.
        ValueError: When the lengths differ, there are no complete rows, an accuracy is outside
            [0, 1], a value is (under "raise") missing, or an option is out of range.

    Notes:
        A row of average rank r goes to bin floor(n_bins (r - 1/2) / n), so equal frequencies share
        a bin whatever the order of the rows; with many ties bins are uneven and some are empty and
        left out. Bounds are NaN in a bin with one cluster. A bin whose rows all have the same
        accuracy has an interval of no width: see `wilson_interval`.

    References:
        Figure 3 of arXiv 2604.21882.

    Examples:
        >>> curve = binned_curve([1, 2, 3, 4, 5, 6], [0, 0, 0.5, 0.5, 0.5, 1], n_bins=3)
        >>> curve[["bin", "frequency_low", "frequency_high", "n", "accuracy"]].values.tolist()
        [[0.0, 1.0, 2.0, 2.0, 0.0], [1.0, 3.0, 4.0, 2.0, 0.5], [2.0, 5.0, 6.0, 2.0, 0.75]]
    """
    import pandas as pd

    check_confidence(confidence)
    n_bins, n_resamples = check_count(n_bins, "n_bins"), check_n_resamples(n_resamples)
    if n_bins == 0:
        raise ValueError("n_bins must be at least 1; got 0")
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
    rng = np.random.default_rng(checked_seed(seed))
    warn_unscored(n_dropped, n_rows, what="rows", lack="a frequency or accuracy", stacklevel=2)
    bins = _bins(columns["frequency"], n_bins)
    rows = [
        {"bin": int(number)}
        | _point({k: v[bins == number] for k, v in columns.items()}, confidence, n_resamples, rng)
        for number in np.unique(bins)
    ]
    return pd.DataFrame(rows)


def _bins(frequency: Floats, n_bins: int) -> npt.NDArray[np.int64]:
    """Return the bin of each row."""
    shares = (average_ranks(frequency) - 0.5) / frequency.size
    return np.floor(shares * n_bins).astype(np.int64)


def _point(
    columns: dict[str, Floats], confidence: float, n_resamples: int, rng: np.random.Generator
) -> dict[str, object]:
    """Return the mean accuracy of one bin, with its interval."""
    accuracy = columns["accuracy"]
    _, codes = np.unique(columns["clusters"], return_inverse=True)
    sums = np.column_stack([np.bincount(codes, weights=accuracy), np.bincount(codes)])
    low = high = math.nan
    if len(sums) > 1:
        totals = resample_counts(sums, n_resamples=n_resamples, rng=rng)
        interval = percentile_interval(totals[:, 0] / totals[:, 1], confidence=confidence)
        low, high = interval.low, interval.high
    return {
        "frequency_low": float(columns["frequency"].min()),
        "frequency_high": float(columns["frequency"].max()),
        "n": accuracy.size,
        "n_clusters": len(sums),
        "accuracy": float(accuracy.mean()),
        "low": low,
        "high": high,
    }
