"""Read SQL dumps of `mysqldump`: the table's columns, and its rows as Arrow batches."""

import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Unpack

import pyarrow as pa

from surface_consistency.errors import ColumnNotFoundError, DataError, DataWarning
from surface_consistency.reading import first_names
from surface_consistency_build.wikimedia._sql_rows import BatchBuilder, RowReader
from surface_consistency_build.wikimedia._sql_statements import (
    CreateTable,
    DumpFaultError,
    InsertInto,
    Window,
    next_statement,
)
from surface_consistency_build.wikimedia.sql_tables import SqlColumn, SqlTable, parse_create_table
from surface_consistency_build.wikimedia.streams import DumpStream, MarkedReadOptions, open_dump


class _SqlReader:
    """Reads the rows of a table into batches."""

    def __init__(self, stream: DumpStream, columns: Sequence[str]) -> None:
        self._stream = stream
        self._window = Window(stream)
        self._table = first_table(self._window)
        self._columns = _wanted_columns(self._table, columns, stream)
        self._builder = BatchBuilder(self._columns)
        self._readers: dict[tuple[str, ...], RowReader] = {}

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield batches until the dump ends."""
        with self._stream:
            try:
                for _ in self._stretches():
                    if self._builder.is_full:
                        yield self._builder.take()
            except DumpFaultError as fault:
                self._stream.end_early(
                    f"{fault} at plain byte {self._window.offset:,}, after {self._count()}"
                )
            except DataError as error:
                raise DataError(f"{error} {self._count()} were read before.") from None
            if not self._builder.is_empty:
                yield self._builder.take()

    def _stretches(self) -> Iterator[None]:
        """Read the rows of all INSERTs, and yield after each part."""
        while True:
            statement = next_statement(self._window)
            if isinstance(statement, InsertInto):
                yield from self._rows(statement)
            elif isinstance(statement, CreateTable):
                self._reject_other(_parsed(statement).name)
            elif statement == "end":
                self._check_end()
                return
            else:
                raise DumpFaultError("the dump ends within a statement")

    def _check_end(self) -> None:
        """Reject a dump that ends with a statement, without the end marker implied by its start."""
        end = self._window.end
        if end == "lacking" and not self._stream.is_truncated:
            raise DumpFaultError(
                "the dump lacks the end that mysqldump writes ('-- Dump completed', after "
                "restoring the settings), so it is cut off"
            )
        if end == "unmarked":
            self._stream.end_unmarked(
                "the dump begins without mysqldump's comments and settings (--compact, or another "
                "program), so it has no '-- Dump completed' as an end marker"
            )

    def _rows(self, insert: InsertInto) -> Iterator[None]:
        """Read the rows of one INSERT."""
        self._reject_other(insert.table)
        names = insert.columns or self._table.names
        missing = [column.name for column in self._columns if column.name not in names]
        if missing:
            raise DumpFaultError(f"an INSERT of {first_names(names)} lacks {', '.join(missing)}")
        reader = self._readers.get(names)
        if reader is None:
            reader = RowReader(names, self._columns, self._window, self._builder)
            self._readers[names] = reader
        while (state := reader.read_stretch()) == "more":
            yield
        if state == "cut off":
            raise DumpFaultError("the dump ends within an INSERT")
        yield

    def _reject_other(self, name: str) -> None:
        """Reject a second table."""
        if name != self._table.name:
            raise DumpFaultError(
                f"the dump contains the tables {self._table.name} and {name}; dump one table per "
                "file"
            )

    def _count(self) -> str:
        """Return a text with the number of rows read so far."""
        return f"{self._builder.total_rows:,} rows of {self._table.name}"


def first_table(window: Window) -> SqlTable:
    """Read a dump up to its first CREATE TABLE.

    Args:
        window: The dump, at its start.

    Returns:
        The table.

    Raises:
        DataError: If the CREATE TABLE is missing, or rows precede it.
    """
    try:
        statement = next_statement(window)
        if isinstance(statement, InsertInto):
            raise DumpFaultError(
                f"an INSERT INTO {statement.table} precedes the CREATE TABLE, which defines the "
                "columns; dump the table with its definition"
            )
        if not isinstance(statement, CreateTable):
            raise DumpFaultError("the dump has no complete CREATE TABLE")
        return _parsed(statement)
    except DumpFaultError as fault:
        raise DataError(
            f"{window.stream.path}: {fault} at plain byte {window.offset:,}. Give the dump of a "
            "table, as mysqldump writes it, or download the file again."
        ) from None


def _parsed(statement: CreateTable) -> SqlTable:
    """Read a CREATE TABLE within a dump."""
    try:
        return parse_create_table(statement.statement)
    except DataError as error:
        raise DumpFaultError(str(error)) from None


def _wanted_columns(
    table: SqlTable, names: Sequence[str], stream: DumpStream
) -> tuple[SqlColumn, ...]:
    """Return the requested columns."""
    known = {column.name: column for column in table.columns}
    missing = [name for name in names if name not in known]
    if missing:
        raise ColumnNotFoundError(
            f"{stream.path}: the table {table.name} has no column {', '.join(missing)}; it has "
            f"{', '.join(known)}. Give the dump of a table that has them."
        )
    return tuple(known[name] for name in names)


def read_create_table(source: str | os.PathLike[str] | DumpStream) -> SqlTable:
    """Read the definition of the table in a SQL dump.

    Damage after the definition is not detected here, but when the rows are read.

    Args:
        source: The dump, or a stream of it, which is read only as far as needed.

    Returns:
        The table of the first CREATE TABLE.

    Raises:
        SourceNotFoundError: If the file does not exist.
        DataError: If the dump is damaged before its CREATE TABLE, or has no CREATE TABLE.
    """
    if isinstance(source, DumpStream):
        return first_table(Window(source))
    with warnings.catch_warnings(), open_dump(source, allow_truncated=True, threads=1) as stream:
        warnings.simplefilter("ignore", DataWarning)
        return first_table(Window(stream))


def read_sql(
    path: str | os.PathLike[str], columns: Sequence[str], **options: Unpack[MarkedReadOptions]
) -> Iterator[pa.RecordBatch]:
    """Read some columns of a SQL dump.

    The dump's CREATE TABLE defines the position and type of each column: integers become int64
    (`bigint unsigned` uint64), `float` and `double` float64, and all other types binary: strings,
    enums and timestamps as they are stored, decimals as they are written. Only a part of the dump
    and one batch are in memory, however long an INSERT is.

    A dump with mysqldump's comments must end with "-- Dump completed", and a dump with only its
    settings (--skip-comments) with statements that restore them. Without both (--compact, other
    programs) an uncompressed file that was cut at the end of a statement is read as if it were
    complete.

    Args:
        path: The dump; plain, gzip or bzip2.
        columns: Names of the wanted columns; the batches have them in this order.
        options: Handling of damaged dumps and of uncompressed dumps without an end marker; hook for
            progress; number of threads: `MarkedReadOptions`.

    Returns:
        The record batches, without empty ones.

    Raises:
        SourceNotFoundError: If the file does not exist.
        ColumnNotFoundError: If the table lacks a column; the message lists its columns.
        DataError: If the dump is damaged before its CREATE TABLE, or has no CREATE TABLE. In
            iteration: if it is cut off, or a row does not match the table; the message contains the
            file, the byte and the number of rows before it.
        ValueError: If `columns` is empty or contains a name twice.

    Warns:
        DataWarning: If the dump is cut off or damaged and that is allowed; once.

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
        raise ValueError(f"columns must contain one or more distinct names, got {columns!r}")
    stream = open_dump(path, **options)
    try:
        return _SqlReader(stream, columns).batches()
    except BaseException:
        stream.close()
        raise
