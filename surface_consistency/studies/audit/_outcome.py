"""The verdicts on one fact, side by side."""

from dataclasses import dataclass

from surface_consistency.schemas.audit import Attribution, AuditOutcome, AuditTarget
from surface_consistency.studies.audit._judged import JudgedAnswer

__all__ = ["outcome_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """What the frame shows of one state; None throughout where there is no answer."""

    is_correct: bool | None = None
    answer: str | None = None
    f1: float | None = None
    n_lookups: int | None = None
    n_abstained: int | None = None
    has_gold: bool | None = None
    attribution: Attribution | None = None
    attributed_to: str | None = None


def outcome_of(
    target: AuditTarget,
    full: JudgedAnswer | None,
    del_on: JudgedAnswer | None,
    del_off: JudgedAnswer | None,
    *,
    model: str,
) -> AuditOutcome:
    """Put the verdicts on a fact side by side.

    Args:
        target: The fact.
        full: The answer with the database whole; None when there is none.
        del_on: The answer after deletion, retrieval on.
        del_off: The answer after deletion, retrieval off.
        model: Label of the model.

    Returns:
        The outcome.
    """
    whole, first, second = _view(full), _view(del_on), _view(del_off)
    return AuditOutcome(
        study="audit",
        model=model,
        pair_id=target.pair_id,
        fact_id=target.fact_id,
        first_condition="DEL-ON",
        second_condition="DEL-OFF",
        first_correct=first.is_correct,
        second_correct=second.is_correct,
        database=target.database,
        domain=target.domain,
        variant=target.variant,
        style=target.style,
        prompt_id=target.prompt.prompt_id,
        subject=target.prompt.subject,
        relation=target.prompt.relation,
        gold_object=target.prompt.gold_object,
        full_correct=whole.is_correct,
        full_prediction=whole.answer,
        first_prediction=first.answer,
        second_prediction=second.answer,
        full_f1=whole.f1,
        first_f1=first.f1,
        second_f1=second.f1,
        n_deleted=target.n_deleted,
        n_surviving=len(target.surviving),
        n_lookups=first.n_lookups,
        n_abstained=first.n_abstained,
        has_gold=first.has_gold,
        echoes_subject=bool(target.echoes),
        attribution=first.attribution,
        attributed_to=first.attributed_to,
    )


def _view(answer: JudgedAnswer | None) -> _View:
    """Show an answer."""
    if answer is None:
        return _View()
    return _View(
        is_correct=answer.judgement.is_correct,
        answer=answer.judgement.answer,
        f1=answer.judgement.f1,
        n_lookups=answer.n_lookups,
        n_abstained=answer.n_abstained,
        has_gold=answer.has_gold,
        attribution=answer.attribution,
        attributed_to=answer.attributed_to,
    )
