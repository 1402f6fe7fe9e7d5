"""Verdicts: the correctness label of an answer, with the rule or judge that assigned it."""

from typing import ClassVar

from pydantic import model_validator

from surface_consistency.schemas._record import NonEmpty, Record
from surface_consistency.truth import NoTruthValue


class Verdict(NoTruthValue, Record):
    """The correctness label of one answer. Studies with more detailed judges add fields."""

    truth: ClassVar[str] = "verdict.correct"

    target_id: NonEmpty
    """Identifier of the scored answer: of a question, or of one fact of a longer answer."""

    judged_by: NonEmpty
    """The rule and the scored part of the output ("popqa on first_line"), or the judge."""

    prediction: str | None
    """The part that was scored; None if there is no answer."""

    correct: bool | None
    """Whether it is correct; None if unscored."""

    matched_answer: str | None = None
    """The accepted answer that matched; None if none matched, or the judge does not name it."""

    score: float | None = None
    """Score of the answer, in [0, 1], higher is better; None for judges without graded scores."""

    reason: str | None = None
    """Why it is unscored; None if it is scored."""

    raw: str | None = None
    """The judge's reply, of the last attempt; None for a rule."""

    rule_correct: bool | None = None
    """Label of the study's rule, if an LLM or human judge decides; None if the rule decides, or if
    the rule could not score the answer."""

    @model_validator(mode="after")
    def _scored_or_reason(self) -> "Verdict":
        """Raise an error for a missing label without a reason."""
        if (self.correct is None) != (self.reason is not None):
            raise ValueError("`reason` must be given exactly if `correct` is None")
        return self
