"""Functions that convert the runs of any study to the results of a golden run."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from surface_consistency.data import redirectqa
from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.engine.report import build_page
from surface_consistency.engine.run import run_study
from surface_consistency.engine.score import score_run
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.report.html import render_page
from tests.golden_runs.files import GoldenRun

RESAMPLES = 1_000


def load_redirectqa():
    """Return the bundled questions."""
    return redirectqa.load_redirectqa("sample")


def scored_run(study, data, runner, out: Path, settings, *, scoring=None, shared=None, model=None):
    """Run a study, score it and return the run folder; the model name defaults to the runner's."""
    folder = run_study(
        study,
        data,
        runner,
        out,
        model=model or runner.name,
        settings=settings,
        shared=shared,
        progress=False,
    )
    score_run(folder, scoring=scoring)
    return folder


def of_study(
    study,
    folders: Sequence,
    more: Mapping[str, pd.DataFrame],
    *,
    analyses: Mapping | None = None,
    hidden: Iterable[Path] = (),
    answers: int = 500,
) -> GoldenRun:
    """Report runs of a study and return the tables and the page.

    Args:
        study: The study.
        folders: The run folders.
        more: Tables in addition to those of the page.
        analyses: Analyses with their settings.
        hidden: Folders; their paths are replaced in the text of the page.
        answers: Number of answers per model on the page.
    """
    page, tables, runs = build_page(
        [folder.path for folder in folders],
        study=study,
        settings=ReportSettings(resamples=RESAMPLES, answers=answers),
        analyses=analyses,
    )
    checks = {name for run in runs for name in run.checks}
    frames = {name: table.frame for name, table in tables.items() if name not in checks}
    return gathered({run.label: run for run in runs}, frames | dict(more), rendered(page, hidden))


def rendered(page, hidden: Iterable[Path] = ()) -> str:
    """Render a page as HTML; the paths of these folders are replaced."""
    return without_paths(render_page(page), hidden)


def without_paths(page: str, folders: Iterable[Path]) -> str:
    """Replace the paths of folders by HOME; a page inserts `<wbr>` into long words."""
    for folder in folders:
        page = re.sub("(?:<wbr>)?".join(map(re.escape, str(folder))), "HOME", page)
    return page


def gathered(runs, tables, page) -> GoldenRun:
    """Return the tables by file name; `runs` have outcomes and checks, `page` is HTML."""
    outcomes = pd.concat([run.outcomes.assign(model=label) for label, run in runs.items()])
    found = {"outcomes": outcomes}
    # The checks are in separate files.
    found |= {
        f"tables/{name}": table for name, table in tables.items() if not name.startswith("check_")
    }
    for label, run in runs.items():
        for name, table in run.checks.items():
            found[f"checks/{re.sub(r'[^A-Za-z0-9.]+', '-', label).strip('-')}/{name}"] = table
    return GoldenRun(tables=found, page=page)
