"""Labels that people give: the sheet to fill in, its reading, and how a judge agrees with them."""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    SourceNotFoundError,
    SurfaceConsistencyWarning,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.metrics import Intervals, JudgeError, corrected_alignment, judge_agreement
from surface_consistency.reading import csv_rows, first_names, shown
from surface_consistency.runs.files import unguard_cell, write_sheet

LABEL_COLUMNS: Final = ("prompt_id", "question_id", "correct")
"""What a file of labels must have; `is_recalled` may stand beside, for free answers."""

_LABELS: Final[Mapping[str, bool | None]] = {
    **dict.fromkeys(("1", "true", "yes", "right"), True),
    **dict.fromkeys(("0", "false", "no", "wrong"), False),
    "": None,
}
# Spreadsheets cut cells at 32,767 characters and rewrite short ones with digits as dates.
_LONGEST: Final = 30_000
_SHORT: Final = 40


def read_labels(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a file of labels.

    Args:
        path: CSV, UTF-8, with the columns of `LABEL_COLUMNS`; others but `is_recalled` and
            `answer` are passed over.

    Returns:
        One row a labelled fact: prompt_id, question_id, the nullable booleans correct, missing
        for an empty cell, and is_recalled, missing also without that column, and answer, what was
        labelled; None without that column.

    Raises:
        SourceNotFoundError: If there is no such file.
        ColumnNotFoundError: If a column is missing.
        DataError: If a label is none of 1 and 0, true and false, yes and no, right and wrong, a
            fact is labelled twice, or a fact is right and not recalled; names the line.
    """
    source = Path(path)
    if not source.is_file():
        raise SourceNotFoundError(f"no file {source}; give a CSV file of labels")
    frame = pd.DataFrame(
        _read(source), columns=[*LABEL_COLUMNS, "is_recalled", "answer"], dtype=object
    )
    return frame.astype({"correct": "boolean", "is_recalled": "boolean"})


def check_labels(labels: pd.DataFrame, targets: pd.DataFrame) -> None:
    """Refuse labels of another run.

    Args:
        labels: As from `read_labels`.
        targets: What the run judges: prompt_id and item.

    Raises:
        DataError: If a label is of none of these; empty ones do not count.
    """
    given = labels[labels["correct"].notna()]
    answers = pd.MultiIndex.from_frame(targets[["prompt_id", "item"]])
    foreign = given[~pd.MultiIndex.from_frame(given[["prompt_id", "question_id"]]).isin(answers)]
    if len(foreign):
        raise DataError(
            f"{len(foreign)} of {len(given)} labels are of answers that this run does not hold, "
            f"such as question {shown(foreign['question_id'].iloc[0])} of prompt "
            f"{shown(foreign['prompt_id'].iloc[0])}; give the labels of this run"
        )


def check_labelled_answers(labels: pd.DataFrame, targets: pd.DataFrame) -> None:
    """Refuse labels of other answers to the same questions, such as those of another model.

    Args:
        labels: As from `read_labels`; those without answer pass, and all without such a column.
        targets: What is judged, with text.

    Raises:
        DataError: If an answer that was labelled is another than the one that is judged, but for
            what a spreadsheet changes: case and white space, the end of a very long one, and all
            of one that may be a date or number.
    """
    if "answer" not in labels:
        return
    given = labels[labels["correct"].notna() & labels["answer"].notna()]
    answers = targets[["prompt_id", "item", "text"]].rename(columns={"item": "question_id"})
    both = given.merge(answers, on=["prompt_id", "question_id"])
    is_other = [not _is_shown(*cells) for cells in zip(both["answer"], both["text"], strict=True)]
    if len(other := both[is_other]):
        raise DataError(
            f"{len(other)} of {len(given)} labels are of other answers than those judged here, "
            f"such as {shown(other['answer'].iloc[0])} to question "
            f"{shown(other['question_id'].iloc[0])}; give the labels of this run, judge what was "
            "labelled (the same cleaner), or move labels.csv out of the run's folder"
        )


def _is_shown(cell: str, text: object) -> bool:
    """Tell whether an answer may be what a spreadsheet shows."""
    answer = text if isinstance(text, str) else ""
    if len(answer) <= _SHORT and any(map(str.isdigit, answer)):
        return True
    seen, judged = ("".join(one[:_LONGEST].casefold().split()) for one in (cell, answer))
    return seen == judged


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
        fill: Columns to fill besides correct, such as "is_recalled".

    Returns:
        How many answers stand in the sheet.

    Raises:
        ValueError: If `n` is below 1, or there is no answer.
        DataError: If another file of that name exists, which may contain labels.

    Notes:
        `correct` is to be filled with 1 or 0, and for free answers of SLAQ `is_recalled`:
        whether the text speaks of the fact at all. The other columns are for reading. A cell that a
        spreadsheet would take for a formula gets an apostrophe in front.
    """
    if n < 1:
        raise ValueError(f"n counts answers of each kind and must be 1 or more, got {n}")
    random = Random(seed)
    answered = targets[targets["text"].notna()]
    if answered.empty:
        raise ValueError("there is no answer to label; ask the model first")
    rows: list[tuple[object, ...]] = []
    for label, facts in answered.groupby(kind, sort=False):
        drawn = random.sample(range(len(facts)), min(n, len(facts)))
        for row in facts.iloc[drawn].to_dict("records"):
            texts = (row["question"], " | ".join(row["references"]), row["text"])
            blank = [""] * (1 + len(fill))
            rows.append((row["prompt_id"], row["item"], *blank, label, *texts))
    columns = [*LABEL_COLUMNS, *fill, kind, "question", "reference", "answer"]
    write_sheet(path, pd.DataFrame(rows, columns=columns, dtype=object))
    return len(rows)


def labels_by_target(targets: pd.DataFrame, path: str | os.PathLike[str]) -> pd.Series:
    """Give the labels of people in the order of what was judged.

    Args:
        targets: What was judged: prompt_id, item and text.
        path: The file of labels.

    Returns:
        correct by row, missing where there is no label.

    Raises:
        DataError: If the labels cannot be read, are of another run or other answers, or label
            nothing.
    """
    labels = read_labels(path)
    if labels["correct"].isna().all():
        raise DataError("no answer is labelled; write 1 or 0 into the column correct")
    check_labels(labels, targets)
    check_labelled_answers(labels, targets)
    known = labels.set_index(["prompt_id", "question_id"])["correct"]
    keys = pd.MultiIndex.from_arrays([targets["prompt_id"], targets["item"]])
    return known.reindex(keys).reset_index(drop=True)


def _read(path: Path) -> list[tuple[str, str, bool | None, bool | None, object]]:
    """Read the labels row by row."""
    seen: dict[tuple[str, str], int] = {}
    labels = []
    rows = csv_rows(path)
    _, header = next(rows, (0, []))
    missing = [name for name in LABEL_COLUMNS if name not in header]
    if missing:
        raise ColumnNotFoundError(
            f"{path}: no column {', '.join(missing)}; a file of labels has "
            f"{', '.join(LABEL_COLUMNS)}, and this one has {first_names(header) or 'none'}"
        )
    for number, cells in rows:
        row = dict.fromkeys(header, "") | dict(zip(header, cells, strict=False))
        if not any(row[name] for name in LABEL_COLUMNS):
            continue
        where = f"{path}:{number}"
        prompt_id, question_id = (unguard_cell(row[name]) for name in LABEL_COLUMNS[:2])
        key = (str(prompt_id or ""), str(question_id or ""))
        if key in seen:
            raise DataError(
                f"{where}: question {shown(key[1])} of prompt {shown(key[0])} was labelled in "
                f"line {seen[key]} already; keep one of the two"
            )
        seen[key] = number
        correct = _label(row["correct"], where)
        is_recalled = _label(row.get("is_recalled"), where)
        if correct and is_recalled is False:
            raise DataError(f"{where}: a fact that is not recalled cannot be right")
        answer = unguard_cell(row.get("answer"))
        labels.append((*key, correct, is_recalled, answer))
    return labels


def _label(cell: str | None, where: str) -> bool | None:
    """Read one label."""
    key = (cell or "").strip().lower()
    if key not in _LABELS:
        raise DataError(
            f"{where}: {shown(cell)} is not a label; write 1 or 0, or leave the cell empty"
        )
    return _LABELS[key]


_SCORES: Final = {
    "first_accuracy": "short_accuracy",
    "second_accuracy": "long_accuracy",
    "accuracy_difference": "accuracy_difference",
    "consistency": "alignment",
    "signed_alignment": "signed_alignment",
}


def hold_against(
    truth: pd.Series, judged: pd.Series, *, resamples: int = 10_000, seed: int = 0
) -> dict[str, object] | None:
    """Compare two verdicts on the same answers.

    Args:
        truth: Verdicts that count as true, missing where there is none.
        judged: Verdicts of the judge, in the same order.
        resamples: Resamples of the intervals.
        seed: Seed of the resampling.

    Returns:
        The columns of `metrics.judge_agreement` but n_missing, after n_labelled, the number of
        answers; None if no answer has both verdicts.
    """
    both = [column.astype("boolean").reset_index(drop=True) for column in (truth, judged)]
    if not (both[0].notna() & both[1].notna()).any():
        return None
    with warnings.catch_warnings():
        # What is missing or undefined stands in the table.
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        row = judge_agreement(
            *(column.astype(object).where(column.notna(), None).tolist() for column in both),
            missing="drop",
            intervals=Intervals(resamples=resamples, seed=seed),
        )
    del row["n_missing"]
    return {"n_labelled": len(truth)} | row


def agreement_by_kind(kinds: pd.Series, verdicts: pd.DataFrame, truth: pd.Series) -> pd.DataFrame:
    """Hold the verdicts of a judge against others on the same answers, for each kind of answer.

    Args:
        kinds: The kind of each answer, such as its condition; the name is that of the column.
        verdicts: What the judge said, row by row: judged_by and correct.
        truth: The other verdicts, of people or of a rule, row by row; missing where there is none.

    Returns:
        One row a kind and one of "all": judge, the kind, and the columns of `hold_against`, in
        which the other verdicts count as true; kinds without both verdicts are left out. Equal
        answers of several prompts are not independent; the intervals take them for it.
    """
    rows = []
    for kind in (*kinds.dropna().unique(), "all"):
        part = ((kinds == kind) | (kind == "all")).to_numpy(bool)
        agreement = hold_against(truth.loc[part], verdicts["correct"].loc[part])
        if agreement is not None:
            head = {"judge": verdicts["judged_by"].iloc[0], str(kinds.name): kind}
            rows.append(head | agreement)
    return pd.DataFrame(rows)


def corrected_table(
    outcomes: pd.DataFrame, agreement: pd.DataFrame, *, kind: str, cluster: str, facet: str | None
) -> pd.DataFrame:
    """Take a judge's errors out of the scores of both conditions.

    Args:
        outcomes: The outcomes frame of a run.
        agreement: The judge against people, of `agreement_by_kind`.
        kind: Its column of kinds, which are the names of the conditions.
        cluster: Column of what intervals take as a whole; each counts as much as any other.
        facet: Column whose values are never pooled; None for none.

    Returns:
        One row a facet: first_condition and second_condition, n_clusters, n_missing, and the
        columns of `corrected_scores`.

    Warns:
        SurfaceConsistencyWarning: If a row cannot be corrected, because no right or no wrong answer
            of a condition is labelled, or the judge is no better than chance on it.
    """
    by_kind = {} if agreement.empty else agreement.set_index(kind).to_dict("index")
    rows = []
    for value, pairs in [("all", outcomes)] if facet is None else outcomes.groupby(facet):
        names = [str(pairs[f"{side}_condition"].iloc[0]) for side in ("first", "second")]
        try:
            errors = [error_of_counts(by_kind.get(name), name) for name in names]
        except ValueError as error:
            warn_uncorrected(names[1], error)
            continue
        first, second = _by_cluster(pairs, cluster)
        head = {} if facet is None else {facet: value}
        scores = corrected_scores(first, second, errors)
        rows.append(
            head
            | {"first_condition": names[0], "second_condition": names[1]}
            | {"n_clusters": scores.pop("n_topics")}
            | scores
        )
    return pd.DataFrame(rows)


def error_of_counts(row: Mapping[Any, Any] | None, kind: str) -> JudgeError:
    """Read a judge's errors on a kind of answers off its row of agreement.

    Args:
        row: The counts, as of `agreement_columns`; None where no answer has both verdicts.
        kind: The kind, for messages.

    Returns:
        The errors.

    Raises:
        ValueError: If no right or no wrong answer is labelled, or the judge is no better than
            chance.
    """
    if row is None:
        raise ValueError(f"no {kind} answer has both a label and a verdict; label some")
    names = ("true_positives", "false_negatives", "false_positives", "true_negatives")
    try:
        error = JudgeError(**{name: int(row[name]) for name in names})
    except ValueError as reason:
        raise ValueError(f"{kind} answers: {reason}; label more of them") from reason
    if error.sensitivity + error.specificity <= 1.0:
        raise ValueError(
            f"on {kind} answers the judge is no better than chance (sensitivity "
            f"{error.sensitivity:.2f}, specificity {error.specificity:.2f})"
        )
    return error


def corrected_scores(
    first: npt.NDArray[np.float64],
    second: npt.NDArray[np.float64],
    errors: list[JudgeError],
    *,
    resamples: int = 10_000,
    seed: int = 0,
) -> dict[str, object]:
    """Correct the scores of a pair of conditions, and set what the judge has beside them.

    Args:
        first: Verdicts under the first condition, as the short ones of `corrected_alignment`.
        second: Verdicts under the second, as its long ones.
        errors: The judge's errors under both.
        resamples: Draws of the intervals.
        seed: Seed of the draws.

    Returns:
        n_topics, n_missing, then by name of score `observed_<score>`, the score and its bounds; and
        is_cut.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        corrected = corrected_alignment(
            first,
            second,
            short_error=errors[0],
            long_error=errors[1],
            missing="drop",
            intervals=Intervals(resamples=resamples, seed=seed),
        )
    row = {name: corrected[name] for name in ("n_topics", "n_missing")}
    for column, name in _SCORES.items():
        row[f"observed_{column}"] = corrected[f"observed_{name}"]
        row |= {f"{column}{end}": corrected[f"{name}{end}"] for end in ("", "_low", "_high")}
    return row | {"is_cut": corrected["is_cut"]}


def warn_uncorrected(condition: str, error: ValueError) -> None:
    """Say which condition cannot be corrected, and why.

    Args:
        condition: Its name.
        error: What stands in the way.
    """
    warnings.warn(
        f"the scores of the condition {shown(condition)} are not corrected: {error}",
        SurfaceConsistencyWarning,
        stacklevel=5,
    )


def _by_cluster(pairs: pd.DataFrame, cluster: str) -> Iterator[npt.NDArray[np.float64]]:
    """Lay the verdicts on pairs out, `(n_clusters, n_pairs)`, NaN where there is none."""
    codes, _ = pd.factorize(pairs[cluster])
    places = pairs.groupby(codes).cumcount().to_numpy()
    for side in ("first", "second"):
        verdicts = np.full((codes.max() + 1, places.max() + 1), np.nan)
        verdicts[codes, places] = (
            pairs[f"{side}_correct"].astype("Float64").to_numpy(float, na_value=np.nan)
        )
        yield verdicts
