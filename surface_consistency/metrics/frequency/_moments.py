"""Correlations of predictors with targets from sums over rows, for many samples at once."""

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.correlations import unit_deviations
from surface_consistency.metrics._shared.vectors import Floats

__all__ = ["correlations_of_moments", "moments_of_clusters", "partial_of_correlations", "scaled"]

# A variance, or a share of one, below this is what rounding makes of zero.
_TINY = 1e-12


def scaled(columns: list[Floats]) -> Floats:
    """Return the columns with mean 0 and variance 1, constants as zeros, shape `(n_rows, k)`."""
    n_rows = columns[0].size
    units = [unit_deviations(column) for column in columns]
    kept = [np.zeros(n_rows) if unit is None else unit for unit in units]
    return np.asarray(np.column_stack(kept) * np.sqrt(n_rows))


def moments_of_clusters(
    predictors: Floats, targets: Floats, codes: npt.NDArray[np.int64]
) -> Floats:
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
    return _normalised(within, across, squares - mean_y**2)


def _normalised(within: Floats, across: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Divide covariances by standard deviations; NaN where one of these is zero."""
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
