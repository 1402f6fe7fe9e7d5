"""Labels that people gave, as a judge."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from surface_consistency.schemas.slaq import Judgement
from surface_consistency.studies.slaq.judge import JudgeTask
from surface_consistency.studies.slaq.labels import Label, read_labels

__all__ = ["HumanJudge"]


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
        self._labels = read_labels(self._path)

    def judge(self, tasks: Sequence[JudgeTask]) -> Iterator[Judgement]:
        """Judge answers; see `Judge.judge`.

        Args:
            tasks: What to judge.

        Yields:
            One judgement a fact, in order.
        """
        empty = Label(is_correct=None, is_recalled=None)
        for task in tasks:
            for question in task.questions:
                label = self._labels.get((task.prompt_id, question.id), empty)
                is_labelled = label.is_correct is not None
                yield Judgement(
                    prompt_id=task.prompt_id,
                    question_id=question.id,
                    judge=self.name,
                    is_correct=label.is_correct,
                    is_recalled=label.is_recalled if is_labelled else None,
                    reason=None if is_labelled else f"no label in {self._path.name}",
                    attempts=0,
                )
