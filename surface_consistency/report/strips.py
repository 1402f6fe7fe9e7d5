"""Pictures of rows that share a scale: rates by group with their intervals, and stacked bars."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from surface_consistency.report.colours import model_style
from surface_consistency.report.layout import Interval, Scale, bars_cells, dot_rows, dots_scale
from surface_consistency.report.page import ForestPlot, StackedBars
from surface_consistency.report.scene import Box, Mark, Span, Symbol, Words
from surface_consistency.tables.numbers import (
    format_interval,
    format_value,
    span_text,
    tick_text,
    value_text,
)

_BAR_HEIGHT: Final = 24.0
_BAR_WIDTH: Final = 300
"""Least width of a bar in pixels, by which it is decided which numbers fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """A row; its x and widths are percent of the scale, its y and heights pixels."""

    label: str
    """What it is of."""

    marks: Sequence[Mark]
    """What is drawn."""

    height: float
    """Height."""

    alt: str
    """What it shows, in words."""

    remark: str
    """What stands at the right: clusters, or how many there are in all."""

    css: str = ""
    """Its classes: "head", "sub" (of the head above) and "few"."""

    model: int | None = None
    """Index of the model whose marker stands before the label; None for none."""

    rest: str = ""
    """What finds no room in it, for the line below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strips:
    """Rows on one scale."""

    rows: Sequence[Strip]
    """From top to bottom."""

    scale: Scale
    """What the width stands for."""

    axis: str
    """What the scale measures."""

    is_share: bool = True
    """Whether ticks are set in percent."""

    gap: float = 0.0
    """Space below each row."""

    bands: Sequence[Box] = ()
    """What lies behind all rows; their y and height do not matter."""

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Place and text of each tick."""
        return [
            (100 * self.scale.share(tick), tick_text(tick, self.is_share))
            for tick in self.scale.ticks
        ]


def forest_strips(block: ForestPlot, models: Sequence[str]) -> Strips:
    """Draw rates by group over the noise floor.

    Args:
        block: The chart.
        models: Labels of the models of the page.

    Returns:
        A row a group on enough clusters, with a mark a model.
    """
    rows, _ = dot_rows(block)
    scale = dots_scale(block)
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
                    + ["few"] * all(mark.is_faded for mark in marks)
                ),
            )
            for label, level, marks in rows
        ],
        scale=scale,
        axis=block.axis,
        is_share=not any(one.dot.value.kind == "number" for _, _, marks in rows for one in marks),
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


def _margin_band(block: ForestPlot, scale: Scale) -> list[Box]:
    """Draw what counts as no difference."""
    if block.margin is None:
        return []
    low, high = (100 * scale.share(end) for end in (-block.margin, block.margin))
    return [Box(css="floor-2", x=low, y=0, width=high - low, height=0)]


def dot_text(mark: Interval, models: Sequence[str]) -> str:
    """Say a dot in words.

    Args:
        mark: The dot.
        models: Labels of the models of the page.

    Returns:
        Model, number, interval and pairs.
    """
    value = mark.dot.value
    text, interval = format_value(value)
    if mark.is_wilson:
        interval = format_interval(mark.low, mark.high, value.kind)
    parts = filter(None, (f"{models[mark.dot.model]}:", text, interval))
    return f"{' '.join(parts)}, {mark.dot.n:,} pairs"


def _dot(mark: Interval, scale: Scale, y: float, models: Sequence[str]) -> Iterator[Mark]:
    """Yield the line of a dot, arrows where it runs off the scale, and the dot."""
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


def bars_strips(block: StackedBars) -> Strips:
    """Draw stacked bars.

    Args:
        block: The bars.

    Returns:
        A row a bar. In `Strip.rest` stand the shares of parts with an interval, and the counts of
        parts that are too short for them.
    """
    rows = []
    for place, (label, model, counts) in enumerate(block.rows):
        n = sum(counts)
        marks: list[Mark] = []
        rest, alts = [], []
        shares = block.shares[place] if block.shares else [None] * len(counts)
        cells = zip(block.parts, counts, bars_cells(counts), shares, strict=True)
        for (name, cell), count, (begin, length), share in cells:
            if not count:
                continue
            text, left = f"{count:,}", 100 * begin
            told = "" if share is None or share.low is None else value_text(share)
            alts.append(f"{name} {text}{f' ({told})' if told else f' of {n:,}'}")
            width = 100 * length
            box = Box(css=f"c-{cell}", x=left, y=0, width=width, height=_BAR_HEIGHT, title=alts[-1])
            marks.append(box)
            has_room = _BAR_WIDTH * length > 8 * len(text) + 14
            if has_room:
                marks.append(Words(css=f"in-{cell}", x=left, y=16.5, indent=7, text=text))
            if told or not has_room:
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
    scale = Scale(low=0.0, high=1.0, ticks=(0.0, 0.25, 0.5, 0.75, 1.0))
    return Strips(rows=rows, scale=scale, axis="%", gap=11.0)
