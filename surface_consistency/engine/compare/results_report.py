"""What a comparison of models says by one metric: its sentences, tables and charts."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from surface_consistency.clusters import FEW_CLUSTERS
from surface_consistency.engine.compare.results import SAID_MISSING, ComparedResults
from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics.comparison.comparisons import VERDICTS, ModelComparisonResult
from surface_consistency.metrics.paired.effect_sizes import kappa_of_counts
from surface_consistency.metrics.paired.paired_groups import paired_by
from surface_consistency.metrics.paired.paired_tables import PAIRED_RATES, CountRatio
from surface_consistency.metrics.uncertainty.bootstrap import Statistic
from surface_consistency.metrics.uncertainty.intervals import Intervals
from surface_consistency.report.page import (
    Check,
    Dot,
    ForestPlot,
    MosaicPlot,
    MosaicPlots,
    Part,
    Value,
)
from surface_consistency.report.wording import Wording
from surface_consistency.tables.columns import catalogue
from surface_consistency.tables.numbers import (
    format_interval,
    format_number,
    interval_value,
    least_found,
    span_text,
    value_text,
)
from surface_consistency.tables.table import Column, Table, interval_column
from surface_consistency.tables.tabulation import describe

WORDING: Final = Wording("surface_consistency.engine.compare", "models.md.jinja")
"""The template `models.md.jinja`."""

MOST_LISTED: Final = 20
"""Changed items that are listed."""

_NO_EQUALITY: Final = (
    "“Not told apart” is no equality: only an interval within a margin is called equivalent."
)
_CELLS: Final = ("both", "reference_only", "model_only", "neither")
_MOST_DRAWN: Final = 60
_MOST_STRIPS: Final = 100


_FLIPS: Final[Mapping[str, Statistic]] = {
    "negative_flip_rate": PAIRED_RATES["negative_flip_rate"],
    "lost_of_known": CountRatio(numerator=(0, 1, 0, 0), denominator=(1, 1, 0, 0)),
    "positive_flip_rate": PAIRED_RATES["positive_flip_rate"],
    "gained_of_unknown": CountRatio(numerator=(0, 0, 1, 0), denominator=(0, 0, 1, 1)),
    "consistency": PAIRED_RATES["consistency"],
    "kappa": kappa_of_counts,
}
"""What flips between the verdicts of two models; the reference is what was known."""
_FLIP_COLUMNS: Final = [f"{name}{end}" for name in _FLIPS for end in ("", "_low", "_high")]


def _flips(pairs: pd.DataFrame, column: str, level: float) -> pd.DataFrame:
    """Compute what flips between two models, by the labels of a column or of all items ("")."""
    frame = pairs[["score_of_reference", "score", "_cluster"]]
    with warnings.catch_warnings():
        # What cannot be inferred stands in the cells.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        rows = paired_by(
            frame.assign(group=pairs[column]) if column else frame,
            by=["group"] if column else [], first="score_of_reference", second="score",
            cluster="_cluster", rates=_FLIPS, intervals=Intervals(level=level),
        )  # fmt: skip
    if not column:
        return rows[_FLIP_COLUMNS]
    return rows.assign(by=column, group=rows["group"].astype(str))[["by", "group", *_FLIP_COLUMNS]]


class ComparisonReport:
    """Sentences, tables and page of one metric of a comparison.

    Args:
        compared: The comparison.
        metric: The metric.
    """

    def __init__(self, compared: ComparedResults, metric: str) -> None:
        self.compared, self.metric = compared, metric
        self.result: ModelComparisonResult = compared.metrics[metric]
        frame = self.result.differences
        detectable = least_found(frame["difference_low"], frame["difference_high"])
        self.differences = frame.assign(detectable=detectable)
        is_share = self.result.scale == VERDICTS
        self.rate: Literal["rate", "number"] = "rate" if is_share else "number"
        self.kind: Literal["difference", "number"] = "difference" if is_share else "number"
        self.what = metric or "the score"
        self.scored = f", judged by {metric}" if compared.settings.rule else f" on {self.what}"
        self.groups = self.result.groups
        self.is_of_right = self.result.is_verdicts and not compared.settings.lower_is_better
        self.has_flips = self.is_of_right and len(compared.models) == 2 and self.n_tasks == 1
        if self.has_flips:
            row = self.differences.iloc[0]
            pairs = compared.paired(metric, row["model"], row["reference"])
            level = compared.table.confidence
            self.differences = pd.concat([self.differences, _flips(pairs, "", level)], axis=1)
            parts = [_flips(pairs, column, level) for column in self.groups["by"].unique()]
            if parts:
                self.groups = self.groups.merge(pd.concat(parts), on=["by", "group"], how="left")

    def finding(self) -> list[Part]:
        """Say what the comparison shows, first what is missing.

        Returns:
            Words and numbers.
        """
        n, n_any = self.result.n_items, self.result.n_items_of_any
        parts = WORDING.sentence(
            "missing", share=1 - n / n_any, most=SAID_MISSING, n_items=n, n_any=n_any
        )
        sentence = self._best() if self._of_all() else self._between(self._leading())
        return [*sentence, *([" ", *parts] if parts else [])]

    def few(self) -> list[Part]:
        """Say on how few clusters the comparison stands.

        Returns:
            Words; none where clusters are enough, or nothing is inferred.
        """
        rows, frame = self.differences, self.compared.rows
        n = rows.loc[rows["conclusion"] != "not inferred", "n_clusters"].min()
        are_items = frame["_cluster"].nunique() == frame["_unit"].nunique()
        return WORDING.sentence(
            "few",
            n=n,
            few=FEW_CLUSTERS,
            clusters=self.compared.cluster_note,
            can_be_items=not are_items and self.compared.runs is None,
        )

    def summary(self) -> list[Part]:
        """Say who else is told apart, what could have been found, and which tasks disagree.

        Returns:
            Words and numbers.
        """
        rows, groups = self.differences, self.groups
        against = groups[groups["is_against"] & (groups["by"] == "task")]
        shown = against[against["is_shown_against"]]
        least = rows["detectable"].median() if len(rows) > 1 else np.nan
        noise = self.compared.noise
        return WORDING.sentence(
            "summary",
            n_tasks=self.n_tasks,
            names=[] if len(rows) == 1 or self._of_all() else self._names(),
            reference=rows["reference"].iat[0],
            least=None if np.isnan(least) else float(least),
            equality=self._equality(),
            alpha=1 - self.compared.table.confidence,
            against=shown.head(5).to_dict("records"),
            n_unshown=against["group"].nunique() - shown["group"].nunique(),
            noise=noise[noise["metric"] == self.metric].to_dict("records"),
            kind=self.kind,
            flips=rows.to_dict("records") if self.has_flips else [],
        )

    def tables(self) -> dict[str, Table]:
        """Describe the frames.

        Returns:
            "differences", "models", and a table "by_<column>" for tasks and each slice.
        """
        tables = {"differences": self._differences(), "models": self._models()}
        for column, frame in self.groups.groupby("by", sort=False):
            tables[f"by_{column}"] = self._groups(str(column), frame)
        return tables

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        groups = self.result.groups
        return max(1, int(groups.loc[groups["by"] == "task", "group"].nunique()))

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.result.models["n_clusters"].max())

    def _equality(self) -> object:
        """Return the test that all models are alike, where it is one."""
        equality = self.result.equality
        return None if equality is None or np.isnan(equality.p_value) else equality

    def _of_all(self) -> bool:
        """Tell whether all pairs of several models are compared."""
        return len(self.compared.models) > 2 and self.compared.settings.baseline is None

    def _leading(self) -> dict[Any, Any]:
        """Return the row of the finding: that of the best model beside the reference."""
        return self.differences.iloc[self._leading_row()].to_dict()

    def _leading_row(self) -> int:
        """Return where the row of the finding stands."""
        order = {name: place for place, name in enumerate(self.result.models["model"])}
        return int(self.differences["model"].map(order).to_numpy().argmin())

    def _best(self) -> list[Part]:
        """Say which models may be the best."""
        models = self.result.models
        return WORDING.sentence(
            "best",
            best=models.loc[models["may_be_best"], "model"].tolist(),
            n_models=len(models),
            level=f"{100 * self.compared.table.confidence:g}",
            scored=self.scored,
        )

    def _between(self, row: Mapping[Any, Any]) -> list[Part]:
        """Say what the difference of two models shows."""
        margin = self.compared.settings.margin
        return WORDING.sentence(
            "between",
            row=row,
            scored=self.scored,
            rule=self.compared.settings.rule,
            kind=self.kind,
            by_holm=" by Holm’s method" if len(self.differences) > 1 else "",
            margin="" if margin is None else value_text(plain_difference(margin, self.kind)),
            most=self.result.scale[1] - self.result.scale[0],
        )

    def _names(self) -> list[tuple[str, list[str]]]:
        """Group the other models by what is shown of them."""
        words = {
            "better": "better than",
            "worse": "worse than",
            "equivalent": "equivalent to",
            "not told apart": "not told apart from",
            "not inferred": "of too few clusters to be held against",
        }
        rows = self.differences.drop(index=self.differences.index[self._leading_row()])
        named = [
            (verb, rows.loc[rows["conclusion"] == key, "model"]) for key, verb in words.items()
        ]
        return [(verb, list(models)) for verb, models in named if len(models)]

    def _differences(self) -> Table:
        """Describe the differences."""
        several, has_margin = len(self.differences) > 1, self.compared.settings.margin is not None
        unit = "both/reference/model/neither"
        return self._described(
            self.differences,
            "Differences",
            "model reference difference p_value",
            "p_value_holm" if several else "",
            "conclusion",
            "p_equivalent_holm p_not_worse_holm" if has_margin else "",
            "detectable n n_clusters reference_mean model_mean",
            Column(key="square", title="Right", kind="square", unit=unit, cells=_CELLS)
            if self.is_of_right
            else "",
            "pooled_difference" if self.n_tasks > 1 else "",
            self._flip_keys(),
            note=self._scale(),
        )

    def _described(
        self, frame: pd.DataFrame, caption: str, *shown: str | Column, note: str = ""
    ) -> Table:
        """Describe a frame by the columns of all tables."""
        caption = f"{caption} ({self.what})"
        return describe(frame, caption, shown, self._columns(), model=None, note=note)

    def _columns(self) -> dict[str, Column]:
        """Describe each column of the tables."""
        rate, kind = self.rate, self.kind
        percent, points = ("%", "points") if self.rate == "rate" else ("", "")
        return catalogue(
            Column(key="model", title="Model"),
            Column(key="reference", title="Reference"),
            interval_column("difference", "Difference", kind, points),
            Column(key="p_value", title="p", kind="p_value"),
            Column(key="p_value_holm", title="p", kind="p_value", unit="Holm"),
            Column(key="conclusion", title="Shown"),
            Column(key="p_equivalent_holm", title="p", kind="p_value", unit="equivalent"),
            Column(key="p_not_worse_holm", title="p", kind="p_value", unit="not worse"),
            Column(key="detectable", title="Found 4 in 5", kind=rate, unit=points, on_phones=False),
            Column(key="n", title="Items", kind="count", on_phones=False),
            Column(key="n_clusters", title="Clusters", kind="count", on_phones=False),
            Column(key="reference_mean", title="Reference", kind=rate, unit=percent),
            Column(key="model_mean", title="Model", kind=rate, unit=percent),
            interval_column("pooled_difference", "All items", kind, points),
            interval_column("negative_flip_rate", "Lost", "rate", "of all, %", direction="lower"),
            interval_column("lost_of_known", "Lost", "rate", "of known, %", direction="lower"),
            interval_column(
                "positive_flip_rate", "Gained", "rate", "of all, %", direction="higher"
            ),
            Column(key="n_missing", title="Missing", kind="count"),
            interval_column("mean", "Mean", rate, percent),
            Column(key="rank", title="Rank", kind="count", direction="lower"),
            Column(key="possible_ranks", title="Possible ranks"),
            Column(key="against", title="Sign"),
        )

    def _scale(self) -> str:
        """Say on which scale the scores are."""
        if self.rate == "rate":
            return ""
        low, high = self.result.scale
        if np.isinf(low):
            return "Scores are on their own scale, whose ends are not known."
        return f"Scores are on their own scale, {low:g} to {high:g}."

    def _models(self) -> Table:
        """Describe means and ranks."""
        table = self._described(
            self.result.models.assign(possible_ranks=self._spans()),
            "Means and ranks",
            "model n n_missing mean rank possible_ranks",
        )
        return replace(table, model="model")

    def _spans(self) -> list[str]:
        """Write the possible ranks of each model."""
        ends = self.result.models[["rank_low", "rank_high"]]
        return [*map(span_text, ends.to_numpy().tolist())]

    def _groups(self, column: str, frame: pd.DataFrame) -> Table:
        """Describe the differences within tasks or slices."""
        against = np.where(
            frame["is_shown_against"], "against the whole",
            np.where(frame["is_against"], "other sign, not shown", ""),
        )  # fmt: skip
        name = column.replace("_", " ")
        table = self._described(
            frame.assign(against=against).drop(columns="by"),
            f"By {name}",
            Column(key="group", title=name.capitalize()),
            "model reference n n_clusters difference p_value_holm against",
            self._flip_keys(),
        )
        return replace(table, cluster_column="n_clusters")

    def _flip_keys(self) -> str:
        """Name the columns on what flips between two models."""
        return "negative_flip_rate lost_of_known positive_flip_rate" if self.has_flips else ""

    def forest(self) -> ForestPlot:
        """Draw the differences, tasks below each.

        Returns:
            The chart.
        """
        rows: list[tuple[str, int, Sequence[Dot]]] = []
        remarks = {}
        groups = self.groups
        tasks = groups[groups["by"] == "task"]
        several = self.differences["reference"].nunique() > 1
        ordered = self.differences.sort_values("difference", ascending=False, kind="stable")
        n_all, note = len(ordered), _NO_EQUALITY
        if n_all > _MOST_DRAWN:
            best = self.result.models["model"].iat[0]
            ordered = ordered[(ordered["model"] == best) | (ordered["reference"] == best)]
            ordered = ordered.head(_MOST_DRAWN)
            note = f"{note} {len(ordered)} of {n_all:,} comparisons, those with {best}."
        for row in ordered.to_dict("records"):
            label = f"{row['model']} − {row['reference']}" if several else str(row["model"])
            remarks[label] = " ".join(
                (
                    format_number(row["difference"], self.kind),
                    format_interval(row["difference_low"], row["difference_high"], self.kind),
                    str(row["conclusion"]),
                )
            )
            rows.append((label, 0, [self._difference_dot(row)]))
            own = (tasks["model"] == row["model"]) & (tasks["reference"] == row["reference"])
            rows += [
                (str(one["group"]), 1, [self._difference_dot(one)])
                for one in tasks[own].to_dict("records")
            ]
        if len(rows) > _MOST_STRIPS:
            rows = [row for row in rows if not row[1]]
        reference = "" if several else f" from {self.differences['reference'].iat[0]}"
        return ForestPlot(
            name=f"differences-{self.metric}",
            title=f"Difference{reference}, {self.what}",
            axis="points" if self.kind == "difference" else "score",
            rows=rows,
            clusters="",
            certain="the difference is shown (Holm)",
            margin=self.compared.settings.margin,
            remarks=remarks,
            note=note,
        )

    def _difference_dot(self, row: Mapping[Any, Any]) -> Dot:
        """Draw a difference."""
        is_shown = row["p_value_holm"] < 1 - self.compared.table.confidence
        return self._dot(row, "difference", self.kind, is_certain=bool(is_shown))

    def _dot(
        self,
        row: Mapping[Any, Any],
        name: str,
        kind: Literal["difference", "number"],
        *,
        is_certain: bool,
    ) -> Dot:
        """Draw a number of a model."""
        return Dot(
            model=self.compared.models.index(str(row["model"])),
            value=interval_value(row, name, kind=kind),
            n=int(row["n"]),
            n_clusters=int(row["n_clusters"]),
            is_certain=is_certain,
        )

    def ranks(self) -> ForestPlot:
        """Draw the ranks that the data allow.

        Returns:
            The chart.
        """
        models = self.result.models
        step = -(-len(models) // 20)
        rows: list[tuple[str, int, Sequence[Dot]]] = [
            (str(row["model"]), 0, [self._dot(row, "rank", "number", is_certain=True)])
            for row in models.to_dict("records")
        ]
        return ForestPlot(
            name=f"ranks-{self.metric}",
            title=f"Which ranks are possible, {self.what}",
            axis="rank",
            rows=rows,
            clusters="possible",
            certain="",
            ticks=sorted({*range(1, len(models) + 1, step), len(models)}),
            remarks=dict(zip(models["model"].map(str), self._spans(), strict=True)),
        )

    def square(self) -> MosaicPlots | None:
        """Draw the paired table of two models; None of scores, losses or more models.

        Returns:
            The square.
        """
        if len(self.differences) > 1 or not self.is_of_right:
            return None
        row = self.differences.iloc[0].to_dict()
        model, reference = str(row["model"]), str(row["reference"])
        counts = zip(("both", "first_only", "second_only", "neither"), _CELLS, strict=True)
        plot = MosaicPlot(
            title=f"{model} against {reference}",
            model=None,
            **{name: int(row[key]) for name, key in counts},  # type: ignore[arg-type]
            facts=[fact for fact in self._square_facts(row) if fact[1].low is not None],
        )
        return MosaicPlots(
            squares=[plot], conditions=(reference, model), cells=cell_names(reference, model)
        )

    def _square_facts(self, row: Mapping[Any, Any]) -> list[tuple[str, Value, str]]:
        """Say what stands below the square."""
        if not self.has_flips:
            return []
        return [
            ("same verdict", interval_value(row, "consistency"), ""),
            (f"lost of {row['reference']} right", interval_value(row, "lost_of_known"), ""),
            ("kappa", interval_value(row, "kappa", kind="number"), ""),
        ]

    def checks(self) -> list[Check]:
        """Say whether the numbers can be trusted.

        Returns:
            The checks.
        """
        return WORDING.checks(
            "checks",
            is_same_questions=self.compared.is_same_questions,
            n_items=self.result.n_items,
            n_any=self.result.n_items_of_any,
            models=self.result.models.to_dict("records"),
            n_clusters=self.n_clusters,
            few=FEW_CLUSTERS,
            clusters=self.compared.cluster_note,
            has_noise=bool((self.compared.noise["metric"] == self.metric).any()),
            notes=self.compared.notes,
        )


def plain_difference(number: float, kind: Literal["difference", "number"]) -> Value:
    """Take a difference without interval and sign.

    Args:
        number: The difference.
        kind: How it is set.

    Returns:
        The number.
    """
    return Value(value=number, kind=kind, tone="lost")


def cell_names(reference: str, model: str) -> tuple[str, str, str, str]:
    """Name the cells of a paired table of two models.

    Args:
        reference: The reference.
        model: The other model.

    Returns:
        Both right, the reference only, the model only, neither.
    """
    return ("both right", f"{reference} only", f"{model} only", "neither")


def first_rows(table: Table, most: int) -> Table:
    """Take the first rows of a table, and say how many there are.

    Args:
        table: The table.
        most: How many rows are taken.

    Returns:
        The table; with a note where rows are left out.
    """
    n = len(table.frame)
    if n <= most:
        return table
    more = f"The first {most} of {n:,} rows; tables/ of --out has all."
    note = " ".join(filter(None, (table.note, more)))
    return replace(table, frame=table.frame.head(most), note=note)


_LISTED: Final = {
    "change": "Change",
    "model": "Model",
    "task": "Task",
    "item": "Item",
    "form": "Form",
    "question": "Question",
    "reference_answer": "Reference",
    "model_answer": "Model",
}


def listed_changes(frame: pd.DataFrame, caption: str) -> Table:
    """Describe a list of items that changed.

    Args:
        frame: As from `ComparedResults.changed`.
        caption: What it shows.

    Returns:
        The table, without columns that hold nothing.
    """
    shown = [key for key in _LISTED if (frame[key].notna() & (frame[key] != "")).any()]
    scores = ["reference_score", "model_score"]
    columns = [Column(key=key, title=_LISTED[key]) for key in shown]
    columns += [
        Column(key=key, title=key.replace("_", " ").capitalize(), kind="number") for key in scores
    ]
    return Table(frame=frame, caption=caption, columns=columns, model=None)
