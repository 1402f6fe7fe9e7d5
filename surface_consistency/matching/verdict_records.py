"""Score generations as `Verdict` records, and compare the labels of different rules."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.matching.bulk import MatchColumns, match_columns
from surface_consistency.matching.rule import AnswerSpan, Rule
from surface_consistency.matching.rules import resolve_rule
from surface_consistency.schemas import Verdict
from surface_consistency.text import first_line, first_text_line

_ROWS_AT_ONCE = 2_048
COMPARED_RULES: Final = ("popqa", "exact", "boundary", "token_f1", "fuzzy")
"""Rules that are compared by default."""


def verdicts(
    target_ids: Iterable[str],
    generations: Iterable[str | None],
    answers: Iterable[Sequence[str] | None],
    *,
    rule: str | Rule[Any] = "popqa",
    region: AnswerSpan = "first_line",
) -> Iterator[Verdict]:
    r"""Score generations and yield one record for each, in order.

    The columns are read lazily, a few thousand rows at a time, so they may be generators over files
    of any size.

    Args:
        target_ids: Identifiers of the scored answers, shape `(n_rows,)`.
        generations: The model's output for each prompt, shape `(n_rows,)`; None if the
            request failed.
        answers: Accepted answers of each question, shape `(n_rows,)`.
        rule: Name of a rule, one of `RULES`, or a rule with other options.
        region: Scored part: "first_line", the default, as in RedirectQA, "first_text_line" or
            "whole".

    Yields:
        One record per row; `correct` is None, with the reason, if the generation or the accepted
        answers are missing.

    Raises:
        TypeError: If a generation or an answer is not a string.
        ValueError: If the rule or the region is unknown, the columns differ in length, or an
            accepted answer is blank.

    Notes:
        A generation whose first line is empty is incorrect under "first_line", regardless of later
        lines; "first_text_line" skips blank lines.

    References:
        First lines: Mallen et al. (2023), `run_model.py`; RedirectQA (arXiv 2604.21882), section 2.

    Examples:
        >>> [made] = verdicts(["q1"], [" London\nQ: Who"], [["London", "Londres"]], rule="exact")
        >>> made.correct, made.matched_answer, made.prediction
        (True, 'London', 'London')
    """
    chosen = resolve_rule(rule)
    _check_region(region)
    return _verdicts(zip(target_ids, generations, answers, strict=True), chosen, region)


def match_spans(
    texts: Sequence[str | None],
    references: Sequence[Sequence[str] | None],
    *,
    rule: str | Rule[Any],
    region: AnswerSpan,
) -> tuple[list[str | None], MatchColumns]:
    """Score a part of each text by a rule. All scoring of answers uses this function.

    Args:
        texts: Answers without reasoning, shape `(n_rows,)`; None if missing.
        references: Accepted answers of each row, shape `(n_rows,)`.
        rule: As for `verdicts`.
        region: The part, as for `answer_span`.

    Returns:
        The parts, None for a missing text, and their labels.

    Raises:
        ValueError: As for `verdicts`.
    """
    _check_region(region)
    spans = [_prediction(text, region) for text in texts]
    return spans, match_columns(spans, references, rule=rule)


def answer_span(generation: str, *, region: AnswerSpan = "first_line") -> str:
    r"""Return the part of a generation that is scored.

    Args:
        generation: The model's output for the prompt.
        region: "first_line", the default, "first_text_line" or "whole".

    Returns:
        Its first line, or the first that is not blank, without surrounding white space; or all of
        it, unchanged.

    Raises:
        ValueError: If the region is unknown.

    References:
        `surface_consistency.text.first_line`, `surface_consistency.text.first_text_line`.

    Examples:
        >>> answer_span(" London\nQ: Who")
        'London'
    """
    _check_region(region)
    return _CUTS[region](generation)


_CUTS: Mapping[str, Callable[[str], str]] = {
    "first_line": first_line,
    "first_text_line": first_text_line,
    "whole": str,
}


def _check_region(region: str) -> None:
    """Raise an error for an unknown region."""
    if region not in _CUTS:
        raise ValueError(f"`region` must be one of {', '.join(_CUTS)}; got {region!r}")


def _verdicts(
    rows: Iterable[tuple[str, str | None, Sequence[str] | None]],
    rule: Rule[Any],
    region: AnswerSpan,
) -> Iterator[Verdict]:
    """Score rows chunk by chunk."""
    rows, first_row = iter(rows), 0
    while chunk := list(islice(rows, _ROWS_AT_ONCE)):
        predictions = [_prediction(generation, region) for _, generation, _ in chunk]
        accepted = [answers for _, _, answers in chunk]
        columns = match_columns(predictions, accepted, rule=rule, first_row=first_row)
        first_row += len(chunk)
        for (target_id, _, _), prediction, is_match, answer, reason in zip(
            chunk, predictions, columns.is_match, columns.reference, columns.reason, strict=True
        ):
            yield Verdict(
                target_id=target_id,
                judged_by=f"{rule.name} on {region}",
                prediction=prediction if isinstance(prediction, str) else None,
                correct=is_match,
                matched_answer=answer,
                reason=reason,
            )


def _prediction(generation: str | None, region: AnswerSpan) -> str | None:
    """Return the scored part of a generation, None if it is missing."""
    return answer_span(generation, region=region) if isinstance(generation, str) else generation


def rule_agreement(
    generations: Sequence[str | None],
    answers: Sequence[Sequence[str] | None],
    *,
    rules: Sequence[str | Rule[Any]] = COMPARED_RULES,
    region: AnswerSpan = "first_line",
) -> pd.DataFrame:
    r"""Count the labels that change with the matching rule or with the scored part.

    Args:
        generations: The model's output for each prompt, uncut, shape `(n_rows,)`; None if missing.
        answers: Accepted answers of each row, shape `(n_rows,)`.
        rules: Names of rules, or rules with other options. Default is popqa, exact, boundary,
            token_f1 and fuzzy.
        region: Part of the generation on which the rules are compared with each other. Default is
            "first_line".

    Returns:
        One row per pair of rules on that part, then one row per rule that compares that part (the
        first line if `region` is "whole") with the whole generation. The columns are `compared`
        ("rules" or "regions"), `first_rule`, `first_region`, `second_rule`, `second_region`, `n`
        (scored rows), `both` (accepted by both), `first_only`, `second_only`, `neither` and
        `n_differ` (`first_only + second_only`).

    Raises:
        TypeError: If a generation or an answer is not a string.
        ValueError: If a rule or the region is unknown, two rules share a name, the columns differ
            in length, or an accepted answer is blank.

    Notes:
        Rows without generation or accepted answers are excluded from `n`. With no rows all counts
        are 0.

    References:
        Spurious credit for answers after the first line:
        https://github.com/allenai/olmo-eval/pull/307.

    Examples:
        >>> frame = rule_agreement(["Rome\nQ: Paris"], [["Paris"]], rules=["popqa", "exact"])
        >>> frame[["first_rule", "second_region", "n_differ"]].values.tolist()
        [['popqa', 'first_line', 0], ['popqa', 'whole', 1], ['exact', 'whole', 0]]
    """
    chosen = [resolve_rule(rule) for rule in rules]
    names = [rule.name for rule in chosen]
    if len(set(names)) < len(names):
        raise ValueError(f"`rules` must have different names, got {names}")
    answer_span("", region=region)
    sides = [((first, region), (second, region)) for first, second in combinations(names, 2)]
    line: AnswerSpan = "first_line" if region == "whole" else region
    sides += [((name, line), (name, "whole")) for name in names]
    generated, given = list(generations), list(answers)
    if len(generated) != len(given):
        raise ValueError(
            "`generations` and `answers` must have one entry per row, "
            f"got {len(generated)} and {len(given)}"
        )
    counts = np.zeros((len(sides), 4), dtype=np.int64)
    for start in range(0, len(generated), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        labels = _labels(chosen, generated[rows], given[rows], line, start)
        for place, (first, second) in enumerate(sides):
            cell = labels[first] * 2 + labels[second]
            counts[place] += np.bincount(cell[cell >= 0], minlength=4)[:4]
    compared = []
    for (first, second), (neither, second_only, first_only, both) in zip(
        sides, counts.tolist(), strict=True
    ):
        compared.append(
            {
                "compared": "rules" if first[1] == second[1] else "regions",
                "first_rule": first[0],
                "first_region": first[1],
                "second_rule": second[0],
                "second_region": second[1],
                "n": both + first_only + second_only + neither,
                "both": both,
                "first_only": first_only,
                "second_only": second_only,
                "neither": neither,
                "n_differ": first_only + second_only,
            }
        )
    return pd.DataFrame(compared)


def _labels(
    rules: Sequence[Rule[Any]],
    generations: Sequence[str | None],
    answers: Sequence[Sequence[str] | None],
    line: AnswerSpan,
    first_row: int,
) -> dict[tuple[str, AnswerSpan], npt.NDArray[np.int64]]:
    """Score rows by each rule on both parts: 1, 0, or a negative number if unscored.

    Outputs of one line, which are the majority, are scored once, since both parts are equal.
    """
    sets = [tuple(item) if isinstance(item, list) else item for item in answers]
    lines = [_prediction(generation, line) for generation in generations]
    differing = [row for row, cut in enumerate(lines) if cut != generations[row]]
    made: dict[tuple[str, AnswerSpan], npt.NDArray[np.int64]] = {}
    for rule in rules:
        of_lines = _as_numbers(match_columns(lines, sets, rule=rule, first_row=first_row).is_match)
        of_whole = of_lines.copy()
        of_whole[differing] = _as_numbers(
            match_columns(
                [generations[row] for row in differing],
                [sets[row] for row in differing],
                rule=rule,
                first_row=first_row,
            ).is_match
        )
        made[rule.name, line], made[rule.name, "whole"] = of_lines, of_whole
    return made


def _as_numbers(verdicts: Sequence[bool | None]) -> npt.NDArray[np.int64]:
    """Convert labels to 1 and 0, and None to -4, so that a missing one makes the cell negative."""
    return np.array([-4 if made is None else made for made in verdicts], dtype=np.int64)
