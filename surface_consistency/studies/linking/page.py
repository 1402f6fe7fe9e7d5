"""Tables and page of the linking probe: the paper's table 7, areas under the curve, orders."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import pandas as pd

from surface_consistency.engine.design import Report
from surface_consistency.engine.paired.page import PairedReport
from surface_consistency.metrics import clustered_auc, linking_by
from surface_consistency.metrics.linking.linking import LINKING_KINDS
from surface_consistency.report.page import Finding, Section
from surface_consistency.report.wording import Wording
from surface_consistency.runs.loader import Run
from surface_consistency.tables.columns import COLUMNS, catalogue
from surface_consistency.tables.table import Column, Table, interval_column
from surface_consistency.tables.tabulation import describe, spread, tabulate
from surface_consistency.taxonomy import CATEGORIES, TYPES

KIND_TITLES: Final = {
    "positive": "true pair",
    "surface_negative": "a character replaced",
    "semantic_negative": "name of a similar entity",
}
"""Wording of each kind of example."""

_WORDING: Final = Wording("surface_consistency.studies.linking")
_ENDS: Final = ("", "_low", "_high")
_COLUMNS: Final = COLUMNS | catalogue(
    Column(key="group", title="Group"),
    Column(key="kind", title="Kind", labels=KIND_TITLES),
    Column(key="n", title="Examples", kind="count"),
    interval_column("raw_accuracy", "Raw", "rate", "%", direction="higher"),
    interval_column("balanced_accuracy", "Balanced", "rate", "%", direction="higher"),
    interval_column("positive_accuracy", "Positive", "rate", "%", direction="higher"),
    interval_column("negative_accuracy", "Negative", "rate", "%", direction="higher"),
    interval_column("yes_rate", "Yes", "rate", "%"),
    interval_column("auc", "AUC", "number", "0.5 is chance", direction="higher"),
)


class LinkingReport(PairedReport):
    """Tables and page of the linking probe: the paper's table 7, areas under the curve, orders."""

    def __init__(self, report: Report) -> None:
        self._whole = [replace(run, outcomes=_with_odds(run)) for run in report.runs]
        totals = [replace(run, outcomes=_of_totals(run.outcomes)) for run in self._whole]
        super().__init__(replace(report, runs=totals))

    def tables(self) -> dict[str, Table]:
        """Compute the rates of table 7 and areas under the curve, besides the paired tables.

        Returns:
            Tables by name: "linking" by type and category, "linking_kinds", "linking_orders", and
            those of `PairedReport.tables`, whose two conditions are the orders of the names.
        """
        by = ["model", "group", "label"]
        shown = (
            "model group label n n_clusters raw_accuracy balanced_accuracy positive_accuracy "
            "negative_accuracy yes_rate auc"
        )
        titles = {"n_clusters": self.clusters.capitalize()}
        return {
            "linking": describe(
                tabulate(_labelled(self._whole, _groups), by, self._rates),
                "Linking by type and category of the redirect, asked with the redirect first",
                shown,
                _COLUMNS,
                titles=titles,
                note="A pair of several categories counts in each of them and once in totals. "
                "Whether “no” is right for a misspelling with one more character replaced is "
                "disputable, hence the row without them.",
                cluster_column="n_clusters",
            ),
            "linking_kinds": describe(
                tabulate(
                    _labelled(self.report.runs, _kinds), ["model", "kind", "label"], self._right
                ),
                "Right answers by kind of example",
                "model kind label n accuracy",
                _COLUMNS,
                note="Disputable: a misspelling or spelling variant with one more character "
                "replaced, to which “yes” may be as right.",
                cluster_column="n_clusters",
            ),
            "linking_orders": describe(
                tabulate(_labelled(self.report.runs, self._orders), by, self._rates),
                "Linking by order of the names, with and without calibration",
                shown,
                _COLUMNS,
                titles=titles,
                note="Calibrated: the log-odds less those of the same wording with N/A for both "
                "names.",
                cluster_column="n_clusters",
            ),
            **super().tables(),
        }

    def _orders(self, outcomes: pd.DataFrame) -> Iterator[pd.DataFrame]:
        """Take both orders of the names, uncalibrated and calibrated, whichever was judged by."""
        is_true = outcomes["kind"] == "positive"
        for side, order in zip(("first", "second"), self.design.conditions, strict=True):
            if outcomes[f"{side}_log_odds"].isna().all():
                yield _of_side(outcomes, side).assign(group=order, label="as asked")
            for name, label in (("log_odds", "as asked"), ("calibrated_log_odds", "calibrated")):
                odds = outcomes[f"{side}_{name}"]
                if odds.notna().any():
                    correct = ((odds > 0.0) == is_true).where(odds.notna())
                    yield outcomes.assign(correct=correct, log_odds=odds, group=order, label=label)

    def _accuracies(self, part: pd.DataFrame) -> pd.Series:
        """Compute the accuracies of some examples, with intervals."""
        return linking_by(part, correct="correct", cluster=self.report.cluster).iloc[0]

    def _rates(self, part: pd.DataFrame) -> dict[str, object]:
        """Compute accuracies, and areas under the curve against all and each kind of negatives."""
        row: dict[str, object] = {**self._accuracies(part)}
        known = part[part["log_odds"].notna()]
        negatives = LINKING_KINDS[1:]
        against = {"auc": negatives} | {f"auc_{kind}": (kind,) for kind in negatives}
        for name, kinds in against.items():
            rows = known[known["kind"].isin(["positive", *kinds])]
            area = clustered_auc(
                rows["log_odds"].to_numpy(dtype=float),
                (rows["kind"] == "positive").to_numpy(dtype=float),
                rows[self.report.cluster].to_numpy(dtype=object),
            )
            row |= spread(area, {"auc": name})
        return row

    def _right(self, part: pd.DataFrame) -> dict[str, object]:
        """Compute the accuracy on some examples of one kind."""
        rates = self._accuracies(part)
        row = {"n": rates["n"], "n_clusters": rates["n_clusters"]}
        return row | {f"accuracy{end}": rates[f"raw_accuracy{end}"] for end in _ENDS}

    def sections(self, tables: Mapping[str, Table]) -> list[Section]:
        """Put the linking tables before those of the orders; see `PairedReport.sections`."""
        linking = Section(
            anchor="linking",
            title="Which names are linked",
            blocks=[tables[name] for name in ("linking", "linking_kinds", "linking_orders")],
        )
        return [linking, *super().sections(tables)]

    def finding(self, tables: Mapping[str, Table]) -> Finding:
        """Say how well names of one entity are told from names of two."""
        frame = tables["linking"].frame
        rows = frame[(frame["group"] == "all") & (frame["label"] == "all")].to_dict("records")
        orders = [(row, self._noise_sentence(tables, row)) for row in self._rows(tables)]
        return Finding(
            sentence=_WORDING.sentence("finding", rows=rows, clusters=self.clusters),
            summary=_WORDING.sentence("summary", rows=rows, orders=orders),
            warning=self.warning(),
            facts=self.key_facts(),
        )

    def _own_tables(self) -> set[str]:
        """Name the tables that stand in other sections than that of checks."""
        return {*super()._own_tables(), "linking", "linking_kinds", "linking_orders"}


def _labelled(
    runs: Iterable[Run], parts: Callable[[pd.DataFrame], Iterable[pd.DataFrame]]
) -> pd.DataFrame:
    """List the examples of each part of each run, with the columns that name run and part."""
    frames = [
        part.assign(model=run.label) for run in runs for part in parts(run.outcomes) if len(part)
    ]
    return pd.concat(frames, ignore_index=True)


def _with_odds(run: Run) -> pd.DataFrame:
    """Name the log-odds by which the verdicts of a run were told."""
    is_calibrated = run.scoring is not None and run.scoring.settings.get("calibrated")
    name = "calibrated_log_odds" if is_calibrated else "log_odds"
    told = {f"{side}_odds": run.outcomes[f"{side}_{name}"] for side in ("first", "second")}
    return run.outcomes.assign(**told)


def _of_side(outcomes: pd.DataFrame, side: str) -> pd.DataFrame:
    """Take the verdicts of one order of the names, and the log-odds by which they were told."""
    return outcomes.assign(correct=outcomes[f"{side}_correct"], log_odds=outcomes[f"{side}_odds"])


def _groups(outcomes: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Take all examples, those without the disputable, each type and each category."""
    whole = _of_side(outcomes, "first")
    totals = _of_totals(whole)
    yield totals.assign(group="all", label="all")
    if totals["is_disputable"].any():
        yield totals[~totals["is_disputable"]].assign(group="all", label="but disputable ones")
    for name, kind in TYPES.items():
        is_of_type = [name in types for types in totals["types"]]
        yield totals[is_of_type].assign(group="type", label=kind.title)
    for name, category in CATEGORIES.items():
        is_of_category = [name in categories for categories in whole["categories"]]
        yield whole[is_of_category].assign(group="category", label=category.name)


def _kinds(outcomes: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Take the examples of each kind, whole, by whether they are disputable, and by type."""
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
