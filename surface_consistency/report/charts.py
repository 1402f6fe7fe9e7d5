"""Views of the pictures of a page: what its templates need beyond the block, in their units."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from surface_consistency.report.colours import model_style
from surface_consistency.report.layout import (
    CELLS,
    FEW_CLUSTERS,
    FEW_POINTS,
    LEAST_CLUSTERS,
    DotRow,
    Mark,
    Rectangle,
    Scale,
    bars_cells,
    dot_rows,
    dots_scale,
    flow_layout,
    lines_scales,
    square_cells,
)
from surface_consistency.report.numbers import (
    format_interval,
    format_number,
    format_value,
    text_width,
)
from surface_consistency.report.page import Bars, Dots, Flow, Heat, Lines, Square, Squares

__all__ = [
    "View",
    "bars_view",
    "check_model",
    "dots_view",
    "flow_view",
    "heat_map_view",
    "heat_values",
    "lines_view",
    "plain_square",
    "squares_view",
    "tick_text",
]

View = dict[str, Any]

_HEAT_MODELS: Final = 4
_MOST_NUMBERS: Final = 12
_MOST_SQUARES: Final = 4
_SIDE: Final = 300
_TOP: Final = 40
_LETTER: Final = 6.4


def check_model(index: int, models: Sequence[str]) -> int:
    """Refuse an index that no model has.

    Args:
        index: The index.
        models: Labels of the models of the page.

    Returns:
        The index.

    Raises:
        ValueError: If no model has it.
    """
    if not 0 <= index < len(models):
        raise ValueError(
            f"model index {index} is not that of one of the {len(models)} models of the page"
        )
    return index


def squares_view(block: Squares, models: Sequence[str], *, is_linked: bool) -> View:
    """Make the view of squares: large ones with labels, small ones from five on.

    Args:
        block: The squares.
        models: Labels of the models of the page.
        is_linked: Whether there are answers that the cells lead to.

    Returns:
        What the template sets.
    """
    is_small = block.size == "small" or len(block.squares) > _MOST_SQUARES
    views = []
    for square in block.squares:
        if square.model is not None:
            check_model(square.model, models)
        cells = square_cells(square)
        n = sum(cell.count for cell in cells)
        flips = cells[1].count + cells[2].count
        told = ", ".join(
            f"{name} {cell.count:,}" for name, cell in zip(block.cells, cells, strict=True)
        )
        side, top = (100, 0) if is_small else (_SIDE, _TOP)
        views.append(
            {
                "square": square,
                "is_empty": n == 0,
                "pairs": f"{n:,} pairs",
                "flips": f"{format_number(flips / n)}\u00a0%" if n else "",
                "label": f"{square.title}: {told}",
                "cells": [
                    _cell_view(cell, name, side, top)
                    | {"go": urlencode({"cell": cell.cell, **square.filters}) if is_linked else ""}
                    for cell, name in zip(cells, block.cells, strict=True)
                ],
                "gaps": list(_gaps(cells, side, top)),
                **({} if is_small else _labels(block, cells, n)),
            }
        )
    return {
        "squares": views,
        "is_small": is_small,
        "legend": list(zip(CELLS, block.cells, strict=True)),
        "note": block.note,
    }


def plain_square(counts: Sequence[int], label: str) -> View:
    """Make the view of a square in a table.

    Args:
        counts: Pairs of the cells, in the order of `CELLS`.
        label: What it says in words.

    Returns:
        What the template sets.
    """
    both, first_only, second_only, neither = counts
    cells = square_cells(
        Square(
            title=label,
            model=None,
            both=both,
            first_only=first_only,
            second_only=second_only,
            neither=neither,
        )
    )
    return {
        "cells": [_cell_view(cell, cell.cell, 100, 0) | {"go": ""} for cell in cells],
        "gaps": list(_gaps(cells, 100, 0)),
        "is_empty": not any(counts),
        "label": label,
    }


def _cell_view(cell: Rectangle, name: str, side: int, top: int) -> View:
    """View of one cell of a square."""
    x, y, width, height = (side * size for size in (cell.x, cell.y, cell.width, cell.height))
    flat = top if cell.cell in ("both", "second_only") else top + side
    edge = f"M{x:.2f} {top + y:.2f}v{height:.2f}" if width == 0 else f"M{x:.2f} {flat}h{width:.2f}"
    return {
        "name": cell.cell,
        "label": f"{name}: {cell.count:,}, {format_number(cell.share)} %",
        "box": tuple(f"{size:.4f}" for size in (x, top + y, width, height)) if cell.count else (),
        "edge": "" if math.isnan(cell.share) else edge,
    }


def _gaps(cells: Sequence[Rectangle], side: int, top: int) -> Iterator[str]:
    """Yield the lines between the cells."""
    split = side * cells[0].width
    if 0 < split < side:
        yield f"M{split:.2f} {top}v{side}"
    for upper in (cells[0], cells[2]):
        if upper.width > 0 and 0 < upper.height < 1:
            yield f"M{side * upper.x:.2f} {top + side * upper.height:.2f}h{side * upper.width:.2f}"


def _labels(block: Squares, cells: Sequence[Rectangle], n: int) -> View:
    """Place the labels of a large square: in its cells, else outside by their corner."""
    texts: list[tuple[float, float, str, str]] = []
    leaders: list[str] = []
    swatches: list[tuple[float, float, str]] = []
    below, beside = float(_TOP + _SIDE), float(_TOP)
    for cell, name in zip(cells, block.cells, strict=True) if n else ():
        x, width, height = (_SIDE * size for size in (cell.x, cell.width, cell.height))
        y = _TOP + _SIDE * cell.y
        count, share = f"{cell.count:,}", f"{format_number(cell.share)}\u00a0%"
        if lines := _inside(count, share, name, width, height):
            texts.append((x + 10, y + 25, f"in-{cell.cell} t-big", count))
            for place, line in enumerate(lines):
                texts.append((x + 10, y + 43 + 16 * place, f"in-{cell.cell}", line))
        elif cell.cell in ("both", "first_only"):
            below += 20
            swatches.append((0, below - 10, cell.cell))
            texts.append((16, below, "t-n", count))
            texts.append((24 + 8.2 * len(count), below, "", f"{share} {name}"))
        else:
            lines = [count, share, *_wrapped(name, 13)]
            begin = y if cell.cell == "second_only" else y + height / 2 - 10
            begin = max(beside, min(begin, _TOP + _SIDE - 16 * len(lines)))
            anchor = min(max(begin + 8, y + 0.5), y + height - 0.5)
            leaders.append(f"M{_SIDE} {anchor:.1f}L{_SIDE + 9} {begin + 8:.1f}")
            swatches.append((_SIDE + 12, begin + 3, cell.cell))
            for place, line in enumerate(lines):
                css, indent = ("", 12) if place else ("t-n", 27)
                texts.append((_SIDE + indent, begin + 12 + 16 * place, css, line))
            beside = begin + 16 * len(lines) + 8
    if n:
        name = block.conditions[0]
        name = name if len(name) <= 18 else f"{name[:17]}…"
        left = cells[0].share + cells[1].share
        second = min(
            max(_SIDE * cells[0].width, 7.4 * text_width(f"{name} right") + 14), _SIDE - 20.0
        )
        for x, word, part in ((0.0, "right", left), (second, "wrong", 1 - left)):
            texts.append((x, 14, "", f"{name} {word}"))
            texts.append((x, 31, "t-ink", f"{format_number(part)}\u00a0%"))
    else:
        texts.append((110, _TOP + 155, "", "no pairs"))
    return {
        "leaders": leaders,
        "swatches": [(x, round(y, 1), cell) for x, y, cell in swatches],
        "texts": [(round(x, 1), round(y, 1), css, text) for x, y, css, text in texts],
        "height": below + 8,
    }


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


def dots_view(block: Dots, models: Sequence[str]) -> View:
    """Make the view of a chart of dots, or of a heat map of rates from four models on.

    Args:
        block: The chart.
        models: Labels of the models of the page.

    Returns:
        What the template sets.
    """
    rows, n_hidden = dot_rows(block)
    scale = dots_scale(block)
    marks = [mark for row in rows for mark in row.marks]
    shown = sorted({check_model(mark.dot.model, models) for mark in marks})
    is_heat = len(shown) >= _HEAT_MODELS and all(m.dot.value.kind == "rate" for m in marks)
    is_cut = any(mark.high > scale.high or mark.low < scale.low for mark in marks)
    few = f"fewer than {LEAST_CLUSTERS} {block.clusters}"
    notes = (
        any(mark.is_faded for mark in marks)
        and f"Paler groups stand on fewer than {FEW_CLUSTERS} {block.clusters}.",
        n_hidden == 1 and f"1 group of {few} is in the table only.",
        n_hidden > 1 and f"{n_hidden} groups of {few} are in the table only.",
        is_cut and not is_heat and "An arrow marks what runs off the scale.",
        block.note,
    )
    bounds = sorted(block.noise.values(), reverse=True)
    names = {check_model(index, models): f" {models[index]}" for index in sorted(block.noise)}
    zero = scale.share(0)
    return {
        "block": block,
        "is_heat": is_heat,
        "rows": [
            _dot_row(row, any(other.level for other in rows))
            | (
                {"cells": _heat_cells(row, shown, scale.high)}
                if is_heat
                else {"marks": [_mark(mark, scale, models) for mark in row.marks]}
            )
            for row in rows
        ],
        "models": shown,
        "ticks": [(_percent(scale.share(tick)), tick_text(tick)) for tick in scale.ticks],
        "bands": [
            (
                _percent(zero),
                _percent(scale.share(bound) - zero),
                1 if place or not bounds[1:] else 2,
            )
            for place, bound in enumerate(bounds)
        ],
        "floor": ", ".join(
            f"to {format_number(block.noise[index])}\u00a0%{name if bounds[1:] else ''}"
            for index, name in names.items()
        ),
        "has_certain": any(mark.dot.is_certain for mark in marks),
        "has_wilson": any(mark.is_wilson for mark in marks),
        "note": _joined(notes),
    }


def _dot_row(row: DotRow, has_heads: bool) -> View:
    """View of one group, without its marks."""
    css = ["sub" if row.level else "head" if has_heads else ""]
    css += ["few"] * all(mark.is_faded for mark in row.marks)
    return {"label": row.label, "css": " ".join(css).strip(), "clusters": _span(row.n_clusters)}


def _mark(mark: Mark, scale: Scale, models: Sequence[str]) -> View:
    """View of one dot."""
    hue, shape = model_style(mark.dot.model)
    value = mark.dot.value
    text, interval = format_value(value)
    if mark.is_wilson:
        interval = format_interval(mark.low, mark.high, value.kind)
    is_inside = scale.low <= value.value <= scale.high
    return {
        "mark": mark,
        "hue": hue,
        "shape": shape,
        "x": _percent(scale.share(value.value)) if is_inside else None,
        "low": _percent(scale.share(mark.low)),
        "high": _percent(scale.share(mark.high)),
        "right": mark.high > scale.high,
        "left": mark.low < scale.low,
        "said": f"{_joined((f'{models[mark.dot.model]}:', text, interval))}, {mark.dot.n:,} pairs",
    }


def _heat_cells(row: DotRow, shown: Sequence[int], top: float) -> Iterator[View]:
    """Yield the views of the cells of a heat map."""
    by_model = {mark.dot.model: mark for mark in row.marks}
    for index in shown:
        mark = by_model.get(index)
        if mark is None:
            yield {"css": "soft", "text": "·", "said": "", "is_bold": False}
            continue
        value = mark.dot.value
        step = "few" if mark.is_faded else f"heat-{min(5, int(6 * value.value / top))}"
        yield {
            "css": step,
            "text": format_number(value.value),
            "said": _joined((format_value(value)[1], f"{mark.dot.n:,} pairs")),
            "is_bold": mark.dot.is_above_noise and not mark.is_faded and not mark.is_wilson,
        }


def lines_view(block: Lines, models: Sequence[str]) -> View:
    """Make the view of curves.

    Args:
        block: The chart.
        models: Labels of the models of the page.

    Returns:
        What the template sets, in units of a picture 440 wide.
    """
    horizontal, vertical = lines_scales(block)
    points = [point for series in block.series for point in series.points]
    kinds = {point.value.kind for point in points}
    counts: dict[float, list[int]] = {}
    for series in block.series:
        if series.model is not None:
            check_model(series.model, models)
        for point in series.points:
            if point.n is not None:
                counts.setdefault(point.x, []).append(point.n)

    def x_of(value: float) -> float:
        return round(52 + 380 * horizontal.share(value), 1)

    def y_of(value: float) -> float:
        return round(234 - 220 * vertical.share(value), 1)

    y_ticks = [(y_of(tick), tick_text(tick, kinds <= {"rate", "difference"}))
               for tick in vertical.ticks]  # fmt: skip
    if kinds == {"rate"}:
        y_ticks[-1] = (y_ticks[-1][0], f"{y_ticks[-1][1]}\u00a0%")
    band = [row for row in block.band if not any(map(math.isnan, row))]
    faded = any(point.n is not None and point.n < FEW_POINTS for point in points)
    said = (
        f"{series.label} at {tick_text(point.x, False)}: {_joined(format_value(point.value))}"
        for series in block.series
        for point in series.points
    )
    return {
        "block": block,
        "legend": block.series if len(block.series) > 1 else (),
        "height": 296 if counts else 280,
        "x": x_of,
        "y": y_of,
        "y_ticks": y_ticks,
        "x_ticks": [
            (x_of(tick), tick_text(tick, False), _span(counts.get(tick, ())))
            for tick in horizontal.ticks
        ],
        "band": _path(
            [
                *((x, low) for x, low, _, _ in band),
                *((x, high) for x, _, _, high in reversed(band)),
            ],
            x_of,
            y_of,
        ),
        "middle": _path([(x, middle) for x, _, middle, _ in band], x_of, y_of),
        "curves": [
            {
                "css": "reference" if series.model is None else f"m{model_style(series.model)[0]}",
                "shape": model_style(series.model or 0)[1],
                "points": (known := [p for p in series.points if not math.isnan(p.value.value)]),
                "path": _path([(point.x, point.value.value) for point in known], x_of, y_of),
            }
            for series in block.series
        ],
        "has_texts": len(points) <= 7,
        "few": FEW_POINTS,
        "said": f"{block.title}: {'; '.join(said)}",
        "note": _joined(
            (
                block.note,
                faded and f"Faded points stand on fewer than {FEW_POINTS} observations.",
            )
        ),
    }


def _path(points: Sequence[tuple[float, float]], x_of: Any, y_of: Any) -> str:  # noqa: ANN401
    """Write a line through points."""
    told = "L".join(f"{x_of(x)} {y_of(y)}" for x, y in points)
    return f"M{told}" if told else ""


def bars_view(block: Bars, models: Sequence[str]) -> View:
    """Make the view of stacked bars.

    Args:
        block: The bars.
        models: Labels of the models of the page.

    Returns:
        What the template sets; counts of parts too short for them stand below their bar.
    """
    rows = []
    for label, model, counts in block.rows:
        if model is not None:
            check_model(model, models)
        n = sum(counts)
        parts = [
            {
                "cell": cell,
                "x": _percent(x),
                "width": _percent(width),
                "text": f"{count:,}" if 300 * width > 8 * len(f"{count:,}") + 14 else "",
                "said": f"{name} {count:,} ({format_number(count / n)}\u00a0%)",
            }
            for (name, cell), count, (x, width) in zip(
                block.parts, counts, bars_cells(counts), strict=True
            )
            if count
        ]
        rest = [part["said"] for part in parts if not part["text"]]
        rows.append(
            {
                "label": label,
                "model": model,
                "n": f"{n:,}",
                "parts": parts,
                "rest": ", ".join(rest) if n else "nothing to show",
                "said": f"{label}: {', '.join(part['said'] for part in parts)}",
            }
        )
    return {"block": block, "rows": rows}


def flow_view(block: Flow) -> View:
    """Make the view of a flow from state to state.

    Args:
        block: The flow.

    Returns:
        What the template sets, in units of a picture 800 wide.
    """
    blocks, ribbons = flow_layout(block)
    n = sum(block.counts.values())
    top, height, thick = 44, 330, 14
    left = [
        round(1 + 610 * state / (len(block.states) - 1), 1) for state in range(len(block.states))
    ]
    shares = [_joined(format_value(value)) for _, _, value in block.states]
    texts: list[tuple[float, float, str, str]] = []
    for x, (name, meaning, _) in zip(left, block.states, strict=True):
        texts += [(x, 14, "t-head", name), (x, 31, "", meaning)]
    ends = [0.0] * len(block.states)
    for part in blocks:
        if not part.count:
            continue
        big = f"{part.count:,} {'right' if part.is_right else 'wrong'}"
        share = f"{format_number(part.count / n)}\u00a0%"
        if part.is_right:
            share = shares[part.state]
        elif part.count == n:
            share = f"0 right, {shares[part.state]}"
        x, begin = left[part.state] + thick + 9, top + height * part.y
        y = max(begin + 16, begin + height * part.height / 2 - 2, ends[part.state])
        is_thin = part.is_right and height * part.height < 40
        beside = (x + 9.6 * len(big) + 4, y) if is_thin else (x, y + 17)
        texts += [(x, y, "t-big", big), (*beside, "", share)]
        ends[part.state] = y + (22 if is_thin else 40)
    return {
        "block": block,
        "height": top + height + 12,
        "said": f"{block.title}: "
        + "; ".join(
            f"{name} {share} right"
            for (name, _, _), share in zip(block.states, shares, strict=True)
        ),
        "texts": [(round(x, 1), round(y, 1), css, text) for x, y, css, text in texts],
        "parts": [
            (cell, left[part.state], f"{top + height * y:.1f}", thick, f"{height * size:.1f}")
            for part in blocks
            for cell, y, size in part.parts
        ],
        "ribbons": [
            (
                ribbon.cell,
                _ribbon(
                    left[ribbon.state] + thick,
                    left[ribbon.state + 1],
                    top + height * ribbon.y_from,
                    top + height * ribbon.y_to,
                    height * ribbon.height,
                ),
            )
            for ribbon in ribbons
        ],
    }


def _ribbon(x: float, to_x: float, y: float, to_y: float, height: float) -> str:
    """Write the outline of a ribbon."""
    middle = f"{(x + to_x) / 2:.1f}"
    return (
        f"M{x:.1f} {y:.1f}C{middle} {y:.1f} {middle} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
        f"v{height:.1f}C{middle} {to_y + height:.1f} {middle} {y + height:.1f} "
        f"{x:.1f} {y + height:.1f}Z"
    )


def tick_text(value: float, is_share: bool = True) -> str:
    """Write a value of a scale.

    Args:
        value: The value.
        is_share: Whether it is set in percent.

    Returns:
        The text, with as few digits as it has.
    """
    text = f"{100 * value if is_share else value:.6g}"
    return text.replace("-", "−", 1) if float(text) else "0"


def _span(counts: Sequence[int]) -> str:
    """Write a count, or from which to which it goes."""
    if not counts:
        return ""
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def heat_map_view(block: Heat) -> View:
    """Make the view of a heat map; its cells hold numbers where there are few columns.

    Args:
        block: The heat map.

    Returns:
        What the template sets.

    Raises:
        ValueError: If a row has another number of cells than there are columns.
    """
    top = max((abs(value) for value in heat_values(block)), default=0.0)
    is_wide = len(block.columns) > _MOST_NUMBERS
    return {
        "block": block,
        "panels": [
            (
                title,
                [
                    (
                        label,
                        [
                            _heat_map_cell(
                                value, top, f"{block.row_title} {label}, {column}", is_wide
                            )
                            for column, value in zip(block.columns, values, strict=True)
                        ],
                    )
                    for label, values in rows
                ],
            )
            for title, rows in block.panels
        ],
    }


def heat_values(block: Heat) -> list[float]:
    """List the numbers of a heat map.

    Args:
        block: The heat map.

    Returns:
        All that are there.
    """
    return [
        value
        for _, rows in block.panels
        for _, values in rows
        for value in values
        if math.isfinite(value)
    ]


def _heat_map_cell(value: float, top: float, where: str, is_wide: bool) -> View:
    """View of one cell."""
    if not math.isfinite(value):
        return {"css": "soft", "text": "" if is_wide else "·", "said": f"{where}: not defined"}
    step = min(5, int(6 * abs(value) / top)) if top else 0
    said = format_number(value)
    return {
        "css": f"{'cold' if value < 0 else 'heat'}-{step}",
        "text": "" if is_wide else said,
        "said": f"{where}: {said}\u00a0%",
    }


def _percent(share: float) -> str:
    """Write a share as a length."""
    return f"{100 * share:.3f}".rstrip("0").rstrip(".")


def _joined(parts: Iterable[object]) -> str:
    """Join the texts that are there."""
    return " ".join(str(part) for part in parts if part)
