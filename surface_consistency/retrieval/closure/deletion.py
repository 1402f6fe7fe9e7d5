"""Deletions: which entries of a database do not exist for a fact. Nothing is rebuilt."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from surface_consistency.retrieval.closure.alias_closure import Closure
from surface_consistency.schemas.memory import MemoryState

__all__ = ["deleted_entries", "deletion_masks"]


def deleted_entries(
    closures: Iterable[Closure], *, state: MemoryState = "DEL-ON"
) -> list[npt.NDArray[np.int64] | None]:
    """Give what a retriever takes as `deleted`, one item a fact.

    Args:
        closures: What shall be gone.
        state: State of the store; "FULL" deletes nothing.

    Returns:
        For each fact the indices of its deleted entries; None where all exist.

    Examples:
        >>> closure = Closure(indices=np.array([1]), n_triplets=3)
        >>> deleted_entries([closure], state="FULL"), deleted_entries([closure])
        ([None], [array([1])])
    """
    return [None if state == "FULL" else closure.indices for closure in closures]


def deletion_masks(closures: Sequence[Closure]) -> npt.NDArray[np.bool_]:
    """Mark the deleted entries of several facts, for searches that score all entries at once.

    Args:
        closures: Closures in one database, at least one.

    Returns:
        True where an entry is deleted, shape (n_facts, n_triplets): one byte each, so take the
        facts by batches where the database is large.

    Raises:
        ValueError: If there are none, or they are of databases of different sizes.
    """
    sizes = {closure.n_triplets for closure in closures}
    if len(sizes) != 1:
        raise ValueError(f"closures must be of one database, got sizes {sorted(sizes)}")
    masks = np.zeros((len(closures), sizes.pop()), dtype=np.bool_)
    for row, closure in enumerate(closures):
        masks[row, closure.indices] = True
    return masks
