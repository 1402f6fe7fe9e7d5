"""Judges that settings choose: a model, or people by their labels."""

import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from surface_consistency.engine.judging.judges import NO_ANSWER, Judge, LLMJudge
from surface_consistency.engine.judging.labels import (
    check_labelled_answers,
    check_labels,
    read_labels,
    write_labelling_sheet,
)
from surface_consistency.engine.judging.paper_prompts import OWN_WORDS, pin_prompts
from surface_consistency.engine.settings import JudgeScoring, SideModel
from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.frames import TEXT
from surface_consistency.schemas import Verdict

_FOLDER: Final = "judges"


class HumanJudge:
    """Takes labels from a CSV file with the columns prompt_id, question_id and is_correct.

    Where a column answer tells what was labelled, labels of another answer are refused.
    A label is 1 or 0, true or false, yes or no, right or wrong, in any case; an empty cell is a
    fact that was not labelled. A further column is_recalled, of the same form, is for free answers.
    Facts that the file does not hold are unjudged, and so are answers that were never given.

    Args:
        path: The file, UTF-8.

    Raises:
        SourceNotFoundError: If there is no such file.
        ColumnNotFoundError: If a column is missing.
        DataError: If a label is none of these, or a fact is labelled twice; names the line.
    """

    name = "human"
    """Short name."""

    judges_again = False
    """Labels are of the first answers; the repeated sample has none."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = Path(path).name
        self._labels = read_labels(path)

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Judge answers; see `Judge.judge`.

        Args:
            targets: What to judge.

        Returns:
            prediction, is_correct, is_recalled and reason.

        Raises:
            DataError: If the labels are of other answers.
        """
        check_labelled_answers(self._labels, targets)
        keys = pd.MultiIndex.from_arrays([targets["prompt_id"], targets["fact_id"]])
        known = self._labels.set_index(["prompt_id", "question_id"])
        given = known.reindex(keys).reset_index(drop=True)
        is_answered = pd.Series(targets["text"].notna().to_numpy())
        is_labelled = is_answered & given["is_correct"].notna()
        reason = pd.Series(NO_ANSWER, index=given.index, dtype=TEXT)
        reason = reason.mask(is_answered, f"no label in {self._file}")
        return pd.DataFrame(
            {
                "prediction": pd.Series(targets["text"].to_numpy(), dtype=TEXT),
                "is_correct": given["is_correct"].where(is_labelled),
                "is_recalled": given["is_recalled"].where(is_labelled),
                "reason": reason.mask(is_labelled),
            }
        )


class OverrulingJudge:
    """A model or people who judge in place of a study's own rule.

    They are shown what the rule read of each answer, its `prediction`. What the rule tells besides
    right and wrong stays, and its own verdict stands beside theirs as `rule_correct`.

    Args:
        rule: The study's own judge.
        by: Who judges in its place.
        record: The study's verdict record.
    """

    name: str
    """That of who judges."""

    def __init__(self, rule: Judge, by: Judge, record: type[Verdict]) -> None:
        self._rule, self._by, self._record = rule, by, record
        self.name = by.name
        self.judges_again: bool = getattr(by, "judges_again", True)
        """Whether it can judge the repeated sample."""

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Judge answers; see `Judge.judge`.

        Returns:
            What they tell, as far as the record has it; what the record has beyond `Verdict` and
            they do not tell, by the rule; and rule_correct. An answer without a text to show, on
            which the rule decides all the same, is judged by the rule.

        Raises:
            ColumnNotFoundError: If the targets have no question, without which nobody can judge.
        """
        if "question" not in targets:
            raise ColumnNotFoundError(
                "a model or people judge by the column question, which the targets of this study "
                f"do not have ({', '.join(map(str, targets.columns))}); judge by `judge=rule`, or "
                "put the question into `Plan.items`"
            )
        ruled = self._rule.judge(targets).reset_index(drop=True)
        shown = shown_answers(targets.reset_index(drop=True), ruled["prediction"])
        theirs = self._by.judge(shown).reset_index(drop=True)
        theirs = theirs[[name for name in theirs if name in self._record.model_fields]]
        # Where the rule needs no text, as of one option that is not the likeliest, its word stands.
        is_textless = ruled["prediction"].isna() & ruled["is_correct"].notna()
        theirs["is_correct"] = theirs["is_correct"].mask(is_textless, ruled["is_correct"])
        theirs["reason"] = theirs["reason"].mask(is_textless)
        beyond = [name for name in ruled if name not in Verdict.model_fields and name not in theirs]
        return pd.concat([theirs, ruled[beyond]], axis=1).assign(rule_correct=ruled["is_correct"])


def shown_answers(targets: pd.DataFrame, predictions: pd.Series) -> pd.DataFrame:
    """Put what a rule reads of each answer in the place of the whole answer.

    Args:
        targets: What is judged.
        predictions: Judged parts, row by row; missing where there is no answer.

    Returns:
        The targets, their text being what people and models are shown; None without an answer.
    """
    parts = predictions.astype(object)
    return targets.assign(text=parts.where(parts.notna(), None).to_numpy(object))


def make_chosen_judge(
    scoring: JudgeScoring,
    folder: RunFolder,
    kind: type[LLMJudge] = LLMJudge,
    *,
    prompts: str = OWN_WORDS,
) -> LLMJudge | HumanJudge | None:
    """Make the model or the people that shall judge.

    Args:
        scoring: How answers are judged.
        folder: The run; a model that judges keeps its log there, in a folder of its own.
        kind: The study's judge of the kind.
        prompts: The words that the model is asked in; only a kind that takes `prompts` has others
            than this package's own.

    Returns:
        The judge; None where a rule judges.

    Raises:
        ValueError: If the prompts are of another version.
        RunnerError: If the judging model cannot be loaded.
        SourceNotFoundError: If there is no file of labels.
        DataError: If the labels cannot be read.
    """
    if scoring.judge == "human":
        return HumanJudge(scoring.labels or folder.labels)
    if scoring.judge != "llm":
        return None
    side = SideModel.of(scoring, "judge")
    runner = side.load()
    label = side.name(runner)
    words: dict[str, Any] = {}
    home = label
    if (pinned := pin_prompts(prompts, "judge")) != OWN_WORDS:
        words, home = {"prompts": pinned}, f"{label} {pinned}"
    return kind(
        runner,
        folder.path / _FOLDER / _file_name(home),
        model=label,
        **words,
        max_new_tokens=scoring.judge_max_new_tokens,
        max_reasoning_tokens=scoring.judge_max_reasoning_tokens,
    )


def check_labelling(scoring: JudgeScoring, folder: RunFolder) -> None:
    """Refuse labels of another run, and a sheet that would be written over labels.

    Args:
        scoring: How answers are judged.
        folder: The run.

    Raises:
        SourceNotFoundError: If there is no file of labels.
        DataError: If the labels are not of this run, or the labelling sheet is there already.
    """
    labels = scoring.labels or (folder.labels if folder.labels.is_file() else None)
    if labels is not None and folder.targets.is_file():
        check_labels(read_labels(labels), folder.read_plan()[0])
    if scoring.labelling_sheet is not None and scoring.labelling_sheet.exists():
        raise DataError(
            f"{scoring.labelling_sheet} is there already and may hold labels; choose another name"
        )


def export_labels(
    scoring: JudgeScoring,
    folder: RunFolder,
    targets: pd.DataFrame,
    *,
    kind: str,
    fill: Sequence[str] = (),
) -> None:
    """Keep the labels with the run, and write the sheet that was asked for.

    Args:
        scoring: How answers are judged.
        folder: The run.
        targets: What was judged, with text.
        kind: As for `write_labelling_sheet`.
        fill: As for `write_labelling_sheet`.
    """
    if scoring.labels is not None and scoring.labels.resolve() != folder.labels.resolve():
        shutil.copyfile(scoring.labels, folder.labels)
    if scoring.labelling_sheet is not None:
        write_labelling_sheet(
            scoring.labelling_sheet,
            targets,
            n=scoring.labelling_sample,
            seed=scoring.labelling_seed,
            kind=kind,
            fill=fill,
        )


def _file_name(label: str) -> str:
    """Name a folder after a judge: its letters and digits, and a digest that tells alike apart."""
    words = "-".join(re.findall(r"[A-Za-z0-9]+", label))[-60:] or "judge"
    return f"{words}-{hashlib.sha256(label.encode()).hexdigest()[:8]}"
