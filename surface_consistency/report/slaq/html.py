"""One self-contained HTML page about one or several SLAQ runs."""

import hashlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from surface_consistency.errors import MissingDependencyError
from surface_consistency.report._document import document, picture
from surface_consistency.report._grid import grid, signature_lines
from surface_consistency.report._markup import Html, data_text, join, tag
from surface_consistency.report._old_figures import svg_text
from surface_consistency.report.slaq.figures import (
    alignment_figure,
    momentum_figure,
    position_figure,
)
from surface_consistency.report.slaq.run import SlaqRun
from surface_consistency.report.slaq.tables import slaq_run_tables
from surface_consistency.runs.files import write_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["write_slaq_report"]

_Show: TypeAlias = Callable[[str, str], Html]

_CELLS: Final = (
    ("Right alone, wrong in the long answer", True, False),
    ("Wrong alone, right in the long answer", False, True),
    ("Right both times", True, True),
    ("Wrong both times", False, False),
)
_HEADS: Final = ("run", "topic", "slot", "fact", "short answer", "long answer")
_READING: Final = (
    "F_S and F_L are the shares of facts that the model states rightly when asked for them alone "
    "and within the long query. Alignment is the share of facts with the same verdict both times, "
    "right or wrong; signed alignment counts two right answers as 1 and two wrong ones as -1, so a "
    "model that is mostly wrong twice is well aligned and has a negative signed alignment.",
    "Intervals are 95 %, from resamples of whole topics: the facts of a topic, and the orders of "
    "one query, are not independent. McNemar's test is the clustered one of Obuchowski.",
    "A long query is asked in several orders of its questions. Accuracy by slot is shown only "
    "where each question stands in each slot equally often; from one fixed order, or from random "
    "ones, a slot cannot be told from the questions that stand in it.",
    "A run of right answers is followed by right answers more often than not even where nothing "
    "is passed on, because topics differ in difficulty. The grey band holds what that alone would "
    'bring about; only a curve that leaves it shows momentum. The null "topic" shuffles the '
    'slots of each response, "topic-and-slot" also keeps how hard each slot is.',
    "Facts that the judge could not decide are left out and counted, never taken as wrong. Judges "
    "err: where answers were labelled by hand, its errors are counted and taken out of the scores "
    "(Rogan and Gladen's correction on both sides), with intervals that hold both the spread of "
    "topics and how little the labels tell of the judge.",
)


def write_slaq_report(
    runs: Sequence[SlaqRun],
    out: str | os.PathLike[str],
    *,
    title: str | None = None,
    examples: int = 12,
    tables: "Mapping[str, pd.DataFrame] | None" = None,
    n_resamples: int = 10_000,
) -> Path:
    """Write the report of one or several SLAQ runs.

    Args:
        runs: The runs, their labels distinct.
        out: The HTML file, or a folder, which gets the file `report.html`.
        title: Heading of the page; names the runs by default.
        examples: Facts to show of each of the four cells, at most.
        tables: What `slaq_run_tables` returned for these runs, to save computing it again.
        n_resamples: Resamples of the intervals.

    Returns:
        The file written. It needs no other file, no network and no script.

    Raises:
        ValueError: If there are no runs, or `examples` is negative.
    """
    if not runs or examples < 0:
        raise ValueError(f"runs must not be empty and examples at least 0, got {examples}")
    target = Path(out)
    if target.suffix.lower() != ".html":
        target /= "report.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    tables = tables or slaq_run_tables(runs, n_resamples=n_resamples)
    names = ", ".join(run.label for run in runs) if len(runs) <= 3 else f"{len(runs)} runs"
    write_text(
        target,
        document(
            title or f"Short against long answers: {names}", _sections(runs, tables, examples)
        ),
    )
    return target


def _sections(
    runs: Sequence[SlaqRun], tables: "Mapping[str, pd.DataFrame]", n_examples: int
) -> dict[str, tuple[str, Html]]:
    """Build the sections by anchor, each with its heading."""

    def show(name: str, caption: str) -> Html:
        table = tables.get(name)
        if table is None or table.empty:
            return tag("p", f"{caption}: nothing to show.")
        return grid(table, caption=caption, sources=_signatures(runs, set(table["model"])))

    parts = {
        "numbers": ("Main numbers", _numbers(tables, show)),
        "groups": ("By group", _groups(show)),
        "momentum": ("Momentum", _momentum(runs, tables, show)),
        "slots": ("Slots and orders", _slots(runs, tables, show)),
    }
    if "recall" in tables:
        parts["recall"] = ("Free form", show("recall", "Facts that free texts speak of"))
    if "judge_agreement" in tables:
        agreement = show("judge_agreement", "Agreement of the judge with human labels")
        corrected = show("corrected", "Scores without the judge's errors, beside its own")
        parts["judge"] = ("The judge", join([agreement, corrected]))
    noise = show("noise_floor", "Noise floor: the same prompts asked again")
    parts["checks"] = ("Checks", join([noise, show("unjudged", "Facts without a verdict")]))
    if n_examples:
        parts["examples"] = ("Examples", _examples(runs, n_examples))
    parts["reading"] = ("How to read this page", join(tag("p", text) for text in _READING))
    return parts


def _numbers(tables: "Mapping[str, pd.DataFrame]", show: _Show) -> Html:
    """Show the scores of all facts."""
    figure = _figure(
        partial(alignment_figure, tables),
        "Accuracies, alignment and signed alignment by model",
        "Figure 2 of the paper. Bars are 95 % intervals over topics.",
    )
    return join([figure, show("overall", "All facts")])


def _groups(show: _Show) -> Html:
    """Show the scores of groups of facts."""
    return join(
        [
            show("by_popularity", "By popularity of the topic"),
            show("by_entity", "By whether the answer is a named entity"),
            show("by_category", "By category"),
        ]
    )


def _momentum(runs: Sequence[SlaqRun], tables: "Mapping[str, pd.DataFrame]", show: _Show) -> Html:
    """Show what follows runs of right and of wrong slots."""
    curves = set(tables["momentum"]["model"]) if "momentum" in tables else set()
    figures = [
        _figure(
            partial(momentum_figure, tables, run.label),
            f"Momentum of {run.label}",
            f"{run.label}: figure 3 of the paper, with the null band.",
        )
        for run in runs
        if run.label in curves
    ]
    slopes = show("momentum_slopes", "Change of accuracy with each further slot of a run")
    return join([*figures, slopes])


def _slots(runs: Sequence[SlaqRun], tables: "Mapping[str, pd.DataFrame]", show: _Show) -> Html:
    """Show what slots and orders do."""
    figure = _figure(
        partial(position_figure, tables, [run.label for run in runs]),
        "Accuracy by slot",
        "Accuracy of each slot of the long query, from balanced orders.",
    )
    changing = show("order_sensitivity", "Facts whose long verdict changes with the order")
    return join([figure, show("position", "Accuracy by slot"), changing])


def _signatures(runs: Sequence[SlaqRun], labels: Collection[object]) -> list[str]:
    """One line for each run of these labels."""
    return [f"{run.label} = {run.signature}" for run in runs if run.label in labels]


def _figure(draw: "Callable[[], Figure]", label: str, caption: str) -> Html:
    """Draw a figure, or say why there is none."""
    try:
        figure = draw()
    except MissingDependencyError as error:
        return tag("p", f"{error} Then write the report again.", class_="note")
    except ValueError as error:
        return tag("p", f"No figure: {error}.", class_="note")
    alt = f"{label}. The tables hold the numbers."
    return picture(svg_text(figure), alt=alt, label=label, caption=caption)


def _examples(runs: Sequence[SlaqRun], n_examples: int) -> Html:
    """Show facts of each of the four cells, picked by a hash of their ids."""
    parts = [_cell(runs, title, (first, second), n_examples) for title, first, second in _CELLS]
    return join([*parts, signature_lines(_signatures(runs, {run.label for run in runs}))])


def _cell(
    runs: Sequence[SlaqRun], title: str, verdicts: tuple[bool, bool], n_examples: int
) -> Html:
    """Show the examples of one cell."""
    found: list[tuple[bytes, str, Any]] = []
    for run in runs:
        pairs = run.outcomes
        wanted = (pairs["first_correct"] == verdicts[0]) & (pairs["second_correct"] == verdicts[1])
        for row in pairs[wanted.fillna(False).astype(bool)].itertuples():
            place = hashlib.blake2b(f"{run.label}\x1f{row.pair_id}".encode()).digest()
            found.append((place, run.label, row))
    if not found:
        return tag("p", f"{title}: no fact.")
    found.sort(key=lambda item: item[0])
    lines = [_line(label, row) for _, label, row in found[:n_examples]]
    heading = f"{title}: {len(lines):,} of {len(found):,}"
    head = tag(
        "thead", tag("tr", *(tag("th", name, scope="col", class_="text") for name in _HEADS))
    )
    table = tag("table", tag("caption", heading), head, tag("tbody", *lines))
    shown = tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=heading)
    return tag("details", tag("summary", heading), shown)


def _line(label: str, row: Any) -> Html:  # noqa: ANN401
    """Show one fact."""
    slot = "free form" if row.second_condition == "free" else f"{int(row.slot)} of {row.order_id}"
    values = (
        label,
        row.topic_id,
        slot,
        row.fact_id,
        row.first_prediction,
        row.second_prediction,
    )
    return tag("tr", *(tag("td", data_text(value), class_="text") for value in values))
