"""A store of facts as a model meets it: lookups in, traces out."""

from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple, Self

import numpy as np
from pydantic import JsonValue

from surface_consistency.errors import RetrievalError
from surface_consistency.retrieval._deleted_indices import deleted_indices
from surface_consistency.retrieval._rank_entries import check_k
from surface_consistency.retrieval._target_flags import Flags, TargetFlags
from surface_consistency.retrieval.closure.keys import NameKey
from surface_consistency.retrieval.content import content_digest
from surface_consistency.retrieval.lookup_key import lookup_key
from surface_consistency.retrieval.policy import Fallback, check_policy, select_candidate
from surface_consistency.retrieval.retriever import Deleted, Retriever
from surface_consistency.schemas.memory import (
    AuditPrompt,
    Candidate,
    LookupQuery,
    MemoryState,
    RetrievalTrace,
    TripletDatabase,
)

__all__ = ["TripletStore"]

_EMPTY_LOOKUP = "empty lookup: neither entity nor relation was given"
_Ranked = list[tuple[int, float]]


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
        self._flags = TargetFlags(database.triplets, key)
        self._check_content()

    @property
    def database(self) -> TripletDatabase:
        """The facts."""
        return self._database

    def fingerprint(self) -> dict[str, JsonValue]:
        """Tell what decides the answers: retriever, content and policy."""
        return {
            "retriever": self._retriever.fingerprint(),
            "k": self._k,
            "threshold": self._threshold,
            "fallback": self._fallback,
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
            RetrievalError: If a score is NaN; names the entries.
        """
        given = [None] * len(queries) if deleted is None else deleted
        gone = [deleted_indices(entries, row) for row, entries in enumerate(given)]
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
            self._trace(found[whole[i]], found[rest[i]], rest[i], states[i], facts[i])
            if is_asked[i]
            else self._silence(query, states[i])
            for i, query in enumerate(queries)
        ]

    def _searched(self, searches: list[_Search]) -> dict[_Search, _Ranked]:
        """Make each distinct search once, all in one batch."""
        if not searches:
            return {}
        hits = self._retriever.search(
            [search.query for search in searches],
            k=self._k,
            deleted=[np.frombuffer(search.deleted, np.int64) for search in searches],
        )
        found = hits.indices >= 0
        broken = np.unique(hits.indices[found & np.isnan(hits.scores)])
        if len(broken):
            named = ", ".join(f"{i} {tuple(self._database.triplets[i])}" for i in broken[:3])
            raise RetrievalError(
                f"the retriever gave NaN as the score of {len(broken)} entries ({named}); its "
                "model or index is broken, build it again"
            )
        rows = zip(hits.indices.tolist(), hits.scores.tolist(), strict=True)
        ranked = [
            [pair for pair in zip(entries, scores, strict=True) if pair[0] >= 0]
            for entries, scores in rows
        ]
        return dict(zip(searches, ranked, strict=True))

    def _trace(
        self,
        whole: _Ranked,
        rest: _Ranked,
        search: _Search,
        state: MemoryState,
        target: AuditPrompt | None,
    ) -> RetrievalTrace:
        """Write down one lookup: the closest of the whole store and of the rest of it."""
        gone = frozenset(np.frombuffer(search.deleted, np.int64).tolist())
        compare = self._flags.against(target)
        made = {
            (entry, score): self._candidate(entry, score, compare(entry), entry in gone)
            for entry, score in {*whole, *rest}
        }
        retained = tuple(made[pair] for pair in rest)
        selected = select_candidate(retained, threshold=self._threshold, fallback=self._fallback)
        return RetrievalTrace(
            state=state,
            retrieval_enabled=True,
            lookup_query=search.query,
            threshold=self._threshold,
            all_candidates=tuple(made[pair] for pair in whole),
            deleted_candidates=tuple(made[pair] for pair in whole if pair[0] in gone),
            retained_candidates=retained,
            selected_candidate=selected.candidate,
            selected_value=None if selected.candidate is None else selected.candidate.object,
            is_fallback=selected.is_fallback,
        )

    def _silence(self, query: LookupQuery, state: MemoryState) -> RetrievalTrace:
        """Write down a lookup for which nothing was searched."""
        is_off = state == "DEL-OFF"
        return RetrievalTrace(
            state=state,
            retrieval_enabled=not is_off,
            lookup_query=query,
            threshold=self._threshold,
            error=None if is_off else _EMPTY_LOOKUP,
        )

    def _candidate(self, entry: int, score: float, flags: Flags, is_deleted: bool) -> Candidate:
        """Describe one entry."""
        subject, relation, value = self._database.triplets[entry]
        return Candidate(
            subject=subject,
            relation=relation,
            object=value,
            score=score,
            matches_subject=flags.subject,
            matches_relation=flags.relation,
            matches_object=flags.object,
            supports_target_fact=all(flags),
            matches_deleted_fact=is_deleted,
        )

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
