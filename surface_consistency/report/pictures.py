"""Figures of a page: mosaic plots, rows on a common scale, curves and alluvial plots."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final
from urllib.parse import urlencode

from surface_consistency.report import layout, page
from surface_consistency.report.colours import model_style
from surface_consistency.report.scene import (
    Box,
    Mark,
    Scene,
    Span,
    Stroke,
    Symbol,
    Words,
    px,
    straight,
)
from surface_consistency.tables.numbers import (
    format_interval,
    format_number,
    format_value,
    span_text,
    text_width,
    tick_text,
    value_text,
)

_SIDE: Final = 300
_TOP: Final = 40
_LETTER: Final = 6.4


def small_square(
    square: page.MosaicPlot, names: Sequence[str] = (), *, go: Mapping[str, str] | None = None
) -> Scene:
    """Draw a small mosaic plot without labels.

    Args:
        square: The counts.
        names: Names of the cells, for tooltips; none by default.
        go: Further filters of the answers that a cell links to; None without links.

    Returns:
        The figure, 100 wide and high.
    """
    marks = _square_marks(layout.square_cells(square), names, side=100, top=0, go=go)
    return Scene(width=100, height=100, marks=marks, alt=_counted(square, names))


def square_scene(
    square: page.MosaicPlot,
    names: Sequence[str],
    condition: str,
    *,
    go: Mapping[str, str] | None = None,
) -> Scene:
    """Draw a mosaic plot with labels inside the cells, or outside next to them.

    Args:
        square: The counts.
        names: Names of the cells.
        condition: Name of the first condition.
        go: As for `small_square`.

    Returns:
        The figure, 408 wide; the side of the mosaic plot is 300.
    """
    cells = layout.square_cells(square)
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
                outside, beside = _place_label(cell, name, beside)
                marks += outside
        marks += _column_heads(condition, cells)
    return Scene(width=_SIDE + 108, height=below + 8, marks=marks, alt=_counted(square, names))


def _counted(square: page.MosaicPlot, names: Sequence[str]) -> str:
    """Write the text alternative of a square."""
    counts = [
        f"{name} {getattr(square, cell):,}" for name, cell in zip(names, layout.CELLS, strict=False)
    ]
    return f"{square.title}: {', '.join(counts)}" if counts else square.title


def _square_marks(
    cells: Sequence[layout.Rectangle],
    names: Sequence[str],
    *,
    side: int,
    top: int,
    go: Mapping[str, str] | None,
) -> list[Mark]:
    """Draw the cells of a square and the lines between them; without names, without tooltips."""
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


def _inside_labels(cell: layout.Rectangle, name: str) -> list[Mark]:
    """Label a cell inside; nothing if the label does not fit."""
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


def _label_below(cell: layout.Rectangle, name: str, y: float) -> list[Mark]:
    """Label a cell of the left part below the square."""
    count = f"{cell.count:,}"
    share = f"{format_number(cell.share)}\u00a0% {name}"
    return [
        Box(css=f"c-{cell.cell}", x=0, y=y - 10, width=10, height=10),
        Words(x=16, y=y, css="t-n", text=count),
        Words(x=24 + 8.2 * len(count), y=y, text=share),
    ]


def _place_label(cell: layout.Rectangle, name: str, free: float) -> tuple[list[Mark], float]:
    """Label a cell of the right part next to the square; also return the end of the label."""
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


def _column_heads(name: str, cells: Sequence[layout.Rectangle]) -> Iterator[Words]:
    """Yield the proportions correct and incorrect under the first condition, above the parts."""
    name = name if len(name) <= 18 else f"{name[:17]}…"
    left = cells[0].share + cells[1].share
    room = 7.4 * text_width(f"{name} correct") + 14
    second = min(max(_SIDE * cells[0].width, room), _SIDE - 20.0)
    for x, word, part in ((0.0, "correct", left), (second, "incorrect", 1 - left)):
        yield Words(x=x, y=14, text=f"{name} {word}")
        yield Words(x=x, y=31, css="t-ink", text=f"{format_number(part)}\u00a0%")


def _inside(count: str, share: str, name: str, width: float, height: float) -> list[str]:
    """Choose the lines below the count in a cell; empty if the label does not fit."""
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


_BAR_HEIGHT: Final = 24.0
_BAR_WIDTH: Final = 300
"""Minimum width of a bar in pixels, which determines the numbers that fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """A row; x and widths are in percent of the scale, y and heights in pixels."""

    label: str
    """Name."""

    marks: Sequence[Mark]
    """The marks."""

    height: float
    """Height."""

    alt: str
    """Text alternative."""

    remark: str
    """Text on the right: the number of clusters, or the total."""

    css: str = ""
    """Its CSS classes: "head" (outer group), "sub" (member of the outer group above) and "few"."""

    model: int | None = None
    """Index of the model whose marker is before the label; None without a marker."""

    rest: str = ""
    """Texts that do not fit into the row, for the line below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strips:
    """Rows on one scale."""

    rows: Sequence[Strip]
    """From top to bottom."""

    scale: layout.Scale
    """The scale."""

    axis: str
    """Label of the scale."""

    is_share: bool = True
    """Whether ticks are in percent."""

    bands: Sequence[Box] = ()
    """Bands behind all rows; their y and height are not used."""

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Position and text of each tick."""
        return [
            (100 * self.scale.share(tick), tick_text(tick, self.is_share))
            for tick in self.scale.ticks
        ]


def forest_strips(block: page.ForestPlot, models: Sequence[str]) -> Strips:
    """Draw a forest plot of rates by group, with the noise floor.

    Args:
        block: The chart.
        models: Labels of the models of the page.

    Returns:
        One row per group with enough clusters, with one mark per model.
    """
    rows, _ = layout.dot_rows(block)
    scale = layout.dots_scale(block)
    bounds = sorted(block.noise.values(), reverse=True)
    zero = 100 * scale.share(0)
    has_heads = any(level for _, level, _ in rows)
    return Strips(
        rows=[
            Strip(
                label=label,
                marks=[
                    one
                    for place, mark in enumerate(marks, 1)
                    for one in _dot(mark, scale, 10.0 * place, models)
                ],
                height=max(22.0, 10.0 + 10 * len(marks)),
                alt="; ".join(dot_text(mark, models) for mark in marks),
                remark=block.remarks.get(label, "")
                if block.remarks
                else span_text([one.dot.n_clusters for one in marks]),
                css=" ".join(
                    ["sub" if level else "head"] * has_heads
                    + ["few"] * (bool(marks) and all(mark.is_faded for mark in marks))
                ),
            )
            for label, level, marks in rows
        ],
        scale=scale,
        axis=block.axis,
        is_share={"rate", "difference"}
        >= {mark.dot.value.kind for *_, row in rows for mark in row},
        bands=[
            *_margin_band(block, scale),
            *(
                Box(
                    css=f"floor-{1 if place or not bounds[1:] else 2}",
                    x=zero,
                    y=0,
                    width=100 * scale.share(bound) - zero,
                    height=0,
                )
                for place, bound in enumerate(bounds)
            ),
        ],
    )


def _margin_band(block: page.ForestPlot, scale: layout.Scale) -> list[Box]:
    """Draw the equivalence margin."""
    if block.margin is None:
        return []
    low, high = (100 * scale.share(end) for end in (-block.margin, block.margin))
    return [Box(css="floor-2", x=low, y=0, width=high - low, height=0)]


def dot_text(mark: layout.Interval, models: Sequence[str]) -> str:
    """Write the text alternative of a dot.

    Args:
        mark: The dot.
        models: Labels of the models of the page.

    Returns:
        Model, number, interval and number of observations.
    """
    value = mark.dot.value
    text, interval = format_value(value)
    if mark.is_wilson:
        interval = format_interval(mark.low, mark.high, value.kind)
    parts = filter(None, (f"{models[mark.dot.model]}:", text, interval))
    return f"{' '.join(parts)}, {mark.dot.n:,} {mark.dot.unit}"


def _dot(
    mark: layout.Interval, scale: layout.Scale, y: float, models: Sequence[str]
) -> Iterator[Mark]:
    """Yield the line of a dot, arrows if it exceeds the scale, and the dot."""
    hue, shape = model_style(mark.dot.model)
    css = f"m{hue}{' faded' if mark.is_faded else ''}"
    low, high = 100 * scale.share(mark.low), 100 * scale.share(mark.high)
    yield Span(css=f"ln {css}{' wilson' if mark.is_wilson else ''}", x=low, to_x=high, y=y)
    ends = (("left", 0.0, mark.low < scale.low), ("right", 100.0, mark.high > scale.high))
    for side, x, is_beyond in ends:
        if is_beyond:
            yield Symbol(css=f"mk {css}", shape=side, x=x, y=y, title="")
    if scale.low <= mark.dot.value.value <= scale.high:
        yield Symbol(
            css=f"mk {css}{'' if mark.dot.is_certain else ' open'}",
            shape=shape,
            x=100 * scale.share(mark.dot.value.value),
            y=y,
            title=dot_text(mark, models),
        )


def bars_strips(block: page.StackedBars) -> Strips:
    """Draw stacked bars.

    Args:
        block: The bars.

    Returns:
        One row per bar. `Strip.rest` contains the proportions of parts that have an interval, and
        the counts of parts that are too short for them.
    """
    rows = []
    for place, (label, model, counts) in enumerate(block.rows):
        n = sum(counts)
        marks: list[Mark] = []
        rest, alts = [], []
        shares = block.shares[place] if block.shares else [None] * len(counts)
        cells = zip(block.parts, counts, layout.bars_cells(counts), shares, strict=True)
        for (name, cell), count, (begin, length), share in cells:
            if not count:
                continue
            text, left = f"{count:,}", 100 * begin
            percent = "" if share is None or share.low is None else value_text(share)
            alts.append(f"{name} {text}{f' ({percent})' if percent else f' of {n:,}'}")
            width = 100 * length
            box = Box(css=f"c-{cell}", x=left, y=0, width=width, height=_BAR_HEIGHT, title=alts[-1])
            marks.append(box)
            has_room = _BAR_WIDTH * length > 8 * len(text) + 14
            if has_room:
                marks.append(Words(css=f"in-{cell}", x=left, y=16.5, indent=7, text=text))
            if percent or not has_room:
                rest.append(alts[-1])
        rows.append(
            Strip(
                label=label,
                marks=marks,
                height=_BAR_HEIGHT,
                alt=f"{label}: {', '.join(alts)}",
                remark=f"{n:,}",
                model=model,
                rest=", ".join(rest) if n else "nothing to show",
            )
        )
    scale = layout.Scale(low=0.0, high=1.0, ticks=(0.0, 0.25, 0.5, 0.75, 1.0))
    return Strips(rows=rows, scale=scale, axis="%")


def lines_scene(block: page.Lines) -> Scene:
    """Draw curves with their band.

    Args:
        block: The chart.

    Returns:
        The figure, 440 wide.
    """
    horizontal, vertical = layout.lines_scales(block)
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
    return Scene(width=440, height=height, marks=marks, alt=f"{block.title}: {'; '.join(alt)}")


_Place = Callable[[float, float], tuple[float, float]]


def is_faint(point: page.Point) -> bool:
    """Return whether a point has few observations.

    Args:
        point: The point.

    Returns:
        True below `FEW_POINTS`.
    """
    return point.n is not None and point.n < layout.FEW_POINTS


def _band(block: page.Lines, place: _Place) -> Iterator[Mark]:
    """Yield the grey band and its middle, without missing values."""
    band = [row for row in block.band if not any(map(math.isnan, row))]
    if band:
        lower = [place(x, low) for x, low, _, _ in band]
        upper = [place(x, high) for x, _, _, high in reversed(band)]
        yield Stroke(css="floor-1", path=f"{_path([*lower, *upper])}Z")
        yield Stroke(css="middle", path=_path([place(x, middle) for x, _, middle, _ in band]))


def _reference(block: page.Lines, place: _Place) -> Iterator[Mark]:
    """Yield the reference level and its interval."""
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


def _curve(series: page.Series, place: _Place, *, has_texts: bool) -> Iterator[Mark]:
    """Yield a curve, its points with their intervals, and their values if there is room."""
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


_FLOW_HEIGHT: Final = 330
_FLOW_TOP: Final = 44
_THICK: Final = 14


def flow_scene(block: page.AlluvialPlot) -> Scene:
    """Draw an alluvial plot of correctness by state; heights are numbers of pairs.

    The last two states determine the cell of a pair, and with it the colour of its ribbon. In
    earlier states, correct answers have the colour of "both".

    Args:
        block: The content of the plot.

    Returns:
        The figure, 800 wide: ribbons between the states, correct above incorrect, and labels.

    Raises:
        ValueError: If a key of the counts does not have one entry per state, or there are fewer
            than two states.
    """
    n_states = len(block.states)
    if n_states < 2 or any(len(path) != n_states for path in block.counts):
        raise ValueError(
            f"the plot {block.name!r} must have two states or more and one label per state "
            f"({n_states} states); got {', '.join(map(str, block.counts)) or 'no counts'}"
        )
    paths = [path for path, count in block.counts.items() if count]
    left = [round(1 + 610 * state / (n_states - 1), 1) for state in range(n_states)]
    sizes = {
        path: _FLOW_HEIGHT * 0.975 * block.counts[path] / sum(block.counts.values())
        for path in paths
    }
    places: list[dict[tuple[bool, ...], float]] = [{} for _ in left]
    boxes: list[Mark] = []
    heads: list[Mark] = []
    labels: list[Mark] = []
    for state, x in enumerate(left):
        name, meaning, value = block.states[state]
        heads += [Words(x=x, y=14, css="t-head", text=name), Words(x=x, y=31, text=meaning)]
        y, free = float(_FLOW_TOP), 0.0
        for is_right in (True, False):
            members = [path for path in paths if path[state] is is_right]
            members.sort(key=lambda path: [not seen for seen in path])
            y += _FLOW_HEIGHT * 0.025 * (y > _FLOW_TOP)
            begin = y
            for cell, run in groupby(members, key=lambda path: _state_cell(path, state)):
                start = y
                for path in run:
                    places[state][path] = y
                    y += sizes[path]
                boxes.append(Box(css=f"c-{cell}", x=x, y=start, width=_THICK, height=y - start))
            if members:
                n = sum(block.counts[path] for path in members)
                share = value_text(value)
                if not is_right:
                    part = n / sum(block.counts.values())
                    share = f"0 correct, {share}" if part == 1 else f"{format_number(part)}\u00a0%"
                big = f"{n:,} {'correct' if is_right else 'incorrect'}"
                level = max(begin + 16, (begin + y) / 2 - 2, free)
                is_thin = is_right and y - begin < 40
                beside = (x + _THICK + 13 + 9.6 * len(big), level)
                labels.append(Words(x=x + _THICK + 9, y=level, css="t-ink t-big", text=big))
                at, below = beside if is_thin else (x + _THICK + 9, level + 17)
                labels.append(Words(x=at, y=below, text=share))
                free = level + (22 if is_thin else 40)
    ribbons = [
        Stroke(
            css=f"ribbon r-{_path_cell(path)}",
            path=_ribbon(
                left[state] + _THICK, left[state + 1], places[state][path],
                places[state + 1][path], sizes[path],
            ),
        )
        for state in range(n_states - 1)
        for path in _calm_first(paths)
    ]  # fmt: skip
    alt = "; ".join(f"{name} {value_text(value)} correct" for name, _, value in block.states)
    return Scene(
        width=800, height=_FLOW_TOP + _FLOW_HEIGHT + 12, marks=[*ribbons, *boxes, *heads, *labels],
        alt=f"{block.title}: {alt}",
    )  # fmt: skip


def _path_cell(path: tuple[bool, ...]) -> layout.CellName:
    """Return the cell of the last two states."""
    return layout.CELLS[2 * (not path[-2]) + (not path[-1])]


def _state_cell(path: tuple[bool, ...], state: int) -> layout.CellName:
    """Return the cell whose colour a pair has in a state."""
    if not path[state]:
        return "neither"
    return "both" if state < len(path) - 2 else _path_cell(path)


def _calm_first(paths: Iterable[tuple[bool, ...]]) -> list[tuple[bool, ...]]:
    """Sort paths so that flips are drawn last."""
    return sorted(paths, key=lambda path: (path[-2] != path[-1], path[-2], path))


def _ribbon(x: float, to_x: float, y: float, to_y: float, height: float) -> str:
    """Write the outline of a ribbon."""
    middle = f"{(x + to_x) / 2:.1f}"
    return (
        f"M{x:.1f} {y:.1f}C{middle} {y:.1f} {middle} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
        f"L{to_x:.1f} {to_y + height:.1f}C{middle} {to_y + height:.1f} {middle} {y + height:.1f} "
        f"{x:.1f} {y + height:.1f}Z"
    )
