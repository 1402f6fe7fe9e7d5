"""Rank correlations of resamples, ranked anew in each without sorting anew.

The order of the values is that of the data. A resample only changes how often each row counts, so
its average ranks are running sums of those counts.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.vectors import Floats

__all__ = ["rank_correlations", "resampled_rank_correlations"]

# Bounds a chunk of weights to 1 MiB an array, which a processor's cache holds.
_CHUNK_CELLS = 2**17


def resampled_rank_correlations(
    predictors: list[Floats],
    targets: list[Floats],
    codes: npt.NDArray[np.int64],
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


def _weights(
    codes: npt.NDArray[np.int64], n_resamples: int, rng: np.random.Generator
) -> Iterator[Floats]:
    """Yield how often each row counts in resamples of whole clusters, chunk by chunk."""
    n_clusters = int(codes.max()) + 1
    size = max(1, _CHUNK_CELLS // codes.size)
    for start in range(0, n_resamples, size):
        rows = min(size, n_resamples - start)
        drawn = np.empty((rows, n_clusters))
        for row in drawn:
            row[:] = np.bincount(rng.integers(0, n_clusters, n_clusters), minlength=n_clusters)
        yield drawn[:, codes]
