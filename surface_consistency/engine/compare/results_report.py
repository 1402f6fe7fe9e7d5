"""Sentences, tables and charts of a comparison of models by one metric."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from surface_consistency.analysis.compare import REPORTED_MISSING, ComparedResults
from surface_consistency.analysis.doubts import constant_scores
from surface_consistency.analysis.scoring import ITEM
from surface_consistency.clusters import FEW_CLUSTERS
from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics.comparison.comparisons import VERDICTS, ModelComparisonResult
from surface_consistency.metrics.paired.effect_sizes import kappa_of_counts
from surface_consistency.metrics.paired.paired_groups import paired_by
from surface_consistency.metrics.paired.paired_tables import PAIRED_RATES, CountRatio
from surface_consistency.metrics.uncertainty.bootstrap import Statistic, group_values
from surface_consistency.metrics.uncertainty.intervals import Intervals
from surface_consistency.report.page import Check, Dot, ForestPlot, MosaicPlot, MosaicPlots
from surface_consistency.report.texts import Texts
from surface_consistency.tables import numbers, sentences as say
from surface_consistency.tables.table import Column, Table
from surface_consistency.tables.tabulation import describe

TEXTS: Final = Texts("surface_consistency.engine.compare")
"""Checks, notes and method of a comparison of models."""

MOST_LISTED: Final = 20
"""Maximum number of changed items that are listed."""

_NO_EQUALITY: Final = (
    "“Not significant” does not mean equal: only an interval within a margin is called equivalent."
)
_SCORES: Final = (
    *("difference", "pooled_difference", "detectable", "reference_mean", "model_mean", "mean"),
)
"""Columns in the unit of the scores."""
_MOST_SENTENCES: Final = 3
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
"""Flip rates between the correctness labels of two models, from the reference to the model."""
_FLIP_COLUMNS: Final = [f"{name}{end}" for name in _FLIPS for end in ("", "_low", "_high")]


def _flips(pairs: pd.DataFrame, column: str, intervals: Intervals) -> pd.DataFrame:
    """Compute the flip rates between two models by the labels of a column."""
    frame = pairs[["score_of_reference", "score", "_cluster"]]
    with warnings.catch_warnings():
        # The cells show where no inference is possible.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        rows = paired_by(
            frame.assign(group=pairs[column]), by=["group"], first="score_of_reference",
            second="score", cluster="_cluster", rates=_FLIPS, intervals=intervals,
        )  # fmt: skip
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
        detectable = say.detectable_difference(
            frame["difference_low"], frame["difference_high"], compared.table.confidence
        )
        self.differences = frame.assign(detectable=detectable)
        is_share = self.result.scale == VERDICTS
        self.rate: Literal["rate", "number"] = "rate" if is_share else "number"
        self.kind: Literal["difference", "number"] = "difference" if is_share else "number"
        self.confidence = compared.table.confidence
        self.what = metric or "the score"
        self.is_lower_better = metric in compared.settings.lower_is_better
        self.is_of_right = self.result.is_verdicts and not self.is_lower_better
        base = "accuracy" if self.is_of_right else "mean score"
        named = f"{metric}, lower is better" if self.is_lower_better else metric
        self.quantity = f"{base} ({named})" if named else base
        low, high = self.result.scale
        self._reach = high - low
        self._words: dict[str, Any] = {
            "kind": self.kind,
            "unit": compared.unit,
            "confidence": self.confidence,
        }
        self.groups = self.result.groups
        self.is_of_one = len(compared.models) == 1
        self.has_flips = self.is_of_right and len(compared.models) == 2 and self.n_tasks == 1
        if self.has_flips and self.result.cells is not None:
            intervals = Intervals(confidence=compared.table.confidence)
            rates = group_values(self.result.cells, _FLIPS, intervals)
            self.differences = self.differences.assign(
                **{
                    f"{name}{end}": value
                    for name, rate in rates.items()
                    for end, value in zip(("", "_low", "_high"), rate[:3], strict=True)
                }
            )
            columns = self.groups["by"].unique()
            if len(columns):
                row = self.differences.iloc[0]
                pairs = compared.paired(metric, row["model"], row["reference"])
                parts = [_flips(pairs, column, intervals) for column in columns]
                self.groups = self.groups.merge(pd.concat(parts), on=["by", "group"], how="left")

    def finding(self) -> list[numbers.Part]:
        """Report the conclusion, and the excluded items.

        Returns:
            Texts and numbers.
        """
        n, n_any = self.result.n_items, self.result.n_items_of_any
        excluded = n_any - n if 1 - n / n_any > REPORTED_MISSING else 0
        reason = "lack a score of at least one model"
        if self.is_of_one:
            first, reason = self._mean(self.result.models.iloc[0].to_dict()), "have no score"
        else:
            first = self._best() if self._of_all() else self._between(self._leading())
        failed = self.compared.failed_answers.get(self.metric, ())
        further = map(say.stated, (*(f"{sentence}." for sentence in failed), *self._doubts()))
        excluded_items = say.missing(excluded, n_any, self.compared.unit, reason=reason)
        return say.paragraph([first, *self._contradictions(), excluded_items, *further])

    def _contradictions(self) -> Iterator[say.Sentence]:
        """Report the tasks and slices whose significant difference contradicts the overall one."""
        found = self.groups[self.groups["unlike_overall"] != ""].sort_values(
            "p_value_holm", kind="stable"
        )
        for row in found.head(_MOST_SENTENCES).to_dict("records"):
            where = f"{self.quantity} in {row['by'].replace('_', ' ')} {row['group']}"
            yield self._difference_sentence(row, f"{where}, unlike overall,", "Holm")
        if (n_more := len(found) - _MOST_SENTENCES) > 0:
            what = "differences within tasks and slices"
            yield [
                say.count(n_more, len(self.groups), f"{what} that contradict the overall one"),
                f"{n_more:,} more of {len(self.groups):,} {what} are significant, unlike overall.",
            ]

    def _doubts(self) -> Iterator[str]:
        """Yield reasons to doubt the scores; those of all metrics only for the first metric."""
        models = self.result.models
        if self.result.scale == VERDICTS and not self.is_lower_better:
            means = models[["model", "mean", "n"]].itertuples(index=False, name=None)
            yield from constant_scores(list(means), self.compared.unit, lambda: self.compared.rows)
        if self.metric == next(iter(self.compared.metrics)):
            yield from self.compared.doubts

    def cluster_notes(self, *, has_remedy: bool = True) -> list[say.Sentence]:
        """Report few clusters, or unequal clusters.

        Args:
            has_remedy: Whether to name the clusters and the remedy.

        Returns:
            Sentences; empty if there are enough clusters, or no inference is possible.
        """
        frame = self.result.models if self.is_of_one else self.differences
        if (frame["not_inferred"] != "").all():
            return []
        remedy = (
            "; cluster=item assumes independent items, and the conclusions then hold only for "
            f"these {self.n_clusters} clusters"
        )
        can_be_items = not self.compared.are_items_clusters and self.compared.runs is None
        return say.cluster_notes(
            self.n_clusters,
            self.result.n_effective,
            named=self.compared.cluster_note if has_remedy else "",
            remedy=remedy if can_be_items and has_remedy else "",
        )

    def sentences(self) -> list[say.Sentence]:
        """List the sentences of the finding and of the summary.

        Returns:
            The sentences; some may be empty.
        """
        return [self.finding(), *self.summary()]

    def summary(self) -> Iterator[say.Sentence]:
        """Yield sentences on the other models, detectable differences, flips and repeats."""
        rows = self.differences
        if self.n_tasks > 1:
            name = "mean_of_tasks" if self.is_of_one else "tasks"
            record = say.count(self.n_tasks, None, "tasks with equal weights")
            yield [record, *TEXTS.sentence(name, n_tasks=self.n_tasks)]
        if len(rows) > 1 and not self._of_all():
            others = rows.drop(index=rows.index[self._leading_row()]).to_dict("records")
            yield from self._many(others)
        least = rows["detectable"].median() if len(rows) > 1 else np.nan
        if not np.isnan(least):
            text = TEXTS.sentence(
                "median", least=numbers.Value(value=float(least), kind=self.kind, signed=False)
            )
            what = f"median minimum detectable difference in {self.quantity}"
            yield [numbers.Claim(kind="rate", quantity=what, estimate=float(least)), *text]
        equality = self.result.equality
        is_any = not (rows["conclusion"] == "not inferred").all()
        if equality is not None and np.isnan(equality["p_value"]) and is_any:
            tested = {**equality, "n": self.result.n_items}
            yield say.not_inferred(tested, "a difference of any models", unit=self.compared.unit)
        elif equality is not None and not np.isnan(equality["p_value"]):
            p_value, what = float(equality["p_value"]), f"equality of all models in {self.quantity}"
            text = TEXTS.sentence(
                "equality",
                verdict="rejected" if p_value < 1 - self.confidence else "not rejected",
                p_value=numbers.Value(value=p_value, kind="p_value"),
            )
            confidence = self.confidence
            record = numbers.Claim(kind="test", quantity=what, p=p_value, confidence=confidence)
            yield [record, *text]
        for row in rows.to_dict("records") if self.has_flips else ():
            yield from self._flip_sentences(row)
        yield from self._repeats()

    def _repeats(self) -> Iterator[say.Sentence]:
        """Report flip rates of repeats, and pass^k of the smallest number of repeats."""
        flips, noise = (
            frame[frame["metric"] == self.metric].to_dict("records")
            for frame in (self.compared.flips, self.compared.noise)
        )
        both = self._words | {"kind": "rate"}
        for row in flips if len(flips) == 1 else ():
            what = f"flip rate between single repeats of {row['reference']} and {row['model']}"
            yield say.rate(row, "flip_rate", what, **both)
        for row in noise:
            of = f" of {row['model']}"
            yield say.repeats([row], of=of, confidence=self._words["confidence"])
        for row in noise if self.compared.runs is None and not self.is_lower_better else ():
            what = f"probability that {row['k']} random repeats of {row['model']} are all correct"
            yield say.rate(row, "pass_k", f"{what} (pass^{row['k']})", **both)

    def _many(self, rows: Sequence[Mapping[Any, Any]]) -> list[say.Sentence]:
        """Report the differences of several models: equivalent ones, then the others."""
        equal = [row for row in rows if row["conclusion"] == "equivalent"]
        rest = [row for row in rows if row["conclusion"] != "equivalent"]
        sentences = [self._between(row) for row in equal[:_MOST_SENTENCES]]
        if n_more := len(equal) - len(sentences):
            words = f"{n_more} more of {len(rows)} models are equivalent to their reference."
            record = say.count(n_more, len(rows), "more models equivalent to their reference")
            sentences.append([record, words])
        if not rest:
            return sentences
        others = say.many(
            rest,
            "difference",
            self.quantity,
            self._between,
            p="p_value_holm",
            kind=self.kind,
            confidence=self.confidence,
            reach=self._reach,
        )
        return [*sentences, *others]

    def _flip_sentences(self, row: Mapping[Any, Any]) -> Iterator[say.Sentence]:
        """Report the lost and gained items of a model compared with its reference."""
        sides = (
            ("lost_of_known", "correct", "incorrect", "both", "reference_only"),
            ("gained_of_unknown", "incorrect", "correct", "model_only", "neither"),
        )
        for name, how, other, *cells in sides:
            if say.direction(row, name) is not None:
                yield say.rate(
                    {name: row[name], "n": sum(row[cell] for cell in cells)}
                    | {f"{name}_{end}": row[f"{name}_{end}"] for end in ("low", "high")},
                    name,
                    f"proportion of {other} answers of {row['model']} among the "
                    f"{self.compared.unit} that are {how} for {row['reference']}",
                    unit=self.compared.unit,
                    confidence=self.confidence,
                )

    def tables(self) -> dict[str, Table]:
        """Return the tables of the comparison, with captions and notes.

        Returns:
            "differences" of several models, "models", a table "by_<column>" for tasks and each
            slice, and "repeats" and "passes" if there are repeats with correctness labels.
        """
        if self.is_of_one:
            tables = {"models": self._models()}
            for column, frame in self.result.means.groupby("by", sort=False):
                tables[f"by_{column}"] = self._group_means(str(column), frame)
        else:
            tables = {"differences": self._differences(), "models": self._models()}
            for column, frame in self.groups.groupby("by", sort=False):
                tables[f"by_{column}"] = self._groups(str(column), frame)
        return tables | self._repeat_tables()

    def _repeat_tables(self) -> dict[str, Table]:
        """Describe flips between repeats, and pass^k."""
        compared = self.compared
        frames = {
            "flips": compared.flips.rename(columns={"reference": "against"}),
            "noise": compared.noise.assign(against="itself"),
        }
        of_pairs = pd.concat(frames.values(), ignore_index=True)[[*frames["flips"]]]
        k = Column(key="k", title="k", kind="count")
        named: dict[str, tuple[pd.DataFrame, str, Sequence[str | Column]]] = {
            "repeats": (of_pairs, "Flips of repeats", ["model against n:items flip_rate"]),
            "passes": (compared.noise, "pass^k", ["model", k, "n:items pass_k"]),
        }
        if compared.runs is not None or self.is_lower_better:
            del named["passes"]
        return {
            name: self._described(frame[frame["metric"] == self.metric], caption, *shown)
            for name, (frame, caption, shown) in named.items()
            if (frame["metric"] == self.metric).any()
        }

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        means = self.result.means
        return max(1, int(means.loc[means["by"] == "task", "group"].nunique()))

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.result.models["n_clusters"].max())

    def _of_all(self) -> bool:
        """Return whether all pairs of several models are compared."""
        return len(self.compared.models) > 2 and self.compared.settings.baseline is None

    def _leading(self) -> dict[Any, Any]:
        """Return the row of the finding: that of the best model other than the reference."""
        return self.differences.iloc[self._leading_row()].to_dict()

    def _leading_row(self) -> int:
        """Return the position of the row of the finding."""
        order = {name: place for place, name in enumerate(self.result.models["model"])}
        return int(self.differences["model"].map(order).to_numpy().argmin())

    def _best(self) -> say.Sentence:
        """Report which models may be the best."""
        models = self.result.models
        if (self.differences["conclusion"] == "not inferred").all():
            row = self.differences[["n", "n_clusters", "not_inferred"]].iloc[0].to_dict()
            what = f"a difference in {self.quantity} between any two of the {len(models)} models"
            return say.not_inferred(row, what, unit=self.compared.unit)
        best = models.loc[models["may_be_best"], "model"].tolist()
        return say.ranking(best, len(models), self.quantity, self.confidence)

    def _mean(self, row: Mapping[Any, Any], where: str = "") -> say.Sentence:
        """Report the mean of a model."""
        words = self._words | {"kind": self.rate}
        return say.rate(row, "mean", f"{self.quantity} of {row['model']}{where}", **words)

    def _between(self, row: Mapping[Any, Any]) -> say.Sentence:
        """Report the difference or the equivalence of two models."""
        correction = "Holm" if len(self.differences) > 1 else ""
        margin = self.compared.settings.margin
        if row["conclusion"] != "equivalent" or margin is None:
            return self._difference_sentence(row, self.quantity, correction)
        return say.equivalence(
            row,
            "difference",
            self.quantity,
            first=str(row["reference"]),
            second=str(row["model"]),
            p="p_equivalent_holm",
            margin=margin,
            p_difference="p_value_holm",
            correction=correction,
            **self._words,
        )

    def _difference_sentence(
        self, row: Mapping[Any, Any], quantity: str, correction: str
    ) -> say.Sentence:
        """Report a difference of two models."""
        return say.difference(
            row,
            "difference",
            quantity,
            first=str(row["reference"]),
            second=str(row["model"]),
            p="p_value_holm",
            correction=correction,
            reach=self._reach,
            **self._words,
        )

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
            "detectable n:items n_clusters reference_mean model_mean",
            Column(key="square", title="Correct", kind="square", unit=unit, cells=_CELLS)
            if self.is_of_right
            else "",
            "pooled_difference" if self.n_tasks > 1 else "",
            self._flip_keys(),
            note=self._scale(),
        )

    def _described(
        self, frame: pd.DataFrame, caption: str, *shown: str | Column, note: str = ""
    ) -> Table:
        """Describe a frame; scores that are not proportions have no unit."""
        table = describe(
            frame,
            f"{caption} ({self.what})",
            shown,
            titles={"n": self.compared.unit.capitalize()},
            model=None,
            note=note,
            cluster_column=None,
        )
        if self.rate == "rate":
            return table
        columns = [
            replace(one, kind="number", unit="") if one.key in _SCORES else one
            for one in table.columns
        ]
        return replace(table, columns=columns)

    def _scale(self) -> str:
        """Return a note on the scale of the scores."""
        if self.rate == "rate":
            return ""
        low, high = self.result.scale
        if np.isinf(low):
            return "Scores are on their own scale, whose ends are unknown."
        return f"Scores are on their own scale, {low:g} to {high:g}."

    def _models(self) -> Table:
        """Describe means and ranks."""
        table = self._described(
            self.result.models.assign(possible_ranks=self._spans()),
            "Means" if self.is_of_one else "Means and ranks",
            "model n:items",
            "n_clusters" if self.is_of_one else "",
            "n_missing mean:mean_score",
            "" if self.is_of_one else "rank possible_ranks",
        )
        return replace(table, model="model")

    def _spans(self) -> list[str]:
        """Format the possible ranks of each model."""
        ends = self.result.models[["rank_low", "rank_high"]]
        return [*map(numbers.span_text, ends.to_numpy().tolist())]

    def _groups(self, column: str, frame: pd.DataFrame) -> Table:
        """Describe the differences within tasks or slices."""
        name = column.replace("_", " ")
        table = self._described(
            frame.drop(columns="by"),
            f"By {name}",
            Column(key="group", title=name.capitalize()),
            "model reference n:items n_clusters difference p_value_holm unlike_overall",
            self._flip_keys(),
        )
        return replace(table, cluster_column="n_clusters")

    def _group_means(self, column: str, frame: pd.DataFrame) -> Table:
        """Describe the means within tasks or slices."""
        name = column.replace("_", " ")
        return self._described(
            frame.drop(columns="by"),
            f"By {name}",
            Column(key="group", title=name.capitalize()),
            "model n:items n_clusters mean:mean_score",
        )

    def _flip_keys(self) -> str:
        """Return the columns of flip rates between two models."""
        return "negative_flip_rate lost_of_known positive_flip_rate" if self.has_flips else ""

    def forest(self) -> ForestPlot:
        """Draw a forest plot of the differences, with tasks below each.

        Returns:
            The chart.
        """
        if self.is_of_one:
            return self._means()
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
                    numbers.format_number(row["difference"], self.kind),
                    numbers.format_interval(
                        row["difference_low"], row["difference_high"], self.kind
                    ),
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
            certain="significant difference (Holm)",
            margin=self.compared.settings.margin,
            remarks=remarks,
            note=note,
        )

    def _means(self) -> ForestPlot:
        """Draw the mean of a model, tasks below it."""
        means = self.result.means[self.result.means["by"] == "task"]
        one = self.result.models.iloc[0].to_dict()
        frames = [(str(one["model"]), 0, one)]
        frames += [(str(row["group"]), 1, row) for row in means.to_dict("records")]
        return ForestPlot(
            name=f"means-{self.metric}",
            title=f"Mean, {self.what}",
            axis=f"{self.what}, %" if self.rate == "rate" else "score",
            rows=[
                (label, level, [self._dot(row, "mean", self.rate, is_certain=True)])
                for label, level, row in frames
            ],
            clusters="clusters",
            certain="",
        )

    def _difference_dot(self, row: Mapping[Any, Any]) -> Dot:
        """Draw a difference."""
        is_shown = row["p_value_holm"] < 1 - self.compared.table.confidence
        return self._dot(row, "difference", self.kind, is_certain=bool(is_shown))

    def _dot(
        self,
        row: Mapping[Any, Any],
        name: str,
        kind: Literal["rate", "difference", "number"],
        *,
        is_certain: bool,
    ) -> Dot:
        """Draw a number of a model."""
        return Dot(
            model=self.compared.models.index(str(row["model"])),
            value=numbers.interval_value(row, name, kind=kind),
            n=int(row["n"]),
            n_clusters=int(row["n_clusters"]),
            unit=self.compared.unit,
            is_certain=is_certain,
        )

    def ranks(self) -> ForestPlot:
        """Draw the range of possible ranks of each model.

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
            title=f"Possible ranks, {self.what}",
            axis="rank",
            rows=rows,
            clusters="possible",
            certain="",
            ticks=sorted({*range(1, len(models) + 1, step), len(models)}),
            remarks=dict(zip(models["model"].map(str), self._spans(), strict=True)),
        )

    def square(self) -> MosaicPlots | None:
        """Draw the paired table of two models; None for graded scores, losses or more models.

        Returns:
            The square.
        """
        if len(self.differences) != 1 or not self.is_of_right:
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

    def _square_facts(self, row: Mapping[Any, Any]) -> list[tuple[str, numbers.Value, str]]:
        """Return the lines below the square."""
        if not self.has_flips:
            return []
        lost = f"lost of {row['reference']} correct"
        return [
            ("same label", numbers.interval_value(row, "consistency"), ""),
            (lost, numbers.interval_value(row, "lost_of_known"), ""),
            ("kappa", numbers.interval_value(row, "kappa", kind="number"), ""),
        ]

    def checks(self) -> list[Check]:
        """Return checks that limit the interpretation of the numbers.

        Returns:
            The checks.
        """
        n_items, n_any = self.result.n_items, self.result.n_items_of_any
        models = self.result.models
        lacking = models[models["n_missing"] > 0]
        missed = zip(lacking["model"], lacking["n_missing"], strict=True)
        named = ", ".join(f"{model} {n:,.0f}" for model, n in missed)
        unit = self.compared.unit
        excluded = {"n_items": n_items, "n_any": n_any, "missing": named, "unit": unit}
        of_one = "_one" if self.is_of_one else ""
        checks = (
            []
            if of_one
            else [TEXTS.check("same_items" if self.compared.is_same_questions else "unverified")]
        )
        is_filled = self.compared.settings.missing == "wrong"
        name = ("excluded" if n_items < n_any else "complete") + of_one
        checks.append(TEXTS.check("filled" if is_filled else name, **excluded))
        if notes := self.cluster_notes():
            name = "few_clusters" if self.n_clusters < FEW_CLUSTERS else "unequal_clusters"
            checks.append(TEXTS.check(name, sentence=say.paragraph(notes)))
        if not (self.compared.noise["metric"] == self.metric).any():
            has_repeats = self.compared.has_repeats
            checks.append(TEXTS.check("graded_repeats" if has_repeats else "no_noise"))
        return [*checks, *(TEXTS.check("note", note=note) for note in self.compared.notes)]


def changed_items(changed: Sequence[pd.DataFrame], unit: str) -> str:
    """Count the items that two models score differently.

    Args:
        changed: Frames of `ComparedResults.changed`, one per pair of models.
        unit: Name of the scored items, in the plural.

    Returns:
        Such as "43 items", or "394 pairs of models on 197 items" for several pairs.
    """
    frame = pd.concat(changed)
    n_items = f"{len(frame[[*ITEM]].drop_duplicates()):,} {unit}"
    return n_items if len(changed) == 1 else f"{len(frame):,} pairs of models on {n_items}"


def cell_names(reference: str, model: str) -> tuple[str, str, str, str]:
    """Name the cells of a paired table of two models.

    Args:
        reference: The reference.
        model: The other model.

    Returns:
        Both correct, only the reference, only the model, neither.
    """
    return ("both correct", f"{reference} only correct", f"{model} only correct", "neither correct")


def first_rows(table: Table, most: int) -> Table:
    """Return the first rows of a table, with a note on the number of all rows.

    Args:
        table: The table.
        most: Maximum number of rows.

    Returns:
        The table; with a note if rows are omitted.
    """
    n = len(table.frame)
    if n <= most:
        return table
    more = f"The first {most} of {n:,} rows; tables/ of `out` has all."
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
        caption: Its caption.

    Returns:
        The table, without empty columns.
    """
    shown = [key for key in _LISTED if (frame[key].notna() & (frame[key] != "")).any()]
    scores = ["reference_score", "model_score"]
    columns = [Column(key=key, title=_LISTED[key]) for key in shown]
    columns += [
        Column(key=key, title=key.replace("_", " ").capitalize(), kind="number") for key in scores
    ]
    return Table(frame=frame, caption=caption, columns=columns, model=None)
