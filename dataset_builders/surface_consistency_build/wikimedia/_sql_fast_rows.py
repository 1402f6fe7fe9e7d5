"""Rows of an INSERT a stretch at a time, by numpy: the form that `mysqldump` writes, and no other.

Quotes, commas and parentheses are found all at once. Those that a backslash escapes are dropped,
and those after an odd number of quotes stand within a string; what remains must repeat the same
shape row after row. A stretch that does not (a doubled quote, a charset before a string, a fault)
is left to the slow reader, so that this one is never asked to guess.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from surface_consistency_build.wikimedia.sql_tables import ESCAPES, ValueKind

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FastResult", "FastRows", "unescape_column"]

_Positions = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]

_QUOTE, _OPEN, _CLOSE, _OTHER, _COMMA, _BACKSLASH = b"'()*,\\"
_MOST_BACKSLASHES = 64
_MOST_SPACE = 8
_MEANT = np.arange(256, dtype=np.uint8)
for _letter, _value in ESCAPES.items():
    _MEANT[_letter[0]] = _value[0]


class _IrregularError(Exception):
    """The stretch is not of the form that is read here."""


@dataclass(frozen=True, slots=True)
class FastResult:
    """What was read of one stretch."""

    columns: "list[pa.Array]"
    """The wanted columns; bytes that are numbers in the end are not converted yet."""
    n_rows: int
    """How many rows."""
    end: int
    """Where the row after the last one starts."""
    is_statement_over: bool
    """Whether the last row was the INSERT's last."""


class FastRows:
    """Reads rows of one shape."""

    def __init__(self, n_columns: int, wanted: Sequence[int], kinds: Sequence[ValueKind]) -> None:
        self._shape = np.array([_OPEN, *[_COMMA] * (n_columns - 1), _CLOSE, _COMMA], np.uint8)
        self._wanted = tuple(zip(wanted, kinds, strict=True))

    def parse(self, data: bytes, start: int, stop: int) -> FastResult | None:
        """Read the rows that are whole in a stretch; None if it is not of the regular form."""
        try:
            return self._parse(data, start, stop)
        except _IrregularError:
            return None

    def _parse(self, data: bytes, start: int, stop: int) -> FastResult:
        """Do it, or raise `_IrregularError`."""
        text = np.frombuffer(data, np.uint8, stop - start, start)
        places, marks, n_quotes = _outer_marks(text)
        is_over = (
            len(marks) % len(self._shape) == len(self._shape) - 1
            and marks[-1] == _CLOSE
            and places[-1] == len(text) - 2
            and data[stop - 1] == ord(";")
        )
        if is_over:
            places = np.append(places, len(text) - 1)
            marks = np.append(marks, np.uint8(_COMMA))
            n_quotes = np.append(n_quotes, n_quotes[-1])
        n_rows = len(marks) // len(self._shape)
        if n_rows == 0:
            return FastResult([], 0, start, False)
        size = n_rows * len(self._shape)
        rows = places[:size].reshape(n_rows, -1)
        _require(bool((marks[:size].reshape(n_rows, -1) == self._shape).all()))
        _check_between(text, rows)
        quotes = n_quotes[:size].reshape(n_rows, -1)
        columns = [
            _column(data, start, text, _Field.of(rows, quotes, position), kind)
            for position, kind in self._wanted
        ]
        return FastResult(columns, n_rows, start + int(rows[-1, -1]) + 1, is_over)


@dataclass(frozen=True, slots=True)
class _Field:
    """Where the values of one column stand in a stretch."""

    starts: _Positions
    ends: _Positions
    n_quotes: npt.NDArray[np.int32]

    @classmethod
    def of(cls, rows: _Positions, quotes: npt.NDArray[np.int32], position: int) -> "_Field":
        """Take them from the places of the marks."""
        return cls(
            rows[:, position] + 1,
            rows[:, position + 1].copy(),
            quotes[:, position + 1] - quotes[:, position],
        )


def _require(is_regular: bool) -> None:
    """Give up on a stretch."""
    if not is_regular:
        raise _IrregularError


def _outer_marks(text: _Bytes) -> tuple[_Positions, _Bytes, npt.NDArray[np.int32]]:
    """Find parentheses and commas outside strings, and how many quotes come before each."""
    # The five bytes ' ( ) * + , follow one another, so that one comparison finds all.
    places = np.flatnonzero((text - _QUOTE) <= _COMMA - _QUOTE)
    marks = text[places]
    _drop_escaped(text, places, marks)
    is_quote = marks == _QUOTE
    n_quotes = np.cumsum(is_quote, dtype=np.int32)
    is_outer = (n_quotes & 1) == 0
    is_outer &= ~is_quote
    is_outer &= (marks != _OTHER) & (marks != _OTHER + 1)
    outer = np.flatnonzero(is_outer)
    return places[outer], marks[outer], n_quotes[outer]


def _drop_escaped(text: _Bytes, places: _Positions, marks: _Bytes) -> None:
    """Make marks that a backslash escapes into others."""
    after = np.flatnonzero(text[places - 1] == _BACKSLASH)
    if len(after) and places[after[0]] == 0:
        after = after[1:]
    is_escaped = np.ones(len(after), bool)
    going_on = np.arange(len(after))
    behind = places[after] - 2
    for _ in range(_MOST_BACKSLASHES):
        still = (behind >= 0) & (text[behind] == _BACKSLASH)
        going_on, behind = going_on[still], behind[still] - 1
        if not len(going_on):
            break
        is_escaped[going_on] ^= True
    _require(not len(going_on))
    marks[after[is_escaped]] = _OTHER


def _check_between(text: _Bytes, rows: _Positions) -> None:
    """Require that nothing but white space stands around a row's parentheses."""
    _require(bool((rows[:, -1] - rows[:, -2] == 1).all()))
    before = np.empty(len(rows), np.int64)
    before[0] = -1
    before[1:] = rows[:-1, -1]
    gaps = rows[:, 0] - before
    longest = int(gaps.max())
    _require(longest <= _MOST_SPACE)
    for step in range(1, longest):
        found = text[before[gaps > step] + step]
        _require(bool(((found == 32) | ((found >= 9) & (found <= 13))).all()))


def _column(data: bytes, start: int, text: _Bytes, field: _Field, kind: ValueKind) -> "pa.Array":
    """Return the values of one column; numbers are converted."""
    if kind != "bytes":
        nulls = _nulls(text, field, text[field.starts] == ord("N"))
        return _number_column(_take(data, start, field.starts, field.ends, nulls), kind)
    is_quoted = field.n_quotes == 2
    nulls = _nulls(text, field, ~is_quoted)
    is_whole = (text[field.starts] == _QUOTE) & (text[field.ends - 1] == _QUOTE)
    _require(bool((is_whole & is_quoted if nulls is None else is_whole | nulls).all()))
    return unescape_column(_take(data, start, field.starts + 1, field.ends - 1, nulls))


def _nulls(
    text: _Bytes, field: _Field, suspects: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_] | None:
    """Require that those suspected of being NULL are; None if there is none."""
    if not suspects.any():
        return None
    starts = field.starts[suspects]
    _require(bool((field.ends[suspects] - starts == 4).all()))
    for step, letter in enumerate(b"NULL"):
        _require(bool((text[starts + step] == letter).all()))
    return suspects


def _take(
    data: bytes,
    start: int,
    starts: _Positions,
    ends: _Positions,
    nulls: npt.NDArray[np.bool_] | None,
) -> "pa.Array":
    """Copy values out of a stretch."""
    import pyarrow as pa

    # The values and what stands between them, as an array over the stretch itself; every other
    # element is a value.
    bounds = np.empty(2 * len(starts), np.int32)
    bounds[0::2] = starts
    bounds[1::2] = ends
    both = pa.Array.from_buffers(
        pa.binary(),
        len(bounds) - 1,
        [None, pa.py_buffer(bounds), pa.py_buffer(memoryview(data)[start:])],
    )
    return both.take(pa.array(np.arange(0, len(bounds), 2), mask=nulls))


def _number_column(column: "pa.Array", kind: ValueKind) -> "pa.Array":
    """Convert the text of numbers."""
    import pyarrow as pa

    types = {"integer": pa.int64(), "unsigned": pa.uint64()}
    try:
        numbers = column.view(pa.string()).cast(types.get(kind, pa.float64()))
    except pa.ArrowInvalid:
        raise _IrregularError from None
    return column if kind == "decimal" else numbers


def unescape_column(column: "pa.Array") -> "pa.Array":
    """Undo the escapes of a binary column of its own, without the strings' quotes, all at once."""
    import pyarrow as pa

    validity, offset_bytes, value_bytes = column.buffers()
    if value_bytes is None or not len(column):
        return column
    values = np.frombuffer(value_bytes, np.uint8)
    slashes = np.flatnonzero(values == _BACKSLASH)
    if not len(slashes):
        return column
    starts = _escape_starts(slashes)
    letters = values[starts + 1]
    starts = starts[(letters != ord("%")) & (letters != ord("_"))]
    meant = values.copy()
    meant[starts + 1] = _MEANT[values[starts + 1]]
    kept = np.ones(len(values), bool)
    kept[starts] = False
    offsets = np.frombuffer(offset_bytes, np.int32, len(column) + 1)
    shorter = (offsets - np.searchsorted(starts, offsets)).astype(np.int32)
    return pa.Array.from_buffers(
        pa.binary(),
        len(column),
        [validity, pa.py_buffer(shorter), pa.py_buffer(meant[kept])],
        column.null_count,
    )


def _escape_starts(slashes: _Positions) -> _Positions:
    """Keep of each run of backslashes the first, third and so on."""
    starts_run = np.empty(len(slashes), bool)
    starts_run[0] = True
    np.not_equal(np.diff(slashes), 1, out=starts_run[1:])
    numbers = np.arange(len(slashes))
    run_starts = np.maximum.accumulate(np.where(starts_run, numbers, 0))
    starts: _Positions = slashes[(numbers - run_starts) % 2 == 0]
    return starts
