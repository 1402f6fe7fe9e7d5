"""Accuracy on the instances with low and with high scores, and their difference."""

from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics import _inputs
from surface_consistency.metrics.paired.paired_tables import CountRatio
from surface_consistency.metrics.uncertainty.bootstrap import group_values
from surface_consistency.metrics.uncertainty.cluster_bounds import Part, of_shares
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals


def split_accuracy(
    scores: npt.ArrayLike,
    correct: npt.ArrayLike,
    *,
    threshold: float | None = None,
    clusters: Iterable[Hashable] | None = None,
    missing: _inputs.MissingPolicy = "raise",
    intervals: Intervals = DEFAULT_INTERVALS,
) -> dict[str, float]:
    """Return the accuracies of instances with low and with high scores, and their difference.

    Args:
        scores: One score per instance, such as popularity, shape `(n_instances,)`.
        correct: Correctness labels of the same instances.
        threshold: Scores above it are high; None means the median.
        clusters: The cluster of each instance; None for independent instances.
        missing: "raise" raises an error for NaN scores and missing labels; "drop" excludes such
            instances and reports their number in an `UnscoredWarning`.
        intervals: Options of the intervals.

    Returns:
        low_accuracy, high_accuracy and difference (high minus low), each with `_low` and `_high`;
        threshold; n_low, n_high, n_tied (scores equal to the threshold, which are low), n_missing
        and n_clusters.

    Raises:
        ValueError: If lengths differ, a label is not binary, a value is missing under "raise", or
            no instance is complete.

    Notes:
        The threshold is fixed in all resamples. Without low (or high) instances, their accuracy and
        the difference are NaN, with an `UndefinedMetricWarning`. With a single cluster the bounds
        are NaN. Instances whose score equals the threshold are low, and counted in `n_tied`.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, section 4, figure 1 and table 4.

    Examples:
        >>> row = split_accuracy([1, 2, 3, 4] * 25, [0, 1, 1, 1] * 25)
        >>> [row[name] for name in ("low_accuracy", "high_accuracy", "difference")]
        [0.5, 1.0, 0.5]
    """
    _inputs.check_same_index(scores=scores, correct=correct, clusters=clusters)
    values, codes, complete = _complete(scores, correct, missing)
    labels = _inputs.label_codes(clusters, values.size, "clusters", row="instance")[complete]
    values, codes = values[complete], codes[complete]
    cut = float(np.median(values) if threshold is None else threshold)
    is_high = values > cut
    rates = group_values(
        _sums(is_high, codes, labels),
        {"low_accuracy": _LOW, "high_accuracy": _HIGH, "difference": split_difference},
        intervals,
    )
    undefined = [name for name, value in rates.items() if value.low != value.low]
    if undefined:
        _inputs.warn_undefined(
            f"undefined (NaN): interval of {', '.join(undefined)}; there are "
            f"{int((~is_high).sum())} low and {int(is_high.sum())} high scores"
        )
    n_missing = int(np.count_nonzero(~complete))
    _inputs.warn_unscored(
        n_missing, complete.size, what="instances", lack="a score or label", stacklevel=2
    )
    row: dict[str, float] = {}
    for name, rate in rates.items():
        row |= {name: rate.value, f"{name}_low": rate.low, f"{name}_high": rate.high}
    return row | {
        "threshold": cut,
        "n_low": int((~is_high).sum()),
        "n_high": int(is_high.sum()),
        "n_tied": int((values == cut).sum()),
        "n_missing": n_missing,
        "n_clusters": np.unique(labels).size,
    }


def _complete(
    scores: npt.ArrayLike, correct: npt.ArrayLike, missing: _inputs.MissingPolicy
) -> tuple[_inputs.Floats, _inputs.Codes, _inputs.Flags]:
    """Return scores, label codes, and whether both are present."""
    values = np.asarray(_inputs.plain(scores), dtype=np.float64)
    codes = _inputs.verdict_codes(correct, "correct")
    if values.ndim != 1:
        raise ValueError(f"scores must be one-dimensional; got shape {values.shape}")
    _inputs.check_equal_lengths(scores=values.size, correct=codes.size)
    _inputs.check_complete(np.isnan(values), "scores", missing, rows="instances")
    _inputs.check_complete(
        codes == _inputs.MISSING, "correct", missing, rows="instances", is_verdict=True
    )
    complete = (codes != _inputs.MISSING) & ~np.isnan(values)
    if not complete.any():
        raise ValueError("no instance has both a score and a correctness label")
    return values, codes, complete


def _sums(is_high: _inputs.Flags, codes: _inputs.Codes, labels: _inputs.Integers) -> _inputs.Floats:
    """Count incorrect and correct answers at low and high scores, for each cluster."""
    distinct, numbers = np.unique(labels, return_inverse=True)
    flat = 4 * numbers + 2 * is_high + codes
    return np.bincount(flat, minlength=4 * distinct.size).astype(np.float64).reshape(-1, 4)


_LOW = CountRatio(numerator=(0, 1, 0, 0), denominator=(1, 1, 0, 0))
_HIGH = CountRatio(numerator=(0, 0, 0, 1), denominator=(0, 0, 1, 1))


@of_shares(
    Part(1.0, _HIGH.numerator, _HIGH.denominator), Part(-1.0, _LOW.numerator, _LOW.denominator)
)
def split_difference(sums: _inputs.Floats) -> _inputs.Floats:
    """Return the accuracy at high scores minus that at low scores, from sums of clusters."""
    return _HIGH(sums) - _LOW(sums)
