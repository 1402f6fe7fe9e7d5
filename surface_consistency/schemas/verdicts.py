"""Whether an answer is right, by which rule or judge, and why not where nobody could tell."""

from typing import ClassVar

from pydantic import model_validator

from surface_consistency.schemas._record import NonEmpty, Record
from surface_consistency.truth import NoTruthValue


class Verdict(NoTruthValue, Record):
    """The judgement of one answer. Studies whose judges say more add fields."""

    truth: ClassVar[str] = "verdict.correct"

    target_id: NonEmpty
    """What was judged: a question, or one fact of a longer answer."""

    judged_by: NonEmpty
    """The rule and the part of the output that it read, or the judge: "popqa on first_line"."""

    prediction: str | None
    """The part that was judged; None when there is no answer."""

    correct: bool | None
    """Whether it is right; None when it could not be judged."""

    matched_answer: str | None = None
    """The accepted answer that matched; None when none did, or the judge does not say."""

    score: float | None = None
    """How well the answer fits, in [0, 1], higher is better; None for judges without degrees."""

    reason: str | None = None
    """Why it could not be judged; None when it was."""

    raw: str | None = None
    """The judge's own words, the last attempt's; None when it has none."""

    rule_correct: bool | None = None
    """What the study's own rule says where a model or people judge; None where the rule judges, and
    where it could not."""

    @model_validator(mode="after")
    def _judged_or_reason(self) -> "Verdict":
        """Refuse a missing judgement without a reason."""
        if (self.correct is None) != (self.reason is not None):
            raise ValueError("`reason` is given exactly when `correct` is None")
        return self
