"""Labels that people gave, read from CSV."""

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from surface_consistency.errors import ColumnNotFoundError, DataError, SourceNotFoundError
from surface_consistency.schemas.slaq import Judgement
from surface_consistency.studies.slaq.judge import JudgeTask

__all__ = ["HumanJudge"]

_COLUMNS: Final = ("prompt_id", "question_id", "is_correct")
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


class HumanJudge:
    """Takes labels from a CSV file with the columns prompt_id, question_id and is_correct.

    A label is 1 or 0, true or false, yes or no, right or wrong, in any case; an empty cell is a
    fact that was not labelled. A further column is_recalled, of the same form, is for free answers.
    Facts that the file does not hold are unjudged.

    Args:
        path: The file, UTF-8.

    Raises:
        SourceNotFoundError: If there is no such file.
        ColumnNotFoundError: If a column is missing.
        DataError: If a label is none of these, or a fact is labelled twice; names the line.
    """

    name = "human"
    """Short name."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._labels = dict(_read_labels(self._path))

    def judge(self, tasks: Sequence[JudgeTask]) -> Iterator[Judgement]:
        """Judge answers; see `Judge.judge`.

        Args:
            tasks: What to judge.

        Yields:
            One judgement a fact, in order.
        """
        for task in tasks:
            for question in task.questions:
                is_correct, is_recalled = self._labels.get(
                    (task.prompt_id, question.id), (None, None)
                )
                yield Judgement(
                    prompt_id=task.prompt_id,
                    question_id=question.id,
                    judge=self.name,
                    is_correct=is_correct,
                    is_recalled=None if is_correct is None else is_recalled,
                    reason=f"no label in {self._path.name}" if is_correct is None else None,
                    attempts=0,
                )


def _read_labels(
    path: Path,
) -> Iterator[tuple[tuple[str, str], tuple[bool | None, bool | None]]]:
    """Read the labels by prompt and question."""
    if not path.is_file():
        raise SourceNotFoundError(f"no file {path}; give a CSV file of labels")
    seen: dict[tuple[str, str], int] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            rows = csv.DictReader(lines)
            found = rows.fieldnames or []
            missing = [name for name in _COLUMNS if name not in found]
            if missing:
                raise ColumnNotFoundError(
                    f"{path}: no column {', '.join(missing)}; a file of labels has "
                    f"{', '.join(_COLUMNS)}, and this one has {', '.join(found) or 'none'}"
                )
            for row in rows:
                where = f"{path}:{rows.line_num}"
                key = (row["prompt_id"], row["question_id"])
                if key in seen:
                    raise DataError(
                        f"{where}: question {key[1]!r} of prompt {key[0]!r} was labelled in line "
                        f"{seen[key]} already; keep one of the two"
                    )
                seen[key] = rows.line_num
                yield key, (_label(row["is_correct"], where), _label(row.get("is_recalled"), where))
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from error


def _label(cell: str | None, where: str) -> bool | None:
    """Read one label."""
    key = (cell or "").strip().lower()
    if key not in _LABELS:
        raise DataError(f"{where}: {cell!r} is no label; write 1 or 0, or leave the cell empty")
    return _LABELS[key]
