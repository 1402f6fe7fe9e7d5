"""The page as one HTML file, which can be used offline, in print and without scripts."""

import base64
import functools
import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import fields
from itertools import groupby
from pathlib import Path
from typing import Final

import jinja2
from markupsafe import Markup

import surface_consistency
from surface_consistency.report import charts
from surface_consistency.report.answers import answers_view
from surface_consistency.report.colours import DARK, LIGHT, heat_colours, model_style
from surface_consistency.report.page import (
    AlluvialPlot,
    Answers,
    Block,
    Check,
    ForestPlot,
    Heatmap,
    Lines,
    MosaicPlots,
    Page,
    Prose,
    Section,
    StackedBars,
)
from surface_consistency.report.pictures import flow_scene
from surface_consistency.report.rows import clean, soft, table_view
from surface_consistency.report.scene import px
from surface_consistency.runs.files import write_text
from surface_consistency.tables.numbers import Part, claim_records, format_value
from surface_consistency.tables.table import Table

_OWN_ANCHORS: Final = ("finding", "checks", "made", "cite", "method")
_SOFTWARE: Final = """@software{surface_consistency,
  title   = {surface-consistency},
  author  = {{The surface-consistency authors}},
  version = {%s}
}"""
_SWITCHES: Final = {"Table": "Tables", "ForestPlot": "Groups", "AlluvialPlot": "Runs"}
_LEVELS: Final = {"warning": "look", "ok": "fine"}


def write_page(page: Page, path: str | os.PathLike[str]) -> Path:
    """Write a page as one HTML file, atomically.

    Args:
        page: The content.
        path: The file; its folder must exist. An existing file is replaced.

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
    """Render a page as HTML.

    The file does not load other files: it contains style, script and figures, and its content
    security policy allows no others. Answers of models are escaped, so that they are never markup.

    Args:
        page: The content. At most 500 answers per model are embedded, fewer on pages of many models
            or of very long answers; the page reports how many.

    Returns:
        The document; equal pages give equal text.

    Raises:
        ValueError: If two sections have the same anchor, an anchor is reserved for a part of every
            page or cannot be part of an address, a block refers to a model that the page does not
            have, or counts are impossible.
    """
    _check_anchors(page)
    views = _Views(page)
    sections = [views.section(section) for section in page.sections]
    environment = _environment()
    style = environment.get_template("style.css").render(
        light={**LIGHT, **heat_colours(LIGHT)},
        dark={**DARK, **heat_colours(DARK)},
        n_panes=max([1, *(len(group["panes"]) for view in sections for group in view["groups"])]),
        off_phones=sorted(views.off_phones),
    )
    script = environment.get_template("script.js").render()
    checks = sorted(page.checks, key=lambda check: check.level != "warning")
    names = dict.fromkeys(name for made in page.provenance for name in made.settings)
    settings = [
        (name, [made.settings.get(name, "–") for made in page.provenance]) for name in names
    ]
    return environment.get_template("page.html.j2").render(
        page=page,
        sections=sections,
        checks=checks,
        trust=_trust(checks),
        anchors=views.ids,
        settings=[(name, values, len(set(values)) > 1) for name, values in settings],
        browser=views.browser,
        policy=(
            f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        ),
        style=Markup(style),
        script=Markup(script),
        claims=Markup(_claims(page)),
        version=surface_consistency.__version__,
        citation="\n\n".join(
            filter(None, (page.citation, _SOFTWARE % surface_consistency.__version__))
        ),
        format_value=format_value,
        model_style=model_style,
    )


class _Views:
    """Functions that make the views of the blocks of one page, and ids that are unique on it."""

    def __init__(self, page: Page) -> None:
        self.models = page.models
        self.ids = {"checks-title", "made-title", "cite-title", "method-title", *_OWN_ANCHORS}
        self.ids |= {section.anchor for section in page.sections}
        holders = (
            section.anchor
            for section in page.sections
            if any(isinstance(block, Answers) for block in section.blocks)
        )
        self.browser = next(holders, "")
        self.keys = iter([self.browser])
        self.off_phones: set[int] = set()

    def unique(self, wanted: str) -> str:
        """Make an id that the page does not have yet."""
        base = re.sub(r"[^\w.-]+", "-", wanted).strip("-") or "x"
        name, number = base, 1
        while name in self.ids:
            number += 1
            name = f"{base}-{number}"
        self.ids.add(name)
        return name

    def section(self, section: Section) -> charts.View:
        """Make the view of a section; blocks that are switched are in one group."""
        groups: list[charts.View] = []
        for kind, blocks in groupby(section.blocks, key=lambda block: type(block).__name__):
            panes = [self.block(block) for block in blocks]
            if kind == "Lines":
                groups.append({"kind": kind, "panes": [{"charts": panes}]})
            elif kind in _SWITCHES and len(panes) > 1:
                legend = _SWITCHES[kind]
                name = self.unique("switch")
                groups.append({"kind": kind, "panes": panes, "name": name, "legend": legend})
            else:
                groups += [{"kind": kind, "panes": [pane]} for pane in _side_by_side(panes)]
        own = {field.name: getattr(section, field.name) for field in fields(section)}
        return own | {"groups": groups, "heading": self.unique(f"{section.anchor}-title")}

    def block(self, block: Block) -> charts.View:
        """Make the view of one block."""
        match block:
            case MosaicPlots():
                return charts.squares_view(block, self.models, is_linked=bool(self.browser))
            case ForestPlot():
                view = charts.dots_view(block, self.models) | {"short": block.title}
            case Lines():
                view = charts.lines_view(block, self.models)
            case StackedBars():
                view = charts.bars_view(block, self.models)
            case AlluvialPlot():
                view = {"block": block, "scene": flow_scene(block), "short": block.title}
            case Heatmap():
                view = charts.heat_map_view(block)
            case Table():
                short = block.caption.partition(":")[0] if block.label else block.caption
                view = table_view(block, self.models) | {"short": short}
                self.off_phones.update(view["off_phones"])
                return view | {"id": self.unique(f"table-{block.caption.lower()[:40]}")}
            case Answers():
                for answer in block.answers:
                    charts.check_model(answer.model, self.models)
                view = answers_view(block, n_models=len(self.models), unique=self.unique)
                return view | {"key": next(self.keys, view["id"])}
            case _:
                return {"block": block}
        return view | {"id": self.unique(f"fig-{block.name}")}


def _side_by_side(panes: Sequence[charts.View]) -> list[charts.View]:
    """Merge successive large squares with the same cells into one row."""
    rows: list[charts.View] = []
    for pane in panes:
        last = rows[-1] if rows else {}
        if (
            "squares" in pane
            and not (pane["is_small"] or last.get("is_small", True) or last["note"])
            and pane["legend"] == last["legend"]
        ):
            merged = {"squares": [*last["squares"], *pane["squares"]], "note": pane["note"]}
            rows[-1] = last | merged
        else:
            rows.append(pane)
    return rows


def _check_anchors(page: Page) -> None:
    """Check that anchors are unique and can be part of an address."""
    seen = set(_OWN_ANCHORS)
    for section in page.sections:
        if not re.fullmatch(r"[A-Za-z][\w.-]*", section.anchor):
            raise ValueError(
                f"the anchor of section {section.title!r} must be a letter followed by letters, "
                f"digits, hyphens, dots or underscores; got {section.anchor!r}"
            )
        if section.anchor in seen:
            raise ValueError(
                f"the anchor {section.anchor!r} of section {section.title!r} is in use; anchors "
                f"must be unique on the page and not one of {', '.join(_OWN_ANCHORS)}"
            )
        seen.add(section.anchor)


def _claims(page: Page) -> str:
    """Write the records of the sentences of a page as JSON, with their place on it."""
    places: list[tuple[str, Sequence[Part]]] = [
        ("finding", page.finding.sentence),
        ("summary", page.finding.summary),
        *(("checks", check.text) for check in page.checks),
    ]
    for section in page.sections:
        prose = [block.parts for block in section.blocks if isinstance(block, Prose)]
        places += [(section.anchor, parts) for parts in (section.lead, *prose)]
    records = [{"place": place} | one for place, parts in places for one in claim_records(parts)]
    records += [{"place": "finding", **one} for one in page.claims]
    return json.dumps(records, ensure_ascii=False).replace("<", "\\u003c")


def _trust(checks: Sequence[Check]) -> list[tuple[str, str, int, int]]:
    """Group the checks below the finding: level, title, number, place of the first."""
    strip: dict[tuple[str, str], list[int]] = {}
    for place, check in enumerate(checks, 1):
        strip.setdefault((check.level, check.title), []).append(place)
    return [(*key, len(places), places[0]) for key, places in strip.items()]


def _digest(text: str) -> str:
    """Return the hash of an inline element for a content security policy."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


@functools.cache
def _environment() -> jinja2.Environment:
    """Load the templates."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("surface_consistency.report"),
        autoescape=True,
        finalize=clean,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["level"] = _LEVELS.__getitem__
    environment.filters["soft"] = soft
    environment.filters["px"] = px
    return environment
