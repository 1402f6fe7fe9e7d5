"""Tables of any paired study: what holds wherever there are two verdicts on one fact."""

import functools
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.engine.paired.answers import answer_agreement
from surface_consistency.engine.paired.contrasts import (
    COUNTS,
    VERDICTS,
    ContrastTables,
    detectable_note,
    scored_pairs,
)
from surface_consistency.engine.paired.wording import note
from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.matching.rules import rule_in_file
from surface_consistency.metrics import (
    PAIRED_RATES,
    adjust_p_values,
    kappa_of_counts,
    paired_by,
    pooled_rates,
)
from surface_consistency.report.page import Dot
from surface_consistency.runs.loader import Run
from surface_consistency.runs.processes import map_processes
from surface_consistency.tables.columns import COLUMNS
from surface_consistency.tables.numbers import interval_value, least_found
from surface_consistency.tables.table import Column, Table, interval_column
from surface_consistency.tables.tabulation import describe

TEST_NAMES: Final[Mapping[str, str]] = {
    "t": "t of clusters",
    "obuchowski": "Obuchowski",
    "durkalski": "Durkalski",
    "exact": "McNemar, exact",
    "corrected": "McNemar, corrected",
}
"""Names of tests for people."""

_FEW_ROWS: Final = 50_000
"""Pairs for which further processes do not pay."""
_REACHING: Final = ("flip_rate", "accuracy_difference")
"""Rates whose intervals are told for each kind of cluster."""
_LEAST_POOLED: Final = 10
"""Groups from which on their rates are pooled."""
_LOW_ACCURACY: Final = 0.05


def _pooled(rows: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Return pooled flip rates and their bounds, shape `(3, n_groups)`; NaN for few groups."""
    weights = rows["design_effect"].fillna(1.0).clip(lower=1.0).to_numpy(dtype=np.float64)
    trials = rows["n"].to_numpy(dtype=np.float64) / weights
    if np.count_nonzero(trials) < _LEAST_POOLED:
        return np.full((3, len(rows)), np.nan)
    events = (rows["first_only"] + rows["second_only"]).to_numpy(dtype=np.float64) / weights
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        pooled = pooled_rates(events, trials)
    return np.stack([pooled.rates, pooled.low, pooled.high])


def model_dots(rows: pd.DataFrame, name: str, index: Mapping[str, int], *, n: str) -> list[Dot]:
    """Make a mark of each model's number, for a row of a chart.

    Args:
        rows: One row a model; those in which the number is NaN get no mark.
        name: Column of the number, with its bounds as for `interval_value`.
        index: Place of each model by its label.
        n: Column of how many the number is of, which are its clusters too.

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


def is_hardly_right(row: Mapping[Any, Any]) -> bool:
    """Tell whether a model is right so seldom that its verdicts agree by being wrong twice.

    Args:
        row: A row of `metrics.paired_by`.

    Returns:
        Whether both accuracies are below 5 %; not of a row without pairs.
    """
    return bool(row["n"]) and max(row["first_accuracy"], row["second_accuracy"]) < _LOW_ACCURACY


def paired_columns(
    conditions: tuple[str, str],
    labels: Sequence[Column] = (),
    *,
    cluster: str = "facts",
    adjusted: bool = False,
) -> list[Column]:
    """Describe the columns of a table of `paired_by`.

    Args:
        conditions: What the conditions are called.
        labels: Columns before the numbers.
        cluster: What intervals take as a whole, in the plural.
        adjusted: Whether the p-value is that of `adjusted_p_value`.

    Returns:
        The columns that people see: pairs, clusters, square, flips, accuracies, difference, test.
    """
    p_key, p_unit = ("adjusted_p_value", "Holm") if adjusted else ("mcnemar_p_value", "")
    return [
        *labels,
        COLUMNS["n"],
        Column(key="n_clusters", title=cluster.capitalize(), kind="count", on_phones=False),
        Column(key="square", title="Square", kind="square", cells=COUNTS),
        interval_column("flip_rate", "Flips", "rate", "%", direction="lower"),
        *(
            Column(
                key=key, title=name.capitalize(), kind="rate", unit="right, %", direction="higher"
            )
            for key, name in zip(("first_accuracy", "second_accuracy"), conditions, strict=True)
        ),
        interval_column(
            "accuracy_difference", "Difference", "difference", "points", direction="higher"
        ),
        Column(key=p_key, title="p", kind="p_value", unit=p_unit, on_phones=False),
        Column(key="mcnemar_method", title="Test", labels=TEST_NAMES, on_phones=False),
    ]


def table_of_runs(
    runs: Sequence[Run], caption: str, tables: Mapping[str, pd.DataFrame | None]
) -> Table:
    """Put one table of each run below each other, its columns described by their types alone.

    Args:
        runs: The runs.
        caption: Heading of the table.
        tables: A table by the run's label; None where there is none.

    Returns:
        The rows with the column `model` first. Those of a table that names models itself keep
        theirs, save the run's own, which gets its label.
    """
    parts = []
    for run in runs:
        table = tables.get(run.label)
        if table is None:
            continue
        labels = [run.label] * len(table)
        if "model" in table:
            labels = [run.label if m == run.manifest.model else m for m in table["model"]]
        rest = table.drop(columns="model", errors="ignore")
        rest.insert(0, "model", pd.Series(labels, index=rest.index, dtype="object"))
        parts.append(rest)
    frame = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    kinds: Mapping[str, Literal["count", "number"]] = {"i": "count", "u": "count", "f": "number"}
    columns = [
        Column(key=str(name), title=str(name).replace("_", " "), kind=kinds.get(kind, "label"))
        for name, kind in ((name, frame[name].dtype.kind) for name in frame.columns)
    ]
    return Table(frame=frame, caption=caption, columns=columns)


def _paired_table(
    frame: pd.DataFrame, *, keys: list[str], cluster: str, has_kappa: bool
) -> pd.DataFrame:
    """Compute the metrics by some columns."""
    kappa = {"kappa": kappa_of_counts} if has_kappa else {}
    table = paired_by(frame, by=keys, cluster=cluster, rates={**PAIRED_RATES, **kappa})
    return with_detectable(table)


def with_detectable(table: pd.DataFrame, name: str = "accuracy_difference") -> pd.DataFrame:
    """Add what differences so many pairs could have shown.

    Args:
        table: A table with the bounds of a difference.
        name: The difference.

    Returns:
        The table with `detectable_difference`, of `least_found`: the true difference that the test
        finds with a probability of 80 %; NaN where there is no interval.
    """
    bounds = (table[f"{name}_{end}"] for end in ("low", "high"))
    return table.assign(detectable_difference=least_found(*bounds))


class PairedTables(ContrastTables):
    """Computes the tables of a study's runs.

    Args:
        report: The runs.
    """

    def tables(self) -> dict[str, Table]:
        """Compute "overall", one table a grouping, "same_answer", and what is held against what.

        Returns:
            Tables by name. "overall" and the groupings have the columns of `metrics.paired_by` and
            detectable_difference (`with_detectable`). "overall" has kappa with its interval and
            odds_ratio (first_only / second_only) besides, the groupings adjusted_p_value, Holm's
            over the groups of a model, and those of ten groups or more flip_rate_pooled, of
            `metrics.pooled_rates`. Further those of `ContrastTables`, and "generalisation" where
            the study knows several clusters.
        """
        tables = {"overall": self.overall()}
        tables |= {
            name: self.grouped(name, columns) for name, columns in self.design.groupings.items()
        }
        tables |= self.generalisation()
        return tables | self.contrasts() | self.same_answers()

    def overall(self) -> Table:
        """Compute the rates of all pairs, by model and panel.

        Returns:
            The table.
        """
        keys = self.design.keys()
        frame = self._paired(keys, has_kappa=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = frame["first_only"].to_numpy(float) / frame["second_only"].to_numpy(float)
        frame = frame.assign(odds_ratio=odds)
        return Table(
            frame=frame,
            caption="All pairs",
            columns=self.score_columns(self.label_columns(keys)),
            note=detectable_note(frame),
            cluster_column="n_clusters",
        )

    def grouped(self, name: str, columns: tuple[str, ...]) -> Table:
        """Compute the rates of groups of pairs.

        Args:
            name: Name of the table.
            columns: Columns of the outcomes that make the groups.

        Returns:
            The table.
        """
        keys = self.design.keys(*columns)
        frame = self._paired(keys)
        labels = [self.design.shown(key) for key in keys]
        adjusted = np.full(len(frame), np.nan)
        pooled = np.full((3, len(frame)), np.nan)
        heads = [key for key in labels if key in ("model", self.facet)]
        for _, places in frame.reset_index(drop=True).groupby(heads, sort=False).indices.items():
            adjusted[places] = adjust_p_values(frame["mcnemar_p_value"].to_numpy()[places])
            pooled[:, places] = _pooled(frame.iloc[places])
        frame = frame.assign(adjusted_p_value=adjusted)
        above = self.above_noise_by(columns)
        if len(above):
            places = pd.MultiIndex.from_frame(frame[list(above.index.names)].astype(str))
            frame = frame.assign(above_noise_p_value=above.reindex(places).to_numpy())
        order = [*labels[len(heads) :], *heads]
        shown = self.score_columns(self.label_columns(order), adjusted=True)
        is_pooled = not np.isnan(pooled[0]).all()
        if is_pooled:
            ends = ("", "_low", "_high")
            frame = frame.assign(
                **{f"flip_rate_pooled{end}": row for end, row in zip(ends, pooled, strict=True)}
            )
            shown.append(interval_column("flip_rate_pooled", "Pooled", "rate", "flips, %"))
        return Table(
            frame=frame,
            caption=name.replace("_", " ").capitalize(),
            columns=shown,
            note=note("groups_note", is_pooled=is_pooled, detectable=detectable_note(frame)),
            cluster_column="n_clusters",
        )

    def generalisation(self) -> dict[str, Table]:
        """Compute how sure the flip rate is for other facts, subjects or relations.

        Returns:
            "generalisation", one row a model, panel and cluster of the study; nothing where the
            study knows a single one, or the outcomes hold no other.
        """
        held = [name for name in self.design.clusters if self.frame[name].notna().all()]
        scored = scored_pairs(self.frame)
        if len(held) < 2 or scored.empty:
            return {}
        keys = self.design.keys()
        parts = []
        for name in held:
            with warnings.catch_warnings():
                # A single cluster has no interval, as the table says.
                warnings.simplefilter("ignore", UndefinedMetricWarning)
                table = paired_by(
                    scored,
                    by=keys,
                    cluster=name,
                    rates={rate: PAIRED_RATES[rate] for rate in _REACHING},
                )
            table = table.rename(columns=dict(self.design.exploded_names))
            table = self._sorted(table, keys)
            table.insert(len(keys), "cluster", self.design.clusters[name])
            parts.append(table)
        return {
            "generalisation": describe(
                pd.concat(parts, ignore_index=True),
                "How far the numbers reach",
                [
                    *self.label_columns(keys),
                    Column(key="cluster", title="For other"),
                    "n_clusters flip_rate accuracy_difference",
                ],
                titles={"n_clusters": "Number"},
                note=note(
                    "generalisation_note", kinds=[self.design.clusters[name] for name in held]
                ),
                cluster_column="n_clusters",
            )
        }

    def same_answers(self) -> dict[str, Table]:
        """Compute how often the answers of a pair are the same, not their verdicts alone.

        Returns:
            "same_answer", with the columns of `answer_agreement`; nothing for outcomes that do not
            hold the answers.
        """
        keys = self.design.keys()
        rules = [self.answer_rule(run) for run in self.report.runs]
        parts = [
            answer_agreement(
                run.outcomes.assign(
                    first_prediction=pd.Series(first, dtype=object),
                    second_prediction=pd.Series(second, dtype=object),
                ),
                by=keys,
                cluster=self.report.cluster,
                rule=rule,
            )
            for run, rule in zip(self.report.runs, rules, strict=True)
            if {"first_prediction", "second_prediction"} <= {*run.outcomes}
            for first, second in [self.answer_texts(run)]
        ]
        frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
        if frame.empty:
            return {}
        among = {"all": "all", "both wrong": "wrong both times"}
        return {
            "same_answer": describe(
                self._sorted(frame.rename(columns=dict(self.design.exploded_names)), keys),
                "Pairs with the same answer",
                [
                    *self.label_columns(keys),
                    Column(key="among", title="Among", labels=among),
                    "n",
                    interval_column("same_answer", "Same words", "rate", "%"),
                    interval_column("same_by_rule", "Same by the rule", "rate", "%"),
                ],
                note=note("same_answer_note", rules=list(dict.fromkeys(rules))),
                cluster_column="n_clusters",
            )
        }

    def answer_texts(self, run: Run) -> tuple[list[str | None], list[str | None]]:
        """Give the answers of each pair that are compared with each other.

        Args:
            run: A run whose outcomes hold answers.

        Returns:
            The judged part under the first and the second condition, pair by pair.
        """
        outcomes = run.outcomes
        return tuple(  # type: ignore[return-value]
            pd.Series(outcomes[name].to_numpy(dtype=object))
            .where(lambda text: text.notna(), None)
            .tolist()
            for name in ("first_prediction", "second_prediction")
        )

    def answer_rule(self, run: Run) -> str:
        """Name the rule by which two answers are the same.

        Args:
            run: The run.

        Returns:
            The rule that judged it; token_f1 where that was none, or none registered.
        """
        settings = {} if run.scoring is None else run.scoring.settings
        return rule_in_file(str(settings.get("rule") or "token_f1"), run.folder.scoring)

    def score_columns(self, labels: Sequence[Column], *, adjusted: bool = False) -> list[Column]:
        """Describe the columns of "overall" and of the groupings.

        Args:
            labels: Columns before the numbers.
            adjusted: Whether the p-value is that of `adjusted_p_value`.

        Returns:
            The columns that people see.
        """
        return paired_columns(
            self.design.conditions, labels, cluster=self.clusters, adjusted=adjusted
        )

    def _paired(self, keys: list[str], *, has_kappa: bool = False) -> pd.DataFrame:
        """Compute the metrics by some columns; sort the rows for reading."""
        cluster = self._cluster_within(keys)
        wanted = list(dict.fromkeys([*keys, cluster, *VERDICTS]))
        frames = [run.outcomes[wanted] for run in self.report.runs]
        compute = functools.partial(_paired_table, keys=keys, cluster=cluster, has_kappa=has_kappa)
        is_large = sum(map(len, frames)) > _FEW_ROWS
        parts = map_processes(compute, frames, n_workers=None if is_large else 1)
        table = pd.concat(parts, ignore_index=True)
        return self._sorted(table.rename(columns=dict(self.design.exploded_names)), keys)

    def _cluster_within(self, keys: Sequence[str]) -> str:
        """Name what intervals take whole in groups: within one relation, not relations."""
        if self.report.cluster not in keys:
            return self.report.cluster
        others = [name for name in self.design.clusters if name not in keys]
        return next((name for name in others if self.frame[name].notna().all()), "fact_id")

    def _sorted(self, table: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
        """Sort the rows of a table for reading: the models of a group side by side."""
        names = [self.design.shown(key) for key in keys]
        ordered = [*names[1:], names[0]]
        places = [
            tuple(self._rank(name, value) for name, value in zip(ordered, values, strict=True))
            for values in zip(*(table[name] for name in ordered), strict=True)
        ]
        rows = sorted(range(len(table)), key=places.__getitem__)
        return table.iloc[rows].reset_index(drop=True)

    def _rank(self, name: str, value: object) -> tuple[int, str]:
        """Order labels as the study does; those that it does not list follow by name."""
        order = self.index if name == "model" else self.design.labels.get(name, {})
        places = list(order)
        return (places.index(value) if value in places else len(places), str(value))

    def _rows(self, tables: Mapping[str, Table]) -> list[dict[Any, Any]]:
        """Give the rows of "overall" of the first panel, one a model, where there is a pair."""
        frame = tables["overall"].frame
        if self.facet is not None:
            frame = frame[frame[self.facet] == frame[self.facet].iloc[0]]
        return frame.drop_duplicates("model").to_dict("records")
