"""Markdown tables."""

from collections.abc import Iterable, Sequence

__all__ = ["markdown_table"]


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Lay out a table; whole numbers get separators and stand to the right.

    Args:
        header: Names of the columns.
        rows: Cells; a bar or a line break in one is written so that it stays in its cell.

    Returns:
        The table, without a final line feed.
    """
    lines = [list(row) for row in rows]
    numeric = [
        bool(lines) and all(_is_number(line[column]) for line in lines)
        for column in range(len(header))
    ]
    rule = ["---:" if is_right else "---" for is_right in numeric]
    shown = [
        [_cell(cell, is_number=right) for cell, right in zip(line, numeric, strict=True)]
        for line in lines
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (list(header), rule, *shown))


def _is_number(cell: object) -> bool:
    """Tell whether a cell is a whole number."""
    return isinstance(cell, int) and not isinstance(cell, bool)


def _cell(cell: object, *, is_number: bool) -> str:
    """Write one cell."""
    if is_number:
        return f"{cell:,}"
    return " ".join(str(cell).replace("|", "\\|").split())
