"""A store of facts as a model meets it: lookups in, traces out."""

from collections.abc import Callable, Sequence
from itertools import compress
from typing import NamedTuple, Self

import numpy as np
from pydantic import JsonValue

from surface_consistency.errors import RetrievalError
from surface_consistency.retrieval._ranking.deleted_indices import deleted_indices
from surface_consistency.retrieval._ranking.rank_entries import check_k
from surface_consistency.retrieval.closure.keys import NameKey
from surface_consistency.retrieval.content import content_digest
from surface_consistency.retrieval.lookup_key import lookup_key
from surface_consistency.retrieval.retriever import Deleted, Retriever
from surface_consistency.retrieval.store._ranked import Ranked, checked_hits
from surface_consistency.retrieval.store._traces import TraceWriter
from surface_consistency.retrieval.store.policy import Fallback, check_policy
from surface_consistency.schemas.memory import (
    AuditPrompt,
    LookupQuery,
    MemoryState,
    RetrievalTrace,
    TripletDatabase,
)

__all__ = ["TripletStore"]


class _Search(NamedTuple):
    """One distinct search: what is asked, and of which remainder of the store."""

    query: LookupQuery
    deleted: bytes


class TripletStore:
    """A database behind a retriever, with an explicit policy and a trace of every lookup.

    Args:
        database: The facts.
        retriever: What ranks them; its `content` must be that of the database.
        k: How many candidates a trace shows.
        threshold: Lowest score that is accepted (`score >= threshold`); None for no limit. The
            published retriever of limited-memory LMs has 0.6, the published audit -1.
        fallback: "abstain" answers nothing where no candidate is accepted; "top1_anyway" takes
            the closest, as the published audit does.
        key: Names of equal key are equivalent: a function, or one of the names in `KEYS`. A name
            whose key is empty is equivalent to itself alone.

    Raises:
        RetrievalError: If the retriever was built over other triplets.
        ValueError: If `k`, `threshold`, `fallback` or `key` is none.
    """

    def __init__(
        self,
        database: TripletDatabase,
        retriever: Retriever,
        *,
        k: int = 5,
        threshold: float | None = 0.6,
        fallback: Fallback = "abstain",
        key: NameKey = "published",
    ) -> None:
        check_policy(threshold, fallback)
        self._k = check_k(k)
        self._threshold = threshold
        self._fallback: Fallback = fallback
        self._database = database
        self._retriever = retriever
        self._key = key
        self._traces = TraceWriter(database.triplets, key, threshold=threshold, fallback=fallback)
        self._check_content()

    @property
    def database(self) -> TripletDatabase:
        """The facts."""
        return self._database

    def fingerprint(self) -> dict[str, JsonValue]:
        """Tell what decides the traces: retriever, content, policy and key."""
        return {
            "retriever": self._retriever.fingerprint(),
            "k": self._k,
            "threshold": self._threshold,
            "fallback": self._fallback,
            "key": self._key if isinstance(self._key, str) else _name_of(self._key),
        }

    def with_policy(self, *, threshold: float | None, fallback: Fallback) -> Self:
        """Return a store over the same retriever with another policy; nothing is built anew."""
        return type(self)(
            self._database,
            self._retriever,
            k=self._k,
            threshold=threshold,
            fallback=fallback,
            key=self._key,
        )

    def look_up(
        self,
        queries: Sequence[LookupQuery],
        *,
        states: Sequence[MemoryState],
        deleted: Deleted = None,
        targets: Sequence[AuditPrompt | None] | None = None,
    ) -> list[RetrievalTrace]:
        """Answer a batch of lookups, each with its own state, deletion and target.

        Args:
            queries: What is looked up.
            states: State of the store for each. FULL ignores its deletion; DEL-OFF answers nothing.
            deleted: For each, the indices of the deleted triplets; None where none is.
            targets: For each, the fact by which candidates are flagged; None for no flags.

        Returns:
            One trace a query, in order. `all_candidates` are the k closest of the whole store,
            `deleted_candidates` those of them that are deleted, and `retained_candidates` the k
            closest of what remains. A lookup whose entity and relation are both blank searches
            nothing: it is an abstention with an `error`.

        Raises:
            ValueError: If the sequences differ in length, or an index or state does not exist.
            RetrievalError: If the retriever gives NaN as a score, a deleted entry, or what else it
                must not; names the entries.
        """
        given = [None] * len(queries) if deleted is None else deleted
        n_entries = len(self._database.triplets)
        gone = [deleted_indices(entries, row, n_entries) for row, entries in enumerate(given)]
        facts = [None] * len(queries) if targets is None else targets
        _check_lengths(len(queries), states=states, deleted=gone, targets=facts)
        whole = [_Search(query, b"") for query in queries]
        rest = [
            _Search(query, gone[i].tobytes() if states[i] == "DEL-ON" else b"")
            for i, query in enumerate(queries)
        ]
        is_asked = [
            state != "DEL-OFF" and not _is_blank(query)
            for state, query in zip(states, queries, strict=True)
        ]
        asked = dict.fromkeys((*compress(whole, is_asked), *compress(rest, is_asked)))
        found = self._searched(list(asked))
        return [
            self._traces.answered(
                query,
                states[i],
                facts[i],
                whole=found[whole[i]],
                rest=found[rest[i]],
                deleted=np.frombuffer(rest[i].deleted, np.int64),
            )
            if is_asked[i]
            else self._traces.silent(query, states[i])
            for i, query in enumerate(queries)
        ]

    def _searched(self, searches: list[_Search]) -> dict[_Search, Ranked]:
        """Make each distinct search once, all in one batch."""
        if not searches:
            return {}
        gone = [np.frombuffer(search.deleted, np.int64) for search in searches]
        hits = self._retriever.search(
            [search.query for search in searches], k=self._k, deleted=gone
        )
        return dict(zip(searches, checked_hits(hits, gone, self._database.triplets), strict=True))

    def _check_content(self) -> None:
        """Refuse a retriever of another database."""
        ours = content_digest(self._database.triplets)
        theirs = self._retriever.fingerprint().get("content")
        if theirs != ours:
            raise RetrievalError(
                f"the retriever was built over other triplets (content {str(theirs)[:12]}) than "
                f"this database's {len(self._database.triplets)} (content {ours[:12]}); build it "
                "of `database.triplets`"
            )


def _name_of(function: Callable[[str], str]) -> str:
    """Name a function; one without a name by its class."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def _check_lengths(n_queries: int, **given: Sequence[object]) -> None:
    """Refuse sequences that do not go with the queries.

    Raises:
        ValueError: If one is longer or shorter, or a state does not exist.
    """
    for name, items in given.items():
        if len(items) != n_queries:
            raise ValueError(
                f"{name} must hold one item a query; got {len(items)} for {n_queries} queries"
            )
    unknown = {*map(str, given["states"])} - {"FULL", "DEL-ON", "DEL-OFF"}
    if unknown:
        raise ValueError(f"states must be FULL, DEL-ON or DEL-OFF; got {sorted(unknown)}")


def _is_blank(query: LookupQuery) -> bool:
    """Tell whether a query asks for nothing: its key is blank."""
    return not lookup_key(query.entity, query.relation).strip()
