"""The deleted entries of one query."""

import numpy as np
import numpy.typing as npt

__all__ = ["Ints", "deleted_indices"]

Ints = npt.NDArray[np.int64]


def deleted_indices(entries: npt.ArrayLike | None, row: int, n_entries: int) -> Ints:
    """Return the indices of deleted entries, sorted and distinct.

    Raises:
        ValueError: If this is no one-dimensional array of integers (a mask is none), or one of them
            is not of the store.
    """
    given = np.asarray([] if entries is None else entries)
    if given.size and (given.ndim != 1 or not np.issubdtype(given.dtype, np.integer)):
        raise ValueError(
            f"deleted[{row}] must be a one-dimensional array of indices; got shape {given.shape} "
            f"of {given.dtype} (pass np.flatnonzero(mask) for a mask)"
        )
    indices = np.unique(given.astype(np.int64))
    for index in indices[[0, -1]].tolist() if len(indices) else ():
        if not 0 <= index < n_entries:
            raise ValueError(
                f"deleted[{row}] names entry {index}, but the store holds {n_entries} entries, "
                "counted from 0"
            )
    return indices
