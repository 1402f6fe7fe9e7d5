"""What the retrievers over vectors share: encoding queries, exact scores, ranks."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from surface_consistency.errors import RetrievalError
from surface_consistency.retrieval._ranking.deleted_indices import Ints
from surface_consistency.retrieval._ranking.key_table import KeyTable, Masked
from surface_consistency.retrieval._ranking.rank_entries import check_k, rank_entries
from surface_consistency.retrieval._ranking.top_keys import KeyHits
from surface_consistency.retrieval.encoders._vectors import check_vectors
from surface_consistency.retrieval.encoders.encoder import CachedEncoder, Encoder
from surface_consistency.retrieval.index._build import BLOCK, index_from_cache, index_of_table
from surface_consistency.retrieval.index.embedding_index import EmbeddingIndex, index_identity
from surface_consistency.retrieval.lookup_key import lookup_key
from surface_consistency.retrieval.retriever import Deleted, Hits
from surface_consistency.schemas.memory import LookupQuery, Triplet

__all__ = ["VectorSearch"]

_PAIRS = 8192


class VectorSearch(ABC):
    """A retriever by inner product of vectors of length 1.

    A subclass finds candidates by scores in single precision, whose last bits depend on the
    batch; here the scores of the few candidates are computed again in double precision, so hits
    and their order do not.
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
        self._table = KeyTable.of(triplets)
        self._encoder = encoder if isinstance(encoder, CachedEncoder) else CachedEncoder(encoder)
        self._encoded_by = encoder.fingerprint()
        if index is not None:
            self._check_identity(index)
        elif cache_dir is not None:
            index = index_from_cache(
                self._table, self._encoder, cache_dir=Path(cache_dir), verify=verify
            )
        else:
            index = index_of_table(self._table, self._encoder, folder=None, block_size=BLOCK)
        self._index = index
        self._vectors = index.vectors

    @property
    def index(self) -> EmbeddingIndex:
        """The vectors that are searched."""
        return self._index

    def fingerprint(self) -> dict[str, JsonValue]:
        """Tell kind, encoder and content."""
        return {
            "retriever": "embedding",
            "encoder": self._encoded_by,
            "content": self._table.content,
        }

    def search(self, queries: Sequence[LookupQuery], *, k: int, deleted: Deleted = None) -> Hits:
        """Rank the entries for each query; see `Retriever.search`.

        Scores are cosine similarities in [-1, 1]. Each distinct query text is encoded once.
        """
        check_k(k)
        if not queries or not self._table.n_keys:
            vectors = np.empty((len(queries), self._vectors.shape[1]), np.float32)
        else:
            texts = [lookup_key(query.entity, query.relation) for query in queries]
            vectors = self._encoder.encode(texts)
        return self.search_vectors(vectors, k=k, deleted=deleted)

    def search_vectors(
        self, vectors: npt.NDArray[np.float32], *, k: int, deleted: Deleted = None
    ) -> Hits:
        """Rank the entries for queries that are vectors already.

        Args:
            vectors: Finite vectors of length 1, shape (n_queries, dimension).
            k: How many entries each query gets at most, at least 1.
            deleted: Entries that do not exist for a query.

        Returns:
            Indices and scores, one row a query.

        Raises:
            ValueError: If `k`, the dimension or `deleted` does not fit.
            RetrievalError: If a vector is not finite or longer than 1; names the query.
        """
        n_rows = len(vectors)
        masked = self._table.masked(deleted, n_rows)
        if vectors.ndim != 2 or vectors.shape[1] != self._vectors.shape[1]:
            raise ValueError(
                f"queries must be of shape (n, {self._vectors.shape[1]}) as the index is; got "
                f"{vectors.shape}"
            )
        if not n_rows or not self._table.n_keys:
            return rank_entries(self._table, _none(), masked, n_rows=n_rows, k=check_k(k))
        queries = check_vectors(vectors, range(n_rows))
        found = self._candidates(queries, check_k(k), masked)
        exact = KeyHits(
            rows=found.rows, keys=found.keys, scores=self._exact(queries, found.rows, found.keys)
        )
        return rank_entries(self._table, exact, masked, n_rows=n_rows, k=k)

    @abstractmethod
    def _candidates(self, queries: npt.NDArray[np.float32], k: int, masked: Masked) -> KeyHits:
        """Return pairs that hold the k best entries of each query."""

    def _exact(
        self, queries: npt.NDArray[np.float32], rows: Ints, keys: Ints
    ) -> npt.NDArray[np.float32]:
        """Return the scores of pairs, computed in double precision and rounded once."""
        scores = np.empty(len(rows), np.float32)
        for start in range(0, len(rows), _PAIRS):
            some = slice(start, start + _PAIRS)
            ours = queries[rows[some]].astype(np.float64)
            theirs = self._vectors[keys[some]].astype(np.float64)
            scores[some] = np.einsum("ij,ij->i", ours, theirs)
        return scores

    def _check_identity(self, index: EmbeddingIndex) -> None:
        """Refuse an index of another store or another encoder."""
        expected = index_identity(self._table.content, self._encoded_by)
        if index.identity != expected or len(index.vectors) != self._table.n_keys:
            raise RetrievalError(
                f"the index {index.identity[:12]} was built of another store or by another "
                f"encoder than this retriever's ({expected[:12]}); build it of these triplets "
                "with this encoder"
            )


def _none() -> KeyHits:
    """Return no candidates."""
    ints = np.empty(0, np.int64)
    return KeyHits(rows=ints, keys=ints, scores=np.empty(0, np.float32))
