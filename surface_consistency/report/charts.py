"""Views of the pictures of a page: what its templates need beyond the block, in their units."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from surface_consistency.report.colours import model_style
from surface_consistency.report.curves import is_faint, lines_scene
from surface_consistency.report.layout import (
    CELLS,
    FEW_CLUSTERS,
    FEW_POINTS,
    LEAST_CLUSTERS,
    DotRow,
    Interval,
    Scale,
    bars_cells,
    dot_rows,
    dots_scale,
    square_cells,
)
from surface_consistency.report.numbers import (
    format_interval,
    format_number,
    format_value,
    span_text,
    tick_text,
)
from surface_consistency.report.page import (
    ForestPlot,
    Heatmap,
    Lines,
    MosaicPlots,
    StackedBars,
)
from surface_consistency.report.squares import small_square, square_scene

__all__ = [
    "View",
    "bars_view",
    "check_model",
    "dots_view",
    "heat_map_view",
    "heat_values",
    "lines_view",
    "squares_view",
]

View = dict[str, Any]

_HEAT_MODELS: Final = 4
_MOST_NUMBERS: Final = 12
_MOST_SQUARES: Final = 4


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


def squares_view(block: MosaicPlots, models: Sequence[str], *, is_linked: bool) -> View:
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
        go = square.filters if is_linked else None
        views.append(
            {
                "square": square,
                "scene": small_square(square, block.cells, go=go)
                if is_small
                else square_scene(square, block.cells, block.conditions[0], go=go),
                "pairs": f"{n:,} pairs",
                "flips": f"{format_number(flips / n)}\u00a0%" if n else "",
            }
        )
    return {
        "squares": views,
        "is_small": is_small,
        "legend": list(zip(CELLS, block.cells, strict=True)),
        "note": block.note,
    }


def dots_view(block: ForestPlot, models: Sequence[str]) -> View:
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
    return {"label": row.label, "css": " ".join(css).strip(), "clusters": span_text(row.n_clusters)}


def _mark(mark: Interval, scale: Scale, models: Sequence[str]) -> View:
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
        "alt": f"{_joined((f'{models[mark.dot.model]}:', text, interval))}, {mark.dot.n:,} pairs",
    }


def _heat_cells(row: DotRow, shown: Sequence[int], top: float) -> Iterator[View]:
    """Yield the views of the cells of a heat map."""
    by_model = {mark.dot.model: mark for mark in row.marks}
    for index in shown:
        mark = by_model.get(index)
        if mark is None:
            yield {"css": "soft", "text": "·", "alt": "", "is_bold": False}
            continue
        value = mark.dot.value
        step = "few" if mark.is_faded else f"heat-{min(5, int(6 * value.value / top))}"
        yield {
            "css": step,
            "text": format_number(value.value),
            "alt": _joined((format_value(value)[1], f"{mark.dot.n:,} pairs")),
            "is_bold": mark.dot.is_above_noise and not mark.is_faded and not mark.is_wilson,
        }


def lines_view(block: Lines, models: Sequence[str]) -> View:
    """Make the view of curves.

    Args:
        block: The chart.
        models: Labels of the models of the page.

    Returns:
        What the template sets.
    """
    for series in block.series:
        if series.model is not None:
            check_model(series.model, models)
    points = [point for series in block.series for point in series.points]
    faded = any(is_faint(point) for point in points)
    return {
        "block": block,
        "legend": block.series if len(block.series) > 1 else (),
        "scene": lines_scene(block),
        "note": _joined(
            (
                block.note,
                faded and f"Faded points stand on fewer than {FEW_POINTS} observations.",
            )
        ),
    }


def bars_view(block: StackedBars, models: Sequence[str]) -> View:
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
                "alt": f"{name} {count:,} ({format_number(count / n)}\u00a0%)",
            }
            for (name, cell), count, (x, width) in zip(
                block.parts, counts, bars_cells(counts), strict=True
            )
            if count
        ]
        rest = [part["alt"] for part in parts if not part["text"]]
        rows.append(
            {
                "label": label,
                "model": model,
                "n": f"{n:,}",
                "parts": parts,
                "rest": ", ".join(rest) if n else "nothing to show",
                "alt": f"{label}: {', '.join(part['alt'] for part in parts)}",
            }
        )
    return {"block": block, "rows": rows}


def heat_map_view(block: Heatmap) -> View:
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


def heat_values(block: Heatmap) -> list[float]:
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
        return {
            "css": "soft",
            "text": "" if is_wide else "·",
            "alt": f"{where}: not defined",
        }
    step = min(5, int(6 * abs(value) / top)) if top else 0
    alt = format_number(value)
    return {
        "css": f"{'cold' if value < 0 else 'heat'}-{step}",
        "text": "" if is_wide else alt,
        "alt": f"{where}: {alt}\u00a0%",
    }


def _percent(share: float) -> str:
    """Write a share as a length."""
    return f"{100 * share:.3f}".rstrip("0").rstrip(".")


def _joined(parts: Iterable[object]) -> str:
    """Join the texts that are there."""
    return " ".join(str(part) for part in parts if part)
