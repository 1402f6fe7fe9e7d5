"""An embedded DuckDB that spills to the disk."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from surface_consistency.errors import SurfaceConsistencyError
from surface_consistency_build.wikimedia.construction.progress import StepCount, step_counts

if TYPE_CHECKING:
    import duckdb


@contextmanager
def open_database(
    folder: str | os.PathLike[str], *, memory_limit: str = "2GB", threads: int | None = None
) -> "Iterator[duckdb.DuckDBPyConnection]":
    """Open a database in memory that goes on in a folder when memory ends.

    Args:
        folder: Where to spill; the subfolder `spill` is made, and removed afterwards.
        memory_limit: Memory for DuckDB, such as "2GB".
        threads: Its threads; as many as there are processors when None.

    Yields:
        The connection.

    Raises:
        ValueError: If `memory_limit` is no size.
        SurfaceConsistencyError: If the memory is not enough for what is done.
    """
    # Slow to import, and not needed to plan a build.
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
    """Make a table of the rows for which no reason to go holds, and count the others.

    Args:
        connection: The database.
        table: The table to make.
        query: A query whose rows are judged.
        reasons: Why rows go, to the SQL condition for it over the query's columns; the first that
            holds counts; NULL counts as false.
        step: Name of the step.
        unit: What the rows are.
        columns: Columns of the table, as in SELECT.

    Returns:
        One count a reason that held; one without a reason when none did.
    """
    cases = " ".join(f"WHEN {test} THEN {place}" for place, test in enumerate(reasons.values()))
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE judged AS "
        f"SELECT {columns}, (CASE {cases} END)::UTINYINT AS reason FROM ({query})"
    )
    n_by_reason = dict(
        connection.execute("SELECT reason, count(*) FROM judged GROUP BY reason").fetchall()
    )
    connection.execute(
        f"CREATE OR REPLACE TABLE {table} AS "
        "SELECT * EXCLUDE (reason) FROM judged WHERE reason IS NULL"
    )
    connection.execute("DROP TABLE judged")
    rows_out = n_by_reason.pop(None, 0)
    rows_in = rows_out + sum(n_by_reason.values())
    removed = {list(reasons)[place]: n_rows for place, n_rows in sorted(n_by_reason.items())}
    return step_counts(step, unit, rows_in, rows_out, removed)
