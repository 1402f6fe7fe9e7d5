"""`compare`: the paired table of anyone's verdicts, or of two runs."""

import json as json_
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from surface_consistency.cli.record_command import record_command
from surface_consistency.engine.compare.files import read_verdicts
from surface_consistency.engine.compare.table import (
    Comparison,
    TableSettings,
    VerdictColumns,
    comparison_text,
)
from surface_consistency.schemas.settings import record_options

_OF_RUNS = ("first", "second", "cluster")
"""Fields of `VerdictColumns` that two runs take too."""

_OF_THE_PAGE = ("test", "interval", "confidence")
"""Fields of `TableSettings` that a page has in one way alone."""


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
    default = TableSettings()
    if out is not None and any(getattr(table, n) != getattr(default, n) for n in _OF_THE_PAGE):
        raise ValueError(
            "the page of --out has the default test and 95 % intervals, so its numbers would not "
            "be those printed; leave out --out, or --test, --interval and --confidence"
        )
    compared = _read(verdicts, columns, common=common)
    tables = compared.tables(table)
    page = None if out is None else compared.write_report(out, table)
    if json:
        for row in chain.from_iterable(tables):
            print(json_.dumps(row, ensure_ascii=False, allow_nan=False))
        return
    first, second = compared.conditions
    print("\n\n".join(comparison_text(rows, first=first, second=second) for rows in tables))
    for note in compared.notes:
        print(f"note: {note}")
    if page is not None:
        print(f"\nreport: {page}")


def _read(paths: Sequence[Path], columns: VerdictColumns, *, common: bool) -> Comparison:
    """Read files of verdicts, or two runs."""
    if not paths:
        raise ValueError("give a file of verdicts, one for each condition, or two run folders")
    if any(path.is_dir() for path in paths):
        return _read_runs(paths, columns, common=common)
    if common:
        raise ValueError("--common is for the folders of two runs")
    return Comparison(
        frame=read_verdicts(paths[0] if len(paths) == 1 else paths, columns, within=None),
        conditions=columns.conditions,
        origin=", ".join(map(str, paths)),
    )


def _read_runs(folders: Sequence[Path], columns: VerdictColumns, *, common: bool) -> Comparison:
    """Read two runs, which say themselves how they are read."""
    from surface_consistency.engine.compare.runs import read_two_runs

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
    first, second = folders
    return read_two_runs(first, second, columns, common=common)


compare: Final = record_command(_compare, columns=VerdictColumns, table=TableSettings)
"""The command."""
