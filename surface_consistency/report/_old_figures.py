"""Figure 2 of RedirectQA: stacked bars of consistent and flipped pairs."""

import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from surface_consistency.errors import MissingDependencyError
from surface_consistency.report._names import category_title, type_title
from surface_consistency.report._panels import draw_panel
from surface_consistency.taxonomy import TYPES, parse_category

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "FIGURE_STYLE",
    "SELECTED_CATEGORIES",
    "consistency_figure",
    "save_figure",
    "svg_text",
    "write_figures",
]

SELECTED_CATEGORIES: Final = ("from initialisms", "from long names")
"""The categories that the paper's figure shows besides the types."""

FIGURE_STYLE: Final[dict[Any, Any]] = {
    "figure.constrained_layout.use": True,
    "font.family": ["DejaVu Sans"],
    "font.size": 8.0,
    "hatch.linewidth": 0.8,
    "svg.fonttype": "path",
    "svg.hashsalt": "surface-consistency",
    "text.parse_math": False,
    "text.usetex": False,
}
"""How all figures look; without anything that would change from one run to the next."""

_WIDEST = 11.0
_MODEL_WIDTH = 0.8


def consistency_figure(
    tables: "Mapping[str, pd.DataFrame]",
    *,
    template: str = "original",
    categories: Sequence[str] = SELECTED_CATEGORIES,
) -> "Figure":
    """Draw how many pairs keep their verdict, split by the verdict under the canonical name.

    Args:
        tables: As from `study_tables`; "overall", "by_type" and "by_category" are used.
        template: Which wording of the question.
        categories: Redirect categories that get a panel, in any spelling.

    Returns:
        One panel for all pairs, for each type and for each of the categories that has scored pairs.
        A model has two bars of counted pairs: left where the canonical question is answered right,
        right where wrong; light is consistent, dark and hatched is flipped, and the numbers above
        are consistent:flipped in percent of the bar.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
        ValueError: If no pair of this template has both verdicts.

    References:
        Nishida et al. 2026, arXiv 2604.21882, figures 2 and 4.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError("the consistency figure", "matplotlib", "plot") from error
    panels = list(_panels(tables, template, categories))
    if not panels:
        known = ", ".join(map(repr, dict.fromkeys(tables["overall"]["template"])))
        raise ValueError(
            f"template {template!r} has no pair with both verdicts; the tables hold {known}"
        )
    models = list(dict.fromkeys(panels[0][1]["model"]))
    width = max(3.2, _MODEL_WIDTH * len(models) + 0.8)
    n_columns = max(1, min(3, len(panels), int(_WIDEST / width)))
    n_rows = -(-len(panels) // n_columns)
    with matplotlib.rc_context(FIGURE_STYLE):
        figure = Figure(figsize=(width * n_columns, 2.7 * n_rows + 0.7))
        axes = figure.subplots(n_rows, n_columns, squeeze=False).flatten()
        for ax, (title, rows) in zip(axes, panels, strict=False):
            draw_panel(ax, title, rows, models)
        for ax in axes[len(panels) :]:
            ax.remove()
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=min(4, 2 * n_columns))
        figure.supylabel("canonical–redirect pairs", fontsize=8)
    return figure


def save_figure(
    figure: "Figure", folder: str | os.PathLike[str], stem: str = "consistency"
) -> tuple[Path, Path]:
    """Write a figure as PNG and as SVG; equal figures give equal files.

    Args:
        figure: As from `consistency_figure`.
        folder: Where to write; made when absent. Files of the same names are replaced.
        stem: File name without its ending.

    Returns:
        The PNG and the SVG file.
    """
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    png, svg = home / f"{stem}.png", home / f"{stem}.svg"
    png.write_bytes(_rendered(figure, "png", {"Software": None}))
    svg.write_bytes(svg_text(figure).encode("utf-8"))
    return png, svg


def write_figures(
    tables: "Mapping[str, pd.DataFrame]",
    folder: str | os.PathLike[str],
    *,
    categories: Sequence[str] = SELECTED_CATEGORIES,
) -> list[Path]:
    """Draw and write the figure of each template that has scored pairs.

    Args:
        tables: As from `study_tables`.
        folder: Where to write; made when absent. Files of the same names are replaced.
        categories: Redirect categories that get a panel, in any spelling.

    Returns:
        The files `consistency-<template>.png` and `.svg`; characters of a template's name that do
        not suit a file name become hyphens.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
    """
    overall = tables["overall"]
    written: list[Path] = []
    for template in dict.fromkeys(overall.loc[overall["n"] > 0, "template"]):
        figure = consistency_figure(tables, template=template, categories=categories)
        stem = f"consistency-{re.sub(r'[^A-Za-z0-9_.-]+', '-', template)}"
        written.extend(save_figure(figure, folder, stem))
    return written


def svg_text(figure: "Figure") -> str:
    """Render a figure as SVG, letters as shapes, without date."""
    return _rendered(figure, "svg", {"Date": None}).decode("utf-8")


def _rendered(figure: "Figure", kind: str, metadata: Mapping[str, str | None]) -> bytes:
    """Render a figure in memory."""
    import matplotlib

    content = io.BytesIO()
    with matplotlib.rc_context(FIGURE_STYLE):
        figure.savefig(content, format=kind, dpi=200, metadata=dict(metadata))
    return content.getvalue()


def _panels(
    tables: "Mapping[str, pd.DataFrame]", template: str, categories: Sequence[str]
) -> "Iterator[tuple[str, pd.DataFrame]]":
    """Yield title and rows of each panel that has scored pairs."""
    labels = [found.label if (found := parse_category(name)) else name for name in categories]
    wanted = [
        ("Overall", tables["overall"], None),
        *((type_title(name), tables["by_type"], ("type", name)) for name in TYPES),
        *((category_title(x), tables["by_category"], ("category", x)) for x in labels),
    ]
    for title, table, group in wanted:
        rows = table[table["template"] == template]
        if group is not None:
            rows = rows[rows[group[0]] == group[1]]
        if rows["n"].sum() > 0:
            yield title, rows
