"""Anyone's verdicts from files and data sets, as the outcomes frame.

Read are CSV, TSV, JSONL, JSON and Parquet files, `datasets.Dataset`, the sample files of
lm-evaluation-harness, frames and rows, with one row a pair or one row a fact and condition.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from surface_consistency.errors import DataError
from surface_consistency.metrics.outcome_frames import outcomes_frame
from surface_consistency.studies._harness_samples import flatten_samples, is_sample
from surface_consistency.studies._verdict_rows import (
    PlacedRow,
    Source,
    parse_cells,
    placed_rows,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Source", "read_verdicts"]


def read_verdicts(
    source: Source,
    *,
    first: str,
    second: str,
    condition: str | None = None,
    correct: str | None = None,
    fact: str | Sequence[str] = "fact_id",
    cluster: str | None = None,
    pair_id: str | None = None,
    within: str | Sequence[str] | None = (),
    sample_filter: str | None = None,
) -> "pd.DataFrame":
    """Read verdicts as the outcomes frame.

    Three shapes are read. One row a pair: `first` and `second` are its columns of verdicts. One row
    a fact and condition: `condition` names the column whose values `first` and `second` are. Two
    files, one a condition: they are read in that order, `first` and `second` being what to call
    them. In the last two, `fact` names what pairs the rows and `correct` their verdicts.

    Args:
        source: A file, by its suffix; two files; a DataFrame, `datasets.Dataset` or rows. In CSV
            and TSV all cells are text: a label "NA" stays a label, an empty verdict is missing.
        first: Column, value of `condition`, or name of the first file.
        second: Column, value of `condition`, or name of the second file.
        condition: Column that tells the condition of a row.
        correct: Column of verdicts of rows of one condition; None takes "correct" or, in samples of
            lm-evaluation-harness, their one metric.
        fact: Column or columns that name the fact of a row of one condition. The fields of a
            sample's `doc` go by their own names, beside its `doc_id`.
        cluster: As for `metrics.outcomes_frame`.
        pair_id: As for `metrics.outcomes_frame`.
        within: As for `metrics.outcomes_frame`.
        sample_filter: Filter of lm-evaluation-harness whose scores count, where a file has several.

    Returns:
        The frame of `metrics.outcomes_frame`.

    Raises:
        SourceNotFoundError: If there is no such file.
        ColumnNotFoundError: If a named column is not there; the message lists those seen.
        RecordError: If a line is broken, or a cell is no verdict; names file, line and value.
        DataError: If a file is of no known format, a data set has several splits, or several
            metrics or filters of the harness are there and none is chosen.
        ValueError: For what `metrics.outcomes_frame` refuses.
    """
    files = _two_files(source)
    if files is not None and condition is not None:
        raise ValueError("two files are one condition each: give either them or condition")
    parts = [placed_rows(part) for part in ([source] if files is None else files)]
    is_long = files is not None or condition is not None
    parts, metric = _without_samples(parts, sample_filter, is_long=is_long, correct=correct)
    verdict = correct or metric or "correct"
    if files is not None:
        condition = _label(parts, (first, second))
    rows = [row for part in parts for row in part]
    for column in (verdict,) if is_long else (first, second):
        parse_cells(rows, column)
    return outcomes_frame(
        [row for _, row in rows],
        first=first,
        second=second,
        condition=condition,
        correct=verdict,
        fact=fact,
        cluster=cluster,
        pair_id=pair_id,
        within=within,
    )


def _two_files(source: object) -> list[str | os.PathLike[str]] | None:
    """Return the two files that a source names, if it does."""
    if not isinstance(source, list | tuple):
        return None
    files = [item for item in source if isinstance(item, str | os.PathLike)]
    if not files or len(files) != len(source):
        return None
    if len(files) != 2:
        raise ValueError(f"give one file, or two with one condition each; got {len(files)}")
    return files


def _without_samples(
    parts: list[list[PlacedRow]], sample_filter: str | None, *, is_long: bool, correct: str | None
) -> tuple[list[list[PlacedRow]], str | None]:
    """Lay samples of the harness flat, and return the name of their one metric."""
    rows = [row for part in parts for _, row in part]
    if not rows or not all(is_sample(row) for row in rows):
        if sample_filter is not None:
            raise DataError("sample_filter is for samples of lm-evaluation-harness; these are not")
        return parts, None
    kept, metric = flatten_samples(rows, sample_filter)
    flat = iter(kept)
    found = [[(place, next(flat)) for place, _ in part] for part in parts]
    seen = ", ".join(dict.fromkeys(name for row in kept if row is not None for name in row))
    if not is_long:
        raise DataError(
            "samples of lm-evaluation-harness hold one condition a row: give two files, or name "
            f"through condition the field of doc that tells it (seen: {seen})"
        )
    if metric is None and correct is None:
        raise DataError(f"the samples hold several metrics: choose one through correct (of {seen})")
    return [[(place, row) for place, row in part if row is not None] for part in found], metric


def _label(parts: list[list[PlacedRow]], names: tuple[str, str]) -> str:
    """Add to the rows of each file a column with its condition, and return its name."""
    taken = {name for part in parts for _, row in part for name in row}
    column = "condition"
    while column in taken:
        column += "_"
    for part, name in zip(parts, names, strict=True):
        for _, row in part:
            row[column] = name
    return column
