"""One cell of a table to one value: the shapes that JSON, CSV and Arrow give to the same thing.

Each reader takes a cell as it comes and raises ValueError where it holds something else than the
reader is for. An empty cell (null, NaN or blank) is None, and no item of a list.
"""

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, TypeVar

from surface_consistency.errors import RecordError
from surface_consistency.reading import json_or_text
from surface_consistency.rows.readers import Place

T = TypeVar("T")

_HALF: Final = re.compile("[\ud800-\udfff]")
_MOST_DIGITS: Final = 30
_LOST_NAME: Final = (
    "is empty; if the name is one that CSV readers take for nothing ('NA', 'null', 'None'), load "
    "from the file or hub id itself, or read it with keep_default_na=False"
)


class ParsedCells(dict[object, Any]):
    """The values of the cells of one field, each distinct cell of text or integers read once."""

    def __init__(self, parse: Callable[[object], object]) -> None:
        """Keep the reader of a cell."""
        super().__init__()
        self.parse = parse

    def __missing__(self, cell: object) -> object:
        """Read a cell that was not seen before."""
        value = self[cell] = self.parse(list(cell) if isinstance(cell, tuple) else cell)
        return value

    def of(self, cells: Sequence[object]) -> list[Any]:
        """Read cells.

        Args:
            cells: Cells of one column.

        Returns:
            The value of each, as `parse` gives it.

        Raises:
            ValueError: If `parse` rejects a cell.
        """
        kinds = {*map(type, cells)}
        if kinds == {list} and {*map(type, chain.from_iterable(cells))} <= {str}:  # type: ignore[arg-type]
            return [*map(self.__getitem__, map(tuple, cells))]  # type: ignore[arg-type]
        # Numbers of several types may be equal and are not the same cell: 1, 1.0 and True.
        if kinds <= {str, type(None)} or kinds == {int}:
            return [*map(self.__getitem__, cells)]
        return [*map(self.parse, cells)]


@dataclass(frozen=True, slots=True)
class RowCells:
    """One row, read by field."""

    columns: Mapping[str, str]
    """Field to column, for the fields that the source has."""

    place: Place
    """Where the row stands."""

    row: Mapping[str, object]
    """Column to cell."""

    def read(self, name: str, parse: Callable[[object], T]) -> T:
        """Read one field; a source without its column gives what an empty cell gives.

        Raises:
            RecordError: If the cell is not what `parse` is for; names place, column and value.
        """
        column = self.columns.get(name)
        value = None if column is None else self.row.get(column)
        try:
            return parse(value)
        except ValueError as error:
            raise RecordError(
                f"{self.place}: column {column!r}: {error}, got {repr(value)[:80]}"
            ) from error

    def needed(self, name: str, parse: Callable[[object], str | None]) -> str:
        """Read a field that no row may leave empty, in a column that the source must have.

        Raises:
            RecordError: If the cell is empty, or as `read` does.
        """
        value = self.read(name, parse)
        if value is None:
            raise RecordError(f"{self.place}: column {self.columns[name]!r} {_LOST_NAME}")
        return value


def text_of(value: object) -> str | None:
    """Read a name or a question, unchanged; an integer is its digits ("1984" without quotes).

    Raises:
        ValueError: If the cell is not text, or contains half a surrogate pair, which JSON can spell
            and no file can store.
    """
    if isinstance(value, str):
        if not value.isascii() and _HALF.search(value):
            raise ValueError("expected Unicode text without half a surrogate pair")
        return value if value.strip() else None
    value = _plain(value)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError("expected text")


def identifier_of(value: object) -> str | None:
    """Read an identifier: 17, 17.0, "17" and " 17 " are the same; a fraction is none."""
    value = _plain(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = text_of(value)
    return None if text is None else text.strip()


def count_of(value: object) -> int | None:
    """Read a count, such as of page views: 17, 17.0 and "17" are the same; 0 to 2**63 - 1."""
    text = identifier_of(value)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise ValueError("expected a whole number of at least 0")
    if len(text) > _MOST_DIGITS or int(text) >= 2**63:
        raise ValueError("expected a whole number below 2**63")
    return int(text)


def strings_of(value: object) -> tuple[str, ...]:
    """Read a list of names in its order.

    The cell is the list, the same list as a JSON string (PopQA) or as Python wrote it into a CSV
    file, or one name without any list around it.

    Examples:
        >>> strings_of('["UK", "U.K."]'), strings_of(["UK"]), strings_of("UK"), strings_of(None)
        (('UK', 'U.K.'), ('UK',), ('UK',), ())
    """
    value = _plain(value)
    if isinstance(value, str):
        value = _parsed_list(value)
    items = value if isinstance(value, list | tuple) else (value,)
    return tuple(text for item in items if (text := text_of(item)) is not None)


def answers_of(value: object) -> tuple[str, ...]:
    """Read a list of accepted answers without the white space around them.

    The first line of a prediction has none either, so that an answer with it would never be found.

    Examples:
        >>> answers_of('["UK ", " ", "U.K."]')
        ('UK', 'U.K.')
    """
    return tuple(text.strip() for text in strings_of(value))


def _plain(value: object) -> object:
    """Undo NumPy's wrapping and read NaN, which pandas writes for nothing, as None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return None if isinstance(value, float) and math.isnan(value) else value


def _parsed_list(text: str) -> object:
    """Parse a list that stands in a string; a string that is no such list is itself."""
    if not text.lstrip().startswith("["):
        return text
    if (value := json_or_text(text, "the list")) is not text:
        return value
    try:
        return ast.literal_eval(text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
