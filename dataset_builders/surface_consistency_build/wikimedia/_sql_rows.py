"""Read the rows of one INSERT, one part of the dump at a time."""

import re
from collections.abc import Sequence
from typing import Literal

import pyarrow as pa

from surface_consistency_build.wikimedia._sql_statements import (
    MAX_STATEMENT_BYTES,
    DumpFaultError,
    Window,
)
from surface_consistency_build.wikimedia.sql_tables import STRING, SqlColumn, decode_literal

Value = bytes | int | float | None

_PREFIX = rb"(?:_\w++\s*+|[xX])?+"
_VALUE = rb"(?:%b%b|[^\s,()'\\`\"]++)" % (_PREFIX, STRING)
_NEXT_VALUE = re.compile(_VALUE, re.DOTALL)
_OPEN_STRING = re.compile(_PREFIX + rb"'[^'\\]*+(?:(?:\\.|'')[^'\\]*+)*+\\?+\Z", re.DOTALL)
_SPACE = re.compile(rb"\s*+")
_BATCH_ROWS = 1 << 16
_BATCH_BYTES = 1 << 24
_STRETCH_BYTES = 1 << 18


class RowReader:
    """Reads rows with the same columns from the position of a window into batches.

    Args:
        names: The columns of the INSERT, in its order.
        columns: The wanted columns.
        window: The dump.
        builder: Builder of the batches.
    """

    def __init__(
        self,
        names: Sequence[str],
        columns: Sequence[SqlColumn],
        window: Window,
        builder: "BatchBuilder",
    ) -> None:
        positions = [names.index(column.name) for column in columns]
        wanted = sorted(positions)
        self._kinds = [columns[positions.index(position)].kind for position in wanted]
        self._order = [wanted.index(position) for position in positions]
        fields = [
            rb"\s*+(%b)\s*+" % _VALUE if position in wanted else rb"\s*+%b\s*+" % _VALUE
            for position in range(len(names))
        ]
        self._row = re.compile(rb"\s*+\(%b\)\s*+([,;])" % b",".join(fields), re.DOTALL)
        self._n_columns = len(names)
        self._window = window
        self._builder = builder

    def read_stretch(self) -> Literal["more", "over", "cut off"]:
        """Read rows; return "over" after the INSERT's last row, "cut off" if the dump ends earlier.

        An invalid row raises `DumpFaultError`; the rows before it have been added.
        """
        window = self._window
        if window.unused < _STRETCH_BYTES:
            window.fill()
        size = _STRETCH_BYTES
        while True:
            start = window.position
            if self._read_rows(start + size):
                return "over"
            if window.position > start:
                return "more"
            if size < window.unused:
                size *= 2
            elif not self._read_more():
                return "cut off"

    def _read_rows(self, stop: int) -> bool:
        """Read the complete rows that start before a byte; return whether the INSERT ended."""
        window, is_over = self._window, False
        rows: list[list[Value]] = []
        try:
            while not is_over and window.position < stop:
                row = self._row.match(window.data, window.position)
                if row is None:
                    break
                *literals, separator = row.groups()
                values = [*map(decode_literal, literals, self._kinds)]
                rows.append([values[place] for place in self._order])
                window.position = row.end()
                is_over = separator == b";"
        except ValueError as error:
            raise DumpFaultError(f"a row has an invalid value: {error}") from None
        finally:
            self._builder.add_rows(rows)
        return is_over

    def _read_more(self) -> bool:
        """Read more of the dump, if that can complete an incomplete row."""
        window = self._window
        fault = self._fault(window.data, window.position)
        if fault:
            raise DumpFaultError(f"a row is broken: {fault}")
        if window.unused > MAX_STATEMENT_BYTES:
            raise DumpFaultError(f"a row is longer than {MAX_STATEMENT_BYTES:,} bytes")
        return window.fill()

    def _fault(self, data: bytes, start: int) -> str | None:
        """Describe the error in an unreadable row; None if the bytes end before it."""
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
                return f"value {n_values + 1} is not a literal: {data[place : place + 40]!r}"
            n_values += 1
            place = _after_space(data, value.end())
            if place == len(data):
                return None
            if data[place] != ord(","):
                break
        return self._fault_at_end(data, place, n_values)

    def _fault_at_end(self, data: bytes, place: int, n_values: int) -> str | None:
        """Describe the error at the end of a row."""
        if data[place] != ord(")"):
            return f"value {n_values} is followed by {data[place : place + 40]!r}"
        if n_values != self._n_columns:
            return f"it has {n_values} values, not {self._n_columns}"
        after = _after_space(data, place + 1)
        if after == len(data):
            return None
        return f"it is followed by {data[after : after + 40]!r}, not ',' or ';'"


def _after_space(data: bytes, start: int) -> int:
    """Return the position after white space."""
    space = _SPACE.match(data, start)
    return space.end() if space else start


class BatchBuilder:
    """Collects values per column and returns them as batches."""

    def __init__(self, columns: Sequence[SqlColumn]) -> None:
        kinds = {"integer": pa.int64(), "unsigned": pa.uint64(), "float": pa.float64()}
        self.schema = pa.schema(
            [(each.name, kinds.get(each.kind, pa.binary())) for each in columns]
        )
        """The batches' schema."""
        self.total_rows = 0
        """Rows of all batches, including the current one."""
        self._parts: list[list[pa.Array]] = [[] for _ in columns]
        self._n_rows = 0
        self._n_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether the current batch has its maximum size."""
        return self._n_rows >= _BATCH_ROWS or self._n_bytes >= _BATCH_BYTES

    @property
    def is_empty(self) -> bool:
        """Whether the current batch has no rows."""
        return self._n_rows == 0

    def add_rows(self, rows: Sequence[Sequence[Value]]) -> None:
        """Add rows one by one."""
        if not rows:
            return
        for parts, values, kind in zip(
            self._parts, zip(*rows, strict=True), self.schema.types, strict=True
        ):
            parts.append(pa.array(values, kind))
            self._n_bytes += parts[-1].nbytes
        self._n_rows += len(rows)
        self.total_rows += len(rows)

    def take(self) -> pa.RecordBatch:
        """Return the batch and start the next."""
        columns = [pa.concat_arrays(parts) for parts in self._parts]
        self._parts = [[] for _ in columns]
        self._n_rows = self._n_bytes = 0
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)
