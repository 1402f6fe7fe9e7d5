"""Human labels: the sheet for annotators, its reader, and agreement of a scorer with labels."""

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
"""Required columns of a file of labels; `is_recalled` is optional, for free answers."""

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
        path: CSV, UTF-8, with the columns of `LABEL_COLUMNS`; `is_recalled` and `answer` are
            optional, and other columns are ignored.

    Returns:
        One row per labelled fact: prompt_id, question_id, the nullable booleans correct, missing
        for an empty cell, and is_recalled, also missing without that column, and answer, the
        labelled answer; None without that column.

    Raises:
        SourceNotFoundError: If there is no such file.
        ColumnNotFoundError: If a column is missing.
        DataError: If a label is not 1 or 0, true or false, yes or no, "right" or "wrong", a fact is
            labelled twice, or a fact is correct but not recalled; names the line.
    """
    source = Path(path)
    if not source.is_file():
        raise SourceNotFoundError(f"file {source} not found; pass a CSV file of labels")
    frame = pd.DataFrame(
        _read(source), columns=[*LABEL_COLUMNS, "is_recalled", "answer"], dtype=object
    )
    return frame.astype({"correct": "boolean", "is_recalled": "boolean"})


def check_labels(labels: pd.DataFrame, targets: pd.DataFrame) -> None:
    """Raise an error for labels of another run.

    Args:
        labels: Labels of `read_labels`.
        targets: The targets of the run: prompt_id and item.

    Raises:
        DataError: If a label belongs to another target; empty labels are ignored.
    """
    given = labels[labels["correct"].notna()]
    answers = pd.MultiIndex.from_frame(targets[["prompt_id", "item"]])
    foreign = given[~pd.MultiIndex.from_frame(given[["prompt_id", "question_id"]]).isin(answers)]
    if len(foreign):
        raise DataError(
            f"{len(foreign)} of {len(given)} labels belong to answers that are not in this run, "
            f"such as question {shown(foreign['question_id'].iloc[0])} of prompt "
            f"{shown(foreign['prompt_id'].iloc[0])}; give the labels of this run"
        )


def check_labelled_answers(labels: pd.DataFrame, targets: pd.DataFrame) -> None:
    """Raise an error for labels of other answers to the same questions, such as of another model.

    Args:
        labels: Labels of `read_labels`; rows without the labelled answer are not checked.
        targets: The targets, with text.

    Raises:
        DataError: If the labelled answer differs from the scored answer, except for changes by
            spreadsheets: case and white space, the end of a very long answer, and any change of an
            answer that may be a date or number.
    """
    if "answer" not in labels:
        return
    given = labels[labels["correct"].notna() & labels["answer"].notna()]
    answers = targets[["prompt_id", "item", "text"]].rename(columns={"item": "question_id"})
    both = given.merge(answers, on=["prompt_id", "question_id"])
    is_other = [not _is_shown(*cells) for cells in zip(both["answer"], both["text"], strict=True)]
    if len(other := both[is_other]):
        raise DataError(
            f"{len(other)} of {len(given)} labels belong to answers that differ from the scored "
            f"ones, such as {shown(other['answer'].iloc[0])} to question "
            f"{shown(other['question_id'].iloc[0])}; give the labels of this run, score the "
            "labelled answers (with the same cleaner), or move labels.csv out of the run folder"
        )


def _is_shown(cell: str, text: object) -> bool:
    """Return whether a spreadsheet may show this answer as the text of a cell."""
    answer = text if isinstance(text, str) else ""
    if len(answer) <= _SHORT and any(map(str.isdigit, answer)):
        return True
    shown_text, scored_text = ("".join(one[:_LONGEST].casefold().split()) for one in (cell, answer))
    return shown_text == scored_text


def write_labelling_sheet(
    path: str | os.PathLike[str],
    targets: pd.DataFrame,
    *,
    n: int = 50,
    seed: int = 0,
    kind: str = "form",
    fill: Sequence[str] = ("is_recalled",),
) -> int:
    """Write a sheet of answers for human annotators; an existing sheet is not overwritten.

    Answers are drawn at random per kind, because the errors of a scorer differ between short and
    long answers, or with and without retrieval. Scores are not shown, so that they do not bias the
    annotators.

    Args:
        path: The CSV file; its folder must exist.
        targets: The targets, with text; missing answers are excluded.
        n: Maximum number of answers per kind; 1 or more.
        seed: Random seed.
        kind: Column of the targets that defines the kinds, such as "form" or "state".
        fill: Columns to fill in addition to correct, such as "is_recalled".

    Returns:
        The number of answers in the sheet.

    Raises:
        ValueError: If `n` is below 1, or there is no answer.
        DataError: If another file of that name exists, which may contain labels.

    Notes:
        Annotators write 1 or 0 into `correct`, and for free answers of SLAQ into `is_recalled`,
        which is 1 if the text mentions the fact. The other columns are for reading. A cell that a
        spreadsheet would read as a formula gets a leading apostrophe.
    """
    if n < 1:
        raise ValueError(f"n is the number of answers per kind and must be 1 or more, got {n}")
    random = Random(seed)
    answered = targets[targets["text"].notna()]
    if answered.empty:
        raise ValueError("there is no answer to label; run the model first")
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
    """Return the human labels in the order of the targets.

    Args:
        targets: The scored targets: prompt_id, item and text.
        path: The file of labels.

    Returns:
        correct by row, missing if there is no label.

    Raises:
        DataError: If the labels cannot be read, are of another run or other answers, or are all
            empty.
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
            raise DataError(f"{where}: a fact that is not recalled cannot be correct")
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


def label_agreement(
    truth: pd.Series, judged: pd.Series, *, resamples: int = 10_000, seed: int = 0
) -> dict[str, object] | None:
    """Compute the agreement of scores with true labels of the same answers.

    Args:
        truth: True correctness labels; missing values are allowed.
        judged: Correctness labels of the scorer, in the same order.
        resamples: Number of bootstrap resamples of the intervals.
        seed: Random seed of the resamples.

    Returns:
        The columns of `metrics.judge_agreement` except n_missing, after n_labelled, the number of
        answers; None if no answer has both labels.
    """
    both = [column.astype("boolean").reset_index(drop=True) for column in (truth, judged)]
    if not (both[0].notna() & both[1].notna()).any():
        return None
    with warnings.catch_warnings():
        # Missing and undefined values are in the table.
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
    """Compute the agreement of a scorer with other labels of the same answers, per kind of answer.

    Args:
        kinds: The kind of each answer, such as its condition; the name is that of the column.
        verdicts: The rows of the scorer: judged_by and correct.
        truth: The other labels, of annotators or of a rule, row by row; missing values are allowed.

    Returns:
        One row per kind and one row "all": judge, the kind, and the columns of `label_agreement`,
        in which the other labels are the truth; kinds without both labels are omitted. Equal
        answers of several prompts are not independent, but the intervals assume that they are.
    """
    rows = []
    for kind in (*kinds.dropna().unique(), "all"):
        part = ((kinds == kind) | (kind == "all")).to_numpy(bool)
        agreement = label_agreement(truth.loc[part], verdicts["correct"].loc[part])
        if agreement is not None:
            head = {"judge": verdicts["judged_by"].iloc[0], str(kinds.name): kind}
            rows.append(head | agreement)
    return pd.DataFrame(rows)


def corrected_table(
    outcomes: pd.DataFrame, agreement: pd.DataFrame, *, kind: str, cluster: str, facet: str | None
) -> pd.DataFrame:
    """Correct the scores of both conditions for the errors of the scorer.

    Args:
        outcomes: The outcomes frame of a run.
        agreement: Agreement with human labels, of `agreement_by_kind`.
        kind: Its column of kinds, which are the names of the conditions.
        cluster: Clustering column of the intervals; all clusters have equal weight.
        facet: Column whose values are never pooled; None without such a column.

    Returns:
        One row per facet: first_condition and second_condition, n_clusters, n_missing, and the
        columns of `corrected_scores`.

    Warns:
        SurfaceConsistencyWarning: If a row cannot be corrected, because no correct or no incorrect
            answer of a condition is labelled, or the scorer is not better than chance on it.
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
    """Read the error counts of a scorer on one kind of answers from its row of agreement.

    Args:
        row: The counts, as of `agreement_columns`; None if no answer has a label and a score.
        kind: The kind, for messages.

    Returns:
        The error counts.

    Raises:
        ValueError: If no correct or no incorrect answer is labelled, or the scorer is not better
            than chance.
    """
    if row is None:
        raise ValueError(f"no {kind} answer has both a label and a score; label scored answers")
    names = ("true_positives", "false_negatives", "false_positives", "true_negatives")
    try:
        error = JudgeError(**{name: int(row[name]) for name in names})
    except ValueError as reason:
        raise ValueError(f"{kind} answers: {reason}; label more of them") from reason
    if error.sensitivity + error.specificity <= 1.0:
        raise ValueError(
            f"on {kind} answers the scorer is not better than chance (sensitivity "
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
    """Correct the scores of a pair of conditions, and return them next to the observed scores.

    Args:
        first: Labels under the first condition, as the short ones of `corrected_alignment`.
        second: Labels under the second condition, as its long ones.
        errors: Errors of the scorer under both conditions.
        resamples: Number of bootstrap resamples of the intervals.
        seed: Random seed of the resamples.

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
    """Warn that the scores of a condition cannot be corrected.

    Args:
        condition: Its name.
        error: The reason.
    """
    warnings.warn(
        f"the scores of the condition {shown(condition)} are not corrected: {error}",
        SurfaceConsistencyWarning,
        stacklevel=5,
    )


def _by_cluster(pairs: pd.DataFrame, cluster: str) -> Iterator[npt.NDArray[np.float64]]:
    """Yield the labels of pairs as `(n_clusters, n_pairs)`, NaN for missing ones."""
    codes, _ = pd.factorize(pairs[cluster])
    places = pairs.groupby(codes).cumcount().to_numpy()
    for side in ("first", "second"):
        verdicts = np.full((codes.max() + 1, places.max() + 1), np.nan)
        verdicts[codes, places] = (
            pairs[f"{side}_correct"].astype("Float64").to_numpy(float, na_value=np.nan)
        )
        yield verdicts
