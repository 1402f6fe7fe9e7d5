"""Cluster bootstrap of correlations with many targets, from sums of moments.

A Pearson correlation is a function of sums over rows, so a resample of whole clusters needs no row:
one matrix product of drawn counts with the clusters' sums serves every predictor and every target.
"""

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import (
    Floats,
    Integers,
    MissingPolicy,
    as_columns,
    check_choice,
    check_n_resamples,
    check_same_index,
    complete_rows,
    label_codes,
    numeric_vector,
    warn_undefined,
)
from surface_consistency.metrics.correlation._correlations import (
    CorrelationMethod,
    check_correlation_method,
    cluster_inference,
    data_correlations,
    drawn_correlations,
    partial_of_correlations,
)
from surface_consistency.metrics.uncertainty.intervals import (
    DEFAULT_INTERVALS,
    Interval,
    Intervals,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CorrelationResamplesResult:
    """Result of `resample_correlations`; p predictors, m targets."""

    correlations: Floats
    """Correlation of each predictor with each target, shape `(p, m)`; NaN where undefined."""
    partial_correlations: Floats
    """The same with all other predictors held constant, shape `(p, m)`; NaN where undefined."""
    resampled_correlations: Floats
    """Correlations in each resample, shape `(n_resamples, p, m)`; NaN where undefined."""
    resampled_partial_correlations: Floats
    """Partial correlations in each resample, shape `(n_resamples, p, m)`; NaN where undefined."""
    n: int
    """Rows that entered."""
    n_dropped: int
    """Rows left out because a value was missing."""
    n_clusters: int
    """Clusters among the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteredCorrelationResult:
    """Result of `correlation_bootstrap` for one target."""

    estimate: float
    """The (partial) correlation, in [-1, 1]; NaN where undefined."""
    estimate_interval: Interval
    """Its interval; NaN bounds where undefined."""
    p_value: float
    """Two-sided p-value of no correlation, in [0, 1], of the same statistic: below 1 less the level
    of the interval where that leaves out 0, and only there; NaN where that is."""
    n_clusters: int
    """Number of clusters."""
    n_resamples: int | None
    """Number of resamples; None where none were drawn."""
    n_undefined: int
    """Resamples in which the correlation was NaN; they are left out."""


def resample_correlations(
    predictors: npt.ArrayLike,
    targets: npt.ArrayLike,
    *,
    clusters: Iterable[Hashable] | None = None,
    method: CorrelationMethod = "pearson",
    n_resamples: int = 10_000,
    missing: MissingPolicy = "raise",
    rng: np.random.Generator | int | None = 0,
) -> CorrelationResamplesResult:
    """Correlate predictors with targets in resamples of whole clusters.

    All predictors and targets share the resamples, so differences between them, between two models
    or between entity and surface frequency, may be taken resample by resample.

    Args:
        predictors: Numbers of shape `(n_rows,)` or `(n_rows, p)`, such as log frequencies.
        targets: Numbers of shape `(n_rows,)` or `(n_rows, m)`, such as the accuracies of m models.
        clusters: The cluster of each row, such as its fact; None takes each row for its own.
        method: "pearson", from sums of moments; or "spearman", ranked anew in each resample, about
            twenty times slower.
        n_resamples: Number of resamples.
        missing: "raise" refuses rows in which any value is missing; "drop" leaves them out for all
            predictors and targets and counts them in `n_dropped`.
        rng: Seed, random generator, or None for fresh entropy.

    Returns:
        Correlations and partial correlations (all other predictors held constant), of the data and
        of each resample.

    Raises:
        TypeError: When a value is no number or `n_resamples` no integer.
        ValueError: When lengths differ, a shape is another, there are no rows, predictors or
            targets, a value is infinite or (under "raise") missing, a cluster label is missing, or
            an option is out of range.

    Notes:
        A correlation is NaN where a vector is constant in the resample, a partial one also where a
        predictor or the target is a linear function of other predictors there. Under "pearson" the
        order of the rows does not matter. Memory beyond the result is bounded by the clusters times
        the number of moments, 1 + p + m + p (p + 1) / 2 + m + p m, and about 50 MB.

    References:
        Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 3.8.

    Examples:
        >>> entity, surface = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 1.0, 2.0, 4.0, 3.0, 3.0]
        >>> result = resample_correlations(
        ...     np.c_[entity, surface], [0, 0.5, 0, 1, 0.5, 1], clusters="aabbcc", n_resamples=500)
        >>> result.correlations.round(3).ravel().tolist(), result.n_clusters
        ([0.717, 0.739], 3)
        >>> result.resampled_partial_correlations.shape
        (500, 2, 1)
    """
    check_same_index(predictors=predictors, targets=targets, clusters=clusters)
    x, y = as_columns(predictors, "predictors"), as_columns(targets, "targets")
    rows = _complete(x, y, clusters, method, missing)
    data = data_correlations(rows.x, rows.y, method=method)
    drawn = drawn_correlations(
        rows.x,
        rows.y,
        rows.codes,
        method=method,
        n_resamples=check_n_resamples(n_resamples),
        rng=np.random.default_rng(rng),
    )
    return CorrelationResamplesResult(
        correlations=data[1],
        partial_correlations=partial_of_correlations(*data),
        resampled_correlations=drawn[1],
        resampled_partial_correlations=partial_of_correlations(*drawn),
        n=rows.codes.size,
        n_dropped=rows.n_dropped,
        n_clusters=int(rows.codes.max()) + 1,
    )


def correlation_bootstrap(
    x: npt.ArrayLike,
    targets: npt.ArrayLike,
    *,
    controls: npt.ArrayLike | None = None,
    clusters: Iterable[Hashable] | None = None,
    method: CorrelationMethod = "pearson",
    intervals: Intervals = DEFAULT_INTERVALS,
    missing: MissingPolicy = "raise",
) -> tuple[ClusteredCorrelationResult, ...]:
    """Infer the (partial) correlation of one vector with each of several targets, by clusters.

    Args:
        x: Numbers of shape `(n_rows,)`, such as log entity frequencies.
        targets: Numbers of shape `(n_rows,)` or `(n_rows, m)`, such as the accuracies of m models.
        controls: What is held constant, of shape `(n_rows,)` or `(n_rows, k)`; None for nothing.
        clusters: The cluster of each row, such as its fact; None takes each row for its own.
        method: "pearson", or "spearman" for ranks taken anew in each resample.
        intervals: How interval and p-value are made: "auto" is the jackknife t over clusters on the
            scale of Fisher's z, without resamples; "percentile" takes those of resamples that all
            targets share; there is no "bca".
        missing: "raise" or "drop", as in `resample_correlations`.

    Returns:
        One result a target, in their order; the estimate lies in [-1, 1].

    Raises:
        TypeError: As `resample_correlations`.
        ValueError: As `resample_correlations`, or when the method of the intervals is "bca".

    Notes:
        Bounds and p-value are NaN, with an `UndefinedMetricWarning`, for a single cluster, where
        the estimate is undefined, where it is perfect or leaving out one cluster makes it so
        ("auto"), and where no resample defines it ("percentile"). Resamples that leave it undefined
        are left out otherwise and counted in `n_undefined`. The p-value of "percentile" is 1 less
        the level at which the interval first reaches 0, and no less than that of one resample.

    References:
        Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 11 and section 13.3;
        Field and Welsh, Journal of the Royal Statistical Society B 69, 2007 (clusters).

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> entity, fact = rng.normal(size=400), np.arange(400) // 2
        >>> accuracy = entity[:, None] * [0.2, 0.0] + rng.normal(size=(400, 2))
        >>> related, unrelated = correlation_bootstrap(entity, accuracy, clusters=fact)
        >>> related.estimate_interval.low > 0, unrelated.estimate_interval.low > 0
        (True, False)
        >>> related.p_value < 0.05, unrelated.p_value < 0.05
        (True, False)
    """
    check_choice(intervals.method, ("auto", "percentile"), "intervals.method")
    check_same_index(x=x, targets=targets, controls=controls, clusters=clusters)
    predictors = {"x": numeric_vector(x, "x")}
    if controls is not None:
        predictors |= as_columns(controls, "controls")
    rows = _complete(predictors, as_columns(targets, "targets"), clusters, method, missing)
    estimates = partial_of_correlations(*data_correlations(rows.x, rows.y, method=method))[:1]
    made = cluster_inference(
        estimates,
        lambda within, across: partial_of_correlations(within, across)[..., :1, :],
        rows.x,
        rows.y,
        rows.codes,
        method=method,
        intervals=intervals,
        rng=intervals.generator(),
    )
    is_drawn = intervals.method == "percentile"
    results = tuple(
        ClusteredCorrelationResult(
            estimate=float(estimates[0, k]),
            estimate_interval=Interval(
                low=float(made.low[0, k]),
                high=float(made.high[0, k]),
                confidence_level=intervals.level,
                method="percentile" if is_drawn else "jackknife",
            ),
            p_value=float(made.p_value[0, k]),
            n_clusters=int(rows.codes.max()) + 1,
            n_resamples=intervals.n_resamples if is_drawn else None,
            n_undefined=int(made.n_undefined[0, k]),
        )
        for k in range(len(rows.y))
    )
    undefined = [k for k, result in enumerate(results) if math.isnan(result.estimate_interval.low)]
    if undefined:
        warn_undefined(
            f"the interval is undefined (NaN) for {len(undefined)} of {len(results)} "
            f"targets, such as column {undefined[0]}: there is one cluster only, a vector is "
            "constant, or the controls determine it"
        )
    return results


class _Rows(NamedTuple):
    """The complete rows of predictors and targets."""

    x: list[Floats]
    y: list[Floats]
    codes: Integers
    n_dropped: int


def _complete(
    predictors: dict[str, Floats],
    targets: dict[str, Floats],
    clusters: Iterable[Hashable] | None,
    method: CorrelationMethod,
    missing: MissingPolicy,
) -> _Rows:
    """Check the method, and return the rows in which nothing is missing."""
    check_correlation_method(method)
    p, m = len(predictors), len(targets)
    if not p or not m:
        raise ValueError(f"there must be a predictor and a target; got {p} and {m}")
    n_rows = next(iter(predictors.values())).size
    codes = label_codes(clusters, n_rows, "clusters")
    columns = {**predictors, **targets, "clusters": codes.astype(np.float64)}
    complete, n_dropped = complete_rows(columns, missing=missing)
    *vectors, owners = complete.values()
    if owners.size == 0:
        raise ValueError("there must be at least one complete row; got 0")
    _, codes = np.unique(owners, return_inverse=True)
    return _Rows(vectors[:p], vectors[p:], codes.astype(np.int64), n_dropped)
