"""The page of SLAQ: accuracy in short and long answers, slots, momentum, a topic in all orders."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

import pandas as pd

from surface_consistency.engine.design import Report
from surface_consistency.engine.paired import page as paired
from surface_consistency.engine.paired.checks import PAIRED_CHECKS, Tables, key_facts, rows_of
from surface_consistency.engine.paired.tables import (
    answer_texts,
    cluster_within,
    is_hardly_right,
    paired_tables,
    same_answers,
    sorted_rows,
    with_detectable,
)
from surface_consistency.errors import DataError
from surface_consistency.metrics.positions.momentum_curves import DEFAULT_N_NULL
from surface_consistency.report import page
from surface_consistency.runs.loader import Run
from surface_consistency.studies.slaq.judges import answering_parts, matcher_agreement
from surface_consistency.studies.slaq.tables import (
    TEXTS,
    describe_slot_tables,
    grouped_scores,
    slot_tables,
)
from surface_consistency.tables import sentences as say
from surface_consistency.tables.numbers import Value, interval_value, is_missing, value_text
from surface_consistency.tables.table import Table

_SLOTS: Final = ("momentum", "momentum_slopes", "position", "order_sensitivity")
_JUDGE: Final = ("judge_agreement", "corrected")
_STREAKS: Final = ((1, "correct"), (0, "incorrect"))
_NULL: Final = "topic-and-slot"
_WEAK_NULL: Final = "topic"
_LOWEST_AGREEMENT: Final = 0.9
"""Agreement with human labels that the lower bound of the interval must reach."""
_REMARKS: Final = {
    "both": "stated",
    "first_only": "lost",
    "second_only": "stated here only",
    "neither": "never correct",
    "missing": "not scored",
}
_NEEDS: Final = ("both", "first_only", "second_only", "neither")
Row = Mapping[Any, Any]


# Tables.


def slaq_report_tables(report: Report, *, n_null: int = DEFAULT_N_NULL) -> dict[str, Table]:
    """Compute the tables of any paired study with SLAQ's scores, and those of slots and free texts.

    Args:
        report: The runs.
        n_null: Number of draws of the null band of momentum.

    Returns:
        Tables by name.
    """
    frames = slot_tables(report.frame, intervals=report.intervals, n_null=n_null)
    same = same_answers(report, _answer_texts, rule="token_f1")
    paired = paired_tables(report, rates=_scores, texts=TEXTS, answers=same)
    return paired | describe_slot_tables(frames)


def _scores(report: Report, keys: list[str], has_kappa: bool) -> pd.DataFrame:
    """Compute the scores by the key columns."""
    cluster, intervals = cluster_within(report, keys), report.intervals
    table = grouped_scores(report.frame, tuple(keys[2:]), cluster=cluster, intervals=intervals)
    table = with_detectable(table, confidence=intervals.confidence)
    return sorted_rows(report, table, keys)


def _answer_texts(run: Run) -> tuple[Sequence[str | None], Sequence[str | None]]:
    """Return the short answer and the matched part of the long one; see `answering_parts`."""
    first, second = answer_texts(run)
    try:
        targets, pairs = run.folder.read_plan()
    except DataError:
        return first, second
    texts = dict(zip(run.outcomes["pair"], second, strict=True))
    owners = pairs.set_index("second_target")["pair"]
    chosen_targets = targets[targets["target_id"].isin(owners.index)].reset_index(drop=True)
    owned = owners.reindex(chosen_targets["target_id"]).tolist()
    chosen_targets["text"] = pd.Series([texts.get(pair) for pair in owned], dtype=object)
    chosen = dict(zip(owned, answering_parts(chosen_targets), strict=True))
    return first, [" ".join(chosen.get(pair, ())) or None for pair in run.outcomes["pair"]]


# Sentences.


def _finding(report: Report, tables: Tables) -> tuple[list[say.Sentence], list[say.Sentence]]:
    """Report the accuracy lost in long answers, with alignment, slots and the judge below it."""
    rows = [row for row in paired.first_panel(report, tables) if row["n"]]
    usual = [row for row in rows if not is_hardly_right(row)]
    leads = [
        say.difference(
            row,
            "accuracy_difference",
            f"accuracy of {row['model']}",
            "short answers",
            "long answers",
            "in {}",
            p="p_value",
            **report.words,
        )
        for row in usual
    ]
    for row in rows:
        if is_hardly_right(row):
            leads += paired.hardly_correct(report, row)
    between = paired.model_sentences(
        report, tables, "accuracy_difference", "accuracy change from short to long answers", usual
    )
    details = [one for row in usual for one in _details(report, tables, row)]
    return paired.headed(between, leads, [*details, *_matcher_sentences(report)])


def _details(report: Report, tables: Tables, row: Row) -> Iterator[say.Sentence]:
    """Report the alignment, equal answers, slots and noise of a model."""
    model, by_topic = row["model"], report.words | {"clusters": "topics"}
    if say.direction(row, "alignment") is not None:
        quantity = f"alignment of {model} between short and long answers, averaged over topics,"
        yield say.rate({**row, "n_clusters": row["n_topics"]}, "alignment", quantity, **by_topic)
    yield from paired.same_sentences(report, tables, row, "same_by_rule")
    for slot in rows_of(tables, "position", {"model": model})[:1]:
        if say.direction(slot, "slope") is not None:
            yield say.rate(
                slot | {"n_clusters": slot["n_topics"]},
                "slope",
                f"accuracy change of {model} per slot of the long answer",
                kind="difference",
                null=0.0,
                unit="answers",
                **by_topic,
            )
    yield _momentum_sentence(report, tables, model)
    yield paired.noise_sentence(report, tables, row)


def _matcher_sentences(report: Report) -> Iterator[say.Sentence]:
    """Report the errors of the string matchers that scored the runs, each once."""
    known = set()
    for run in report.runs:
        if not run.judged_by.startswith("matcher:"):
            continue
        settings = {} if run.scoring is None else run.scoring.settings
        rule = run.judged_by.removeprefix("matcher:").removesuffix(" on whole")
        part: Literal["answering", "whole"] = (
            "whole" if run.judged_by.endswith(" on whole") else "answering"
        )
        only = not settings.get("all_facts", False)
        if (rule, part, only) in known:
            continue
        known.add((rule, part, only))
        agreement = matcher_agreement(rule, part=part, entities_only=only)
        n_true = agreement["true_positives"]
        record, *share = say.estimate(agreement, "accuracy", f"agreement of {rule}")
        sentence = TEXTS.sentence(
            "matcher",
            label=run.label,
            judged_by=run.judged_by,
            n=agreement["n"],
            share=share,
            n_false=agreement["false_positives"],
            n_positive=n_true + agreement["false_positives"],
            n_missed=agreement["false_negatives"],
            n_true=n_true + agreement["false_negatives"],
        )
        yield [record, *sentence]


# Sections.


def _squares(report: Report, tables: Tables) -> page.Section:
    """Show the contingency table of each model, and the accuracy by slot."""
    squares = paired.squares_section(
        report,
        tables,
        title="The same fact in short and long answers",
        lead=TEXTS.sentence("squares"),
        facts=_square_facts,
    )
    return replace(squares, blocks=[*squares.blocks, *_slot_curves(report, tables)])


def _square_facts(report: Report, row: Row) -> list[paired.Fact]:
    """Return the lines below a square."""
    change = interval_value(row, "accuracy_difference", kind="difference")
    return [
        ("alignment", interval_value(row, "alignment"), "mean over topics"),
        ("signed alignment", interval_value(row, "signed_alignment", kind="number"), ""),
        ("long minus short", change, ""),
        ("flips", interval_value(row, "flip_rate"), ""),
        ("asymmetry of flips", paired.p_value_of(row), f"{paired.test_of(row)}, {report.clusters}"),
    ]


def _slot_curves(report: Report, tables: Tables) -> Iterator[page.Lines]:
    """Show the accuracy by slot of each model whose orders are balanced."""
    for row in paired.first_panel(report, tables):
        label = str(row["model"])
        points = rows_of(tables, "position", row)
        if not points:
            continue
        facts = [("slope per slot", interval_value(points[0], "slope", kind="difference"), "")]
        facts += [
            ("two orders disagree", interval_value(orders, "disagreement"), "")
            for orders in rows_of(tables, "order_sensitivity", row)
        ]
        yield page.Lines(
            name=f"slots-{report.index[label] + 1}",
            title=_title(report, "Correct in the long answer, by slot", label),
            x_title="slot in the long query",
            series=[_curve(report, label, points, "slot", "accuracy")],
            reference=("short answers", interval_value(row, "first_accuracy")),
            facts=paired.inferred(facts),
        )


def _momentum(report: Report, tables: Tables) -> page.Section | None:
    """Show the accuracy after runs of correct and of incorrect slots."""
    blocks: list[page.Block] = []
    for label in report.labels:
        model = {"model": label}
        slopes = rows_of(tables, "momentum_slopes", model)
        for streak, kind in _STREAKS:
            rows = rows_of(tables, "momentum", model, null=_NULL, streak=streak)
            points = [row for row in rows if row["n"] > 0]
            if not points:
                continue
            own, weak = (
                next(r for r in slopes if r["null"] == null and r["streak"] == streak)
                for null in (_NULL, _WEAK_NULL)
            )
            blocks.append(_momentum_curve(report, label, kind, points, own, weak))
    found = say.paragraph(_momentum_sentence(report, tables, label) for label in report.labels)
    lead = [*TEXTS.sentence("momentum", level=report.level), " ", *found]
    return paired.section("momentum", "Does one error cause the next?", blocks, lead=lead)


def _momentum_sentence(report: Report, tables: Tables, model: str) -> say.Sentence:
    """Report whether the slots of a model depend on the ones before, and in which direction."""
    rows = rows_of(tables, "momentum_slopes", {"model": model}, null=_NULL)[:1]
    if not rows or is_missing(rows[0]["band_p_value"]):
        return []
    directions = set()
    for row in rows_of(tables, "momentum", {"model": model}, null=_NULL):
        # A run of correct slots of length 0 follows an incorrect slot.
        sign = 1 if (row["streak"] == 1) == (row["length"] > 0) else -1
        directions |= {sign * side for side in (_side(row),) if side}
    names = {frozenset({1}): "momentum_found", frozenset({-1}): "momentum_reversed"}
    found = names.get(frozenset(directions), "momentum_mixed")
    p_value = float(rows[0]["band_p_value"])
    record = say.claim(
        rows[0],
        "band_p_value",
        f"momentum of {model}",
        kind="test",
        p_value=p_value,
        confidence=report.confidence,
    )
    text = TEXTS.sentence(
        found if p_value < 1.0 - report.confidence else "momentum_not_found",
        model=model,
        p=value_text(Value(value=p_value, kind="p_value")),
        n=int(rows[0]["n_responses"]),
    )
    return [record, *text]


def _momentum_curve(
    report: Report, label: str, kind: str, points: Sequence[Row], own: Row, weak: Row
) -> page.Lines:
    """Draw one curve with the band of the stronger null."""
    without = Value(
        value=own["null_slope"], low=own["null_low"], high=own["null_high"], kind="difference"
    )
    ends = ("_low", "", "_high")
    return page.Lines(
        name=f"momentum-{kind}-{report.index[label] + 1}",
        title=_title(report, f"After a run of {kind} slots", label),
        x_title="length of the run",
        series=[_curve(report, label, points, "length", "probability")],
        band=[(row["length"], *(row[f"null_probability{end}"] for end in ends)) for row in points],
        facts=paired.inferred(
            [
                ("slope", interval_value(own, "slope", kind="difference"), ""),
                ("without momentum", without, ""),
                ("slope under the null", paired.p_value_of(own, "p_value"), "topics and slots"),
                ("slope under the weaker null", paired.p_value_of(weak, "p_value"), "topics only"),
                (
                    "largest deviation of both curves",
                    paired.p_value_of(own, "band_p_value"),
                    "topics and slots",
                ),
            ]
        ),
        note="The band is simultaneous for all points of both curves.",
    )


def _curve(report: Report, label: str, rows: Sequence[Row], x: str, y: str) -> page.Series:
    """Draw rows of a table as a curve."""
    points = [
        page.Point(x=float(row[x]), value=interval_value(row, y), n=int(row["n"])) for row in rows
    ]
    return page.Series(label=label, model=report.index[label], points=points)


def _topic(report: Report, tables: Tables) -> page.Section | None:
    """Show one topic of the first run in all its orders."""
    run = report.runs[0]
    listed = run.outcomes[run.outcomes["second_condition"] == "long"]
    if listed.empty:
        return None
    listed = listed.assign(cell=paired.cells_of(listed))
    scores = listed.groupby("topic_id", sort=False)["cell"].agg(
        lambda of_topic: (of_topic != "missing").sum() + 2 * (of_topic == "first_only").sum()
    )
    topic = str(scores.idxmax())
    rows = listed[listed["topic_id"] == topic]
    lines = []
    for number, (_, part) in enumerate(rows.groupby("permutation", sort=True), start=1):
        made = []
        for row in part.sort_values("slot").to_dict("records"):
            outcome = row["cell"] if row["cell"] in _NEEDS else ""
            reference = _fact(report, run, row["item"])["reference"]
            made.append((reference, _REMARKS[row["cell"]], outcome))
        lines.append((f"order {number}", made))
    short = rows.drop_duplicates("item")["first_correct"].dropna()
    name = _fact(report, run, rows["item"].iloc[0])["topic"]
    matrix = page.Matrix(
        title=f"{name}, {run.label}",
        columns=[f"slot {slot}" for slot in range(1, int(rows["slot"].max()) + 1)],
        rows=lines,  # type: ignore[arg-type]
    )
    lead = TEXTS.sentence(
        "topic", name=name, label=run.label, n_known=int(short.sum()), n_items=len(short)
    )
    title = f"One topic in {len(lines)} order{'s' * (len(lines) > 1)}"
    return paired.section("topic", title, [matrix], lead=lead)


def _judge(report: Report, tables: Tables) -> page.Section | None:
    """Show the agreement of scores with human labels, and the corrected scores."""
    blocks = [tables[name] for name in _JUDGE if name in tables]
    return paired.section(
        "judge", "The judge compared with human labels", blocks, lead=TEXTS.sentence("judge")
    )


def _numbers(report: Report, tables: Tables) -> page.Section | None:
    """Show the tables of rates and slots, after a chart of several models."""
    first = list(_models_chart(report, tables))
    return paired.numbers_section(report, tables, more=_SLOTS, first=first)


def _models_chart(report: Report, tables: Tables) -> Iterator[page.ForestPlot]:
    """Show accuracies and alignment of several models: figure 2 of the paper."""
    models = [row for row in paired.first_panel(report, tables) if row["n"]]
    if len(models) < 2:
        return
    scores = {"first_accuracy": "F_S", "second_accuracy": "F_L", "alignment": "alignment"}
    yield page.ForestPlot(
        name="alignment",
        title="F_S, F_L and alignment",
        axis="facts, %",
        rows=[
            (title, 0, [paired.dot(report, row, name) for row in models])
            for name, title in scores.items()
        ],
        clusters=report.clusters,
    )


def _answer(report: Report, run: Run, row: Row, answer: page.Answer) -> page.Answer:
    """Show the question of a pair, its reference, the short and the whole long answer."""
    fact = _fact(report, run, row["item"])
    is_free = is_missing(row["slot"])
    slot = "free form" if is_free else f"slot {int(row['slot'])} of {int(row['n_slots'])}"
    return replace(
        answer,
        question=fact["question"],
        surfaces=("short answer", slot),
        accepted=(fact["reference"],),
    )


# Checks.


def slaq_checks(report: Report, tables: Tables) -> Iterator[page.Check]:
    """Report facts without a score, short curves, unbalanced orders and the errors of judges."""
    for label in report.labels:
        of: Callable[[str], list[dict[Any, Any]]] = functools.partial(
            rows_of, tables, row={"model": label}
        )
        if reasons := of("unjudged"):
            listed = "; ".join(f"{row['n']:,}: {row['reason']}" for row in reasons)
            n = sum(row["n"] for row in reasons)
            yield TEXTS.check("unjudged", label=label, n=n, reasons=listed)
        yield TEXTS.check("balanced" if of("position") else "unbalanced", label=label)
        for slope in of("momentum_slopes")[:1]:
            n, n_missing = int(slope["n_responses"]), int(slope["n_missing"])
            if n_missing > n:
                yield TEXTS.check("short_momentum", label=label, n=n, n_all=n + n_missing)
        for row in of("judge_agreement"):
            if row["verdict"] == "correct":
                is_good = row["accuracy_low"] >= _LOWEST_AGREEMENT
                quantity = f"agreement of {row['judge']} with human labels of {row['form']} answers"
                yield TEXTS.check(
                    "judge",
                    level="ok" if is_good else "warning",
                    label=label,
                    sentence=say.rate(row, "accuracy", quantity, unit="answers"),
                    beside="" if is_good else " It is not significantly above 90 %.",
                )


def _key_facts(report: Report) -> list[tuple[str, str]]:
    """Gather the facts under the finding, with the number of orders."""
    orders = [run.outcomes["permutation"].nunique() for run in report.runs]
    facts = key_facts(report)
    facts.insert(2, ("orders", " / ".join(map(str, dict.fromkeys(orders)))))
    return facts


def _method(report: Report) -> list[str]:
    """Return the method in paragraphs."""
    return TEXTS.paragraphs(
        "method", clusters=report.clusters, n_null=DEFAULT_N_NULL, level=report.level
    )


def _title(report: Report, title: str, label: str) -> str:
    """Name the model in a title if there are several."""
    return title if len(report.runs) == 1 else f"{title}, {label}"


def _fact(report: Report, run: Run, item: object) -> dict[str, str]:
    """Return topic, question and reference of a fact; its name if a run has no plan."""
    key = ("facts", run.label)
    if key not in report.memo:
        try:
            targets = run.folder.read_plan()[0].drop_duplicates("item")
        except DataError:
            report.memo[key] = {}
        else:
            columns = targets[["topic", "question"]].assign(reference=targets["references"].str[0])
            rows = columns.to_dict("records")
            report.memo[key] = dict(zip(targets["item"], rows, strict=True))
    nameless = dict.fromkeys(("topic", "question", "reference"), str(item))
    fact: dict[str, str] = report.memo[key].get(str(item), nameless)
    return fact


def _side(row: Row) -> int:
    """Return 1 for a point above the band, -1 for one below, and 0 within or without a band."""
    is_above = row["probability"] > row["null_probability_high"] + 1e-12
    return int(is_above) - int(row["probability"] < row["null_probability_low"] - 1e-12)


SLAQ_PAGE: Final = paired.PageSpec(
    tables=(slaq_report_tables,),
    finding=_finding,
    sections=(
        _squares,
        _momentum,
        _topic,
        paired.tables_section("recall", "Free-form answers", ["recall"]),
        _judge,
        paired.highlights_section,
        paired.flips_section,
        _numbers,
        paired.contrasts_section,
        functools.partial(paired.answers_section, answer=_answer),
        functools.partial(paired.checks_section, shown=_JUDGE),
    ),
    checks=(*PAIRED_CHECKS, slaq_checks),
    facts=_key_facts,
    method=_method,
    papers=TEXTS,
)
"""Tables and page of SLAQ."""
