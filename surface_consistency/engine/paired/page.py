"""The page of a paired study as lists of functions of a report and its tables.

A `PageSpec` lists the functions that compute tables, sections and checks. A study lists its own
functions, and those of this module with other arguments.
"""

import functools
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import pandas as pd

from surface_consistency.engine.design import Report
from surface_consistency.engine.paired.checks import (
    PAIRED_CHECKS,
    CheckFunction,
    Tables,
    doubts_of,
    key_facts,
    panel,
    provenance,
    rows_of,
    warning_of,
)
from surface_consistency.engine.paired.tables import (
    COUNTS,
    TEST_NAMES,
    TEXTS,
    VERDICTS,
    is_hardly_right,
    paired_tables,
    table_of_runs,
)
from surface_consistency.errors import DataError
from surface_consistency.report.page import (
    Answer,
    Answers,
    Block,
    Dot,
    Finding,
    ForestPlot,
    MosaicPlot,
    MosaicPlots,
    Page,
    Section,
)
from surface_consistency.report.texts import Texts
from surface_consistency.runs.loader import Run, load_runs
from surface_consistency.schemas import PairedOutcome
from surface_consistency.tables import sentences as say
from surface_consistency.tables.numbers import VERDICT_NAMES, Part, Value, interval_value
from surface_consistency.tables.table import Table

if TYPE_CHECKING:
    from surface_consistency.engine.study import Scored

_CELLS: Final = (*COUNTS, "missing")
_FLIPS_FIRST: Final = ("first_only", "second_only", "both", "neither", "missing")
_NOT_RECORDED: Final = "(not recorded)"
_MOST_NOTES: Final = 4
"""Maximum number of contrasts of models below the squares."""

Row = Mapping[Any, Any]
"""A row of a table."""
Fact = tuple[str, Value, str]
"""Name, number and remark of a line below a figure."""
SectionFunction = Callable[[Report, Tables], Section | None]
"""Makes a section of a page; None if it would be empty."""
FindingFunction = Callable[[Report, Tables], tuple[list[say.Sentence], list[say.Sentence]]]
"""Makes the finding of a page and the summary below it."""


def _conditions(report: Report) -> str:
    """Name both conditions in quotation marks."""
    return " and ".join(f"“{name}”" for name in report.design.conditions)


def first_panel(report: Report, tables: Tables) -> list[dict[Any, Any]]:
    """Return the rows of "overall" of the first panel, one per model.

    Args:
        report: The runs.
        tables: The tables.

    Returns:
        The rows.
    """
    frame = tables["overall"].frame
    if report.facet is not None:
        frame = frame[frame[report.facet] == frame[report.facet].iloc[0]]
    return frame.drop_duplicates("model").to_dict("records")


def of_panel(report: Report, tables: Tables) -> str:
    """Name the panel that the finding is about in parentheses; "" if there is a single one."""
    frame = tables["overall"].frame
    return "" if frame.empty else panel(report, tables, frame.iloc[0].to_dict())


# Sentences.


def model_sentences(
    report: Report,
    tables: Tables,
    name: str,
    quantity: str,
    rows: Sequence[Row],
    *,
    table: str = "contrasts",
    unit: str = "pairs",
) -> list[say.Sentence]:
    """Compare a rate of models, for the finding of a page of several models.

    Args:
        report: The runs.
        tables: The tables.
        name: The rate: one of `metrics.PAIRED_RATES`.
        quantity: Name of the rate.
        rows: Rows of the models that are compared, of one panel.
        table: Name of the table of contrasts.
        unit: Name of the pairs, in the plural.

    Returns:
        Sentences; empty if no difference can be inferred or there is a single model.
    """
    if table not in tables or not rows:
        return []
    models, facet = [row["model"] for row in rows], report.facet
    tested = [
        row | {"n": row["n_a"]}
        for row in tables[table].frame.to_dict("records")
        if row["rate"] == name and say.direction(row, "difference") is not None
    ]
    compared = [
        row
        for row in tested
        if {row["a"], row["b"]} <= {*models} and row.get(facet) == rows[0].get(facet)
    ]
    sentence = functools.partial(
        contrast_sentence, quantity=quantity, n_tests=len(tested), unit=unit, **report.words
    )
    options: dict[str, Any] = {"p": "p_value_holm", "confidence": report.settings.confidence}
    return say.many(compared, "difference", quantity, sentence, **options) if compared else []


def contrast_sentence(row: Row, quantity: str, *, n_tests: int, **words: Any) -> say.Sentence:  # noqa: ANN401 - options
    """Report the difference of two models on the same pairs.

    Args:
        row: A row of a table of contrasts; the difference is `a` minus `b`.
        quantity: Name of the rate.
        n_tests: Number of tests over which the p-value is Holm-corrected.
        words: Options of `tables.sentences.difference`, such as those of `Report.words`.

    Returns:
        The sentence.
    """
    return say.difference(
        {**row, "n": row["n_a"]},
        "difference",
        quantity,
        str(row["b"]),
        str(row["a"]),
        p="p_value_holm",
        correction="Holm" if n_tests > 1 else "",
        **words,
    )


def paired_finding(report: Report, tables: Tables) -> tuple[list[say.Sentence], list[say.Sentence]]:
    """Report the flip rate, and for several models how they differ in it.

    Args:
        report: The runs.
        tables: The tables.

    Returns:
        The finding, and the summary: accuracies, equal answers and noise floor of each model.
    """
    of = of_panel(report, tables)
    rows = [row for row in first_panel(report, tables) if row["n"]]
    usual = [row for row in rows if not is_hardly_right(row)]
    conditions = f"between {_conditions(report)}{of}"
    leads = [
        say.rate(row, "flip_rate", f"flip rate of {row['model']} {conditions}", **report.words)
        for row in usual
    ]
    hardly = [row for row in rows if is_hardly_right(row)]
    leads += [one for row in hardly for one in hardly_correct(report, row)]
    details = [one for row in usual for one in accuracy_sentences(report, tables, row, of)]
    between = model_sentences(report, tables, "flip_rate", f"flip rate {conditions}", usual)
    return headed(between, leads, details)


def headed(
    between: list[say.Sentence], leads: list[say.Sentence], details: list[say.Sentence]
) -> tuple[list[say.Sentence], list[say.Sentence]]:
    """Choose the finding: the differences between models, or else the sentences on each model.

    Args:
        between: Sentences on how models differ.
        leads: Sentences on each model.
        details: Further sentences.

    Returns:
        The finding, and the summary with all other sentences.
    """
    leads = leads or [["There are no scored pairs."]]
    return (between, [*leads, *details]) if between else (leads, details)


def hardly_correct(report: Report, row: Row) -> list[say.Sentence]:
    """Report the accuracy, not the consistency, of a model with hardly any correct answer.

    Args:
        report: The runs.
        row: Its row of "overall".

    Returns:
        Sentences.
    """
    sides = zip(("first_accuracy", "second_accuracy"), report.design.conditions, strict=True)
    return [
        *(
            say.rate(row, name, f"accuracy of {row['model']} under “{side}”", **report.words)
            for name, side in sides
        ),
        ["With so few correct answers, consistency is not informative."],
    ]


def accuracy_sentences(
    report: Report, tables: Tables, row: Row, of: str = ""
) -> list[say.Sentence]:
    """Report the accuracy difference, equal incorrect answers and noise floor of a model.

    Args:
        report: The runs.
        tables: The tables.
        row: Its row of "overall".
        of: Panel in parentheses.

    Returns:
        Sentences; a number without an interval is not reported.
    """
    lead = say.difference(
        row,
        "accuracy_difference",
        f"accuracy of {row['model']}{of}",
        *report.design.conditions,
        "under “{}”",
        p="p_value",
        **report.words,
    )
    has_interval = say.direction(row, "accuracy_difference") is not None
    return [
        lead if has_interval else [],
        *same_sentences(report, tables, row),
        noise_sentence(report, tables, row),
    ]


def same_sentences(
    report: Report, tables: Tables, row: Row, rate: str = "same_answer"
) -> list[say.Sentence]:
    """Report the proportion of pairs with two incorrect answers that have the same answer.

    Args:
        report: The runs.
        tables: The tables.
        row: A row with model and panel.
        rate: "same_answer" for answers with the same words; "same_by_rule" for answers that are the
            same by a rule, for conditions that differ in the form of answers.

    Returns:
        One sentence; none without an interval.
    """
    quantity = (
        f"proportion of identical answers of {row['model']}"
        if rate == "same_answer"
        else f"proportion of answers of {row['model']} that are the same by the comparison rule"
    )
    quantity += " among pairs incorrect under both conditions"
    return [
        say.rate(one, rate, quantity, **report.words)
        for one in rows_of(tables, "same_answer", row, report.facet, among="both wrong")
        if say.direction(one, rate) is not None
    ]


def noise_sentence(report: Report, tables: Tables, row: Row) -> say.Sentence:
    """Report the test-retest flip rate of identical prompts of a model.

    Args:
        report: The runs.
        tables: The tables.
        row: A row with model and panel.

    Returns:
        The sentence, with one number per stratum.
    """
    rows, stratum = rows_of(tables, "noise_floor", row, report.facet), report.design.stratum
    has_strata = stratum != report.design.facet and rows and stratum in rows[0]
    label = stratum if has_strata else None
    return say.repeats(rows, of=f" of {row['model']}", label=label)


# Sections.


def squares_section(
    report: Report,
    tables: Tables,
    *,
    title: str = "The same question under both conditions",
    lead: list[Part] | None = None,
    facts: Callable[[Report, Row], list[Fact]] | None = None,
) -> Section:
    """Show the contingency table of each model.

    Args:
        report: The runs.
        tables: The tables.
        title: Heading.
        lead: Paragraph below the heading.
        facts: Makes the lines below a square; `square_facts` by default.

    Returns:
        The section.
    """
    first, second = report.design.conditions
    rows = []
    if "contrasts" in tables:
        frame = tables["contrasts"].frame
        rows = frame[frame["rate"] == "flip_rate"].to_dict("records")
        rows = [row for row in rows if say.direction(row, "difference") is not None]
    notes = [
        contrast_sentence(
            row, f"flip rate{panel(report, tables, row)}", n_tests=len(rows), **report.words
        )
        for row in rows[:_MOST_NOTES]
    ]
    squares = MosaicPlots(
        squares=[
            square(report, row, facts=(facts or square_facts)(report, row))
            for row in tables["overall"].frame.to_dict("records")
        ],
        conditions=report.design.conditions,
        cells=report.design.cells,
        note=say.paragraph(notes),
    )
    lead = lead or TEXTS.sentence("squares", first=first, second=second)
    return Section(anchor="squares", title=title, lead=lead, blocks=[squares])


def square(report: Report, row: Row, *, facts: Iterable[Fact]) -> MosaicPlot:
    """Draw the contingency table of one row.

    Args:
        report: The runs.
        row: A row of "overall".
        facts: Lines below the square; those without an interval or test are not shown.

    Returns:
        The square.
    """
    title = str(row["model"])
    filters = {"model": title}
    if report.facet is not None:
        title += f", {row[report.facet]}"
        filters[report.facet] = str(row[report.facet])
    return MosaicPlot(
        title=title,
        model=report.index[str(row["model"])],
        **{name: int(row[name]) for name in COUNTS},
        facts=inferred(facts),
        filters=filters,
    )


def square_facts(report: Report, row: Row) -> list[Fact]:
    """Return the lines below a square.

    Args:
        report: The runs.
        row: A row of "overall".

    Returns:
        Name, number and a remark, such as the test that was used.
    """
    first, second = report.design.conditions
    change = interval_value(row, "accuracy_difference", kind="difference")
    return [
        ("same label", interval_value(row, "consistency"), ""),
        (
            f"still correct, given “{first}” correct",
            interval_value(row, "consistency_given_first_correct"),
            f"{row.get('consistency_given_first_correct_n', 0):,} pairs",
        ),
        (f"“{second}” minus “{first}”", change, ""),
        ("kappa", interval_value(row, "kappa", kind="decimal"), ""),
        ("asymmetry of flips", p_value_of(row), test_of(row)),
    ]


def p_value_of(row: Row, name: str = "p_value") -> Value:
    """Return a p-value of a row as a number; NaN without one."""
    return Value(value=float(row.get(name, math.nan)), kind="p_value")


def test_of(row: Row) -> str:
    """Return the name of the test of a row."""
    return TEST_NAMES.get(str(row.get("test")), "")


def inferred(facts: Iterable[Fact]) -> list[Fact]:
    """Exclude the numbers without an interval or a test.

    Args:
        facts: Name, number and a remark, as below a figure.

    Returns:
        Those with an interval, and the p-values that are not NaN.
    """
    return [
        fact
        for fact in facts
        if (not math.isnan(fact[1].value) if fact[1].kind == "p_value" else fact[1].low is not None)
    ]


def section(
    anchor: str,
    title: str,
    blocks: Iterable[Block],
    *,
    lead: Sequence[Part] = (),
    is_folded: bool = False,
) -> Section | None:
    """Make a section.

    Args:
        anchor: Its anchor.
        title: Its heading.
        blocks: Its blocks.
        lead: Paragraph below the heading.
        is_folded: Whether it is collapsed initially.

    Returns:
        The section; None without blocks.
    """
    blocks = list(blocks)
    if not blocks:
        return None
    return Section(anchor=anchor, title=title, blocks=blocks, lead=lead, is_folded=is_folded)


def tables_section(anchor: str, title: str, names: Sequence[str]) -> SectionFunction:
    """Make a function that shows some tables in a section.

    Args:
        anchor: Its anchor.
        title: Its heading.
        names: Names of the tables; those that do not exist are skipped.

    Returns:
        The function.
    """
    return lambda report, tables: section(
        anchor, title, [tables[name] for name in names if name in tables]
    )


def highlights_section(report: Report, tables: Tables) -> Section | None:
    """Show the tables that the runs mark as highlights."""
    return section("highlights", "Highlights", highlight_blocks(report))


def highlight_blocks(report: Report) -> list[Table]:
    """Return the tables that the runs mark as highlights, one per title."""
    runs, (first, second) = report.runs, report.design.conditions
    titles = {"n": "Pairs", "consistency": "Same label", "a": "Group", "b": "Compared with"}
    titles |= {"first_accuracy": f"“{first}”", "second_accuracy": f"“{second}”"}
    tables = [
        table_of_runs(
            runs, title.capitalize(), {run.label: run.highlights.get(title) for run in runs}
        )
        for title in dict.fromkeys(title for run in runs for title in run.highlights)
    ]
    return [
        replace(one, columns=[replace(c, title=titles.get(c.key, c.title)) for c in one.columns])
        for one in tables
    ]


def flips_section(report: Report, tables: Tables) -> Section | None:
    """Show the flip rate by group and the noise floor: one chart per grouping and panel."""
    return section("flips", "Flip rate by group", _flip_charts(report, tables))


def _flip_charts(report: Report, tables: Tables) -> Iterator[ForestPlot]:
    """Yield the charts of flip rates."""
    noise = _noise_bounds(report, tables)
    for name, columns in report.design.groupings.items():
        frame = tables[name].frame
        key = report.design.shown(columns[-1])
        titles = report.design.labels.get(key, {})
        facets = panels(report, frame)
        for facet, part in facets:
            rows: list[tuple[str, int, Sequence[Dot]]] = [
                (
                    titles.get(str(group), str(group).replace("_", " ")),
                    0,
                    [_flip_dot(report, row) for row in of_group.to_dict("records")],
                )
                for group, of_group in part[part["n"] > 0].groupby(key, sort=False)
            ]
            is_one = len(facets) == 1
            if rows:
                yield ForestPlot(
                    name=f"flips-{name.removeprefix('by_')}{'' if is_one else f'-{facet}'}",
                    title=name.replace("_", " ").capitalize() + ("" if is_one else f", {facet}"),
                    axis="flip rate, %",
                    rows=rows,
                    noise=noise,
                    clusters=report.clusters,
                )


def panels(report: Report, frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Split a table by the facet of the study.

    Args:
        report: The runs.
        frame: The table.

    Returns:
        The name of each panel and its rows; the whole table under "" without a facet.
    """
    if report.facet is None:
        return [("", frame)]
    return [(str(one), part) for one, part in frame.groupby(report.facet, sort=False)]


def _flip_dot(report: Report, row: Row) -> Dot:
    """Draw the flip rate of one group of one model; filled only if its test is significant."""
    return dot(
        report,
        row,
        "flip_rate",
        is_certain=bool(row.get("p_value_holm", math.nan) < 1.0 - report.confidence),
        is_above_noise=bool(row.get("above_noise_p_value", math.nan) < 1.0 - report.confidence),
    )


def dot(
    report: Report,
    row: Row,
    name: str,
    *,
    kind: Literal["rate", "difference", "number", "decimal"] = "rate",
    clusters: str = "n_clusters",
    is_certain: bool = False,
    is_above_noise: bool = False,
) -> Dot:
    """Draw a number of a model in a chart.

    Args:
        report: The runs.
        row: A row with model, n, the clusters and the number with its bounds.
        name: Name of the number.
        kind: How the number is formatted.
        clusters: Column of the number of clusters.
        is_certain: Whether its test is significant after correction: a filled marker.
        is_above_noise: Whether it is significantly above the noise floor.

    Returns:
        The mark.
    """
    return Dot(
        model=report.index[str(row["model"])],
        value=interval_value(row, name, kind=kind),
        n=int(row["n"]),
        n_clusters=int(row[clusters]),
        is_certain=is_certain,
        is_above_noise=is_above_noise,
    )


def model_dots(rows: pd.DataFrame, name: str, index: Mapping[str, int], *, n: str) -> list[Dot]:
    """Draw a number of each model in a row of a chart.

    Args:
        rows: One row per model; those in which the number is NaN get no mark.
        name: Column of the number, with its bounds as for `interval_value`.
        index: Place of each model by its label.
        n: Column of the number of observations, which is also the number of clusters.

    Returns:
        The marks.
    """
    return [
        Dot(
            model=index[str(row["model"])],
            value=interval_value(row, name),
            n=int(row[n]),
            n_clusters=int(row[n]),
        )
        for row in rows.to_dict("records")
        if not math.isnan(row[name])
    ]


def _noise_bounds(report: Report, tables: Tables) -> dict[int, float]:
    """Return the upper bound of each model's noise floor, the largest of its strata."""
    table = tables.get("noise_floor")
    if table is None or "flip_rate_high" not in table.frame:
        return {}
    bounds = table.frame.groupby("model")["flip_rate_high"].max().dropna()
    return {report.index[str(label)]: float(bound) for label, bound in bounds.items()}


def numbers_section(
    report: Report, tables: Tables, *, more: Sequence[str] = (), first: Sequence[Block] = ()
) -> Section | None:
    """Show the tables of rates.

    Args:
        report: The runs.
        tables: The tables.
        more: Names of further tables.
        first: Blocks before the tables.

    Returns:
        The section.
    """
    groupings = report.design.groupings
    names = ("overall", "same_answer", "generalisation", *groupings, *more)
    title = "The numbers by group" if groupings else "The numbers"
    return section("numbers", title, [*first, *(tables[name] for name in names if name in tables)])


def contrasts_section(report: Report, tables: Tables) -> Section | None:
    """Show the tables of `contrast_tables`."""
    names = [
        name
        for name in tables
        if name in ("above_noise", "contrasts") or name.startswith(("contrasts_", "models_"))
    ]
    blocks = [tables[name] for name in names if name != "models_forms"]
    return section("contrasts", "Differences that were tested", blocks, is_folded=True)


def checks_section(report: Report, tables: Tables, *, shown: Sequence[str] = ()) -> Section | None:
    """Show the checks of the runs as tables.

    Args:
        report: The runs.
        tables: The tables.
        shown: Names of checks that another section shows.

    Returns:
        The section.
    """
    names = dict.fromkeys(name for run in report.runs for name in run.checks)
    blocks = [tables[name] for name in names if name in tables and name not in shown]
    return section("check-tables", "Checks in numbers", blocks, is_folded=True)


AnswerFunction = Callable[[Report, Run, Row, Answer], Answer]
"""Completes the answer of a pair with data of the study."""


def answers_section(
    report: Report,
    tables: Tables,
    *,
    answer: AnswerFunction | None = None,
    title: str = "Answers",
    lead: Sequence[Part] = (),
    order: Callable[[Answer], Any] | None = None,
) -> Section | None:
    """Show pairs in the browser of answers: flips first, the rest drawn within cells.

    Args:
        report: The runs.
        tables: The tables.
        answer: Completes each pair.
        title: Heading.
        lead: Paragraph below the heading.
        order: Key by which the pairs are sorted; by cell by default.

    Returns:
        The section, with at most `ReportSettings.answers` pairs per model.
    """
    if not report.settings.answers:
        return None
    chosen: list[Answer] = []
    totals = {}
    for run in report.runs:
        totals[report.index[run.label]] = len(run.outcomes)
        cells = cells_of(run.outcomes)
        places = _sampled(run, cells, report.settings.answers)
        rows = run.outcomes.iloc[places].to_dict("records")
        for row, place in zip(rows, places, strict=True):
            one = _answer(report, run, row, cells[place])
            chosen.append(one if answer is None else answer(report, run, row, one))
    answers = Answers(
        answers=chosen if order is None else sorted(chosen, key=order),
        n_pairs=totals,
        conditions=report.design.conditions,
        cells=report.design.cells,
        filters=list(dict.fromkeys(name for one in chosen for name in one.labels)),
    )
    return section("answers", title, [answers], lead=lead)


def cells_of(outcomes: pd.DataFrame) -> list[str]:
    """Name the cell of each pair.

    Args:
        outcomes: Both correctness labels of each pair.

    Returns:
        "both", "first_only", "second_only", "neither", or "missing" without a label.
    """
    first, second = (outcomes[name].astype("boolean") for name in VERDICTS)
    codes = (2 * (~first).astype("Int8") + (~second).astype("Int8")).fillna(4)
    return [_CELLS[code] for code in codes.tolist()]


def _answer(report: Report, run: Run, row: Row, cell: str) -> Answer:
    """Show one pair, with the columns that the outcomes of the study have."""
    design = report.design
    labels = {
        design.shown(columns[-1]): _texts(report, row, columns[-1])
        for columns in design.groupings.values()
    }
    if report.facet is not None:
        labels[report.facet] = [str(row[design.facet])]
    first, second = design.conditions
    return Answer(
        model=report.index[run.label],
        pair=str(row["pair"]),
        cell=cell,  # type: ignore[arg-type]
        question=_text(row.get("question")) or str(row["item"]),
        surfaces=(
            _text(row.get("first_surface")) or first,
            _text(row.get("second_surface")) or second,
        ),
        answers=(
            _text(row.get("first_prediction", _NOT_RECORDED)),
            _text(row.get("second_prediction", _NOT_RECORDED)),
        ),
        labels=labels,
    )


def _texts(report: Report, row: Row, column: str) -> list[str]:
    """Read the labels of a cell."""
    value = row[column]
    titles = report.design.labels.get(report.design.shown(column), {})
    values = [value] if isinstance(value, str) or not isinstance(value, Iterable) else [*value]
    return [titles.get(str(item), str(item)) for item in values if not pd.isna(item)]


def _sampled(run: Run, cells: Sequence[str], limit: int) -> list[int]:
    """Choose pairs by the hash of their ids: cells in turn, flips first."""
    ids = run.outcomes["pair"].to_numpy(dtype=object)
    by_cell: dict[str, list[int]] = {name: [] for name in _FLIPS_FIRST}
    for place, cell in enumerate(cells):
        by_cell[cell].append(place)
    if len(ids) > limit:
        for places in by_cell.values():
            places.sort(key=lambda place: _hash(run.label, str(ids[place])))
        n_of = {name: min(len(places), limit // 5) for name, places in by_cell.items()}
        for name, places in by_cell.items():
            n_of[name] += min(len(places) - n_of[name], limit - sum(n_of.values()))
        by_cell = {name: places[: n_of[name]] for name, places in by_cell.items()}
    return [place for places in by_cell.values() for place in places]


def _text(value: object) -> str | None:
    """Read a cell of text."""
    return value if isinstance(value, str) else None


def _hash(label: str, pair: str) -> bytes:
    """Return a sort key that gives an arbitrary but reproducible order."""
    return hashlib.blake2b(f"{label}\x1f{pair}".encode("utf-8", "replace")).digest()


# Pages.

PAIRED_SECTIONS: Final[tuple[SectionFunction, ...]] = (
    squares_section,
    highlights_section,
    flips_section,
    numbers_section,
    contrasts_section,
    answers_section,
    checks_section,
)
"""The sections of any paired study."""


def paired_method(report: Report) -> list[str]:
    """Return the method of any paired study, in paragraphs.

    Args:
        report: The runs.

    Returns:
        Paragraphs.
    """
    first, second = report.design.conditions
    by = "" if report.clusters == "clusters" else f" (clusters: {report.clusters})"
    return TEXTS.paragraphs("method", first=first, second=second, by=by, level=report.level)


def fact_trace(folder: str | os.PathLike[str], item: str, *, outcome: type[PairedOutcome]) -> str:
    """Describe the answers to one fact in a run, for a terminal.

    Args:
        folder: The run.
        item: The fact, as in the column `item` of the outcomes.
        outcome: The record of a pair.

    Returns:
        Lines of plain text; texts of a model are quoted, with control characters escaped.

    Raises:
        DataError: If the run has no such fact.
    """
    run = load_runs([folder], outcome=outcome)[0]
    rows = run.outcomes[run.outcomes["item"] == item]
    if rows.empty:
        known = ", ".join(run.outcomes["item"].drop_duplicates().head(3))
        raise DataError(f"{folder} has no fact {item!r}; it has {known} and others")
    lines = []
    for row in rows.astype(object).where(rows.notna(), None).to_dict("records"):
        lines.append(f"{row['pair']}, by {run.label}")
        for side in ("first", "second"):
            text = json.dumps(row.get(f"{side}_prediction"), ensure_ascii=False)
            label = VERDICT_NAMES[row[f"{side}_correct"]]
            lines.append(f"  {row[f'{side}_condition']}: {text} ({label})")
    return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class PageSpec:
    """The functions that make tables, page and files of a study; by default of any paired study."""

    tables: Sequence[Callable[[Report], Mapping[str, Table]]] = (paired_tables,)
    """Compute tables by name."""

    finding: FindingFunction = paired_finding
    """Makes the finding and the summary."""

    sections: Sequence[SectionFunction] = PAIRED_SECTIONS
    """Make the sections, in the order of the page."""

    checks: Sequence[CheckFunction] = PAIRED_CHECKS
    """Make the checks."""

    facts: Callable[[Report], list[tuple[str, str]]] = key_facts
    """Returns names and values of the facts under the finding."""

    method: Callable[[Report], list[str]] = paired_method
    """Returns the method in paragraphs, ready for an appendix."""

    prepare: Callable[[Report], Report] = lambda report: report
    """Restricts runs or design for all functions but those in `tables`; no change by default."""

    run_checks: "Callable[[Scored], Mapping[str, pd.DataFrame]]" = lambda _: {}
    """Computes tables on the quality of one scored run, by name, in addition to those of the
    engine; a table with a name of `label_checks` replaces it."""

    export: "Callable[[Scored], None]" = lambda _: None
    """Writes files in other formats, such as those of a published study, to `Scored.folder`, a
    temporary folder whose content then replaces the scores of the run."""

    papers: Texts | None = None
    """Texts that describe tables in the form of the study's paper, which follow all sections; None
    for no such tables."""

    metrics: Callable[[pd.DataFrame], Mapping[str, float]] = lambda _: {}
    """Computes single numbers in addition to those of the pairs, for tools that show only numbers,
    from the pairs of one model (columns of `Plan.pairs`, first_correct and second_correct). The
    names do not depend on the labels; undefined numbers are NaN."""

    trace: Callable[..., str] = fact_trace
    """Describes one fact of a run as plain text, for a terminal."""

    def compute(self, report: Report) -> dict[str, Table]:
        """Compute all tables.

        Args:
            report: The runs.

        Returns:
            Tables by name.
        """
        return {name: one for make in self.tables for name, one in make(report).items()}

    def page(self, report: Report, tables: Tables) -> Page:
        """Make the page.

        Args:
            report: The runs.
            tables: The tables of `compute`, and the checks of the runs.

        Returns:
            The page; "warning" first among the checks.
        """
        report = self.prepare(report)
        design, labels = report.design, report.labels
        finding, summary = self.finding(report, tables)
        item = design.clusters.get("item", "items").removesuffix("s")
        # Several questions on one person or subject are several pairs.
        item = "item" if item in ("item", "person", "subject") else f"item ({item})"
        names = dict(zip(("first", "second"), design.conditions, strict=True))
        (definition,) = TEXTS.paragraphs("definition", item=item, **names)
        named = ", ".join(labels) if len(labels) <= 3 else f"{len(labels)} runs"
        sections = [make(report, tables) for make in self.sections]
        checks = [check for make in self.checks for check in make(report, tables)]
        return Page(
            title=f"{design.title}: {named}",
            study=design.title,
            question=design.question,
            models=labels,
            finding=Finding(
                sentence=say.paragraph([*finding, *doubts_of(report.runs)]),
                definition=definition,
                summary=say.paragraph(summary),
                warning=warning_of(report.runs),
                facts=self.facts(report),
            ),
            sections=[one for one in sections if one is not None],
            checks=sorted(checks, key=lambda check: check.level != "warning"),
            provenance=provenance(report),
            method=self.method(report),
            citation=design.citation,
        )
