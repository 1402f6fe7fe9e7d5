"""Anyone's verdicts from files and data sets, as the outcomes frame.

Read are CSV, TSV, JSONL, JSON and Parquet files, `datasets.Dataset`, the sample files of
lm-evaluation-harness, frames and rows, with one row a pair or one row a fact and condition.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from surface_consistency.engine.compare.table import VerdictColumns
from surface_consistency.engine.sources import rows_in_memory
from surface_consistency.errors import DataError, RecordError
from surface_consistency.metrics.outcome_frames import outcomes_frame, to_verdict
from surface_consistency.models.results.layouts import flat_rows, result_rows
from surface_consistency.models.results.samples import SAMPLE_FIELDS, is_sample
from surface_consistency.reading import find_column
from surface_consistency.runs.readers import Place, Row
from surface_consistency.schemas.generations import replace_surrogates

Source: TypeAlias = (
    str
    | os.PathLike[str]
    | Sequence[str | os.PathLike[str]]
    | pd.DataFrame
    | Iterable[Mapping[str, Any]]
)
"""A file, two files, a frame, a `datasets.Dataset`, or rows."""

_PlacedRow: TypeAlias = tuple[Place, dict[str, Any]]
"""Where a row stands, for messages, and its cells."""


def read_verdicts(
    source: Source, columns: VerdictColumns, *, within: str | Sequence[str] | None = ()
) -> pd.DataFrame:
    """Read verdicts as the outcomes frame.

    Three shapes are read. One row a pair: `first` and `second` are its columns of verdicts. One row
    a fact and condition: `condition` names the column whose values `first` and `second` are. Two
    files, one a condition: they are read in that order, `first` and `second` being what to call
    them. In the last two, `fact` names what pairs the rows and `correct` their verdicts; where
    `correct` is None, it is "correct" or, in samples of lm-evaluation-harness, their one metric.

    Args:
        source: A file, by its suffix; two files; a DataFrame, `datasets.Dataset` or rows. In CSV
            and TSV all cells are text: a label "NA" stays a label, an empty verdict is missing.
            Columns and conditions may differ from their names in case and white space. The fields
            of a sample's `doc` go by their own names, beside its `doc_id`.
        columns: Which verdicts these are.
        within: As for `metrics.outcomes_frame`.

    Returns:
        The frame of `metrics.outcomes_frame`.

    Raises:
        SourceNotFoundError: If there is no such file.
        ColumnNotFoundError: If a named column is not there; the message lists those seen.
        RecordError: If a line is broken, or a cell is no verdict; names file, line and value.
        DataError: If a file is of no known format, a data set has several splits, or several
            metrics or filters of the harness are there and none is chosen.
        TypeError: If what is given holds no rows, or a row is no mapping.
        ValueError: For what `metrics.outcomes_frame` refuses, or if a condition is not named.
    """
    names = columns.conditions
    condition = columns.condition
    files = _two_files(source)
    if files is not None and condition is not None:
        raise ValueError("two files are one condition each: give either them or condition")
    parts = [_placed_rows(part) for part in ([source] if files is None else files)]
    is_long = files is not None or condition is not None
    parts, metric = _without_samples(parts, columns, is_long=is_long)
    verdict = columns.correct or metric or "correct"
    rows = [row for part in parts for row in part]
    if not rows:
        paths = [source] if isinstance(source, str | os.PathLike) else files or []
        named = " and ".join(map(str, paths)) or "the source"
        raise DataError(f"{named} holds no rows, so no verdicts; check how it was written")
    wanted = (verdict, *columns.fact) if is_long else names
    _rename_near(rows, filter(None, [columns.cluster, columns.pair_id, condition, *wanted]))
    if files is not None:
        condition = _label(parts, names)
    elif condition is not None:
        _strip_labels(rows, condition, names)
    for column in (verdict,) if is_long else names:
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
    parts: list[list[_PlacedRow]], columns: VerdictColumns, *, is_long: bool
) -> tuple[list[list[_PlacedRow]], str | None]:
    """Lay samples of the harness flat, and return the name of their one metric."""
    rows = [row for part in parts for _, row in part]
    chosen = columns.sample_filter
    if not rows or not all(map(is_sample, rows)):
        if chosen is not None:
            raise DataError("sample_filter is for samples of lm-evaluation-harness; these are not")
        return parts, None
    _refuse_filter(chosen, sorted({str(row["filter"]) for row in rows if "filter" in row}))
    metrics = sorted({name for row in rows for name in _metrics(row)})
    flat = [
        [(place, _flat(row)) for place, row in part if chosen in (None, row.get("filter"))]
        for part in parts
    ]
    seen = ", ".join(dict.fromkeys(name for part in flat for _, row in part for name in row))
    if not is_long:
        raise DataError(
            "samples of lm-evaluation-harness hold one condition a row: give two files, or name "
            f"through `condition` the field of doc that tells it (seen: {seen})"
        )
    if len(metrics) != 1 and columns.correct is None:
        raise DataError(
            f"the samples hold several metrics: choose one through `correct` (of {seen})"
        )
    return flat, metrics[0] if len(metrics) == 1 else None


def _refuse_filter(chosen: str | None, filters: Sequence[str]) -> None:
    """Refuse a filter that no sample has, and several of which none is chosen."""
    if chosen is None and len(filters) > 1:
        raise DataError(
            f"the samples are scored under several filters, {', '.join(filters)}: choose one "
            "through `sample_filter`"
        )
    if chosen not in (None, *filters):
        raise DataError(
            f"no sample is scored under the filter {chosen!r}; there are "
            f"{', '.join(filters) or 'no filters'}"
        )


def _label(parts: list[list[_PlacedRow]], names: tuple[str, str]) -> str:
    """Add to the rows of each file a column with its condition, and return its name."""
    taken = {name for part in parts for _, row in part for name in row}
    column = "condition"
    while column in taken:
        column += "_"
    for part, name in zip(parts, names, strict=True):
        for _, row in part:
            row[column] = name
    return column


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


def _metrics(row: Mapping[str, Any]) -> list[str]:
    """Return the names of the metrics of a sample; earlier versions do not list them."""
    listed = row.get("metrics")
    return list(listed) if isinstance(listed, list) else [n for n in row if n not in SAMPLE_FIELDS]


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sample's number and scores beside the fields of its document."""
    own = SAMPLE_FIELDS - {"doc_id"} - row["doc"].keys()
    return {name: value for name, value in row.items() if name not in own}
