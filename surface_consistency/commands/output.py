"""What subcommands print and leave behind."""

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from surface_consistency.errors import MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["as_json", "as_text", "finish", "finish_audit_page", "finish_slaq", "study_of"]

_SHOWN: Final = ("template", "n", "first_accuracy", "second_accuracy", "consistency", "flip_rate")

_SHOWN_OF_SLAQ: Final = (
    "model",
    "condition",
    "n_topics",
    "n",
    "short_accuracy",
    "long_accuracy",
    "alignment",
    "signed_alignment",
)


def finish(
    runs: Sequence[str | Path],
    arguments: argparse.Namespace,
    *,
    out: Path,
    cluster: str = "fact_id",
    n_resamples: int = 10_000,
) -> None:
    """Write tables, figures and page, and say where they are."""
    from surface_consistency.report import (
        load_runs,
        study_tables,
        write_figures,
        write_report,
        write_tables,
    )

    loaded = load_runs(runs)
    tables = study_tables(loaded, cluster=cluster, n_resamples=n_resamples)
    write_tables(tables, out / "tables", runs=loaded)
    page = write_report(
        loaded, out / "report.html", cluster=cluster, n_resamples=n_resamples, tables=tables
    )
    try:
        write_figures(tables, out / "figures")
    except MissingDependencyError as error:
        print(f"warning: {error}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(as_json(out, page, tables), ensure_ascii=False))
        return
    overall = tables["overall"]
    print(as_text(overall[[name for name in ("model", *_SHOWN) if name in overall]]))
    print(f"\nreport: {page}\ntables: {out / 'tables'}")


def finish_slaq(
    runs: Sequence[str | Path],
    arguments: argparse.Namespace,
    *,
    out: Path,
    n_resamples: int = 10_000,
) -> None:
    """Write tables, figures and page of SLAQ runs, and say where they are."""
    from surface_consistency.report import write_tables
    from surface_consistency.report.slaq import (
        load_slaq_runs,
        slaq_run_tables,
        write_slaq_figures,
        write_slaq_report,
    )

    loaded = load_slaq_runs(runs)
    tables = slaq_run_tables(loaded, n_resamples=n_resamples)
    write_tables(tables, out / "tables", runs=loaded)
    page = write_slaq_report(loaded, out / "report.html", tables=tables)
    try:
        write_slaq_figures(tables, out / "figures")
    except MissingDependencyError as error:
        print(f"warning: {error}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(as_json(out, page, tables), ensure_ascii=False))
        return
    print(as_text(tables["overall"][list(_SHOWN_OF_SLAQ)]))
    print(f"\nreport: {page}\ntables: {out / 'tables'}")


def finish_audit_page(
    runs: Sequence[str | Path], *, out: Path
) -> "tuple[Path, dict[str, pd.DataFrame]]":
    """Write the page and the figures of audits; return the page and the tables it shows."""
    from surface_consistency.report import write_tables
    from surface_consistency.report.audit import (
        audit_run_tables,
        load_audit_runs,
        write_audit_figures,
        write_audit_report,
    )

    loaded = load_audit_runs(runs)
    tables = audit_run_tables(loaded)
    if len(loaded) > 1:
        write_tables(tables, out / "tables", runs=loaded)
    page = write_audit_report(loaded, out / "report.html", tables=tables)
    try:
        write_audit_figures(tables, out / "figures")
    except MissingDependencyError as error:
        print(f"warning: {error}", file=sys.stderr)
    return page, tables


def study_of(runs: Sequence[str | Path]) -> str:
    """Name the study of run folders, which must be one."""
    from surface_consistency.studies.run_folder import RunFolder

    studies = {str(run): RunFolder.open(run).read_manifest().study for run in runs}
    if len(set(studies.values())) > 1:
        named = ", ".join(f"{run} is of {study}" for run, study in studies.items())
        raise ValueError(f"one report is of one study, but {named}; report them apart")
    return next(iter(studies.values()))


def as_text(table: "pd.DataFrame") -> str:
    """Set a table in plain text, rates with three decimals."""
    return table.to_string(index=False, float_format="{:.3f}".format)


def as_json(out: Path, page: Path, tables: "Mapping[str, pd.DataFrame]") -> dict[str, object]:
    """Gather what a machine wants to read; undefined numbers are null."""
    return {
        "out": str(out),
        "report": str(page),
        "tables": {
            name: [{key: _plain(value) for key, value in row.items()} for row in rows]
            for name, rows in (
                (name, table.to_dict(orient="records")) for name, table in tables.items()
            )
        },
    }


def _plain(value: object) -> object:
    """Turn a cell into what JSON knows."""
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
