"""Figures 2 and 3 of SLAQ, and accuracy by slot."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from surface_consistency.errors import MissingDependencyError
from surface_consistency.report._old_figures import FIGURE_STYLE, save_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["alignment_figure", "momentum_figure", "position_figure", "write_slaq_figures"]

_SHORT, _LONG, _PLAIN = "#2e7d32", "#6a3d9a", "#2171b5"
_BAND: Final = "#bdbdbd"
_ROW_HEIGHT: Final = 0.34


def alignment_figure(tables: "Mapping[str, pd.DataFrame]") -> "Figure":
    """Draw accuracies, alignment and signed alignment of each model, with intervals.

    Args:
        tables: As from `slaq_tables`; "overall" is used.

    Returns:
        Three panels with one row a model: F_S and F_L; alignment; signed alignment. In percent.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
        ValueError: If no pair has both verdicts.

    References:
        SLAQ, arXiv 2510.11218, figure 2.
    """
    rows = tables["overall"]
    rows = rows[rows["n"] > 0]
    if rows.empty:
        raise ValueError("no pair has both verdicts, so there is nothing to draw")
    labels = [
        model if condition == "long" else f"{model} ({condition})"
        for model, condition in zip(rows["model"], rows["condition"], strict=True)
    ]
    with _drawing("the alignment figure") as figure_class:
        figure = figure_class(figsize=(9.0, 1.3 + _ROW_HEIGHT * len(rows)))
        first, second, third = figure.subplots(1, 3, sharey=True)
        _points(first, rows, "short_accuracy", colour=_SHORT, shift=-0.12, label="short, F_S")
        _points(first, rows, "long_accuracy", colour=_LONG, shift=0.12, label="long, F_L")
        first.legend(loc="best", frameon=False)
        _points(second, rows, "alignment", colour=_PLAIN)
        _points(third, rows, "signed_alignment", colour=_PLAIN)
        third.axvline(0.0, color="black", linewidth=0.6)
        for ax, title in (
            (first, "right, %"),
            (second, "alignment, %"),
            (third, "signed alignment, %"),
        ):
            ax.set_title(title)
            ax.grid(axis="x", linewidth=0.3)
        first.set_yticks(range(len(rows)), labels)
        first.set_ylim(len(rows) - 0.5, -0.5)
    return figure


def momentum_figure(
    tables: "Mapping[str, pd.DataFrame]", model: str, *, null: str = "topic-and-slot"
) -> "Figure":
    """Draw P(correct) after runs of right and of wrong slots, against the null band.

    Args:
        tables: As from `slaq_tables`; "momentum" is used.
        model: Whose curves.
        null: Which null band, "topic" or "topic-and-slot".

    Returns:
        Two panels: after runs of right slots, after runs of wrong ones.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
        ValueError: If there are no such curves.

    References:
        SLAQ, arXiv 2510.11218, figure 3.
    """
    curves = tables["momentum"]
    curves = curves[(curves["model"] == model) & (curves["null"] == null)]
    if curves.empty:
        raise ValueError(f"no momentum curve of model {model!r} with the null {null!r}")
    with _drawing("the momentum figure") as figure_class:
        figure = figure_class(figsize=(7.0, 2.8))
        axes = figure.subplots(1, 2, sharey=True)
        for ax, streak, kind in zip(axes, (1, 0), ("right", "wrong"), strict=True):
            points = curves[(curves["streak"] == streak) & (curves["n"] > 0)]
            lengths = points["length"].tolist()
            low, high = (
                100 * points[name] for name in ("null_probability_low", "null_probability_high")
            )
            ax.fill_between(lengths, low, high, color=_BAND, label="without momentum, 95 %")
            _errors(ax, lengths, points, "probability")
            ax.set_title(f"after a run of {kind} slots")
            ax.set_xlabel("length of the run")
            ax.set_xticks(lengths)
        axes[0].set_ylabel("right, %")
        axes[0].legend(loc="best", frameon=False)
    return figure


def position_figure(tables: "Mapping[str, pd.DataFrame]", models: Sequence[str]) -> "Figure":
    """Draw the accuracy of each slot, for models whose orders are balanced.

    Args:
        tables: As from `slaq_tables`; "position" is used.
        models: Whose curves, one panel each.

    Returns:
        The figure.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
        ValueError: If no model has a position curve.
    """
    table = tables.get("position")
    shown = [m for m in models if table is not None and (table["model"] == m).any()]
    if table is None or not shown:
        raise ValueError("no model has balanced orders that are judged, so there is no position")
    n_columns = min(3, len(shown))
    n_rows = -(-len(shown) // n_columns)
    with _drawing("the position figure") as figure_class:
        figure = figure_class(figsize=(3.0 * n_columns + 0.4, 2.4 * n_rows + 0.3))
        axes = figure.subplots(n_rows, n_columns, squeeze=False, sharey=True).flatten()
        for ax, model in zip(axes, shown, strict=False):
            points = table[table["model"] == model]
            _errors(ax, points["slot"].tolist(), points, "accuracy")
            ax.set_title(model)
            ax.set_xlabel("slot")
            ax.set_xticks(points["slot"].tolist())
        for ax in axes[len(shown) :]:
            ax.remove()
        axes[0].set_ylabel("right, %")
    return figure


def write_slaq_figures(
    tables: "Mapping[str, pd.DataFrame]", folder: str | os.PathLike[str]
) -> list[Path]:
    """Draw and write all figures that the tables allow.

    Args:
        tables: As from `slaq_tables`.
        folder: Where to write; made when absent. Files of the same names are replaced.

    Returns:
        The files: `alignment`, `position` and `momentum-<number>` as PNG and SVG.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
    """
    models = list(dict.fromkeys(tables["overall"]["model"]))
    written: list[Path] = []
    if (tables["overall"]["n"] > 0).any():
        written.extend(save_figure(alignment_figure(tables), folder, "alignment"))
    if "position" in tables:
        written.extend(save_figure(position_figure(tables, models), folder, "position"))
    if "momentum" in tables:
        with_curves = set(tables["momentum"]["model"])
        for number, model in enumerate(models, start=1):
            if model in with_curves:
                drawn = momentum_figure(tables, model)
                written.extend(save_figure(drawn, folder, f"momentum-{number}"))
    return written


@contextmanager
def _drawing(what: str) -> "Iterator[type[Figure]]":
    """Give the class of figures under the common style, or name the extra that is missing."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError(what, "matplotlib", "plot") from error
    with matplotlib.rc_context(FIGURE_STYLE):
        yield Figure


def _points(
    ax: "Axes",
    rows: "pd.DataFrame",
    name: str,
    *,
    colour: str,
    shift: float = 0.0,
    label: str | None = None,
) -> None:
    """Draw one rate of each row as a point with its interval."""
    centre, low, high = (100 * rows[column] for column in (name, f"{name}_low", f"{name}_high"))
    places = [place + shift for place in range(len(rows))]
    bars = [(centre - low).clip(lower=0).tolist(), (high - centre).clip(lower=0).tolist()]
    ax.errorbar(centre.tolist(), places, xerr=bars, fmt="o", ms=3.5, color=colour, label=label)


def _errors(ax: "Axes", places: Sequence[int], points: "pd.DataFrame", name: str) -> None:
    """Draw a curve with intervals."""
    centre, low, high = (100 * points[column] for column in (name, f"{name}_low", f"{name}_high"))
    bars = [(centre - low).clip(lower=0).tolist(), (high - centre).clip(lower=0).tolist()]
    ax.errorbar(list(places), centre.tolist(), yerr=bars, fmt="o-", ms=3.5, color=_PLAIN)
