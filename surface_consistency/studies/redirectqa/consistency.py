"""Consistency of redirects with titles answered correctly and with titles answered incorrectly.

These are figure 2 of RedirectQA (arXiv 2604.21882), and table 2 of the Japanese paper.
"""

from collections.abc import Iterator
from typing import Any, Final

import pandas as pd

from surface_consistency.engine.design import Report
from surface_consistency.engine.paired import page as paired
from surface_consistency.engine.paired.checks import Tables, panel
from surface_consistency.engine.paired.tables import paired_tables, scored_pairs
from surface_consistency.report.page import Block, Dot, ForestPlot, Section
from surface_consistency.report.texts import Texts
from surface_consistency.tables import sentences as say
from surface_consistency.tables.table import Table

TEXTS: Final = Texts("surface_consistency.studies.redirectqa")
"""Captions, notes and checks of the study and of its analysis."""

PLANTED: Final = "flip rates by planted exposure"
"""Title of the highlight with the contrasts of the demo."""

_GIVEN: Final = {"correct": "title correct", "incorrect": "title incorrect"}
_CELLS: Final = {"correct": ("both", "first_only"), "incorrect": ("second_only", "neither")}
_GROUPS: Final = {"all": "overall", "type": "by_type", "category": "by_category"}
_CHARTS: Final = {"by type": ["all", "type"], "by category": ["category"]}


def consistency_tables(report: Report) -> dict[str, Table]:
    """Compute the tables of any paired study, and the consistency given the label of the title.

    Args:
        report: The runs.

    Returns:
        Tables by name. "consistency" has one row per model, template, group (all pairs, type or
        category) and correctness label of the title: n and n_clusters, the numbers of pairs with
        that label and of their clusters; redirect_correct and redirect_incorrect, their numbers of
        redirects; and consistency with its interval, the proportion of redirects with the same
        label.
    """
    tables = paired_tables(report)
    scored, keys = scored_pairs(report.frame), report.design.keys()
    parts = []
    for group, name in _GROUPS.items():
        frame, columns = tables[name].frame, report.design.groupings.get(name, ())
        names = [*keys, *(report.design.shown(column) for column in columns)]
        rows = scored.explode(list(columns)) if columns else scored
        places = pd.MultiIndex.from_frame(frame[names])
        both = []
        for given, (correct, incorrect) in _CELLS.items():
            is_given = rows["first_correct"].astype(bool) == (given == "correct")
            clusters = rows[is_given].groupby([*keys, *columns])[report.cluster].nunique()
            taken = {correct: "redirect_correct", incorrect: "redirect_incorrect"}
            for end in ("", "_low", "_high"):
                taken[f"consistency_given_first_{given}{end}"] = f"consistency{end}"
            part = frame[[*keys, *taken]].rename(columns=taken).assign(given=given)
            part["n"] = part["redirect_correct"] + part["redirect_incorrect"]
            part["n_clusters"] = clusters.reindex(places).fillna(0).astype(int).to_numpy()
            both.append(part.assign(group=group, label=frame[names[-1]] if columns else "all"))
        parts.append(pd.concat(both).sort_index(kind="stable"))
    table = TEXTS.table(
        "consistency",
        pd.concat(parts, ignore_index=True),
        titles={"n_clusters": report.clusters.capitalize()},
        labels={"label": _titles(report), "given": _GIVEN},
    )
    return {"consistency": table, **tables}


def _titles(report: Report) -> dict[str, str]:
    """Name the groups."""
    labels = report.design.labels
    return {"all": "All redirects", **labels["type"], **labels["category"]}


def finding(report: Report, tables: Tables) -> tuple[list[say.Sentence], list[say.Sentence]]:
    """Report the contrast planned in the demo's training text first, if a run is of its model.

    Args:
        report: The runs.
        tables: The tables.

    Returns:
        The finding, and the summary, as of any paired study.
    """
    usual, summary = paired.paired_finding(report, tables)
    ends = ("frequent ones", "redirects absent from the training text")
    options: dict[str, Any] = {"p": "p_value_holm", "correction": "Holm", **report.words}
    planted = [
        say.difference(row, "difference", f"flip rate of {run.label}", *ends, **options)
        for run in report.runs
        for row in run.highlights.get(PLANTED, pd.DataFrame()).to_dict("records")
        if (row["a"], row["b"]) == ("absent", "frequent")
    ]
    return (planted, [*usual, *summary]) if planted else (usual, summary)


def consistency_section(report: Report, tables: Tables) -> Section | None:
    """Show the consistency given the label of the title: the main result of the paper."""
    frame = tables["consistency"].frame
    lead, rows = [], paired.panels(report, frame)[0][1]
    for row in rows[(rows["group"] == "all") & (rows["n"] > 0)].to_dict("records"):
        of = f"{row['model']} given a title answered {row['given']}ly{panel(report, tables, row)}"
        quantity = f"consistency of {of}"
        lead.append(say.rate(row, "consistency", quantity, **report.words))
    blocks: list[Block] = [*_charts(report, frame), tables["consistency"]]
    title = "Consistency given the correctness of the title"
    return paired.section("consistency", title, blocks, lead=say.paragraph(lead))


def _charts(report: Report, frame: pd.DataFrame) -> Iterator[ForestPlot]:
    """Draw the consistency by type and by category, one chart per template."""
    titles, panels = _titles(report), paired.panels(report, frame)
    is_one = len(panels) == 1
    for template, of_template in panels:
        for title, groups in _CHARTS.items():
            chosen = of_template[of_template["group"].isin(groups) & (of_template["n"] > 0)]
            rows: list[tuple[str, int, list[Dot]]] = []
            for label, of_label in chosen.groupby("label", sort=False):
                rows.append((titles.get(str(label), str(label)), 0, []))
                for given, part in of_label.groupby("given", sort=False):
                    marks = part.to_dict("records")
                    dots = [paired.dot(report, row, "consistency") for row in marks]
                    rows.append((_GIVEN[str(given)], 1, dots))
            if rows:
                yield ForestPlot(
                    name=f"consistency-{title.split()[-1]}{'' if is_one else f'-{template}'}",
                    title=f"Consistency {title}{'' if is_one else f', {template}'}",
                    axis="redirects with the same label as the title, %",
                    rows=rows, clusters=report.clusters, certain="",
                )  # fmt: skip
