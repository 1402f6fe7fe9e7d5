"""The rows of one INSERT in stretches: by the fast reader where it can, else by the slow."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from surface_consistency_build.wikimedia._sql_fast_rows import FastRows
from surface_consistency_build.wikimedia._sql_statements import (
    MAX_STATEMENT_BYTES,
    DumpFaultError,
    Window,
)
from surface_consistency_build.wikimedia.sql_tables import (
    STRING,
    SqlColumn,
    ValueKind,
    decode_literal,
)

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BatchBuilder", "RowReader", "SlowResult", "SlowRows", "Value"]

Value = bytes | int | float | None

_PREFIX = rb"(?:_\w++\s*+|[xX])?+"
_VALUE = rb"(?:%b%b|[^\s,()'\\`\"]++)" % (_PREFIX, STRING)
_NEXT_VALUE = re.compile(_VALUE, re.DOTALL)
_OPEN_STRING = re.compile(_PREFIX + rb"'[^'\\]*+(?:(?:\\.|'')[^'\\]*+)*+\\?+\Z", re.DOTALL)
_SPACE = re.compile(rb"\s*+")
_BATCH_ROWS = 1 << 16
_BATCH_BYTES = 1 << 24
_STRETCH_BYTES = 1 << 18
_LEAST_FAST_BYTES = 1 << 13
_END = re.compile(rb";\n")


@dataclass(frozen=True, slots=True)
class SlowResult:
    """What was read of one stretch."""

    rows: list[tuple[Value, ...]]
    """The wanted values of each row."""
    end: int
    """Where the row after the last one starts."""
    is_statement_over: bool
    """Whether the last row was the INSERT's last."""
    fault: str | None = None
    """What is wrong with a value of the row that starts at `end`."""


class SlowRows:
    """Reads rows of one shape."""

    def __init__(self, n_columns: int, wanted: Sequence[int], kinds: Sequence[ValueKind]) -> None:
        fields = [
            rb"\s*+(%b)\s*+" % _VALUE if position in wanted else rb"\s*+%b\s*+" % _VALUE
            for position in range(n_columns)
        ]
        self._row = re.compile(rb"\s*+\(%b\)\s*+([,;])" % b",".join(fields), re.DOTALL)
        self._n_columns = n_columns
        self._kinds = tuple(kinds)

    def parse(self, data: bytes, start: int, stop: int) -> SlowResult:
        """Read the rows that start in a stretch and are whole."""
        rows: list[tuple[Value, ...]] = []
        position = start
        while position < stop:
            found = self._row.match(data, position)
            if found is None:
                break
            *literals, separator = found.groups()
            try:
                rows.append(tuple(map(decode_literal, literals, self._kinds)))
            except ValueError as error:
                return SlowResult(rows, position, False, str(error))
            position = found.end()
            if separator == b";":
                return SlowResult(rows, position, True)
        return SlowResult(rows, position, False)

    def fault(self, data: bytes, start: int) -> str | None:
        """Say what is wrong with an unreadable row; None if the bytes end before that."""
        place = _after_space(data, start)
        if place == len(data):
            return None
        if data[place] != ord("("):
            return f"a row should start with '(', not {data[place : place + 40]!r}"
        n_values = 0
        while True:
            place = _after_space(data, place + 1)
            if place == len(data) or _OPEN_STRING.match(data, place):
                return None
            value = _NEXT_VALUE.match(data, place)
            if value is None:
                return f"value {n_values + 1} is no literal: {data[place : place + 40]!r}"
            n_values += 1
            place = _after_space(data, value.end())
            if place == len(data):
                return None
            if data[place] != ord(","):
                break
        return self._fault_at_end(data, place, n_values)

    def _fault_at_end(self, data: bytes, place: int, n_values: int) -> str | None:
        """Say what is wrong where a row ends."""
        if data[place] != ord(")"):
            return f"value {n_values} is followed by {data[place : place + 40]!r}"
        if n_values != self._n_columns:
            return f"it has {n_values} values, not {self._n_columns}"
        after = _after_space(data, place + 1)
        if after == len(data):
            return None
        return f"it is followed by {data[after : after + 40]!r}, not ',' or ';'"


def _after_space(data: bytes, start: int) -> int:
    """Return where white space ends."""
    found = _SPACE.match(data, start)
    return found.end() if found else start


class BatchBuilder:
    """Gathers columns until they make a batch."""

    def __init__(self, columns: Sequence[SqlColumn]) -> None:
        import pyarrow as pa

        kinds = {"integer": pa.int64(), "unsigned": pa.uint64(), "float": pa.float64()}
        self.schema = pa.schema(
            [(each.name, kinds.get(each.kind, pa.binary())) for each in columns]
        )
        """The batches' schema."""
        self.total_rows = 0
        """Rows of all batches, with the one in the making."""
        self._parts: list[list[pa.Array]] = [[] for _ in columns]
        self._n_rows = 0
        self._n_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether a batch should be taken."""
        return self._n_rows >= _BATCH_ROWS or self._n_bytes >= _BATCH_BYTES

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to take."""
        return self._n_rows == 0

    def add_columns(self, columns: "Sequence[pa.Array]", n_rows: int) -> None:
        """Add rows that are in columns already."""
        for parts, column in zip(self._parts, columns, strict=True):
            parts.append(column)
            self._n_bytes += column.nbytes
        self._n_rows += n_rows
        self.total_rows += n_rows

    def add_rows(self, rows: Sequence[tuple[Value, ...]]) -> None:
        """Add rows one by one."""
        import pyarrow as pa

        if rows:
            columns = zip(*rows, strict=True)
            types = self.schema.types
            self.add_columns(
                [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)],
                len(rows),
            )

    def take(self) -> "pa.RecordBatch":
        """Return the batch and start the next."""
        import pyarrow as pa

        columns = [pa.concat_arrays(parts) for parts in self._parts]
        self._parts = [[] for _ in columns]
        self._n_rows = self._n_bytes = 0
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


class RowReader:
    """Reads rows of one shape from where a window stands, into batches."""

    def __init__(
        self,
        names: Sequence[str],
        columns: Sequence[SqlColumn],
        window: Window,
        builder: BatchBuilder,
    ) -> None:
        positions = [names.index(column.name) for column in columns]
        wanted = sorted(positions)
        kinds = [columns[positions.index(position)].kind for position in wanted]
        self._order = [wanted.index(position) for position in positions]
        self._fast = FastRows(len(names), wanted, kinds)
        self._slow = SlowRows(len(names), wanted, kinds)
        self._window = window
        self._builder = builder

    def read_stretch(self) -> Literal["more", "over", "cut off"]:
        """Read rows: "over" after the INSERT's last, "cut off" if the dump ends before that.

        A row that is not as it should be raises `DumpFaultError`; those before it have been added.
        """
        window = self._window
        if window.unused < _STRETCH_BYTES:
            window.fill()
        size = _STRETCH_BYTES
        while True:
            start = window.position
            is_over = self._parse(size)
            if is_over:
                return "over"
            if window.position > start:
                return "more"
            if size < window.unused:
                size *= 2
            elif not self._hold_more():
                return "cut off"

    def _parse(self, size: int) -> bool:
        """Read the whole rows of a stretch; say whether the INSERT ended."""
        window = self._window
        data, start = window.data, window.position
        stop = min(start + size, len(data))
        # mysqldump escapes line ends within strings; where one is not, the rows are found as well.
        end = _END.search(data, start, stop)
        stop = end.end() - 1 if end else stop
        if stop - start >= _LEAST_FAST_BYTES:
            fast = self._fast.parse(data, start, stop)
            if fast is not None and fast.n_rows:
                self._builder.add_columns([fast.columns[i] for i in self._order], fast.n_rows)
                window.position = fast.end
                return fast.is_statement_over
        slow = self._slow.parse(data, start, stop)
        self._builder.add_rows([tuple([row[i] for i in self._order]) for row in slow.rows])
        window.position = slow.end
        if slow.fault:
            raise DumpFaultError(f"a row has a wrong value: {slow.fault}")
        return slow.is_statement_over

    def _hold_more(self) -> bool:
        """Hold more of the dump, if a row that is not whole could become so."""
        window = self._window
        fault = self._slow.fault(window.data, window.position)
        if fault:
            raise DumpFaultError(f"a row is broken: {fault}")
        if window.unused > MAX_STATEMENT_BYTES:
            raise DumpFaultError(f"a row is longer than {MAX_STATEMENT_BYTES:,} bytes")
        return window.fill()
