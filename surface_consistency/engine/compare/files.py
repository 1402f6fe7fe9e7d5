"""Anyone's verdicts under two conditions, from one file or data set, as the outcomes frame.

Read are CSV, TSV, JSONL, JSON and Parquet files, `datasets.Dataset`, frames and rows, with one row
a pair or one row a fact and condition.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from surface_consistency.engine.compare.table import VerdictColumns
from surface_consistency.engine.sources import rows_in_memory
from surface_consistency.errors import DataError, RecordError
from surface_consistency.metrics.outcome_frames import outcomes_frame, to_verdict
from surface_consistency.models.results.archives import is_archive
from surface_consistency.models.results.columns import ResultColumns
from surface_consistency.models.results.frame import read_results
from surface_consistency.models.results.layouts import flat_rows, layout_of, result_rows
from surface_consistency.models.results.samples import is_sample
from surface_consistency.models.results.tables import read_table
from surface_consistency.reading import find_column
from surface_consistency.runs.readers import Place, Row
from surface_consistency.schemas.generations import replace_surrogates

Source: TypeAlias = str | os.PathLike[str] | pd.DataFrame | Iterable[Mapping[str, Any]]
"""A file, a frame, a `datasets.Dataset`, or rows."""

_LOG: Final = logging.getLogger(__name__)


class _Table(NamedTuple):
    """A table of verdicts."""

    frame: pd.DataFrame
    """Its cells."""

    place: Callable[[int], Place]
    """Where a row stands, counted from 0, for messages."""


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
    table = _table(source)
    if table.frame.empty:
        named = source if isinstance(source, str | os.PathLike) else "the source"
        raise DataError(f"{named} holds no rows, so no verdicts; check how it was written")
    if condition is not None and is_sample(dict.fromkeys(map(str, table.frame))):
        table, columns = _samples(source, columns)
        verdict = "score"
    wanted = names if condition is None else (verdict, *columns.fact)
    frame = _with_near_names(
        table.frame, filter(None, [columns.cluster, columns.pair_id, condition, *wanted])
    )
    if condition is not None and condition in frame:
        frame = _with_plain_labels(frame, condition, names)
        _tell_others(frame, condition, names)
    for column in names if condition is None else (verdict,):
        if column in frame:
            blank = None if columns.blank == "missing" else False
            frame[column] = _parsed(frame[column], table.place, blank=blank)
    return outcomes_frame(
        frame,
        first=names[0],
        second=names[1],
        condition=condition,
        correct=verdict,
        fact=columns.fact[0] if len(columns.fact) == 1 else columns.fact,
        cluster=columns.cluster,
        pair_id=columns.pair_id,
        within=within,
    )


def _with_near_names(frame: pd.DataFrame, wanted: Iterable[str]) -> pd.DataFrame:
    """Give columns the names by which they are asked for, from which they differ in writing."""
    columns = list(map(str, frame.columns))
    near = {own: name for name in wanted if (own := find_column(name, columns)) is not None}
    return frame.set_axis([near.get(name, name) for name in columns], axis=1)


def _distinct(cells: pd.Series) -> tuple[np.ndarray, list[Any]]:
    """Return the number of each cell's value and the values, in order; objects stand for all."""
    if cells.dtype == object:
        return np.arange(len(cells)), cells.tolist()
    codes, labels = pd.factorize(cells, use_na_sentinel=False)
    return codes, labels.tolist()


def _with_plain_labels(frame: pd.DataFrame, condition: str, names: tuple[str, str]) -> pd.DataFrame:
    """Read labels of conditions that differ from the names in white space or case alone."""
    near = {name.strip().casefold(): name for name in names}
    if len(near) < len(names):
        return frame
    codes, labels = _distinct(frame[condition])
    plain = np.empty(len(labels), dtype=object)
    for number, label in enumerate(labels):
        is_other = isinstance(label, str) and label not in names
        plain[number] = near.get(label.strip().casefold(), label) if is_other else label
    return frame.assign(**{condition: pd.Series(plain[codes], index=frame.index, dtype=object)})


def _samples(source: Source, columns: VerdictColumns) -> tuple[_Table, VerdictColumns]:
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
    frame = frame.rename(columns={"form": columns.condition})
    files = list(frame["file"])
    table = _Table(frame, lambda row: Place(files[row], row + 1))
    return table, columns.model_copy(update={"fact": ("item",)})


def _tell_others(frame: pd.DataFrame, condition: str, names: tuple[str, str]) -> None:
    """Say which conditions are left out."""
    _, cells = _distinct(frame[condition])
    labels = dict.fromkeys(str(cell) for cell in cells if cell is not None)
    others = [label for label in labels if label not in names]
    if others:
        _LOG.warning(
            "left out: rows whose %s is %s; to compare all of them, name the column by --model",
            condition,
            ", ".join(map(repr, others[:5])) + (" or others" if len(others) > 5 else ""),
        )


def _table(source: Source) -> _Table:
    """Read a source: by columns where it is a plain table of plain cells, else by rows."""
    if isinstance(source, Mapping):
        raise DataError(
            f"the data set has several splits, {', '.join(map(str, source))}: give one of them, as "
            "in data['test']"
        )
    path = Path(source) if isinstance(source, str | os.PathLike) else None
    frame = source if isinstance(source, pd.DataFrame) else None
    if path is not None and path.is_file() and not is_archive(path):
        frame = read_table(path)
    if frame is not None and len(frame) and _is_plain(frame):
        return _Table(frame, lambda row: _place(source, row))
    placed = list(_placed_rows(source))
    names = dict.fromkeys(name for _, row in placed for name in row)
    cells = {name: pd.Series([row.get(name) for _, row in placed], dtype=object) for name in names}
    return _Table(pd.DataFrame(cells), lambda row: placed[row][0])


def _is_plain(frame: pd.DataFrame) -> bool:
    """Tell a table of texts, numbers and truth values, with no cell that is none of them."""
    names = list(map(str, frame.columns))
    is_known = len(set(names)) == len(names) and layout_of(names) is None
    return is_known and all(
        not (pd.api.types.is_object_dtype(dtype) or frame[name].hasnans)
        for name, dtype in frame.dtypes.items()
    )


def _place(source: Source, row: int) -> Place:
    """Find where a row stands, by reading up to it."""
    place, _ = next(islice(_placed_rows(source), row, None))
    return place


def _placed_rows(source: Source) -> Iterator[Row]:
    """Read the rows of a source."""
    if isinstance(source, str | os.PathLike):
        rows: Iterable[Row] = result_rows(Path(source))
    else:
        records = source.to_dict("records") if isinstance(source, pd.DataFrame) else source
        rows = (
            (place, flat)
            for place, row in rows_in_memory(records, "row")
            for flat in flat_rows(row, place)
        )
    for place, row in rows:
        _refuse_surrogates(place, row)
        yield place, row


def _refuse_surrogates(place: Place, row: Mapping[str, Any]) -> None:
    """Refuse half a surrogate pair, which JSON can spell and no file in UTF-8 can hold."""
    for name, value in row.items():
        for text in (name, value):
            if isinstance(text, str) and not text.isascii() and replace_surrogates(text) != text:
                raise RecordError(
                    f"{place}: column {name!r} holds half a surrogate pair, {text[:60]!r}, which "
                    "cannot be written; replace it in the file"
                )


def _parsed(cells: pd.Series, place: Callable[[int], Place], *, blank: bool | None) -> pd.Series:
    """Read a column of verdicts."""
    codes, labels = _distinct(cells)
    parsed = np.empty(len(labels), dtype=object)
    for number, label in enumerate(labels):
        try:
            verdict = to_verdict(label)
        except ValueError as error:
            row = int(np.argmax(codes == number))
            raise RecordError(f"{place(row)}: column {cells.name!r}: {error}") from None
        parsed[number] = blank if verdict is None else verdict
    return pd.Series(parsed[codes], index=cells.index, dtype="boolean")
