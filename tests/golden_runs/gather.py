"""From a run to what is pinned of it, for every study alike."""

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
    """The bundled questions."""
    return redirectqa.load_redirectqa("sample")


def scored_run(study, data, runner, out: Path, settings, *, scoring=None, shared=None, model=None):
    """Ask, judge, and return the run folder; the model has the name of its runner by default."""
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
    """Report runs of a study.

    Args:
        study: The study.
        folders: The run folders.
        more: Tables besides those of the page.
        analyses: Analyses with their settings.
        hidden: Folders whose paths are left out of the text of the page.
        answers: Answers that the page shows of each model.
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
    """Set a page as HTML, without the paths of these folders."""
    return without_paths(render_page(page), hidden)


def without_paths(page: str, folders: Iterable[Path]) -> str:
    """Write HOME for the paths of folders on a page, which cuts long words at their seams."""
    for folder in folders:
        page = re.sub("(?:<wbr>)?".join(map(re.escape, str(folder))), "HOME", page)
    return page


def gathered(runs, tables, page) -> GoldenRun:
    """Name every table by its file; `runs` have outcomes and checks, `page` is HTML."""
    outcomes = pd.concat([run.outcomes.assign(model=label) for label, run in runs.items()])
    found = {"outcomes": outcomes}
    # The checks are in files of their own.
    found |= {
        f"tables/{name}": table for name, table in tables.items() if not name.startswith("check_")
    }
    for label, run in runs.items():
        for name, table in run.checks.items():
            found[f"checks/{re.sub(r'[^A-Za-z0-9.]+', '-', label).strip('-')}/{name}"] = table
    return GoldenRun(tables=found, page=page)
