"""DuckDB database and Arrow tables of a build."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from surface_consistency.errors import SurfaceConsistencyError
from surface_consistency.text import surface_from_title
from surface_consistency_build.wikimedia.construction.progress import StepCount, step_counts

if TYPE_CHECKING:
    import duckdb


@contextmanager
def open_database(
    folder: str | os.PathLike[str], *, memory_limit: str = "2GB", threads: int | None = None
) -> "Iterator[duckdb.DuckDBPyConnection]":
    """Open a database in memory that spills to a folder when the memory limit is reached.

    Args:
        folder: Folder for spilled data; the subfolder `spill` is created, and removed afterwards.
        memory_limit: Memory for DuckDB, such as "2GB".
        threads: Number of its threads; None for the number of processors.

    Yields:
        The connection.

    Raises:
        ValueError: If `memory_limit` is not a size.
        SurfaceConsistencyError: If the memory is not sufficient.
    """
    # The import is slow, and planning a build does not need it.
    import duckdb

    spill = Path(folder) / "spill"
    spill.mkdir(parents=True, exist_ok=True)
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory_limit,
        "temp_directory": str(spill),
        "preserve_insertion_order": "false",
    }
    if threads is not None:
        settings["threads"] = threads
    try:
        try:
            connection = duckdb.connect(":memory:", config=settings)
        except duckdb.Error as error:
            raise ValueError(
                f"memory_limit must be a size such as '2GB', got {memory_limit!r}: {error}"
            ) from error
        with connection:
            connection.execute("SET enable_progress_bar = false")
            yield connection
    except duckdb.OutOfMemoryException as error:
        raise SurfaceConsistencyError(
            f"DuckDB's {memory_limit} of memory, and the disk of {spill}, are not enough; give a "
            f"larger memory_limit, fewer threads or more disk: {str(error).splitlines()[0]}"
        ) from error
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def quoted(text: str) -> str:
    """Write a text as an SQL literal.

    Args:
        text: Any text.

    Returns:
        The literal, quotes included.

    Examples:
        >>> quoted("it's")
        "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def count_of(connection: "duckdb.DuckDBPyConnection", query: str) -> int:
    """Count rows.

    Args:
        connection: The database.
        query: A table's name or a query in parentheses.

    Returns:
        The number of rows.
    """
    row = connection.execute(f"SELECT count(*) FROM {query}").fetchone()
    return int(row[0]) if row else 0


def keep_rows(
    connection: "duckdb.DuckDBPyConnection",
    table: str,
    query: str,
    reasons: Mapping[str, str],
    *,
    step: str,
    unit: str,
    columns: str,
) -> list[StepCount]:
    """Create a table of the rows to which no reason for exclusion applies, and count the others.

    Args:
        connection: The database.
        table: Name of the table to create.
        query: Query that returns the rows.
        reasons: Reason for exclusion to an SQL condition over the query's columns; the first
            condition that is true counts; NULL counts as false.
        step: Name of the step.
        unit: Unit of the rows.
        columns: Columns of the table, as in SELECT.

    Returns:
        One count per reason with rows, or else one count without a reason.
    """
    cases = " ".join(f"WHEN {test} THEN {place}" for place, test in enumerate(reasons.values()))
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE checked_rows AS "
        f"SELECT {columns}, (CASE {cases} END)::UTINYINT AS reason FROM ({query})"
    )
    n_by_reason = dict(
        connection.execute("SELECT reason, count(*) FROM checked_rows GROUP BY reason").fetchall()
    )
    connection.execute(
        f"CREATE OR REPLACE TABLE {table} AS "
        "SELECT * EXCLUDE (reason) FROM checked_rows WHERE reason IS NULL"
    )
    connection.execute("DROP TABLE checked_rows")
    rows_out = n_by_reason.pop(None, 0)
    rows_in = rows_out + sum(n_by_reason.values())
    removed = {list(reasons)[place]: n_rows for place, n_rows in sorted(n_by_reason.items())}
    return step_counts(step, unit, rows_in, rows_out, removed)


_GROUP_ROWS = 1 << 18
# `surface_from_title` changes a parenthesis at the end, and white space of any script.
_SPECIAL = (
    r"\)$|^ | $|[\x00-\x1f\x7f-\xa0\x{1680}\x{2000}-\x{200f}\x{2028}-\x{202f}\x{205f}\x{3000}]"
)
TABLES: dict[str, dict[str, str]] = {
    "pages": {"page_id": "int64", "title": "string", "surface": "string", "is_redirect": "bool"},
    "redirects": {
        "page_id": "int64",
        "target": "string",
        "target_namespace": "int64",
        "is_interwiki": "bool",
        "is_section": "bool",
    },
    "page_props": {"page_id": "int64", "entity": "int64", "is_disambiguation": "bool"},
    "category_targets": {"target_id": "int64", "label": "string"},
    "categories": {"page_id": "int64", "label": "string"},
    "entities": {"id": "int64", "label": "string", "title": "string", "surface": "string"},
    "aliases": {"id": "int64", "alias": "string"},
    "claims": {"subject": "int64", "property": "int64", "object": "int64"},
    "views": {"title": "string", "views": "int64"},
}
"""Staged table to its columns and their Arrow types."""


class Tally:
    """Counts of rows read, kept, and dropped by reason."""

    def __init__(self) -> None:
        self.n_in = 0
        self.n_out = 0
        self.removed: dict[str, int] = {}

    def drop(self, reason: str, n_rows: int) -> None:
        """Count dropped rows."""
        self.removed[reason] = self.removed.get(reason, 0) + n_rows


class TableWriter:
    """Writes Parquet in row groups of equal size, independent of the size of the batches."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = schema
        self._writer = pq.ParquetWriter(
            path, schema, compression="zstd", compression_level=1, use_dictionary=False
        )
        self._batches: list[pa.RecordBatch] = []
        self._n_rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        self._batches.append(batch)
        self._n_rows += batch.num_rows
        if self._n_rows >= _GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        """Write the rows in memory."""
        if self._batches:
            self._writer.write_table(
                pa.Table.from_batches(self._batches, self._schema), _GROUP_ROWS
            )
        self._batches, self._n_rows = [], 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._flush()
        self._writer.close()


def text_column(
    batch: pa.RecordBatch, column: str, tally: Tally
) -> tuple[pa.RecordBatch, pa.Array]:
    """Decode a binary column; rows that are not UTF-8 are dropped and counted."""
    values = batch.column(column)
    try:
        return batch, values.cast(pa.string())
    except pa.ArrowInvalid:
        texts = values.to_pylist()
        good = pa.array([t is None or t.decode(errors="ignore").encode() == t for t in texts])
    tally.drop("title is not UTF-8", len(good) - pc.sum(good).as_py())
    readable = batch.filter(good)
    return readable, readable.column(column).cast(pa.string())


def surfaces_of(titles: pa.Array) -> pa.Array:
    """Apply `surface_from_title` to a column; loop only over titles with special characters."""
    plain = pc.replace_substring(titles, "_", " ")
    special = pc.fill_null(pc.match_substring_regex(plain, _SPECIAL), False)
    if not pc.any(special).as_py():
        return plain
    done = [surface_from_title(title) for title in titles.filter(special).to_pylist()]
    return pc.replace_with_mask(plain, special, pa.array(done, pa.string()))


def batch_of(columns: Mapping[str, Any], schema: pa.Schema) -> pa.RecordBatch:
    """Return columns in the order and the types of a schema."""
    arrays = [columns[field.name].cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def table_schema(table: str) -> pa.Schema:
    """Return the Arrow schema of a staged table."""
    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in TABLES[table].items()])
