"""Positions of the parts of a figure, as fractions of its size."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from surface_consistency.clusters import FEW_CLUSTERS, LEAST_CLUSTERS
from surface_consistency.report.page import Dot, ForestPlot, Lines, MosaicPlot
from surface_consistency.tables.numbers import Value

CellName = Literal["both", "first_only", "second_only", "neither"]

CELLS: Final[tuple[CellName, ...]] = ("both", "first_only", "second_only", "neither")
"""The cells of the contingency table."""

FEW_POINTS: Final = 5
"""Points of a curve with fewer observations are faded."""

_NORMAL_95 = 1.959963984540054
_NARROWEST: Final = 1e-12
"""A shorter span is a rounding error and is treated as 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectangle:
    """A cell of a mosaic plot; lengths are fractions of its side."""

    cell: CellName
    """The cell."""

    count: int
    """Its number of pairs."""

    share: float
    """Its proportion of all pairs, which is its area; NaN without pairs."""

    x: float
    """Left edge, from the left."""

    y: float
    """Upper edge, from the top."""

    width: float
    """Width."""

    height: float
    """Height."""


def square_cells(square: MosaicPlot) -> tuple[Rectangle, Rectangle, Rectangle, Rectangle]:
    """Lay out a contingency table with areas proportional to counts.

    The width of the left part is the accuracy under the first condition; the height of each upper
    part is the accuracy under the second condition, given the first.

    Args:
        square: The counts.

    Returns:
        The cells in the order of `CELLS`. An empty cell has area 0; without pairs, all cells have.

    Raises:
        ValueError: If a count is negative.
    """
    counts = (square.both, square.first_only, square.second_only, square.neither)
    if min(counts) < 0:
        raise ValueError(
            f"counts of the square {square.title!r} must not be negative; got {counts}"
        )
    n = sum(counts)
    left = square.both + square.first_only
    first = left / n if n else 0.0
    upper_left = square.both / left if left else 0.0
    upper_right = square.second_only / (n - left) if n > left else 0.0
    edges = (
        (0.0, 0.0, first, upper_left),
        (0.0, upper_left, first, 1 - upper_left),
        (first, 0.0, 1 - first, upper_right),
        (first, upper_right, 1 - first, 1 - upper_right),
    )
    cells = (
        Rectangle(
            cell=cell,
            count=count,
            share=count / n if n else math.nan,
            x=x,
            y=y,
            width=width if n else 0.0,
            height=height,
        )
        for cell, count, (x, y, width, height) in zip(CELLS, counts, edges, strict=True)
    )
    return tuple(cells)  # type: ignore[return-value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A scale with round ticks."""

    low: float
    """Value at its start."""

    high: float
    """Value at its end."""

    ticks: tuple[float, ...]
    """Values with a tick."""

    def share(self, value: float) -> float:
        """Return the position of a value; values outside are placed at the nearest end.

        Args:
            value: The value.

        Returns:
            Its position in [0, 1].
        """
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def nice_scale(low: float, high: float, *, n_ticks: int = 8, stretch: bool = True) -> Scale:
    """Make a scale with round ticks.

    Args:
        low: Minimum.
        high: Maximum.
        n_ticks: Maximum number of steps between ticks.
        stretch: Whether the scale ends at ticks; otherwise it ends at the values.

    Returns:
        The scale; its width is positive also if both values are equal.
    """
    if not high - low > _NARROWEST:
        low, high = min(low, 0.0), max(low, low + 0.1)
    rough = (high - low) / n_ticks
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [place * step for place in range(first, last + 1)]
    if stretch:
        return Scale(low=ticks[0], high=ticks[-1], ticks=tuple(ticks))
    inside = (tick for tick in ticks if low - 1e-9 <= tick <= high + 1e-9)
    return Scale(low=low, high=high, ticks=tuple(inside))


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """One estimate of a forest plot, with the interval that is drawn."""

    dot: Dot
    """The dot."""

    low: float
    """Lower end of its line."""

    high: float
    """Upper end of its line."""

    is_faded: bool
    """Whether it has few clusters."""

    is_wilson: bool
    """Whether Wilson's interval over clusters is drawn instead, dashed, because the interval of a
    rate of 0 or 1 has no width or is missing."""


DotRow = tuple[str, int, list[Interval]]
"""One group: label, level (0 for heads, 1 for their members), and the marks, one per model."""


def dot_rows(block: ForestPlot) -> tuple[list[DotRow], int]:
    """Choose the groups of a forest plot that are drawn.

    Args:
        block: The chart.

    Returns:
        The groups with enough clusters, and their outer groups, which may have no estimate; and the
        number of groups with too few clusters.
    """
    rows = [
        (label, level, [_mark(dot) for dot in dots if _is_drawn(dot)])
        for label, level, dots in block.rows
    ]
    drawn: list[DotRow] = []
    for row in reversed(rows):
        if row[2] or (drawn and drawn[-1][1] > row[1]):
            drawn.append(row)
    n_hidden = sum(bool(dots) for _, _, dots in block.rows) - sum(bool(row[2]) for row in drawn)
    return drawn[::-1], n_hidden


def _is_drawn(dot: Dot) -> bool:
    """Return whether a dot has enough clusters and a value."""
    return dot.n_clusters >= LEAST_CLUSTERS and not math.isnan(dot.value.value)


def _mark(dot: Dot) -> Interval:
    """Choose the interval and the style of a dot."""
    value, low, high = dot.value.value, dot.value.low, dot.value.high
    low = value if low is None or math.isnan(low) else low
    high = value if high is None or math.isnan(high) else high
    has_bounds = dot.value.low is None or not math.isnan(dot.value.low)
    is_wilson = dot.value.kind == "rate" and value in (0, 1) and low == high and has_bounds
    if is_wilson:
        reach = _NORMAL_95**2 / (dot.n_clusters + _NORMAL_95**2)
        low, high = (0.0, reach) if value == 0 else (1 - reach, 1.0)
    return Interval(
        dot=dot, low=low, high=high, is_faded=dot.n_clusters < FEW_CLUSTERS, is_wilson=is_wilson
    )


def dots_scale(block: ForestPlot) -> Scale:
    """Choose the common scale of all groups of a forest plot.

    Args:
        block: The chart.

    Returns:
        A scale that contains the intervals of groups with enough clusters, and the noise floor.
    """
    if block.ticks:
        return Scale(low=block.ticks[0], high=block.ticks[-1], ticks=tuple(block.ticks))
    marks = [mark for _, _, of_row in dot_rows(block)[0] for mark in of_row]
    certain = [mark for mark in marks if not mark.is_faded] or marks
    low = min([0.0, *(mark.low for mark in certain)])
    high = max([0.0, *(mark.high for mark in certain), *block.noise.values()])
    if block.margin is not None:
        low, high = min(low, -block.margin), max(high, block.margin)
    scale = nice_scale(low, high if high > low else 0.1)
    if any(mark.dot.value.kind == "rate" for mark in marks) and scale.high > 1:
        return nice_scale(low, 1.0)
    return scale


def lines_scales(block: Lines) -> tuple[Scale, Scale]:
    """Choose the scales of a chart of curves.

    Args:
        block: The chart.

    Returns:
        The horizontal and the vertical scale. If rates exceed 0.5, the scale ends at 1.
    """
    xs = [point.x for series in block.series for point in series.points]
    xs += [x for x, *_ in block.band]
    values = [point.value for series in block.series for point in series.points]
    if block.reference is not None:
        values.append(block.reference[1])
    ends = [end for value in values for end in _ends(value)]
    ends += [end for _, *band in block.band for end in band if not math.isnan(end)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    if all(value.kind == "rate" for value in values) and 0.5 < high <= 1:
        vertical = nice_scale(0.0, 1.0, n_ticks=4)
    else:
        vertical = nice_scale(low, high, n_ticks=5)
    distinct = sorted(set(xs))
    margin = 0.1 * (distinct[-1] - distinct[0]) / max(1, len(distinct) - 1) if distinct else 0.0
    begin, end = (distinct[0] - 4 * margin, distinct[-1] + 4 * margin) if distinct else (0.0, 1.0)
    if begin == end:
        begin, end = begin - 0.5, end + 0.5
    if len(distinct) <= 12:
        return Scale(low=begin, high=end, ticks=tuple(distinct)), vertical
    return nice_scale(begin, end, stretch=False), vertical


def _ends(value: Value) -> Iterator[float]:
    """Yield the number and its bounds, except for missing ones."""
    for end in (value.value, value.low, value.high):
        if end is not None and not math.isnan(end):
            yield end


def bars_cells(counts: Sequence[int]) -> list[tuple[float, float]]:
    """Lay out one stacked bar.

    Args:
        counts: Counts of its parts.

    Returns:
        Start and length of each part in [0, 1]; all lengths are 0 if all counts are 0.
    """
    n = sum(counts)
    begin, cells = 0.0, []
    for count in counts:
        length = count / n if n else 0.0
        cells.append((begin, length))
        begin += length
    return cells
