"""Tables and page of the linking probe: the paper's table 7, ROC areas, and orders of names."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pandas as pd

from surface_consistency.engine.design import Report
from surface_consistency.engine.paired import page as paired
from surface_consistency.engine.paired.checks import Tables
from surface_consistency.engine.paired.tables import paired_tables
from surface_consistency.metrics import clustered_auc, linking_by
from surface_consistency.metrics.linking.linking import LINKING_KINDS
from surface_consistency.metrics.uncertainty.intervals import Intervals
from surface_consistency.models.options import is_even
from surface_consistency.report.texts import Texts
from surface_consistency.runs.loader import Run
from surface_consistency.tables import sentences as say
from surface_consistency.tables.table import Table
from surface_consistency.tables.tabulation import tabulate
from surface_consistency.taxonomy import CATEGORIES, TYPES

KIND_TITLES: Final = {
    "positive": "true pair",
    "surface_negative": "a character replaced",
    "semantic_negative": "name of a similar entity",
}
"""Title of each kind of example."""

TEXTS: Final = Texts("surface_consistency.studies.linking")
"""Captions and notes."""

_ENDS: Final = ("", "_low", "_high")
_TABLES: Final = ("linking", "linking_kinds", "linking_orders")
_QUANTITIES: Final = {
    "positive_accuracy": "proportion of true pairs that {} affirms",
    "negative_accuracy": "proportion of false pairs that {} denies",
    "balanced_accuracy": "balanced accuracy of {}",
    "yes_rate": "proportion of all pairs that {} affirms",
}


def _runs_with_odds(report: Report) -> list[Run]:
    """Return the runs with all rows, and the log-odds of each correctness label."""
    return [replace(run, outcomes=_with_odds(run)) for run in report.runs]


def _totals(report: Report) -> Report:
    """Keep each pair of names once."""
    runs = [replace(run, outcomes=_of_totals(run.outcomes)) for run in _runs_with_odds(report)]
    return replace(report, runs=runs)


def linking_tables(report: Report) -> dict[str, Table]:
    """Compute the rates of table 7 and areas under the ROC curve, and the tables of both orders.

    Args:
        report: The runs.

    Returns:
        Tables by name: "linking" by type and category, "linking_kinds", "linking_orders", and those
        of `paired_tables`, whose two conditions are the orders of the names.
    """
    totals = _totals(report)
    by = ["model", "group", "label"]
    options: dict[str, Any] = {"cluster": report.cluster, "intervals": report.intervals}
    rates, accuracy = partial(_rates, **options), partial(_accuracy, **options)
    orders = partial(_orders, conditions=report.design.conditions)
    frames = {
        "linking": tabulate(_labelled(_runs_with_odds(report), _groups), by, rates),
        "linking_kinds": tabulate(
            _labelled(totals.runs, _kinds), ["model", "kind", "label"], accuracy
        ),
        "linking_orders": tabulate(_labelled(totals.runs, orders), by, rates),
    }
    clusters = {"n_clusters": report.clusters.capitalize()}
    return {
        name: TEXTS.table(
            name,
            frame,
            titles={} if name == "linking_kinds" else clusters,
            labels={"kind": KIND_TITLES},
        )
        for name, frame in frames.items()
    } | paired_tables(totals)


def _orders(outcomes: pd.DataFrame, conditions: tuple[str, str]) -> Iterator[pd.DataFrame]:
    """Yield the outcomes of both orders of the names, uncalibrated and calibrated."""
    is_true = outcomes["kind"] == "positive"
    for side, order in zip(("first", "second"), conditions, strict=True):
        if outcomes[f"{side}_log_odds"].isna().all():
            yield _of_side(outcomes, side).assign(group=order, label="as asked")
        for name, label in (("log_odds", "as asked"), ("calibrated_log_odds", "calibrated")):
            odds = outcomes[f"{side}_{name}"]
            if odds.notna().any():
                correct = ((odds > 0.0) == is_true).where(odds.notna() & ~odds.map(is_even))
                yield outcomes.assign(correct=correct, log_odds=odds, group=order, label=label)


def _rates(part: pd.DataFrame, cluster: str, intervals: Intervals) -> dict[str, object]:
    """Compute accuracies, and areas under the curve against all and each kind of negatives."""
    linked = linking_by(part, score="correct", cluster=cluster, intervals=intervals).iloc[0]
    row: dict[str, object] = {**linked}
    known = part[part["log_odds"].notna()]
    negatives = LINKING_KINDS[1:]
    against = {"auc": negatives} | {f"auc_{kind}": (kind,) for kind in negatives}
    for name, kinds in against.items():
        rows = known[known["kind"].isin(["positive", *kinds])]
        area = clustered_auc(
            rows["log_odds"].to_numpy(dtype=float),
            (rows["kind"] == "positive").to_numpy(dtype=float),
            rows[cluster].to_numpy(dtype=object),
            confidence=intervals.confidence,
        )
        row |= {f"{name}{end}": area[f"auc{end}"] for end in _ENDS}
        row |= {f"{name}_n": len(rows), f"{name}_n_clusters": area["n_clusters"]}
    return row


def _accuracy(part: pd.DataFrame, cluster: str, intervals: Intervals) -> dict[str, object]:
    """Compute the accuracy on some examples of one kind."""
    rates = linking_by(part, score="correct", cluster=cluster, intervals=intervals).iloc[0]
    row = {"n": rates["n"], "n_clusters": rates["n_clusters"]}
    return row | {f"accuracy{end}": rates[f"raw_accuracy{end}"] for end in _ENDS}


def _finding(report: Report, tables: Tables) -> tuple[list[say.Sentence], list[say.Sentence]]:
    """Report how well two names of one entity are distinguished from names of two entities."""
    frame = tables["linking"].frame
    rows = frame[(frame["group"] == "all") & (frame["label"] == "all")].to_dict("records")
    of_pairs: Callable[..., say.Sentence] = partial(say.rate, unit="pairs of names", **report.words)
    leads, details = [], []
    for row in rows:
        model = row["model"]
        has_odds = say.direction(row, "auc") is not None
        name, title = (
            ("auc", "area under the curve with which the log-odds of")
            if has_odds
            else ("balanced_accuracy", "balanced accuracy with which")
        )
        quantity = f"{title} {model} distinguish two names of one entity from names of two"
        quantity = quantity if has_odds else quantity.replace("distinguish", "distinguishes")
        leads.append(of_pairs(row, name, quantity, kind="number" if has_odds else "rate", null=0.5))
        for name, quantity in _QUANTITIES.items():
            if say.direction(row, name) is not None:
                details.append(of_pairs(row, name, quantity.format(model)))
    for row in paired.first_panel(report, tables):
        quantity = f"flip rate of {row['model']} between the two orders of the names"
        if say.direction(row, "flip_rate") is not None:
            details += [
                of_pairs(row, "flip_rate", quantity),
                paired.noise_sentence(report, tables, row),
            ]
    return paired.headed([], leads, details)


LINKING_PAGE: Final = paired.PageSpec(
    tables=(linking_tables,),
    prepare=_totals,
    finding=_finding,
    sections=(
        paired.tables_section("linking", "Which names are linked", _TABLES),
        *paired.PAIRED_SECTIONS,
    ),
    papers=TEXTS,
)
"""Tables and page of the linking probe."""


def _labelled(
    runs: Iterable[Run], parts: Callable[[pd.DataFrame], Iterable[pd.DataFrame]]
) -> pd.DataFrame:
    """List the examples of each part of each run, with the columns that name run and part."""
    frames = [
        part.assign(model=run.label) for run in runs for part in parts(run.outcomes) if len(part)
    ]
    return pd.concat(frames, ignore_index=True)


def _with_odds(run: Run) -> pd.DataFrame:
    """Add the log-odds from which the correctness labels of a run were computed."""
    is_calibrated = run.scoring is not None and run.scoring.settings.get("calibrated")
    name = "calibrated_log_odds" if is_calibrated else "log_odds"
    odds = {f"{side}_odds": run.outcomes[f"{side}_{name}"] for side in ("first", "second")}
    return run.outcomes.assign(**odds)


def _of_side(outcomes: pd.DataFrame, side: str) -> pd.DataFrame:
    """Select the correctness labels and the log-odds of one order of the names."""
    return outcomes.assign(correct=outcomes[f"{side}_correct"], log_odds=outcomes[f"{side}_odds"])


def _groups(outcomes: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield all examples, all that are not disputable, and those of each type and category."""
    examples = _of_side(outcomes, "first")
    totals = _of_totals(examples)
    yield totals.assign(group="all", label="all")
    if totals["is_disputable"].any():
        yield totals[~totals["is_disputable"]].assign(group="all", label="but disputable ones")
    for name, kind in TYPES.items():
        is_of_type = [name in types for types in totals["types"]]
        yield totals[is_of_type].assign(group="type", label=kind.title)
    for name, category in CATEGORIES.items():
        is_of_category = [name in categories for categories in examples["categories"]]
        yield examples[is_of_category].assign(group="category", label=category.name)


def _kinds(outcomes: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the examples of each kind: all, by whether they are disputable, and by type."""
    for kind in LINKING_KINDS:
        examples = _of_side(outcomes[outcomes["kind"] == kind], "first")
        yield examples.assign(label="all")
        is_disputable = examples["is_disputable"].to_numpy(dtype=bool)
        if is_disputable.any():
            yield examples[is_disputable].assign(label="disputable")
            yield examples[~is_disputable].assign(label="beyond dispute")
        for name, redirect_type in TYPES.items():
            is_of_type = [name in types for types in examples["types"]]
            yield examples[is_of_type].assign(label=redirect_type.title)


def _of_totals(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Keep each pair of names once: in the wording of its first category."""
    return outcomes[outcomes["is_main"].to_numpy(dtype=bool)].reset_index(drop=True)
