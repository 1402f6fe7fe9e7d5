"""One answer of an audit, judged and read for what its lookups found."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from surface_consistency.matching.audit import AuditJudgement, judge_answer
from surface_consistency.schemas.audit import Attribution, AuditTarget
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.memory import Lookup, MemoryState, RetrievalTrace
from surface_consistency.studies.audit.attribution import Given, attribute

__all__ = ["JudgedAnswer", "judged_answer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAnswer:
    """What is kept of one answer."""

    judgement: AuditJudgement
    """The verdict."""

    n_lookups: int | None
    """Lookups; None when the runner makes none."""

    n_abstained: int | None
    """Those that found nothing."""

    n_fallback: int | None
    """Those that were answered by an entry below the threshold."""

    n_blank: int | None
    """Those that asked for nothing."""

    has_gold: bool | None
    """Whether a retained candidate states the fact; None without traces."""

    attribution: Attribution | None
    """Where a right answer after deletion came from."""

    attributed_to: str | None
    """The entry behind it."""


def judged_answer(
    target: AuditTarget,
    state: MemoryState,
    generation: Generation,
    *,
    cleaner: str,
    equivalence: str,
    given: Given | None = None,
) -> JudgedAnswer | None:
    """Judge an answer; attribute it when it is right after deletion.

    Args:
        target: What was asked.
        state: State of the store.
        generation: What was answered.
        cleaner: Name of a cleaner.
        equivalence: Name of an equivalence.
        given: As in `attribute`.

    Returns:
        What is kept of it; None when the model could not be asked.
    """
    if generation.text is None:
        return None
    judgement = judge_answer(
        generation.text,
        target.prompt,
        lookups=generation.lookups,
        cleaner=cleaner,
        equivalence=equivalence,
    )
    lookups = () if generation.lookups and state == "DEL-OFF" else generation.lookups
    traces = [lookup.trace for lookup in lookups or () if lookup.trace is not None]
    kind: Attribution | None = None
    entry = None
    if state == "DEL-ON" and judgement.is_correct and lookups is not None:
        found = attribute(
            target.prompt,
            judgement.answer,
            traces,
            surviving=target.surviving,
            equivalence=equivalence,
            given=given,
        )
        kind, entry = found.kind, found.entry
    return JudgedAnswer(
        judgement=judgement,
        n_lookups=None if lookups is None else len(lookups),
        n_abstained=_count(lookups, lambda lookup: lookup.value is None),
        n_fallback=_count(lookups, lambda lookup: _of(lookup, "is_fallback")),
        n_blank=_count(lookups, _is_blank),
        has_gold=None if lookups is None else _has_gold(traces),
        attribution=kind,
        attributed_to=None if entry is None else " | ".join(entry),
    )


def _count(lookups: Sequence[Lookup] | None, holds: Callable[[Lookup], bool]) -> int | None:
    """Count the lookups of which something holds."""
    return None if lookups is None else sum(map(holds, lookups))


def _of(lookup: Lookup, field: str) -> bool:
    """Tell whether a field of the trace is set."""
    return lookup.trace is not None and bool(getattr(lookup.trace, field))


def _is_blank(lookup: Lookup) -> bool:
    """Tell whether a lookup asked for nothing: runners do not hand such a one to the store."""
    return lookup.value is None and (lookup.trace is None or _of(lookup, "error"))


def _has_gold(traces: Iterable[RetrievalTrace]) -> bool:
    """Tell whether a retained candidate states the fact, by the rule of the deletion."""
    return any(
        candidate.supports_target_fact
        for trace in traces
        for candidate in trace.retained_candidates
    )
