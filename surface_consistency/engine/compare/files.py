"""Anyone's verdicts under two conditions, from one file or data set, as the outcomes frame.

Read are CSV, TSV, JSONL, JSON and Parquet files, `datasets.Dataset`, frames and rows, with one row
a pair or one row a fact and condition.
"""

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import pandas as pd

from surface_consistency.engine.compare.table import VerdictColumns
from surface_consistency.engine.sources import rows_in_memory
from surface_consistency.errors import DataError, RecordError
from surface_consistency.metrics.outcome_frames import outcomes_frame, to_verdict
from surface_consistency.models.results.columns import ResultColumns
from surface_consistency.models.results.frame import read_results
from surface_consistency.models.results.layouts import flat_rows, result_rows
from surface_consistency.models.results.samples import is_sample
from surface_consistency.reading import find_column
from surface_consistency.runs.readers import Place, Row
from surface_consistency.schemas.generations import replace_surrogates

Source: TypeAlias = str | os.PathLike[str] | pd.DataFrame | Iterable[Mapping[str, Any]]
"""A file, a frame, a `datasets.Dataset`, or rows."""

_LOG: Final = logging.getLogger(__name__)

_PlacedRow: TypeAlias = tuple[Place, dict[str, Any]]
"""Where a row stands, for messages, and its cells."""


def read_verdicts(
    source: Source, columns: VerdictColumns, *, within: str | Sequence[str] | None = ()
) -> pd.DataFrame:
    """Read verdicts as the outcomes frame.

    Two shapes are read. One row a pair: `first` and `second` are its columns of verdicts. One row
    a fact and condition: `condition` names the column whose values `first` and `second` are, `fact`
    what pairs the rows and `correct` their verdicts ("correct" by default). Files of several models
    are compared by `engine.compare.results`.

    Args:
        source: A file, by its suffix; a DataFrame, `datasets.Dataset` or rows. In CSV and TSV all
            cells are text: a label "NA" stays a label, an empty verdict is missing. Columns and
            conditions may differ from their names in case and white space.
        columns: Which verdicts these are.
        within: As for `metrics.outcomes_frame`.

    Returns:
        The frame of `metrics.outcomes_frame`.

    Raises:
        SourceNotFoundError: If there is no such file.
        ColumnNotFoundError: If a named column is not there; the message lists those seen.
        RecordError: If a line is broken, or a cell is no verdict; names file, line and value.
        DataError: If a file is of no known format, or a data set has several splits.
        TypeError: If what is given holds no rows, or a row is no mapping.
        ValueError: For what `metrics.outcomes_frame` refuses, or if a condition is not named.
    """
    names = columns.conditions
    condition, verdict = columns.condition, columns.correct or "correct"
    rows = _placed_rows(source)
    if not rows:
        named = source if isinstance(source, str | os.PathLike) else "the source"
        raise DataError(f"{named} holds no rows, so no verdicts; check how it was written")
    if condition is not None and is_sample(rows[0][1]):
        rows, columns = _samples(source, columns)
        verdict = "score"
    wanted = names if condition is None else (verdict, *columns.fact)
    _rename_near(rows, filter(None, [columns.cluster, columns.pair_id, condition, *wanted]))
    if condition is not None:
        _strip_labels(rows, condition, names)
        _tell_others(rows, condition, names)
    for column in names if condition is None else (verdict,):
        _parse_cells(rows, column, blank=None if columns.blank == "missing" else False)
    return outcomes_frame(
        [row for _, row in rows],
        first=names[0],
        second=names[1],
        condition=condition,
        correct=verdict,
        fact=columns.fact[0] if len(columns.fact) == 1 else columns.fact,
        cluster=columns.cluster,
        pair_id=columns.pair_id,
        within=within,
    )


def _rename_near(rows: Sequence[_PlacedRow], wanted: Iterable[str]) -> None:
    """Give columns the names by which they are asked for, from which they differ in writing."""
    columns = list(dict.fromkeys(name for _, row in rows for name in row))
    near = {own: name for name in wanted if (own := find_column(name, columns)) is not None}
    renamed = {own: name for own, name in near.items() if own != name}
    for _, row in rows if renamed else ():
        for own, name in renamed.items():
            if own in row:
                row[name] = row.pop(own)


def _strip_labels(rows: Iterable[_PlacedRow], condition: str, names: tuple[str, str]) -> None:
    """Read labels of conditions that differ from the names in white space or case alone."""
    near = {name.strip().casefold(): name for name in names}
    for _, row in rows:
        label = row.get(condition)
        if isinstance(label, str) and label not in names and len(near) == len(names):
            row[condition] = near.get(label.strip().casefold(), label)


def _samples(source: Source, columns: VerdictColumns) -> tuple[list[_PlacedRow], VerdictColumns]:
    """Read samples of the harness, of one metric, and name their columns."""
    named = ResultColumns(
        item=columns.fact,
        form=columns.condition,
        metrics=() if columns.correct is None else (columns.correct,),
    )
    frame = read_results(source, named).frame
    metrics = list(dict.fromkeys(frame["metric"]))
    if len(metrics) > 1:
        raise DataError(
            f"the samples hold scores by {', '.join(metrics)}: choose one by --score, in Python "
            "`correct`"
        )
    rows = frame.rename(columns={"form": columns.condition}).to_dict("records")
    placed = [
        (Place(str(row["file"]), n), {str(name): cell for name, cell in row.items()})
        for n, row in enumerate(rows, start=1)
    ]
    return placed, columns.model_copy(update={"fact": ("item",)})


def _tell_others(rows: Iterable[_PlacedRow], condition: str, names: tuple[str, str]) -> None:
    """Say which conditions are left out."""
    labels = dict.fromkeys(str(row[condition]) for _, row in rows if row.get(condition) is not None)
    others = [label for label in labels if label not in names]
    if others:
        _LOG.warning(
            "left out: rows whose %s is %s; to compare all of them, name the column by --model",
            condition,
            ", ".join(map(repr, others[:5])) + (" or others" if len(others) > 5 else ""),
        )


def _placed_rows(source: Source) -> list[_PlacedRow]:
    """Read all rows of a source."""
    if isinstance(source, str | os.PathLike):
        rows: Iterable[Row] = result_rows(Path(source))
    elif isinstance(source, Mapping):
        raise DataError(
            f"the data set has several splits, {', '.join(map(str, source))}: give one of them, as "
            "in data['test']"
        )
    else:
        records = source.to_dict("records") if isinstance(source, pd.DataFrame) else source
        rows = (
            (place, flat)
            for place, row in rows_in_memory(records, "row")
            for flat in flat_rows(row, place)
        )
    return [(place, _whole(place, row)) for place, row in rows]


def _whole(place: Place, row: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse half a surrogate pair, which JSON can spell and no file in UTF-8 can hold."""
    for name, value in row.items():
        for text in (name, value):
            if isinstance(text, str) and not text.isascii() and replace_surrogates(text) != text:
                raise RecordError(
                    f"{place}: column {name!r} holds half a surrogate pair, {text[:60]!r}, which "
                    "cannot be written; replace it in the file"
                )
    return dict(row)


def _parse_cells(rows: Iterable[_PlacedRow], column: str, *, blank: bool | None) -> None:
    """Read a column of verdicts in place; a row without the column stays so."""
    for place, row in rows:
        if column in row:
            try:
                verdict = to_verdict(row[column])
                row[column] = blank if verdict is None else verdict
            except ValueError as error:
                raise RecordError(f"{place}: column {column!r}: {error}") from None
