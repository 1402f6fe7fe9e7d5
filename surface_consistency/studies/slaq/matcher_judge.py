"""A judge that compares strings: for answers that are names, dates and numbers."""

from collections.abc import Iterator, Sequence

from surface_consistency.matching.rules import match, resolve_rule
from surface_consistency.schemas.slaq import Judgement
from surface_consistency.studies.slaq.judge import JudgeTask, unjudged

__all__ = ["MatcherJudge"]


class MatcherJudge:
    """Looks for the reference answer in the answer, by a matching rule.

    In a long answer every fact is looked for in the whole text, so a name that answers one question
    also satisfies another with the same reference. In free form a fact that is found counts as
    recalled; of one that is not found a string matcher cannot tell whether the text is silent on it
    or wrong, so `is_recalled` is None.

    Args:
        rule: Name of the matching rule, one of `matching.RULES`.
        entities_only: Leave facts whose answer is not a named entity unjudged: descriptions seldom
            come back word by word. Facts without an entity flag are judged.

    Raises:
        ValueError: If there is no such rule.
    """

    name: str
    """`matcher:` and the rule."""

    def __init__(self, rule: str = "boundary", *, entities_only: bool = True) -> None:
        resolve_rule(rule)
        self.name = f"matcher:{rule}"
        self._rule = rule
        self._entities_only = entities_only

    def judge(self, tasks: Sequence[JudgeTask]) -> Iterator[Judgement]:
        """Judge answers; see `Judge.judge`.

        Args:
            tasks: What to judge.

        Yields:
            One judgement a fact, in order.
        """
        for task in tasks:
            if task.answer is None:
                yield from unjudged(task, "there is no answer to judge", judge=self.name)
                continue
            for question in task.questions:
                skipped = self._entities_only and question.is_entity is False
                found = None if skipped else self._found(task.answer, question.answer)
                yield Judgement(
                    prompt_id=task.prompt_id,
                    question_id=question.id,
                    judge=self.name,
                    is_correct=found,
                    is_recalled=True if found and task.form == "free" else None,
                    reason="the reference is no named entity" if skipped else None,
                    attempts=0,
                )

    def _found(self, answer: str, reference: str) -> bool:
        """Look for a reference, with and without its full stop."""
        accepted = dict.fromkeys((reference, reference.rstrip(". ")))
        return match(answer, [text for text in accepted if text], rule=self._rule).is_match
