"""`compare`, `paired`, `consistency` and `accuracy`: the functions of these names on files."""

import inspect
import json as json_
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, get_args, get_origin

from cyclopts import Parameter
from pydantic import BaseModel, Field, create_model

from surface_consistency.analysis.settings import ComparisonSettings, RuleSettings, TableSettings
from surface_consistency.cli.output import WORSE
from surface_consistency.cli.record_command import flag_of, name_flags, record_command
from surface_consistency.results.columns import ResultColumns
from surface_consistency.results.run_folders import is_run
from surface_consistency.schemas.settings import Settings
from surface_consistency.tables.numbers import TERMINAL

if TYPE_CHECKING:
    from surface_consistency.analysis.compare import ComparedResults
    from surface_consistency.analysis.result import Result

_Results = Annotated[
    Path, Parameter(help="Result files or folders of any tool, or run folders; at least one.")
]
_Out = Annotated[Path | None, Parameter(help="Folder of the report page and its CSV tables.")]
_Json = Annotated[
    bool, Parameter(help="Print sentences and numbers as JSON.", negative=(), show_default=False)
]
_Markdown = Annotated[
    bool, Parameter(help="Print sentences and table in Markdown.", negative=(), show_default=False)
]
_Latex = Annotated[
    bool, Parameter(help="Print the table in LaTeX.", negative=(), show_default=False)
]
_Wide = Annotated[
    bool,
    Parameter(help="Print all columns; one row always has all.", negative=(), show_default=False),
]


_FLAGS: Final = {
    name: flag_of(name, field)
    for record in (ResultColumns, ComparisonSettings, TableSettings)
    for name, field in record.model_fields.items()
}
"""Flags of the fields that sentences name."""


class _Form(NamedTuple):
    """Form of the output."""

    name: str
    """"text", "json", "markdown" or "latex"."""

    wide: bool
    """Whether to print all columns."""


def _form(*, wide: bool, **forms: bool) -> _Form:
    """Return the chosen form of output."""
    chosen = [name for name, is_chosen in forms.items() if is_chosen]
    if len(chosen) > 1:
        flags = " and ".join(f"--{name}" for name in chosen)
        raise ValueError(f"{flags} are mutually exclusive; pass only one of them")
    name = chosen[0] if chosen else "text"
    if wide and name in ("markdown", "latex"):
        raise ValueError(f"--wide has no effect on --{name}, whose tables have few columns")
    return _Form(name, wide)


def _show(
    result: "Result",
    form: _Form,
    out: Path | None,
    notes: Sequence[str] = (),
    doubts: Sequence[str] = (),
    lists: Iterable[str] = (),
) -> None:
    """Write the page of a result, then print the result; in Markdown with further lists."""
    from surface_consistency.tables.markdown import markdown_text

    sentences = [*result.sentences[:1], *doubts, *result.sentences[1:]]
    sentences = [name_flags(one, _FLAGS) for one in sentences]
    result = replace(result, sentences=sentences, note=name_flags(result.note, _FLAGS))
    notes = [name_flags(note, _FLAGS) for note in notes]
    page = None if out is None else result.save(out)
    texts = filter(None, [*result.sentences, result.note, *notes])
    match form.name:
        case "json":
            print(_json(result.to_dict(all=form.wide)))
        case "markdown":
            finding, *others = map(markdown_text, texts)
            print("\n\n".join([f"**{finding}**", *others, result.to_markdown(), *lists]))
        case "latex":
            print(result.to_latex())
        case _:
            lines = [textwrap.fill(one, TERMINAL, break_on_hyphens=False) for one in texts]
            print("\n".join([*lines, "", replace(result, table_note="").to_text(all=form.wide)]))
            if page is not None:
                print(f"\nreport: {page}")


def _json(values: Mapping[str, object]) -> str:
    """Write values as JSON on one line."""
    return json_.dumps(values, ensure_ascii=False, allow_nan=False)


def _options_of(function: Callable[..., object]) -> type[BaseModel]:
    """Make a record of the keyword arguments of a function, without those of result columns."""
    text = (inspect.getdoc(function) or "").partition("Args:\n")[2].partition("\n\n")[0]
    helps = {
        name: " ".join(described.split())
        for name, described in re.findall(r"(?ms)^    (\w+): (.*?)(?=^    \w|\Z)", text)
    }
    fields: dict[str, Any] = {
        name: (_of_option(item.annotation), Field(item.default, description=helps[name]))
        for name, item in inspect.signature(function, eval_str=True).parameters.items()
        if item.kind is item.KEYWORD_ONLY and name not in ResultColumns.model_fields
    }
    return create_model("Options", __base__=Settings, __doc__="Options", **fields)


def _of_option(annotation: Any) -> Any:  # noqa: ANN401 - the type of any argument
    """Return the type of an option: several names if an argument takes one or several."""
    origins = [get_origin(one) for one in get_args(annotation)]
    return tuple[str, ...] if Sequence in origins else annotation


def make_measure(name: str) -> Callable[..., object]:
    """Make the command of a function of the library.

    Args:
        name: "accuracy", "consistency" or "paired".

    Returns:
        The command: its options are the arguments of the function.
    """
    from surface_consistency.analysis import measures
    from surface_consistency.cli.answers import read_answers

    function = getattr(measures, name)
    options_of = _options_of(function)
    if name == "paired":
        return record_command(
            _paired, columns=ResultColumns, scoring=RuleSettings, options=options_of
        )

    def measure(
        *results: _Results,
        out: _Out = None,
        json: _Json = False,
        markdown: _Markdown = False,
        latex: _Latex = False,
        wide: _Wide = False,
        columns: ResultColumns,
        scoring: RuleSettings,
        options: Settings,
    ) -> None:
        scoring.check()
        form = _form(json=json, markdown=markdown, latex=latex, wide=wide)
        given = options.model_dump(include=options.model_fields_set)
        if name == "consistency" and results and all(map(is_run, results)) and not scoring.rule:
            import pandas as pd

            from surface_consistency.analysis._columns import to_frame

            frame = pd.concat([to_frame(one, measures.OUTCOMES) for one in results])
            _show(function(frame, **given), form, out)
            return
        frame, named, notes, doubts = read_answers(
            results, columns, scoring, by=given.get("by", ())
        )
        _show(function(frame, **given, **named, score="score"), form, out, notes, doubts)

    text = (inspect.getdoc(function) or "").partition("\n\n")[0]
    return record_command(
        measure, help_text=text, columns=ResultColumns, scoring=RuleSettings, options=options_of
    )


def _paired(
    results: Annotated[Path, Parameter(help="A file with both conditions.")],
    /,
    *,
    condition: Annotated[
        str | None,
        Parameter(help="Column of the condition, if --first and --second are its values."),
    ] = None,
    separator: Annotated[
        str | None, Parameter(help='Separator of several labels in a cell of --by, such as ";".')
    ] = None,
    out: _Out = None,
    json: _Json = False,
    markdown: _Markdown = False,
    latex: _Latex = False,
    wide: _Wide = False,
    columns: ResultColumns,
    scoring: RuleSettings,
    options: Settings,
) -> None:
    """Compare two conditions of the same items, such as two names or two prompts.

    The conditions are two columns of scores, or two values of the column --condition.
    """
    from surface_consistency.analysis.labels import split_labels
    from surface_consistency.analysis.measures import paired
    from surface_consistency.cli.answers import read_pairs

    form = _form(json=json, markdown=markdown, latex=latex, wide=wide)
    given = options.model_dump(include=options.model_fields_set)
    frame, named, notes, doubts = read_pairs(results, columns, given, scoring, condition=condition)
    frame = split_labels(frame, given.get("by", ()), separator)
    _show(paired(frame, **given | named), form, out, notes, doubts)


def _compare(
    *results: _Results,
    out: _Out = None,
    json: _Json = False,
    markdown: _Markdown = False,
    latex: _Latex = False,
    wide: _Wide = False,
    columns: ResultColumns,
    models: ComparisonSettings,
    table: TableSettings,
) -> int:
    """Compare the mean scores of models on the items that all of them answered.

    Reads results of any number of models, tasks and metrics, as written by inspect_ai,
    lm-evaluation-harness, HELM, lighteval, OpenCompass, promptfoo and others, or tables in CSV,
    JSONL and Parquet. Scores keep their scale. Checks that all models have the same items, and
    detects clusters. For a single model, prints the mean. Runs of a study must have the same
    prompts, decoding and rule.
    """
    from surface_consistency.analysis.compare import compare_results
    from surface_consistency.analysis.models import result_of

    if not results:
        raise ValueError("no results are given; pass result files, folders or run folders")
    form = _form(json=json, markdown=markdown, latex=latex, wide=wide)
    has_answers = out is not None or markdown or models.rule is not None
    source = results[0] if len(results) == 1 else results
    compared = compare_results(source, columns, models, table, has_answers=has_answers)
    _show(result_of(compared), form, out, lists=_lost(compared) if markdown else ())
    if models.fail_if:
        print(f"`fail_if` {models.fail_if}, clusters: {compared.cluster_note}", file=sys.stderr)
    failures = compared.failures()
    for failure in failures:
        print(failure, file=sys.stderr)
    return WORSE if failures else 0


def _lost(compared: "ComparedResults") -> Iterator[str]:
    """List the first items of each metric that a model loses, with both answers, as Markdown."""
    import pandas as pd

    from surface_consistency.engine.compare.results_report import (
        MOST_LISTED,
        changed_items,
        listed_changes,
    )
    from surface_consistency.tables.markdown import markdown_table

    for metric in compared.metrics:
        lost = [changed[changed["change"] == "lost"] for changed in compared.changed(metric)]
        if n := sum(map(len, lost)):
            counted = changed_items(lost, compared.unit)
            table = listed_changes(pd.concat(lost).head(MOST_LISTED), f"{counted} lost")
            left = n - len(table.frame)
            more = f"\n\n{left:,} more; use --out to write all" if left else ""
            yield (
                f"<details><summary>{table.caption}</summary>\n\n{markdown_table(table)}{more}"
                "\n\n</details>"
            )


compare: Final = record_command(
    _compare, columns=ResultColumns, models=ComparisonSettings, table=TableSettings
)
"""The command."""
