"""Correlations of vectors, from sums of moments and of resamples; p-values and intervals."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from surface_consistency.metrics._inputs import (
    Flags,
    Floats,
    Integers,
    check_choice,
    check_confidence_level,
)
from surface_consistency.metrics.uncertainty.bootstrap import resample_counts
from surface_consistency.metrics.uncertainty.cluster_bounds import Scale, jackknife
from surface_consistency.metrics.uncertainty.intervals import Intervals, quantiles, t_quantile

CorrelationMethod = Literal["pearson", "spearman"]
"""Correlation of the values, or of their ranks with average ranks for ties."""


def average_ranks(values: Floats) -> Floats:
    """Return the ranks from 1; equal values have the mean of their ranks."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values), dtype=np.float64)


# Below this fraction of its length, the residual of a vector given the controls is rounding error.
TINY_SHARE = 1e-10
# scipy.stats.pearsonr has the same threshold between a constant and a vector with spread.
_CONSTANT_SHARE = 1e-13
# A correlation this close to 1 or -1 is perfect up to rounding.
_PERFECT = 1e-12
_LARGE, _SMALL = 1e100, 1e-100


def unit_deviations(vector: Floats) -> Floats | None:
    """Return the deviations from the mean, scaled to length 1; None for a constant vector."""
    largest = float(np.abs(vector).max(initial=0.0))
    if not _SMALL <= largest <= _LARGE and largest > 0.0:
        # Squares would overflow or underflow; powers of two scale without rounding.
        vector = np.ldexp(vector, -math.frexp(largest)[1])
    if vector.size == 0 or (vector == vector[0]).all():
        return None
    mean = vector.mean()
    deviations = vector - mean
    length = math.sqrt(float(deviations @ deviations))
    if length <= _CONSTANT_SHARE * abs(mean):
        return None
    deviations /= length
    return np.asarray(deviations)


def residual_direction(unit: Floats, basis: Sequence[Floats]) -> Floats | None:
    """Return the residual of a unit vector given the basis, scaled to length 1; None if it is 0."""
    if not basis:
        return unit
    left = unit
    # Two passes are enough: the second one removes the rounding error of the first.
    for _ in range(2):
        for direction in basis:
            left = left - (direction @ left) * direction
    length = math.sqrt(float(left @ left))
    return left / length if length > TINY_SHARE else None


def correlation_interval(
    coefficient: float, *, df: int, method: CorrelationMethod = "pearson", confidence: float = 0.95
) -> tuple[float, float, float]:
    """Return the interval and the p-value of a correlation of independent rows.

    The p-value is that of t = r sqrt(df / (1 - r^2)). The interval is tanh(atanh(r) ± atanh(c)),
    where c is the smallest correlation that this test rejects, so that it excludes 0 exactly if the
    test rejects; Fisher's 1.96 / sqrt(n - 3) for atanh(c) is nearly the same. For ranks atanh(c) is
    multiplied by sqrt(1 + rho^2 / 2), where rho is the bound.

    Args:
        coefficient: The correlation, plain or partial.
        df: Degrees of freedom: the number of rows, minus 2, minus 1 per variable held constant.
        method: "pearson", or "spearman" for a correlation of ranks.
        confidence: Nominal coverage of the interval, in (0, 1).

    Returns:
        Lower bound, upper bound and two-sided p-value. They are NaN without a degree of freedom,
        for an undefined correlation, and for a correlation of 1 or -1, whose variance is unknown.

    Raises:
        ValueError: If `method` or `confidence` is out of range.

    References:
        R. A. Fisher, Biometrika 10, 1915; D. G. Bonett and T. A. Wright, Psychometrika 65, 2000
        (ranks).

    Examples:
        >>> low, high, p_value = correlation_interval(0.8911, df=3)
        >>> round(low, 2), round(high, 2), round(p_value, 4)
        (0.06, 0.99, 0.0424)
    """
    from scipy.special import betainc

    check_confidence_level(confidence)
    check_correlation_method(method)
    if math.isnan(coefficient) or df < 1 or abs(coefficient) > 1.0 - _PERFECT:
        return math.nan, math.nan, math.nan
    centre = math.atanh(coefficient)
    half = math.asinh(float(t_quantile(df, confidence)) / math.sqrt(df))
    ends = [centre - half, centre + half]
    if method == "spearman":
        from scipy.optimize import brentq

        def reach(z: float, side: float) -> float:
            """Return how far beyond the bound on one side a value is."""
            return z - centre - side * half * math.sqrt(1.0 + math.tanh(z) ** 2 / 2.0)

        sides = (-1.0, 1.0)
        ends = [brentq(reach, centre, centre + 2.0 * side * half, (side,)) for side in sides]
    low, high = map(math.tanh, ends)
    return low, high, float(betainc(df / 2.0, 0.5, (1.0 - coefficient) * (1.0 + coefficient)))


def percentile_p_value(values: Floats) -> float:
    """Return the two-sided p-value of 0 from the percentile intervals of resamples.

    It is 1 minus the confidence level at which an end of the interval is 0, and at least 1 /
    (number of resamples); NaN if no value is defined.
    """
    ordered = np.sort(values[~np.isnan(values)])
    if ordered.size == 0:
        return math.nan
    levels = np.linspace(0.0, 1.0, ordered.size)
    below, above = (float(np.interp(0.0, side, levels)) for side in (ordered, -ordered[::-1]))
    return min(1.0, max(2.0 * min(below, above), 1.0 / ordered.size))


# A variance, or a fraction of one, below this is 0 up to rounding.
_TINY = 1e-12


def scaled(columns: list[Floats]) -> Floats:
    """Return the columns with mean 0 and variance 1, constants as zeros, shape `(n_rows, k)`."""
    n_rows = columns[0].size
    units = [unit_deviations(column) for column in columns]
    columns_of_units = [np.zeros(n_rows) if unit is None else unit for unit in units]
    return np.asarray(np.column_stack(columns_of_units) * np.sqrt(n_rows))


def moments_of_clusters(predictors: Floats, targets: Floats, codes: Integers) -> Floats:
    """Return the sums over each cluster from which correlations are computed, `(n_clusters, k)`."""
    upper = np.triu_indices(predictors.shape[1])
    products = predictors[:, :, None] * targets[:, None, :]
    rows = np.hstack(
        [
            np.ones((len(targets), 1)),
            predictors,
            targets,
            predictors[:, upper[0]] * predictors[:, upper[1]],
            targets**2,
            products.reshape(len(targets), -1),
        ]
    )
    return np.column_stack([np.bincount(codes, weights=column) for column in rows.T])


def correlations_of_moments(
    totals: Floats, n_predictors: int, n_targets: int
) -> tuple[Floats, Floats]:
    """Return the correlations among predictors `(..., p, p)` and with targets `(..., p, m)`."""
    p, m = n_predictors, n_targets
    means = totals / totals[..., :1]
    n_pairs = p * (p + 1) // 2
    edges = np.cumsum([1, p, m, n_pairs, m])
    _, mean_x, mean_y, pairs, squares, products = np.split(means, edges, axis=-1)
    upper = np.triu_indices(p)
    within = np.empty((*means.shape[:-1], p, p))
    within[..., upper[0], upper[1]] = pairs
    within[..., upper[1], upper[0]] = pairs
    within -= mean_x[..., :, None] * mean_x[..., None, :]
    across = products.reshape(*means.shape[:-1], p, m)
    across = across - mean_x[..., :, None] * mean_y[..., None, :]
    variances = squares - mean_y**2
    own = np.diagonal(within, axis1=-2, axis2=-1)
    deviations = np.sqrt(np.where(own > _TINY, own, np.nan))
    others = np.sqrt(np.where(variances > _TINY, variances, np.nan))
    within = within / deviations[..., :, None] / deviations[..., None, :]
    across = across / deviations[..., :, None] / others[..., None, :]
    return np.clip(within, -1.0, 1.0), np.clip(across, -1.0, 1.0)


def partial_of_correlations(within: Floats, across: Floats) -> Floats:
    """Return the correlation of each predictor with each target given the other predictors.

    With R the correlations among predictors, r those with a target and b = R^-1 r, it is
    b_i / sqrt(b_i^2 + (1 - r'b) (R^-1)_ii).
    """
    p = within.shape[-1]
    if p == 1:
        return across
    usable = np.asarray(np.isfinite(within).all(axis=(-2, -1)))
    values, vectors = np.linalg.eigh(np.where(usable[..., None, None], within, np.eye(p)))
    usable &= values[..., 0] > _TINY
    values = np.where(usable[..., None], values, np.nan)
    inverse = (vectors / values[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    slopes = inverse @ across
    unexplained = np.maximum(1.0 - (across * slopes).sum(axis=-2), 0.0)
    own = slopes / np.sqrt(np.diagonal(inverse, axis1=-2, axis2=-1))[..., :, None]
    left = own**2 + unexplained[..., None, :]
    left = np.where(left > _TINY, left, np.nan)
    return np.asarray(np.clip(own / np.sqrt(left), -1.0, 1.0))


# Size limit of the arrays of a chunk of samples: 1 MiB, the size of a processor cache.
_CHUNK_CELLS = 2**17


class _RankedColumn(NamedTuple):
    """A column that is sorted once, so that its ranks in a sample are sums of counts."""

    codes: Integers
    """Cluster of each row, in the order of the values."""
    starts: Integers | None
    """Index of the first row of each distinct value; None if all values differ."""
    places: Integers | None
    """Index of the value of each row among the distinct ones; None if rows are sorted."""


def rank_correlations(
    predictors: list[Floats], targets: list[Floats], codes: Integers, samples: Iterable[Integers]
) -> tuple[Floats, Floats]:
    """Return rank correlations of samples, in which cluster c counts `sample[b, c]` times.

    Samples come in chunks. The correlations have the shapes of `correlations_of_moments`, with the
    axis of samples first; they are NaN for a column that is constant in a sample.
    """
    # In the order of one column, most memory access is sequential.
    order = np.argsort(predictors[0], kind="stable")
    codes = codes[order]
    ranked = [_ranked_column(column[order], codes) for column in (*predictors, *targets)]
    p, parts = len(predictors), []
    for counts in samples:
        own = counts.take(codes, axis=1)
        weights = own.astype(np.float64)
        # Ranks are doubled: their weighted mean is the number of rows in the sample.
        base = weights.sum(axis=1) ** 3
        rest = (_doubled_ranks(one, counts.take(one.codes, axis=1)) for one in ranked[1:])
        ranks = [_doubled_ranks(ranked[0], own), *rest]
        weighted = [weights * one for one in ranks]
        squares = np.array([_row_products(*pair) for pair in zip(weighted, ranks, strict=True)])
        squares -= base
        lengths = np.sqrt(np.where(squares > 1e-12 * base, squares, np.nan))
        products = np.array([[_row_products(w, v) for v in ranks] for w in weighted[:p]])
        parts.append((products - base) / lengths[:p, None] / lengths)
    found = np.clip(np.moveaxis(np.concatenate(parts, axis=-1), -1, 0), -1.0, 1.0)
    return found[..., :p], found[..., p:]


def _ranked_column(column: Floats, codes: Integers) -> _RankedColumn:
    """Sort a column."""
    order = np.argsort(column, kind="stable")
    ordered = column[order]
    is_start = np.r_[True, ordered[1:] != ordered[:-1]]
    places = np.empty(column.size, dtype=np.intp)
    places[order] = np.cumsum(is_start) - 1
    starts = None if is_start.all() else np.flatnonzero(is_start)
    is_sorted = bool((places == np.arange(column.size)).all())
    return _RankedColumn(codes[order], starts, None if is_sorted else places)


def _doubled_ranks(column: _RankedColumn, own: Integers) -> Floats:
    """Return twice the average ranks of the rows, minus 1, from the counts of the sorted rows."""
    if column.starts is not None:
        own = np.add.reduceat(own, column.starts, axis=1)
    # Cumulative sums of integers are several times faster than those of floats.
    running = own.cumsum(axis=1)
    running[:, 1:] += running[:, :-1].copy()
    ranks = running if column.places is None else running.take(column.places, axis=1)
    return ranks.astype(np.float64)


def _row_products(first: Floats, second: Floats) -> Floats:
    """Return the sum of products of each row."""
    return np.asarray((first[:, None, :] @ second[:, :, None])[:, 0, 0])


def _chunk(codes: Integers) -> int:
    """Return the number of samples of these rows per chunk."""
    return max(1, _CHUNK_CELLS // codes.size)


def _resamples(codes: Integers, resamples: int, rng: np.random.Generator) -> Iterator[Integers]:
    """Yield the number of times that each cluster is drawn in resamples, chunk by chunk."""
    n_clusters = int(codes.max()) + 1
    size = _chunk(codes)
    for start in range(0, resamples, size):
        draws = (
            rng.integers(0, n_clusters, n_clusters) for _ in range(min(size, resamples - start))
        )
        yield np.stack([np.bincount(draw, minlength=n_clusters) for draw in draws])


def data_correlations(
    x: list[Floats], y: list[Floats], *, method: CorrelationMethod
) -> tuple[Floats, Floats]:
    """Return the correlations among x, shape `(p, p)`, and of x with y, shape `(p, m)`."""
    if method == "spearman":
        codes = np.arange(x[0].size)
        within, across = rank_correlations(x, y, codes, [np.ones((1, codes.size), dtype=np.int64)])
        return within[0], across[0]
    left, right = scaled(x), scaled(y)
    return _bounded(left, left), _bounded(left, right)


def drawn_correlations(
    x: list[Floats],
    y: list[Floats],
    codes: Integers,
    *,
    method: CorrelationMethod,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return the correlations of `data_correlations` per resample, on the first axis."""
    if method == "spearman":
        return rank_correlations(x, y, codes, _resamples(codes, resamples, rng))
    moments = moments_of_clusters(scaled(x), scaled(y), codes)
    totals = resample_counts(moments, resamples=resamples, seed=rng)
    return correlations_of_moments(totals, len(x), len(y))


# Ranks are recomputed for each omitted cluster; more clusters than this are omitted in blocks.
_MOST_BLOCKS = 1_000


def leave_one_out_correlations(
    x: list[Floats], y: list[Floats], codes: Integers, *, method: CorrelationMethod
) -> tuple[Floats, Floats, Floats]:
    """Return both correlations without each cluster (first axis), and the size of each cluster."""
    if method == "spearman":
        blocks = codes % min(int(codes.max()) + 1, _MOST_BLOCKS)
        sizes = np.bincount(blocks).astype(np.float64)
        numbers = np.split(np.arange(sizes.size), range(0, sizes.size, _chunk(codes))[1:])
        all_blocks = np.arange(sizes.size)
        samples = ((all_blocks != some[:, None]).astype(np.int64) for some in numbers)
        return *rank_correlations(x, y, blocks, samples), sizes
    moments = moments_of_clusters(scaled(x), scaled(y), codes)
    left = moments.sum(axis=0) - moments
    return *correlations_of_moments(left, len(x), len(y)), moments[:, 0]


class ClusterInference(NamedTuple):
    """Cluster-robust intervals and p-values of statistics of correlations; `(k, m)` each."""

    low: Floats
    """Lower bounds; NaN if undefined, as for all fields."""
    high: Floats
    """Upper bounds."""
    p_value: Floats
    """Two-sided p-values of 0, from the same statistic as the bounds."""
    n_undefined: Integers
    """Number of resamples in which the statistic is undefined; 0 without resamples."""


def cluster_inference(
    estimates: Floats,
    statistics: Callable[[Floats, Floats], Floats],
    x: list[Floats],
    y: list[Floats],
    codes: Integers,
    *,
    method: CorrelationMethod,
    intervals: Intervals,
    rng: np.random.Generator,
    is_plain: Flags | None = None,
) -> ClusterInference:
    """Return intervals and p-values of some statistics, `(k, m)`, of the correlations of x and y.

    `statistics` maps the correlations among x and with y to `(..., k, m)`. Jackknife limits are
    symmetric on the scale of Fisher's z, except for the statistics that `is_plain` marks.
    """
    low, high, p_value = np.full((3, *estimates.shape), np.nan)
    n_undefined = np.zeros(estimates.shape, dtype=np.int64)
    if codes.max(initial=0) == 0:
        return ClusterInference(low, high, p_value, n_undefined)
    if intervals.method == "auto":
        *left, sizes = leave_one_out_correlations(x, y, codes, method=method)
        left_out = np.moveaxis(statistics(*left), 0, -1)
        plain = np.zeros(len(estimates), dtype=np.bool_) if is_plain is None else is_plain
        scales: tuple[tuple[Scale, Flags], ...] = (("plain", plain), ("fisher-z", ~plain))
        for scale, rows in scales:
            limits = jackknife(estimates[rows], left_out[rows], scale=scale, sizes=sizes)
            low[rows], high[rows] = limits.bounds(intervals.confidence)
            p_value[rows] = limits.p_value()
    else:
        drawn = drawn_correlations(
            x, y, codes, method=method, resamples=intervals.resamples, rng=rng
        )
        values = np.moveaxis(statistics(*drawn), 0, -1)
        for place in zip(*np.nonzero(~np.isnan(estimates)), strict=True):
            n_undefined[place] = np.count_nonzero(np.isnan(values[place]))
            tails = (0.5 - intervals.confidence / 2.0, 0.5 + intervals.confidence / 2.0)
            low[place], high[place] = quantiles(values[place], tails)
            p_value[place] = percentile_p_value(values[place])
    return ClusterInference(low, high, p_value, n_undefined)


def _bounded(left: Floats, right: Floats) -> Floats:
    """Return the correlations of columns with mean 0 and variance 1; NaN for columns of zeros."""
    products = np.clip(left.T @ right / len(left), -1.0, 1.0)
    varies = np.logical_and.outer((left != 0.0).any(axis=0), (right != 0.0).any(axis=0))
    return np.where(varies, products, np.nan)


def check_correlation_method(method: str) -> None:
    """Raise an error if the method is unknown."""
    check_choice(method, ("pearson", "spearman"), "method")
