"""Records as Parquet: columns are derived from the record class, and rows are validated."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import ValidationError

from surface_consistency.errors import RecordError, SourceNotFoundError
from surface_consistency.rows.readers import parquet_rows
from surface_consistency.runs.frames import arrow_schema
from surface_consistency.schemas import Record
from surface_consistency.schemas.jsonl import atomic_path, describe_validation_error

if TYPE_CHECKING:
    import datasets

R = TypeVar("R", bound=Record)

_ROW_GROUP: Final = 8192


def make_features(record: type[Record]) -> datasets.Features:
    """Derive the columns of a data set from its record.

    Args:
        record: The record class. Strings (including literals), integers, floats and booleans become
            scalars, tuples become lists, records become structures; "or None" has no effect, since
            every column may contain nulls.

    Returns:
        The features, in the order of the fields.

    Raises:
        TypeError: If a field has a type that a column cannot have; names the field.

    Examples:
        >>> from surface_consistency.schemas import Message
        >>> make_features(Message)
        {'role': Value('string'), 'content': Value('string')}
    """
    import datasets

    return datasets.Features.from_arrow_schema(arrow_schema(record))


def to_parquet(
    path: str | os.PathLike[str], records: Iterable[Record], record: type[Record]
) -> int:
    """Write records as Parquet; the file is written atomically.

    Args:
        path: The file; its folder must exist. An older file of that name is replaced.
        records: The records; consumed 8,192 at a time, one row group each.
        record: Their class; its `make_features` are the columns.

    Returns:
        The number of records written.

    Raises:
        TypeError: If an item is of another class.
        DataError: If the disk is full or the file cannot be written; names the file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = make_features(record).arrow_schema
    stream, count = iter(records), 0
    with atomic_path(path) as part, pq.ParquetWriter(part, schema) as writer:
        while items := list(islice(stream, _ROW_GROUP)):
            wrong = [type(item).__name__ for item in items if type(item) is not record]
            if wrong:
                raise TypeError(f"expected {record.__name__} records, got {wrong[0]}")
            rows = [item.model_dump() for item in items]
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))
            count += len(rows)
    return count


def read_parquet(path: str | os.PathLike[str], record: type[R]) -> Iterator[R]:
    """Read records from Parquet, in bounded memory.

    Args:
        path: The file.
        record: The class of every row.

    Yields:
        The records in the file's order.

    Raises:
        SourceNotFoundError: If there is no such file.
        DataError: If it is not a Parquet file.
        RecordError: If a row is not such a record; names file, row (from 1), field and value.
    """
    source = Path(path)
    if not source.is_file():
        raise SourceNotFoundError(f"file {source} not found; it needs rows of {record.__name__}")
    for number, row in parquet_rows(source):
        yield _record(row, record, source, number)


def _record(row: dict[str, object], record: type[R], source: Path, number: int) -> R:
    """Validate one row as JSON, so that strict records accept lists and objects."""
    try:
        return record.model_validate_json(json.dumps(row))
    except (TypeError, ValidationError) as error:
        reason = (
            describe_validation_error(error)
            if isinstance(error, ValidationError)
            else f"{error} (a column of a type that records do not have)"
        )
        raise RecordError(f"{source}:{number}: not a {record.__name__}: {reason}") from error
