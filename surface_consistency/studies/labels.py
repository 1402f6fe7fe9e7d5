"""Judges that settings choose, a model or people; the labels of people, and their sheet."""

import csv
import hashlib
import os
import re
import shutil
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import pandas as pd
from pydantic import Field, model_validator

from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    SourceNotFoundError,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.inference.registry import load_runner
from surface_consistency.metrics import JudgeAgreementResult, judge_agreement
from surface_consistency.prompts.paper_prompts import OWN_WORDS, pin_prompts
from surface_consistency.runs.files import unguard_cell, write_csv
from surface_consistency.runs.folder import RunFolder
from surface_consistency.settings_options import Settings, values_of_items
from surface_consistency.studies.judging import LLMJudge

__all__ = [
    "LABEL_COLUMNS",
    "HumanJudge",
    "JudgeScoring",
    "agreement_columns",
    "check_labelling",
    "check_labels",
    "export_labels",
    "hold_against",
    "labels_by_target",
    "make_chosen_judge",
    "read_labels",
    "with_intervals",
    "write_labelling_sheet",
]

_FOLDER: Final = "judges"
LABEL_COLUMNS: Final = ("prompt_id", "question_id", "is_correct")
"""What a file of labels must have; `is_recalled` may stand beside, for free answers."""

_LABELS: Final[Mapping[str, bool | None]] = {
    **dict.fromkeys(("1", "true", "yes", "right"), True),
    **dict.fromkeys(("0", "false", "no", "wrong"), False),
    "": None,
}


class JudgeScoring(Settings):
    """How answers are judged: by rule, by a model, or by people."""

    judge: str
    """Who judges."""

    judge_model: str | None = None
    """Model of --judge llm: a hub id, folder or server's id."""

    judge_label: str | None = None
    """Name of the judging model in tables; that of --judge-model by default."""

    judge_runner: str = "openai"
    """Runner of --judge llm; openai reads OPENAI_BASE_URL."""

    judge_option: Mapping[str, str] = Field(default_factory=dict)
    """Keyword argument of the judge's runner, its value JSON or text."""

    judge_max_new_tokens: int = Field(default=64, ge=1)
    """Longest reply of the judge, in tokens."""

    judge_max_thought_tokens: int | None = Field(default=None, ge=1)
    """Longest thought of the judge before its reply, in tokens, for models that think; without,
    both share --judge-max-new-tokens."""

    labels: Path | None = None
    """CSV file of labels: the verdicts of --judge human; any other judge is held against them."""

    labelling_sheet: Path | None = None
    """CSV file to write, of answers drawn at random, for people to label."""

    labelling_sample: int = Field(default=50, ge=1)
    """Answers of each kind (form of query, state of the store) in --labelling-sheet."""

    labelling_seed: int = 0
    """Seed of the draw of --labelling-sheet."""

    @model_validator(mode="before")
    @classmethod
    def _named_model_judges(cls, given: Any) -> Any:  # noqa: ANN401 - not yet checked
        """Let the model that is named judge, unless another judge is."""
        if isinstance(given, Mapping) and given.get("judge_model") is not None:
            return {"judge": "llm", **given}
        return given

    @model_validator(mode="after")
    def _is_whole(self) -> "JudgeScoring":
        """Refuse a judge that cannot judge, before anything is asked."""
        if self.judge == "human" and self.labels is None:
            raise ValueError("--judge human needs --labels, a CSV file of labels")
        needs_model = self.judge_runner in ("openai", "transformers")
        if self.judge == "llm" and self.judge_model is None and needs_model:
            raise ValueError("--judge llm needs --judge-model, the model that judges")
        return self


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
        self._file = Path(path).name
        self._labels = read_labels(path).set_index(["prompt_id", "question_id"])

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Judge answers; see `Judge.judge`.

        Args:
            targets: What to judge.

        Returns:
            prediction, is_correct, is_recalled and reason.
        """
        keys = pd.MultiIndex.from_arrays([targets["prompt_id"], targets["fact_id"]])
        given = self._labels.reindex(keys).reset_index(drop=True)
        is_labelled = given["is_correct"].notna()
        reason = pd.Series([f"no label in {self._file}"] * len(targets), dtype="str")
        return pd.DataFrame(
            {
                "prediction": pd.Series(targets["text"].to_numpy(), dtype="str"),
                "is_correct": given["is_correct"],
                "is_recalled": given["is_recalled"].where(is_labelled),
                "reason": reason.mask(is_labelled),
            }
        )


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
    runner = load_runner(
        scoring.judge_runner,
        model=scoring.judge_model,
        options=values_of_items(scoring.judge_option, "judge_option"),
    )
    label = scoring.judge_label or scoring.judge_model or runner.name
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
        max_thought_tokens=scoring.judge_max_thought_tokens,
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
    kind: str = "form",
    fill: Sequence[str] = ("is_recalled",),
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


def read_labels(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a file of labels.

    Args:
        path: CSV, UTF-8, with the columns of `LABEL_COLUMNS`; others but `is_recalled` are passed
            over.

    Returns:
        One row a labelled fact: prompt_id, question_id, and the nullable booleans is_correct,
        missing for an empty cell, and is_recalled, missing also without that column.

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
        rows = _read(source)
    except csv.Error as error:
        raise DataError(f"{source}: cannot be read as CSV ({error}); save it again") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{source}: not UTF-8 at byte {error.start}; save it as UTF-8") from error
    frame = pd.DataFrame(rows, columns=[*LABEL_COLUMNS, "is_recalled"], dtype=object)
    return frame.astype({"is_correct": "boolean", "is_recalled": "boolean"})


def check_labels(labels: pd.DataFrame, targets: pd.DataFrame) -> None:
    """Refuse labels of another run.

    Args:
        labels: As from `read_labels`.
        targets: What the run judges: prompt_id and fact_id.

    Raises:
        DataError: If a label is of none of these; empty ones do not count.
    """
    given = labels[labels["is_correct"].notna()]
    asked = pd.MultiIndex.from_frame(targets[["prompt_id", "fact_id"]])
    foreign = given[~pd.MultiIndex.from_frame(given[["prompt_id", "question_id"]]).isin(asked)]
    if len(foreign):
        raise DataError(
            f"{len(foreign)} of {len(given)} labels are of answers that this run does not hold, "
            f"such as question {foreign['question_id'].iloc[0]!r} of prompt "
            f"{foreign['prompt_id'].iloc[0]!r}; give the labels of this run"
        )


def write_labelling_sheet(
    path: str | os.PathLike[str],
    targets: pd.DataFrame,
    *,
    n: int = 50,
    seed: int = 0,
    kind: str = "form",
    fill: Sequence[str] = ("is_recalled",),
) -> int:
    """Write a sheet of answers for people to label; a sheet that is there is left alone.

    Answers are drawn at random, each kind by itself, since a judge errs differently on short and on
    long answers, or with and without retrieval. What a judge said of them is not shown, so that it
    does not sway anyone.

    Args:
        path: The CSV file; its folder must exist.
        targets: What is judged, with text; answers that were never given are left out.
        n: Answers of each kind, at most; 1 or more.
        seed: Seed of the draw.
        kind: Column of the targets that tells the kinds apart, such as "form" or "state".
        fill: Columns to fill besides is_correct, such as "is_recalled".

    Returns:
        How many answers stand in the sheet.

    Raises:
        ValueError: If `n` is below 1, or there is no answer.
        DataError: If a file of that name is there, which may hold labels.

    Notes:
        `is_correct` is to be filled with 1 or 0, and for free answers of SLAQ `is_recalled`:
        whether the text speaks of the fact at all. The other columns are for reading. A cell that a
        spreadsheet would take for a formula gets an apostrophe in front.
    """
    if n < 1:
        raise ValueError(f"n counts answers of each kind and must be 1 or more, got {n}")
    target = Path(path)
    if target.exists():
        raise DataError(f"{target} is there already and may hold labels; choose another name")
    random = Random(seed)
    answered = targets[targets["text"].notna()]
    if answered.empty:
        raise ValueError("there is no answer to label; ask the model first")
    rows: list[tuple[object, ...]] = []
    for label, facts in answered.groupby(kind, sort=False):
        drawn = random.sample(range(len(facts)), min(n, len(facts)))
        for row in facts.iloc[drawn].to_dict("records"):
            shown = (row["question"], " | ".join(row["answers"]), row["text"])
            blank = [""] * (1 + len(fill))
            rows.append((row["prompt_id"], row["fact_id"], *blank, label, *shown))
    columns = [*LABEL_COLUMNS, *fill, kind, "question", "reference", "answer"]
    write_csv(target, pd.DataFrame(rows, columns=columns, dtype=object))
    return len(rows)


def labels_by_target(targets: pd.DataFrame, path: str | os.PathLike[str]) -> pd.Series:
    """Give the labels of people in the order of what was judged.

    Args:
        targets: What was judged: prompt_id and fact_id.
        path: The file of labels.

    Returns:
        is_correct by row, missing where there is no label.

    Raises:
        DataError: If the labels cannot be read, are of another run, or label nothing.
    """
    labels = read_labels(path)
    if labels["is_correct"].isna().all():
        raise DataError("no answer is labelled; write 1 or 0 into the column is_correct")
    check_labels(labels, targets)
    known = labels.set_index(["prompt_id", "question_id"])["is_correct"]
    keys = pd.MultiIndex.from_arrays([targets["prompt_id"], targets["fact_id"]])
    return known.reindex(keys).reset_index(drop=True)


def hold_against(
    truth: pd.Series, judged: pd.Series, *, n_resamples: int = 10_000, seed: int = 0
) -> JudgeAgreementResult | None:
    """Compare two verdicts on the same answers.

    Args:
        truth: Verdicts that count as true, missing where there is none.
        judged: Verdicts of the judge, in the same order.
        n_resamples: Resamples of the intervals.
        seed: Seed of the resampling.

    Returns:
        The agreement where both are there; None where that is nowhere.
    """
    both = [column.astype("boolean").reset_index(drop=True) for column in (truth, judged)]
    if not (both[0].notna() & both[1].notna()).any():
        return None
    with warnings.catch_warnings():
        # What is missing or undefined stands in the table.
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return judge_agreement(
            *(column.astype(object).where(column.notna(), None).tolist() for column in both),
            missing="drop",
            n_resamples=n_resamples,
            rng=seed,
        )


def agreement_columns(found: JudgeAgreementResult) -> dict[str, object]:
    """Lay an agreement out as columns.

    Args:
        found: The agreement.

    Returns:
        n_labelled; n (with a verdict of the judge too); true_positives, false_negatives,
        false_positives, true_negatives; accuracy, kappa, sensitivity and specificity with bounds.
    """
    table = found.table
    row: dict[str, object] = {
        "n_labelled": table.n + found.n_missing,
        "n": table.n,
        "true_positives": table.both,
        "false_negatives": table.first_only,
        "false_positives": table.second_only,
        "true_negatives": table.neither,
    }
    names = ("accuracy", "kappa", "sensitivity", "specificity")
    return row | with_intervals(found, {name: name for name in names})


def with_intervals(found: Any, names: Mapping[str, str]) -> dict[str, object]:  # noqa: ANN401
    """Lay numbers of a result out as columns.

    Args:
        found: The result: each number beside its `<name>_interval`.
        names: Names of the numbers by column.

    Returns:
        The columns, each with `_low` and `_high`.
    """
    row: dict[str, object] = {}
    for column, name in names.items():
        interval = getattr(found, f"{name}_interval")
        row[column] = getattr(found, name)
        row |= {f"{column}_low": interval.low, f"{column}_high": interval.high}
    return row


def _read(path: Path) -> list[tuple[str, str, bool | None, bool | None]]:
    """Read the labels row by row."""
    seen: dict[tuple[str, str], int] = {}
    labels = []
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
            prompt_id, question_id = (unguard_cell(row[name]) for name in LABEL_COLUMNS[:2])
            key = (str(prompt_id or ""), str(question_id or ""))
            if key in seen:
                raise DataError(
                    f"{where}: question {key[1]!r} of prompt {key[0]!r} was labelled in line "
                    f"{seen[key]} already; keep one of the two"
                )
            seen[key] = rows.line_num
            is_correct = _label(row["is_correct"], where)
            is_recalled = _label(row.get("is_recalled"), where)
            if is_correct and is_recalled is False:
                raise DataError(f"{where}: a fact that is not recalled cannot be right")
            labels.append((*key, is_correct, is_recalled))
    return labels


def _label(cell: str | None, where: str) -> bool | None:
    """Read one label."""
    key = (cell or "").strip().lower()
    if key not in _LABELS:
        raise DataError(f"{where}: {cell!r} is no label; write 1 or 0, or leave the cell empty")
    return _LABELS[key]


def _file_name(label: str) -> str:
    """Name a folder after a judge: its letters and digits, and a digest that tells alike apart."""
    words = "-".join(re.findall(r"[A-Za-z0-9]+", label))[-60:] or "judge"
    return f"{words}-{hashlib.sha256(label.encode()).hexdigest()[:8]}"
