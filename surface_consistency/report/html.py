"""The page as one HTML file that works offline, in print and without script."""

import base64
import functools
import hashlib
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import groupby
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import jinja2
from markupsafe import Markup, escape

import surface_consistency
from surface_consistency.report.answers import answers_view
from surface_consistency.report.colours import DARK, LIGHT, heat_colours, model_style
from surface_consistency.report.layout import (
    CELLS,
    FEW_CLUSTERS,
    FEW_POINTS,
    LEAST_CLUSTERS,
    Mark,
    Rectangle,
    bars_cells,
    dot_rows,
    dots_scale,
    flow_layout,
    lines_scales,
    nice_scale,
    square_cells,
)
from surface_consistency.report.numbers import (
    format_cell,
    format_interval,
    format_number,
    format_value,
    is_missing,
    is_numeric,
    text_width,
)
from surface_consistency.report.page import (
    Answers,
    Bars,
    Block,
    Dots,
    Flow,
    Lines,
    Matrix,
    Page,
    Prose,
    Section,
    Square,
    Squares,
    Story,
)
from surface_consistency.report.table import Column, Table
from surface_consistency.runs.files import write_text

__all__ = ["render_page", "write_page"]

View = dict[str, Any]

_OWN_ANCHORS: Final = ("finding", "checks", "made", "method")
_HEAT_MODELS: Final = 4
_MOST_SQUARES: Final = 4
_SIDE: Final = 300
_TOP: Final = 40
_BROKEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]")
_LONG_WORD = re.compile(r"\S{18,}")
_SEAMS = re.compile(r"(?<=[/_.:=@+-])(?=\w)")


def write_page(page: Page, path: str | os.PathLike[str]) -> Path:
    """Write a page as one HTML file, whole or not at all.

    Args:
        page: What it holds.
        path: The file; its folder must exist. An older file of that name is replaced.

    Returns:
        The file.

    Raises:
        ValueError: As for `render_page`.
        DataError: If the file cannot be written.
    """
    target = Path(path)
    write_text(target, render_page(page))
    return target


def render_page(page: Page) -> str:
    """Set a page as HTML.

    The file fetches nothing: style, script and pictures stand in it, and its content security
    policy allows no others. Whatever a model wrote is text, never markup.

    Args:
        page: What it holds. At most 500 answers a model are embedded, fewer on pages of many models
            or of very long answers; the page says how many.

    Returns:
        The document; equal pages give equal text.

    Raises:
        ValueError: If two sections have one anchor, or the anchor of a part that every page has, or
            an anchor that no address can hold; if a block refers to a model that the page does not
            have, or its counts are impossible.
    """
    return _Renderer(page).render()


class _Renderer:
    """Makes the views of one page, which its templates set."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.ids: set[str] = {"checks-title", "made-title", "method-title"}
        _check_anchors(page)
        for anchor in [*_OWN_ANCHORS, *(section.anchor for section in page.sections)]:
            self.unique(anchor)
        self.browser = next(
            (
                section.anchor
                for section in page.sections
                if any(isinstance(block, Answers) for block in section.blocks)
            ),
            "",
        )

    def unique(self, wanted: str) -> str:
        """Make an id that the page does not have yet."""
        base = re.sub(r"[^\w.-]+", "-", wanted).strip("-") or "x"
        name, number = base, 1
        while name in self.ids:
            number += 1
            name = f"{base}-{number}"
        self.ids.add(name)
        return name

    def render(self) -> str:
        """Set the page."""
        page = self.page
        sections = [self.section(section) for section in page.sections]
        panes = [len(group["panes"]) for section in sections for group in section["groups"]]
        environment = _environment()
        style = environment.get_template("style.css").render(
            light=LIGHT | heat_colours(LIGHT),
            dark=DARK | heat_colours(DARK),
            n_panes=max([1, *panes]),
        )
        script = environment.get_template("script.js").render()
        contents = [(section.anchor, _nav_label(section.anchor)) for section in page.sections]
        for anchor, label, wanted in (
            ("checks", "Checks", page.checks),
            ("made", "How it was made", page.made),
            ("method", "Method", page.method),
        ):
            if wanted:
                contents.append((anchor, label))
        checks = sorted(page.checks, key=lambda check: check.level != "look here")
        return environment.get_template("page.html.j2").render(
            page=page,
            sections=sections,
            contents=contents,
            checks=checks,
            trust=_trust(checks),
            anchors=self.ids,
            settings=_settings(page),
            commands="\n".join(dict.fromkeys(made.command for made in page.made)),
            signatures="\n\n".join(
                f"{made.label} = {made.signature}" if len(page.made) > 1 else made.signature
                for made in page.made
            ),
            browser=self.browser,
            policy=(
                f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
                "img-src data:; base-uri 'none'; form-action 'none'"
            ),
            style=Markup(style),
            script=Markup(script),
            version=surface_consistency.__version__,
            format_value=format_value,
            model_style=model_style,
        )

    def section(self, section: Section) -> View:
        """Gather the blocks of a section; those that are switched stand in one group."""
        groups = []
        for kind, found in groupby(section.blocks, key=_kind):
            blocks = list(found)
            if kind == "Lines":
                groups.append({"kind": kind, "panes": [{"charts": list(map(self.lines, blocks))}]})
                continue
            make: Callable[[Any], View] = getattr(self, kind.lower())
            views = [make(block) for block in blocks]
            if kind not in ("Table", "Dots") or len(views) == 1:
                groups += [{"kind": kind, "panes": [view]} for view in views]
                continue
            for view in views:
                view["is_pane"] = True
            groups.append(
                {
                    "kind": kind,
                    "panes": views,
                    "name": self.unique("switch"),
                    "legend": "Groups" if kind == "Dots" else "Tables",
                }
            )
        own = {field.name: getattr(section, field.name) for field in fields(section)}
        return own | {"groups": groups, "heading": self.unique(f"{section.anchor}-title")}

    def check_model(self, index: int) -> int:
        """Refuse an index that no model has."""
        if not 0 <= index < len(self.page.models):
            raise ValueError(
                f"model index {index} is not that of one of the {len(self.page.models)} models of "
                "the page"
            )
        return index

    # Squares.

    def squares(self, block: Squares) -> View:
        """View of squares."""
        is_small = block.size == "small" or len(block.squares) > _MOST_SQUARES
        make = _small_square if is_small else _large_square
        views = []
        for square in block.squares:
            if square.model is not None:
                self.check_model(square.model)
            cells = square_cells(square)
            go = {
                cell.cell: urlencode({"cell": cell.cell, **square.filters}) if self.browser else ""
                for cell in cells
            }
            view = make(block, square, cells, go)
            n = sum(cell.count for cell in cells)
            flips = cells[1].count + cells[2].count
            views.append(
                view
                | {
                    "title": square.title,
                    "model": square.model,
                    "facts": square.facts,
                    "is_empty": n == 0,
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

    # Dots.

    def dots(self, block: Dots) -> View:
        """View of a chart of dots, or of a heat map where there are many models."""
        rows, n_hidden = dot_rows(block)
        scale = dots_scale(block)
        models = sorted({self.check_model(m.dot.model) for row in rows for m in row.marks})
        marks = [mark for row in rows for mark in row.marks]
        is_rate = all(mark.dot.value.kind == "rate" for mark in marks)
        notes = []
        if any(mark.is_faded for mark in marks):
            notes.append(f"Paler groups stand on fewer than {FEW_CLUSTERS} {block.clusters}.")
        if n_hidden:
            notes.append(
                f"{n_hidden} group{'s' * (n_hidden > 1)} of fewer than {LEAST_CLUSTERS} "
                f"{block.clusters} {'are' if n_hidden > 1 else 'is'} in the table only."
            )
        is_heat = len(models) >= _HEAT_MODELS and is_rate
        if not is_heat and any(m.high > scale.high or m.low < scale.low for m in marks):
            notes.append("An arrow marks what runs off the scale.")
        has_heads = any(row.level for row in rows)
        views = []
        for row in rows:
            is_few = all(mark.is_faded for mark in row.marks)
            view = {
                "label": row.label,
                "clusters": _span(*row.n_clusters),
                "css": " ".join(
                    name
                    for name, wanted in (
                        ("head", has_heads and not row.level),
                        ("top", has_heads and not row.level),
                        ("sub", row.level > 0),
                        ("few", is_few),
                    )
                    if wanted
                ),
            }
            if is_heat:
                by_model = {mark.dot.model: mark for mark in row.marks}
                view["cells"] = [
                    _heat_cell(by_model.get(index), scale.high, block.noise.get(index, 0.0))
                    for index in models
                ]
            else:
                view["marks"] = [
                    self.dot(mark, scale, 10 + 10 * place) for place, mark in enumerate(row.marks)
                ]
                view["height"] = max(22, 10 + 10 * len(row.marks))
                view["said"] = "; ".join(mark["said"] for mark in view["marks"])
            views.append(view)
        bounds = sorted(block.noise.items(), key=lambda item: -item[1])
        return {
            "block": block,
            "id": self.unique(f"fig-{block.name}"),
            "is_pane": False,
            "short": block.title,
            "is_heat": is_heat,
            "rows": views,
            "models": models,
            "ticks": [
                (
                    _percent(scale.share(tick)),
                    format_number(tick, "difference", signed=False).removesuffix(".0"),
                )
                for tick in scale.ticks
            ],
            "bands": [
                (
                    _percent(scale.share(0)),
                    _percent(scale.share(bound) - scale.share(0)),
                    2 if place == 0 and len(bounds) > 1 else 1,
                )
                for place, (_, bound) in enumerate(bounds)
            ],
            "floor": ", ".join(
                f"to {format_number(bound)}\u00a0%"
                + (f" {self.page.models[self.check_model(index)]}" if len(bounds) > 1 else "")
                for index, bound in sorted(block.noise.items())
            ),
            "has_certain": any(mark.dot.is_certain for mark in marks),
            "has_wilson": any(mark.is_wilson for mark in marks),
            "note": " ".join([*notes, *filter(None, [block.note])]),
        }

    def dot(self, mark: Mark, scale: Any, y: int) -> View:  # noqa: ANN401
        """View of one dot."""
        hue, shape = model_style(mark.dot.model)
        value = mark.dot.value
        text, interval = format_value(value)
        if mark.is_wilson:
            interval = format_interval(mark.low, mark.high, value.kind)
        return {
            "hue": hue,
            "shape": shape,
            "y": y,
            "x": _percent(scale.share(value.value))
            if scale.low <= value.value <= scale.high
            else None,
            "low": _percent(scale.share(mark.low)),
            "high": _percent(scale.share(mark.high)),
            "right": mark.high > scale.high,
            "left": mark.low < scale.low,
            "is_filled": mark.dot.is_certain,
            "is_faded": mark.is_faded,
            "is_wilson": mark.is_wilson,
            "said": f"{self.page.models[mark.dot.model]}: {text} {interval}".rstrip()
            + f", {mark.dot.n:,} pairs",
        }

    # Curves, bars and flows.

    def lines(self, block: Lines) -> View:
        """View of curves."""
        horizontal, vertical = lines_scales(block)
        top, bottom, left, right = 14, 234, 52, 432

        def x_of(value: float) -> float:
            return round(left + (right - left) * horizontal.share(value), 1)

        def y_of(value: float) -> float:
            return round(bottom - (bottom - top) * vertical.share(value), 1)

        counts: dict[float, list[int]] = {}
        curves = []
        n_points = sum(len(series.points) for series in block.series)
        for series in block.series:
            hue, shape = model_style(0 if series.model is None else self.check_model(series.model))
            points = []
            for point in series.points:
                if math.isnan(point.value.value):
                    continue
                if point.n is not None:
                    counts.setdefault(point.x, []).append(point.n)
                x, y = x_of(point.x), y_of(point.value.value)
                has_bar = point.value.low is not None and not math.isnan(point.value.low)
                points.append(
                    {
                        "x": x,
                        "y": y,
                        "bar": f"M{x} {y_of(point.value.low)}V{y_of(point.value.high)}"  # type: ignore[arg-type]
                        if has_bar
                        else "",
                        "is_faded": point.n is not None and point.n < FEW_POINTS,
                        "text": format_number(point.value.value, point.value.kind)
                        if n_points <= 7
                        else "",
                        "said": f"{series.label}, {format_number(point.x, 'number')}: "
                        + " ".join(filter(None, format_value(point.value))),
                    }
                )
            curves.append(
                {
                    "css": "reference" if series.model is None else f"m{hue}",
                    "shape": shape,
                    "points": points,
                    "path": "M" + "L".join(f"{p['x']} {p['y']}" for p in points) if points else "",
                }
            )
        band = [row for row in block.band if not any(map(math.isnan, row))]
        level = None
        if block.reference is not None:
            name, value = block.reference
            low, high = (
                value.value if end is None or math.isnan(end) else end
                for end in (value.low, value.high)
            )
            edge, height = y_of(high), round(y_of(low) - y_of(high), 1)
            level = {
                "box": Markup(f'x="{left}" y="{edge}" width="{right - left}" height="{height}"'),
                "path": f"M{left} {y_of(value.value)}H{right}",
                "y": max(edge - 6, 12) if height < 24 else round(edge + height / 2 - 3, 1),
                "text": f"{name}, {format_value(value)[0]}",
            }
        has_n = bool(counts)
        is_rate = all(
            p.value.kind in ("rate", "difference") for s in block.series for p in s.points
        )
        ticks = [(y_of(tick), _tick(tick, is_share=is_rate)) for tick in vertical.ticks]
        if ticks and all(p.value.kind == "rate" for s in block.series for p in s.points):
            ticks[-1] = (ticks[-1][0], f"{ticks[-1][1]}\u00a0%")
        return {
            "block": block,
            "id": self.unique(f"fig-{block.name}"),
            "legend": block.series if len(block.series) > 1 else (),
            "height": bottom + (62 if has_n else 46),
            "bottom": bottom,
            "y_ticks": ticks,
            "x_ticks": [
                (
                    x_of(tick),
                    format_number(tick, "number").removesuffix(".00"),
                    _span(min(counts[tick]), max(counts[tick])) if tick in counts else "",
                )
                for tick in horizontal.ticks
            ],
            "band": _area([(x_of(x), y_of(low), y_of(high)) for x, low, _, high in band]),
            "middle": "M" + "L".join(f"{x_of(x)} {y_of(mid)}" for x, _, mid, _ in band)
            if band
            else "",
            "level": level,
            "curves": curves,
            "said": f"{block.title}: " + "; ".join(p["said"] for c in curves for p in c["points"]),
            "note": " ".join(
                filter(
                    None,
                    [
                        block.note,
                        f"Faded points stand on fewer than {FEW_POINTS} observations."
                        if any(p["is_faded"] for c in curves for p in c["points"])
                        else "",
                    ],
                )
            ),
        }

    def bars(self, block: Bars) -> View:
        """View of stacked bars."""
        rows = []
        for label, model, counts in block.rows:
            if model is not None:
                self.check_model(model)
            n = sum(counts)
            parts, rest, said = [], [], []
            for (name, cell), count, (x, width) in zip(
                block.parts, counts, bars_cells(counts), strict=True
            ):
                share = format_number(count / n if n else None)
                text = f"{name} {count:,} ({share}\u00a0%)"
                said.append(text)
                if not count:
                    continue
                inside = f"{count:,}"
                fits = width * 300 > 8 * len(inside) + 14
                if not fits:
                    rest.append(text)
                parts.append(
                    {
                        "cell": cell,
                        "x": _percent(x),
                        "width": _percent(width),
                        "text": inside if fits else "",
                        "said": text,
                    }
                )
            rows.append(
                {
                    "label": label,
                    "model": model,
                    "n": f"{n:,}",
                    "parts": parts,
                    "rest": ", ".join(rest) if n else "nothing to show",
                    "said": f"{label}: {', '.join(said)}",
                }
            )
        return {"block": block, "id": self.unique(f"fig-{block.name}"), "rows": rows}

    def flow(self, block: Flow) -> View:
        """View of a flow from state to state."""
        blocks, ribbons = flow_layout(block)
        n = sum(block.counts.values())
        top, height, thick = 44, 330, 14
        step = (800 - 190) / (len(block.states) - 1)
        left = [round(1 + step * state, 1) for state in range(len(block.states))]
        texts: list[tuple[float, float, str, str]] = []
        said = []
        for x, (name, meaning, value) in zip(left, block.states, strict=True):
            texts += [(x, 14, "t-head", name), (x, 31, "", meaning)]
            said.append(f"{name}: {' '.join(filter(None, format_value(value)))}")
        ends = dict.fromkeys(range(len(block.states)), -math.inf)
        for part in blocks:
            name, _, value = block.states[part.state]
            share = " ".join(filter(None, format_value(value)))
            if not part.is_right:
                share = f"{format_number(part.count / n if n else None)}\u00a0%"
            if not part.count and (part.is_right or not n):
                continue
            word = "right" if part.is_right else "wrong"
            big, x = f"{part.count:,} {word}", left[part.state] + thick + 9
            middle = top + height * part.y + min(height * part.height / 2, height * 0.5)
            y = max(top + height * part.y + 16, middle - 2, ends[part.state])
            if part.is_right and height * part.height < 40:
                texts += [(x, y, "t-big", big), (x + 9.6 * len(big) + 4, y, "", share)]
                ends[part.state] = y + 22
            else:
                texts += [(x, y, "t-big", big), (x, y + 17, "", share)]
                ends[part.state] = y + 40
            if not part.is_right and not blocks[2 * part.state].count:
                right = " ".join(filter(None, format_value(value)))
                texts[-1] = (*texts[-1][:3], f"0 right, {right}")
        return {
            "block": block,
            "id": self.unique(f"fig-{block.name}"),
            "height": top + height + 12,
            "said": f"{block.title}: {'; '.join(said)}",
            "texts": [(round(x, 1), round(y, 1), css, text) for x, y, css, text in texts],
            "parts": [
                {
                    "cell": cell,
                    "box": Markup(
                        f'x="{left[part.state]}" y="{top + height * y:.1f}" width="{thick}" '
                        f'height="{height * size:.1f}"'
                    ),
                }
                for part in blocks
                for cell, y, size in part.parts
            ],
            "ribbons": [
                {
                    "cell": ribbon.cell,
                    "path": _ribbon(
                        left[ribbon.state] + thick,
                        left[ribbon.state + 1],
                        *(top + height * y for y in (ribbon.y_from, ribbon.y_to)),
                        height * ribbon.height,
                    ),
                }
                for ribbon in ribbons
            ],
        }

    def matrix(self, block: Matrix) -> View:
        """View of named cells."""
        return {"block": block}

    def story(self, block: Story) -> View:
        """View of one fact."""
        return {"block": block}

    def prose(self, block: Prose) -> View:
        """View of a paragraph."""
        return {"block": block}

    # Tables and answers.

    def table(self, table: Table) -> View:
        """View of a table."""
        columns = list(table.columns)
        domains = {column.key: _domain(table, column) for column in columns}
        places = {label: place for place, label in enumerate(self.page.models)}
        rows = []
        for row in table.frame.to_dict("records"):
            index = places.get(str(row.get(table.model))) if table.model is not None else None
            hue, shape = model_style(index or 0)
            n_clusters = row[table.few] if table.few is not None else None
            rows.append(
                {
                    "hue": f"m{hue}",
                    "shape": shape,
                    "is_few": n_clusters is not None and n_clusters < FEW_CLUSTERS,
                    "cells": [
                        _cell(row, column, domains[column.key])
                        | {"model": index if column.key == table.model else None}
                        for column in columns
                    ],
                }
            )
        notes = [table.note]
        told = [
            f"{column.title} {_tick(scale.low, is_share=column.kind != 'number')} to "
            f"{_tick(scale.high, is_share=column.kind != 'number')}"
            + {"rate": " %", "difference": " points"}.get(column.kind, "")
            for column in columns
            if (scale := domains[column.key]) is not None
        ]
        if told:
            notes.append(f"Bars: {', '.join(told)}.")
        if any(row["is_few"] for row in rows):
            notes.append(f"Grey rows stand on fewer than {FEW_CLUSTERS}.")
        return {
            "table": table,
            "id": self.unique(f"table-{table.caption.lower()[:40]}"),
            "is_pane": False,
            "short": table.caption,
            "groups": [
                (len(list(found)), title)
                for title, found in groupby(columns, key=lambda column: column.group)
            ]
            if any(column.group for column in columns)
            else [],
            "heads": [
                {
                    "title": column.title,
                    "unit": " ".join(
                        filter(None, [column.unit, "[interval]" if column.low else ""])
                    ),
                    "css": _css(column),
                    "first": "ascending"
                    if column.direction == "lower" or column.kind in ("label", "p_value")
                    else "descending",
                }
                for column in columns
            ],
            "rows": rows,
            "note": " ".join(filter(None, notes)),
        }

    def answers(self, block: Answers) -> View:
        """View of the answers browser."""
        for answer in block.answers:
            self.check_model(answer.model)
        view = answers_view(block, n_models=len(self.page.models), unique=self.unique)
        is_first = not hasattr(self, "_has_browser")
        self._has_browser = True
        key = self.browser if is_first else view["id"]
        return view | {"key": key}


def _kind(block: Block) -> str:
    """Name the kind of a block."""
    return type(block).__name__


def _check_anchors(page: Page) -> None:
    """Refuse anchors that stand twice or cannot be part of an address."""
    seen = set(_OWN_ANCHORS)
    for section in page.sections:
        if not re.fullmatch(r"[A-Za-z][\w.-]*", section.anchor):
            raise ValueError(
                f"the anchor of section {section.title!r} must be a letter followed by letters, "
                f"digits, hyphens, dots or underscores; got {section.anchor!r}"
            )
        if section.anchor in seen:
            raise ValueError(
                f"the anchor {section.anchor!r} of section {section.title!r} is taken; anchors must "
                f"be unique on the page and none of {', '.join(_OWN_ANCHORS)}"
            )
        seen.add(section.anchor)


def _nav_label(anchor: str) -> str:
    """Make a short name of an anchor for the contents."""
    words = re.sub(r"[-_]+", " ", anchor)
    return words[:1].upper() + words[1:]


def _trust(checks: Sequence[Any]) -> list[tuple[str, str, int, int]]:
    """Gather the strip below the finding: level, title, how often, place of the first."""
    found: dict[tuple[str, str], list[int]] = {}
    for place, check in enumerate(checks, 1):
        found.setdefault((check.level, check.title), []).append(place)
    return [(*key, len(places), places[0]) for key, places in found.items()]


def _settings(page: Page) -> list[tuple[str, list[str], bool]]:
    """Put the settings of all runs side by side: name, values, whether they differ."""
    names = dict.fromkeys(name for made in page.made for name in made.settings)
    rows = ((name, [made.settings.get(name, "–") for made in page.made]) for name in names)
    return [(name, values, len(set(values)) > 1) for name, values in rows]


def _large_square(
    block: Squares, square: Square, cells: Sequence[Rectangle], go: Mapping[str, str]
) -> View:
    """View of a square with its labels."""
    names = dict(zip(CELLS, block.cells, strict=True))
    n = sum(cell.count for cell in cells)
    texts: list[tuple[float, float, str, str]] = []
    leaders: list[str] = []
    swatches: list[tuple[float, float, str]] = []
    below, right_end = _TOP + _SIDE, float(_TOP)
    views = []
    for cell in cells:
        view = _cell_view(cell, names[cell.cell], go[cell.cell], _SIDE, top=_TOP)
        views.append(view)
        if not n:
            continue
        x, y, width, height = (_SIDE * size for size in (cell.x, cell.y, cell.width, cell.height))
        y += _TOP
        share = f"{format_number(cell.share)}\u00a0%"
        if (lines := _inside(cell, names[cell.cell], width, height)) is not None:
            for place, text in enumerate(lines):
                css = f"in-{cell.cell}" + (" t-big" if place == 0 else "")
                texts.append((x + 10, y + (25 if place == 0 else 27 + 16 * place), css, text))
        elif cell.cell in ("both", "first_only"):
            below += 20
            swatches.append((0, below - 10, cell.cell))
            texts.append((16, below, "t-n", f"{cell.count:,}"))
            offset = 16 + 8.2 * len(f"{cell.count:,}") + 8
            texts.append((offset, below, "", f"{share} {names[cell.cell]}"))
        else:
            lines = [f"{cell.count:,}", share, *_wrapped(names[cell.cell], 13)]
            begin = max(right_end, y if cell.cell == "second_only" else y + height / 2 - 10)
            begin = max(right_end, min(begin, _TOP + _SIDE - 16 * len(lines)))
            anchor = min(max(begin + 8, y + 0.5), y + height - 0.5)
            leaders.append(f"M{_SIDE} {anchor:.1f}L{_SIDE + 9} {begin + 8:.1f}")
            swatches.append((_SIDE + 12, begin + 3, cell.cell))
            for place, text in enumerate(lines):
                css, indent = ("t-n", 27) if place == 0 else ("", 12)
                texts.append((_SIDE + indent, begin + 12 + 16 * place, css, text))
            right_end = begin + 16 * len(lines) + 8
    if n:
        texts += _heads(block.conditions[0], cells)
    else:
        texts.append((110, _TOP + 155, "", "no pairs"))
    split = _SIDE * cells[0].width
    gaps = [f"M{split:.2f} {_TOP}V{_TOP + _SIDE}"] if 0 < split < _SIDE else []
    for upper, edges in ((cells[0], (0.0, split)), (cells[2], (split, float(_SIDE)))):
        if upper.width > 0 and 0 < upper.height < 1:
            gaps.append(f"M{edges[0]:.2f} {_TOP + _SIDE * upper.height:.2f}H{edges[1]:.2f}")
    return {
        "cells": views,
        "gaps": gaps,
        "leaders": leaders,
        "swatches": [(x, round(y, 1), cell) for x, y, cell in swatches],
        "texts": [(round(x, 1), round(y, 1), css, text) for x, y, css, text in texts],
        "height": below + 8,
        "label": _square_label(square, block.cells),
    }


def _heads(condition: str, cells: Sequence[Rectangle]) -> Iterator[tuple[float, float, str, str]]:
    """Label the two parts of a square above it."""
    name = condition if len(condition) <= 18 else f"{condition[:17]}…"
    split = _SIDE * cells[0].width
    second = min(max(split, 7.4 * text_width(f"{name} right") + 14), _SIDE - 20.0)
    for x, word, share in (
        (0.0, "right", cells[0].share + cells[1].share),
        (second, "wrong", cells[2].share + cells[3].share),
    ):
        yield x, 14, "", f"{name} {word}"
        yield x, 31, "t-ink", f"{format_number(share)}\u00a0%"


def _inside(cell: Rectangle, name: str, width: float, height: float) -> list[str] | None:
    """Choose the lines of a label that fit into its cell; None where none do."""
    if not cell.count or width < 52 or height < 44:
        return None
    room = int((width - 16) / 6.4)
    share = f"{format_number(cell.share)}\u00a0%"
    count = f"{cell.count:,}"
    if text_width(count) * 12 + 16 > width:
        return None
    lines = [count, share, *_wrapped(name, room)]
    if all(text_width(line) <= room for line in lines[1:]) and 20 + 16 * len(lines) <= height:
        return lines
    if text_width(f"{share} {name}") <= room:
        return [count, f"{share} {name}"]
    return None


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


def _cell_view(cell: Rectangle, name: str, go: str, side: int, *, top: int = 0) -> View:
    """View of one cell of a square."""
    x, y, width, height = (side * size for size in (cell.x, cell.y, cell.width, cell.height))
    bottom = top + y + height
    flat = top if cell.cell in ("both", "second_only") else top + side
    return {
        "name": cell.cell,
        "go": go,
        "label": f"{name}: {cell.count:,}, {format_number(cell.share)} %",
        "box": Markup(f'x="{x:.4f}" y="{top + y:.4f}" width="{width:.4f}" height="{height:.4f}"')
        if cell.count
        else "",
        "edge": (
            f"M{x:.2f} {top + y:.2f}V{bottom:.2f}"
            if cell.width == 0
            else f"M{x:.2f} {flat}h{width:.2f}"
        )
        if not math.isnan(cell.share)
        else "",
    }


def _square_label(square: Square, names: Sequence[str]) -> str:
    """Say a square in words."""
    counts = (square.both, square.first_only, square.second_only, square.neither)
    told = ", ".join(f"{name} {count:,}" for name, count in zip(names, counts, strict=True))
    return f"{square.title}: {told}"


def _small_square(
    block: Squares, square: Square, cells: Sequence[Rectangle], go: Mapping[str, str]
) -> View:
    """View of a square without labels."""
    view = _plain_square(cells, [go[cell.cell] for cell in cells], block.cells)
    return view | {"label": _square_label(square, block.cells)}


def _plain_square(cells: Sequence[Rectangle], go: Sequence[str], names: Sequence[str]) -> View:
    """View of a square of side 100."""
    split = 100 * cells[0].width
    return {
        "cells": [
            _cell_view(cell, name, target, 100)
            for cell, name, target in zip(cells, names, go, strict=True)
        ],
        "gaps": [f"M{split:.2f} 0V100"] if 0 < split < 100 else [],
        "is_empty": not any(cell.count for cell in cells),
    }


def _heat_cell(mark: Mark | None, top: float, floor: float) -> View:
    """View of a cell of a heat map."""
    if mark is None:
        return {"css": "soft", "text": "·", "said": "", "is_bold": False}
    value = mark.dot.value
    _, interval = format_value(value)
    css = "few" if mark.is_faded else f"heat-{min(5, int(6 * value.value / top))}"
    return {
        "css": css,
        "text": format_number(value.value),
        "said": f"{interval} {mark.dot.n:,} pairs".strip(),
        "is_bold": not mark.is_faded and not mark.is_wilson and mark.low > floor,
    }


def _domain(table: Table, column: Column) -> Any:  # noqa: ANN401
    """Choose the scale of the bars of a column; None for columns without intervals."""
    if column.low is None or column.high is None or not is_numeric(column):
        return None
    found = table.frame[[column.key, column.low, column.high]].to_numpy(dtype=float).ravel()
    known = [float(value) for value in found if math.isfinite(value)]
    if not known:
        return None
    if column.kind == "difference":
        reach = max(0.01, *map(abs, known))
        scale = nice_scale(0.0, reach, n_ticks=4)
        return type(scale)(low=-scale.high, high=scale.high, ticks=(0.0,))
    scale = nice_scale(min(0.0, *known), max(0.01, *known), n_ticks=5)
    return nice_scale(scale.low, 1.0) if column.kind == "rate" and scale.high > 1 else scale


def _cell(row: Mapping[Any, Any], column: Column, scale: Any) -> View:  # noqa: ANN401
    """View of a cell of a table."""
    text, interval = format_cell(row, column)
    view: View = {
        "css": _css(column),
        "text": text,
        "interval": interval,
        "raw": None,
        "bar": None,
        "square": None,
        "is_label": column.kind == "label",
    }
    if column.kind == "square":
        names = column.cells or ("", "", "", "")
        counts = [0 if is_missing(row[name]) else int(row[name]) for name in names]
        square = Square(
            title=text,
            model=None,
            **dict(zip(CELLS, counts, strict=True)),
        )
        n = sum(counts)
        view["raw"] = f"{(counts[1] + counts[2]) / n:.6g}" if n else ""
        view["square"] = _plain_square(square_cells(square), [""] * 4, CELLS) | {"label": text}
        return view
    value = row[column.key]
    if is_missing(value):
        view["raw"] = ""
    elif column.kind == "verdict":
        view["raw"] = int(bool(value))
        view["css"] = "ok" if value else "no"
        view["text"] = f"{'✓' if value else '✗'} {text}"
    elif column.kind != "label":
        view["raw"] = f"{float(value):.10g}"
        if scale is not None and interval:
            x, low, high = (
                round(84 * scale.share(float(row[name])), 1)
                for name in (column.key, column.low, column.high)
            )
            zero = round(84 * scale.share(0.0), 1)
            view["bar"] = {"x": x, "low": low, "high": high, "zero": zero}
    return view


def _css(column: Column) -> str:
    """Choose the classes of a column."""
    base = "n" if is_numeric(column) else "l" if column.kind == "label" else ""
    return f"{base} phone-off".strip() if not column.on_phones else base


def _tick(value: float, *, is_share: bool) -> str:
    """Write a tick in percent, or as it is."""
    text = f"{100 * value if is_share else value:.6g}"
    return text.replace("-", "−", 1) if float(text) else "0"


def _span(low: int, high: int) -> str:
    """Write a count, or from which to which it goes."""
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _percent(share: float) -> str:
    """Write a share as a length."""
    return f"{100 * share:.3f}".rstrip("0").rstrip(".")


def _area(points: Sequence[tuple[float, float, float]]) -> str:
    """Write the outline of a band."""
    if not points:
        return ""
    there = [f"{x} {low}" for x, low, _ in points]
    back = [f"{x} {high}" for x, _, high in reversed(points)]
    return f"M{'L'.join([*there, *back])}Z"


def _ribbon(x: float, to_x: float, y: float, to_y: float, height: float) -> str:
    """Write the outline of a ribbon."""
    mid = (x + to_x) / 2
    return (
        f"M{x:.1f} {y:.1f}C{mid:.1f} {y:.1f} {mid:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
        f"V{to_y + height:.1f}C{mid:.1f} {to_y + height:.1f} {mid:.1f} {y + height:.1f} "
        f"{x:.1f} {y + height:.1f}Z"
    )


def _digest(text: str) -> str:
    """Name an inline element in a content security policy."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


@functools.cache
def _environment() -> jinja2.Environment:
    """Load the templates."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("surface_consistency.report"),
        autoescape=True,
        finalize=_clean,
        keep_trailing_newline=False,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["soft"] = _soft
    return environment


def _clean(value: object) -> object:
    """Replace what no HTML document may hold, such as NUL and halves of surrogates."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return _BROKEN.sub("\ufffd", value.replace("\r\n", "\n").replace("\r", "\n"))


def _soft(value: object) -> Markup:
    """Allow long words to break at their seams, such as the slash in the name of a model."""
    text = str(_clean(str(value)))
    pieces: list[str] = []
    end = 0
    for word in _LONG_WORD.finditer(text):
        pieces += [str(escape(text[end : word.start()]))]
        pieces += ["<wbr>".join(map(str, map(escape, _SEAMS.split(word.group()))))]
        end = word.end()
    return Markup("".join([*pieces, str(escape(text[end:]))]))  # noqa: S704
