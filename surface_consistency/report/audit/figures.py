"""Figures 3 to 7 of the audit of forgetting, with the attribution beside what the paper shows."""

import math
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from surface_consistency.report._old_figures import save_figure
from surface_consistency.report.audit._bars import BarGroup, Part, bar_panels
from surface_consistency.report.audit._names import KIND_TITLES, STATE_COLOURS, group_title

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "attribution_figure",
    "audit_figures",
    "discordant_figure",
    "state_figure",
    "write_audit_figures",
]

Axis = Literal["variant", "style", "model"]
"""What stands side by side: variants, prompt styles, or the runs themselves."""

_LEAKED, _MEDIATED, _ARTIFACT = "#c62828", "#2e7d32", "#ef6c00"
_KIND_COLOURS: Final = {
    "surviving_equivalent": "#6a3d9a",
    "same_object": "#1f78b4",
    "echo": "#b8860b",
    "same_subject": "#7fb3d5",
    "unrelated": "#9e9e9e",
    "no_candidate": "#424242",
}
_SCORES: Final = {"exact_match": "exact match", "f1": "token F1"}
_SMALL_P: Final = 0.001


def attribution_figure(tables: "Mapping[str, pd.DataFrame]", *, by: Axis = "variant") -> "Figure":
    """Draw what is left after deletion: L and R, A, and where the right answers came from.

    Args:
        tables: As from `audit_run_tables`, or only "by_variant" (or "by_style", "overall") with
            columns variant, leakage and retrieval_mediated, and artifact_rate where traces are.
        by: What stands side by side.

    Returns:
        One panel a model (a single one for `by="model"`). Left bar: L below R, as in the paper;
        middle: A with its interval; right, where answers are attributed: p(DEL-ON) with its
        interval, split by where the answers came from. In percent of the facts.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
        ValueError: If the tables hold no such rates.

    References:
        arXiv 2607.00605, figures 3 (by variant) and 4 (by prompt style).
    """
    rates = _table(tables, by, "L and R need the states DEL-ON and DEL-OFF")
    kinds = tables.get(_named("attribution", by))
    groups = []
    for row in rates.to_dict("records"):
        bars: list[tuple[Part, ...]] = [
            (
                Part(label="L, leakage", height=row["leakage"], colour=_LEAKED),
                Part(
                    label="R, retrieval-mediated",
                    height=row["retrieval_mediated"],
                    colour=_MEDIATED,
                ),
            )
        ]
        bounds = None
        if not math.isnan(row.get("artifact_rate", math.nan)):
            artifact = Part(
                label="A, artifact",
                height=row["artifact_rate"],
                colour=_ARTIFACT,
                low=row.get("artifact_rate_low"),
                high=row.get("artifact_rate_high"),
            )
            bars.append((artifact,))
        if parts := _kind_parts(kinds, row, by):
            bounds = (row["del_on_accuracy_low"], row["del_on_accuracy_high"])
            bars.append(parts)
        groups.append(
            BarGroup(panel=_panel(row, by), label=_label(row, by), bars=tuple(bars), bounds=bounds)
        )
    return bar_panels(groups, what="the attribution figure", ylabel="facts right after deletion, %")


def state_figure(
    tables: "Mapping[str, pd.DataFrame]",
    *,
    by: Axis = "variant",
    score: Literal["exact_match", "f1"] = "exact_match",
) -> "Figure":
    """Draw a score in the three states.

    Args:
        tables: As from `audit_run_tables`; "states_by_variant" (or "states_by_style", "states")
            is used: columns state, the score, and its bounds where known.
        by: What stands side by side.
        score: Exact match or token F1.

    Returns:
        One panel a model; one bar a state, with intervals. In percent.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
        ValueError: If the tables hold no such scores.

    References:
        arXiv 2607.00605, figures 5 (token F1 by prompt style) and 6 (exact match by variant).
    """
    name = _named("states", by)
    table = tables.get(name)
    if table is None or score not in table:
        raise ValueError(f"the tables hold no {_SCORES[score]} by {by} ({name})")
    groups: dict[tuple[str, str], list[tuple[Part, ...]]] = {}
    for row in table.to_dict("records"):
        part = Part(
            label=row["state"],
            height=row[score],
            colour=STATE_COLOURS[row["state"]],
            low=row.get(f"{score}_low"),
            high=row.get(f"{score}_high"),
        )
        groups.setdefault((_panel(row, by), _label(row, by)), []).append((part,))
    return bar_panels(
        [
            BarGroup(panel=panel, label=label, bars=tuple(bars))
            for (panel, label), bars in groups.items()
        ],
        what="the figure of states",
        ylabel=f"{_SCORES[score]}, %",
    )


def discordant_figure(tables: "Mapping[str, pd.DataFrame]", *, by: Axis = "variant") -> "Figure":
    """Draw the discordant pairs b and c on a log scale, with the p-values of McNemar's test.

    Args:
        tables: As from `audit_run_tables`; "by_variant" (or "by_style", "overall") is used: columns
            first_only, second_only, mcnemar_p_value, mcnemar_method, and clustered_mcnemar_p_value
            where facts are known.
        by: What stands side by side.

    Returns:
        One panel a model. The numbers above the bars are the counts; above each group stands p of
        the recommended test (exact up to 25 discordant pairs, else chi-square with continuity
        correction) and, below it, p of the test that takes facts for clusters.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
        ValueError: If the tables hold no such counts.

    References:
        arXiv 2607.00605, figure 7, appendix D.1.
    """
    rates = _table(tables, by, "b and c need the states DEL-ON and DEL-OFF")
    groups = []
    for row in rates.to_dict("records"):
        notes = [f"{row['mcnemar_method']} p {_p(row['mcnemar_p_value'])}"]
        if "clustered_mcnemar_p_value" in row:
            notes.append(f"clustered p {_p(row['clustered_mcnemar_p_value'])}")
        groups.append(
            BarGroup(
                panel=_panel(row, by),
                label=_label(row, by),
                bars=(
                    (Part(label="b, DEL-ON only", height=row["first_only"], colour=_MEDIATED),),
                    (Part(label="c, DEL-OFF only", height=row["second_only"], colour=_LEAKED),),
                ),
                note="\n".join(notes),
            )
        )
    return bar_panels(
        groups, what="the figure of discordant pairs", ylabel="answers, log scale", log_counts=True
    )


def audit_figures(
    tables: "Mapping[str, pd.DataFrame]",
) -> "dict[str, Callable[[], Figure]]":
    """List the figures of a report by file name, each as a function that draws it.

    Args:
        tables: As from `audit_run_tables`.

    Returns:
        Figures 3 to 7 of the paper, and with several runs the attribution by run.
    """
    drawn: dict[str, Callable[[], Figure]] = {
        "attribution-by-variant": partial(attribution_figure, tables, by="variant"),
        "attribution-by-style": partial(attribution_figure, tables, by="style"),
        "f1-by-style": partial(state_figure, tables, by="style", score="f1"),
        "exact-match-by-variant": partial(state_figure, tables, by="variant"),
        "discordant-by-variant": partial(discordant_figure, tables),
    }
    overall = tables.get("overall")
    if overall is not None and len(overall) > 1:
        drawn["attribution-by-run"] = partial(attribution_figure, tables, by="model")
    return drawn


def write_audit_figures(
    tables: "Mapping[str, pd.DataFrame]", folder: str | os.PathLike[str]
) -> list[Path]:
    """Draw and write all figures that the tables allow.

    Args:
        tables: As from `audit_run_tables`.
        folder: Where to write; made when absent. Files of the same names are replaced.

    Returns:
        The files, PNG and SVG of each of `audit_figures`.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
    """
    written: list[Path] = []
    for name, draw in audit_figures(tables).items():
        try:
            figure = draw()
        except ValueError:
            # A state that was not asked leaves nothing to draw; the page says which.
            continue
        written.extend(save_figure(figure, folder, name))
    return written


def _grouping(by: Axis) -> str:
    """Name the grouping of what stands side by side."""
    return "overall" if by == "model" else f"by_{by}"


def _named(table: str, by: Axis) -> str:
    """Name a table that is grouped by what stands side by side."""
    return table if by == "model" else f"{table}_by_{by}"


def _table(tables: "Mapping[str, pd.DataFrame]", by: Axis, why: str) -> "pd.DataFrame":
    """Find the table of rates, its groups that hold facts."""
    table = tables.get(_grouping(by))
    if table is None or (found := table[table["n"] > 0]).empty:
        raise ValueError(f"the tables hold no rates by {by}: {why}")
    return found


def _panel(row: Mapping[Any, Any], by: Axis) -> str:
    """Name the panel of a row: its model, where the groups are not models."""
    return "" if by == "model" else str(row.get("model", ""))


def _label(row: Mapping[Any, Any], by: Axis) -> str:
    """Name the group of a row."""
    return group_title(by, str(row[by]))


def _kind_parts(kinds: "pd.DataFrame | None", row: Mapping[Any, Any], by: Axis) -> tuple[Part, ...]:
    """Stack the origins of the right answers of a group; nothing where none is attributed."""
    if kinds is None:
        return ()
    found = kinds[(kinds["model"] == row["model"]) & (kinds[by] == row[by])]
    if not found["count"].sum() and found["n_del_on_correct"].sum():
        return ()
    rates = dict(zip(found["attribution"], found["rate"], strict=True))
    return tuple(
        Part(label=title, height=float(rates[kind]), colour=_KIND_COLOURS[kind])
        for kind, title in KIND_TITLES.items()
        if kind in rates
    )


def _p(value: float) -> str:
    """Write a p-value."""
    if math.isnan(value):
        return "–"
    return f"< {_SMALL_P}" if value < _SMALL_P else f"= {value:.3f}"
