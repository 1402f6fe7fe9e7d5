"""Lookups written down: what was found, what of it is deleted, and what answered."""

from collections.abc import Sequence

from surface_consistency.retrieval._ranking.deleted_indices import Ints
from surface_consistency.retrieval.closure.keys import NameKey
from surface_consistency.retrieval.store._ranked import Ranked
from surface_consistency.retrieval.store._target_flags import Flags, TargetFlags
from surface_consistency.retrieval.store.policy import Fallback, select_candidate
from surface_consistency.schemas.memory import (
    AuditPrompt,
    Candidate,
    LookupQuery,
    MemoryState,
    RetrievalTrace,
    Triplet,
)

__all__ = ["TraceWriter"]

_EMPTY_LOOKUP = "empty lookup: neither entity nor relation was given"


class TraceWriter:
    """Writes the traces of one store."""

    def __init__(
        self,
        triplets: Sequence[Triplet],
        key: NameKey,
        *,
        threshold: float | None,
        fallback: Fallback,
    ) -> None:
        """Start with no entry compared."""
        self._triplets = triplets
        self._flags = TargetFlags(triplets, key)
        self._threshold = threshold
        self._fallback: Fallback = fallback

    def answered(
        self,
        query: LookupQuery,
        state: MemoryState,
        target: AuditPrompt | None,
        *,
        whole: Ranked,
        rest: Ranked,
        deleted: Ints,
    ) -> RetrievalTrace:
        """Write down a lookup: the closest of the whole store and of the rest of it."""
        gone = frozenset(deleted.tolist())
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
            lookup_query=query,
            threshold=self._threshold,
            all_candidates=tuple(made[pair] for pair in whole),
            deleted_candidates=tuple(made[pair] for pair in whole if pair[0] in gone),
            retained_candidates=retained,
            selected_candidate=selected.candidate,
            selected_value=None if selected.candidate is None else selected.candidate.object,
            is_fallback=selected.is_fallback,
        )

    def silent(self, query: LookupQuery, state: MemoryState) -> RetrievalTrace:
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
        subject, relation, value = self._triplets[entry]
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
