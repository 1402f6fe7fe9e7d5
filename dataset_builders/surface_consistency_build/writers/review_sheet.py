"""Sheets for a person: a table that is written, filled in with any spreadsheet, and read back."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from surface_consistency.errors import ColumnNotFoundError, DataError, RecordError
from surface_consistency.rows.readers import Place, read_rows
from surface_consistency.runs.files import guard_cell, unguard_cell, write_text

_MARKS: Final = {
    **dict.fromkeys(("1", "1.0", "yes", "y", "true"), True),
    **dict.fromkeys(("0", "0.0", "no", "n", "false"), False),
    "": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewSheet:
    """The columns of a sheet."""

    shown: tuple[str, ...]
    """Columns that are written for the reviewer, in order."""

    filled: tuple[str, ...]
    """Columns that the reviewer fills in; they stand behind the others, and are written empty."""

    marks: tuple[str, ...]
    """Columns, of either kind, that hold yes, no or nothing."""

    unread: tuple[str, ...] = ()
    """Columns that need not be there when the sheet is read."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns in order."""
        return (*self.shown, *self.filled)

    def write(self, path: Path, rows: Iterable[Sequence[str]]) -> None:
        """Write the sheet.

        Args:
            path: The CSV file; its folder must exist.
            rows: Values of `shown`, row by row. What a spreadsheet would take for a formula gets an
                apostrophe in front.

        Raises:
            DataError: If a sheet of that name is there in which a reviewer has written.
        """
        if path.is_file() and self._is_filled(path):
            raise DataError(f"{path} holds the notes of a reviewer; move it, then write it again")
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        blank = [""] * len(self.filled)
        writer.writerows([*map(guard_cell, row), *blank] for row in rows)
        write_text(path, text.getvalue())

    def read(self, path: Path) -> Iterator[tuple[Place, Mapping[str, str]]]:
        """Read the sheet as a spreadsheet saved it: CSV, TSV, ...

        Args:
            path: The file.

        Yields:
            The place of each row, and its cells by column.

        Raises:
            SourceNotFoundError: If there is no such file.
            ColumnNotFoundError: If a column of the sheet is gone.
            RecordError: If a mark is another word than yes or no; names file and line.
            DataError: If there are no rows.
        """
        needed = [name for name in self.columns if name not in self.unread]
        is_empty = True
        for place, row in read_rows(path):
            is_empty = False
            if missing := [name for name in needed if name not in row]:
                raise ColumnNotFoundError(
                    f"{place}: the review sheet lacks {', '.join(missing)}; keep all of its columns"
                )
            cells = {name: str(unguard_cell(row[name] or "")).strip() for name in needed}
            for name in self.marks:
                if cells[name].lower() not in _MARKS:
                    raise RecordError(
                        f"{place}: column {name!r} is yes, no or empty, not {cells[name]!r}"
                    )
            yield place, cells
        if is_empty:
            raise DataError(f"{path} holds no rows")

    def _is_filled(self, path: Path) -> bool:
        """Tell whether a reviewer has written into a sheet, or a program saved it otherwise."""
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
            rows = csv.DictReader(lines)
            if tuple(rows.fieldnames or ()) != self.columns:
                return True
            return any((row.get(name) or "").strip() for row in rows for name in self.filled)


def mark_of(cell: str) -> bool | None:
    """Read a cell that holds yes, no or nothing.

    Args:
        cell: One of a column of `ReviewSheet.marks`.

    Returns:
        The mark; None where nobody said.

    Examples:
        >>> mark_of("Yes"), mark_of("0"), mark_of("")
        (True, False, None)
    """
    return _MARKS[cell.lower()]
