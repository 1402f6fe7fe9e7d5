"""Exact nearest entries by embedding, with numpy."""

import os
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from surface_consistency.errors import RetrievalError
from surface_consistency.models.encoders import CachedEncoder, Encoder, check_vectors
from surface_consistency.schemas.memory import LookupQuery, Triplet
from surface_consistency.studies.audit.retrieval._ranking import (
    Floats,
    Ints,
    KeyHits,
    KeyTable,
    Masked,
    check_k,
    rank_entries,
    top_keys,
)
from surface_consistency.studies.audit.retrieval.embedding_index import (
    EmbeddingIndex,
    build_index,
    cached_index,
    index_identity,
)
from surface_consistency.studies.audit.retrieval.retriever import Deleted, Hits, lookup_key

__all__ = ["EmbeddingRetriever"]

_PAIRS = 8192
_UNIT_ROUNDOFF = 2.0**-24


class EmbeddingRetriever:
    """Exact search over all entries: blocks of scores by matrix product, masked, then ranked.

    Candidates are found by scores in single precision, whose last bits depend on the batch; the
    scores of the few candidates are computed again in double precision, so hits and their order do
    not depend on it.

    Args:
        triplets: The entries of the store.
        encoder: What encodes keys and queries; a `CachedEncoder` may be shared with the retrievers
            of other stores.
        index: An index that was built of these triplets by this encoder; None to build it.
        cache_dir: Folder in which indices are kept; None to keep none.
        verify: Whether the digest of a kept index is checked on loading.

    Raises:
        RetrievalError: If a vector is not finite or longer than 1, or `index` is of another store
            or encoder.

    Notes:
        Entries of equal key (same subject and relation) score alike and are ranked by index.
        A store without entries has no hits, and a query without text is encoded as it is.

    Examples:
        >>> from surface_consistency.schemas.memory import LookupQuery, Triplet
        >>> class Initials:
        ...     def fingerprint(self):
        ...         return {"encoder": "initials"}
        ...
        ...     def encode(self, texts):
        ...         return np.eye(128, dtype=np.float32)[[ord(text[0]) for text in texts]]
        >>> store = [Triplet("France", "capital", "Paris"), Triplet("Chad", "capital", "N'Djamena")]
        >>> retriever = EmbeddingRetriever(store, Initials())
        >>> query = LookupQuery(entity="Chad", relation="capital")
        >>> retriever.search([query], k=1).indices, retriever.search([query], k=2, deleted=[[1]])
        (array([[1]]), Hits(indices=array([[ 0, -1]]), scores=array([[  0., -inf]], dtype=float32)))
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
        expected = index_identity(self._table.content, self._encoded_by)
        if index is not None:
            if index.identity != expected or len(index.vectors) != self._table.n_keys:
                raise RetrievalError(
                    f"the index {index.identity[:12]} was built of another store or by another "
                    f"encoder than this retriever's ({expected[:12]}); build it of these triplets "
                    "with this encoder"
                )
        elif cache_dir is not None:
            index = cached_index(self._table, self._encoder, cache_dir=cache_dir, verify=verify)
        else:
            index = build_index(self._table, self._encoder)
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
            return rank_entries(self._table, KeyHits.none(), masked, n_rows=n_rows, k=check_k(k))
        queries = check_vectors(vectors, range(n_rows))
        hits = self._candidates(queries, check_k(k), masked)
        exact = KeyHits(
            rows=hits.rows, keys=hits.keys, scores=self._exact(queries, hits.rows, hits.keys)
        )
        return rank_entries(self._table, exact, masked, n_rows=n_rows, k=k)

    def _candidates(self, queries: npt.NDArray[np.float32], k: int, masked: Masked) -> KeyHits:
        """Search all keys but the masked."""

        def score(rows: slice, columns: slice, out: Floats) -> None:
            np.matmul(queries[rows], self._vectors[columns].T, out=out)

        # A sum of d products of unit vectors is off by at most d roundings, in either score.
        slack = 2.0 * _UNIT_ROUNDOFF * queries.shape[1]
        need = k + masked.n_partly
        return top_keys(score, keys=self._table.texts, need=need, masked=masked, slack=slack)

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
