"""One row of a source, read by field and with its place in every error."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from surface_consistency.data.readers import Place
from surface_consistency.errors import RecordError

__all__ = ["RowCells"]

T = TypeVar("T")

_LOST_NAME: Final = (
    "is empty; if the name is one that CSV readers take for nothing ('NA', 'null', 'None'), load "
    "from the file or hub id itself, or read it with keep_default_na=False"
)


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

        Args:
            name: The field.
            parse: What its cell must be, such as `text_of`.

        Returns:
            What `parse` makes of the cell.

        Raises:
            RecordError: If the cell is something else; names place, column and value.
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
        """Read a field that no row may leave empty.

        Args:
            name: The field; the source must have its column.
            parse: What its cell must be.

        Returns:
            What `parse` makes of the cell.

        Raises:
            RecordError: If the cell is empty or something else.
        """
        value = self.read(name, parse)
        if value is None:
            raise RecordError(f"{self.place}: column {self.columns[name]!r} {_LOST_NAME}")
        return value
