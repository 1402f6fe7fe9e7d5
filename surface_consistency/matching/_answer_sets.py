"""Accepted answers made ready once, for all rows and all models that share them."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from surface_consistency.matching.rule import Rule, check_answers

__all__ = ["AnswerSets", "answer_sets"]

_MAX_ANSWERS = 300_000


class AnswerSets:
    """The prepared answer sets of one rule; it forgets them all when they become too many."""

    def __init__(self, rule: Rule[Any]) -> None:
        self._rule = rule
        self._prepared: dict[tuple[str, ...], Any] = {(): None}
        self._n_answers = 0

    def get(self, rows: Sequence[tuple[str, ...]], first_row: int) -> list[Any]:
        """Return what the rule made of the answer set of each row.

        Args:
            rows: Answer sets; an empty one gives None.
            first_row: Number of the first row in messages.
        """
        if self._n_answers > _MAX_ANSWERS:
            self._prepared, self._n_answers = {(): None}, 0
        prepared = self._prepared
        places: dict[tuple[str, ...], int] = {}
        row_places = [places.setdefault(answers, len(places)) for answers in rows]
        new = [answers for answers in places if answers not in prepared]
        if new:
            texts = list(chain.from_iterable(new))
            _check(texts, rows, first_row)
            self._add(new, texts, prepared)
        distinct = [prepared[answers] for answers in places]
        return [distinct[place] for place in row_places]

    def _add(
        self,
        new: list[tuple[str, ...]],
        texts: list[str],
        prepared: dict[tuple[str, ...], Any],
    ) -> None:
        """Prepare answer sets, after bringing all their answers into key form at once."""
        keys = tuple(self._rule.keys(texts))
        start = 0
        for answers in new:
            end = start + len(answers)
            prepared[answers] = self._rule.prepare(answers, keys[start:end])
            start = end
        self._n_answers += len(texts)


def _check(texts: list[str], rows: Sequence[tuple[str, ...]], first_row: int) -> None:
    """Raise the error of the first unusable answer set, with its row; usually there is none."""
    if set(map(type, texts)) <= {str} and "" not in texts and not any(map(str.isspace, texts)):
        return
    for row, answers in enumerate(rows, first_row):
        try:
            if answers:
                check_answers(answers)
        except (TypeError, ValueError) as error:
            raise type(error)(f"row {row}: {error}") from None


@lru_cache(maxsize=8)
def answer_sets(rule: Rule[Any]) -> AnswerSets:
    """Return the prepared answer sets of a rule, shared by all calls with that rule.

    Args:
        rule: A rule; equal rules share.
    """
    return AnswerSets(rule)
