"""Judges that settings choose: a model, or people by their labels."""

import hashlib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Self

import pandas as pd
from pydantic import BaseModel, Field, model_validator

from surface_consistency.engine.judging.judges import NO_ANSWER, Judge, LLMJudge
from surface_consistency.engine.judging.labels import (
    check_labelled_answers,
    check_labels,
    read_labels,
    write_labelling_sheet,
)
from surface_consistency.engine.judging.paper_prompts import OWN_WORDS, pin_prompts
from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.models.registry import RunnerName, load_runner
from surface_consistency.models.runner import Runner
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.frames import TEXT
from surface_consistency.schemas import Verdict
from surface_consistency.schemas.settings import Settings, values_of_items

_FOLDER: Final = "judges"
_NEED_A_MODEL: Final = ("openai", "transformers")


@dataclass(frozen=True, slots=True, kw_only=True)
class SideModel:
    """Who is asked, as settings name it: `<prefix>_model`, `<prefix>_runner`, `<prefix>_option`."""

    prefix: str
    """What the names of its settings begin with, such as "judge"."""

    model: str | None
    """Hub id, folder or server's id; None for runners without a model."""

    runner: str = "openai"
    """Name of its runner."""

    option: Mapping[str, str] = field(default_factory=dict)
    """Keyword arguments of the runner, their values JSON or text."""

    label: str | None = None
    """Name of the model in tables; None for that of the model, or of the runner."""

    @classmethod
    def of(cls, settings: BaseModel, prefix: str) -> "SideModel":
        """Read off settings who is asked.

        Args:
            settings: The settings, with fields that begin with the prefix.
            prefix: The beginning, such as "judge".

        Returns:
            The model.
        """
        names = ("model", "runner", "option", "label")
        known = {
            name: f"{prefix}_{name}" for name in names if hasattr(settings, f"{prefix}_{name}")
        }
        return cls(prefix=prefix, **{name: getattr(settings, long) for name, long in known.items()})

    @property
    def lacks_model(self) -> bool:
        """Whether the runner needs a model and none is named."""
        return self.model is None and self.runner in _NEED_A_MODEL

    def load(self) -> Runner:
        """Load the runner.

        Returns:
            The runner.

        Raises:
            RunnerError: If it cannot be loaded.
            RecordError: If an option is JSON beyond bounds.
        """
        options = values_of_items(self.option, f"{self.prefix}_option")
        return load_runner(self.runner, model=self.model, options=options)

    def name(self, runner: Runner) -> str:
        """Name the model in tables and logs.

        Args:
            runner: What `load` returned.

        Returns:
            The label, else the model, else the runner's name.
        """
        return self.label or self.model or runner.name


class JudgeScoring(Settings):
    """How answers are judged: by rule, by a model, or by people."""

    judge: Literal["rule", "llm", "human"] = "rule"
    """Who judges: the study's own rule, a model, or labels of people; llm where --judge-model is
    given. Another judge than the rule is held against it."""

    judge_model: str | None = None
    """Model of --judge llm: a hub id, folder or server's id."""

    judge_label: str | None = None
    """Name of the judging model in tables; that of --judge-model by default."""

    judge_runner: RunnerName = "openai"
    """Runner of --judge llm; openai reads OPENAI_BASE_URL."""

    judge_option: Mapping[str, str] = Field(default_factory=dict)
    """Keyword argument of the judge's runner, its value JSON or text."""

    judge_max_new_tokens: int = Field(default=64, ge=1)
    """Longest reply of the judge, in tokens."""

    judge_max_reasoning_tokens: int | None = Field(default=None, ge=1)
    """Longest reasoning of the judge before its reply, in tokens, for models that think; without,
    both share --judge-max-new-tokens."""

    labels: Path | None = None
    """CSV file of labels: the verdicts of --judge human; any other judge is held against them, and
    its errors are taken out of the scores."""

    labelling_sheet: Path | None = None
    """CSV file to write, of answers drawn at random, for people to label."""

    labelling_sample: int = Field(default=50, ge=1)
    """Answers of each kind (condition, form of query, state of the store) in --labelling-sheet."""

    labelling_seed: int = 0
    """Seed of the draw of --labelling-sheet."""

    def resolved(self, settings: Mapping[str, Any], *, is_new_run: bool = False) -> Self:
        """Complete how answers are judged by how they are asked.

        Args:
            settings: The study's settings, as the manifest holds them.
            is_new_run: Whether the run is about to be asked, rather than judged anew.

        Returns:
            The scoring; this one by default.

        Raises:
            ValueError: If a new run would be judged otherwise than its settings say.
        """
        return self

    @model_validator(mode="before")
    @classmethod
    def _named_model_judges(cls, given: object) -> object:
        """Let the model that is named judge, unless another judge is."""
        if isinstance(given, Mapping) and given.get("judge_model") is not None:
            return {"judge": "llm", **given}
        return given

    @model_validator(mode="after")
    def _is_whole(self) -> "JudgeScoring":
        """Refuse a judge that cannot judge, before anything is asked."""
        if self.judge == "human" and self.labels is None:
            raise ValueError("--judge human needs --labels, a CSV file of labels")
        if self.judge == "llm" and SideModel.of(self, "judge").lacks_model:
            raise ValueError("--judge llm needs --judge-model, the model that judges")
        return self


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
                f"do not have ({', '.join(map(str, targets.columns))}); judge by --judge rule, or "
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
