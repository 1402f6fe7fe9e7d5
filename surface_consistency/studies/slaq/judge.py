"""What a judge is: anything that says which facts an answer states rightly."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from surface_consistency.schemas.slaq import Judgement, SlaqForm, SlaqQuestion

__all__ = ["Judge", "JudgeTask", "unjudged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeTask:
    """One generation with the facts that it should state."""

    prompt_id: str
    """The prompt that was answered."""

    form: SlaqForm
    """Short, long or free."""

    questions: tuple[SlaqQuestion, ...]
    """The facts: one for a short answer, five otherwise."""

    answer: str | None
    """What the model wrote; None when it could not be asked."""


@runtime_checkable
class Judge(Protocol):
    """Judges answers; any class with these two members is a judge."""

    name: str
    """Short name, which stands in every judgement."""

    def judge(self, tasks: Sequence[JudgeTask]) -> Iterator[Judgement]:
        """Judge answers.

        Args:
            tasks: What to judge; prompt ids are unique.

        Yields:
            One judgement for each fact of each task, in order. What cannot be judged comes with
            `is_correct` None and a reason, never as wrong.
        """


def unjudged(
    task: JudgeTask, reason: str, *, judge: str, raw: str | None = None, attempts: int = 0
) -> Iterator[Judgement]:
    """Say of every fact of a task that it could not be judged.

    Args:
        task: The task.
        reason: Why.
        judge: Name of the judge.
        raw: The judge's last words, where it has any.
        attempts: How often it was asked.

    Yields:
        One judgement a fact.
    """
    for question in task.questions:
        yield Judgement(
            prompt_id=task.prompt_id,
            question_id=question.id,
            judge=judge,
            is_correct=None,
            reason=reason,
            raw=raw,
            attempts=attempts,
        )
