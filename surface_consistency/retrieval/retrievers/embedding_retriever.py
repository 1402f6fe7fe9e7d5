"""Exact nearest entries by embedding, with numpy."""

import numpy as np
import numpy.typing as npt

from surface_consistency.retrieval._ranking.key_table import Masked
from surface_consistency.retrieval._ranking.top_keys import Floats, KeyHits, top_keys
from surface_consistency.retrieval.retrievers._vector_search import VectorSearch

__all__ = ["EmbeddingRetriever"]

_UNIT_ROUNDOFF = 2.0**-24


class EmbeddingRetriever(VectorSearch):
    """Exact search over all entries: blocks of scores by matrix product, masked, then ranked.

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

    def _candidates(self, queries: npt.NDArray[np.float32], k: int, masked: Masked) -> KeyHits:
        """Search all keys but the masked."""

        def score(rows: slice, columns: slice, out: Floats) -> None:
            np.matmul(queries[rows], self._vectors[columns].T, out=out)

        # A sum of d products of unit vectors is off by at most d roundings, in either score.
        slack = 2.0 * _UNIT_ROUNDOFF * queries.shape[1]
        need = k + masked.n_partly
        return top_keys(score, keys=self._table.texts, need=need, masked=masked, slack=slack)
