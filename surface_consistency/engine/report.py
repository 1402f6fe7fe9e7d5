"""Tables and the page of scored runs."""

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from surface_consistency.data.selection import pause_gc
from surface_consistency.engine.compare.verdicts import Verdicts
from surface_consistency.engine.design import VERDICTS, Design, Report
from surface_consistency.engine.paired.tables import TEXTS, table_of_runs
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.engine.study import Analysis, Study, study_of
from surface_consistency.errors import DataError, UndefinedMetricWarning, UnscoredWarning
from surface_consistency.report.html import write_page
from surface_consistency.report.page import Block, Check, Page, Prose, Section
from surface_consistency.runs.files import output_folder, staged_report, write_csv, write_text
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.loader import Run, load_runs, study_name
from surface_consistency.tables.numbers import sentence_text
from surface_consistency.tables.table import Table

_SOURCES = "SOURCES.txt"
"""Lists the runs that the tables were made from."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reported:
    """Result of `report_runs`."""

    page: Path | None
    """The page; None if `ReportSettings.page` is False."""

    tables: Mapping[str, Table]
    """The tables, as written to `tables/`."""

    runs: Sequence[Run]
    """The runs."""

    leading: Mapping[str, Table] = field(default_factory=dict)
    """The first table of each analysis, by the anchor of its section on the page."""

    finding: str
    """The finding of the page, followed by a warning if it does not describe a model."""

    notes: Sequence[str]
    """Warnings that limit the interpretation of the numbers, in sentences."""


def report_runs(
    folders: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    study: Study | Verdicts | None = None,
    settings: ReportSettings | None = None,
    analyses: Mapping[Analysis, Any] | None = None,
) -> Reported:
    """Write tables and page of scored runs.

    Args:
        folders: The run folders, each once; or the paths that analyses convert (`prepare`).
        out: Folder for `tables/` and `report.html`, which are written to a hidden folder and moved
            together; files of an earlier report that are not replaced are removed.
            `tables/SOURCES.txt` lists the runs and the SHA-256 of each file.
        study: Their study; None for the study that the manifests name.
        settings: How to compute.
        analyses: Further analyses with their settings, which add tables and sections.

    Returns:
        The page and the tables.

    Raises:
        ValueError: If no folder is given, a folder is given twice, or runs of several studies; if
            `settings.cluster` is not a cluster of the study; if an analysis is not for this study,
            or has a table with a name that already exists.
        DataError: If a run cannot be read, or a file would be replaced that no report wrote.
    """
    settings = settings or ReportSettings()
    if not settings.page:
        settings = settings.model_copy(update={"answers": 0})
    for analysis, chosen in (analyses or {}).items():
        folders = analysis.prepare(folders, Path(out), chosen)
    page, tables, runs = build_page(folders, study=study, settings=settings, analyses=analyses)
    home = output_folder(out)
    with staged_report(home) as part:
        write_tables(tables, part / "tables", runs=runs)
        if settings.page:
            write_page(page, part / "report.html")
    notes = [sentence_text(check.text) for check in page.checks if check.level == "warning"]
    return Reported(
        page=home / "report.html" if settings.page else None,
        tables=tables,
        runs=runs,
        leading=_leading(page, analyses or {}),
        finding=f"{sentence_text(page.finding.sentence)} {page.finding.warning}".strip(),
        notes=notes,
    )


def build_page(
    folders: Sequence[str | os.PathLike[str]],
    *,
    study: Study | Verdicts | None = None,
    settings: ReportSettings | None = None,
    analyses: Mapping[Analysis, Any] | None = None,
) -> tuple[Page, dict[str, Table], list[Run]]:
    """Compute tables and page of scored runs, and write nothing; see `report_runs`.

    Args:
        folders: The run folders, each once.
        study: Their study; None for the study that the manifests name.
        settings: How to compute.
        analyses: Further analyses with their settings.

    Returns:
        Page, tables by name, and runs.

    Raises:
        ValueError: As `report_runs`.
        DataError: If a run cannot be read.
    """
    settings = settings or ReportSettings()
    study = study or study_of_runs(folders)
    runs = load_runs(folders, outcome=study.records.outcome)
    cluster = cluster_of(study, settings, runs=runs)
    _check_clusters(runs, cluster)
    report = Report(runs=runs, design=study.design, settings=settings, cluster=cluster)
    with pause_gc(), warnings.catch_warnings():
        # Missing and undefined values are in the tables.
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        tables = _with_unanswered(study.report.compute(report), runs)
        tables |= {name: table for name, table in _check_tables(runs).items() if name not in tables}
        page = study.report.page(report, tables)
        page = replace(page, checks=[*_unanswered_checks(runs), *page.checks])
        for analysis, chosen in (analyses or {}).items():
            added = _with_unanswered(_analysed(analysis, chosen, study, report, tables), runs)
            page = _joined(page, analysis, report, added)
            tables |= added
    if study.report.papers is not None:
        papers, lacking = study.report.papers.papers(tables)
        papers = _with_unanswered(papers, runs)
        blocks: list[Block] = [*papers.values(), *(Prose(parts=[one]) for one in lacking)]
        shown = Section(anchor="paper", title="As in the paper", blocks=blocks, is_folded=True)
        page = replace(page, sections=[*page.sections, shown])
        tables |= papers
    return page, tables, runs


def _joined(page: Page, analysis: Analysis, report: Report, added: Mapping[str, Table]) -> Page:
    """Add the sections and checks of an analysis to a page, at the top if it has the finding."""
    sentence, sections = analysis.finding(report, added), analysis.sections(report, added)
    page = replace(page, checks=[*page.checks, *analysis.checks(report, added)])
    if not sentence:
        return replace(page, sections=[*page.sections, *sections])
    before = page.finding
    # If the analysis made the runs, their flip rate is not of interest.
    summary = before.sentence if type(analysis).prepare is Analysis.prepare else ()
    finding = replace(before, sentence=sentence, summary=summary)
    return replace(page, finding=finding, sections=[*sections, *page.sections])


def study_of_runs(folders: Sequence[str | os.PathLike[str]]) -> Study | Verdicts:
    """Find the study of runs, or the design of imported correctness labels.

    Args:
        folders: The run folders.

    Returns:
        The study; for folders of `import_verdicts`, a `Verdicts`.

    Raises:
        ValueError: As `runs.loader.study_name`; or if runs compare other conditions or groups.
        PluginError: As `find_study`.
    """
    name = study_name(folders)
    if name != VERDICTS:
        return study_of(RunFolder.open(folders[0]))
    verdicts = [Verdicts.read(RunFolder.open(one)) for one in folders]
    first = verdicts[0].design
    for folder, other in zip(folders, verdicts, strict=True):
        if (other.design.conditions, other.design.groupings) != (first.conditions, first.groupings):
            raise ValueError(
                "all runs of a report must have the same conditions and groups, but "
                f"{folders[0]} contains {_compared(first)} and {folder} contains "
                f"{_compared(other.design)}; report them separately"
            )
    return verdicts[0]


def cluster_of(
    study: Study | Verdicts, settings: ReportSettings, *, runs: Sequence[Run] = ()
) -> str:
    """Return the clustering column of intervals and tests.

    Args:
        study: The study.
        settings: How to compute.
        runs: The runs, by which the default is chosen.

    Returns:
        The column of the outcomes: the given one, or the first of the study that has no missing
        value in any run, such as the subject, else the fact.

    Raises:
        ValueError: If the study has no such cluster.
    """
    clusters, cluster = study.design.clusters, settings.cluster
    if cluster is None:
        known = (name for name in clusters if not any(_n_missing(run, name) for run in runs))
        return next(known, "item")
    if cluster not in clusters:
        remedy = ""
        if "column" in study.records.source.model_fields:
            remedy = f"; to cluster by a column of the source, run with `column` cluster={cluster}"
        raise ValueError(
            f"`cluster` must be one of {', '.join(clusters)} for {study.name}; got {cluster!r}"
            f"{remedy}"
        )
    return cluster


def _compared(design: Design) -> str:
    """Name the conditions and groups of a design."""
    groups = ", ".join("/".join(columns) for columns in design.groupings.values())
    return " and ".join(map(repr, design.conditions)) + (f" by {groups}" if groups else "")


def write_tables(
    tables: Mapping[str, Table], folder: str | os.PathLike[str], *, runs: Sequence[Run]
) -> list[Path]:
    """Write tables as CSV files that `pandas.read_csv` loads without options.

    Args:
        tables: The tables.
        folder: The folder; created if it does not exist.
        runs: The runs of the tables; their signatures are written to `SOURCES.txt`.

    Returns:
        The files written: `<name>.csv` for each table, then `SOURCES.txt`.
    """
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    written = []
    for name, table in tables.items():
        written.append(home / f"{name}.csv")
        write_csv(written[-1], table.frame)
    written.append(home / _SOURCES)
    write_text(written[-1], "".join(f"{run.label}\t{run.signature}\n" for run in runs))
    return written


def _analysed(
    analysis: Analysis,
    settings: object,
    study: Study | Verdicts,
    report: Report,
    tables: Mapping[str, Table],
) -> dict[str, Table]:
    """Compute the tables of an analysis; check its study and that its names are new."""
    if analysis.studies and study.name not in analysis.studies:
        raise ValueError(
            f"the analysis {analysis.name!r} reads runs of {', '.join(analysis.studies)}, not of "
            f"{study.name}"
        )
    added = dict(analysis.tables(report, settings))
    if clash := sorted(added.keys() & tables.keys()):
        raise ValueError(
            f"the analysis {analysis.name!r} has the table {', '.join(clash)}, which {study.name} "
            "also has; give it another name"
        )
    return added


def _leading(page: Page, analyses: Iterable[Analysis]) -> dict[str, Table]:
    """Find the first table with rows in the section of each analysis."""
    names = {analysis.name for analysis in analyses}
    leading: dict[str, Table] = {}
    for section in page.sections:
        for block in section.blocks if section.anchor in names else ():
            if isinstance(block, Table) and not block.frame.empty:
                leading.setdefault(section.anchor, block)
    return leading


def _unanswered(run: Run) -> str:
    """Return the number of prompts of a run without an answer as text; "" if it is 0."""
    scoring = run.scoring
    if scoring is None or not scoring.n_unanswered:
        return ""
    return f"{scoring.n_unanswered:,} of {scoring.n_prompts:,}"


def _with_unanswered(tables: Mapping[str, Table], runs: Sequence[Run]) -> dict[str, Table]:
    """Add the number of prompts without an answer to the captions of tables of runs."""
    counts = {run.label: count for run in runs if (count := _unanswered(run))}
    if not counts:
        return dict(tables)
    if len(runs) == 1:
        unanswered = f"{next(iter(counts.values()))} prompts unanswered"
    elif len(counts) < 4:
        unanswered = "prompts unanswered: " + ", ".join(
            f"{n} of {name}" for name, n in counts.items()
        )
    else:
        unanswered = f"prompts unanswered in {len(counts)} of {len(runs)} runs"
    return {
        name: table
        if table.model is None
        else replace(table, caption=f"{table.caption} ({unanswered})")
        for name, table in tables.items()
    }


def _unanswered_checks(runs: Sequence[Run]) -> list[Check]:
    """Make checks of the page on prompts without an answer."""
    stored = "The predictions contain none, or a blank one."
    return [
        TEXTS.check(
            "unanswered",
            label=run.label,
            count=count,
            remedy=stored
            if run.manifest.runner.get("runner") == "stored"
            else "The same command runs them again.",
        )
        for run in runs
        if (count := _unanswered(run))
    ]


def _check_clusters(runs: Sequence[Run], cluster: str) -> None:
    """Raise an error if a pair has no cluster."""
    for run in runs:
        if n_without := _n_missing(run, cluster):
            raise DataError(
                f"run {run.label!r} has {n_without} pairs without {cluster}, so they belong to no "
                "cluster; use `cluster=item`"
            )


def _n_missing(run: Run, cluster: str) -> int:
    """Count the pairs without a cluster."""
    return int(run.outcomes[cluster].isna().sum())


def _check_tables(runs: Sequence[Run]) -> dict[str, Table]:
    """Concatenate the checks of all runs."""
    return {
        name: table_of_runs(
            runs,
            name.replace("_", " ").capitalize(),
            {run.label: run.checks.get(name) for run in runs},
        )
        for name in dict.fromkeys(name for run in runs for name in run.checks)
    }
