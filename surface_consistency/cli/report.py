"""`report` and `analyse`: tables, figures and one page from scored runs."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from surface_consistency.cli.options import RUNS, Json, run_folders
from surface_consistency.cli.output import finish
from surface_consistency.cli.record_command import record_command
from surface_consistency.engine.design import ReportSettings
from surface_consistency.engine.report import report_runs, study_of_runs
from surface_consistency.engine.study import find_analysis
from surface_consistency.schemas.settings import Settings

__all__ = ["make_analyse", "make_report"]

_Out = Annotated[Path | None, Parameter(help="Folder of the page.")]


def _report(
    *runs: Annotated[Path, Parameter(help=RUNS)],
    out: _Out = None,
    fact: Annotated[
        str | None, Parameter(help="Print the whole trace of a fact instead, such as its id.")
    ] = None,
    json: Json = False,
    reporting: ReportSettings,
) -> None:
    """Write tables, figures and one page from scored runs."""
    folders = run_folders(runs)
    if fact is None and folders:
        home = _home(out)
        finish(report_runs(folders, home, settings=reporting), home, as_json=json)
        return
    study = study_of_runs(folders)
    for run in folders:
        print(study.trace(run, fact or ""))


def make_report(argv: Sequence[str]) -> Callable[..., object]:
    """Make the command `report`.

    Args:
        argv: Arguments after it; they do not matter.

    Returns:
        The command.
    """
    return record_command(_report, reporting=ReportSettings)


def make_analyse(name: str) -> Callable[..., object]:
    """Make the command of an analysis.

    Args:
        name: The analysis, as for `find_analysis`.

    Returns:
        The command: its options are the fields of the analysis's settings.
    """
    analysis = find_analysis(name)

    def analyse(
        *runs: Annotated[Path, Parameter(help=RUNS)],
        out: _Out = None,
        json: Json = False,
        settings: Settings,
        reporting: ReportSettings,
    ) -> None:
        folders = run_folders(runs)
        home = _home(out)
        reported = report_runs(folders, home, settings=reporting, analyses={analysis: settings})
        finish(reported, home, as_json=json)

    return record_command(
        analyse,
        help_text=(type(analysis).__doc__ or analysis.title).strip().splitlines()[0],
        settings=analysis.settings,
        reporting=ReportSettings,
    )


def _home(out: Path | None) -> Path:
    """Refuse a page without a folder."""
    if out is None:
        raise ValueError("--out is required: the folder that gets report.html")
    if out.suffix == ".html" or out.is_file():
        raise ValueError(f"--out names a folder, which gets report.html, not {out}")
    return out
