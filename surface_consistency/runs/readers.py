"""Files of rows: one reader for each format, a few rows in memory at a time, bad places named."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import (
    delimited_rows,
    existing_file,
    json_objects,
    parse_json,
    read_document,
    read_start,
)

__all__ = ["FORMATS", "Place", "Row", "parquet_rows", "python_values", "read_rows"]

_BATCH: Final = 1024


class Place(NamedTuple):
    """Where a row stands, for messages."""

    source: str
    """File, or a name for rows that come from memory."""

    number: int
    """Line of a text file, row of anything else; from 1."""

    def __str__(self) -> str:
        return f"{self.source}:{self.number}"


Row = tuple[Place, Mapping[str, object]]
"""A row by column name, and where it stands."""


def read_rows(path: Path) -> Iterator[Row]:
    """Read the rows of a data file by its suffix.

    Args:
        path: A `.parquet`, `.jsonl`, `.ndjson`, `.json` (list of objects, or one object a line),
            `.csv` or `.tsv` file; those of text may be packed (`.jsonl.gz`). In CSV and TSV every
            cell is text: "NA" and "null" are names.

    Yields:
        The rows in the file's order. All formats but a `.json` list are read in bounded memory.

    Raises:
        SourceNotFoundError: If there is no such file.
        DataError: If the format is not one of these, or the file is not of its format.
        RecordError: If one line is broken; names file and line.
    """
    existing_file(path, "a data file", "*.jsonl")
    is_packed = path.suffix.lower() == ".gz"
    suffix = Path(path.stem if is_packed else path.name).suffix.lower()
    if suffix not in FORMATS or (is_packed and suffix == ".parquet"):
        raise DataError(
            f"cannot read {path}: the formats are {', '.join(FORMATS)}, and those of text packed "
            "(.gz)"
        )
    yield from FORMATS[suffix](path)


def _json_lines(path: Path) -> Iterator[Row]:
    """Read one object a line."""
    source = str(path)
    for number, row in json_objects(path):
        yield Place(source, number), row


def _json(path: Path) -> Iterator[Row]:
    """Read a list of objects, or lines of them under the same suffix."""
    if not read_start(path).startswith(b"["):
        yield from _json_lines(path)
        return
    rows = parse_json(read_document(path), str(path), remedy="repair the file")
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise RecordError(f"{path}:{number}: expected an object with a row's columns")
        yield Place(str(path), number), row


def _delimited(path: Path, delimiter: str) -> Iterator[Row]:
    """Read CSV or TSV with its header; cells stay text."""
    source = str(path)
    for number, row in delimited_rows(path, delimiter):
        yield Place(source, number), row


def parquet_rows(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Read a Parquet file batch by batch: row number from 1, and the row in plain Python values.

    Raises:
        DataError: If it is no Parquet file.
    """
    number = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_BATCH):
                columns = [python_values(column) for column in batch.columns]
                for cells in zip(*columns, strict=True):
                    number += 1
                    yield number, dict(zip(batch.schema.names, cells, strict=True))
    except pa.ArrowException as error:
        raise DataError(f"{path} is no readable Parquet file: {error}") from error


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Convert an Arrow column to plain Python values, as its `to_pylist` does but faster.

    Args:
        column: Values of any type; strings and lists of strings are the fast ones.

    Returns:
        The values; equal strings that were converted together are one object.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            return [value for chunk in column.chunks for value in python_values(chunk)]
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
        return values
    if pa.types.is_list(column.type) and pa.types.is_string(column.type.value_type):
        start = column.offsets[0].as_py()
        ends = (column.offsets.to_numpy() - start).tolist()
        texts = python_values(column.values.slice(start, ends[-1]))
        lists: list[Any] = [texts[a:b] for a, b in itertools.pairwise(ends)]
        if column.null_count:
            valid = column.is_valid().to_pylist()
            lists = [item if known else None for item, known in zip(lists, valid, strict=True)]
        return lists
    return column.to_pylist()  # type: ignore[no-any-return]


def _parquet(path: Path) -> Iterator[Row]:
    """Give the rows of a Parquet file their places."""
    source = str(path)
    for number, row in parquet_rows(path):
        yield Place(source, number), row


FORMATS: Final[dict[str, Callable[[Path], Iterator[Row]]]] = {
    ".parquet": _parquet,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json,
    ".csv": partial(_delimited, delimiter=","),
    ".tsv": partial(_delimited, delimiter="\t"),
}
"""Readers by file suffix."""
