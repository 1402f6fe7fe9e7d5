"""Counts of paired verdicts for each cluster and model, on the pairs that all models answered."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.frames import cluster_codes
from surface_consistency.metrics._shared.verdicts import MISSING, MissingPolicy, outcome_cells

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ModelCells", "model_cells"]


class ModelCells(NamedTuple):
    """What a comparison of models needs of a frame."""

    models: list[object]
    """The models, in the order of their first row."""

    sums: npt.NDArray[np.float64]
    """Counts of each cluster, shape `(n_clusters, n_models * 4)`."""

    n_pairs: int
    """Pairs that all models answered."""

    n_missing: int
    """Pairs that some model did not answer."""


def model_cells(
    frame: "pd.DataFrame",
    model: str,
    pair_id: str,
    *,
    first: str,
    second: str,
    cluster: str | None,
    missing: MissingPolicy,
) -> ModelCells:
    """Match the rows of the models by pair and sum them within clusters."""
    import pandas as pd

    model_codes, models = pd.factorize(frame[model])
    pair_codes, pairs = pd.factorize(frame[pair_id])
    for codes, column in ((model_codes, model), (pair_codes, pair_id)):
        if (codes < 0).any():
            raise ValueError(f"column {column!r} is empty in row {int(np.argmax(codes < 0))}")
    _check_unique(frame, model, pair_id)
    cells = outcome_cells(
        frame[first].array, frame[second].array, missing=missing, names=(first, second)
    )
    grid = np.full((len(pairs), len(models)), MISSING, dtype=np.int8)
    grid[pair_codes, model_codes] = cells
    complete = (grid != MISSING).all(axis=1)
    if missing == "raise" and not complete.all():
        pair, position = np.argwhere(grid == MISSING)[0]
        raise ValueError(
            f"model {models[position]!r} has no row for pair {pairs[pair]!r}: score it, or pass "
            "missing='drop' to compare on the pairs that all models have"
        )
    if not complete.any():
        raise ValueError(
            f"no pair of column {pair_id!r} is answered by all of the models {list(models)}: "
            "check that their ids name the same pairs"
        )
    clusters = _clusters_of_pairs(frame, cluster, pair_id, pair_codes)[complete]
    return ModelCells(
        models=list(models),
        sums=_sums(grid[complete], clusters),
        n_pairs=int(complete.sum()),
        n_missing=int((~complete).sum()),
    )


def _check_unique(frame: "pd.DataFrame", model: str, pair_id: str) -> None:
    """Refuse a pair that stands twice for one model."""
    repeated = frame.duplicated([model, pair_id])
    if repeated.any():
        row = frame[repeated].iloc[0]
        raise ValueError(
            f"column {pair_id!r} holds {row[pair_id]!r} more than once for model {row[model]!r} "
            f"({int(repeated.sum())} rows repeat one): drop the duplicates"
        )


def _clusters_of_pairs(
    frame: "pd.DataFrame", cluster: str | None, pair_id: str, pair_codes: npt.NDArray[np.intp]
) -> npt.NDArray[np.int64]:
    """Return the cluster of each pair, the same for all models."""
    n_pairs = int(pair_codes.max()) + 1
    if cluster is None:
        return np.arange(n_pairs)
    codes = cluster_codes(frame, cluster)
    of_pair = np.empty(n_pairs, dtype=np.int64)
    of_pair[pair_codes] = codes
    torn = of_pair[pair_codes] != codes
    if torn.any():
        row = frame.iloc[int(np.argmax(torn))]
        raise ValueError(
            f"pair {row[pair_id]!r} belongs to more than one cluster of column {cluster!r}: the "
            "models must agree on the cluster of a pair"
        )
    return of_pair


def _sums(grid: npt.NDArray[np.int8], clusters: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Count the cells of each cluster and model."""
    distinct, codes = np.unique(clusters, return_inverse=True)
    n_models = grid.shape[1]
    flat = (codes[:, None] * n_models + np.arange(n_models)) * 4 + grid
    counted = np.bincount(flat.ravel(), minlength=distinct.size * n_models * 4)
    return counted.astype(np.float64).reshape(distinct.size, n_models * 4)
