"""The rows of a SQL dump as Arrow batches of the wanted columns."""

import os
import warnings
from collections.abc import Sequence

from surface_consistency.errors import TruncatedDumpWarning
from surface_consistency.wikimedia.sql._window import Window
from surface_consistency.wikimedia.sql.rows import SqlRows, first_table
from surface_consistency.wikimedia.sql.tables import SqlTable
from surface_consistency.wikimedia.streams import DumpStream, ProgressHook, open_dump

__all__ = ["read_create_table", "read_sql"]


def read_create_table(source: str | os.PathLike[str] | DumpStream) -> SqlTable:
    """Read which table a SQL dump holds.

    Of a dump that is cut off or damaged later on this says nothing: reading its rows does.

    Args:
        source: The dump, or a stream of it, which is read as far as needed.

    Returns:
        The table of the first CREATE TABLE.

    Raises:
        SourceNotFoundError: If there is no such file.
        DumpError: If the dump is damaged before its CREATE TABLE, or has none.
    """
    if isinstance(source, DumpStream):
        return first_table(Window(source))
    with warnings.catch_warnings(), open_dump(source, allow_truncated=True, threads=1) as stream:
        warnings.simplefilter("ignore", TruncatedDumpWarning)
        return first_table(Window(stream))


def read_sql(
    path: str | os.PathLike[str],
    columns: Sequence[str],
    *,
    allow_truncated: bool = False,
    progress: ProgressHook | None = None,
    threads: int | None = None,
) -> SqlRows:
    """Read some columns of a SQL dump.

    The dump's own CREATE TABLE says where a column stands and what it holds: integers become int64
    (`bigint unsigned` uint64), `float` and `double` float64, and all else binary: strings, enums
    and timestamps as they are stored, decimals as they are written. Memory holds a stretch of the
    dump and a batch, however long an INSERT is.

    Args:
        path: The dump; plain, gzip or bzip2.
        columns: Names of the wanted columns; the batches have them in this order.
        allow_truncated: Keep what came before the place where the dump is cut off or damaged, and
            warn, rather than raise.
        progress: Called as the dump is read.
        threads: How many threads may unpack bzip2; as many as there are processors when None.

    Returns:
        An iterator of record batches, which counts its rows.

    Raises:
        SourceNotFoundError: If there is no such file.
        ColumnNotFoundError: If the table lacks a column; the message names those it has.
        DumpError: If the dump is damaged before its CREATE TABLE, or has none. In iteration: if it
            is cut off, or a row breaks the table's form; the message names the file, the byte, and
            how many rows came before.
        ValueError: If no column is asked for, or one twice.
        MissingDependencyError: If pyarrow is not installed.

    Warns:
        TruncatedDumpWarning: If the dump is cut off or damaged and that is allowed; once.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = Path(folder.name, "page.sql")
        >>> _ = path.write_bytes(
        ...     b"CREATE TABLE `page` (`page_id` int(8), `page_title` varbinary(255));"
        ...     b"INSERT INTO `page` VALUES (1,'A_(b),(c)'),(2,NULL);"
        ... )
        >>> [batch.to_pylist() for batch in read_sql(path, ["page_title"])]
        [[{'page_title': b'A_(b),(c)'}, {'page_title': None}]]
        >>> folder.cleanup()
    """
    if not columns or len(set(columns)) != len(columns):
        raise ValueError(f"columns must name at least one column and none twice, got {columns!r}")
    stream = open_dump(path, allow_truncated=allow_truncated, progress=progress, threads=threads)
    try:
        return SqlRows(stream, columns)
    except BaseException:
        stream.close()
        raise
