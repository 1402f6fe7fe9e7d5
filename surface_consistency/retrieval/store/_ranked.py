"""What a retriever found, checked against what it was asked for."""

from collections.abc import Sequence

import numpy as np

from surface_consistency.errors import RetrievalError
from surface_consistency.retrieval._ranking.deleted_indices import Ints
from surface_consistency.retrieval.retriever import Hits
from surface_consistency.schemas.memory import Triplet

__all__ = ["Ranked", "checked_hits"]

Ranked = list[tuple[int, float]]
"""Entries and their scores, closest first."""


def checked_hits(hits: Hits, deleted: Sequence[Ints], triplets: Sequence[Triplet]) -> list[Ranked]:
    """Return the hits of each query, once they are none that cannot be.

    Raises:
        RetrievalError: If a score is NaN, a hit is deleted or none of the store, the ranks are not
            by score, or there is not one row a query; names the entries.
    """
    shape = (len(deleted), hits.indices.shape[-1])
    if hits.indices.shape != shape or hits.scores.shape != shape:
        raise RetrievalError(
            f"the retriever must give one row of hits a query, {len(deleted)} rows; got indices of "
            f"shape {hits.indices.shape} and scores of {hits.scores.shape}"
        )
    found = hits.indices >= 0
    _refuse(hits.indices[found & (hits.indices >= len(triplets))], "entries outside the store", ())
    _refuse(hits.indices[found & np.isnan(hits.scores)], "NaN as score", triplets)
    is_gone = [np.isin(row, gone) for row, gone in zip(hits.indices, deleted, strict=True)]
    _refuse(hits.indices[found & np.reshape(is_gone, shape)], "deleted entries", triplets)
    is_risen = np.zeros(shape, np.bool_)
    is_risen[:, 1:] = hits.scores[:, 1:] > hits.scores[:, :-1]
    _refuse(hits.indices[found & is_risen], "entries below others of lower score", triplets)
    rows = zip(hits.indices.tolist(), hits.scores.tolist(), strict=True)
    return [
        [pair for pair in zip(entries, scores, strict=True) if pair[0] >= 0]
        for entries, scores in rows
    ]


def _refuse(entries: Ints, what: str, triplets: Sequence[Triplet]) -> None:
    """Say what a retriever gave, where it gave any."""
    broken = np.unique(entries)
    if len(broken):
        named = ", ".join(f"{i} {tuple(triplets[i])}" if triplets else f"{i}" for i in broken[:3])
        raise RetrievalError(
            f"the retriever gave {what}: {len(broken)} entries ({named}); its model or index is "
            "broken, or it does not keep to `Retriever.search`"
        )
