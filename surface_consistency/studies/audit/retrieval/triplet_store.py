"""A store of facts that answers lookups and records a trace of each."""

from collections.abc import Callable, Sequence
from itertools import compress
from typing import NamedTuple, get_args

import numpy as np
from pydantic import JsonValue

from surface_consistency.errors import RunnerError
from surface_consistency.schemas import memory
from surface_consistency.studies.audit.retrieval._ranking import check_k, deleted_indices
from surface_consistency.studies.audit.retrieval.alias_groups import (
    ROLES,
    NameKey,
    name_key,
    names_in,
)
from surface_consistency.studies.audit.retrieval.retriever import (
    Deleted,
    Fallback,
    Hits,
    Retriever,
    check_policy,
    lookup_key,
    select_candidate,
)
from surface_consistency.studies.audit.retrieval.triplets import Ints, Triplets

_Ranked = list[tuple[int, float]]
"""Entries and their scores, closest first."""

_EMPTY_LOOKUP = "empty lookup: neither entity nor relation was given"


class _Search(NamedTuple):
    """One distinct search: the query and the deleted entries."""

    query: memory.LookupQuery
    deleted: bytes


class TripletStore:
    """A database behind a retriever, with an explicit policy and a trace of every lookup.

    Args:
        triplets: The facts.
        retriever: Ranks the facts; its `content` must be that of the database.
        k: Number of candidates in a trace.
        threshold: Minimum score that is accepted (`score >= threshold`); None for no limit. The
            published retriever of limited-memory LMs has 0.6, the published audit -1.
        fallback: If no candidate is accepted, "abstain" selects none, and "top1_anyway" the
            closest one, as the published audit does.
        key: Names of equal key are equivalent: a function, or one of the names in `KEYS`. A name
            whose key is empty is equivalent only to itself.

    Raises:
        RunnerError: If the retriever was built over other triplets.
        ValueError: If `k`, `threshold`, `fallback` or `key` is invalid.
    """

    def __init__(
        self,
        triplets: Triplets,
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
        self.triplets = triplets
        """The facts."""
        self._retriever = retriever
        self._key = key
        self._of = name_key(key)
        ours, theirs = triplets.content, retriever.fingerprint().get("content")
        if theirs != ours:
            raise RunnerError(
                f"the retriever was built over other triplets (content {str(theirs)[:12]}) than "
                f"this store's {len(triplets)} (content {ours[:12]}); build it over the same ones"
            )

    def fingerprint(self) -> dict[str, JsonValue]:
        """Return everything that affects the traces: retriever, content, policy and key."""
        return {
            "retriever": self._retriever.fingerprint(),
            "k": self._k,
            "threshold": self._threshold,
            "fallback": self._fallback,
            "key": self._key if isinstance(self._key, str) else _name_of(self._key),
        }

    def look_up(
        self,
        queries: Sequence[memory.LookupQuery],
        *,
        states: Sequence[memory.MemoryState],
        deleted: Deleted = None,
        targets: Sequence[memory.AuditPrompt | None] | None = None,
    ) -> list[memory.RetrievalTrace]:
        """Answer a batch of lookups, each with its own state, deletion and target.

        Args:
            queries: The lookup queries.
            states: State of the store for each. FULL searches without a deletion; DEL-OFF does not
                answer.
            deleted: For each, the indices of the triplets that its deletion removes, by which
                candidates are also flagged in FULL; None for no deletion.
            targets: For each, the fact by which candidates are flagged; None for no flags.

        Returns:
            One trace per query, in order. `all_candidates` are the k closest of the full store,
            `deleted_candidates` those of them that are deleted (empty in FULL), and
            `retained_candidates` the k closest of the remaining entries. A lookup with a blank
            entity and a blank relation is not searched: it is an abstention with an `error`.

        Raises:
            ValueError: If the sequences differ in length, or an index or state does not exist.
            RunnerError: If the retriever returns NaN as a score, a deleted entry, or another
                invalid result; the message names the entries.
        """
        given = [None] * len(queries) if deleted is None else deleted
        n_entries = len(self.triplets)
        gone = [deleted_indices(entries, row, n_entries) for row, entries in enumerate(given)]
        facts = [None] * len(queries) if targets is None else targets
        _check_lengths(len(queries), states=states, deleted=gone, targets=facts)
        whole = [_Search(query, b"") for query in queries]
        rest = [
            _Search(query, gone[i].tobytes() if states[i] == "DEL-ON" else b"")
            for i, query in enumerate(queries)
        ]
        is_asked = [
            state != "DEL-OFF" and bool(lookup_key(query.entity, query.relation).strip())
            for state, query in zip(states, queries, strict=True)
        ]
        searches = dict.fromkeys((*compress(whole, is_asked), *compress(rest, is_asked)))
        ranked = self._searched(list(searches))
        return [
            self._trace(
                query,
                states[i],
                facts[i],
                whole=ranked[whole[i]],
                rest=ranked[rest[i]],
                deleted=gone[i],
            )
            if is_asked[i]
            else self._silent_trace(query, states[i])
            for i, query in enumerate(queries)
        ]

    def _searched(self, searches: list[_Search]) -> dict[_Search, _Ranked]:
        """Run each distinct search once, all in one batch."""
        if not searches:
            return {}
        gone = [np.frombuffer(search.deleted, np.int64) for search in searches]
        hits = self._retriever.search(
            [search.query for search in searches], k=self._k, deleted=gone
        )
        return dict(zip(searches, _checked_hits(hits, gone, self.triplets), strict=True))

    def _trace(
        self,
        query: memory.LookupQuery,
        state: memory.MemoryState,
        target: memory.AuditPrompt | None,
        *,
        whole: _Ranked,
        rest: _Ranked,
        deleted: Ints,
    ) -> memory.RetrievalTrace:
        """Return the trace of a lookup: the closest entries of the full store and of the rest."""
        gone = frozenset(deleted.tolist())
        names = [
            frozenset(map(self._of, names_in(target, role) if target is not None else ()))
            for role in ROLES
        ]
        made = {
            (entry, score): self._candidate(entry, score, names, entry in gone)
            for entry, score in {*whole, *rest}
        }
        retained = tuple(made[pair] for pair in rest)
        selected, is_fallback = select_candidate(
            retained, threshold=self._threshold, fallback=self._fallback
        )
        return memory.RetrievalTrace(
            state=state,
            retrieval_enabled=True,
            lookup_query=query,
            threshold=self._threshold,
            all_candidates=tuple(made[pair] for pair in whole),
            deleted_candidates=tuple(
                made[pair] for pair in whole if pair[0] in gone and state != "FULL"
            ),
            retained_candidates=retained,
            selected_candidate=selected,
            selected_value=None if selected is None else selected.object,
            is_fallback=is_fallback,
        )

    def _silent_trace(
        self, query: memory.LookupQuery, state: memory.MemoryState
    ) -> memory.RetrievalTrace:
        """Return the trace of a lookup that was not searched."""
        is_off = state == "DEL-OFF"
        return memory.RetrievalTrace(
            state=state,
            retrieval_enabled=not is_off,
            lookup_query=query,
            threshold=self._threshold,
            error=None if is_off else _EMPTY_LOOKUP,
        )

    def _candidate(
        self, entry: int, score: float, names: Sequence[frozenset[str]], is_deleted: bool
    ) -> memory.Candidate:
        """Return the candidate of an entry, with flags for the names that match the target's."""
        triplet = self.triplets[entry]
        flags = [self._of(part) in own for part, own in zip(triplet, names, strict=True)]
        return memory.Candidate(
            **triplet._asdict(),
            score=score,
            matches_subject=flags[0],
            matches_relation=flags[1],
            matches_object=flags[2],
            supports_target_fact=all(flags),
            matches_deleted_fact=is_deleted,
        )


def _name_of(function: Callable[[str], str]) -> str:
    """Return the name of a function, or of its class if it has no name."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def _check_lengths(n_queries: int, **given: Sequence[object]) -> None:
    """Reject sequences whose length differs from the queries, and unknown states."""
    for name, items in given.items():
        if len(items) != n_queries:
            raise ValueError(
                f"{name} must have one item per query; got {len(items)} for {n_queries} queries"
            )
    unknown = {*map(str, given["states"])} - {*get_args(memory.MemoryState)}
    if unknown:
        raise ValueError(f"states must be FULL, DEL-ON or DEL-OFF; got {sorted(unknown)}")


def _checked_hits(
    hits: Hits, deleted: Sequence[Ints], triplets: Sequence[memory.Triplet]
) -> list[_Ranked]:
    """Return the hits of each query; reject NaN, deleted, unknown and misranked entries."""
    shape = (len(deleted), hits.indices.shape[-1])
    if hits.indices.shape != shape or hits.scores.shape != shape:
        raise RunnerError(
            f"the retriever must return one row of hits per query, {len(deleted)} rows; got "
            f"indices of shape {hits.indices.shape} and scores of {hits.scores.shape}"
        )
    is_hit = hits.indices >= 0
    _reject(hits.indices[is_hit & (hits.indices >= len(triplets))], "entries outside the store", ())
    _reject(hits.indices[is_hit & np.isnan(hits.scores)], "NaN as score", triplets)
    is_gone = [np.isin(row, gone) for row, gone in zip(hits.indices, deleted, strict=True)]
    _reject(hits.indices[is_hit & np.reshape(is_gone, shape)], "deleted entries", triplets)
    is_risen = np.zeros(shape, np.bool_)
    is_risen[:, 1:] = hits.scores[:, 1:] > hits.scores[:, :-1]
    _reject(hits.indices[is_hit & is_risen], "entries below others of lower score", triplets)
    rows = zip(hits.indices.tolist(), hits.scores.tolist(), strict=True)
    return [
        [pair for pair in zip(entries, scores, strict=True) if pair[0] >= 0]
        for entries, scores in rows
    ]


def _reject(entries: Ints, what: str, triplets: Sequence[memory.Triplet]) -> None:
    """Raise an error if a retriever returned invalid entries."""
    broken = np.unique(entries)
    if len(broken):
        named = ", ".join(f"{i} {tuple(triplets[i])}" if triplets else f"{i}" for i in broken[:3])
        raise RunnerError(
            f"the retriever returned {what}: {len(broken)} entries ({named}); its model or index "
            "is damaged, or it does not implement `Retriever.search`"
        )
