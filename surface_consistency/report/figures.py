"""Figures for papers as PDF, PNG or SVG, drawn from the blocks of the page; axes for one's own."""

import io
import math
import os
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import pandas as pd

from surface_consistency.errors import ColumnNotFoundError, MissingDependencyError
from surface_consistency.report.charts import heat_map_view
from surface_consistency.report.colours import LIGHT, MODEL_COLOURS, heat_colours, model_style
from surface_consistency.report.curves import lines_scene
from surface_consistency.report.flow import flow_scene
from surface_consistency.report.layout import CELLS, dot_rows
from surface_consistency.report.page import (
    AlluvialPlot,
    Block,
    Dot,
    ForestPlot,
    Heatmap,
    Lines,
    MosaicPlot,
    MosaicPlots,
    Page,
    StackedBars,
)
from surface_consistency.report.scene import Box, Mark, Scene, Span, Stroke, Symbol, Words
from surface_consistency.report.squares import square_scene
from surface_consistency.report.strips import Strips, bars_strips, forest_strips
from surface_consistency.runs.files import write_bytes
from surface_consistency.tables.numbers import Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.path import Path as Curve

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

FigureFormat = Literal["pdf", "png", "svg"]
"""Forms in which a figure is written."""

_METADATA: Final[Mapping[FigureFormat, dict[str, None]]] = {
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
    "svg": {"Date": None},
}
_MARKERS: Final = {
    "circle": "o", "diamond": "D", "square": "s", "triangle": "^", "left": "<", "right": ">",
}  # fmt: skip
_CELLS: Final = {
    "both": (LIGHT["both"], LIGHT["both-text"], "", LIGHT["both"]),
    "first_only": (LIGHT["first"], LIGHT["flip-text"], "////", LIGHT["first-line"]),
    "second_only": (LIGHT["second"], LIGHT["flip-text"], "\\\\\\\\", LIGHT["second-line"]),
    "neither": (LIGHT["neither"], LIGHT["neither-text"], "", LIGHT["neither"]),
    "other": (LIGHT["edge"], LIGHT["page"], "", LIGHT["edge"]),
}
_STYLES: Final[Mapping[str, Mapping[str, Any]]] = {
    **{
        f"c-{cell}": {"facecolor": fill, "edgecolor": edge, "hatch": hatch}
        for cell, (fill, _, hatch, edge) in _CELLS.items()
    },
    **{f"r-{cell}": {"facecolor": fill, "alpha": 0.4} for cell, (fill, *_) in _CELLS.items()},
    **{f"m{hue}": {"edgecolor": LIGHT[f"model-{hue}"]} for hue in range(MODEL_COLOURS)},
    "curve": {"linewidth": 1},
    "empty": {"edgecolor": LIGHT["edge"], "linewidth": 0.6, "linestyle": (0, (2, 2))},
    "faded": {"alpha": 0.45},
    "floor-1": {"facecolor": LIGHT["floor-1"]},
    "floor-2": {"facecolor": LIGHT["floor-2"]},
    "gap": {"edgecolor": LIGHT["page"], "linewidth": 1.2},
    "grid": {"edgecolor": LIGHT["line"], "linewidth": 0.6},
    "leader": {"edgecolor": LIGHT["edge"], "linewidth": 0.6},
    "ln": {"linewidth": 1},
    "open": {"facecolor": LIGHT["page"]},
    "wilson": {"linestyle": (0, (1, 1.5))},
    "middle": {"edgecolor": LIGHT["edge"], "linewidth": 0.7, "linestyle": (0, (2, 2))},
    "reference": {"edgecolor": LIGHT["soft"]},
}
"""Shapes by the classes that `style.css` gives their looks on the page."""

_LETTERS: Final[Mapping[str, Mapping[str, Any]]] = {
    **{f"in-{cell}": {"color": ink} for cell, (_, ink, *_) in _CELLS.items()},
    "t-big": {"weight": "bold", "size": 15.0},
    "t-head": {"weight": "bold"},
    "t-ink": {"color": LIGHT["ink"]},
    "t-n": {"weight": "bold"},
}
"""Letters by their classes; sizes in the units of the picture, where the font is wider."""

_ANCHORS: Final = {"start": "left", "middle": "center", "end": "right"}
_PATH_CODES: Final = {"M": 1, "L": 2, "C": 4, "Z": 79}
_PIXELS: Final = 100
"""Pixels of rows to an inch."""
_MOST_ACROSS: Final = 4


def write_figures(
    page: Page, folder: str | os.PathLike[str], *, formats: Sequence[FigureFormat] = ("pdf",)
) -> list[Path]:
    """Draw the squares, dots, curves, bars, flows and heat maps of a page, each once.

    Args:
        page: The page.
        folder: Where to write; made when absent. Files of the same names are replaced.
        formats: Forms of each figure, one file each.

    Returns:
        The files, each named after its block. Equal pages give equal bytes.

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
            for kind in formats:
                path = home / f"{stem}.{kind}"
                write_bytes(path, _rendered(figure, kind))
                written.append(path)
    return written


def _rendered(figure: "Figure", kind: FigureFormat) -> bytes:
    """Set a figure in a format; all of them are laid out as the first."""
    content = io.BytesIO()
    figure.savefig(content, format=kind, dpi=200, metadata=dict(_METADATA[kind]))
    figure.set_layout_engine("none")
    return content.getvalue()


class PairedCounts(Protocol):
    """Counts of paired verdicts, such as a `PairedTable` of the metrics."""

    @property
    def both(self) -> int:
        """Pairs right under both conditions."""

    @property
    def first_only(self) -> int:
        """Pairs right under the first condition only."""

    @property
    def second_only(self) -> int:
        """Pairs right under the second condition only."""

    @property
    def neither(self) -> int:
        """Pairs wrong under both conditions."""


def plot_square(
    table: PairedCounts,
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
    axes = _new_axis(3.6, 3.6) if ax is None else ax
    square = MosaicPlot(title=title, model=None, **{name: getattr(table, name) for name in CELLS})
    inches = axes.get_window_extent().width / axes.figure.dpi
    _draw_scene(axes, square_scene(square, cells, conditions[0]), title, inches)
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
        The axis. Groups on fewer than 20 clusters are faded, those below 4 left out; a rate of 0 or
        1 whose interval has no width, as resamples give, has Wilson's over clusters, dashed.

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
    block = ForestPlot(
        name="groups",
        title="",
        axis=f"{rate.replace('_', ' ')}, %",
        rows=[(label, 0, dots) for label, dots in rows.items()],
        noise={place: bounds[name] for place, name in enumerate(models) if name in bounds},
        clusters="clusters",
    )
    return _forest_axis(ax, block, models)


_SHARES: Final = {
    "item_share": "which item",
    "form_share": "form",
    "item_by_form_share": "item by form",
    "sampling_share": "the dice",
}


def plot_forms(frame: pd.DataFrame, *, ax: "Axes | None" = None, model: str = "model") -> "Axes":
    """Draw what decides a verdict: the shares of item, form, item by form and sampling.

    Args:
        frame: As from `variance_shares_by`: one row a model, with the shares and their bounds.
        ax: Where to draw; None for an axis of a new figure.
        model: Column of models, each a marker and a colour; rows are of one model without it.

    Returns:
        The axis. Shares that are NaN, as that of sampling without repeated samples, are left out.

    Raises:
        ColumnNotFoundError: If a column is missing.
        MissingDependencyError: If matplotlib is not installed.
    """
    needed = [
        "n",
        "n_clusters",
        *(f"{key}{end}" for key in _SHARES for end in ("", "_low", "_high")),
    ]
    if missing := [name for name in needed if name not in frame]:
        raise ColumnNotFoundError(
            f"shares cannot be drawn without the column {missing[0]!r}; give what "
            "`variance_shares_by` returns"
        )
    models = [str(name) for name in frame[model]] if model in frame else [""]
    rows = [
        (
            label,
            0,
            [
                Dot(
                    model=place,
                    value=Value(value=row[key], low=row[f"{key}_low"], high=row[f"{key}_high"]),
                    n=int(row["n"]),
                    n_clusters=int(row["n_clusters"]),
                )
                for place, row in enumerate(frame.to_dict("records"))
                if not math.isnan(row[key])
            ],
        )
        for key, label in _SHARES.items()
    ]
    block = ForestPlot(
        name="forms",
        title="",
        axis="share of the variance, %",
        rows=[row for row in rows if row[2]],
        clusters="clusters",
    )
    return _forest_axis(ax, block, models)


def _forest_axis(ax: "Axes | None", block: ForestPlot, models: Sequence[str]) -> "Axes":
    """Draw a chart of dots, on a new figure where no axis is given."""
    if ax is None:
        matplotlib = _matplotlib("drawing a plot")
        with matplotlib.rc_context(dict(FIGURE_STYLE)):
            ax = _strips_figure(forest_strips(block, models)).axes[0]
    _draw_forest(ax, block, models)
    return ax


def _matplotlib(feature: str) -> ModuleType:
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
            if not isinstance(
                block, MosaicPlots | ForestPlot | Lines | StackedBars | AlluvialPlot | Heatmap
            ):
                continue
            wanted = section.anchor if isinstance(block, MosaicPlots) else block.name
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

    match block:
        case MosaicPlots():
            name = block.conditions[0]
            squares = [(one.title, square_scene(one, block.cells, name)) for one in block.squares]
            return _scene_figure(squares, 3.4)
        case AlluvialPlot():
            return _scene_figure([(block.title, flow_scene(block))], 6.8)
        case Lines():
            figure = _scene_figure([(block.title, lines_scene(block))], 3.9)
            if len(block.series) > 1:
                labels = [(series.label, series.model) for series in block.series]
                _add_legend(figure.axes[0], labels, "upper left", 0)
        case ForestPlot():
            figure = _strips_figure(forest_strips(block, models))
            _draw_forest(figure.axes[0], block, models)
        case StackedBars():
            figure = _strips_figure(bars_strips(block))
            _draw_bars(figure.axes[0], block)
        case Heatmap():
            height = 1.4 + 0.2 * max((len(rows) for _, rows in block.panels), default=1)
            width = 0.8 + (0.6 + 0.2 * len(block.columns)) * len(block.panels)
            figure = Figure(figsize=(max(6.5, width), height))
            _draw_heat(figure, block)
        case _:
            raise TypeError(f"no figure is drawn of a {type(block).__name__}")
    return figure


def _scene_figure(scenes: Sequence[tuple[str, Scene]], inches: float) -> "Figure":
    """Draw pictures with their titles side by side, each so many inches wide."""
    from matplotlib.figure import Figure

    across = max(1, min(len(scenes), _MOST_ACROSS))
    down = max(1, -(-len(scenes) // across))
    height = inches * max((scene.height / scene.width for _, scene in scenes), default=1.0) + 0.3
    figure = Figure(figsize=(inches * across, height * down))
    grid = figure.subplots(down, across, squeeze=False).flatten()
    for ax, (title, scene) in zip(grid, scenes, strict=False):
        _draw_scene(ax, scene, title, inches)
    for ax in grid[len(scenes) :]:
        ax.remove()
    return figure


def _draw_scene(ax: "Axes", scene: Scene, title: str, inches: float) -> None:
    """Draw a picture so many inches wide; the units of the axis are its own, from the top."""
    ax.set(xlim=(0, scene.width), ylim=(scene.height, 0), aspect="equal")
    ax.set_title(_folded(title, 40), loc="left", weight="bold")
    ax.set_axis_off()
    _draw_marks(ax, scene.marks, points=72 * inches / scene.width)


def _draw_marks(
    ax: "Axes",
    marks: Iterable[Mark],
    *,
    points: float,
    at: Callable[[float], float] = float,
    top: float = 0.0,
) -> None:
    """Draw marks, a unit of which is so many points; `at` places their x, `top` their y."""
    from matplotlib.patches import PathPatch, Rectangle

    for mark in marks:
        css = mark.css.split()
        match mark:
            case Words():
                looks = _looks(_LETTERS, css, color=LIGHT["soft"], size=11.5)
                looks["size"] *= points
                ax.annotate(
                    mark.text, (at(mark.x), top + mark.y), xytext=(mark.indent * points, 0),
                    textcoords="offset points", ha=_ANCHORS[mark.anchor], **looks,
                )  # fmt: skip
            case Box():
                looks = _looks(_STYLES, css, linewidth=0)
                x, width = at(mark.x), at(mark.x + mark.width) - at(mark.x)
                ax.add_patch(Rectangle((x, top + mark.y), width, mark.height, **looks))
            case Stroke():
                looks = _looks(_STYLES, css, facecolor="none", linewidth=0)
                ax.add_patch(PathPatch(_curve(mark.path), **looks))
            case Span():
                looks = _looks(_STYLES, css)
                looks["color"] = looks.pop("edgecolor")
                ax.plot([at(mark.x), at(mark.to_x)], [top + mark.y] * 2, **looks)
            case Symbol():
                looks = _looks(_STYLES, css, alpha=1.0)
                ax.plot(
                    at(mark.x), top + mark.y, _MARKERS[mark.shape], color=looks["edgecolor"],
                    markerfacecolor=looks.get("facecolor", looks["edgecolor"]),
                    alpha=looks["alpha"], markersize=4, clip_on=False,
                )  # fmt: skip


def _looks(
    styles: Mapping[str, Mapping[str, Any]],
    css: Iterable[str],
    **looks: object,
) -> dict[str, Any]:
    """Gather the looks of a mark by its classes."""
    gathered: dict[str, Any] = dict(looks)
    for name in css:
        gathered |= styles.get(name, {})
    return gathered


def _curve(path: str) -> "Curve":
    """Read a path of SVG."""
    from matplotlib.path import Path as Curve

    places: list[tuple[float, float]] = []
    codes: list[int] = []
    for command, numbers in re.findall(r"([MLCZ])([^MLCZ]*)", path):
        lengths = [float(number) for number in numbers.split()] or [0.0, 0.0]
        places += zip(lengths[::2], lengths[1::2], strict=True)
        codes += [_PATH_CODES[command]] * (len(lengths) // 2)
    return Curve(places, codes)


def _draw_strips(ax: "Axes", strips: Strips) -> None:
    """Draw rows on their scale; the y of the axis are pixels from the top."""
    factor = 100 if strips.is_share else 1
    begin, length = factor * strips.scale.low, factor * (strips.scale.high - strips.scale.low)

    def at(x: float) -> float:
        return begin + length * x / 100

    for band in strips.bands:
        looks = _looks(_STYLES, [band.css], linewidth=0, zorder=0)
        ax.axvspan(at(band.x), at(band.x + band.width), **looks)
    middles, top = [], 0.0
    for row in strips.rows:
        _draw_marks(ax, row.marks, at=at, top=top, points=72 / _PIXELS)
        middles.append(top + row.height / 2)
        ax.annotate(
            row.remark, (1, middles[-1]), xycoords=("axes fraction", "data"), xytext=(6, 0),
            textcoords="offset points", va="center", color=LIGHT["soft"], annotation_clip=False,
        )  # fmt: skip
        top += row.height + strips.gap
    ax.set(
        xlim=(begin, begin + length),
        ylim=(top or 1.0, -strips.gap),
        yticks=middles,
        yticklabels=[("   " if "sub" in row.css else "") + _folded(row.label, 34)
                     for row in strips.rows],
        xlabel=strips.axis,
        xticks=[at(x) for x, _ in strips.ticks],
    )  # fmt: skip
    for tick, row in zip(ax.get_yticklabels(), strips.rows, strict=True):
        tick.set_fontweight("bold" if "head" in row.css else "normal")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x", color=LIGHT["line"], linewidth=0.6)
    ax.set_axisbelow(True)


def _strips_figure(strips: Strips) -> "Figure":
    """Make a figure of one axis, as high as the rows need."""
    from matplotlib.figure import Figure

    height = 1.1 + sum(row.height + strips.gap for row in strips.rows) / _PIXELS
    figure = Figure(figsize=(6.5, height))
    figure.subplots()
    return figure


def _draw_forest(ax: "Axes", block: ForestPlot, models: Sequence[str]) -> None:
    """Draw rates by group with the names of their models."""
    strips = forest_strips(block, models)
    counted = f" · at the right: {block.clusters}" if block.clusters else ""
    _draw_strips(ax, replace(strips, axis=f"{block.axis}{counted}"))
    rows, _ = dot_rows(block)
    shown = sorted({mark.dot.model for _, _, marks in rows for mark in marks})
    if not block.remarks and any(models[index] for index in shown):
        _add_legend(ax, [(models[index], index) for index in shown], "lower left", 1)


def _add_legend(
    ax: "Axes",
    labels: Iterable[tuple[str, int | None]],
    corner: Literal["upper left", "lower left"],
    height: float,
) -> None:
    """Name the models of an axis, each with its marker."""
    from matplotlib.lines import Line2D

    handles = []
    for label, model in labels:
        hue, shape = model_style(model or 0)
        colour = LIGHT["soft"] if model is None else LIGHT[f"model-{hue}"]
        line = Line2D([], [], color=colour, marker=_MARKERS[shape], markersize=4, linewidth=1)
        line.set_label(_folded(label, 40))
        handles.append(line)
    ax.legend(handles=handles, loc=corner, bbox_to_anchor=(0, height), ncols=2)


def _draw_bars(ax: "Axes", block: StackedBars) -> None:
    """Draw stacked shares with the names of their parts."""
    from matplotlib.patches import Patch

    _draw_strips(ax, bars_strips(block))
    parts = [Patch(label=name, **_STYLES[f"c-{cell}"]) for name, cell in block.parts]
    ax.legend(handles=parts, loc="lower left", bbox_to_anchor=(0, 1), ncols=3)


def _draw_heat(figure: "Figure", block: Heatmap) -> None:
    """Draw the panels of a heat map on one scale, in the steps of colour of the page."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap, to_rgb

    view = heat_map_view(block)
    scheme = {"soft": LIGHT["page"], **heat_colours(LIGHT)}
    axes = figure.subplots(1, len(block.panels), squeeze=False)[0]
    for ax, (title, rows) in zip(axes, view["panels"], strict=True):
        ax.imshow([[to_rgb(scheme[cell["css"]]) for cell in cells] for _, cells in rows])
        for y, (_, cells) in enumerate(rows):
            for x, cell in enumerate(cells):
                ax.text(x, y, cell["text"], ha="center", va="center", fontsize=6)
        ax.set_title(_folded(title, 34), loc="left")
        ax.set_xticks(range(len(block.columns)), block.columns, fontsize=6)
        ax.set_yticks(range(len(rows)), [label for label, _ in rows], fontsize=6)
        ax.set_ylabel(block.row_title)
    figure.suptitle(_folded(block.title, 80), x=0.01, ha="left", weight="bold")
    if view["top"]:
        names = [f"cold-{5 - step}" for step in range(6)] + [f"heat-{step}" for step in range(6)]
        bounds = [100 * view["top"] * step / 6 for step in range(-6, 7)]
        colours = ListedColormap([scheme[name] for name in names])
        steps = ScalarMappable(BoundaryNorm(bounds, len(names)), colours)
        figure.colorbar(steps, ax=list(axes), label="%", shrink=0.8, format="%.3g")


def _folded(text: str, width: int) -> str:
    """Break a long text into at most three lines."""
    return textwrap.fill(text, width, max_lines=3, placeholder=" …")
