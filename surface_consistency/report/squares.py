"""Squares of paired verdicts: their cells true to area, with labels where they fit."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from surface_consistency.report.layout import CELLS, Rectangle, square_cells
from surface_consistency.report.page import MosaicPlot
from surface_consistency.report.scene import Box, Mark, Scene, Stroke, Words, straight
from surface_consistency.tables.numbers import format_number, text_width

_SIDE: Final = 300
_TOP: Final = 40
_LETTER: Final = 6.4


def small_square(
    square: MosaicPlot, names: Sequence[str] = (), *, go: Mapping[str, str] | None = None
) -> Scene:
    """Draw a square without labels.

    Args:
        square: The counts.
        names: What the cells are called, to be read when pointed at; none by default.
        go: What its cells select among the answers besides the cell; None where they lead nowhere.

    Returns:
        The picture, 100 wide and high.
    """
    marks = _square_marks(square_cells(square), names, side=100, top=0, go=go)
    return Scene(width=100, height=100, marks=marks, alt=_counted(square, names))


def square_scene(
    square: MosaicPlot,
    names: Sequence[str],
    condition: str,
    *,
    go: Mapping[str, str] | None = None,
) -> Scene:
    """Draw a square with its labels: in the cells, else outside by their corner.

    Args:
        square: The counts.
        names: What the cells are called.
        condition: What the first condition is called.
        go: As for `small_square`.

    Returns:
        The picture, 408 wide, of a square with a side of 300.
    """
    cells = square_cells(square)
    marks = _square_marks(cells, names, side=_SIDE, top=_TOP, go=go)
    below, beside = float(_TOP + _SIDE), float(_TOP)
    if not any(cell.count for cell in cells):
        marks.append(Words(x=110, y=_TOP + 155, text="no pairs"))
    else:
        for cell, name in zip(cells, names, strict=True):
            if inside := _inside_labels(cell, name):
                marks += inside
            elif cell.cell in ("both", "first_only"):
                below += 20
                marks += _label_below(cell, name, below)
            else:
                outside, beside = _label_beside(cell, name, beside)
                marks += outside
        marks += _column_heads(condition, cells)
    return Scene(width=_SIDE + 108, height=below + 8, marks=marks, alt=_counted(square, names))


def _counted(square: MosaicPlot, names: Sequence[str]) -> str:
    """Say a square in words."""
    counts = [f"{name} {getattr(square, cell):,}" for name, cell in zip(names, CELLS, strict=False)]
    return f"{square.title}: {', '.join(counts)}" if counts else square.title


def _square_marks(
    cells: Sequence[Rectangle],
    names: Sequence[str],
    *,
    side: int,
    top: int,
    go: Mapping[str, str] | None,
) -> list[Mark]:
    """Draw the cells of a square and the lines between them; cells without a name say nothing."""
    marks: list[Mark] = []
    if not any(cell.count for cell in cells):
        x, y, end = 0.5, top + 0.5, side - 1
        path = f"M{x} {y}L{x + end} {y}L{x + end} {y + end}L{x} {y + end}Z"
        marks.append(Stroke(css="empty", path=path))
    for place, cell in enumerate(cells):
        x, y, width, height = (side * size for size in (cell.x, cell.y, cell.width, cell.height))
        if cell.count:
            css, link = f"c-{cell.cell}", "" if go is None else urlencode({"cell": cell.cell, **go})
            alt = f"{names[place]}: {cell.count:,}, {format_number(cell.share)} %" if names else ""
            size = {"width": width, "height": height}
            marks.append(Box(css=css, x=x, y=top + y, **size, title=alt, go=link))
        elif names and not math.isnan(cell.share):
            flat = top if cell.cell in ("both", "second_only") else top + side
            ends = (x, top + y, x, top + y + height) if width == 0 else (x, flat, x + width, flat)
            marks.append(Stroke(css="empty", path=straight(*ends)))
    split = side * cells[0].width
    if 0 < split < side:
        marks.append(Stroke(css="gap", path=straight(split, top, split, top + side)))
    for upper in (cells[0], cells[2]):
        if upper.width > 0 and 0 < upper.height < 1:
            y, x = top + side * upper.height, side * upper.x
            marks.append(Stroke(css="gap", path=straight(x, y, x + side * upper.width, y)))
    return marks


def _inside_labels(cell: Rectangle, name: str) -> list[Mark]:
    """Label a cell inside; nothing where the label does not fit."""
    width, height = _SIDE * cell.width, _SIDE * cell.height
    count, share = f"{cell.count:,}", f"{format_number(cell.share)}\u00a0%"
    lines = _inside(count, share, name, width, height)
    if not lines:
        return []
    x, y, css = _SIDE * cell.x + 10, _TOP + _SIDE * cell.y, f"in-{cell.cell}"
    return [
        Words(x=x, y=y + 25, css=f"{css} t-big", text=count),
        *(Words(x=x, y=y + 43 + 16 * at, css=css, text=line) for at, line in enumerate(lines)),
    ]


def _label_below(cell: Rectangle, name: str, y: float) -> list[Mark]:
    """Label a cell of the left part below the square."""
    count = f"{cell.count:,}"
    share = f"{format_number(cell.share)}\u00a0% {name}"
    return [
        Box(css=f"c-{cell.cell}", x=0, y=y - 10, width=10, height=10),
        Words(x=16, y=y, css="t-n", text=count),
        Words(x=24 + 8.2 * len(count), y=y, text=share),
    ]


def _label_beside(cell: Rectangle, name: str, free: float) -> tuple[list[Mark], float]:
    """Label a cell of the right part beside the square, and tell where the next label may begin."""
    y, height = _TOP + _SIDE * cell.y, _SIDE * cell.height
    lines = [f"{cell.count:,}", f"{format_number(cell.share)}\u00a0%", *_wrapped(name, 13)]
    begin = y if cell.cell == "second_only" else y + height / 2 - 10
    begin = max(free, min(begin, _TOP + _SIDE - 16 * len(lines)))
    anchor = min(max(begin + 8, y + 0.5), y + height - 0.5)
    marks: list[Mark] = [
        Stroke(css="leader", path=straight(_SIDE, anchor, _SIDE + 9, begin + 8)),
        Box(css=f"c-{cell.cell}", x=_SIDE + 12, y=begin + 3, width=10, height=10),
    ]
    for place, line in enumerate(lines):
        css, indent = ("", 12) if place else ("t-n", 27)
        marks.append(Words(x=_SIDE + indent, y=begin + 12 + 16 * place, css=css, text=line))
    return marks, begin + 16 * len(lines) + 8


def _column_heads(name: str, cells: Sequence[Rectangle]) -> Iterator[Words]:
    """Yield how often the first condition is right, and wrong, over the parts of a square."""
    name = name if len(name) <= 18 else f"{name[:17]}…"
    left = cells[0].share + cells[1].share
    second = min(max(_SIDE * cells[0].width, 7.4 * text_width(f"{name} right") + 14), _SIDE - 20.0)
    for x, word, part in ((0.0, "right", left), (second, "wrong", 1 - left)):
        yield Words(x=x, y=14, text=f"{name} {word}")
        yield Words(x=x, y=31, css="t-ink", text=f"{format_number(part)}\u00a0%")


def _inside(count: str, share: str, name: str, width: float, height: float) -> list[str]:
    """Choose the lines below the count that fit into a cell; none where the label does not fit."""
    room = int((width - 16) / _LETTER)
    if count == "0" or width < 52 or height < 44 or 12 * len(count) + 16 > width:
        return []
    lines = [share, *_wrapped(name, room)]
    if all(text_width(line) <= room for line in lines) and 36 + 16 * len(lines) <= height:
        return lines
    return [f"{share} {name}"] if text_width(f"{share} {name}") <= room else []


def _wrapped(text: str, room: int) -> list[str]:
    """Break a text between words."""
    lines = [""]
    for word in text.split():
        joined = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(joined) > room:
            lines.append(word)
        else:
            lines[-1] = joined
    return lines
