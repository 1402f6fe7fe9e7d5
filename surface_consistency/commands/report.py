"""`report`: tables, figures and one page from scored runs."""

import argparse
import json
from pathlib import Path

from surface_consistency.commands.options import Commands, add_output
from surface_consistency.commands.output import (
    as_json,
    finish,
    finish_audit_page,
    finish_slaq,
    study_of,
)

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
    report.add_argument(
        "--fact",
        metavar="ID",
        help="audit: print the whole story of a fact, such as sports/alias/3",
    )
    report.add_argument("--style", help="audit: prompt style of the story (default: all)")
    report.add_argument("--resamples", type=int, default=10_000, help="bootstrap resamples")
    add_output(report)
    report.set_defaults(handle=_report)


def _report(arguments: argparse.Namespace) -> None:
    """Write the page."""
    out = Path(arguments.out)
    if out.suffix == ".html" or out.is_file():
        raise ValueError(f"--out names a folder, which gets report.html, not {out}")
    study = study_of(arguments.runs)
    if arguments.fact is not None and study != "audit":
        raise ValueError("--fact tells the story of a fact of an audit; these runs are of another")
    if study == "audit":
        _report_audit(arguments, out)
        return
    if study == "slaq":
        finish_slaq(arguments.runs, arguments, out=out, n_resamples=arguments.resamples)
        return
    finish(
        arguments.runs,
        arguments,
        out=out,
        cluster=arguments.cluster,
        n_resamples=arguments.resamples,
    )


def _report_audit(arguments: argparse.Namespace, out: Path) -> None:
    """Write the page of audits, or tell the story of one fact."""
    if arguments.fact is not None:
        from surface_consistency.report.audit import fact_story

        for run in arguments.runs:
            print(fact_story(run, arguments.fact, style=arguments.style).to_text())
        return
    page, tables = finish_audit_page(arguments.runs, out=out)
    if arguments.json:
        print(json.dumps(as_json(out, page, tables), ensure_ascii=False))
    else:
        print(f"report: {page}\nfigures: {out / 'figures'}")
