"""The page of a comparison of models."""

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

import surface_consistency
from surface_consistency.analysis.compare import ComparedResults
from surface_consistency.analysis.labels import label_list
from surface_consistency.analysis.scoring import ITEM
from surface_consistency.engine.compare.results_report import (
    MOST_LISTED,
    TEXTS,
    ComparisonReport,
    cell_names,
    changed_items,
    first_rows,
    listed_changes,
)
from surface_consistency.engine.design import bibtex
from surface_consistency.engine.paired.checks import warning_of
from surface_consistency.errors import DataError
from surface_consistency.report.html import write_page
from surface_consistency.report.page import Answer, Answers, Finding, Page, Provenance, Section
from surface_consistency.runs.command import COMMAND
from surface_consistency.runs.files import output_folder, staged_report, write_csv
from surface_consistency.runs.folder import RunFolder
from surface_consistency.tables import sentences as say
from surface_consistency.tables.numbers import Value, value_text

_MOST_ROWS: Final = 500
_MOST_ANSWERS: Final = 500


def write_comparison(compared: ComparedResults, out: str | os.PathLike[str]) -> Path:
    """Write the page of a comparison and its tables atomically.

    Args:
        compared: The comparison.
        out: Folder of `report.html` and `tables/`; created if it does not exist.

    Returns:
        The page.

    Raises:
        DataError: If the folder contains a run, a file would be replaced that no report wrote,
            or a file cannot be written.
    """
    home = output_folder(out)
    folder = RunFolder(home)
    if folder.targets.exists() or folder.prompts.exists():
        raise DataError(
            f"{home} contains a run, next to which no page is written; choose another `out`"
        )
    page, tables = comparison_page(compared)
    with staged_report(home) as part:
        for name, frame in tables.items():
            write_csv(part / "tables" / f"{name}.csv", frame)
        write_page(page, part / "report.html")
    return home / "report.html"


def comparison_page(compared: ComparedResults) -> tuple[Page, dict[str, pd.DataFrame]]:
    """Make the page of a comparison; its finding is of the first metric.

    Args:
        compared: The comparison.

    Returns:
        The page, and the frames of its tables by name: "differences", "models", "by_<column>" and
        "changed", each with a column `metric`.
    """
    reports = [ComparisonReport(compared, metric) for metric in compared.metrics]
    frames: dict[str, list[pd.DataFrame]] = {}
    changed: dict[str, list[pd.DataFrame]] = {}
    for report in reports:
        changed[report.metric] = list(compared.changed(report.metric))
        for name, table in report.tables().items():
            frames.setdefault(name, []).append(table.frame.assign(metric=report.metric))
        for one in changed[report.metric]:
            frames.setdefault("changed", []).append(one.assign(metric=report.metric))
    first = reports[0]
    answers = _answers(compared, first)
    sections = _sections(reports, changed[first.metric], answers)
    page = Page(
        title=f"Compare: {', '.join(compared.models[:4])}",
        study="Compare",
        question=f"One model, scored by {first.what}"
        if first.is_of_one
        else f"{len(compared.models)} models on the same items, scored by {first.what}",
        models=compared.models,
        finding=Finding(
            sentence=first.finding(),
            definition=_definition(first),
            summary=say.paragraph(first.summary()),
            facts=_facts(compared, first),
            warning="" if compared.runs is None else warning_of(list(compared.runs.runs.values())),
        ),
        sections=sections,
        checks=first.checks(),
        provenance=_provenance(compared),
        method=_method(compared, first),
        citation=_citation(compared),
    )
    return page, {name: pd.concat(parts, ignore_index=True) for name, parts in frames.items()}


def _definition(report: ComparisonReport) -> str:
    """Define the item, the difference and the flip in one line."""
    names = ["definition_of_one"] if report.is_of_one else ["definition"]
    names += ["definition_of_flips"] * report.has_flips
    return " ".join(text for name in names for text in TEXTS.paragraphs(name, what=report.what))


def _citation(compared: ComparedResults) -> str:
    """Return the citations of the study of runs and of the statistical methods."""
    study = "" if compared.runs is None else compared.runs.study.design.citation
    return "\n".join(filter(None, (study, bibtex("surface_consistency.engine.compare"))))


def _method(compared: ComparedResults, report: ComparisonReport) -> list[str]:
    """Return the method in paragraphs."""
    level = 100 * compared.table.confidence
    return TEXTS.paragraphs(
        "method_of_one" if report.is_of_one else "method",
        tasks=f", averaged over {report.n_tasks} tasks with equal weights"
        if report.n_tasks > 1
        else "",
        level=f"{level:g}",
        alpha=f"{(100 - level) / 2:g}",
        clusters=compared.cluster_note,
    )


def _facts(compared: ComparedResults, report: ComparisonReport) -> list[tuple[str, str]]:
    """Return the facts below the finding."""
    result, margin = report.result, compared.settings.margin
    common = "of" if report.is_of_one else "common of"
    facts = {
        "baseline": compared.settings.baseline or "",
        compared.unit: f"{result.n_items:,} {common} {result.n_items_of_any:,}",
        "clusters": f"{report.n_clusters:,} ({compared.cluster_note})",
        "margin": ""
        if margin is None
        else value_text(Value(value=margin, kind=report.kind, signed=False)),
        "metric": report.what,
        "files": ", ".join(compared.tools),
    }
    return [(name, value) for name, value in facts.items() if value]


def _sections(
    reports: Sequence[ComparisonReport], changed: Sequence[pd.DataFrame], answers: Answers | None
) -> list[Section]:
    """Return the sections of the page in order."""
    first = reports[0]
    sections = []
    square = first.square()
    if square is not None:
        sections.append(
            Section(anchor="squares", title="The same items, both models", blocks=[square])
        )
    lead = "Paired differences on the items for which all models have a score."
    sections.append(
        Section(
            anchor="means" if first.is_of_one else "differences",
            title="Means" if first.is_of_one else "Differences",
            lead=["Mean scores with their intervals." if first.is_of_one else lead],
            blocks=[report.forest() for report in reports],
        )
    )
    if len(first.compared.models) > 2:
        lead = "Dot: rank of the means. Line: the ranks that the data allow for all models jointly."
        ranks = [report.ranks() for report in reports]
        sections.append(Section(anchor="ranks", title="Ranks", lead=[lead], blocks=ranks))
    tables = [
        first_rows(table, _MOST_ROWS) for report in reports for table in report.tables().values()
    ]
    sections.append(Section(anchor="numbers", title="Numbers", blocks=tables))
    if answers is not None:
        sections.append(Section(anchor="answers", title="Answers", blocks=[answers]))
    elif any(map(len, changed)):
        sections.append(_changes(changed, first.compared.unit))
    return sections


def _changes(changed: Sequence[pd.DataFrame], unit: str) -> Section:
    """List the largest losses, if there is no browser of answers."""
    blocks = [
        listed_changes(
            one.head(MOST_LISTED), f"{one['model'].iat[0]} against {one['reference'].iat[0]}"
        )
        for one in changed
        if len(one)
    ]
    counted = changed_items(changed, unit)
    lead = f"The largest losses; tables/changed.csv lists all {counted} that score differently."
    record = say.count(sum(map(len, changed)), None, "pairs of scores that differ")
    return Section(anchor="changed", title="Changed items", lead=[record, lead], blocks=blocks)


def _answers(compared: ComparedResults, report: ComparisonReport) -> Answers | None:
    """Collect items with both answers; None without texts, and for graded scores or all pairs."""
    rows = compared.rows[compared.rows["metric"] == report.metric]
    has_one_reference = report.differences["reference"].nunique() == 1
    if not (report.is_of_right and has_one_reference) or rows["prediction"].isna().all():
        return None
    reference = str(report.differences["reference"].iat[0])
    varying = [name for name in ("task", "form") if rows[name].nunique() > 1]
    filters = [*dict.fromkeys([*varying, *compared.by])]
    names = [name for name in compared.models if name != reference]
    pairs = {name: compared.paired(report.metric, name, reference) for name in names}
    model = names[0] if len(names) == 1 else "the model"
    return Answers(
        answers=[one for both in pairs.values() for one in _answers_of(compared, both, filters)],
        n_pairs={compared.models.index(name): len(both) for name, both in pairs.items()},
        conditions=(reference, model),
        cells=cell_names(reference, model),
        filters=filters,
    )


_CELL_OF: Final[Mapping[tuple[float, float], str]] = {
    (1, 1): "both", (1, 0): "first_only", (0, 1): "second_only", (0, 0): "neither",
}  # fmt: skip


def _answers_of(
    compared: ComparedResults, both: pd.DataFrame, filters: Sequence[str]
) -> Iterator[Answer]:
    """Yield items of one model, flips first, the rest in random order."""
    both = both.sample(frac=1.0, random_state=0)
    is_same = (both["score"] == both["score_of_reference"]).to_numpy()
    both = both.iloc[np.argsort(is_same, kind="stable")]
    for row in islice(both.to_dict("records"), _MOST_ANSWERS):
        texts = [
            None if pd.isna(row[key]) else str(row[key])
            for key in ("prediction_of_reference", "prediction")
        ]
        yield Answer(
            model=compared.models.index(str(row["model"])),
            pair="-".join(filter(None, (str(row[key]) for key in ITEM))),
            cell=_CELL_OF[row["score_of_reference"], row["score"]],  # type: ignore[arg-type]
            question=str(row["item"] if pd.isna(row["question"]) else row["question"]),
            surfaces=("", str(row["model"]) if len(compared.models) > 2 else ""),
            answers=(texts[0], texts[1]),
            accepted=row["references"],
            labels={name: label_list(row[name]) for name in filters},
        )


def _provenance(compared: ComparedResults) -> list[Provenance]:
    """Describe the files of each model, and the settings of runs."""
    files = compared.rows.groupby("model", sort=False, observed=True)["file"].unique()
    runs = {} if compared.runs is None else compared.runs.runs
    command = COMMAND.get() or "compare_results(...)"
    parts = []
    for name in compared.models:
        settings = {"files": ", ".join(Path(str(file)).name for file in files[name])}
        signature = f"surface-consistency {surface_consistency.__version__}, compare"
        if name in runs:
            run = runs[name]
            judged_by = compared.settings.rule or run.judged_by
            made = {"scored by": judged_by, **run.varying, **run.manifest.runner}
            settings |= {key: str(value) for key, value in made.items()}
            signature = f"{run.manifest.signature}|judged_by:{judged_by}"
        parts.append(
            Provenance(label=name, settings=settings, command=command, signature=signature)
        )
    return parts
