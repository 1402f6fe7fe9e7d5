"""The page of a study of forms: sources of variance, accuracy and agreement of forms."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pandas as pd

from surface_consistency.engine.design import Report
from surface_consistency.engine.paired import page as paired
from surface_consistency.engine.paired.checks import PAIRED_CHECKS, Tables, rows_of
from surface_consistency.engine.paired.tables import cluster_within, paired_tables
from surface_consistency.metrics import adjust_p_values, unlearning_by
from surface_consistency.report import page
from surface_consistency.runs.loader import Run
from surface_consistency.studies.forms.tables import TEXTS, form_tables
from surface_consistency.tables import sentences as say
from surface_consistency.tables.columns import COLUMNS
from surface_consistency.tables.numbers import Claim, Value, interval_value
from surface_consistency.tables.table import Table

_SHOWN_ROWS: Final = 50
"""Maximum number of forms in tables and charts of the page; the CSV files contain all."""
_SQUARES: Final = 12
_MOST_EQUIVALENT: Final = 6
"""Maximum number of equivalent forms of a model that have their own sentence."""
_OWN: Final = (
    *("forms", "variance", "spread", "correct_counts", "form_answers", "samples"),
    *("models_forms", "rank_agreement"),
)

Row = Mapping[Any, Any]


def forms_report_tables(report: Report) -> dict[str, Table]:
    """Compute the tables of `form_tables`, and those of the reference against each other form.

    Args:
        report: The runs.

    Returns:
        Tables by name. With an equivalence margin "by_form" has p_equivalent_holm: the larger
        p-value of the two one-sided tests, Holm-corrected over the forms of a model.
    """
    outcomes = {run.label: run.outcomes for run in report.runs}
    adapted = _adapted(report)
    tables = form_tables(outcomes, report.intervals) | paired_tables(adapted)
    if (margin := report.settings.margin) is not None:
        tables["by_form"] = _with_equivalence(adapted, tables["by_form"], margin)
    return tables


def _with_equivalence(report: Report, table: Table, margin: float) -> Table:
    """Test whether the accuracy under each form is equivalent to that under the reference."""
    keys = report.design.keys("second_condition")
    options: dict[str, Any] = {"cluster": cluster_within(report, keys), "margin": margin}
    options |= {"first": "second_correct", "second": "first_correct"}
    tests = unlearning_by(report.frame, by=keys, intervals=report.intervals, **options)
    tests = tests.rename(columns=dict(report.design.exploded_names))
    adjusted = tests.groupby("model")["p_equivalent"].transform(
        lambda part: adjust_p_values(part.to_numpy(dtype=float))
    )
    tests = tests[["model", "form"]].assign(p_equivalent_holm=adjusted)
    frame, column = table.frame.merge(tests, how="left"), COLUMNS["p_equivalent_holm"]
    return replace(table, frame=frame, columns=[*table.columns, column])


def _adapted(report: Report) -> Report:
    """Remove groupings and clusters that the rows do not have from the design of a report."""
    frame = report.frame
    changes: dict[str, Mapping[str, Any]] = {}
    if frame["kind"].isna().all():
        changes["groupings"] = {"by_form": report.design.groupings["by_form"]}
    if (frame["cluster"] == frame["item"]).all():
        changes["clusters"] = {"item": "items"}
        report = replace(report, cluster="item")
    elif (frame["wordings"] == "templates").all():
        changes["clusters"] = {"cluster": "relations", "item": "items"}
    return replace(report, design=report.design.model_copy(update=changes))


def _reference(report: Report) -> str:
    """Name the reference form."""
    names = report.frame["first_condition"].unique()
    return str(names[0]) if len(names) == 1 else "the reference form"


def _sizes(run: Run) -> tuple[int, int]:
    """Return the smallest and the largest number of scored forms of an item; 0 without any."""
    by_item = run.outcomes.groupby(["item", "sample"])
    sizes = by_item["second_correct"].count() + by_item["first_correct"].count().clip(upper=1)
    sizes = sizes[sizes > 0]
    return (int(sizes.min()), int(sizes.max())) if len(sizes) else (0, 0)


# Sentences.


def _finding(report: Report, tables: Tables) -> tuple[list[say.Sentence], list[say.Sentence]]:
    """Report how often two forms agree, with accuracy, forms that differ and other forms."""
    leads = [one for run in report.runs for one in _consistency(report, run, tables)]
    details = [one for run in report.runs for one in _details(report, run, tables)]
    return paired.headed([], leads, [*details, *_models(report, tables)])


def _unit(*runs: Run) -> str:
    """Name the items of runs, each of which counts once per sample, in the plural."""
    has_samples = any(run.outcomes["sample"].nunique() > 1 for run in runs)
    return "samples of items" if has_samples else "items"


def _items(report: Report, row: Row, name: str, quantity: str, unit: str) -> say.Sentence:
    """Report a rate of the items of a model."""
    row = {**row, "n": row["n_items"]}
    return say.rate(row, name, quantity, unit=unit, confidence=report.confidence)


def _forms_row(run: Run, tables: Tables, place: int) -> Row:
    """Return the row of a model for these forms (0) or for forms like these (-1)."""
    return rows_of(tables, "forms", {"model": run.label})[place]


def _consistency(report: Report, run: Run, tables: Tables) -> Iterator[say.Sentence]:
    """Report the agreement of two forms, and the items that are correct in all."""
    row, (least, most) = _forms_row(run, tables, 0), _sizes(run)
    every = "both forms" if most == 2 else f"all {most} forms"
    forms = every if least == most else f"all of their {least} to {most} forms"
    quantity = f"consistency of {run.label} (agreement of two forms of an item)"
    unit = _unit(run)
    yield _items(report, row, "consistency", quantity, unit)
    if say.direction(row, "consistency") is not None:
        quantity = f"proportion of {unit} that {run.label} answers correctly in {forms}"
        yield _items(report, row, "all_correct", quantity, unit)


def _like(report: Report, run: Run, tables: Tables) -> say.Sentence:
    """Report the consistency of a model for other forms like these, or why it is not inferred."""
    quantity = f"consistency of {run.label} for other forms like these"
    return _items(report, _forms_row(run, tables, -1), "consistency", quantity, _unit(run))


def _details(report: Report, run: Run, tables: Tables) -> Iterator[say.Sentence]:
    """Report accuracy, forms that differ from the reference, equal answers and other forms."""
    model, reference, of = run.label, _reference(report), {"model": run.label}
    level: dict[str, Any] = {"confidence": report.confidence}
    row = _forms_row(run, tables, 0)
    if say.direction(row, "consistency") is None:
        return
    unit = _unit(run)
    yield _items(report, row, "accuracy", f"accuracy of {model}", unit)
    rows = [row for row in rows_of(tables, "by_form", of) if row["n"]]
    compared = [{**row, "ends": (reference, str(row["form"]), "with “{}”")} for row in rows]
    name, quantity = "accuracy_difference", f"accuracy of {model}"
    yield from _differences(report, compared, name, quantity, len(compared), unit, " by form")
    if compared and report.settings.margin is not None:
        yield from _equivalence(report, compared, quantity, report.settings.margin, unit)
    signs = [say.direction(one, name, one["p_value_holm"], **level) for one in compared]
    for one in rows_of(tables, "spread", of) if not any(signs) else ():
        spread = {**one, "n": one["n_items"]}
        if math.isnan(one["p_value"]) and one["spread"] > 0.0:
            what = f"a difference in accuracy between all forms of {model} together"
            yield say.not_inferred(spread, what, unit="items")
        elif one["p_value"] < 1.0 - report.confidence:
            values = {"record": _spread_test(report, spread), "p_value": paired.p_value_of(one)}
            yield TEXTS.sentence("together_differ", model=model, **values)
    if run.outcomes["is_same_answer"].all():
        quantity = (
            f"proportion of identical answers of {model} among pairs incorrect in “{reference}” "
            "and another form"
        )
        for one in rows_of(tables, "same_answer", of, among="both wrong"):
            if say.direction(one, "same_answer") is not None:
                yield say.rate(one, "same_answer", quantity, **level)
    for one in rows_of(tables, "samples", of):
        if say.direction(one, "consistency") is not None:
            quantity = f"agreement of {model} with itself on identical prompts"
            yield _items(report, one, "consistency", quantity, unit="questions")
    if run.outcomes["wordings"].iloc[0] == "own":
        yield TEXTS.sentence("own")
    else:
        yield _like(report, run, tables)


def _differences(
    report: Report,
    rows: Sequence[Row],
    name: str,
    quantity: str,
    n_tests: int,
    unit: str,
    family: str = "",
) -> list[say.Sentence]:
    """Report differences between the `ends` of rows, with Holm-corrected p-values."""
    level: dict[str, Any] = {"p": "p_value_holm", "confidence": report.confidence}
    words = {"correction": "Holm" if n_tests > 1 else "", "unit": unit, **level}

    def sentence(row: Row) -> say.Sentence:
        """Report one difference."""
        return say.difference(row, name, quantity, *row["ends"], **words)

    return say.many(rows, name, quantity + family, sentence, **level)


def _equivalence(
    report: Report, rows: Sequence[Row], quantity: str, margin: float, unit: str
) -> Iterator[say.Sentence]:
    """Report the forms whose accuracy is equivalent to that of the reference, and their number."""
    tests = {"p": "p_equivalent_holm", "p_difference": "p_value_holm"}
    words: dict[str, Any] = {"margin": margin, "unit": unit, "confidence": report.confidence}
    words |= {"correction": "Holm" if len(rows) > 1 else "", **tests}
    name, reference = "accuracy_difference", rows[0]["ends"][0]
    made = [say.equivalence(row, name, quantity, *row["ends"][:2], **words) for row in rows]
    found = [one for one in made if one]
    yield from found[:_MOST_EQUIVALENT]
    if len(rows) > len(found[:_MOST_EQUIVALENT]):
        record = say.count(len(found), len(rows), f"forms equivalent to {reference} in {quantity}")
        within = Value(value=margin, kind="difference", signed=False)
        filled = {"n": len(found), "of": len(rows), "reference": reference, "margin": within}
        yield [record, *TEXTS.sentence("equivalent", quantity=quantity, **filled)]


def _spread_test(report: Report, row: Row) -> Claim:
    """Make the record of the test that all forms of a model have one accuracy."""
    options: dict[str, Any] = {"kind": "test", "p_value": row["p_value"]}
    quantity = f"spread of the accuracy of {row['model']} over all forms"
    return say.claim(row, "spread", quantity, confidence=report.confidence, **options)


def _models(report: Report, tables: Tables) -> list[say.Sentence]:
    """Compare the consistency of models on the same items."""
    if "models_forms" not in tables:
        return []
    frame = tables["models_forms"].frame
    rows = [
        {**row, "n": row["n_items"], "ends": (str(row["b"]), str(row["a"]))}
        for row in frame[frame["rate"] == "consistency"].to_dict("records")
    ]
    unit = _unit(*report.runs)
    return _differences(report, rows, "difference", "consistency", len(frame), unit)


# Sections.


def _decides(report: Report, tables: Tables) -> page.Section | None:
    """Show the proportions of the variance, if there are enough items for them."""
    if "variance" not in tables:
        return None
    table = tables["variance"]
    labels = next(column.labels for column in table.columns if column.key == "part")
    rows = [
        (
            labels.get(str(part), str(part)),
            0,
            [
                paired.dot(report, row, "share", is_certain=say.direction(row, "share") == 1)
                for row in of_part.to_dict("records")
            ],
        )
        for part, of_part in table.frame.groupby("part", sort=False)
    ]
    chart = page.ForestPlot(
        name="variance",
        title="Proportions of the variance of correctness",
        axis="proportion of the variance, %",
        rows=rows,
        clusters="clusters",
        certain="significantly above 0",
    )
    return paired.section("decides", table.caption, [chart], lead=TEXTS.sentence("decides"))


def _by_form(report: Report, tables: Tables) -> page.Section | None:
    """Show the accuracy of each form, and kind of form, minus that of the reference."""
    reference = _reference(report)
    lead = TEXTS.sentence("by_form", reference=reference)
    return paired.section("by-form", "Accuracy by form", _form_charts(report, tables), lead=lead)


def _form_charts(report: Report, tables: Tables) -> Iterator[page.ForestPlot]:
    """Yield a chart per grouping, of the forms with the most flips if there are many."""
    for name, columns in report.design.groupings.items():
        frame = _first_forms(tables[name].frame)
        key = report.design.shown(columns[-1])
        rows = [
            (str(label), 0, [_form_dot(report, row) for row in part.to_dict("records")])
            for label, part in frame[frame["n"] > 0].groupby(key, sort=False)
        ]
        if rows:
            yield page.ForestPlot(
                name=f"accuracy-{name.removeprefix('by_')}",
                title=name.replace("_", " ").capitalize(),
                axis=f"correct, points minus {_reference(report)}",
                rows=rows,
                clusters=report.clusters,
                certain="significant (Holm)",
            )


def _form_dot(report: Report, row: Row) -> page.Dot:
    """Draw one form of one model."""
    p_value, level = row["p_value_holm"], report.confidence
    sign = say.direction(row, "accuracy_difference", p_value, confidence=level)
    return paired.dot(report, row, "accuracy_difference", kind="difference", is_certain=bool(sign))


def _counts(report: Report, tables: Tables) -> page.Section | None:
    """Show the number of correct forms, observed and expected for independent forms."""
    if "correct_counts" not in tables:
        return None
    series = []
    for label, part in tables["correct_counts"].frame.groupby("model", sort=False):
        rows = part.to_dict("records")
        series.append(_series(str(label), report.index[str(label)], rows, "share"))
        independent = f"{label}, if forms were independent"
        series.append(_series(independent, None, rows, "share_independent"))
    chart = page.Lines(
        name="right-counts",
        title="Items by the number of correct forms",
        x_title="correct forms",
        series=series,
    )
    return paired.section("right-counts", "Number of correct forms", [chart])


def _series(label: str, model: int | None, rows: Sequence[Row], name: str) -> page.Series:
    """Draw a proportion by the number of correct forms."""
    points = [
        page.Point(x=float(row["n_right"]), value=Value(value=float(row[name]))) for row in rows
    ]
    return page.Series(label=label, model=model, points=points)


def _together(report: Report, tables: Tables) -> page.Section | None:
    """Show how often the correctness labels of each pair of forms differ."""
    maps = []
    parts = (
        tables["form_pairs"].frame.groupby("model", sort=False) if "form_pairs" in tables else ()
    )
    for label, part in parts:
        names = list(dict.fromkeys([*part["first"], *part["second"]]))
        known = {
            (row["first"], row["second"]): 1.0 - row["agreement"] for row in part.to_dict("records")
        }
        known |= {(second, first): value for (first, second), value in known.items()}
        rows = [(one, [known.get((one, other), math.nan) for other in names]) for one in names]
        maps.append(
            page.Heatmap(
                name=f"together-{report.index[str(label)]}",
                title=f"Items whose correctness differs between two forms, {label}",
                columns=names,
                panels=[("", rows)],
            )
        )
    return paired.section("together", "Agreement of forms", maps, lead=TEXTS.sentence("together"))


def _squares(report: Report, tables: Tables) -> page.Section | None:
    """Show the reference against the forms that differ most from it."""
    frame = tables["by_form"].frame
    order = frame["flip_rate"].rank(ascending=False, method="first")
    squares = []
    for row in frame[(order <= _SQUARES) & (frame["n"] > 0)].to_dict("records"):
        model = f", {row['model']}" if len(report.runs) > 1 else ""
        change = interval_value(row, "accuracy_difference", kind="difference")
        squares.append(
            replace(
                paired.square(report, row, facts=[("other minus reference", change, "")]),
                title=f"{row['form']}{model}",
                filters={"model": str(row["model"]), "form": str(row["form"])},
            )
        )
    reference = _reference(report)
    plots = page.MosaicPlots(
        squares=squares,
        conditions=(reference, "other form"),
        cells=report.design.cells,
        size="small",
    )
    lead = TEXTS.sentence("squares", reference=reference)
    return paired.section("squares", "The reference against each form", [plots], lead=lead)


def _numbers(report: Report, tables: Tables) -> page.Section | None:
    """Show the tables, cut if there are very many forms."""
    names = (*_OWN, "overall", *report.design.groupings, "same_answer", "generalisation")
    return paired.section(
        "numbers", "The numbers", [_short(tables[name]) for name in names if name in tables]
    )


def _first_forms(frame: pd.DataFrame) -> pd.DataFrame:
    """Keep the forms with the most flips, if there are too many for a page."""
    if len(frame) <= _SHOWN_ROWS:
        return frame
    places = frame["flip_rate"].rank(ascending=False, method="first")
    return frame[places <= _SHOWN_ROWS]


def _short(table: Table) -> Table:
    """Cut a table of very many forms for the page, with a note."""
    if len(table.frame) <= _SHOWN_ROWS:
        return table
    has_flips = "flip_rate" in table.frame
    shown = _first_forms(table.frame) if has_flips else table.frame.head(_SHOWN_ROWS)
    rows = f"{_SHOWN_ROWS} rows"
    which = f"The {rows} with the most flips" if has_flips else f"The first {rows}"
    note = f"{which}, of {len(table.frame):,}; the CSV file has all. {table.note}"
    return replace(table, frame=shown, note=note)


def _answers(report: Report, tables: Tables) -> page.Section | None:
    """Show pairs in the browser, items whose forms split most evenly first."""
    return paired.answers_section(
        report,
        tables,
        answer=_answer,
        title="Items by disagreement between their forms",
        lead=TEXTS.sentence("answers", reference=_reference(report)),
        order=lambda one: (one.model, _evenness(one), one.question),
    )


def _answer(report: Report, run: Run, row: Row, answer: page.Answer) -> page.Answer:
    """Show one pair, with the number of correct forms of its item."""
    key = ("correct forms", run.label)
    if key not in report.memo:
        report.memo[key] = _correct_forms(run.outcomes)
    correct = report.memo[key].get((row["item"], row["sample"]))
    return replace(answer, labels={**answer.labels, "correct forms": [correct] if correct else []})


def _correct_forms(outcomes: pd.DataFrame) -> dict[tuple[str, int], str]:
    """Count the correct forms of each item and sample, such as "3 of 5"."""
    by_item = outcomes.groupby(["item", "sample"], sort=False)
    correct = by_item["second_correct"].sum() + by_item["first_correct"].first().fillna(False)
    scored = by_item["second_correct"].count() + by_item["first_correct"].first().notna()
    counts = zip(correct.index, correct, scored, strict=True)
    return {key: f"{int(n)} of {int(k)}" for key, n, k in counts}


def _evenness(answer: page.Answer) -> float:
    """Return the distance of the proportion of correct forms of an item from one half."""
    n, _, k = "".join(answer.labels.get("correct forms", ())).partition(" of ")
    return abs(int(n) / int(k) - 0.5) if k and int(k) else 1.0


# Checks.


def forms_checks(report: Report, tables: Tables) -> Iterator[page.Check]:
    """Report unequal numbers of forms, forms without scores, few forms, and spread by chance."""
    for run in report.runs:
        least, most = _sizes(run)
        name = "equal" if least == most else "unequal"
        record = say.count(most, None, f"scored forms of an item of {run.label}, maximum")
        yield TEXTS.check(name, record=record, model=run.label, least=least, most=most)
        if not run.outcomes["is_same_answer"].all():
            yield TEXTS.check("not_comparable", model=run.label)
        rows = rows_of(tables, "by_form", {"model": run.label})
        if names := [row["form"] for row in rows if not row["n"]]:
            record = say.count(len(names), len(rows), f"forms of {run.label} that are not compared")
            filled = {"reference": _reference(report), "forms": say.listing(names)}
            yield TEXTS.check("not_compared", record=record, model=run.label, **filled)
        these, like = (say.direction(_forms_row(run, tables, k), "consistency") for k in (0, -1))
        if these is not None and like is None:
            yield TEXTS.check("not_like", sentence=_like(report, run, tables))
    for run in report.runs:
        for row in rows_of(tables, "spread", {"model": run.label}):
            if row["p_value"] >= 1.0 - report.confidence and row["spread"] > 0:
                values: dict[str, Any] = {
                    name: Value(value=float(row[name]), kind="difference", signed=False)
                    for name in ("spread", "spread_null")
                }
                values |= {"record": _spread_test(report, {**row, "n": row["n_items"]})}
                yield TEXTS.check("spread", **{**row, **values, "p_value": paired.p_value_of(row)})


FORMS_PAGE: Final = paired.PageSpec(
    tables=(forms_report_tables,),
    prepare=_adapted,
    finding=_finding,
    sections=(
        _decides,
        _by_form,
        _counts,
        _together,
        _squares,
        _numbers,
        paired.contrasts_section,
        _answers,
        partial(paired.checks_section, shown=_OWN),
    ),
    checks=(forms_checks, *PAIRED_CHECKS),
)
"""Tables and page of a study of forms."""
