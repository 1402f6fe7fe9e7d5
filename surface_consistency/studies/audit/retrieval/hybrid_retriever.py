"""Several retrievers as one."""

from collections.abc import Sequence

import numpy as np
from pydantic import JsonValue

from surface_consistency.errors import RetrievalError
from surface_consistency.schemas.memory import LookupQuery
from surface_consistency.studies.audit.retrieval._ranking import check_k, ranked
from surface_consistency.studies.audit.retrieval.retriever import Deleted, Hits, Retriever

__all__ = ["HybridRetriever"]


class HybridRetriever:
    """Search by reciprocal rank fusion of several retrievers over one store.

    An entry at rank r of a retriever with weight w gets w / (c + r), entries beyond `depth` get
    nothing; the sum is divided by that of an entry that is first everywhere, so scores lie in
    (0, 1] and tell of ranks, not of likeness. Deletion comes first in each retriever, so the ranks
    are those among the entries that remain.

    Args:
        retrievers: What is fused, at least one; all of the same store.
        weights: A positive weight each; None for equal ones.
        c: The constant of the fusion: the larger, the less the first ranks stand out.
        depth: How deep each retriever is read; at least as deep as `k` in any case.

    Raises:
        ValueError: If a number is out of range, or the weights do not fit the retrievers.
        RetrievalError: If the retrievers are of different stores.

    References:
        Cormack, Clarke and Büttcher, SIGIR 2009 (c = 60).
    """

    def __init__(
        self,
        retrievers: Sequence[Retriever],
        *,
        weights: Sequence[float] | None = None,
        c: float = 60.0,
        depth: int = 100,
    ) -> None:
        shares = [1.0] * len(retrievers) if weights is None else list(weights)
        fits = len(shares) == len(retrievers) and all(0.0 < weight < np.inf for weight in shares)
        if not retrievers or not fits:
            raise ValueError(
                "a hybrid needs at least one retriever and a positive, finite weight each; got "
                f"{len(retrievers)} retrievers, weights {shares}"
            )
        if not 0.0 <= c < np.inf or depth < 1:
            raise ValueError(
                f"c must be finite and at least 0, depth at least 1; got {c} and {depth}"
            )
        contents = {str(one.fingerprint().get("content")) for one in retrievers}
        if len(contents) > 1:
            raise RetrievalError(
                "the retrievers of a hybrid were built over different stores (contents "
                f"{', '.join(sorted(content[:12] for content in contents))}); build all of them "
                "over one"
            )
        self._retrievers = list(retrievers)
        self._weights = shares
        self._c = c
        self._depth = depth

    def fingerprint(self) -> dict[str, JsonValue]:
        """Tell the parts, the weights and the content."""
        parts = [one.fingerprint() for one in self._retrievers]
        return {
            "retriever": "hybrid",
            "parts": [*parts],
            "weights": [*self._weights],
            "c": self._c,
            "depth": self._depth,
            "content": parts[0].get("content"),
        }

    def search(self, queries: Sequence[LookupQuery], *, k: int, deleted: Deleted = None) -> Hits:
        """Rank the entries for each query; see `Retriever.search`."""
        depth = max(self._depth, check_k(k))
        shares = np.asarray(self._weights) / sum(self._weights)
        pairs, gains = [], []
        for one, share in zip(self._retrievers, shares, strict=True):
            indices = one.search(queries, k=depth, deleted=deleted).indices
            rows, ranks = np.nonzero(indices >= 0)
            pairs.append(np.stack([rows, indices[rows, ranks]]))
            gains.append(share * (self._c + 1.0) / (self._c + 1.0 + ranks))
        (rows, entries), place = np.unique(
            np.concatenate(pairs, axis=1), axis=1, return_inverse=True
        )
        scores = np.bincount(place.ravel(), weights=np.concatenate(gains), minlength=len(rows))
        return ranked(rows, entries, scores.astype(np.float32), n_rows=len(queries), k=k)
