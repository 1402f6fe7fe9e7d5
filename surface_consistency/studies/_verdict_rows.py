"""Rows of verdicts from a file, a data set, a frame or memory, each with its place."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from surface_consistency.data.readers import read_rows
from surface_consistency.errors import DataError, RecordError
from surface_consistency.metrics.outcome_frames import to_verdict

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PlacedRow", "Source", "parse_cells", "placed_rows"]

Source: TypeAlias = (
    "str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | pd.DataFrame"
    " | Iterable[Mapping[str, Any]]"
)
"""A file, two files, a frame, a `datasets.Dataset`, or rows."""

PlacedRow: TypeAlias = tuple[str, dict[str, Any]]
"""Where a row stands, for messages, and its cells."""


def placed_rows(source: Any) -> list[PlacedRow]:  # noqa: ANN401 - a frame or data set by its looks
    """Read all rows of a source."""
    if isinstance(source, str | os.PathLike):
        return [(str(place), dict(row)) for place, row in read_rows(Path(source))]
    if hasattr(source, "keys") and hasattr(source, "column_names"):
        raise DataError(
            f"the data set has several splits, {', '.join(map(str, source.keys()))}: give one of "
            "them, as in data['test']"
        )
    if hasattr(source, "to_dict") and hasattr(source, "iloc"):
        source = source.to_dict(orient="records")
    rows = []
    for number, row in enumerate(source, start=1):
        if not isinstance(row, Mapping):
            raise DataError(f"row {number} is no mapping but {type(row).__name__}")
        rows.append((f"row {number}", dict(row)))
    return rows


def parse_cells(rows: Iterable[PlacedRow], column: str) -> None:
    """Read a column of verdicts in place; a row without the column stays so."""
    for place, row in rows:
        if column in row:
            try:
                row[column] = to_verdict(row[column])
            except ValueError as error:
                raise RecordError(f"{place}: column {column!r}: {error}") from None
