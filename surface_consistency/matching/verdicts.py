"""Generations judged into verdict records."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal

from surface_consistency.matching.bulk import match_columns
from surface_consistency.matching.rule import Rule
from surface_consistency.matching.rules import resolve_rule
from surface_consistency.schemas import Verdict
from surface_consistency.text import first_line

__all__ = ["Region", "answer_region", "verdicts"]

Region = Literal["first_line", "whole"]
"""Which part of a generation is judged."""

_ROWS_AT_ONCE = 2_048


def verdicts(
    question_ids: Iterable[str],
    generations: Iterable[str | None],
    answers: Iterable[Sequence[str] | None],
    *,
    rule: str | Rule[Any] = "popqa",
    region: Region = "first_line",
) -> Iterator[Verdict]:
    r"""Judge generations and yield a record for each, in order.

    The columns are read as the verdicts are taken, a few thousand rows at a time, so they may be
    generators over files of any size.

    Args:
        question_ids: Identifiers of the questions, (n_rows,).
        generations: What the model wrote after each prompt, (n_rows,); None where it wrote nothing
            because it could not be asked.
        answers: Accepted answers of each question, (n_rows,).
        rule: Name of a rule, one of `RULES`, or a rule with options of its own.
        region: Which part is judged: "first_line", the default, as the papers do, or "whole".

    Yields:
        One verdict a row; `is_correct` is None, with the reason, where the generation or the
        accepted answers are missing.

    Raises:
        TypeError: If a generation or an answer is not a string.
        ValueError: If the rule or the region is unknown, the columns differ in length, or an
            accepted answer is blank.

    Notes:
        A generation whose first line is empty is wrong under "first_line", whatever follows.

    References:
        First lines: Mallen et al. (2023), `run_model.py`; RedirectQA (arXiv 2604.21882), section 2.

    Examples:
        >>> [made] = verdicts(["q1"], [" London\nQ: Who"], [["London", "Londres"]], rule="exact")
        >>> made.is_correct, made.matched_answer, made.prediction
        (True, 'London', 'London')
    """
    chosen = resolve_rule(rule)
    _check_region(region)
    return _verdicts(zip(question_ids, generations, answers, strict=True), chosen, region)


def answer_region(generation: str, *, region: Region = "first_line") -> str:
    r"""Return the part of a generation that is judged.

    Args:
        generation: What the model wrote after the prompt.
        region: "first_line", the default, or "whole".

    Returns:
        Its first line without surrounding white space, or all of it, unchanged.

    Raises:
        ValueError: If the region is unknown.

    References:
        `surface_consistency.text.first_line`.

    Examples:
        >>> answer_region(" London\nQ: Who")
        'London'
    """
    _check_region(region)
    return first_line(generation) if region == "first_line" else generation


def _check_region(region: str) -> None:
    """Refuse an unknown region."""
    if region not in ("first_line", "whole"):
        raise ValueError(f"`region` must be 'first_line' or 'whole', got {region!r}")


def _verdicts(
    rows: Iterable[tuple[str, str | None, Sequence[str] | None]], rule: Rule[Any], region: Region
) -> Iterator[Verdict]:
    """Judge rows chunk by chunk."""
    rows, first_row = iter(rows), 0
    while chunk := list(islice(rows, _ROWS_AT_ONCE)):
        predictions = [_prediction(generation, region) for _, generation, _ in chunk]
        accepted = [answers for _, _, answers in chunk]
        columns = match_columns(predictions, accepted, rule=rule, first_row=first_row)
        first_row += len(chunk)
        for (question_id, _, _), prediction, is_match, answer, reason in zip(
            chunk, predictions, columns.is_match, columns.answer, columns.reason, strict=True
        ):
            yield Verdict(
                question_id=question_id,
                rule=rule.name,
                region=region,
                prediction=prediction if isinstance(prediction, str) else None,
                is_correct=is_match,
                matched_answer=answer,
                reason=reason,
            )


def _prediction(generation: str | None, region: Region) -> str | None:
    """Return the judged part of a generation, None when there is none."""
    return answer_region(generation, region=region) if isinstance(generation, str) else generation
