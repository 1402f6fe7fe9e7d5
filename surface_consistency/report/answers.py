"""Rows of the answers browser: question, both answers, and the reason of each label."""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final

from surface_consistency.report.page import Answer, Answers

_A_MODEL: Final = 500
_A_PAGE: Final = 4_000
_BYTES: Final = 5_000_000
_ROW_BYTES: Final = 1_100
_VERDICTS: Final = {
    "both": (True, True),
    "first_only": (True, False),
    "second_only": (False, True),
    "neither": (False, False),
    "missing": (None, None),
}


def shown_answers(block: Answers, n_models: int) -> list[Answer]:
    """Choose the answers that are shown on a page, so that its file remains small.

    Args:
        block: All answers.
        n_models: Number of models of the page.

    Returns:
        At most 500 answers per model, and fewer on pages of many models or of long answers. The
        same fraction of answers is shown from each cell of a model, so that the proportions of
        cells are preserved.
    """
    groups: dict[tuple[int, str], list[Answer]] = defaultdict(list)
    sizes: dict[int, int] = defaultdict(int)
    n_bytes: dict[int, int] = defaultdict(int)
    for answer in block.answers:
        groups[answer.model, answer.cell].append(answer)
        sizes[answer.model] += 1
        n_bytes[answer.model] += _size(answer)
    limit = min(_A_MODEL, _A_PAGE // max(1, n_models))
    chosen: set[int] = set()
    for (model, _), members in groups.items():
        most = min(limit, _BYTES / n_models / (n_bytes[model] / sizes[model]))
        factor = min(1.0, most / sizes[model])
        chosen.update(map(id, members[: math.ceil(len(members) * factor)]))
    return [answer for answer in block.answers if id(answer) in chosen]


def _size(answer: Answer) -> int:
    """Estimate the bytes of a row."""
    texts = (*answer.answers, answer.question)
    return _ROW_BYTES + sum(len(text.encode("utf-8", "replace")) for text in texts if text)


def answers_view(block: Answers, *, n_models: int, unique: Callable[[str], str]) -> dict[str, Any]:
    """Make the view of the answers browser.

    Args:
        block: The answers.
        n_models: Number of models of the page.
        unique: Function that makes an id that is not yet on the page.

    Returns:
        The values of the template.
    """
    answers = shown_answers(block, n_models)
    numbers: dict[tuple[str, str], int] = {}
    filters = []
    for name in block.filters:
        values = sorted({label for answer in answers for label in answer.labels.get(name, ())})
        for value in values:
            numbers[name, value] = len(numbers)
        if len(values) > 1:
            title = name.replace("_", " ")
            filters.append((name, title, [(numbers[name, value], value) for value in values]))
    names = dict(zip(_VERDICTS, (*block.cells, "not scored"), strict=True))
    present = {answer.cell for answer in answers}
    n_all = sum(block.n_pairs.values())
    shown = f"{len(answers):,} of {n_all:,} pairs" + (
        ", drawn within cells" if len(answers) < n_all else ""
    )
    return {
        "id": unique("browser"),
        "rows": [_row(answer, block, names, numbers, unique) for answer in answers],
        "cells": [(cell, name) for cell, name in names.items() if cell in present],
        "filters": filters,
        "n_all": n_all,
        "shown": shown,
    }


def _row(
    answer: Answer,
    block: Answers,
    names: dict[str, str],
    numbers: dict[tuple[str, str], int],
    unique: Callable[[str], str],
) -> dict[str, Any]:
    """Make the view of one pair."""
    label_ids = [
        numbers[name, label] for name in block.filters for label in answer.labels.get(name, ())
    ]
    return {
        "answer": answer,
        "id": unique(f"a{answer.model}-{answer.pair}"),
        "cell_name": names[answer.cell],
        "labels": " ".join(map(str, label_ids)),
        "shown": [", ".join(answer.labels[n]) for n in block.filters if answer.labels.get(n)],
        "question": _split(answer.question, answer.surfaces[0]),
        "sides": [_side(answer, block, place) for place in (0, 1)],
        "more": max(0, len(answer.accepted) - 3),
    }


def _side(answer: Answer, block: Answers, place: int) -> dict[str, Any]:
    """Make the view of one of the two answers."""
    is_right = _VERDICTS[answer.cell][place]
    n, why = len(answer.accepted), ""
    if is_right is False and n:
        why = "not the accepted answer" if n == 1 else f"none of {n} accepted"
    return {
        "condition": block.conditions[place],
        "surface": answer.surfaces[place],
        "is_right": is_right,
        "text": answer.answers[place],
        "why": why,
    }


def _split(text: str, part: str) -> list[tuple[str, bool]]:
    """Split a text at the first occurrence of a part, which is marked."""
    begin, end = (find_text(text, part) if part else None) or (0, 0)
    pieces = [(text[:begin], False), (text[begin:end], True), (text[end:], False)]
    return [piece for piece in pieces if piece[0]]


def find_text(text: str, part: str) -> tuple[int, int] | None:
    """Find a part of a text, ignoring case and the blanks and punctuation between words.

    Args:
        text: The text.
        part: The part, such as the name in a question.

    Returns:
        Start and end of its first occurrence as complete words, otherwise of its first occurrence
        within words; None if it does not occur.

    Examples:
        >>> find_text("It is the UNITED-KINGDOM.", "United Kingdom")
        (10, 24)
    """
    words: Sequence[str] = re.findall(r"\w+", part)
    if not words:
        return None
    pattern = r"[\W_]*".join(map(re.escape, words))
    for wanted in (rf"(?<!\w){pattern}(?!\w)", pattern):
        if match := re.search(wanted, text, flags=re.IGNORECASE):
            return match.span()
    return None
