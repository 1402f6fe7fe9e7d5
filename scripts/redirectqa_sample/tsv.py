"""Tables in tab-separated UTF-8 with one header line and without quoting."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

SEPARATOR: Final = " | "
"""Separator of the values of one cell."""


def split_values(cell: str) -> tuple[str, ...]:
    """Split a cell of several values.

    Args:
        cell: The cell.

    Returns:
        Its values; an empty cell has none.
    """
    return tuple(cell.split(SEPARATOR)) if cell else ()


def read_lines(path: Path) -> Iterator[dict[str, str]]:
    """Read the lines of a table by the names in its header.

    Args:
        path: The table.

    Yields:
        Cell by column name.

    Raises:
        ValueError: If a line has more or fewer cells than the header.
    """
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    names = header.split("\t")
    for number, line in enumerate(lines, start=2):
        cells = line.split("\t")
        if len(cells) != len(names):
            raise ValueError(
                f"{path.name} line {number}: {len(cells)} cells, the header has {len(names)}; "
                "separate them with single tabs"
            )
        yield dict(zip(names, cells, strict=True))
