"""Plots of frames that the metrics return, on matplotlib axes."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from surface_consistency.clusters import FEW_CLUSTERS, LEAST_CLUSTERS
from surface_consistency.errors import ColumnNotFoundError, MissingDependencyError
from surface_consistency.report.colours import LIGHT, model_style
from surface_consistency.report.layout import square_cells
from surface_consistency.report.page import MosaicPlot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from surface_consistency.metrics import PairedTable

_MARKERS: Final = {"circle": "o", "diamond": "D", "square": "s", "triangle": "^"}
_CELLS: Final = {
    "both": (LIGHT["both"], LIGHT["both-text"], ""),
    "first_only": (LIGHT["first"], LIGHT["flip-text"], "//"),
    "second_only": (LIGHT["second"], LIGHT["flip-text"], "\\\\"),
    "neither": (LIGHT["neither"], LIGHT["neither-text"], ""),
}
"""Fill, colour of the text and hatching of the cells of a contingency table."""

_SHARES: Final = {
    "item_share": "item",
    "form_share": "form",
    "item_by_form_share": "item by form",
    "sampling_share": "sampling",
}
_STEP: Final = 0.8
"""Total height of the markers of one row, in units of the distance between rows."""


def plot_paired(
    table: "PairedTable | pd.Series[Any]",
    *,
    ax: "Axes | None" = None,
    conditions: tuple[str, str] = ("first", "second"),
    title: str = "",
) -> "Axes":
    """Draw a contingency table of paired correctness labels as a mosaic plot.

    Args:
        table: A `PairedTable`, or a row of the frame of `paired_by`: any object with the attributes
            both, first_only, second_only and neither.
        ax: Axes to draw on; None for the current axes of pyplot.
        conditions: Names of the two conditions.
        title: Title of the axes; none by default.

    Returns:
        The axes. The area of a cell is its proportion of all pairs: the width of the left part is
        the accuracy under the first condition, and the height of each upper part is the accuracy
        under the second condition, given the first.

    Raises:
        ValueError: If a count is negative.
        MissingDependencyError: If matplotlib is not installed.

    References:
        Hofmann 2003, "Constructing and reading mosaicplots", doi 10.1016/S0167-9473(02)00340-3.
    """
    axes = _axes(ax)
    first, second = conditions
    counts = {name: int(getattr(table, name)) for name in _CELLS}
    names = ("both", f"{first} only", f"{second} only", "neither")
    cells = square_cells(
        MosaicPlot(
            title="",
            model=None,
            both=counts["both"],
            first_only=counts["first_only"],
            second_only=counts["second_only"],
            neither=counts["neither"],
        )
    )
    for name, cell in zip(names, cells, strict=True):
        if not cell.count:
            continue
        fill, ink, hatch = _CELLS[cell.cell]
        axes.bar(
            cell.x, cell.height, cell.width, cell.y,
            align="edge", color=fill, edgecolor=LIGHT["page"], hatch=hatch,
        )  # fmt: skip
        place = (cell.x + cell.width / 2, cell.y + cell.height / 2)
        axes.annotate(f"{name}\n{cell.count:,}", place, ha="center", va="center", color=ink)
    if not any(counts.values()):
        axes.annotate("no pairs", (0.5, 0.5), ha="center", va="center")
    axes.set(xlim=(0, 1), ylim=(1, 0), aspect="equal", title=title)
    axes.set_axis_off()
    return axes


def plot_forms(frame: pd.DataFrame, *, ax: "Axes | None" = None, model: str = "model") -> "Axes":
    """Draw the proportions of variance of item, form, item by form and sampling.

    Args:
        frame: The frame of `variance_shares_by`: one row per model, with the proportions and
            their bounds.
        ax: Axes to draw on; None for the current axes of pyplot.
        model: Column of models, each drawn with its own marker and colour. Without this column all
            rows belong to one model.

    Returns:
        The axes, in percent of the variance. Proportions that are NaN, such as that of sampling
        without repeated samples, are omitted.

    Raises:
        ColumnNotFoundError: If a column is missing.
        MissingDependencyError: If matplotlib is not installed.
    """
    ends = [(key, f"{key}_low", f"{key}_high") for key in _SHARES]
    _check_columns(frame, ["n_clusters", *(name for names in ends for name in names)])
    kept = ["n_clusters", *([model] if model in frame else [])]
    parts = [
        frame[[*names, *kept]].set_axis(["share", "share_low", "share_high", *kept], axis=1)
        for names in ends
    ]
    labels = [label for label in _SHARES.values() for _ in range(len(frame))]
    shares = pd.concat(parts, ignore_index=True)
    axes = _draw_intervals(_axes(ax), shares, "share", labels, model=model, unit=100.0)
    axes.set_xlabel("proportion of the variance, %")
    return axes


def plot_estimates(
    frame: pd.DataFrame,
    *,
    key: str,
    labels: Sequence[str],
    axis: str,
    unit: float = 1.0,
    null: float | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw an estimate with its confidence interval, one row per label.

    Args:
        frame: One row per label, with n_clusters, the estimate and its bounds.
        key: Column of the estimate.
        labels: Names of the rows.
        axis: Label of the axis, with the unit.
        unit: Factor of the numbers, such as 100 for percent.
        null: Value of no effect, drawn as a line; none by default.
        ax: Axes to draw on; None for the current axes of pyplot.

    Returns:
        The axes. Rows with fewer than 20 clusters are pale; rows with fewer than 4 are omitted.

    Raises:
        ColumnNotFoundError: If a column is missing.
        MissingDependencyError: If matplotlib is not installed.
    """
    _check_columns(frame, ["n_clusters", key, f"{key}_low", f"{key}_high"])
    axes = _draw_intervals(_axes(ax), frame, key, labels, model=None, unit=unit)
    if null is not None:
        axes.axvline(null, color=LIGHT["edge"], linewidth=0.8)
    axes.set_xlabel(axis)
    return axes


def _axes(ax: "Axes | None") -> "Axes":
    """Return the given axes, or the current ones of pyplot."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingDependencyError("drawing a plot", "matplotlib", "plot") from error
    return pyplot.gca()


def _check_columns(frame: pd.DataFrame, names: Sequence[str]) -> None:
    """Raise an error if a column is missing."""
    for name in names:
        if name not in frame:
            raise ColumnNotFoundError(
                f"column {name!r} not found; pass the frame that the metric returned. Columns: "
                f"{', '.join(map(str, frame.columns))}"
            )


def _draw_intervals(
    axes: "Axes",
    frame: pd.DataFrame,
    key: str,
    labels: Sequence[str],
    *,
    model: str | None,
    unit: float,
) -> "Axes":
    """Draw one row per label, with a marker and an interval per model, from top to bottom."""
    names = [str(name) for name in frame[model].unique()] if model in frame else [""]
    rows: dict[str, list[Mapping[Any, Any]]] = {}
    for label, row in zip(labels, frame.to_dict("records"), strict=True):
        if row["n_clusters"] >= LEAST_CLUSTERS and not math.isnan(row[key]):
            rows.setdefault(label, []).append(row)
    for place, drawn in enumerate(rows.values()):
        for one in drawn:
            index = names.index(str(one[model])) if model in one else 0
            hue, shape = model_style(index)
            low, value, high = (unit * one[f"{key}{end}"] for end in ("_low", "", "_high"))
            axes.errorbar(
                value,
                place + _STEP * ((index + 0.5) / len(names) - 0.5),
                xerr=None if math.isnan(low + high) else [[value - low], [high - value]],
                fmt=_MARKERS[shape],
                color=LIGHT[f"model-{hue}"],
                alpha=0.45 if one["n_clusters"] < FEW_CLUSTERS else 1.0,
                label=names[index],
            )
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_ylim(len(rows) - 0.5 if rows else 0.5, -0.5)
    if len(names) > 1:
        handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        axes.legend(handles.values(), handles.keys())
    return axes
