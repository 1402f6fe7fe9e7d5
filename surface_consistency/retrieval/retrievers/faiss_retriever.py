"""Exact nearest entries by embedding, with FAISS."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import MissingDependencyError
from surface_consistency.retrieval._ranking.key_table import Masked
from surface_consistency.retrieval._ranking.top_keys import KeyHits
from surface_consistency.retrieval.encoders._vectors import check_vectors
from surface_consistency.retrieval.encoders.encoder import Encoder
from surface_consistency.retrieval.index._build import BLOCK
from surface_consistency.retrieval.index.embedding_index import EmbeddingIndex
from surface_consistency.retrieval.retrievers._vector_search import VectorSearch
from surface_consistency.schemas.memory import Triplet

__all__ = ["FaissRetriever"]

_BLAS_THRESHOLD = 20
_SLACK = 16
_ROWS = 256
_THRESHOLD_LOCK = Lock()


class FaissRetriever(VectorSearch):
    """Exact search over all entries with `faiss.IndexFlatIP`, for those who have FAISS (extra).

    Same hits as `EmbeddingRetriever`. Deletion is by over-fetch: FAISS is asked for as many more
    keys as a query has lost, and the deleted are dropped before the ranks are given.

    Args:
        triplets: The entries of the store.
        encoder: What encodes keys and queries.
        index: An index that was built of these triplets by this encoder; None to build it.
        cache_dir: Folder in which indices are kept; None to keep none.
        verify: Whether the digest of a kept index is checked on loading.

    Raises:
        MissingDependencyError: If FAISS is not installed.
        RetrievalError: If a vector is not finite or longer than 1, or `index` is of another store
            or encoder.

    Notes:
        The vectors are copied into FAISS. It skips BLAS for small batches as shipped; the limit
        (`distance_compute_blas_threshold`, one for the whole process) is lowered to 20 queries
        during a search and put back. Where more than 16 distinct keys tie with the last hit, which
        of them is kept is FAISS's choice.
    """

    def __init__(
        self,
        triplets: Sequence[Triplet],
        encoder: Encoder,
        *,
        index: EmbeddingIndex | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        verify: bool = True,
    ) -> None:
        try:
            import faiss
        except ImportError as error:
            raise MissingDependencyError("FaissRetriever", "faiss", "faiss") from error
        super().__init__(triplets, encoder, index=index, cache_dir=cache_dir, verify=verify)
        self._faiss: Any = faiss
        self._flat: Any = faiss.IndexFlatIP(self._vectors.shape[1])
        for start in range(0, self._table.n_keys, BLOCK):
            some = slice(start, start + BLOCK)
            self._flat.add(check_vectors(self._vectors[some], self._table.texts[some]))

    def _candidates(self, queries: npt.NDArray[np.float32], k: int, masked: Masked) -> KeyHits:
        """Fetch more keys than needed; rows of like needs together."""
        need = np.minimum(k + masked.n_dead + masked.n_partly + _SLACK, self._table.n_keys)
        order = np.argsort(need, kind="stable")
        rows, keys, scores = [], [], []
        with _blas_from(self._faiss, _BLAS_THRESHOLD):
            for start in range(0, len(order), _ROWS):
                some = order[start : start + _ROWS]
                found, labels = self._flat.search(queries[some], int(need[some].max()))
                rows.append(np.repeat(some, labels.shape[1]))
                keys.append(labels.ravel())
                scores.append(found.ravel())
        labels = np.concatenate(keys)
        there = labels >= 0
        return KeyHits(
            rows=np.concatenate(rows)[there],
            keys=labels[there],
            scores=np.concatenate(scores)[there],
        )


@contextmanager
def _blas_from(faiss: Any, n_queries: int) -> Iterator[None]:  # noqa: ANN401
    """Let FAISS use BLAS from this many queries on, for the length of a search."""
    with _THRESHOLD_LOCK:
        before = faiss.cvar.distance_compute_blas_threshold
        faiss.cvar.distance_compute_blas_threshold = n_queries
        try:
            yield
        finally:
            faiss.cvar.distance_compute_blas_threshold = before
