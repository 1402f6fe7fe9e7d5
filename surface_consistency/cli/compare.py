"""`compare`: any number of models on the same items, two conditions of one file, or two runs."""

import json as json_
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from surface_consistency.cli.output import WORSE
from surface_consistency.cli.record_command import record_command
from surface_consistency.engine.compare.settings import ComparisonSettings, PairSettings
from surface_consistency.engine.compare.table import (
    Comparison,
    TableSettings,
    VerdictColumns,
    comparison_text,
)
from surface_consistency.models.results.columns import ResultColumns
from surface_consistency.schemas.settings import Settings, record_options

RENAMED: Final = {
    "--fact": "--item",
    "--correct": "--score",
    "--blank": "--missing",
    "--sample-filter": "--filter",
}
"""Flags of earlier versions, and what they are called now."""

_OF_PAIRS: Final = ("item", "score", "cluster")
"""Fields of `ResultColumns` that two conditions of one file take too."""

_OF_RUNS: Final = ("label", "cluster")
"""Fields of `ResultColumns` that two runs take too."""

_OF_THE_PAGE: Final = ("test", "interval", "confidence")
"""Fields of `TableSettings` that the page of two conditions or runs has in one way alone."""


def _compare(
    *results: Annotated[
        Path,
        Parameter(help="Result files or folders of any tool, or run folders; at least one."),
    ],
    common: Annotated[
        bool,
        Parameter(help="Compare the questions that both runs asked, if not the same.", negative=()),
    ] = False,
    out: Annotated[
        Path | None, Parameter(help="Folder for a page and tables besides what is printed.")
    ] = None,
    json: Annotated[
        bool, Parameter(help="Print one JSON object a metric, or a group of pairs.", negative=())
    ] = False,
    markdown: Annotated[
        bool, Parameter(help="Print Markdown, as for a pull request.", negative=())
    ] = False,
    pairs: PairSettings,
    columns: ResultColumns,
    models: ComparisonSettings,
    table: TableSettings,
) -> int:
    """Compare models on the same items: differences, ranks, and what could have been found.

    Takes results of any number of models, tasks and metrics, as inspect_ai, lm-evaluation-harness,
    HELM, lighteval, OpenCompass, promptfoo and others write them, or tables in CSV, JSONL and
    Parquet. Verdicts and scores in their own scale; items are verified and clusters found.

    With --first and --second, compare two conditions of one file: columns of verdicts, or values of
    --condition. Given the folders of two runs, compare them question by question.
    """
    if not results:
        raise ValueError("give result files or folders of the models, or two run folders")
    if json and markdown:
        raise ValueError("--json and --markdown are two forms of one output: give one of them")
    if common and (pairs.model_fields_set or models.model_fields_set or markdown):
        raise ValueError(
            "--common is for the folders of two runs; items of files are common anyway"
        )
    if pairs.model_fields_set:
        return _two(_read_pairs(results, pairs, columns, models), table, out, as_json=json)
    is_of_models = bool(models.model_fields_set) or markdown
    if len(results) == 2 and not is_of_models and all(map(_is_run, results)):
        compared = _read_runs(results, columns, common=common)
        return _two(compared, table, out, as_json=json)
    if common:
        raise ValueError(
            "--common is for the folders of two runs; items of files are common anyway"
        )
    return _many(results, columns, models, table, out, form=_form(json=json, markdown=markdown))


def _form(*, json: bool, markdown: bool) -> str:
    """Name the form of the output."""
    return "json" if json else "markdown" if markdown else "text"


def _is_run(path: Path) -> bool:
    """Tell whether a folder is that of a run."""
    return (path / "manifest.json").is_file()


def _many(
    sources: Sequence[Path],
    columns: ResultColumns,
    models: ComparisonSettings,
    table: TableSettings,
    out: Path | None,
    *,
    form: str,
) -> int:
    """Compare models."""
    from surface_consistency.engine.compare import results_text
    from surface_consistency.engine.compare.results import compare_results

    compared = compare_results(sources[0] if len(sources) == 1 else sources, columns, models, table)
    page = None
    if out is not None:
        from surface_consistency.engine.compare.results_page import write_comparison

        page = write_comparison(compared, out)
    match form:
        case "json":
            for line in results_text.comparison_json(compared):
                print(line)
        case "markdown":
            print(results_text.comparison_markdown(compared))
        case _:
            print(results_text.comparison_text(compared))
            if page is not None:
                print(f"\nreport: {page}")
    failures = compared.failures()
    for failure in failures:
        print(failure, file=sys.stderr)
    return WORSE if failures else 0


def _two(compared: Comparison, table: TableSettings, out: Path | None, *, as_json: bool) -> int:
    """Print the paired table of two conditions or runs, and write their page."""
    default = TableSettings()
    if out is not None and any(getattr(table, n) != getattr(default, n) for n in _OF_THE_PAGE):
        raise ValueError(
            "the page of --out has the default test and 95 % intervals, so its numbers would not "
            "be those printed; leave out --out, or --test, --interval and --confidence"
        )
    tables = compared.tables(table)
    page = None if out is None else compared.write_report(out, table)
    if as_json:
        for row in chain.from_iterable(tables):
            print(json_.dumps(row, ensure_ascii=False, allow_nan=False))
        return 0
    first, second = compared.conditions
    print("\n\n".join(comparison_text(rows, first=first, second=second) for rows in tables))
    for note in compared.notes:
        print(f"note: {note}")
    if page is not None:
        print(f"\nreport: {page}")
    return 0


def _refuse(record: Settings, allowed: Sequence[str], what: str) -> None:
    """Refuse options that say nothing of what is compared."""
    flags = {option.path[0]: option.flags[0] for option in record_options(type(record))}
    given = [flag for name, flag in flags.items() if name in record.model_fields_set - {*allowed}]
    if given:
        raise ValueError(f"{', '.join(given)} say nothing of {what}; leave them out")


def _one_cluster(columns: ResultColumns) -> str | None:
    """Return the one column of clusters."""
    if len(columns.cluster) > 1:
        raise ValueError(f"--cluster takes one column here; got {', '.join(columns.cluster)}")
    return columns.cluster[0] if columns.cluster else None


def _read_pairs(
    paths: Sequence[Path],
    pairs: PairSettings,
    columns: ResultColumns,
    models: ComparisonSettings,
) -> Comparison:
    """Read two conditions of one file."""
    from surface_consistency.engine.compare.files import read_verdicts

    what = "two conditions of one file"
    if len(paths) != 1 or paths[0].is_dir():
        raise ValueError(
            "--first and --second are columns or conditions of one file; name models of files and "
            "runs by --label"
        )
    _refuse(columns, _OF_PAIRS, what)
    _refuse(models, ("missing",), what)
    named = VerdictColumns(
        **pairs.model_dump(),
        correct=columns.score,
        fact=columns.item or ("fact_id",),
        cluster=_one_cluster(columns),
        blank=models.missing,
    )
    try:
        frame = read_verdicts(paths[0], named, within=None)
    except ValueError as error:
        text = str(error).replace("fact=", "item=").replace("correct=", "score=")
        if text == str(error):
            raise
        raise type(error)(text) from error
    return Comparison(
        frame=frame,
        conditions=named.conditions,
        origin=str(paths[0]),
    )


def _read_runs(folders: Sequence[Path], columns: ResultColumns, *, common: bool) -> Comparison:
    """Read two runs, which say themselves how they are read."""
    from surface_consistency.engine.compare.runs import read_two_runs

    _refuse(columns, _OF_RUNS, "the folders of two runs, which say themselves how they are read")
    if len(columns.label) not in (0, 2):
        raise ValueError(f"--label names both runs; got {', '.join(columns.label)}")
    first, second = columns.label or (None, None)
    named: dict[str, Any] = {"first": first, "second": second, "cluster": _one_cluster(columns)}
    before, after = folders
    return read_two_runs(before, after, VerdictColumns(**named), common=common)


compare: Final = record_command(
    _compare,
    columns=ResultColumns,
    models=ComparisonSettings,
    table=TableSettings,
    pairs=PairSettings,
)
"""The command."""
