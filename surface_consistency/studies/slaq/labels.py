"""Labels that people give: a sheet to fill in, and what stands in it afterwards."""

import csv
import io
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from surface_consistency.errors import ColumnNotFoundError, DataError, SourceNotFoundError
from surface_consistency.runs.files import write_text
from surface_consistency.studies.slaq.judge import JudgeTask

__all__ = ["LABEL_COLUMNS", "Label", "check_labels", "read_labels", "write_labelling_sheet"]

LABEL_COLUMNS: Final = ("prompt_id", "question_id", "is_correct")
"""What a file of labels must have; `is_recalled` may stand beside, for free answers."""

_SHEET: Final = (*LABEL_COLUMNS, "is_recalled", "form", "question", "reference", "answer")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_LABELS: Final[Mapping[str, bool | None]] = {
    "1": True,
    "true": True,
    "yes": True,
    "right": True,
    "0": False,
    "false": False,
    "no": False,
    "wrong": False,
    "": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What a person said of one fact in one answer."""

    is_correct: bool | None
    """Whether the answer states the fact; None for an empty cell."""

    is_recalled: bool | None
    """Whether it speaks of the fact at all; None for an empty cell, or without that column."""


def read_labels(path: str | os.PathLike[str]) -> dict[tuple[str, str], Label]:
    """Read a file of labels.

    Args:
        path: CSV, UTF-8, with the columns of `LABEL_COLUMNS`; others but `is_recalled` are passed
            over.

    Returns:
        The labels by prompt id and question id.

    Raises:
        SourceNotFoundError: If there is no such file.
        ColumnNotFoundError: If a column is missing.
        DataError: If a label is none of 1 and 0, true and false, yes and no, right and wrong, a
            fact is labelled twice, or a fact is right and not recalled; names the line.
    """
    source = Path(path)
    if not source.is_file():
        raise SourceNotFoundError(f"no file {source}; give a CSV file of labels")
    try:
        return dict(_read(source))
    except csv.Error as error:
        raise DataError(f"{source}: cannot be read as CSV ({error}); save it again") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{source}: not UTF-8 at byte {error.start}; save it as UTF-8") from error


def check_labels(
    labels: Mapping[tuple[str, str], Label], answered: Container[tuple[str, str]]
) -> None:
    """Refuse labels of another run.

    Args:
        labels: As from `read_labels`.
        answered: Prompt id and question id of each fact that the run holds an answer to.

    Raises:
        DataError: If a label is of none of these; empty ones do not count.
    """
    given = [key for key, label in labels.items() if label.is_correct is not None]
    foreign = [key for key in given if key not in answered]
    if foreign:
        raise DataError(
            f"{len(foreign)} of {len(given)} labels are of answers that this run does not hold, "
            f"such as question {foreign[0][1]!r} of prompt {foreign[0][0]!r}; give the labels of "
            "this run"
        )


def write_labelling_sheet(
    path: str | os.PathLike[str], tasks: Sequence[JudgeTask], *, n: int = 50, seed: int = 0
) -> int:
    """Write a sheet of answers for people to label; a sheet that is there is left alone.

    Facts are drawn at random, each form by itself, since a judge errs differently on short and on
    long answers. What a judge said of them is not shown, so that it does not sway anyone.

    Args:
        path: The CSV file; its folder must exist.
        tasks: The answers, as from `slaq_tasks`; those that were never given are left out.
        n: Facts of each form, at most; 1 or more.
        seed: Seed of the draw.

    Returns:
        How many facts stand in the sheet.

    Raises:
        ValueError: If `n` is below 1, or there is no answer.
        DataError: If a file of that name is there, which may hold labels.

    Notes:
        `is_correct` is to be filled with 1 or 0, and for free answers `is_recalled`: whether the
        text speaks of the fact at all. The other columns are for reading. A cell that a spreadsheet
        would take for a formula gets an apostrophe in front.
    """
    if n < 1:
        raise ValueError(f"n counts facts of each form and must be 1 or more, got {n}")
    target = Path(path)
    if target.exists():
        raise DataError(f"{target} is there already and may hold labels; choose another name")
    random = Random(seed)
    rows: list[tuple[str, ...]] = []
    for form in dict.fromkeys(task.form for task in tasks):
        facts = [
            (task, question)
            for task in tasks
            if task.form == form and task.answer is not None
            for question in task.questions
        ]
        for task, question in random.sample(facts, min(n, len(facts))):
            shown = (question.question, question.answer, task.answer or "")
            rows.append((task.prompt_id, question.id, "", "", form, *map(_harmless, shown)))
    if not rows:
        raise ValueError("there is no answer to label; ask the model first")
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\n")
    writer.writerow(_SHEET)
    writer.writerows(rows)
    write_text(target, sheet.getvalue())
    return len(rows)


def _harmless(text: str) -> str:
    """Keep a spreadsheet from taking a text for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _read(path: Path) -> Iterator[tuple[tuple[str, str], Label]]:
    """Read the labels by prompt and question."""
    seen: dict[tuple[str, str], int] = {}
    with path.open(encoding="utf-8-sig", newline="") as lines:
        rows = csv.DictReader(lines)
        found = rows.fieldnames or []
        missing = [name for name in LABEL_COLUMNS if name not in found]
        if missing:
            raise ColumnNotFoundError(
                f"{path}: no column {', '.join(missing)}; a file of labels has "
                f"{', '.join(LABEL_COLUMNS)}, and this one has {', '.join(found) or 'none'}"
            )
        for row in rows:
            if not any(row[name] for name in LABEL_COLUMNS):
                continue
            where = f"{path}:{rows.line_num}"
            key = (row["prompt_id"] or "", row["question_id"] or "")
            if key in seen:
                raise DataError(
                    f"{where}: question {key[1]!r} of prompt {key[0]!r} was labelled in line "
                    f"{seen[key]} already; keep one of the two"
                )
            seen[key] = rows.line_num
            label = Label(
                is_correct=_label(row["is_correct"], where),
                is_recalled=_label(row.get("is_recalled"), where),
            )
            if label.is_correct and label.is_recalled is False:
                raise DataError(f"{where}: a fact that is not recalled cannot be right")
            yield key, label


def _label(cell: str | None, where: str) -> bool | None:
    """Read one label."""
    key = (cell or "").strip().lower()
    if key not in _LABELS:
        raise DataError(f"{where}: {cell!r} is no label; write 1 or 0, or leave the cell empty")
    return _LABELS[key]
