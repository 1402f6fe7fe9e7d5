"""`compare`: the paired table of anyone's verdicts, or of two runs."""

import json as json_
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pandas as pd
from cyclopts import Parameter

from surface_consistency.cli.record_command import record_command
from surface_consistency.engine.compare import (
    RUN_RATES,
    TableSettings,
    VerdictColumns,
    compare_verdicts,
    comparison_text,
    split_labels,
)
from surface_consistency.engine.verdict_files import read_verdicts
from surface_consistency.schemas.settings import record_options

if TYPE_CHECKING:
    from surface_consistency.engine.two_runs import TwoRuns

__all__ = ["make_compare"]

_OF_RUNS = ("first", "second", "cluster")
"""Fields of `VerdictColumns` that two runs take too."""


def make_compare(argv: Sequence[str]) -> Callable[..., object]:
    """Make the command `compare`.

    Args:
        argv: Arguments after it; they do not matter.

    Returns:
        The command.
    """
    return record_command(_compare, columns=VerdictColumns, table=TableSettings)


def _compare(
    *verdicts: Annotated[
        Path, Parameter(help="One file, one for each condition, or the folders of two runs.")
    ],
    common: Annotated[
        bool,
        Parameter(help="Compare the questions that both runs asked, if not the same.", negative=()),
    ] = False,
    out: Annotated[
        Path | None, Parameter(help="Folder for a page and tables besides what is printed.")
    ] = None,
    json: Annotated[bool, Parameter(help="Print one JSON object a group.", negative=())] = False,
    columns: VerdictColumns,
    table: TableSettings,
) -> None:
    """Print the paired table of anyone's verdicts or of two runs, and write a page of them.

    Compare 0/1 verdicts under two conditions, from CSV, JSONL, Parquet or lm-evaluation-harness
    samples: one row a pair with a column for each condition, one row a verdict with --condition
    and --correct, or one file for each condition.

    Given the folders of two runs, compare them question by question: the same weights in 8 and in
    16 bits, before and after fine-tuning, unlearning or editing.
    """
    if not verdicts:
        raise ValueError("give a file of verdicts, one for each condition, or two run folders")
    default = TableSettings()
    if out is not None and (table.test, table.interval, table.confidence) != (
        default.test,
        default.interval,
        default.confidence,
    ):
        raise ValueError(
            "the page of --out has the default test and 95 % intervals, so its numbers would not "
            "be those printed; leave out --out, or --test, --interval and --confidence"
        )
    compared = None
    if any(path.is_dir() for path in verdicts):
        compared = _read_runs(verdicts, columns, common=common)
        columns = columns.model_copy(
            update={
                "first": columns.first or compared.names[0],
                "second": columns.second or compared.names[1],
            }
        )
    elif common:
        raise ValueError("--common is for the folders of two runs")
    first, second = _conditions(columns)
    frame = _read_files(verdicts, columns) if compared is None else compared.frame
    if compared is None:
        tables = [compare_verdicts(frame, table)]
    else:
        tables = [compare_verdicts(frame, table, rates=RUN_RATES)]
        if not table.by and frame["condition"].nunique() > 1:
            # What is lost under one condition, such as a deletion, may be meant to be lost.
            by_condition = table.model_copy(update={"by": ("condition",)})
            tables.append(compare_verdicts(frame, by_condition, rates=RUN_RATES))
    if out is not None:
        _write_page(frame, out, verdicts, (first, second), table, compared)
    if json:
        for row in chain.from_iterable(tables):
            print(json_.dumps(row, ensure_ascii=False, allow_nan=False))
        return
    print("\n\n".join(comparison_text(rows, first=first, second=second) for rows in tables))
    for note in () if compared is None else compared.notes:
        print(f"note: {note}")
    if out is not None:
        print(f"\nreport: {out / 'report.html'}")


def _conditions(columns: VerdictColumns) -> tuple[str, str]:
    """Name both conditions; files do not tell them."""
    if columns.first is None or columns.second is None:
        missing = "--first" if columns.first is None else "--second"
        raise ValueError(
            f"{missing} is required: the column of a verdict, the value of --condition, or what "
            "to call a file"
        )
    return columns.first, columns.second


def _read_files(verdicts: Sequence[Path], columns: VerdictColumns) -> pd.DataFrame:
    """Read files of verdicts."""
    given = dict(columns) | {"fact": columns.fact[0] if len(columns.fact) == 1 else columns.fact}
    return read_verdicts(verdicts[0] if len(verdicts) == 1 else verdicts, within=None, **given)


def _read_runs(folders: Sequence[Path], columns: VerdictColumns, *, common: bool) -> "TwoRuns":
    """Read two runs, which say themselves how they are read."""
    from surface_consistency.engine.two_runs import read_two_runs

    flags = {option.path[0]: option.flags[0] for option in record_options(VerdictColumns)}
    named = columns.model_fields_set.difference(_OF_RUNS)
    if given := [flag for name, flag in flags.items() if name in named]:
        raise ValueError(
            f"{', '.join(given)} say how to read files of verdicts; the folders of two runs need "
            "none of them"
        )
    if len(folders) != 2:
        raise ValueError(
            "give the folders of two runs, or files of verdicts; got "
            + ", ".join(map(str, folders))
        )
    return read_two_runs(*folders, cluster=columns.cluster, common=common)


def _write_page(
    frame: pd.DataFrame,
    out: Path,
    verdicts: Sequence[Path],
    conditions: tuple[str, str],
    table: TableSettings,
    compared: "TwoRuns | None",
) -> None:
    """Write the page of a comparison."""
    # The engine is loaded for a page alone: the table on the terminal starts faster without it.
    from surface_consistency.engine.design import ReportSettings
    from surface_consistency.engine.report import report_runs

    first, second = conditions
    if compared is None:
        from surface_consistency.engine.verdicts import import_verdicts

        split = split_labels(frame, table.by, table.separator)
        origin = ", ".join(map(str, verdicts))
        folder = import_verdicts(split, out, origin=origin, first=first, second=second, by=table.by)
    else:
        from surface_consistency.engine.two_runs import import_two_runs

        by = table.by or compared.by
        folder = import_two_runs(compared, out, first=first, second=second, by=by)
    settings = ReportSettings(resamples=table.resamples, bootstrap_seed=table.seed)
    report_runs([folder.path], out, settings=settings)
