"""Tables of any paired study: what holds wherever there are two verdicts on one fact."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.engine.answer_agreement import answer_agreement
from surface_consistency.engine.contrast_tables import COUNTS, ContrastTables
from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import (
    PAIRED_RATES,
    adjust_p_values,
    kappa_of_counts,
    minimum_detectable_difference,
    paired_by,
    pooled_rates,
)
from surface_consistency.report.numbers import interval_value
from surface_consistency.report.page import Dot
from surface_consistency.report.table import Column, Table, interval_column
from surface_consistency.runs.loader import Run
from surface_consistency.runs.processes import map_processes

__all__ = [
    "COUNTS",
    "TEST_NAMES",
    "PairedTables",
    "detectable_note",
    "interval_value",
    "is_hardly_right",
    "model_dots",
    "paired_columns",
    "table_of_runs",
    "with_detectable",
]

TEST_NAMES: Final[Mapping[str, str]] = {
    "obuchowski": "Obuchowski",
    "durkalski": "Durkalski",
    "exact": "McNemar, exact",
    "corrected": "McNemar, corrected",
}
"""Names of tests for people."""

_VERDICTS: Final = ("first_correct", "second_correct")
_FEW_ROWS: Final = 50_000
"""Pairs for which further processes do not pay."""
_REACHING: Final = ("flip_rate", "accuracy_difference")
"""Rates whose intervals are told for each kind of cluster."""
_LEAST_POOLED: Final = 10
"""Groups from which on their rates are pooled."""
_FEWEST_CLUSTERS: Final = 10
"""Below so many the design effect of a table is not known, and with it what a test could find."""
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
        found = pooled_rates(events, trials)
    return np.stack([found.rates, found.low, found.high])


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
    first, second = conditions
    p_key, p_unit = ("adjusted_p_value", "Holm") if adjusted else ("mcnemar_p_value", "")
    return [
        *labels,
        Column(key="n", title="Pairs", kind="count"),
        Column(key="n_clusters", title=cluster.capitalize(), kind="count", on_phones=False),
        Column(key="square", title="Square", kind="square", cells=COUNTS),
        interval_column("flip_rate", "Flips", "rate", "%", direction="lower"),
        Column(
            key="first_accuracy",
            title=first.capitalize(),
            kind="rate",
            unit="right, %",
            direction="higher",
        ),
        Column(
            key="second_accuracy",
            title=second.capitalize(),
            kind="rate",
            unit="right, %",
            direction="higher",
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Paired:
    """The pairs of one model, and how to compare their verdicts."""

    frame: pd.DataFrame
    keys: list[str]
    cluster: str
    has_kappa: bool


def _paired_table(task: _Paired) -> pd.DataFrame:
    """Compute the metrics by some columns."""
    kappa = {"kappa": kappa_of_counts} if task.has_kappa else {}
    table = paired_by(
        task.frame,
        by=task.keys,
        cluster=task.cluster,
        rates={**PAIRED_RATES, **kappa},
    )
    return with_detectable(table)


def with_detectable(table: pd.DataFrame) -> pd.DataFrame:
    """Add what differences in accuracy so many pairs could have shown.

    Args:
        table: A table of `paired_by`: n, n_clusters, flip_rate and design_effect.

    Returns:
        The table with `detectable_difference`: the smallest difference that the test finds with a
        probability of 80 %, as of `minimum_detectable_difference`, with the group's flip rate and
        its design effect where that is above 1; NaN where none could be found, and below ten
        clusters, which do not tell the design effect.
    """
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        for row in table.to_dict("records"):
            effect = max(1.0, row["design_effect"]) if row["design_effect"] > 0 else 1.0
            found.append(
                minimum_detectable_difference(
                    int(row["n"]), discordant_rate=float(row["flip_rate"]), design_effect=effect
                )
                if row["flip_rate"] > 0 and row.get("n_clusters", math.inf) >= _FEWEST_CLUSTERS
                else math.nan
            )
    return table.assign(detectable_difference=np.asarray(found, dtype=np.float64))


def detectable_note(frame: pd.DataFrame) -> str:
    """Say what the pairs of a table could have shown.

    Args:
        frame: A table of `with_detectable`: n and detectable_difference.

    Returns:
        Sentences to stand below it; nothing for a table without pairs.
    """
    known = frame.loc[frame["n"] > 0, "detectable_difference"].dropna()
    n_without = int((frame["n"] > 0).sum()) - len(known)
    told = []
    if len(known):
        low, high = (f"{100 * end:.1f}" for end in (known.min(), known.max()))
        span = low if low == high else f"{low} to {high}, by row"
        told.append(
            "With so many pairs the test finds a difference of at least this many points with a "
            f"probability of 80 %: {span}."
        )
    if n_without:
        told.append(
            f"In {n_without} of {n_without + len(known)} rows the test could hardly have found any "
            "difference: that it finds none there means nothing."
        )
    return " ".join(told)


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
        note = (
            "p is corrected by Holm's method for the rows of a model; the column beside it says by "
            "which test: Obuchowski's where clusters hold several pairs. "
        )
        order = [*labels[len(heads) :], *heads]
        shown = self.score_columns(self.label_columns(order), adjusted=True)
        if not np.isnan(pooled[0]).all():
            ends = ("", "_low", "_high")
            frame = frame.assign(
                **{f"flip_rate_pooled{end}": row for end, row in zip(ends, pooled, strict=True)}
            )
            shown.append(interval_column("flip_rate_pooled", "Pooled", "rate", "flips, %"))
            note += (
                "Pooled draws the flip rate of a small group towards that of all, as far as groups "
                "differ by no more than chance (beta-binomial). "
            )
        return Table(
            frame=frame,
            caption=name.replace("_", " ").capitalize(),
            columns=shown,
            note=note + detectable_note(frame),
            cluster_column="n_clusters",
        )

    def generalisation(self) -> dict[str, Table]:
        """Compute how sure the flip rate is for other facts, subjects or relations.

        Returns:
            "generalisation", one row a model, panel and cluster of the study; nothing where the
            study knows a single one, or the outcomes hold no other.
        """
        held = [name for name in self.design.clusters if self.frame[name].notna().all()]
        is_scored = self.frame["first_correct"].notna() & self.frame["second_correct"].notna()
        if len(held) < 2 or not is_scored.any():
            return {}
        keys = self.design.keys()
        parts = []
        for name in held:
            with warnings.catch_warnings():
                # A single cluster has no interval, as the table says.
                warnings.simplefilter("ignore", UndefinedMetricWarning)
                table = paired_by(
                    self.frame[is_scored],
                    by=keys,
                    cluster=name,
                    rates={rate: PAIRED_RATES[rate] for rate in _REACHING},
                )
            table = table.rename(columns=dict(self.design.exploded_names))
            table = self._sorted(table, keys)
            table.insert(len(keys), "cluster", self.design.clusters[name])
            parts.append(table)
        return {
            "generalisation": Table(
                frame=pd.concat(parts, ignore_index=True),
                caption="How far the numbers reach",
                note="An interval that takes subjects whole holds for other subjects of the same "
                "relations; one that takes relations whole also for other relations, as far as "
                "those asked are a sample of them.",
                columns=[
                    *self.label_columns(keys),
                    Column(key="cluster", title="For other"),
                    Column(key="n_clusters", title="Number", kind="count"),
                    interval_column("flip_rate", "Flips", "rate", "%"),
                    interval_column("accuracy_difference", "Difference", "difference", "points"),
                ],
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
        parts = [
            answer_agreement(
                run.outcomes.assign(
                    first_prediction=pd.Series(first, dtype=object),
                    second_prediction=pd.Series(second, dtype=object),
                ),
                by=keys,
                cluster=self.report.cluster,
                rule=self.answer_rule(run),
            )
            for run in self.report.runs
            if {"first_prediction", "second_prediction"} <= {*run.outcomes}
            for first, second in [self.answer_texts(run)]
        ]
        frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
        if frame.empty:
            return {}
        rules = dict.fromkeys(self.answer_rule(run) for run in self.report.runs)
        shown = self.label_columns(keys)
        among = {"all": "all", "both wrong": "wrong both times"}
        return {
            "same_answer": Table(
                frame=self._sorted(frame.rename(columns=dict(self.design.exploded_names)), keys),
                caption="Pairs with the same answer",
                note="The same verdict is not the same answer: two wrong answers may differ. Words "
                "are compared after normalisation, without order or wording forgiven; the rule "
                f"{' / '.join(rules)} takes one answer for the other where it would accept it.",
                columns=[
                    *shown,
                    Column(key="among", title="Among", labels=among),
                    Column(key="n", title="Pairs", kind="count"),
                    *(
                        interval_column(key, title, "rate", "%")
                        for key, title in (
                            ("same_answer", "Same words"),
                            ("same_by_rule", "Same by the rule"),
                        )
                    ),
                ],
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
            outcomes[name].astype(object).where(outcomes[name].notna(), None).tolist()
            for name in ("first_prediction", "second_prediction")
        )

    def answer_rule(self, run: Run) -> str:
        """Name the rule by which two answers are the same.

        Args:
            run: The run.

        Returns:
            The rule that judged it; token_f1 where that was no rule, or is not recorded.
        """
        settings = {} if run.scoring is None else run.scoring.settings
        return str(settings.get("rule") or "token_f1")

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
        wanted = list(dict.fromkeys([*keys, cluster, *_VERDICTS]))
        tasks = [
            _Paired(
                frame=run.outcomes[wanted],
                keys=keys,
                cluster=cluster,
                has_kappa=has_kappa,
            )
            for run in self.report.runs
        ]
        n_rows = sum(len(task.frame) for task in tasks)
        parts = map_processes(_paired_table, tasks, n_workers=None if n_rows > _FEW_ROWS else 1)
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

    def _rank(self, name: str, value: Any) -> tuple[int, str]:  # noqa: ANN401
        """Order labels as the study does; those that it does not list follow by name."""
        order = self.index if name == "model" else self.design.labels.get(name, {})
        places = list(order)
        return (places.index(value) if value in order else len(places), str(value))

    def _rows(self, tables: Mapping[str, Table]) -> list[dict[Any, Any]]:
        """Give the rows of "overall" of the first panel, one a model, where there is a pair."""
        frame = tables["overall"].frame
        if self.facet is not None:
            frame = frame[frame[self.facet] == frame[self.facet].iloc[0]]
        return frame.drop_duplicates("model").to_dict("records")
