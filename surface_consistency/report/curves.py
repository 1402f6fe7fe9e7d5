"""Curves over their band, with what they are compared with."""

import math
from collections.abc import Callable, Iterator, Sequence

from surface_consistency.report.colours import model_style
from surface_consistency.report.layout import FEW_POINTS, lines_scales
from surface_consistency.report.page import Lines, Point, Series
from surface_consistency.report.scene import (
    Box,
    Mark,
    Scene,
    Stroke,
    Symbol,
    Words,
    px,
    straight,
)
from surface_consistency.tables.numbers import format_value, span_text, tick_text, value_text


def lines_scene(block: Lines) -> Scene:
    """Draw curves over their band.

    Args:
        block: The chart.

    Returns:
        The picture, 440 wide.
    """
    horizontal, vertical = lines_scales(block)
    points = [point for series in block.series for point in series.points]
    kinds = {point.value.kind for point in points}
    counts: dict[float, list[int]] = {}
    for point in points:
        if point.n is not None:
            counts.setdefault(point.x, []).append(point.n)
    height = 296 if counts else 280

    def place(x: float, y: float) -> tuple[float, float]:
        return round(52 + 380 * horizontal.share(x), 1), round(234 - 220 * vertical.share(y), 1)

    marks = [*_band(block, place), *_reference(block, place)]
    for tick in vertical.ticks:
        text, (_, y) = tick_text(tick, kinds <= {"rate", "difference"}), place(0, tick)
        text += "\u00a0%" if kinds == {"rate"} and tick == vertical.ticks[-1] else ""
        marks.append(Stroke(css="grid", path=straight(52, y, 432, y)))
        marks.append(Words(x=44, y=y + 5, text=text, anchor="end"))
    for tick in horizontal.ticks:
        x, _ = place(tick, 0)
        text = tick_text(tick, False)
        marks.append(Words(x=x, y=254, css="t-ink", text=text, anchor="middle"))
        if tick in counts:
            text = f"n {span_text(counts[tick])}"
            marks.append(Words(x=x, y=271, text=text, anchor="middle"))
    marks.append(Words(x=242, y=height - 4, text=block.x_title, anchor="middle"))
    for series in block.series:
        marks += _curve(series, place, has_texts=len(points) <= 7)
    alt = (
        f"{series.label} at {tick_text(point.x, False)}: {value_text(point.value)}"
        for series in block.series
        for point in series.points
    )
    return Scene(
        width=440,
        height=height,
        marks=marks,
        alt=f"{block.title}: {'; '.join(alt)}",
    )


_Place = Callable[[float, float], tuple[float, float]]


def is_faint(point: Point) -> bool:
    """Tell whether a point stands on few observations.

    Args:
        point: The point.

    Returns:
        True below `FEW_POINTS`.
    """
    return point.n is not None and point.n < FEW_POINTS


def _band(block: Lines, place: _Place) -> Iterator[Mark]:
    """Yield the grey band and its middle, as far as they are known."""
    band = [row for row in block.band if not any(map(math.isnan, row))]
    if band:
        lower = [place(x, low) for x, low, _, _ in band]
        upper = [place(x, high) for x, _, _, high in reversed(band)]
        yield Stroke(css="floor-1", path=f"{_path([*lower, *upper])}Z")
        yield Stroke(css="middle", path=_path([place(x, middle) for x, _, middle, _ in band]))


def _reference(block: Lines, place: _Place) -> Iterator[Mark]:
    """Yield the level to compare with, and its interval."""
    if block.reference is None:
        return
    name, value = block.reference
    level, low, high = (
        place(0, value.value if end is None else end)[1]
        for end in (value.value, value.low, value.high)
    )
    yield Box(css="floor-1", x=52, y=high, width=380, height=low - high)
    yield Stroke(css="leader", path=straight(52, level, 432, level))
    yield Words(x=428, y=level - 5, text=f"{name}, {format_value(value)[0]}", anchor="end")


def _curve(series: Series, place: _Place, *, has_texts: bool) -> Iterator[Mark]:
    """Yield a curve, its points with their intervals, and their values where there is room."""
    hue, shape = model_style(series.model or 0)
    css = "reference" if series.model is None else f"m{hue}"
    known = [point for point in series.points if not math.isnan(point.value.value)]
    if known:
        path = _path([place(point.x, point.value.value) for point in known])
        yield Stroke(css=f"curve {css}", path=path)
    for point in known:
        value, faded = point.value, " faded" if is_faint(point) else ""
        text, interval = format_value(value)
        x, y = place(point.x, value.value)
        if interval and value.low is not None and value.high is not None:
            ends = place(point.x, value.low)[1], place(point.x, value.high)[1]
            yield Stroke(css=f"ln {css}{faded}", path=straight(x, ends[0], x, ends[1]))
        title = f"{text} {interval}"
        yield Symbol(css=f"mk {css}{faded}", shape=shape, x=x, y=y, title=title)
        if has_texts:
            yield Words(x=x + 8, y=y - 4, css="t-ink", text=text.split("\u00a0")[0])


def _path(points: Sequence[tuple[float, float]]) -> str:
    """Write a line through points."""
    return f"M{'L'.join(f'{px(x)} {px(y)}' for x, y in points)}"
