"""One panel of the consistency figure: two stacked bars for each model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.ticker import MaxNLocator

__all__ = ["draw_panel"]

_BAR_WIDTH = 0.38
_LONGEST_LABEL = 32
_LABEL_FITS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bar:
    """One of the two bars of a model: where it stands, what it counts, how it looks."""

    offset: float
    consistent: str
    flipped: str
    light: str
    dark: str
    label: str


_BARS: Final = (
    _Bar(
        offset=-0.2,
        consistent="both",
        flipped="first_only",
        light="#9ecae1",
        dark="#2171b5",
        label="canonical correct",
    ),
    _Bar(
        offset=0.2,
        consistent="neither",
        flipped="second_only",
        light="#fdd0a2",
        dark="#c4500b",
        label="canonical incorrect",
    ),
)


def draw_panel(ax: "Axes", title: str, rows: "pd.DataFrame", models: Sequence[str]) -> None:
    """Draw the two bars of each model."""
    by_model = rows.set_index("model").reindex(list(models))
    for bar in _BARS:
        consistent, flipped = (
            by_model[column].fillna(0).astype(int).tolist()
            for column in (bar.consistent, bar.flipped)
        )
        places = [index + bar.offset for index in range(len(models))]
        ax.bar(places, consistent, _BAR_WIDTH, color=bar.light, label=f"{bar.label}, consistent")
        ax.bar(
            places,
            flipped,
            _BAR_WIDTH,
            bottom=consistent,
            color=bar.dark,
            edgecolor="white",
            linewidth=0,
            hatch="////",
            label=f"{bar.label}, flipped",
        )
        _write_splits(ax, places, consistent, flipped)
    n_pairs = by_model["n"].fillna(0).astype(int)
    low, high = n_pairs.min(), n_pairs.max()
    pairs = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    ax.set_title(f"{title}\nn = {pairs}", fontsize=8.5)
    _name_models(ax, models)
    ax.margins(y=0.12)
    ax.yaxis.set_major_locator(_whole_numbers())
    ax.yaxis.set_major_formatter("{x:,.0f}")
    ax.spines[["top", "right"]].set_visible(False)


def _write_splits(
    ax: "Axes", places: Sequence[float], consistent: Sequence[int], flipped: Sequence[int]
) -> None:
    """Write consistent:flipped in percent above each bar that counts anything."""
    for place, same, other in zip(places, consistent, flipped, strict=True):
        total = same + other
        if total:
            share = round(100 * same / total)
            ax.annotate(
                f"{share}:{100 - share}",
                (place, total),
                xytext=(0, 2),
                textcoords="offset points",
                ha="center",
                fontsize=6.5,
            )


def _name_models(ax: "Axes", models: Sequence[str]) -> None:
    """Write the models below their bars, slanted where they would overlap."""
    shown = [_shortened(model) for model in models]
    slanted = len(models) > 1 and max(map(len, shown)) > _LABEL_FITS
    ax.set_xticks(
        range(len(models)),
        shown,
        rotation=30 if slanted else 0,
        ha="right" if slanted else "center",
        rotation_mode="anchor",
    )
    ax.set_xlim(-0.6, len(models) - 0.4)


def _shortened(label: str) -> str:
    """Cut the middle out of a long label."""
    if len(label) <= _LONGEST_LABEL:
        return label
    half = _LONGEST_LABEL // 2
    return f"{label[:half]}…{label[-half + 1 :]}"


def _whole_numbers() -> "MaxNLocator":
    """Place ticks at whole numbers of pairs."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=5, integer=True)
