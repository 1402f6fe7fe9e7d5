"""Final files: each appears whole or not at all.

Writing goes to a hidden sibling that takes the file's place when it is complete, so that a kill or
a full disk never leaves half a table or page under the file's name. Lines of records are written by
`surface_consistency.schemas.write_jsonl`, by the same means.
"""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.schemas.jsonl import atomic_path

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["atomic_path", "write_bytes", "write_csv", "write_json", "write_parquet", "write_text"]

_ROW_GROUP = 65_536


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file.

    Args:
        path: The file; its folder must exist. An older file of that name is replaced.
        content: Its content.

    Raises:
        DataError: If the disk is full or the file cannot be written; names the file.
    """
    with atomic_path(path) as part:
        part.write_bytes(content)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, UTF-8 with plain line feeds on every system.

    Args:
        path: The file; its folder must exist. An older file of that name is replaced.
        text: Its content.

    Raises:
        DataError: If the disk is full or the file cannot be written; names the file.
    """
    write_bytes(path, text.encode("utf-8"))


def write_json(path: str | os.PathLike[str], value: object, *, indent: int | None = 2) -> None:
    """Write a value as JSON, letters of all scripts as they are.

    Args:
        path: The file; its folder must exist. An older file of that name is replaced.
        value: Dictionaries, lists, strings, numbers, booleans and None.
        indent: Spaces a level; None for one line.

    Raises:
        TypeError: If JSON cannot hold the value.
        DataError: If the disk is full or the file cannot be written; names the file.
    """
    write_text(path, json.dumps(value, indent=indent, ensure_ascii=False) + "\n")


def write_csv(path: str | os.PathLike[str], frame: "pd.DataFrame") -> None:
    """Write a frame as CSV: a head line, no index, plain line feeds; missing values are empty.

    Args:
        path: The file; its folder must exist. An older file of that name is replaced.
        frame: The table.

    Raises:
        DataError: If the disk is full or the file cannot be written; names the file.
    """
    with atomic_path(path) as part:
        frame.to_csv(part, index=False, lineterminator="\n", encoding="utf-8")


def write_parquet(
    path: str | os.PathLike[str],
    table: "pd.DataFrame | pa.Table",
    *,
    schema: "pa.Schema | None" = None,
    row_group_size: int = _ROW_GROUP,
) -> None:
    """Write a frame or Arrow table as Parquet; the index of a frame is left out.

    Args:
        path: The file; its folder must exist. An older file of that name is replaced.
        table: The rows.
        schema: Names, order and types of the columns, metadata included; None takes the table's
            own. Columns that the schema lacks are left out.
        row_group_size: Rows a row group at most.

    Raises:
        DataError: If the table lacks a column of the schema, or a column holds what its type does
            not allow; if the disk is full or the file cannot be written. Names the file.
    """
    import pyarrow.parquet as pq

    with atomic_path(path) as part:
        pq.write_table(_to_arrow(table, schema, Path(path)), part, row_group_size=row_group_size)


def _to_arrow(table: Any, schema: "pa.Schema | None", path: Path) -> "pa.Table":  # noqa: ANN401
    """Make an Arrow table of a frame or table, cast to a schema."""
    import pyarrow as pa

    is_arrow = isinstance(table, pa.Table)
    if schema is None:
        return table if is_arrow else pa.Table.from_pandas(table, preserve_index=False)
    names = table.column_names if is_arrow else list(table.columns)
    missing = [name for name in schema.names if name not in names]
    if missing:
        raise ColumnNotFoundError(f"{path}: the table lacks the column {', '.join(missing)}")
    try:
        if is_arrow:
            return table.select(schema.names).cast(schema)
        arrow = pa.Table.from_pandas(table[schema.names], schema=schema, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataError(f"{path}: a column holds what its type does not allow: {error}") from error
    return arrow.replace_schema_metadata(schema.metadata)
