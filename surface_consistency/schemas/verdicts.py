"""Whether an answer is right, and by which rule."""

from typing import Literal

from pydantic import model_validator

from surface_consistency.schemas._record import NonEmpty, Record

__all__ = ["Verdict"]


class Verdict(Record):
    """The judgement of one generation against the accepted answers."""

    question_id: NonEmpty
    """Identifier of the question."""

    rule: NonEmpty
    """Name of the matching rule."""

    region: Literal["first_line", "whole"]
    """Which part of the generation was judged."""

    prediction: str | None
    """That part; None when there is no generation."""

    is_correct: bool | None
    """Whether an accepted answer was matched; None when it could not be judged."""

    matched_answer: str | None = None
    """The accepted answer that matched; None when none did."""

    reason: str | None = None
    """Why it could not be judged; None when it was."""

    @model_validator(mode="after")
    def _judged_or_reason(self) -> "Verdict":
        """Refuse a missing judgement without a reason."""
        if (self.is_correct is None) != (self.reason is not None):
            raise ValueError("`reason` is given exactly when `is_correct` is None")
        return self
