"""From the best keys of each query to its best entries."""

import numpy as np

from surface_consistency.retrieval._ranking.deleted_indices import Ints
from surface_consistency.retrieval._ranking.key_table import KeyTable, Masked
from surface_consistency.retrieval._ranking.top_keys import KeyHits
from surface_consistency.retrieval.retriever import Hits

__all__ = ["check_k", "rank_entries", "ranked"]


def check_k(k: int) -> int:
    """Return `k`, or say that it is too small.

    Raises:
        ValueError: If it is below 1.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1; got {k}")
    return k


def rank_entries(table: KeyTable, hits: KeyHits, masked: Masked, *, n_rows: int, k: int) -> Hits:
    """Expand keys to entries, drop the deleted, and keep the k best of each row."""
    pairs, entries = table.expand(hits.rows, hits.keys)
    rows, scores = hits.rows[pairs], hits.scores[pairs]
    if len(masked.codes):
        codes = rows * table.n_entries + entries
        found = np.searchsorted(masked.codes, codes)
        found[found == len(masked.codes)] = 0
        alive = masked.codes[found] != codes
        rows, entries, scores = rows[alive], entries[alive], scores[alive]
    return ranked(rows, entries, scores, n_rows=n_rows, k=k)


def ranked(rows: Ints, entries: Ints, scores: np.ndarray, *, n_rows: int, k: int) -> Hits:
    """Rank scored entries: highest score first, lowest index first among equals."""
    order = np.lexsort((entries, -scores, rows))
    rows, entries, scores = rows[order], entries[order], scores[order]
    counts = np.bincount(rows, minlength=n_rows)
    ranks = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
    top = ranks < k
    indices = np.full((n_rows, k), -1, np.int64)
    values = np.full((n_rows, k), -np.inf, np.float32)
    indices[rows[top], ranks[top]] = entries[top]
    values[rows[top], ranks[top]] = scores[top]
    return Hits(indices=indices, scores=values)
