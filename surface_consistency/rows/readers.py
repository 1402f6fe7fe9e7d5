"""Readers of data files by format. Rows are streamed, and errors name file and line."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from surface_consistency import reading
from surface_consistency.errors import DataError, RecordError
from surface_consistency.rows.columnar import check_cells, open_parquet

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH: Final = 4096
_REPAIR: Final = "repair the file (several objects are written as one per line, or in a list)"


class Place(NamedTuple):
    """Position of a row, for messages."""

    source: str
    """File, or a name for rows that come from memory."""

    number: int
    """Line of a text file, otherwise the row; from 1."""

    def __str__(self) -> str:
        return f"{self.source}:{self.number}"


Row = tuple[Place, Mapping[str, object]]
"""A row by column name, and its position."""


def read_rows(path: Path) -> Iterator[Row]:
    """Read the rows of a data file by its suffix.

    Args:
        path: A `.parquet`, `.jsonl`, `.ndjson`, `.json` (one object per line, a list of objects, or
            one object on several lines, which is one row), `.csv` or `.tsv` file; text files may be
            compressed (`.jsonl.gz`). In CSV and TSV every cell is text; "NA" and "null" are not
            missing.

    Yields:
        The rows in the order of the file. All formats except an object on several lines are read in
        bounded memory.

    Raises:
        SourceNotFoundError: If there is no such file.
        DataError: If the format is not one of these, or the content is not in the format of the
            suffix.
        RecordError: If a line cannot be read; the message names file and line.
    """
    reading.existing_file(path, "a data file", "*.jsonl")
    is_packed = path.suffix.lower() == ".gz"
    suffix = Path(path.stem if is_packed else path.name).suffix.lower()
    if suffix not in FORMATS or (is_packed and suffix == ".parquet"):
        raise DataError(
            f"cannot read {path}: the formats are {', '.join(FORMATS)}; text files may be "
            "compressed (.gz)"
        )
    source = str(path)
    for number, row in FORMATS[suffix](path):
        yield Place(source, number), row


def _json_rows(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Read one object per line, one list of objects, or one object on several lines (one row)."""
    is_list = reading.read_start(path).startswith(b"[")
    if not is_list and not _is_indented(path):
        yield from reading.json_objects(path)
        return
    rows: Iterable[tuple[int, Any]] = reading.json_items(path, remedy=_REPAIR)
    if not is_list:
        document = reading.read_document(path)
        rows = [(1, reading.parse_json(document, str(path), remedy=_REPAIR))]
    for number, row in rows:
        if not isinstance(row, dict):
            raise RecordError(
                f"{path}:{number}: an item of the list is one JSON object with a row's columns, "
                f"got {reading.shown(row)}"
            )
        yield number, row


def _is_indented(path: Path) -> bool:
    """Detect an object that is written on several lines, by the end of its first line."""
    line = next((line.strip() for _, line in reading.read_lines(path) if line.strip()), b"")
    return line.startswith(b"{") and line.endswith((b"{", b"[", b","))


def parquet_rows(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Read a Parquet file by batches: row number from 1, and the row in built-in Python values.

    Raises:
        DataError: If it is not a Parquet file.
        RecordError: If two of its columns have one name, it has more than `MOST_COLUMNS` columns, a
            text has more than `LONGEST_LINE` bytes, or the decoded file exceeds the limit of its
            size.
    """
    import pyarrow as pa

    number = 0
    try:
        with open_parquet(path, reading.VALUE_BYTES) as file:
            if file.num_row_groups == 0:  # pyarrow can fail on such a file.
                return
            for batch in file.iter_batches(batch_size=_BATCH):
                check_cells(batch, str(path))
                columns = [python_values(column) for column in batch.columns]
                for cells in zip(*columns, strict=True):
                    number += 1
                    yield number, dict(zip(batch.schema.names, cells, strict=True))
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path} is not a readable Parquet file: {str(error).rstrip('.')}; copy or rewrite it"
        ) from error


def python_values(column: "pa.Array | pa.ChunkedArray") -> list[Any]:
    """Convert an Arrow column to Python values, like its `to_pylist` but faster.

    Args:
        column: Values of any type; strings and lists of strings are converted fast.

    Returns:
        The values; equal strings that were converted together are one object.
    """
    import pyarrow as pa

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


FORMATS: Final[dict[str, Callable[[Path], Iterator[tuple[int, Mapping[str, object]]]]]] = {
    ".parquet": parquet_rows,
    ".jsonl": _json_rows,
    ".ndjson": _json_rows,
    ".json": _json_rows,
    ".csv": partial(reading.delimited_rows, delimiter=","),
    ".tsv": partial(reading.delimited_rows, delimiter="\t"),
}
"""Readers by file suffix: number of the line or row from 1, and the row."""
