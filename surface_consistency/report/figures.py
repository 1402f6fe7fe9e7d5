"""Figures for papers as PNG, SVG and PDF, drawn from the blocks of the page; axes for one's own."""

import io
import math
import os
import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from surface_consistency.errors import ColumnNotFoundError, MissingDependencyError
from surface_consistency.report.charts import heat_values
from surface_consistency.report.colours import LIGHT, heat_colours, model_style
from surface_consistency.report.layout import (
    CELLS,
    FEW_POINTS,
    bars_cells,
    dot_rows,
    dots_scale,
    flow_layout,
    lines_scales,
    square_cells,
)
from surface_consistency.report.numbers import format_number, format_value, text_width
from surface_consistency.report.page import (
    Bars,
    Block,
    Dot,
    Dots,
    Flow,
    Heat,
    Lines,
    Page,
    Square,
    Squares,
    Value,
)
from surface_consistency.runs.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from surface_consistency.metrics import PairedTable

__all__ = ["FIGURE_STYLE", "plot_groups", "plot_square", "write_figures"]

FIGURE_STYLE: Final[Mapping[str, Any]] = {
    "axes.edgecolor": LIGHT["edge"],
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "font.family": ["DejaVu Sans"],
    "font.size": 8.0,
    "hatch.linewidth": 0.8,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "surface-consistency",
    "text.parse_math": False,
    "text.usetex": False,
}
"""How all figures look; without anything that would change from one run to the next."""

_FORMATS: Final = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
_MARKERS: Final = {"circle": "o", "diamond": "D", "square": "s", "triangle": "^"}
_CELLS: Final = {
    "both": (LIGHT["both"], LIGHT["both-text"], "", LIGHT["both"]),
    "first_only": (LIGHT["first"], LIGHT["flip-text"], "////", LIGHT["first-line"]),
    "second_only": (LIGHT["second"], LIGHT["flip-text"], "\\\\\\\\", LIGHT["second-line"]),
    "neither": (LIGHT["neither"], LIGHT["neither-text"], "", LIGHT["neither"]),
    "other": (LIGHT["edge"], LIGHT["page"], "", LIGHT["edge"]),
}
_INCHES_A_ROW: Final = 0.22
_MOST_ACROSS: Final = 4


def write_figures(page: Page, folder: str | os.PathLike[str]) -> list[Path]:
    """Draw the squares, dots, curves, bars, flows and heat maps of a page, each once.

    Args:
        page: The page.
        folder: Where to write; made when absent. Files of the same names are replaced.

    Returns:
        The files: each figure as PNG, SVG and PDF, named after its block. Equal pages give equal
        bytes.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
        ValueError: If the counts of a block are impossible.
        DataError: If a file cannot be written.
    """
    matplotlib = _matplotlib("drawing figures")
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for stem, block in _named_blocks(page):
        with matplotlib.rc_context(dict(FIGURE_STYLE)), warnings.catch_warnings():
            # Letters of scripts that the font lacks are drawn as boxes.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            figure = _figure(block, page.models)
            for kind, metadata in _FORMATS.items():
                path = home / f"{stem}.{kind}"
                write_bytes(path, _rendered(figure, kind, dict(metadata)))
                written.append(path)
    return written


def _rendered(figure: "Figure", kind: str, metadata: dict[str, Any]) -> bytes:
    """Set a figure in a format; all of them are laid out as the first."""
    content = io.BytesIO()
    figure.savefig(content, format=kind, dpi=200, metadata=metadata)
    figure.set_layout_engine("none")
    return content.getvalue()


def plot_square(
    table: "PairedTable",
    *,
    ax: "Axes | None" = None,
    conditions: tuple[str, str] = ("first", "second"),
    cells: tuple[str, str, str, str] = ("both", "first only", "second only", "neither"),
    title: str = "",
) -> "Axes":
    """Draw a contingency table of paired verdicts, true to area.

    Args:
        table: The counts.
        ax: Where to draw; None for an axis of a new figure.
        conditions: What the conditions are called.
        cells: What the cells are called.
        title: Title of the axis; none by default.

    Returns:
        The axis. The width of its left part is the accuracy under the first condition, the height
        of each upper part the accuracy under the second condition, given the first.

    Raises:
        MissingDependencyError: If matplotlib is not installed.

    References:
        Hofmann 2003, "Constructing and reading mosaicplots", doi 10.1016/S0167-9473(02)00340-3.
    """
    axes = _new_axis(3.4, 3.4) if ax is None else ax
    square = Square(title=title, model=None, **{name: getattr(table, name) for name in CELLS})
    _draw_square(axes, square, conditions[0], cells)
    return axes


def plot_groups(
    frame: pd.DataFrame,
    *,
    ax: "Axes | None" = None,
    rate: str = "flip_rate",
    by: str | Sequence[str] | None = None,
    model: str = "model",
    noise: Mapping[str, float] | float | None = None,
) -> "Axes":
    """Draw a rate by group with its intervals, over the noise floor.

    Args:
        frame: As from `paired_by`: one row a group, with n, n_clusters, the rate and its bounds.
        ax: Where to draw; None for an axis of a new figure that is as high as the groups need.
        rate: Which rate.
        by: Columns that make the groups; None for those before the counts, but for the models.
        model: Column of models, each a marker and a colour; rows are of one model without it.
        noise: Upper bound of the noise floor, of all models or by model; none by default.

    Returns:
        The axis. Groups on fewer than 10 clusters are faded, those below 4 left out; a group in
        which nothing varies has Wilson's interval over clusters, dashed.

    Raises:
        ColumnNotFoundError: If a column is missing.
        MissingDependencyError: If matplotlib is not installed.
    """
    columns = [by] if isinstance(by, str) else by
    if columns is None:
        begin = list(frame.columns).index("both") if "both" in frame else 0
        columns = [name for name in frame.columns[:begin] if name != model]
    for name in (*columns, "n", "n_clusters", rate, f"{rate}_low", f"{rate}_high"):
        if name not in frame:
            raise ColumnNotFoundError(
                f"groups cannot be drawn without the column {name!r}; the frame has "
                f"{', '.join(map(repr, frame.columns))}"
            )
    models = [str(name) for name in frame[model].unique()] if model in frame else [""]
    rows: dict[str, list[Dot]] = {}
    for row in frame.to_dict("records"):
        label = ", ".join(str(row[name]).replace("_", " ") for name in columns) or "all pairs"
        value = Value(value=row[rate], low=row[f"{rate}_low"], high=row[f"{rate}_high"])
        rows.setdefault(label, []).append(
            Dot(
                model=models.index(str(row[model])) if model in frame else 0,
                value=value,
                n=int(row["n"]),
                n_clusters=int(row["n_clusters"]),
            )
        )
    if noise is None or isinstance(noise, Mapping):
        bounds = dict(noise or {})
    else:
        bounds = dict.fromkeys(models, noise)
    block = Dots(
        name="groups",
        title="",
        axis=f"{rate.replace('_', ' ')}, %",
        rows=[(label, 0, dots) for label, dots in rows.items()],
        noise={place: bounds[name] for place, name in enumerate(models) if name in bounds},
        clusters="clusters",
    )
    axes = _new_axis(6.5, _dots_height(block)) if ax is None else ax
    _draw_dots(axes, block, models)
    return axes


def _matplotlib(feature: str) -> Any:  # noqa: ANN401
    """Load matplotlib."""
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError as error:
        raise MissingDependencyError(feature, "matplotlib", "plot") from error
    return matplotlib


def _new_axis(width: float, height: float) -> "Axes":
    """Make a figure of one axis."""
    matplotlib = _matplotlib("drawing a plot")
    with matplotlib.rc_context(dict(FIGURE_STYLE)):
        axes: Axes = matplotlib.figure.Figure(figsize=(width, height)).subplots()
    return axes


def _named_blocks(page: Page) -> Iterator[tuple[str, Block]]:
    """Yield the blocks that are drawn, with names of files that are not taken yet."""
    taken: set[str] = set()
    for section in page.sections:
        for block in section.blocks:
            if not isinstance(block, Squares | Dots | Lines | Bars | Flow | Heat):
                continue
            wanted = section.anchor if isinstance(block, Squares) else block.name
            base = re.sub(r"[^\w.-]+", "-", wanted).strip("-.") or "figure"
            stem, number = base, 1
            while stem in taken:
                number += 1
                stem = f"{base}-{number}"
            taken.add(stem)
            yield stem, block


def _figure(block: Block, models: Sequence[str]) -> "Figure":
    """Draw one block."""
    from matplotlib.figure import Figure

    if isinstance(block, Squares):
        across = max(1, min(len(block.squares), _MOST_ACROSS))
        down = max(1, -(-len(block.squares) // across))
        figure = Figure(figsize=(3.1 * across, 3.3 * down))
        grid = figure.subplots(down, across, squeeze=False).flatten()
        for ax, square in zip(grid, block.squares, strict=False):
            _draw_square(ax, square, block.conditions[0], block.cells)
        for ax in grid[len(block.squares) :]:
            ax.remove()
    elif isinstance(block, Dots):
        figure = Figure(figsize=(6.5, _dots_height(block)))
        _draw_dots(figure.subplots(), block, models)
    elif isinstance(block, Lines):
        figure = Figure(figsize=(4.2, 3.0))
        _draw_lines(figure.subplots(), block)
    elif isinstance(block, Bars):
        figure = Figure(figsize=(6.5, 0.9 + 0.35 * len(block.rows)))
        _draw_bars(figure.subplots(), block)
    elif isinstance(block, Flow):
        figure = Figure(figsize=(6.8, 3.4))
        _draw_flow(figure.subplots(), block)
    elif isinstance(block, Heat):
        n_rows = max((len(rows) for _, rows in block.panels), default=1)
        width = 0.6 + 0.2 * len(block.columns)
        figure = Figure(figsize=(max(6.5, 0.8 + width * len(block.panels)), 1.4 + 0.2 * n_rows))
        _draw_heat(figure, block)
    else:
        raise TypeError(f"no figure is drawn of a {type(block).__name__}")
    return figure


def _draw_square(ax: "Axes", square: Square, condition: str, names: Sequence[str]) -> None:
    """Draw one contingency table."""
    from matplotlib.patches import Rectangle

    cells = square_cells(square)
    ax.set(xlim=(0, 1), ylim=(1, 0), xticks=[], yticks=[], aspect="equal")
    ax.set_title(_folded(square.title, 34), loc="left", weight="bold")
    ax.spines[:].set_visible(False)
    if not any(cell.count for cell in cells):
        ax.text(0.5, 0.5, "no pairs", ha="center", color=LIGHT["soft"])
    outside = []
    for cell, name in zip(cells, names, strict=True):
        fill, ink, hatch, edge = _CELLS[cell.cell]
        label = f"{cell.count:,}\n{format_number(cell.share)} %\n{name}"
        if cell.count:
            ax.add_patch(
                Rectangle(
                    (cell.x, cell.y), cell.width, cell.height,
                    facecolor=fill, edgecolor=edge, hatch=hatch, linewidth=0,
                )
            )  # fmt: skip
        if (
            cell.height * cell.width
            and cell.height > 0.17
            and cell.width > 0.022 * text_width(name)
        ):
            ax.text(cell.x + 0.03, cell.y + 0.03, label, va="top", color=ink)
        elif not math.isnan(cell.share):
            outside.append(f"{name}: {cell.count:,} ({format_number(cell.share)} %)")
    left = cells[0].share + cells[1].share
    under = [] if math.isnan(left) else [f"{condition} right {format_number(left)} % (left part)"]
    ax.set_xlabel(
        "\n".join(_folded(line, 44) for line in [*under, *outside]), loc="left", color=LIGHT["soft"]
    )


def _dots_height(block: Dots) -> float:
    """Choose the height of a chart of dots."""
    rows, _ = dot_rows(block)
    return 1.1 + sum(max(_INCHES_A_ROW, 0.09 * len(row.marks) + 0.06) for row in rows)


def _draw_dots(ax: "Axes", block: Dots, models: Sequence[str]) -> None:
    """Draw rates by group over the noise floor."""
    from matplotlib.lines import Line2D

    rows, _ = dot_rows(block)
    scale = dots_scale(block)
    bounds = sorted(block.noise.values(), reverse=True)
    for place, bound in enumerate(bounds):
        step = "floor-2" if place == 0 and len(bounds) > 1 else "floor-1"
        ax.axvspan(0, 100 * bound, color=LIGHT[step], linewidth=0, zorder=0)
    for y, row in enumerate(rows):
        for place, mark in enumerate(row.marks):
            hue, shape = model_style(mark.dot.model)
            colour, at = LIGHT[f"model-{hue}"], y + (place - (len(row.marks) - 1) / 2) * 0.25
            alpha = 0.45 if mark.is_faded else 1.0
            low, high = (100 * max(scale.low, mark.low), 100 * min(scale.high, mark.high))
            style = (0, (1, 1.5)) if mark.is_wilson else "-"
            ax.plot([low, high], [at, at], color=colour, alpha=alpha, linestyle=style, linewidth=1)
            face = colour if mark.dot.is_certain else LIGHT["page"]
            ends = [(100 * mark.dot.value.value, _MARKERS[shape], face)]
            ends += [(100 * scale.high, ">", colour)] if mark.high > scale.high else []
            ends += [(100 * scale.low, "<", colour)] if mark.low < scale.low else []
            for x, marker, filled in ends:
                if 100 * scale.low <= x <= 100 * scale.high:
                    ax.plot(
                        x, at, marker=marker, markersize=3.6, alpha=alpha, clip_on=False,
                        markerfacecolor=filled, markeredgecolor=colour, markeredgewidth=0.9,
                    )  # fmt: skip
        low_n, high_n = row.n_clusters
        told = f"{low_n:,}" if low_n == high_n else f"{low_n:,}–{high_n:,}"
        ax.annotate(
            told, (1, y), xycoords=("axes fraction", "data"), xytext=(6, 0),
            textcoords="offset points", va="center", color=LIGHT["soft"], annotation_clip=False,
        )  # fmt: skip
    has_heads = any(row.level for row in rows)
    ax.set(
        xlim=(100 * scale.low, 100 * scale.high),
        ylim=(len(rows) - 0.4, -0.6),
        yticks=range(len(rows)),
        yticklabels=[("   " if row.level else "") + _folded(row.label, 34) for row in rows],
        xlabel=f"{block.axis} · at the right: {block.clusters}",
        xticks=[100 * tick for tick in scale.ticks],
    )
    for tick, row in zip(ax.get_yticklabels(), rows, strict=True):
        tick.set_fontweight("bold" if has_heads and not row.level else "normal")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x", color=LIGHT["line"], linewidth=0.6)
    ax.set_axisbelow(True)
    shown = sorted({mark.dot.model for row in rows for mark in row.marks})
    if len(shown) > 1 or any(models[index] for index in shown):
        styles = [(index, *model_style(index)) for index in shown]
        handles = [
            Line2D([], [], color=LIGHT[f"model-{hue}"], marker=_MARKERS[shape], markersize=4,
                   linewidth=1, label=_folded(models[index], 40))
            for index, hue, shape in styles
        ]  # fmt: skip
        ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)


def _draw_lines(ax: "Axes", block: Lines) -> None:
    """Draw curves over their band."""
    horizontal, vertical = lines_scales(block)
    kinds = {point.value.kind for series in block.series for point in series.points}
    factor = 100 if kinds <= {"rate", "difference"} else 1
    if block.band:
        xs, lows, middles, highs = zip(*block.band, strict=True)
        low, middle, high = ([factor * y for y in ys] for ys in (lows, middles, highs))
        ax.fill_between(xs, low, high, color=LIGHT["floor-1"], linewidth=0, zorder=0)
        ax.plot(xs, middle, color=LIGHT["edge"], linewidth=0.7, linestyle=(0, (2, 2)))
    if block.reference is not None:
        name, value = block.reference
        if value.low is not None and value.high is not None:
            ax.axhspan(
                factor * value.low,
                factor * value.high,
                color=LIGHT["floor-1"],
                linewidth=0,
                zorder=0,
            )
        ax.axhline(factor * value.value, color=LIGHT["edge"], linewidth=0.7)
        ax.annotate(
            f"{name}, {format_value(value)[0]}", (1, factor * value.value), ha="right",
            xycoords=("axes fraction", "data"), xytext=(0, 2), textcoords="offset points",
            color=LIGHT["soft"],
        )  # fmt: skip
    for series in block.series:
        hue, shape = model_style(series.model or 0)
        colour = LIGHT["soft"] if series.model is None else LIGHT[f"model-{hue}"]
        points = [point for point in series.points if not math.isnan(point.value.value)]
        ax.plot(
            [point.x for point in points], [factor * point.value.value for point in points],
            color=colour, linewidth=1, label=series.label,
        )  # fmt: skip
        for point in points:
            alpha = 0.45 if point.n is not None and point.n < FEW_POINTS else 1.0
            if point.value.low is not None and point.value.high is not None:
                ax.plot(
                    [point.x, point.x], [factor * point.value.low, factor * point.value.high],
                    color=colour, alpha=alpha, linewidth=1,
                )  # fmt: skip
            ax.plot(
                point.x, factor * point.value.value, _MARKERS[shape], color=colour, alpha=alpha,
                markersize=4,
            )  # fmt: skip
    ax.set(
        title=_folded(block.title, 50),
        xlabel=_folded(block.x_title, 50),
        ylabel="%" if factor == 100 else "",
        xlim=(horizontal.low, horizontal.high),
        ylim=(factor * vertical.low, factor * vertical.high),
        xticks=horizontal.ticks,
        yticks=[factor * tick for tick in vertical.ticks],
    )
    ax.grid(axis="y", color=LIGHT["line"], linewidth=0.6)
    ax.set_axisbelow(True)
    if len(block.series) > 1:
        ax.legend()


def _draw_bars(ax: "Axes", block: Bars) -> None:
    """Draw stacked shares."""
    for place, (label, cell) in enumerate(block.parts):
        fill, ink, hatch, edge = _CELLS[cell]
        layout = [bars_cells(counts)[place] for _, _, counts in block.rows]
        ax.barh(
            range(len(block.rows)), [100 * length for _, length in layout],
            left=[100 * begin for begin, _ in layout], color=fill, edgecolor=edge, hatch=hatch,
            linewidth=0, label=label, height=0.7,
        )  # fmt: skip
        for y, ((begin, length), (_, _, counts)) in enumerate(zip(layout, block.rows, strict=True)):
            if length > 0.02 * len(f"{counts[place]:,}"):
                ax.text(
                    100 * begin + 1, y, f"{counts[place]:,}", va="center", color=ink, weight="bold"
                )
    labels = [f"{_folded(label, 30)} ({sum(counts):,})" for label, _, counts in block.rows]
    ax.set(
        yticks=range(len(labels)), yticklabels=labels, xlabel="%", xlim=(0, 100),
        ylim=(len(labels) - 0.5, -0.5),
    )  # fmt: skip
    ax.tick_params(axis="y", length=0)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3)


def _draw_heat(figure: "Figure", block: Heat) -> None:
    """Draw the panels of a heat map on one scale, which is white at nothing."""
    from matplotlib.colors import LinearSegmentedColormap

    scheme = heat_colours(LIGHT)
    steps = [LIGHT["second"], scheme["cold-3"], LIGHT["page"], scheme["heat-3"], LIGHT["first"]]
    colours = LinearSegmentedColormap.from_list("shares", steps)
    top = max((abs(value) for value in heat_values(block)), default=0.0) or 1.0
    axes = figure.subplots(1, len(block.panels), squeeze=False)[0]
    picture = None
    for ax, (title, rows) in zip(axes, block.panels, strict=True):
        values = [[100 * value for value in of_row] for _, of_row in rows]
        picture = ax.imshow(values, cmap=colours, vmin=-100 * top, vmax=100 * top, aspect="equal")
        ax.set_title(_folded(title, 34), loc="left")
        ax.set_xticks(range(len(block.columns)), block.columns, fontsize=6)
        ax.set_yticks(range(len(rows)), [label for label, _ in rows], fontsize=6)
        ax.set_ylabel(block.row_title)
    figure.suptitle(_folded(block.title, 80), x=0.01, ha="left", weight="bold")
    if picture is not None:
        figure.colorbar(picture, ax=list(axes), label="%", shrink=0.8)


def _draw_flow(ax: "Axes", block: Flow) -> None:
    """Draw how verdicts go from state to state."""
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path as Curve

    blocks, ribbons = flow_layout(block)
    thick = 0.04
    for ribbon in ribbons:
        begin, end, middle = ribbon.state + thick, ribbon.state + 1.0, ribbon.state + 0.52
        (y, to_y), size = (ribbon.y_from, ribbon.y_to), ribbon.height
        vertices = [
            (begin, y), (middle, y), (middle, to_y), (end, to_y), (end, to_y + size),
            (middle, to_y + size), (middle, y + size), (begin, y + size), (begin, y),
        ]  # fmt: skip
        codes = [1, 4, 4, 4, 2, 4, 4, 4, 79]
        colour = _CELLS[ribbon.cell][0]
        ax.add_patch(PathPatch(Curve(vertices, codes), facecolor=colour, alpha=0.4, linewidth=0))
    for part in blocks:
        for cell, y, size in part.parts:
            fill, _, hatch, edge = _CELLS[cell]
            ax.add_patch(
                Rectangle(
                    (part.state, y), thick, size, facecolor=fill, edgecolor=edge, hatch=hatch,
                    linewidth=0,
                )
            )  # fmt: skip
        if part.count or not part.is_right:
            word = "right" if part.is_right else "wrong"
            at = part.y + min(part.height / 2, 0.12) if part.is_right else part.y + part.height / 2
            ax.text(part.state + 0.07, at, f"{part.count:,} {word}", weight="bold", va="center")
    for state, (name, meaning, value) in enumerate(block.states):
        share = " ".join(filter(None, format_value(value)))
        ax.text(state, -0.04, f"{name}\n{meaning}\n{share} right", va="bottom")
    ax.set(xlim=(0, len(block.states) - 0.45), ylim=(1, -0.25))
    ax.set_axis_off()


def _folded(text: str, width: int) -> str:
    """Break a long text into at most three lines."""
    return textwrap.fill(text, width, max_lines=3, placeholder=" …")
