"""What the retrievers over words share: a table of keys and exact scores by block."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from pydantic import JsonValue

from surface_consistency.retrieval._ranking.key_table import KeyTable
from surface_consistency.retrieval._ranking.rank_entries import check_k, rank_entries
from surface_consistency.retrieval._ranking.top_keys import Scorer, top_keys
from surface_consistency.retrieval.lookup_key import lookup_key
from surface_consistency.retrieval.retriever import Deleted, Hits
from surface_consistency.schemas.memory import LookupQuery, Triplet

__all__ = ["DenseSearch"]


class DenseSearch(ABC):
    """A retriever that scores the keys of a store by their words or letters."""

    _n_rows_at_once = 256
    """Queries that are scored together where the keys are many."""

    def __init__(self, triplets: Sequence[Triplet]) -> None:
        self._table = KeyTable.of(triplets)

    @abstractmethod
    def fingerprint(self) -> dict[str, JsonValue]:
        """Tell kind, settings and content."""

    def search(self, queries: Sequence[LookupQuery], *, k: int, deleted: Deleted = None) -> Hits:
        """Rank the entries for each query; see `Retriever.search`."""
        masked = self._table.masked(deleted, len(queries))
        texts = [lookup_key(query.entity, query.relation) for query in queries]
        hits = top_keys(
            self._scorer(texts),
            keys=self._table.texts,
            need=check_k(k) + masked.n_partly,
            masked=masked,
            n_rows_at_once=self._n_rows_at_once,
        )
        return rank_entries(self._table, hits, masked, n_rows=len(queries), k=k)

    @abstractmethod
    def _scorer(self, texts: list[str]) -> Scorer:
        """Return what fills blocks of scores of these queries."""
