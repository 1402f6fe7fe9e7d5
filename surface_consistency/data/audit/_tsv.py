"""Tab-separated tables: one header line, no quoting, several values of a cell between " | "."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from surface_consistency.errors import DataError, SourceNotFoundError

__all__ = ["cell_values", "read_tsv"]

_SEPARATOR: Final = "|"


def cell_values(cell: str) -> tuple[str, ...]:
    """Split a cell into its values; an empty cell has none."""
    return tuple(value.strip() for value in cell.split(_SEPARATOR) if value.strip())


def read_tsv(
    file: Path, columns: tuple[str, ...], *, filled: int | None = None, missing: bool = False
) -> Iterator[tuple[str, ...]]:
    """Read the lines of a table; the first `filled` cells (None: all) must hold something."""
    if not file.is_file():
        if missing:
            return
        raise SourceNotFoundError(f"no table {file}; its columns are {', '.join(columns)}")
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{file}: not UTF-8 at byte {error.start}; re-save the table as UTF-8"
        ) from error
    if tuple(lines[0].rstrip("\r").split("\t")) != columns:
        raise DataError(f"{file}: the header must be {' <tab> '.join(columns)}, got {lines[0]!r}")
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            yield _cells(line.rstrip("\r"), columns, f"{file}:{number}", filled)


def _cells(line: str, columns: tuple[str, ...], place: str, filled: int | None) -> tuple[str, ...]:
    """Split a line and check its cells."""
    cells = tuple(cell.strip() for cell in line.split("\t"))
    if len(cells) != len(columns):
        raise DataError(f"{place}: {len(cells)} cells where {len(columns)} are due: {line!r}")
    for column, cell in list(zip(columns, cells, strict=True))[:filled]:
        if not cell:
            raise DataError(f"{place}: {column} is empty; fill it or drop the line")
    return cells
