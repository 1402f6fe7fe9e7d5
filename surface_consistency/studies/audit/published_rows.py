"""Results of an audit in the rows and columns of the published one (arXiv 2607.00605)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Final

from surface_consistency.matching.audit import AuditJudgement
from surface_consistency.schemas.audit import AuditTarget
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.memory import LookupQuery, MemoryState, RetrievalTrace

__all__ = [
    "CROSS_STATE_COLUMNS",
    "PER_STATE_COLUMNS",
    "PairVerdicts",
    "cross_state_row",
    "per_state_row",
    "result_line",
]

_MEANS: Final = (
    "exact_match",
    "contains_match",
    "unknown_rate",
    "precision",
    "recall",
    "f1",
)
_PAIRED: Final = (
    "paired_count",
    "parametric_leakage",
    "retrieval_mediated_correctness",
    "retrieval_artifact_rate",
)
PER_STATE_COLUMNS: Final = ("prompt_file", "database_path", "state", "count", *_MEANS, *_PAIRED)
"""Columns of `per_state_metrics.csv`; the paired ones are 0 there."""

CROSS_STATE_COLUMNS: Final = ("prompt_file", "database_path", "count", *_MEANS, *_PAIRED)
"""Columns of `cross_state_metrics.csv`."""

_FIELDS: Final = {
    "exact_match": "is_correct",
    "contains_match": "contains",
    "unknown_rate": "is_unknown",
    "precision": "precision",
    "recall": "recall",
    "f1": "f1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PairVerdicts:
    """The verdicts on one fact after deletion."""

    del_on: bool
    """Right with retrieval on."""

    del_off: bool
    """Right with retrieval off."""

    has_gold: bool | None
    """Whether a retained candidate states the fact; None without traces."""


def result_line(target: AuditTarget, state: MemoryState, generation: Generation) -> str:
    """Write an answer as a row of the published results.

    Args:
        target: What was asked.
        state: State of the store.
        generation: What was answered.

    Returns:
        One line of JSON with its newline. The trace is that of the first lookup, the one whose
        value the published code takes for the answer; further lookups stand in the run log.
    """
    prompt = target.prompt
    traces = [lookup.trace for lookup in generation.lookups or () if lookup.trace is not None]
    query = next((lookup.query for lookup in generation.lookups or ()), None)
    trace = traces[0] if traces else _no_trace(state, query)
    row = {
        "fact_id": prompt.fact_id,
        "subject": prompt.subject,
        "subject_aliases": list(prompt.subject_aliases),
        "relation": prompt.relation,
        "relation_aliases": list(prompt.relation_aliases),
        "state": state,
        "prompt": prompt.prompt_text,
        "ground_truth": prompt.gold_object,
        "object_aliases": list(prompt.object_aliases),
        "model_output": generation.text,
        "retrieval_trace": trace.model_dump(mode="json", exclude={"is_fallback"}),
    }
    return json.dumps(row, ensure_ascii=False) + "\n"


def per_state_row(
    target: AuditTarget, state: MemoryState, judgements: Sequence[AuditJudgement]
) -> dict[str, object]:
    """Average the answers of a cell in one state.

    Args:
        target: Any target of the cell.
        state: State of the store.
        judgements: The verdicts on its answers, at least one.

    Returns:
        Values by `PER_STATE_COLUMNS`.
    """
    return {
        "prompt_file": target.prompt_file,
        "database_path": target.database_file,
        "state": state,
        **_means(judgements),
        "paired_count": 0,
        **dict.fromkeys(_PAIRED[1:], 0.0),
    }


def cross_state_row(
    target: AuditTarget,
    judgements: Sequence[AuditJudgement],
    pairs: Sequence[PairVerdicts],
) -> dict[str, object]:
    """Average the answers of a cell over states, and pair those after deletion.

    Args:
        target: Any target of the cell.
        judgements: The verdicts on its answers in all states, at least one.
        pairs: The verdicts on each fact that was judged with retrieval on and off.

    Returns:
        Values by `CROSS_STATE_COLUMNS`. The artifact rate is None where a trace is missing, the
        paired rates where there are no pairs.
    """
    n = len(pairs)
    leaked = sum(pair.del_off for pair in pairs)
    mediated = sum(pair.del_on and not pair.del_off for pair in pairs)
    artifacts = sum(pair.del_on and not pair.has_gold for pair in pairs)
    has_traces = bool(pairs) and all(pair.has_gold is not None for pair in pairs)
    return {
        "prompt_file": target.prompt_file,
        "database_path": target.database_file,
        **_means(judgements),
        "paired_count": n,
        "parametric_leakage": leaked / n if n else None,
        "retrieval_mediated_correctness": mediated / n if n else None,
        "retrieval_artifact_rate": artifacts / n if has_traces else None,
    }


def _means(judgements: Sequence[AuditJudgement]) -> Mapping[str, object]:
    """Average the columns of a judgement."""
    n = len(judgements)
    return {"count": n} | {
        column: _mean(getattr(judgement, field) for judgement in judgements)
        for column, field in _FIELDS.items()
    }


def _mean(values: Iterable[float]) -> float:
    """Average at least one value."""
    given = [float(value) for value in values]
    return fsum(given) / len(given)


def _no_trace(state: MemoryState, query: LookupQuery | None) -> RetrievalTrace:
    """Make the trace of an answer for which no store was asked."""
    return RetrievalTrace(
        state=state, retrieval_enabled=state != "DEL-OFF", lookup_query=query, threshold=None
    )
