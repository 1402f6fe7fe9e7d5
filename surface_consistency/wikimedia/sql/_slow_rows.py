"""Rows of an INSERT one by one: any form of literal, exact errors."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from surface_consistency.wikimedia.sql._literals import decode_literal
from surface_consistency.wikimedia.sql.tables import STRING, ValueKind

__all__ = ["SlowResult", "SlowRows", "Value"]

Value = bytes | int | float | None

_PREFIX = rb"(?:_\w++\s*+|[xX])?+"
_VALUE = rb"(?:%b%b|[^\s,()'\\`\"]++)" % (_PREFIX, STRING)
_NEXT_VALUE = re.compile(_VALUE, re.DOTALL)
_OPEN_STRING = re.compile(_PREFIX + rb"'[^'\\]*+(?:(?:\\.|'')[^'\\]*+)*+\\?+\Z", re.DOTALL)
_SPACE = re.compile(rb"\s*+")


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
    """Reads rows of one shape.

    Args:
        n_columns: How many values a row has.
        wanted: Positions of the wanted values, ascending.
        kinds: What each of them holds.
    """

    def __init__(self, n_columns: int, wanted: Sequence[int], kinds: Sequence[ValueKind]) -> None:
        fields = [
            rb"\s*+(%b)\s*+" % _VALUE if position in wanted else rb"\s*+%b\s*+" % _VALUE
            for position in range(n_columns)
        ]
        self._row = re.compile(rb"\s*+\(%b\)\s*+([,;])" % b",".join(fields), re.DOTALL)
        self._n_columns = n_columns
        self._kinds = tuple(kinds)

    def parse(self, data: bytes, start: int, stop: int) -> SlowResult:
        """Read the rows that start in a stretch and are whole.

        Args:
            data: Bytes that hold the stretch, and more.
            start: Where a row starts.
            stop: Where the stretch ends.

        Returns:
            The rows; none if the first is not whole.
        """
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
        """Say what is wrong with a row that could not be read.

        Args:
            data: Bytes that hold its start.
            start: Where it starts.

        Returns:
            The fault; None if the bytes end before there is one.
        """
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
