"""Checked counts of paired verdicts for each cluster, as several tests and intervals take them."""

import numpy as np
import numpy.typing as npt

__all__ = ["pair_counts"]


def pair_counts(counts: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the counts of the clusters that hold a pair, shape `(n_clusters, 4)`, as floats."""
    array = np.asarray(counts)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"counts must hold whole numbers; got dtype {array.dtype}")
    if array.ndim != 2 or array.shape[1] != 4:
        raise ValueError(
            "counts must have shape (n_clusters, 4), columns both, first only, second only, "
            f"neither, as from cluster_counts; got {array.shape}"
        )
    cells: npt.NDArray[np.float64] = array.astype(np.float64)
    strange = ~((cells >= 0) & (cells == np.floor(cells)) & np.isfinite(cells)).all(axis=1)
    if strange.any():
        row = int(np.argmax(strange))
        raise ValueError(
            f"counts must be whole numbers of at least 0; row {row} is {array[row].tolist()}"
        )
    cells = np.asarray(cells[cells.sum(axis=1) > 0])
    if len(cells) == 0:
        raise ValueError("counts hold no pair")
    return cells
