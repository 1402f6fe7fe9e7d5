"""Tables and page of any paired study: what holds wherever there are two verdicts on one fact."""

import hashlib
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import (
    PAIRED_RATES,
    adjust_p_values,
    kappa_of_counts,
    minimum_detectable_difference,
    paired_by,
    pooled_rates,
)
from surface_consistency.report.page import (
    Answer,
    Answers,
    Check,
    Dot,
    Dots,
    Finding,
    Made,
    Page,
    Part,
    Section,
    Square,
    Squares,
    Value,
)
from surface_consistency.report.table import Column, Table
from surface_consistency.runs.processes import map_processes
from surface_consistency.studies.answer_agreement import answer_agreement, check_answers
from surface_consistency.studies.contrast_tables import COUNTS, ContrastTables

if TYPE_CHECKING:
    from surface_consistency.runs.loader import Run
    from surface_consistency.studies.study import Report, Study

__all__ = [
    "COUNTS",
    "TEST_NAMES",
    "PairedReport",
    "cell_of",
    "interval_value",
    "is_hardly_right",
    "paired_columns",
    "with_detectable",
]

TEST_NAMES: Final[Mapping[str, str]] = {
    "obuchowski": "Obuchowski",
    "durkalski": "Durkalski",
    "exact": "McNemar, exact",
    "corrected": "McNemar, corrected",
}
"""Names of tests for people."""

_CELLS: Final = {
    (True, True): "both",
    (True, False): "first_only",
    (False, True): "second_only",
    (False, False): "neither",
}
_VERDICTS: Final = ("first_correct", "second_correct")
_FEW_ROWS: Final = 50_000
"""Pairs for which further processes do not pay."""


_FEW_CLUSTERS: Final = 20
_REACHING: Final = ("flip_rate", "accuracy_difference")
"""Rates whose intervals are told for each kind of cluster."""
_LEAST_POOLED: Final = 10
"""Groups from which on their rates are pooled."""
_LOW_ACCURACY: Final = 0.05
_FROM_PYTHON: Final = "# from Python, with these settings"


def _rate_column(name: str, title: str, unit: str = "%") -> Column:
    """Describe a rate with its interval."""
    return Column(
        key=name, title=title, kind="rate", unit=unit, low=f"{name}_low", high=f"{name}_high"
    )


_POOLED_COLUMN: Final = _rate_column("flip_rate_pooled", "Pooled", "flips, %")


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


def interval_value(
    row: Mapping[Any, Any],
    name: str,
    *,
    kind: Literal["rate", "difference", "number"] = "rate",
    tone: Literal["plain", "lost", "strong"] = "plain",
) -> Value:
    """Take a number with its interval from a row of a table.

    Args:
        row: The row: `<name>`, and `<name>_low` and `<name>_high` where there is an interval.
        name: Name of the number.
        kind: How it is set.
        tone: How it stands out.

    Returns:
        The number.
    """
    bounds = [row.get(f"{name}_{end}") for end in ("low", "high")]
    known = all(bound is not None and not math.isnan(bound) for bound in bounds)
    low, high = (float(bound) if known else None for bound in bounds)  # type: ignore[arg-type]
    return Value(value=float(row[name]), low=low, high=high, kind=kind, tone=tone)


def is_hardly_right(row: Mapping[Any, Any]) -> bool:
    """Tell whether a model is right so seldom that its verdicts agree by being wrong twice.

    Args:
        row: A row of `metrics.paired_by`.

    Returns:
        Whether both accuracies are below 5 %; not of a row without pairs.
    """
    return bool(row["n"]) and max(row["first_accuracy"], row["second_accuracy"]) < _LOW_ACCURACY


def cell_of(first: object, second: object) -> str:
    """Name the cell of a pair.

    Args:
        first: Verdict under the first condition; missing when there is none.
        second: Verdict under the second condition.

    Returns:
        "both", "first_only", "second_only", "neither", or "missing".
    """
    if pd.isna(first) or pd.isna(second):  # type: ignore[call-overload]
        return "missing"
    return _CELLS[bool(first), bool(second)]


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
        Column(
            key="flip_rate",
            title="Flips",
            kind="rate",
            unit="%",
            low="flip_rate_low",
            high="flip_rate_high",
            direction="lower",
        ),
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
        Column(
            key="accuracy_difference",
            title="Difference",
            kind="difference",
            unit="points",
            low="accuracy_difference_low",
            high="accuracy_difference_high",
            direction="higher",
        ),
        Column(key=p_key, title="p", kind="p_value", unit=p_unit, on_phones=False),
        Column(key="mcnemar_method", title="Test", labels=TEST_NAMES, on_phones=False),
    ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Paired:
    """The pairs of one model, and how to compare their verdicts."""

    frame: pd.DataFrame
    keys: list[str]
    cluster: str
    n_resamples: int
    seed: int
    has_kappa: bool


def _paired_table(task: _Paired) -> pd.DataFrame:
    """Compute the metrics by some columns."""
    kappa = {"kappa": kappa_of_counts} if task.has_kappa else {}
    table = paired_by(
        task.frame,
        by=task.keys,
        cluster=task.cluster,
        rates={**PAIRED_RATES, **kappa},
        n_resamples=task.n_resamples,
        rng=task.seed,
    )
    return with_detectable(table)


def with_detectable(table: pd.DataFrame) -> pd.DataFrame:
    """Add what differences in accuracy so many pairs could have shown.

    Args:
        table: A table of `paired_by`: n, flip_rate and design_effect.

    Returns:
        The table with `detectable_difference`: the smallest difference that the test finds with a
        probability of 80 %, as of `minimum_detectable_difference`, with the group's flip rate and
        its design effect where that is above 1; NaN where none could be found.
    """
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        for row in table[["n", "flip_rate", "design_effect"]].to_dict("records"):
            effect = max(1.0, row["design_effect"]) if row["design_effect"] > 0 else 1.0
            found.append(
                minimum_detectable_difference(
                    int(row["n"]), discordant_rate=float(row["flip_rate"]), design_effect=effect
                )
                if row["flip_rate"] > 0
                else math.nan
            )
    return table.assign(detectable_difference=np.asarray(found, dtype=np.float64))


def _detectable_note(frame: pd.DataFrame) -> str:
    """Say what the pairs of a table could have shown."""
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
            f"In {n_without} of {n_without + len(known)} rows it could hardly have found any: no "
            "difference there means nothing."
        )
    return " ".join(told)


_NO_ANSWER: Final = {
    "unclosed_thought": (
        "Thoughts without an end",
        "end within a thought and count as not answered, not as wrong. Ask again with a larger "
        "--max-thought-tokens.",
    ),
    "content_filter": (
        "Filtered replies",
        "were withheld by the server’s content filter and count as not answered, not as wrong.",
    ),
    "refusal": (
        "Refusals",
        "are refusals that the server marks as such and count as not answered, not as wrong.",
    ),
}
"""Title and sentence of the check on each kind of reply that holds no answer."""


class PairedReport:
    """Computes the tables of a study's runs and says what stands on their page.

    Args:
        study: The study.
        report: The runs.
    """

    def __init__(self, study: "Study", report: "Report") -> None:
        self.study = study
        self.report = report
        self.labels = [run.label for run in report.runs]
        self.index = {label: place for place, label in enumerate(self.labels)}
        self.clusters = study.clusters[report.cluster]
        self.panel = study.singular.get(study.panel, study.panel) if study.panel else None
        self.frame = report.frame
        self.held = ContrastTables(self)

    # Tables.

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
            name: self.grouped(name, columns) for name, columns in self.study.groupings.items()
        }
        tables |= self.generalisation()
        return tables | self.held.tables() | self.same_answers()

    def overall(self) -> Table:
        """Compute the rates of all pairs, by model and panel.

        Returns:
            The table.
        """
        keys = self._keys(())
        frame = self._paired(keys, has_kappa=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = frame["first_only"].to_numpy(float) / frame["second_only"].to_numpy(float)
        frame = frame.assign(odds_ratio=odds)
        return Table(
            frame=frame,
            caption="All pairs",
            columns=self.score_columns(self.label_columns(keys)),
            note=_detectable_note(frame),
            few="n_clusters",
        )

    def grouped(self, name: str, columns: tuple[str, ...]) -> Table:
        """Compute the rates of groups of pairs.

        Args:
            name: Name of the table.
            columns: Columns of the outcomes that make the groups.

        Returns:
            The table.
        """
        keys = self._keys(columns)
        frame = self._paired(keys)
        labels = [self.study.singular.get(key, key) for key in keys]
        adjusted = np.full(len(frame), np.nan)
        pooled = np.full((3, len(frame)), np.nan)
        heads = [key for key in labels if key in ("model", self.panel)]
        for _, places in frame.reset_index(drop=True).groupby(heads, sort=False).indices.items():
            adjusted[places] = adjust_p_values(frame["mcnemar_p_value"].to_numpy()[places])
            pooled[:, places] = _pooled(frame.iloc[places])
        frame = frame.assign(adjusted_p_value=adjusted)
        above = self.held.above_noise_by(columns)
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
            shown = [*shown, _POOLED_COLUMN]
            note += (
                "Pooled draws the flip rate of a small group towards that of all, as far as groups "
                "differ by no more than chance (beta-binomial). "
            )
        return Table(
            frame=frame,
            caption=name.replace("_", " ").capitalize(),
            columns=shown,
            note=note + _detectable_note(frame),
            few="n_clusters",
        )

    def generalisation(self) -> dict[str, Table]:
        """Compute how sure the flip rate is for other facts, subjects or relations.

        Returns:
            "generalisation", one row a model, panel and cluster of the study; nothing where the
            study knows a single one, or the outcomes hold no other.
        """
        held = [name for name in self.study.clusters if self.frame[name].notna().all()]
        is_scored = self.frame["first_correct"].notna() & self.frame["second_correct"].notna()
        if len(held) < 2 or not is_scored.any():
            return {}
        keys = self._keys(())
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
                    n_resamples=self.report.settings.resamples,
                    rng=self.report.settings.bootstrap_seed,
                )
            table = table.rename(columns=dict(self.study.singular))
            table = self._sorted(table, keys)
            table.insert(len(keys), "cluster", self.study.clusters[name])
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
                    _rate_column("flip_rate", "Flips"),
                    Column(
                        key="accuracy_difference",
                        title="Difference",
                        kind="difference",
                        unit="points",
                        low="accuracy_difference_low",
                        high="accuracy_difference_high",
                    ),
                ],
                few="n_clusters",
            )
        }

    def same_answers(self) -> dict[str, Table]:
        """Compute how often the answers of a pair are the same, not their verdicts alone.

        Returns:
            "same_answer", with the columns of `answer_agreement`; nothing for outcomes that do not
            hold the answers.
        """
        keys = self._keys(())
        parts = [
            answer_agreement(
                run.outcomes.assign(
                    first_prediction=pd.Series(first, dtype=object),
                    second_prediction=pd.Series(second, dtype=object),
                ),
                by=keys,
                cluster=self.report.cluster,
                rule=self.answer_rule(run),
                n_resamples=self.report.settings.resamples,
                rng=self.report.settings.bootstrap_seed,
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
                frame=self._sorted(frame.rename(columns=dict(self.study.singular)), keys),
                caption="Pairs with the same answer",
                note="The same verdict is not the same answer: two wrong answers may differ. Words "
                "are compared after normalisation, without order or wording forgiven; the rule "
                f"{' / '.join(rules)} takes one answer for the other where it would accept it.",
                columns=[
                    *shown,
                    Column(key="among", title="Among", labels=among),
                    Column(key="n", title="Pairs", kind="count"),
                    *(
                        Column(
                            key=key,
                            title=title,
                            kind="rate",
                            unit="%",
                            low=f"{key}_low",
                            high=f"{key}_high",
                        )
                        for key, title in (
                            ("same_answer", "Same words"),
                            ("same_by_rule", "Same by the rule"),
                        )
                    ),
                ],
                few="n_clusters",
            )
        }

    def answer_texts(self, run: "Run") -> tuple[list[str | None], list[str | None]]:
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

    def answer_rule(self, run: "Run") -> str:
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
            self.study.conditions, labels, cluster=self.clusters, adjusted=adjusted
        )

    def label_columns(self, keys: Iterable[str]) -> list[Column]:
        """Describe columns of labels.

        Args:
            keys: Columns of the outcomes, or their names in tables.

        Returns:
            Their specs, with the study's wording of the labels.
        """
        names = [self.study.singular.get(key, key) for key in keys]
        return [
            Column(
                key=name,
                title=name.replace("_", " ").capitalize(),
                labels=self.study.labels.get(name, {}),
            )
            for name in names
        ]

    def _keys(self, columns: tuple[str, ...]) -> list[str]:
        """Name the columns of groups: model, panel, and these."""
        return ["model", *filter(None, (self.study.panel,)), *columns]

    def _paired(self, keys: list[str], *, has_kappa: bool = False) -> pd.DataFrame:
        """Compute the metrics by some columns; sort the rows for reading."""
        cluster = self._cluster_within(keys)
        wanted = list(dict.fromkeys([*keys, cluster, *_VERDICTS]))
        tasks = [
            _Paired(
                frame=run.outcomes[wanted],
                keys=keys,
                cluster=cluster,
                n_resamples=self.report.settings.resamples,
                seed=self.report.settings.bootstrap_seed,
                has_kappa=has_kappa,
            )
            for run in self.report.runs
        ]
        n_rows = sum(len(task.frame) for task in tasks)
        parts = map_processes(_paired_table, tasks, n_workers=None if n_rows > _FEW_ROWS else 1)
        table = pd.concat(parts, ignore_index=True)
        return self._sorted(table.rename(columns=dict(self.study.singular)), keys)

    def _cluster_within(self, keys: Sequence[str]) -> str:
        """Name what intervals take whole in groups: within one relation, not relations."""
        if self.report.cluster not in keys:
            return self.report.cluster
        others = [name for name in self.study.clusters if name not in keys]
        return next((name for name in others if self.frame[name].notna().all()), "fact_id")

    def _sorted(self, table: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
        """Sort the rows of a table for reading: the models of a group side by side."""
        names = [self.study.singular.get(key, key) for key in keys]
        ordered = [*names[1:], names[0]]
        places = [
            tuple(self._rank(name, value) for name, value in zip(ordered, values, strict=True))
            for values in zip(*(table[name] for name in ordered), strict=True)
        ]
        rows = sorted(range(len(table)), key=places.__getitem__)
        return table.iloc[rows].reset_index(drop=True)

    def _rank(self, name: str, value: Any) -> tuple[int, str]:  # noqa: ANN401
        """Order labels as the study does; those that it does not list follow by name."""
        order = self.index if name == "model" else self.study.labels.get(name, {})
        places = list(order)
        return (places.index(value) if value in order else len(places), str(value))

    # Page.

    def page(self, tables: Mapping[str, Table]) -> Page:
        """Say what stands on the page.

        Args:
            tables: What `tables` returned, and the checks of the runs.

        Returns:
            The page.
        """
        return Page(
            title=f"{self.study.title}: {self._named()}",
            study=self.study.title,
            question=self.study.question,
            models=self.labels,
            finding=self.finding(tables),
            sections=self.sections(tables),
            checks=self.checks(tables),
            made=self.made(),
            method=self.method(),
            citation=self.study.citation,
        )

    def sections(self, tables: Mapping[str, Table]) -> list[Section]:
        """Say what stands between the finding and the checks.

        Args:
            tables: The tables.

        Returns:
            Squares, highlights, flips by group, numbers, answers and the tables of checks.
        """
        groups = [tables[name] for name in self.study.groupings if name in tables]
        sections = [self.squares_section(tables)]
        if highlights := self.highlight_blocks():
            sections.append(Section(anchor="highlights", title="Highlights", blocks=highlights))
        if dots := list(self.dots(tables)):
            sections.append(Section(anchor="flips", title="Where verdicts flip", blocks=dots))
        sections.append(
            Section(
                anchor="numbers",
                title="The numbers by group" if groups else "The numbers",
                blocks=[
                    tables["overall"],
                    *(tables[name] for name in ("same_answer", "generalisation") if name in tables),
                    *groups,
                ],
            )
        )
        if held := [tables[name] for name in tables if _is_contrast(name)]:
            sections.append(
                Section(
                    anchor="contrasts",
                    title="Differences that were tested",
                    blocks=held,
                    is_folded=True,
                )
            )
        if self.report.settings.answers:
            sections.append(Section(anchor="answers", title="Answers", blocks=[self.answers()]))
        own = self._own_tables()
        if checked := [tables[name] for name in tables if not (name in own or _is_contrast(name))]:
            sections.append(
                Section(
                    anchor="check-tables", title="Checks in numbers", blocks=checked, is_folded=True
                )
            )
        return sections

    def finding(self, tables: Mapping[str, Table]) -> Finding:
        """Say the finding: the flip rate, with accuracies and noise floor beside it.

        Args:
            tables: The tables.

        Returns:
            The finding.
        """
        first, second = self.study.conditions
        rows = self._rows(tables)
        sentence: list[Part] = []
        standfirst: list[Part] = []
        for row in rows:
            if is_hardly_right(row):
                continue
            sentence.append(", " if sentence else f"The {second} in place of the {first} flips ")
            sentence += [interval_value(row, "flip_rate", tone="lost")]
            sentence.append(f" of {row['model']}’s verdicts")
            standfirst += [
                f"{row['model']} is right on ",
                interval_value(row, "first_accuracy", tone="strong"),
                f" under the {first} and on ",
                interval_value(row, "second_accuracy", tone="strong"),
                f" under the {second}; of its {int(row['first_only'] + row['second_only']):,} "
                f"flips {int(row['first_only']):,} go from right to wrong. ",
            ]
            standfirst += self._same_sentence(tables, row)
            standfirst += self._noise_sentence(tables, row)
        sentence += [". "] if sentence else []
        for row in filter(is_hardly_right, rows):
            sentence += self._hardly_sentence(row)
        sentence = [*sentence[:-1], str(sentence[-1]).rstrip()] if sentence else ["No pair."]
        return Finding(
            sentence=sentence, standfirst=standfirst, warning=self.warning(), chips=self.chips()
        )

    def _hardly_sentence(self, row: Mapping[Any, Any]) -> list[Part]:
        """Lead with the accuracy of a model that is hardly ever right."""
        first, second = self.study.conditions
        return [
            f"{row['model']} is right on ",
            interval_value(row, "first_accuracy", tone="lost"),
            f" under the {first} and on ",
            interval_value(row, "second_accuracy", tone="lost"),
            f" under the {second}: hardly ever, so that the consistency of its verdicts says "
            "nothing. ",
        ]

    def _same_sentence(self, tables: Mapping[str, Table], row: Mapping[Any, Any]) -> Iterator[Part]:
        """Say how many of the pairs that are wrong twice have the same answer."""
        if "same_answer" not in tables:
            return
        found = tables["same_answer"].frame
        found = found[(found["model"] == row["model"]) & (found["among"] == "both wrong")]
        if self.panel is not None:
            found = found[found[self.panel] == row[self.panel]]
        for one in found.to_dict("records"):
            yield "Of the pairs that it gets wrong both times "
            yield interval_value(one, "same_answer", tone="strong")
            yield " have the same answer. "

    def squares_section(self, tables: Mapping[str, Table]) -> Section:
        """Show the contingency table of each model.

        Args:
            tables: The tables.

        Returns:
            The section.
        """
        first, second = self.study.conditions
        note: list[Part] = []
        if "contrasts" in tables:
            for row in tables["contrasts"].frame.to_dict("records"):
                if row["rate"] == "flip_rate" and len(note) < 5 * 4:
                    note += [
                        f"On the {int(row['n_a']):,} pairs that both answered, {row['a']} flips ",
                        interval_value(row, "difference", kind="difference", tone="strong"),
                        f" against {row['b']}, p ",
                        Value(value=float(row["p_value_holm"]), kind="p_value"),
                        ". ",
                    ]
        return Section(
            anchor="squares",
            title="The same fact, asked under both conditions",
            lead=[
                f"The left part of a square is what the model answers rightly under the {first}; "
                f"the upper part of each half is what it answers rightly under the {second}. Area "
                "is share."
            ],
            blocks=[
                Squares(
                    squares=[
                        self.square(row) for row in tables["overall"].frame.to_dict("records")
                    ],
                    conditions=self.study.conditions,
                    cells=self.study.cells,
                    note=note,
                )
            ],
        )

    def square(self, row: Mapping[Any, Any]) -> Square:
        """Draw the contingency table of one row.

        Args:
            row: A row of "overall".

        Returns:
            The square.
        """
        title = str(row["model"])
        filters = {"model": title}
        if self.panel is not None:
            title += f", {row[self.panel]}"
            filters[self.panel] = str(row[self.panel])
        return Square(
            title=title,
            model=self.index[str(row["model"])],
            **{name: int(row[name]) for name in COUNTS},
            facts=self.square_facts(row),
            filters=filters,
        )

    def square_facts(self, row: Mapping[Any, Any]) -> list[tuple[str, Value, str]]:
        """Say what stands below a square.

        Args:
            row: A row of "overall".

        Returns:
            Name, number and a remark, such as the test that was used.
        """
        first, second = self.study.conditions
        p_value = float(row.get("mcnemar_p_value", math.nan))
        method = TEST_NAMES.get(str(row.get("mcnemar_method")), "")
        return [
            ("same verdict", interval_value(row, "consistency"), ""),
            (f"kept of {first} right", interval_value(row, "consistency_given_first_correct"), ""),
            (
                f"{second} minus {first}",
                interval_value(row, "accuracy_difference", kind="difference"),
                "",
            ),
            ("kappa", interval_value(row, "kappa", kind="number"), ""),
            ("flips lean to one side", Value(value=p_value, kind="p_value"), method),
            *self._odds(row),
        ]

    def _odds(self, row: Mapping[Any, Any]) -> list[tuple[str, Value, str]]:
        """Say how many flips go from right to wrong for one that goes the other way."""
        odds = float(row.get("odds_ratio", math.nan))
        if not math.isfinite(odds):
            return []
        return [("flips to wrong for one to right", Value(value=odds, kind="number"), "b / c")]

    def highlight_blocks(self) -> list[Table]:
        """Show the tables that the runs put before all else.

        Returns:
            One table a title.
        """
        from surface_consistency.studies.reporting import plain_columns, stacked

        blocks = []
        for title in dict.fromkeys(title for run in self.report.runs for title in run.highlights):
            frame = stacked(
                self.report.runs, {run.label: run.highlights.get(title) for run in self.report.runs}
            )
            blocks.append(
                Table(frame=frame, caption=title.capitalize(), columns=plain_columns(frame))
            )
        return blocks

    def dots(self, tables: Mapping[str, Table]) -> Iterator[Dots]:
        """Show the flip rate by group over the noise floor.

        Args:
            tables: The tables.

        Yields:
            One chart a grouping and panel.
        """
        noise = self._noise_bounds(tables)
        for name, columns in self.study.groupings.items():
            frame = tables[name].frame
            key = self.study.singular.get(columns[-1], columns[-1])
            titles = self.study.labels.get(key, {})
            panels = (
                [(None, frame)]
                if self.panel is None
                else list(frame.groupby(self.panel, sort=False))
            )
            for shown, part in panels:
                panel, rows = str(shown or ""), []
                for group, found in part.groupby(key, sort=False):
                    label = str(group)
                    dots = [self._dot(row) for row in found.to_dict("records") if row["n"]]
                    if dots:
                        rows.append((titles.get(label, label.replace("_", " ")), 0, dots))
                if rows:
                    suffix = f"-{panel}" if len(panels) > 1 else ""
                    yield Dots(
                        name=f"flips-{name.removeprefix('by_')}{suffix}",
                        title=name.replace("_", " ").capitalize()
                        + (f", {panel}" if suffix else ""),
                        axis="flip rate, %",
                        rows=rows,
                        noise=noise,
                        clusters=self.clusters,
                    )

    def _dot(self, row: Mapping[Any, Any]) -> Dot:
        """Draw one group of one model."""
        adjusted = row.get("adjusted_p_value", math.nan)
        return Dot(
            model=self.index[str(row["model"])],
            value=interval_value(row, "flip_rate"),
            n=int(row["n"]),
            n_clusters=int(row["n_clusters"]),
            is_certain=bool(adjusted < 0.05),
            is_above_noise=bool(row.get("above_noise_p_value", math.nan) < 0.05),
        )

    def answers(self) -> Answers:
        """Gather pairs for the browser: flips first, the rest drawn within cells.

        Returns:
            At most `ReportSettings.answers` pairs a model.
        """
        chosen: list[Answer] = []
        totals = {}
        for run in self.report.runs:
            totals[self.index[run.label]] = len(run.outcomes)
            rows = run.outcomes
            cells = [
                cell_of(a, b)
                for a, b in zip(rows["first_correct"], rows["second_correct"], strict=True)
            ]
            places = self._sampled(run, cells)
            for place in places:
                row = rows.iloc[place].to_dict()
                chosen.append(self.answer(run, row, cells[place]))
        filters = list(dict.fromkeys(name for answer in chosen for name in answer.labels))
        return Answers(
            answers=chosen,
            n_pairs=totals,
            conditions=self.study.conditions,
            cells=self.study.cells,
            filters=filters,
        )

    def answer(self, run: "Run", row: Mapping[Any, Any], cell: str) -> Answer:
        """Show one pair.

        Args:
            run: The run.
            row: A row of its outcomes.
            cell: Its cell.

        Returns:
            The pair, from the columns first_surface, second_surface, first_prediction and
            second_prediction where the study has them.
        """
        labels = {
            self.study.singular.get(columns[-1], columns[-1]): self._texts(row, columns[-1])
            for columns in self.study.groupings.values()
        }
        if self.panel is not None:
            labels[self.panel] = [str(row[self.study.panel])]
        first, second = self.study.conditions
        return Answer(
            model=self.index[run.label],
            pair_id=str(row["pair_id"]),
            cell=cell,  # type: ignore[arg-type]
            question=str(row["fact_id"]),
            surfaces=(
                _text(row.get("first_surface")) or first,
                _text(row.get("second_surface")) or second,
            ),
            answers=(_text(row.get("first_prediction")), _text(row.get("second_prediction"))),
            labels=labels,
        )

    def _texts(self, row: Mapping[Any, Any], column: str) -> list[str]:
        """Read the labels of a cell."""
        value = row[column]
        titles = self.study.labels.get(self.study.singular.get(column, column), {})
        values = [value] if isinstance(value, str) or not isinstance(value, Iterable) else [*value]
        return [titles.get(str(item), str(item)) for item in values if not pd.isna(item)]

    def _sampled(self, run: "Run", cells: Sequence[str]) -> list[int]:
        """Choose pairs by the hash of their ids: cells in turn, flips first."""
        limit = self.report.settings.answers
        ids = run.outcomes["pair_id"].tolist()
        by_cell: dict[str, list[int]] = {
            name: [] for name in ("first_only", "second_only", "both", "neither", "missing")
        }
        for place, cell in enumerate(cells):
            by_cell[cell].append(place)
        if len(ids) > limit:
            for places in by_cell.values():
                places.sort(key=lambda place: _hash(run.label, str(ids[place])))
            share = {name: min(len(places), limit // 5) for name, places in by_cell.items()}
            for name, places in by_cell.items():
                share[name] += min(len(places) - share[name], limit - sum(share.values()))
            by_cell = {name: places[: share[name]] for name, places in by_cell.items()}
        return [place for places in by_cell.values() for place in places]

    def checks(self, tables: Mapping[str, Table]) -> list[Check]:
        """Ask what limits the numbers.

        Args:
            tables: The tables.

        Returns:
            "look here" first.
        """
        found = [*self._check_missing(), *self._check_replies(), *self._check_judges()]
        found += [*self._check_noise(tables), *self._check_sizes(tables)]
        return sorted(found, key=lambda check: check.level != "look here")

    def _check_missing(self) -> Iterator[Check]:
        """Tell how many pairs have no verdict, and what mars the answers."""
        for run in self.report.runs:
            frame = run.outcomes
            n_missing = int((frame["first_correct"].isna() | frame["second_correct"].isna()).sum())
            if n_missing:
                yield Check(
                    level="look here",
                    title="Missing verdicts",
                    text=[
                        f"{run.label}: {n_missing:,} of {len(frame):,} pairs lack a verdict and "
                        "are left out of every rate."
                    ],
                )
            yield from check_answers(run)
        if not any(
            (run.outcomes[["first_correct", "second_correct"]].isna()).any(axis=None)
            for run in self.report.runs
        ):
            yield Check(level="fine", title="All judged", text=["Every pair has both verdicts."])

    def _check_replies(self) -> Iterator[Check]:
        """Tell how many replies hold thoughts, and which hold no answer."""
        for run in self.report.runs:
            if "replies" not in run.checks:
                continue
            counts = {str(name): n for name, n in run.checks["replies"].iloc[0].items()}
            n_all, n_thoughts = int(counts["n_replies"]), int(counts["n_with_thought"])
            for kind, (title, sentence) in _NO_ANSWER.items():
                if n := int(counts[f"n_{kind}"]):
                    yield Check(
                        level="look here",
                        title=title,
                        text=[f"{run.label}: {n:,} of {n_all:,} replies {sentence}"],
                    )
            if n_thoughts:
                n_others = sum(
                    int(counts[f"n_{kind}"]) for kind in ("error", "content_filter", "refusal")
                )
                n_without = max(0, n_all - n_thoughts - n_others)
                rest = (
                    f" {n_without:,} hold none; if their prompts opened a thought, they are no "
                    "answers: say so with --thought-opened."
                )
                yield Check(
                    level="look here" if n_without else "fine",
                    title="Thoughts",
                    text=[
                        f"{run.label}: {n_thoughts:,} of {n_all:,} replies hold a thought, which "
                        f"was told apart from the answer and not judged.{rest if n_without else ''}"
                    ],
                )

    def _check_judges(self) -> Iterator[Check]:
        """Tell when runs were judged by different rules, so that they do not compare."""
        judged = {run.label: run.judged_by for run in self.report.runs}
        if len(set(judged.values())) > 1:
            told = "; ".join(f"{label} by {rule}" for label, rule in judged.items())
            yield Check(
                level="look here",
                title="Judged differently",
                text=[
                    f"{told}: a difference between these runs may be one of judges. Judge them "
                    "alike with `surface-consistency score`."
                ],
            )

    def _check_noise(self, tables: Mapping[str, Table]) -> Iterator[Check]:
        """Hold the flip rate against the noise floor."""
        held = tables["above_noise"].frame if "above_noise" in tables else None
        for row in self._rows(tables):
            label = str(row["model"])
            found = []
            if held is not None:
                of_row = held["model"] == label
                if self.panel is not None:
                    of_row &= held[self.panel] == row[self.panel]
                found = held[of_row].to_dict("records")
            if not found:
                yield Check(
                    level="look here",
                    title="No noise floor",
                    text=[
                        f"{label}: the same prompts were not asked twice, so a part of the flips "
                        "may be the runner’s own noise."
                    ],
                )
                continue
            nearest = max(found, key=lambda one: (one["p_value_holm"], -one["difference"]))
            above = nearest["difference"] > 0 and nearest["p_value_holm"] < 0.05
            yield Check(
                level="fine" if above else "look here",
                title="Above the noise" if above else "Near the noise",
                text=[
                    f"{label}: between the conditions verdicts flip by ",
                    interval_value(nearest, "difference", kind="difference"),
                    " more than those on identical prompts asked twice; p ",
                    Value(value=float(nearest["p_value_holm"]), kind="p_value"),
                    "." if above else ", so chance alone may do it.",
                ],
                anchor="contrasts",
            )

    def _check_sizes(self, tables: Mapping[str, Table]) -> Iterator[Check]:
        """Tell where few clusters or a low accuracy limit what can be said."""
        for row in self._rows(tables):
            if row["n_clusters"] < _FEW_CLUSTERS:
                yield Check(
                    level="look here",
                    title="Few clusters",
                    text=[
                        f"{row['model']}: the numbers stand on {int(row['n_clusters'])} "
                        f"{self.clusters}; below {_FEW_CLUSTERS} intervals still hold but "
                        "are wide, and say little."
                    ],
                )
            if is_hardly_right(row):
                yield Check(
                    level="look here",
                    title="Hardly anything right",
                    text=[
                        f"{row['model']} is hardly ever right, so that its verdicts agree by being "
                        "wrong twice: consistency says nothing here."
                    ],
                )

    def made(self) -> list[Made]:
        """Say how each run was made.

        Returns:
            Settings, command and signature of each run.
        """
        return [self._made(run) for run in self.report.runs]

    def _made(self, run: "Run") -> Made:
        """Say how one run was made."""
        manifest = run.manifest
        scoring = {} if run.scoring is None else run.scoring.settings
        report = self.report.settings.model_dump(mode="json") | {"cluster": self.report.cluster}
        settings = {**manifest.source, **manifest.settings, **scoring, **report}
        told: dict[str, object] = {
            "model": manifest.model,
            "data": manifest.data.id,
            "questions": f"{manifest.data.n_questions:,}",
            **{name.replace("_", " "): value for name, value in settings.items()},
            "revision": manifest.data.revision or f"digest {manifest.data.digest[:12]}",
            **{f"runner {name}": value for name, value in manifest.runner.items()},
            "judged by": run.judged_by,
            "started": manifest.created_at,
            "version": manifest.package_version,
        }
        return Made(
            label=run.label,
            settings={name: _setting(value) for name, value in told.items()},
            command=self.command(run),
            signature=run.signature,
        )

    def command(self, run: "Run") -> str:
        """Say by what a run was made.

        Args:
            run: The run.

        Returns:
            The command line that made it, and that which judged it when it is another, a line each.
        """
        judged = None if run.scoring is None else run.scoring.command
        made = dict.fromkeys([run.manifest.command, judged])
        return "\n".join(line or _FROM_PYTHON for line in made)

    def method(self) -> list[str]:
        """Write the method as prose for an appendix.

        Returns:
            Paragraphs.
        """
        first, second = self.study.conditions
        return [
            f"Every pair asks one fact twice, under the {first} and under the {second}. A pair is "
            "consistent when both answers are right or both are wrong; two different wrong answers "
            "count as consistent.",
            f"Brackets are 95 % intervals that take {self.clusters} whole, since pairs of one of "
            "them share an answer: Wilson’s with the number of independent pairs that they are "
            "worth, and for differences the MOVER interval from these. p tests whether flips lean "
            "to one side, by Obuchowski's form of McNemar's test where clusters hold several "
            "pairs, and by McNemar's own elsewhere; by group it is corrected by Holm's method.",
            "Two rates are compared by their difference within the same clusters, with an interval "
            "and a test by the jackknife over clusters and Student's t, never by whether their "
            "intervals overlap.",
            "The noise floor is the share of verdicts that flip when the very same prompt is asked "
            "again in other batches.",
        ]

    def warning(self) -> str:
        """Say what forbids quoting the numbers.

        Returns:
            A sentence, or nothing.
        """
        if any(run.manifest.data.id.endswith(("sample", "-sample")) for run in self.report.runs):
            return "Asked on the bundled sample: the numbers say nothing about a model."
        named = [{run.manifest.model, _last(run.manifest.runner)} for run in self.report.runs]
        if any("organism" in names for names in named):
            return "A model organism, trained for this run: the numbers say nothing about a model."
        return ""

    def chips(self) -> list[tuple[str, str]]:
        """Gather the facts under the finding.

        Returns:
            Names and values.
        """
        first = self.report.runs[0]
        n_pairs = max(len(run.outcomes) for run in self.report.runs)
        n_clusters = max(run.outcomes[self.report.cluster].nunique() for run in self.report.runs)
        return [
            ("data", first.manifest.data.id),
            ("pairs", f"{n_pairs:,} on {n_clusters:,} {self.clusters}"),
            ("judged by", " / ".join(dict.fromkeys(run.judged_by for run in self.report.runs))),
            ("run", first.manifest.created_at[:10]),
            ("version", first.manifest.package_version),
        ]

    def _rows(self, tables: Mapping[str, Table]) -> list[dict[Any, Any]]:
        """Give the rows of "overall" of the first panel, one a model, where there is a pair."""
        frame = tables["overall"].frame
        if self.panel is not None:
            frame = frame[frame[self.panel] == frame[self.panel].iloc[0]]
        return frame.drop_duplicates("model").to_dict("records")

    def _noise_bounds(self, tables: Mapping[str, Table]) -> dict[int, float]:
        """Find the upper bound of each model's noise floor, the largest of its strata."""
        table = tables.get("noise_floor")
        if table is None or "flip_rate_high" not in table.frame:
            return {}
        found = table.frame.groupby("model")["flip_rate_high"].max().dropna()
        return {self.index[str(label)]: float(bound) for label, bound in found.items()}

    def _noise_sentence(self, tables: Mapping[str, Table], row: Mapping[Any, Any]) -> list[Part]:
        """Say how often identical prompts flip."""
        table = tables.get("noise_floor")
        if table is None:
            return []
        found = table.frame[table.frame["model"] == row["model"]]
        stratum = self.study.stratum if self.study.stratum in found else None
        if stratum is not None and stratum == self.study.panel:
            found, stratum = found[found[stratum] == row[self.panel]], None
        parts: list[Part] = []
        for one in found[found["flip_rate"].notna()].to_dict("records"):
            parts.append(", " if parts else "Identical prompts asked twice flip ")
            parts.append(interval_value(one, "flip_rate", tone="strong"))
            if stratum is not None:
                parts.append(f" ({one[stratum]})")
        return [*parts, ". "] if parts else []

    def _own_tables(self) -> set[str]:
        """Name the tables that stand elsewhere on the page."""
        return {"overall", "same_answer", "generalisation", *self.study.groupings}

    def _named(self) -> str:
        """Name the runs in a title."""
        return ", ".join(self.labels) if len(self.labels) <= 3 else f"{len(self.labels)} runs"


def _is_contrast(name: str) -> bool:
    """Tell a table of `ContrastTables` by its name."""
    return name in ("above_noise", "contrasts") or name.startswith(("contrasts_", "models_"))


def _text(value: object) -> str | None:
    """Read a cell of text."""
    return value if isinstance(value, str) else None


def _last(runner: Mapping[str, Any]) -> str:
    """Name the folder of a runner's model, as `train_organism` chose it."""
    return PurePath(str(runner.get("model", ""))).name


def _hash(label: str, pair_id: str) -> bytes:
    """Order pairs in a way that is arbitrary yet always the same."""
    return hashlib.blake2b(f"{label}\x1f{pair_id}".encode("utf-8", "replace")).digest()


def _setting(value: object) -> str:
    """Write a setting for people."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_setting, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_setting(item)}" for name, item in value.items()) or "none"
    if value is None:
        return "none"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
