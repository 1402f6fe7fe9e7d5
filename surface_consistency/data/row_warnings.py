"""What a user should know about loaded rows, said once a load."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from surface_consistency.errors import (
    IncompletePairWarning,
    SurfaceConsistencyWarning,
    UnknownCategoryWarning,
    UnscoredWarning,
)
from surface_consistency.schemas import QuestionRealization

__all__ = [
    "warn_foreign_categories",
    "warn_name_only",
    "warn_repeated",
    "warn_unanswerable",
    "warn_unpaired",
]

_SHOWN: Final = 5


def warn_foreign_categories(source: str, counts: Mapping[str, int], *, stacklevel: int = 1) -> None:
    """Warn of redirect categories that the taxonomy does not hold.

    Args:
        source: Name of the source.
        counts: Category to rows; nothing is said when empty.
        stacklevel: Which caller the warning points to, as in `warnings.warn`.

    Warns:
        UnknownCategoryWarning: With every category and its number of rows.
    """
    if counts:
        labels = ", ".join(
            f"{label} ({count})"
            for label, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        )
        _warn(
            f"{source} has redirect categories outside the taxonomy's 33 (rows in parentheses): "
            f'{labels}; they are kept, with type "unknown"',
            UnknownCategoryWarning,
            stacklevel,
        )


def warn_repeated(source: str, n_rows: int, *, stacklevel: int = 1) -> None:
    """Warn of rows that repeat others.

    Args:
        source: Name of the source.
        n_rows: How many were dropped; nothing is said of none.
        stacklevel: Which caller the warning points to, as in `warnings.warn`.

    Warns:
        SurfaceConsistencyWarning: With their number.
    """
    if n_rows:
        _warn(
            f"{source} repeats {n_rows} rows to the letter; each question is used once",
            SurfaceConsistencyWarning,
            stacklevel,
        )


def warn_unpaired(
    source: str, questions: Sequence[QuestionRealization], *, stacklevel: int = 1
) -> None:
    """Warn of redirect questions without a canonical one.

    Args:
        source: Name of the source.
        questions: These questions; nothing is said of none.
        stacklevel: Which caller the warning points to, as in `warnings.warn`.

    Warns:
        IncompletePairWarning: With their number and the first few.
    """
    if questions:
        first = _first(
            f"{question.surface.text!r} (fact {question.triple.id}, {question.template})"
            for question in questions
        )
        _warn(
            f"{len(questions)} redirect questions of {source} have no canonical question of the "
            f"same fact and template: {first}; they are in `.questions` and `.unpaired` but in no "
            "pair",
            IncompletePairWarning,
            stacklevel,
        )


def warn_name_only(source: str, facts: Sequence[str], *, stacklevel: int = 1) -> None:
    """Warn of facts whose object has no other name in a source that lists such names.

    Args:
        source: Name of the source.
        facts: Their identifiers; nothing is said of none.
        stacklevel: Which caller the warning points to, as in `warnings.warn`.

    Warns:
        SurfaceConsistencyWarning: With their number and the first few.
    """
    if facts:
        _warn(
            f"{len(facts)} facts of {source} list no aliases of their object (facts "
            f"{_first(facts)}); the object's name alone is accepted as answer: fill in the "
            "aliases if it has others",
            SurfaceConsistencyWarning,
            stacklevel,
        )


def warn_unanswerable(
    source: str, questions: Iterable[QuestionRealization], *, stacklevel: int = 1
) -> None:
    """Warn of facts for which a source accepts no answer.

    Args:
        source: Name of the source.
        questions: All questions.
        stacklevel: Which caller the warning points to, as in `warnings.warn`.

    Warns:
        UnscoredWarning: With the numbers of questions and facts, and the first few facts.
    """
    without = [question.triple.id for question in questions if not question.triple.answers]
    if without:
        facts = list(dict.fromkeys(without))
        _warn(
            f"{len(without)} questions of {source} have no accepted answer ({len(facts)} facts: "
            f"{_first(facts)}); they are kept, but no answer to them can be scored: fill in the "
            "answers or leave these facts out",
            UnscoredWarning,
            stacklevel,
        )


def _warn(message: str, category: type[Warning], stacklevel: int) -> None:
    """Warn in the name of the function that `stacklevel` counts from."""
    warnings.warn(message, category, stacklevel=stacklevel + 2)


def _first(items: Iterable[str]) -> str:
    """List the first few."""
    listed = list(items)
    return ", ".join(listed[:_SHOWN]) + (", ..." if len(listed) > _SHOWN else "")
