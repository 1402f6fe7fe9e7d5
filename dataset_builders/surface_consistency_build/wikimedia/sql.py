"""SQL dumps as `mysqldump` writes them: the table's columns, and its rows as Arrow batches."""

import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Unpack

import pyarrow as pa

from surface_consistency.errors import ColumnNotFoundError, DataError, DataWarning
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
        """Read the rows of all INSERTs, and stop after each stretch."""
        while True:
            statement = next_statement(self._window)
            if isinstance(statement, InsertInto):
                yield from self._rows(statement)
            elif isinstance(statement, CreateTable):
                self._refuse_other(_parsed(statement).name)
            elif statement == "end":
                self._check_end()
                return
            else:
                raise DumpFaultError("the dump ends within a statement")

    def _check_end(self) -> None:
        """Refuse a dump that ends with a statement, but not as its start announces."""
        end = self._window.end
        if end == "lacking" and not self._stream.is_truncated:
            raise DumpFaultError(
                "the dump lacks the end that mysqldump writes ('-- Dump completed', before it what "
                "is set back), so it is cut off"
            )
        if end == "unmarked":
            self._stream.end_unmarked(
                "the dump begins without mysqldump's comments and settings (--compact, or another "
                "program), so that no '-- Dump completed' marks its end"
            )

    def _rows(self, insert: InsertInto) -> Iterator[None]:
        """Read the rows of one INSERT."""
        self._refuse_other(insert.table)
        names = insert.columns or self._table.names
        missing = [column.name for column in self._columns if column.name not in names]
        if missing:
            raise DumpFaultError(f"an INSERT of {', '.join(names)} lacks {', '.join(missing)}")
        reader = self._readers.get(names)
        if reader is None:
            reader = RowReader(names, self._columns, self._window, self._builder)
            self._readers[names] = reader
        while (state := reader.read_stretch()) == "more":
            yield
        if state == "cut off":
            raise DumpFaultError("the dump ends within an INSERT")
        yield

    def _refuse_other(self, name: str) -> None:
        """Refuse a second table."""
        if name != self._table.name:
            raise DumpFaultError(
                f"there is the table {name} beside {self._table.name}; dump one table a file"
            )

    def _count(self) -> str:
        """Name the rows read so far."""
        return f"{self._builder.total_rows:,} rows of {self._table.name}"


def first_table(window: Window) -> SqlTable:
    """Use up a dump to its first CREATE TABLE.

    Args:
        window: The dump, at its start.

    Returns:
        The table.

    Raises:
        DataError: If there is none, or rows come before it.
    """
    try:
        statement = next_statement(window)
        if isinstance(statement, InsertInto):
            raise DumpFaultError(
                f"an INSERT INTO {statement.table} comes before any CREATE TABLE, which says what "
                "the columns are; dump the table with its definition"
            )
        if not isinstance(statement, CreateTable):
            raise DumpFaultError("no CREATE TABLE is in the dump, or none that is whole")
        return _parsed(statement)
    except DumpFaultError as fault:
        raise DataError(
            f"{window.stream.path}: {fault} at plain byte {window.offset:,}. Give the dump of a "
            "table, as mysqldump writes it, or fetch the file again."
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
    """Find the columns asked for."""
    known = {column.name: column for column in table.columns}
    missing = [name for name in names if name not in known]
    if missing:
        raise ColumnNotFoundError(
            f"{stream.path}: the table {table.name} has no column {', '.join(missing)}; it has "
            f"{', '.join(known)}. Give the dump of a table that has them."
        )
    return tuple(known[name] for name in names)


def read_create_table(source: str | os.PathLike[str] | DumpStream) -> SqlTable:
    """Read which table a SQL dump holds.

    Of a dump that is cut off or damaged later on this says nothing: reading its rows does.

    Args:
        source: The dump, or a stream of it, which is read as far as needed.

    Returns:
        The table of the first CREATE TABLE.

    Raises:
        SourceNotFoundError: If there is no such file.
        DataError: If the dump is damaged before its CREATE TABLE, or has none.
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

    The dump's own CREATE TABLE says where a column stands and what it holds: integers become int64
    (`bigint unsigned` uint64), `float` and `double` float64, and all else binary: strings, enums
    and timestamps as they are stored, decimals as they are written. Memory holds a stretch of the
    dump and a batch, however long an INSERT is.

    A dump with mysqldump's comments must end with "-- Dump completed", one with its settings alone
    (--skip-comments) with what sets them back. Without both (--compact, other programs) a plain
    file that was cut where a statement ends looks whole, and is read as if it were.

    Args:
        path: The dump; plain, gzip or bzip2.
        columns: Names of the wanted columns; the batches have them in this order.
        options: Whether a damaged dump is read as far as it goes, whether a plain one of which
            nothing tells that it is whole is refused, who hears of progress, and how many threads
            unpack: `MarkedReadOptions`.

    Returns:
        The record batches, none of them empty.

    Raises:
        SourceNotFoundError: If there is no such file.
        ColumnNotFoundError: If the table lacks a column; the message names those it has.
        DataError: If the dump is damaged before its CREATE TABLE, or has none. In iteration: if it
            is cut off, or a row breaks the table's form; the message names the file, the byte, and
            how many rows came before.
        ValueError: If no column is asked for, or one twice.

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
        raise ValueError(f"columns must name at least one column and none twice, got {columns!r}")
    stream = open_dump(path, **options)
    try:
        return _SqlReader(stream, columns).batches()
    except BaseException:
        stream.close()
        raise
