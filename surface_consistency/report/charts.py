"""Views of the figures of a page: the values, in drawing units, for the HTML templates."""

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from surface_consistency.clusters import FEW_CLUSTERS, LEAST_CLUSTERS
from surface_consistency.report import pictures
from surface_consistency.report.layout import (
    CELLS,
    FEW_POINTS,
    Interval,
    dot_rows,
    dots_scale,
    square_cells,
)
from surface_consistency.report.page import ForestPlot, Heatmap, Lines, MosaicPlots, StackedBars
from surface_consistency.tables.numbers import format_number, format_value

View = dict[str, Any]

_HEAT_MODELS: Final = 4
_MOST_NUMBERS: Final = 12
_MOST_SQUARES: Final = 4


def check_model(index: int | None, models: Sequence[str]) -> None:
    """Raise an error if an index is not that of a model.

    Args:
        index: The index; None if a mark does not belong to a model.
        models: Labels of the models of the page.

    Raises:
        ValueError: If no model has the index.
    """
    if index is not None and not 0 <= index < len(models):
        raise ValueError(f"model index {index} is out of range; the page has {len(models)} models")


def squares_view(block: MosaicPlots, models: Sequence[str], *, is_linked: bool) -> View:
    """Make the view of mosaic plots: large with labels, or small if there are five or more.

    Args:
        block: The squares.
        models: Labels of the models of the page.
        is_linked: Whether cells link to the answers.

    Returns:
        The values of the template.
    """
    is_small = block.size == "small" or len(block.squares) > _MOST_SQUARES
    views = []
    for square in block.squares:
        check_model(square.model, models)
        cells = square_cells(square)
        n = sum(cell.count for cell in cells)
        flips = cells[1].count + cells[2].count
        go = square.filters if is_linked else None
        views.append(
            {
                "square": square,
                "scene": pictures.small_square(square, block.cells, go=go)
                if is_small
                else pictures.square_scene(square, block.cells, block.conditions[0], go=go),
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
    """Make the view of a forest plot, or for four or more models of a heat map of rates.

    Args:
        block: The chart.
        models: Labels of the models of the page.

    Returns:
        The values of the template.
    """
    rows, n_hidden = dot_rows(block)
    scale = dots_scale(block)
    marks = [mark for _, _, of_row in rows for mark in of_row]
    shown = sorted({mark.dot.model for mark in marks})
    for index in (*shown, *block.noise):
        check_model(index, models)
    is_heat = len(shown) >= _HEAT_MODELS and all(m.dot.value.kind == "rate" for m in marks)
    is_cut = any(mark.high > scale.high or mark.low < scale.low for mark in marks)
    counted = "clusters" if block.remarks else block.clusters
    few = f"fewer than {LEAST_CLUSTERS} {counted}"
    notes = (
        any(mark.is_faded for mark in marks)
        and f"Paler groups have fewer than {FEW_CLUSTERS} {counted}.",
        n_hidden == 1 and f"1 group of {few} is shown only in the table.",
        n_hidden > 1 and f"{n_hidden} groups of {few} are shown only in the table.",
        is_cut and not is_heat and "An arrow marks an interval that exceeds the scale.",
        block.note,
    )
    names = {index: f" {models[index]}" for index in sorted(block.noise)}
    return {
        "block": block,
        "is_heat": is_heat,
        "strips": pictures.forest_strips(block, models),
        "cells": [list(_heat_cells(row[2], shown, scale.high)) for row in rows] if is_heat else [],
        "models": [] if block.remarks else shown,
        "floor": ", ".join(
            f"to {format_number(block.noise[index])}\u00a0%{name if len(names) > 1 else ''}"
            for index, name in names.items()
        ),
        "has_certain": bool(block.certain) and any(mark.dot.is_certain for mark in marks),
        "has_wilson": any(mark.is_wilson for mark in marks),
        "note": _joined(notes),
    }


def _heat_cells(marks: Iterable[Interval], shown: Sequence[int], top: float) -> Iterator[View]:
    """Yield the view of each cell of a heat map."""
    by_model = {mark.dot.model: mark for mark in marks}
    for index in shown:
        if (mark := by_model.get(index)) is None:
            yield {"css": "soft", "text": "·", "alt": "", "is_bold": False}
            continue
        value = mark.dot.value
        yield {
            "css": "few" if mark.is_faded else f"heat-{_heat_step(value.value, top)}",
            "text": format_number(value.value),
            "alt": _joined((format_value(value)[1], f"{mark.dot.n:,} {mark.dot.unit}")),
            "is_bold": mark.dot.is_above_noise and not mark.is_faded and not mark.is_wilson,
        }


def lines_view(block: Lines, models: Sequence[str]) -> View:
    """Make the view of curves.

    Args:
        block: The chart.
        models: Labels of the models of the page.

    Returns:
        The values of the template.
    """
    for series in block.series:
        check_model(series.model, models)
    points = [point for series in block.series for point in series.points]
    faded = any(pictures.is_faint(point) for point in points)
    return {
        "block": block,
        "legend": block.series if len(block.series) > 1 else (),
        "scene": pictures.lines_scene(block),
        "note": _joined(
            (block.note, faded and f"Faded points have fewer than {FEW_POINTS} observations.")
        ),
    }


def bars_view(block: StackedBars, models: Sequence[str]) -> View:
    """Make the view of stacked bars.

    Args:
        block: The bars.
        models: Labels of the models of the page.

    Returns:
        The values of the template.
    """
    for _, model, _ in block.rows:
        check_model(model, models)
    return {"block": block, "strips": pictures.bars_strips(block)}


def heat_map_view(block: Heatmap) -> View:
    """Make the view of a heat map; cells contain numbers if there are few columns.

    Args:
        block: The heat map.

    Returns:
        The values of the template and of the figure: the panels with a view of each cell, and
        `top`, the largest absolute number. Six steps of colour divide the range up to `top`.

    Raises:
        ValueError: If the number of cells of a row is not the number of columns.
    """
    if any(len(row) != len(block.columns) for _, rows in block.panels for _, row in rows):
        raise ValueError(
            f"each row of the heat map {block.title!r} must have one number per column "
            f"({len(block.columns)} columns), NaN if it is undefined"
        )
    sizes = [abs(v) for _, rows in block.panels for _, row in rows for v in row if math.isfinite(v)]
    top = max(sizes, default=0.0)
    cell = functools.partial(_heat_map_cell, top=top, is_wide=len(block.columns) > _MOST_NUMBERS)
    panels = [
        (title, [(label, [*map(cell, values)]) for label, values in rows])
        for title, rows in block.panels
    ]
    return {"block": block, "panels": panels, "top": top}


def _heat_map_cell(value: float, *, top: float, is_wide: bool) -> View:
    """Make the view of one cell."""
    if not math.isfinite(value):
        return {"css": "soft", "text": "" if is_wide else "·", "alt": "not defined"}
    text = format_number(value)
    css = f"{'cold' if value < 0 else 'heat'}-{_heat_step(abs(value), top)}"
    return {"css": css, "text": "" if is_wide else text, "alt": f"{text}\u00a0%"}


def _heat_step(value: float, top: float) -> int:
    """Choose the step of a colour, from 0 to 5."""
    return min(5, int(6 * value / top)) if top else 0


def _joined(parts: Iterable[object]) -> str:
    """Join the texts that are not empty."""
    return " ".join(str(part) for part in parts if part)
