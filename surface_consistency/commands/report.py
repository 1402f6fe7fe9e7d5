"""`report`: tables, figures and one page from scored runs."""

import argparse
from pathlib import Path

from surface_consistency.commands.options import Commands, add_output
from surface_consistency.commands.output import finish, finish_slaq, study_of

__all__ = ["add"]


def add(commands: Commands) -> None:
    """Describe `report`."""
    report = commands.add_parser("report", help="tables, figures and one page from scored runs")
    report.add_argument("runs", nargs="+", metavar="RUN", help="folder of a scored run")
    report.add_argument(
        "--cluster",
        choices=("fact_id", "subject_id"),
        default="fact_id",
        help="what the bootstrap of redirectqa resamples (default: %(default)s); slaq: topics",
    )
    report.add_argument("--resamples", type=int, default=10_000, help="bootstrap resamples")
    add_output(report)
    report.set_defaults(handle=_report)


def _report(arguments: argparse.Namespace) -> None:
    """Write the page."""
    out = Path(arguments.out)
    if out.suffix == ".html" or out.is_file():
        raise ValueError(f"--out names a folder, which gets report.html, not {out}")
    if study_of(arguments.runs) == "slaq":
        finish_slaq(arguments.runs, arguments, out=out, n_resamples=arguments.resamples)
        return
    finish(
        arguments.runs,
        arguments,
        out=out,
        cluster=arguments.cluster,
        n_resamples=arguments.resamples,
    )
