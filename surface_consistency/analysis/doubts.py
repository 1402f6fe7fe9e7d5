"""Warnings about scores that a finding reports: constant scores and missing answers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import pandas as pd

from surface_consistency.errors import DataError
from surface_consistency.reading import first_names, shown
from surface_consistency.results.failures import COMMON, FEW, MANY
from surface_consistency.results.logs import EXCLUDED_ENDING
from surface_consistency.results.tables import is_answered

_REASONS: Final = ("error", "result", "reason", "explanation", "status")
"""Columns that may contain the reason for an incorrect answer."""


def no_scores(frame: pd.DataFrame, notes: Iterable[str]) -> DataError:
    """Return the error for results without any score.

    Args:
        frame: The rows, with a column `error`.
        notes: Notes of the reader, some of which give the reason for missing scores of a metric.

    Returns:
        The error.
    """
    reasons = [note for note in notes if note.endswith(EXCLUDED_ENDING)]
    errors = frame["error"].dropna()
    if len(errors):
        reasons.append(f"{len(errors):,} rows have an error, such as {shown(errors.iloc[0])}")
    return DataError(
        "; ".join(
            [
                "no row contains a score; name the column of scores by `score`, or score the "
                "answers by `rule`, such as `rule=popqa`"
                + (" and `references=COLUMN`" if not frame["references"].map(len).any() else ""),
                *reasons,
            ]
        )
    )


def constant_scores(
    models: Sequence[tuple[str, float, float]],
    unit: str,
    read_rows: Callable[[], pd.DataFrame] | None = None,
) -> Iterator[str]:
    """Report each model whose scores are all 0; and report if all scores of all models are 1.

    Args:
        models: Name, accuracy and number of scores of each model.
        unit: Unit of observation in the plural, such as "items".
        read_rows: Reads the rows with a column `model`, whose other columns may contain the reason
            for incorrect answers; None without such rows.

    Yields:
        Sentences.
    """
    without = [name for name, mean, n in models if mean == 0 and n >= FEW]
    n_scores = int(max(n for *_, n in models))
    if without:
        yield (
            f"All scores of {first_names(without)} are 0 ({n_scores:,} {unit}); check the answers, "
            "the part of them that is scored, and the references."
        )
    if n_scores >= FEW and all(mean == 1 for _, mean, _ in models):
        yield (
            f"All scores are 1 ({n_scores:,} {unit}); check that the answers do not contain the "
            "references for another reason."
        )
    if read_rows is not None and without:
        rows = read_rows()
        for name in without:
            yield from _common_reason(rows[rows["model"] == name], name)


def _common_reason(rows: pd.DataFrame, model: str) -> Iterator[str]:
    """Report a reason that more than half of the rows of a model have in common."""
    for column in _REASONS:
        texts = rows[column].dropna() if column in rows else pd.Series(dtype=object)
        counts = texts[texts.map(lambda text: isinstance(text, str))].value_counts()
        if len(counts) and counts.iloc[0] > len(rows) / 2:
            yield (
                f"{counts.iloc[0]:,} of {len(rows):,} rows of {model} have the same text in column "
                f"{column}: {shown(counts.index[0])}."
            )


def empty_texts(frame: pd.DataFrame, score: str = "score") -> Iterator[str]:
    """Count the answers that are empty texts with a score of 0.

    Args:
        frame: One row per answer, or per answer and metric.
        score: Column of scores.

    Yields:
        A note if there are any, without its full stop.
    """
    if not {"prediction", score} <= {*frame} or frame.empty:
        return
    if "metric" in frame:
        frame = frame[frame["metric"] == frame["metric"].iat[0]]
    texts = frame.loc[frame[score] == 0, "prediction"].dropna()
    if n := int((~is_answered(texts)).sum()):
        yield (
            f"{n:,} of {len(frame):,} answers are empty texts with a score of 0; a missing answer "
            "is null or NaN (an empty cell of CSV)"
        )


def missing_answers(frame: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Report models with many answers that are empty, refused, failed, unfinished or the same text.

    Args:
        frame: One row per answer: model, prediction and error, as of `read_results`.

    Yields:
        Model and sentence; all sentences of a model, then those of the next one.
    """
    if not {"model", "prediction", "error"} <= {*frame}:
        return
    is_absent = frame["prediction"].isna()
    is_empty = np.array([not str(text).strip() for text in frame["prediction"]], dtype=bool)
    is_none = frame["error"].notna() | (~is_absent & is_empty)
    if is_absent.any():
        # A task without any answer, such as a choice by probability, has no missing answers.
        tasks = frame["task"] if "task" in frame else np.zeros(len(frame))
        has_answers = (~is_absent & ~is_none).groupby(tasks, observed=True).transform("any")
        is_none |= is_absent & has_answers
    by_model = is_none.groupby(frame["model"], sort=False, observed=True)
    common = frame.get(COMMON, pd.Series(None, frame.index, dtype=object))
    for name, n_none, n in by_model.agg(["sum", "size"]).itertuples(name=None):
        if n_none > MANY * n:
            yield (
                str(name),
                f"{n_none:,} of {n:,} answers of {name} are empty, refused, failed or unfinished "
                f"({100 * n_none / n:.1f} %).",
            )
        for text, n_same in common[frame["model"] == name].value_counts().items():
            yield (
                str(name),
                f"{n_same:,} answers of {name} are the same text, {shown(text)}, and none is "
                "correct; check that it is an answer and not a failure.",
            )
