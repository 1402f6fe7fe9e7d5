"""Labels that people give: a sheet to fill in, and what the labels say of a judge."""

import csv
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np
import pandas as pd

from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    SourceNotFoundError,
    SurfaceConsistencyWarning,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.metrics import (
    JudgeAgreementResult,
    JudgeError,
    corrected_alignment,
    judge_agreement,
    topic_alignment,
    topic_arrays,
)
from surface_consistency.runs.files import unguard_cell, write_csv

__all__ = [
    "LABEL_COLUMNS",
    "check_labels",
    "judge_checks",
    "read_labels",
    "write_labelling_sheet",
]

LABEL_COLUMNS: Final = ("prompt_id", "question_id", "is_correct")
"""What a file of labels must have; `is_recalled` may stand beside, for free answers."""

_SHEET: Final = (*LABEL_COLUMNS, "is_recalled", "form", "question", "reference", "answer")
_LABELS: Final[Mapping[str, bool | None]] = {
    **dict.fromkeys(("1", "true", "yes", "right"), True),
    **dict.fromkeys(("0", "false", "no", "wrong"), False),
    "": None,
}
_SCORES: Final = {
    "first_accuracy": "short_accuracy",
    "second_accuracy": "long_accuracy",
    "accuracy_difference": "accuracy_difference",
    "consistency": "alignment",
    "signed_alignment": "signed_alignment",
}


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
    path: str | os.PathLike[str], targets: pd.DataFrame, *, n: int = 50, seed: int = 0
) -> int:
    """Write a sheet of answers for people to label; a sheet that is there is left alone.

    Facts are drawn at random, each form by itself, since a judge errs differently on short and on
    long answers. What a judge said of them is not shown, so that it does not sway anyone.

    Args:
        path: The CSV file; its folder must exist.
        targets: What is judged, with text; answers that were never given are left out.
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
    answered = targets[targets["text"].notna()]
    if answered.empty:
        raise ValueError("there is no answer to label; ask the model first")
    rows: list[tuple[Any, ...]] = []
    for form, facts in answered.groupby("form", sort=False):
        drawn = random.sample(range(len(facts)), min(n, len(facts)))
        for row in facts.iloc[drawn].to_dict("records"):
            shown = (row["question"], row["answers"][0], row["text"])
            rows.append((row["prompt_id"], row["fact_id"], "", "", form, *shown))
    write_csv(target, pd.DataFrame(rows, columns=list(_SHEET), dtype=object))
    return len(rows)


def judge_checks(
    targets: pd.DataFrame,
    verdicts: pd.DataFrame,
    outcomes: pd.DataFrame,
    labels: pd.DataFrame,
    *,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> dict[str, pd.DataFrame]:
    """Hold a run's verdicts against human labels, and take the judge's errors out of its scores.

    Args:
        targets: What was judged.
        verdicts: What the judge said, row by row that of `targets`.
        outcomes: The outcomes frame.
        labels: Labels of some of its answers, as from `read_labels`.
        n_resamples: Resamples of the intervals.
        seed: Seed of the resampling.

    Returns:
        "judge_agreement", one row a form and kind of verdict ("is_correct", and in free form
        "is_recalled"): judge, form, verdict; n_labelled; n (with a verdict of the judge too);
        true_positives, false_negatives, false_positives, true_negatives, the human's word being the
        truth; accuracy, kappa, sensitivity and specificity with intervals. "corrected", one row a
        condition, "long" or "free": F_S, F_L, their difference, alignment and signed alignment
        without the judge's errors, with intervals; `observed_<score>`, as the judge has it; is_cut,
        n_topics, n_missing. Either may be empty.

    Raises:
        DataError: If a label is of an answer that the run does not hold, or nothing is labelled.

    Warns:
        SurfaceConsistencyWarning: If a condition cannot be corrected, because no right or no wrong
            answer of a form is labelled, or the judge is no better than chance.

    Notes:
        Labels should be a random sample, as `write_labelling_sheet` draws one. Facts of one topic
        are not quite independent; the intervals of agreement take them for it. What the judge left
        unjudged is counted and left out.

    References:
        SLAQ, arXiv 2510.11218, appendix A.2, which reports the accuracy of its judge on labelled
        answers but leaves the scores as they are.
    """
    given = labels[labels["is_correct"].notna()]
    if given.empty:
        raise DataError("no answer is labelled; write 1 or 0 into the column is_correct")
    check_labels(labels, targets)
    judged = pd.concat(
        [
            targets[["prompt_id", "fact_id", "form"]].reset_index(drop=True),
            verdicts[["judged_by", "is_correct", "is_recalled"]].reset_index(drop=True),
        ],
        axis=1,
    ).rename(columns={"fact_id": "question_id"})
    both = given.merge(judged, on=["prompt_id", "question_id"], suffixes=("_human", "_judge"))
    tables: dict[str, JudgeAgreementResult] = {}
    rows = []
    for form in ("short", "long", "free"):
        part = both[both["form"] == form]
        for verdict in ("is_correct", "is_recalled") if form == "free" else ("is_correct",):
            found = _agreement(part, verdict, n_resamples, seed)
            if found is not None:
                if verdict == "is_correct":
                    tables[form] = found
                head = {"judge": part["judged_by"].iloc[0], "form": form, "verdict": verdict}
                rows.append(head | _row(found))
    corrected = _corrected(outcomes, tables, n_resamples, seed)
    return {"judge_agreement": pd.DataFrame(rows), "corrected": pd.DataFrame(corrected)}


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


def _agreement(
    both: pd.DataFrame, verdict: str, n_resamples: int, seed: int
) -> JudgeAgreementResult | None:
    """Compare labels and verdicts of one form; None where there are not both."""
    human, judge = (both[f"{verdict}_{who}"].astype("boolean") for who in ("human", "judge"))
    if not (human.notna() & judge.notna()).any():
        return None
    with warnings.catch_warnings():
        # What is missing or undefined stands in the table.
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return judge_agreement(
            *(
                column.astype(object).where(column.notna(), None).tolist()
                for column in (human, judge)
            ),
            missing="drop",
            n_resamples=n_resamples,
            rng=seed,
        )


def _row(found: JudgeAgreementResult) -> dict[str, object]:
    """Lay an agreement out as columns."""
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
    return row | _with_intervals(found, {name: name for name in names})


def _with_intervals(found: Any, names: Mapping[str, str]) -> dict[str, object]:  # noqa: ANN401
    """Lay numbers of a result out as columns with their bounds; names by column."""
    row: dict[str, object] = {}
    for column, name in names.items():
        interval = getattr(found, f"{name}_interval")
        row[column] = getattr(found, name)
        row |= {f"{column}_low": interval.low, f"{column}_high": interval.high}
    return row


def _corrected(
    outcomes: pd.DataFrame,
    tables: Mapping[str, JudgeAgreementResult],
    n_resamples: int,
    seed: int,
) -> list[dict[str, object]]:
    """Correct each condition whose errors are known on both sides."""
    rows = []
    for condition in ("long", "free"):
        pairs = outcomes[outcomes["second_condition"] == condition]
        if pairs.empty:
            continue
        try:
            errors = [_error(tables.get(form), form) for form in ("short", condition)]
        except ValueError as error:
            warnings.warn(
                f"the scores of the condition {condition!r} are not corrected: {error}",
                SurfaceConsistencyWarning,
                stacklevel=4,
            )
            continue
        rows.append({"condition": condition} | _corrected_row(pairs, errors, n_resamples, seed))
    return rows


def _error(found: JudgeAgreementResult | None, form: str) -> JudgeError:
    """Return the judge's errors on a form."""
    if found is None:
        raise ValueError(f"no {form} answer has both a label and a verdict; label some")
    try:
        error = JudgeError.of_table(found.table)
    except ValueError as reason:
        raise ValueError(f"of the {form} answers {reason}; label more of them") from reason
    if error.sensitivity + error.specificity <= 1.0:
        raise ValueError(
            f"on {form} answers the judge is no better than chance (sensitivity "
            f"{error.sensitivity:.2f}, specificity {error.specificity:.2f})"
        )
    return error


def _corrected_row(
    pairs: pd.DataFrame, errors: list[JudgeError], n_resamples: int, seed: int
) -> dict[str, object]:
    """Correct one condition, and set what the judge has beside it."""
    # A free answer is one permutation, whose slots are the places in the source.
    slots = pairs.assign(
        permutation=pairs["permutation"].fillna(0),
        slot=pairs["slot"].fillna(pairs["question_index"]),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        arrays = topic_arrays(slots, question="question_index")
        found = corrected_alignment(
            arrays.short,
            arrays.long,
            short_error=errors[0],
            long_error=errors[1],
            missing="drop",
            n_resamples=n_resamples,
            rng=seed,
        )
        seen = topic_alignment(arrays.short, arrays.long, missing="drop")
    row: dict[str, object] = {"n_topics": found.n_topics, "n_missing": found.n_missing}
    for column, name in _SCORES.items():
        observed = (
            seen.long_accuracy - seen.short_accuracy
            if name == "accuracy_difference"
            else getattr(seen, name)
        )
        row[f"observed_{column}"] = float(np.nanmean(observed))
        row |= _with_intervals(found, {column: name})
    return row | {"is_cut": found.is_cut}
