"""Groups of stacked bars, one panel a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Final

from surface_consistency.errors import MissingDependencyError
from surface_consistency.report._old_figures import FIGURE_STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BarGroup", "Part", "bar_panels"]

_GROUP_WIDTH: Final = 0.84
_NARROWEST: Final = 6.4
_LABEL: Final = 20
_LEAST_COUNT: Final = 0.7
_ROOM_FOR_NOTES: Final = 12.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a stacked bar."""

    label: str
    """What it stands for; equal labels have one entry in the legend."""

    height: float
    """A share, or a count."""

    colour: str
    """Its colour."""

    low: float | None = None
    """Lower bound of its interval; None without one."""

    high: float | None = None
    """Upper bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BarGroup:
    """Bars side by side over one label."""

    panel: str
    """Which panel it belongs to, and the panel's title."""

    label: str
    """What stands below it."""

    bars: tuple[tuple[Part, ...], ...]
    """Bars from left to right, each from bottom to top."""

    bounds: tuple[float, float] | None = None
    """Interval of the height of the last bar; None without one."""

    note: str | None = None
    """What stands above it."""


def bar_panels(
    groups: Sequence[BarGroup], *, what: str, ylabel: str, log_counts: bool = False
) -> "Figure":
    """Draw the groups; heights are shares shown in percent, or counts on a log scale."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError(what, "matplotlib", "plot") from error
    panels = list(dict.fromkeys(group.panel for group in groups))
    widest = max(sum(group.panel == panel for group in groups) for panel in panels)
    with matplotlib.rc_context(FIGURE_STYLE):
        figure = Figure(figsize=(max(_NARROWEST, 1.15 * widest + 1.2), 2.7 * len(panels) + 0.6))
        axes = figure.subplots(len(panels), 1, squeeze=False).flatten()
        for ax, panel in zip(axes, panels, strict=True):
            members = [group for group in groups if group.panel == panel]
            _draw(ax, members, factor=1.0 if log_counts else 100.0)
            ax.set_ylabel(ylabel)
            ax.set_title(panel)
            ax.set_xticks(range(len(members)), [fill(group.label, _LABEL) for group in members])
            if log_counts:
                _count_scale(ax, members)
            ax.grid(axis="y", linewidth=0.3)
            ax.set_axisbelow(True)
        handles = {
            label: handle
            for ax in axes
            for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
        }
        figure.legend(
            list(handles.values()),
            list(handles),
            loc="outside upper center",
            ncols=min(3, len(handles)),
            frameon=False,
        )
    return figure


def _draw(ax: "Axes", groups: Sequence[BarGroup], *, factor: float) -> None:
    """Draw the bars of one panel."""
    for place, group in enumerate(groups):
        width = _GROUP_WIDTH / len(group.bars)
        for number, parts in enumerate(group.bars):
            x = place + (number + 0.5) * width - _GROUP_WIDTH / 2
            base = 0.0
            for part in parts:
                height = factor * part.height
                ax.bar(x, height, 0.92 * width, bottom=base, color=part.colour, label=part.label)
                if part.low is not None and part.high is not None:
                    _whisker(ax, x, factor * part.low, factor * part.high)
                base += height
        if group.bounds is not None:
            x = place + _GROUP_WIDTH / 2 - width / 2
            _whisker(ax, x, factor * group.bounds[0], factor * group.bounds[1])


def _whisker(ax: "Axes", x: float, low: float, high: float) -> None:
    """Draw an interval."""
    ax.vlines(x, low, high, color="black", linewidth=0.8)


def _count_scale(ax: "Axes", groups: Sequence[BarGroup]) -> None:
    """Put counts on a log scale, write them above their bars, and the notes above all."""
    counts = [part.height for group in groups for parts in group.bars for part in parts]
    top = max(1.0, *counts)
    # Limits first: counts that are all zero leave the log scale nothing to fit itself to.
    ax.set_ylim(_LEAST_COUNT, _ROOM_FOR_NOTES * top)
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    for place, group in enumerate(groups):
        width = _GROUP_WIDTH / len(group.bars)
        for number, parts in enumerate(group.bars):
            x = place + (number + 0.5) * width - _GROUP_WIDTH / 2
            count = parts[0].height
            ax.text(x, max(count, _LEAST_COUNT) * 1.06, f"{count:,.0f}", ha="center", va="bottom")
        if group.note:
            ax.text(place, 9.0 * top, group.note, ha="center", va="top", fontsize=6.5)
