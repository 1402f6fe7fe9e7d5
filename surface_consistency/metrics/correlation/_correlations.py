"""Correlations of vectors, of sums of moments and of resamples; their p-values and intervals."""

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from surface_consistency.metrics._inputs import Floats, Integers, check_choice
from surface_consistency.metrics.uncertainty.bootstrap import resample_counts
from surface_consistency.metrics.uncertainty.intervals import Interval, undefined_interval

__all__ = [
    "TINY_SHARE",
    "CorrelationMethod",
    "average_ranks",
    "check_correlation_method",
    "correlation_interval",
    "correlation_p_values",
    "correlations_of_moments",
    "data_correlations",
    "drawn_correlations",
    "left_out_correlations",
    "moments_of_clusters",
    "orthonormal_basis",
    "partial_of_correlations",
    "rank_correlations",
    "resampled_rank_correlations",
    "residual_direction",
    "scaled",
    "unit_deviations",
]

CorrelationMethod = Literal["pearson", "spearman"]
"""Of the values themselves, or of their ranks with ties at the average."""


def average_ranks(values: Floats) -> Floats:
    """Return the ranks from 1 on; equal values share the mean of their ranks."""
    order = np.argsort(values)
    ordered = values[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if values.size else order
    ends = np.r_[starts[1:], values.size]
    ranks = np.empty(values.size)
    ranks[order] = np.repeat((starts + ends + 1) / 2.0, ends - starts)
    return ranks


# Below this share of its length, what the controls leave of a vector is rounding.
TINY_SHARE = 1e-10
# scipy.stats.pearsonr draws the same line between a constant and a vector with spread.
_CONSTANT_SHARE = 1e-13
# A correlation this close to 1 or -1 is perfect but for rounding.
_PERFECT = 1e-12
_LARGE, _SMALL = 1e100, 1e-100


def unit_deviations(vector: Floats) -> Floats | None:
    """Return the deviations from the mean at unit length, or None for a constant."""
    largest = float(np.abs(vector).max(initial=0.0))
    if not _SMALL <= largest <= _LARGE and largest > 0.0:
        # Squares would overflow or vanish; powers of two scale without rounding.
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


def orthonormal_basis(columns: Sequence[Floats]) -> list[Floats]:
    """Return orthonormal vectors that span the unit columns, one for each that adds a direction."""
    basis: list[Floats] = []
    for column in columns:
        left = residual_direction(column, basis)
        if left is not None:
            basis.append(left)
    return basis


def residual_direction(unit: Floats, basis: Sequence[Floats]) -> Floats | None:
    """Return what the basis leaves of a unit vector, at unit length; None where nothing is left."""
    if not basis:
        return unit
    left = unit
    # Twice is enough: the second pass removes what rounding left in the first.
    for _ in range(2):
        for direction in basis:
            left = left - (direction @ left) * direction
    length = math.sqrt(float(left @ left))
    return left / length if length > TINY_SHARE else None


def correlation_p_values(coefficients: npt.ArrayLike, df: npt.ArrayLike) -> Floats:
    """Return two-sided p-values of t = r sqrt(df / (1 - r^2)) on `df` degrees of freedom."""
    r = np.asarray(coefficients, dtype=np.float64)
    return np.asarray(betainc(np.asarray(df) / 2.0, 0.5, (1.0 - r) * (1.0 + r)), dtype=np.float64)


def correlation_interval(
    coefficient: float, *, n: int, n_controls: int, confidence_level: float, method: str
) -> Interval:
    """Return Fisher's interval, widened after Bonett and Wright for ranks.

    NaN below 4 + k rows, and for a perfect correlation, which tells nothing of its spread.
    """
    name = "bonett-wright" if method == "spearman" else "fisher-z"
    spare = n - n_controls - 3
    if math.isnan(coefficient) or spare < 1 or abs(coefficient) > 1.0 - _PERFECT:
        return undefined_interval(confidence_level, name)
    variance = 1.0 / spare
    if method == "spearman":
        variance *= 1.0 + coefficient * coefficient / 2.0
    half = NormalDist().inv_cdf((1.0 + confidence_level) / 2.0) * math.sqrt(variance)
    centre = math.atanh(coefficient)
    return Interval(
        low=math.tanh(centre - half),
        high=math.tanh(centre + half),
        confidence_level=confidence_level,
        method=name,
    )


# A variance, or a share of one, below this is what rounding makes of zero.
_TINY = 1e-12


def scaled(columns: list[Floats]) -> Floats:
    """Return the columns with mean 0 and variance 1, constants as zeros, shape `(n_rows, k)`."""
    n_rows = columns[0].size
    units = [unit_deviations(column) for column in columns]
    columns_of_units = [np.zeros(n_rows) if unit is None else unit for unit in units]
    return np.asarray(np.column_stack(columns_of_units) * np.sqrt(n_rows))


def moments_of_clusters(predictors: Floats, targets: Floats, codes: Integers) -> Floats:
    """Sum over each cluster all that correlations need, shape `(n_clusters, k)`."""
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
    """Return each predictor's correlation with each target, the other predictors held constant.

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


# Bounds a chunk of weights to 1 MiB an array, which a processor's cache holds.
_CHUNK_CELLS = 2**17


def resampled_rank_correlations(
    predictors: list[Floats],
    targets: list[Floats],
    codes: Integers,
    n_resamples: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return the rank correlations of each resample, as `correlations_of_moments` shapes them."""
    p, m = len(predictors), len(targets)
    within, across = np.empty((n_resamples, p, p)), np.empty((n_resamples, p, m))
    start = 0
    for weights in _weights(codes, n_resamples, rng):
        stop = start + len(weights)
        within[start:stop], across[start:stop] = rank_correlations(predictors, targets, weights)
        start = stop
    return within, across


def rank_correlations(
    predictors: list[Floats], targets: list[Floats], weights: Floats
) -> tuple[Floats, Floats]:
    """Return rank correlations where row j counts `weights[b, j]` times in sample b."""
    x = [_unit_ranks(column, weights) for column in predictors]
    y = [_unit_ranks(column, weights) for column in targets]
    weighted = [weights * ranks for ranks in x]
    within = np.array([[np.einsum("bn,bn->b", w, v) for v in x] for w in weighted])
    across = np.array([[np.einsum("bn,bn->b", w, v) for v in y] for w in weighted])
    return (
        np.clip(np.moveaxis(within, -1, 0), -1.0, 1.0),
        np.clip(np.moveaxis(across, -1, 0), -1.0, 1.0),
    )


def _unit_ranks(column: Floats, weights: Floats) -> Floats:
    """Return the ranks less their mean, over the root of their weighted squares; NaN if equal."""
    order = np.argsort(column, kind="stable")
    ordered = column[order]
    is_start = np.r_[True, ordered[1:] != ordered[:-1]]
    group = np.empty(column.size, dtype=np.intp)
    group[order] = np.cumsum(is_start) - 1
    counts = np.add.reduceat(weights[:, order], np.flatnonzero(is_start), axis=1)
    running = np.cumsum(counts, axis=1)
    ranks = running - (counts + running[:, -1:]) / 2.0
    squares = np.einsum("bg,bg,bg->b", counts, ranks, ranks)
    ranks /= np.sqrt(np.where(squares > 0.0, squares, np.nan))[:, None]
    return np.asarray(ranks[:, group])


def _weights(codes: Integers, n_resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Yield how often each row counts in resamples of whole clusters, chunk by chunk."""
    n_clusters = int(codes.max()) + 1
    size = max(1, _CHUNK_CELLS // codes.size)
    for start in range(0, n_resamples, size):
        rows = min(size, n_resamples - start)
        drawn = np.empty((rows, n_clusters))
        for row in drawn:
            row[:] = np.bincount(rng.integers(0, n_clusters, n_clusters), minlength=n_clusters)
        yield drawn[:, codes]


def data_correlations(
    x: list[Floats], y: list[Floats], *, method: CorrelationMethod
) -> tuple[Floats, Floats]:
    """Return the correlations among x, shape `(p, p)`, and of x with y, shape `(p, m)`."""
    if method == "spearman":
        within, across = rank_correlations(x, y, np.ones((1, x[0].size)))
        return within[0], across[0]
    left, right = scaled(x), scaled(y)
    return _bounded(left, left), _bounded(left, right)


def drawn_correlations(
    x: list[Floats],
    y: list[Floats],
    codes: Integers,
    *,
    method: CorrelationMethod,
    n_resamples: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return both for each resample, with that axis in front."""
    if method == "spearman":
        return resampled_rank_correlations(x, y, codes, n_resamples, rng)
    moments = moments_of_clusters(scaled(x), scaled(y), codes)
    totals = resample_counts(moments, n_resamples=n_resamples, rng=rng)
    return correlations_of_moments(totals, len(x), len(y))


# Ranks are taken anew for each cluster left out; more clusters than this go together in blocks.
_MOST_BLOCKS = 1_000


def left_out_correlations(
    x: list[Floats], y: list[Floats], codes: Integers, *, method: CorrelationMethod
) -> tuple[Floats, Floats, Floats]:
    """Return both without each cluster, that axis in front, and the rows of each cluster."""
    if method == "spearman":
        blocks = codes % min(int(codes.max()) + 1, _MOST_BLOCKS)
        n_blocks, within, across = int(blocks.max()) + 1, [], []
        size = max(1, _CHUNK_CELLS // codes.size)
        for start in range(0, n_blocks, size):
            numbers = np.arange(start, min(start + size, n_blocks))
            block = rank_correlations(x, y, (blocks != numbers[:, None]).astype(np.float64))
            within.append(block[0])
            across.append(block[1])
        return np.concatenate(within), np.concatenate(across), np.bincount(blocks).astype(float)
    moments = moments_of_clusters(scaled(x), scaled(y), codes)
    left = moments.sum(axis=0) - moments
    return *correlations_of_moments(left, len(x), len(y)), moments[:, 0]


def _bounded(left: Floats, right: Floats) -> Floats:
    """Return the correlations of columns of mean 0 and variance 1; NaN for columns of zeros."""
    products = np.clip(left.T @ right / len(left), -1.0, 1.0)
    varies = np.logical_and.outer((left != 0.0).any(axis=0), (right != 0.0).any(axis=0))
    return np.where(varies, products, np.nan)


def check_correlation_method(method: str) -> None:
    """Refuse a method that is not one of the two."""
    check_choice(method, ("pearson", "spearman"), "method")
