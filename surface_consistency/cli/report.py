"""The commands `report`, `analyse` and `export`, which read scored runs."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from surface_consistency.cli.options import RUNS, Json, run_folders
from surface_consistency.cli.output import finish
from surface_consistency.cli.record_command import record_command
from surface_consistency.engine.report import report_runs, study_of_runs
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.engine.study import Analysis, find_analysis
from surface_consistency.errors import SourceNotFoundError
from surface_consistency.results.inputs import files_of
from surface_consistency.schemas.settings import Settings

_Out = Annotated[
    Path | None,
    Parameter(help="Folder of the page; by default the folder of the run, if there is only one."),
]


def _report(
    *runs: Annotated[Path, Parameter(help=RUNS)],
    out: _Out = None,
    fact: Annotated[
        str | None,
        Parameter(
            help="Print the trace of one fact, given by its id, instead of writing the page."
        ),
    ] = None,
    json: Json = False,
    reporting: ReportSettings,
) -> None:
    """Write tables and a report page from scored runs."""
    folders = run_folders(runs)
    if fact is None and folders:
        home = _home(out, folders)
        finish(report_runs(folders, home, settings=reporting), home, as_json=json)
        return
    study = study_of_runs(folders)
    for run in folders:
        print(study.report.trace(run, fact or "", outcome=study.records.outcome))


def make_analyse(name: str) -> Callable[..., object]:
    """Make the command of an analysis.

    Args:
        name: The analysis, as for `find_analysis`.

    Returns:
        The command: its options are the fields of the settings of the analysis.
    """
    analysis = find_analysis(name)
    reads_files = type(analysis).prepare is not Analysis.prepare

    named = f"{RUNS} Files of results are also accepted." if reads_files else RUNS

    def analyse(
        *runs: Annotated[Path, Parameter(help=named)],
        out: _Out = None,
        json: Json = False,
        settings: Settings,
        reporting: ReportSettings,
    ) -> None:
        folders = [one for path in runs for one in _named_runs(path, reads_files)]
        home = _home(out, folders)
        reported = report_runs(folders, home, settings=reporting, analyses={analysis: settings})
        finish(reported, home, as_json=json)

    return record_command(
        analyse,
        help_text=(type(analysis).__doc__ or analysis.title).strip().splitlines()[0],
        settings=analysis.settings,
        reporting=ReportSettings,
    )


def _named_runs(path: Path, reads_files: bool) -> list[Path]:
    """Find the runs in a path; return files unchanged if the analysis reads files."""
    if reads_files and path.is_file():
        return [path]
    if reads_files and path.is_dir() and not any(path.rglob("manifest.json")):
        return files_of(path)
    if reads_files and not path.exists():
        raise SourceNotFoundError(f"file or folder {path} not found (in {Path.cwd()})")
    return run_folders([path])


def _home(out: Path | None, folders: Sequence[Path]) -> Path:
    """Choose the folder of the page: by default the folder of the only run."""
    if out is None and len(folders) == 1 and folders[0].is_dir():
        return folders[0]
    if out is None:
        raise ValueError("--out is required for several runs or files: the folder of report.html")
    if out.suffix == ".html" or out.is_file():
        raise ValueError(f"--out must be the folder of report.html; got the file {out}")
    return out


report: Final = record_command(_report, reporting=ReportSettings)
"""The command."""


def _export(
    *runs: Annotated[Path, Parameter(help=f"{RUNS} All must be of the same study.")],
    out: Annotated[Path, Parameter(help="Folder of the data set.")],
) -> None:
    """Write the outcomes of scored runs as a data set for the Hugging Face Hub: Parquet and a card.

    Nothing is uploaded.
    """
    if not runs:
        raise ValueError("no runs are given; pass the folders of scored runs")
    # Imported here so that `report` starts faster.
    from surface_consistency.engine.export import export_dataset

    print("\n".join(map(str, export_dataset(run_folders(runs), out))))


export: Final = record_command(_export)
"""The command."""
