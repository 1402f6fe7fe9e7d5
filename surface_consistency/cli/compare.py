"""`compare`: any number of models on the same items, two conditions of one file, or two runs."""

import json as json_
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from surface_consistency.analysis.settings import ComparisonSettings, PairSettings, TableSettings
from surface_consistency.cli.output import WORSE
from surface_consistency.cli.record_command import flag_of, record_command
from surface_consistency.results.columns import ResultColumns
from surface_consistency.schemas.settings import Settings

_OF_PAIRS: Final = ("item", "score", "cluster", "names")
"""Fields of `ResultColumns` that two conditions of one file take too."""

_OF_THE_PAGE: Final = ("test", "interval", "confidence")
"""Fields of `TableSettings` that the page of two conditions has in one way alone."""


def _compare(
    *results: Annotated[
        Path, Parameter(help="Result files or folders of any tool, or run folders; at least one.")
    ],
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
    --condition. Runs of a study must have the same prompts, decoding and rule.
    """
    if not results:
        raise ValueError("give result files or folders of the models, or run folders")
    if json and markdown:
        raise ValueError("--json and --markdown are two forms of one output: give one of them")
    if pairs.model_fields_set:
        if len(results) != 1 or results[0].is_dir():
            raise ValueError(
                "--first and --second are columns or conditions of one file; name models of files "
                "and runs by --names"
            )
        if markdown:
            raise ValueError("--markdown says nothing of two conditions of one file; leave it out")
        return _two(results[0], pairs, columns, models, table, out, as_json=json)
    form = "json" if json else "markdown" if markdown else "text"
    return _many(results, columns, models, table, out, form=form)


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
    from surface_consistency.analysis.compare import compare_results
    from surface_consistency.engine.compare import results_text

    shows_answers = out is not None or form == "markdown" or models.rule is not None
    source = sources[0] if len(sources) == 1 else sources
    compared = compare_results(source, columns, models, table, has_answers=shows_answers)
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


def _two(
    path: Path,
    pairs: PairSettings,
    columns: ResultColumns,
    models: ComparisonSettings,
    table: TableSettings,
    out: Path | None,
    *,
    as_json: bool,
) -> int:
    """Print the paired table of two conditions of one file, and write their page."""
    from surface_consistency.analysis.paired import compare_verdicts, verdicts_table
    from surface_consistency.analysis.verdicts import read_verdicts
    from surface_consistency.tables.numbers import json_value, table_text

    what = "two conditions of one file"
    _refuse(columns, _OF_PAIRS, what)
    _refuse(models, ("missing",), what)
    default = TableSettings()
    if out is not None and any(getattr(table, n) != getattr(default, n) for n in _OF_THE_PAGE):
        raise ValueError(
            "the page of --out has the default test and 95 % intervals, so its numbers would not "
            "be those printed; leave out --out, or --test, --interval and --confidence"
        )
    frame = read_verdicts(path, pairs, columns, missing=models.missing, within=None)
    rows = compare_verdicts(frame, table)
    page = None
    if out is not None:
        from surface_consistency.engine.report import report_verdicts

        page = report_verdicts(frame, out, table, origin=str(path))
    if as_json:
        for row in rows.to_dict("records"):
            values = {key: json_value(value) for key, value in row.items()}
            print(json_.dumps(values, ensure_ascii=False, allow_nan=False))
        return 0
    first, second = frame[["first_condition", "second_condition"]].iloc[0]
    print(table_text(verdicts_table(rows, table.by, first=first, second=second)))
    if page is not None:
        print(f"\nreport: {page}")
    return 0


def _refuse(record: Settings, allowed: Sequence[str], what: str) -> None:
    """Refuse options that say nothing of what is compared."""
    foreign = record.model_fields_set - {*allowed}
    fields = type(record).model_fields
    given = [flag_of(name, fields[name]) for name in fields if name in foreign]
    if given:
        raise ValueError(f"{', '.join(given)} say nothing of {what}; leave them out")


compare: Final = record_command(
    _compare,
    columns=ResultColumns,
    models=ComparisonSettings,
    table=TableSettings,
    pairs=PairSettings,
)
"""The command."""
