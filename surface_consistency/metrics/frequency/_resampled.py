"""Correlations of complete vectors: those of the data, and those of resamples of its clusters."""

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.vectors import Floats
from surface_consistency.metrics.frequency._moments import (
    correlations_of_moments,
    moments_of_clusters,
    scaled,
)
from surface_consistency.metrics.frequency._rank_resamples import (
    rank_correlations,
    resampled_rank_correlations,
)
from surface_consistency.metrics.frequency.correlation_result import CorrelationMethod
from surface_consistency.metrics.uncertainty.bootstrap import resample_counts

__all__ = ["data_correlations", "drawn_correlations"]


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
    codes: npt.NDArray[np.int64],
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


def _bounded(left: Floats, right: Floats) -> Floats:
    """Return the correlations of columns of mean 0 and variance 1; NaN for columns of zeros."""
    products = np.clip(left.T @ right / len(left), -1.0, 1.0)
    varies = np.logical_and.outer((left != 0.0).any(axis=0), (right != 0.0).any(axis=0))
    return np.where(varies, products, np.nan)
