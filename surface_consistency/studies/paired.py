"""Tables and page of any paired study: what holds wherever there are two verdicts on one fact."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pandas as pd

from surface_consistency.metrics import (
    PAIRED_RATES,
    adjust_p_values,
    compare_models,
    kappa_of_counts,
    paired_by,
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

if TYPE_CHECKING:
    from surface_consistency.runs.loader import Run
    from surface_consistency.studies.study import Report, Study

__all__ = ["COUNTS", "PairedReport", "cell_of", "interval_value", "paired_columns"]

COUNTS: Final = ("both", "first_only", "second_only", "neither")
"""Columns of the four cells."""

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
_LOW_ACCURACY: Final = 0.05
_FROM_PYTHON: Final = "# from Python, with these settings"


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
        cluster: What is resampled, in the plural.
        adjusted: Whether the p-value is that of `adjusted_p_value`.

    Returns:
        The columns that people see: pairs, clusters, square, flips, accuracies, difference, test.
    """
    first, second = conditions
    p_key, p_unit = ("adjusted_p_value", "Holm") if adjusted else ("clustered_p_value", "clustered")
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
    table = paired_by(
        task.frame,
        by=task.keys,
        cluster=task.cluster,
        n_resamples=task.n_resamples,
        rng=task.seed,
    )
    tested = paired_by(
        task.frame,
        by=task.keys,
        cluster=task.cluster,
        rates={"kappa": kappa_of_counts},
        n_resamples=task.n_resamples if task.has_kappa else 1,
        rng=task.seed,
        test="obuchowski",
    )
    for name in ("kappa", "kappa_low", "kappa_high") if task.has_kappa else ():
        table[name] = tested[name].to_numpy()
    table["clustered_p_value"] = tested["mcnemar_p_value"].to_numpy()
    return table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Contrast:
    """The pairs of two models."""

    frame: pd.DataFrame
    cluster: str
    n_resamples: int
    seed: int


def _contrast(task: _Contrast) -> pd.DataFrame | None:
    """Compare two models; None where they share no pair."""
    is_scored = task.frame["first_correct"].notna() & task.frame["second_correct"].notna()
    if not task.frame.loc[is_scored, "pair_id"].duplicated().any():
        return None
    return compare_models(
        task.frame,
        rate=["flip_rate", "first_accuracy", "accuracy_difference"],
        cluster=task.cluster,
        n_resamples=task.n_resamples,
        rng=task.seed,
    )


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
        self._frame = report.frame

    # Tables.

    def tables(self) -> dict[str, Table]:
        """Compute "overall", one table a grouping of the study, and "contrasts" of several runs.

        Returns:
            Tables by name. "overall" and the groupings have the columns of `metrics.paired_by`, and
            clustered_p_value of Obuchowski's test, which takes the clusters into account; "overall"
            has kappa with its interval besides, the groupings adjusted_p_value, Holm's over the
            groups of a model.
        """
        tables = {"overall": self.overall()}
        tables |= {
            name: self.grouped(name, columns) for name, columns in self.study.groupings.items()
        }
        if len(self.labels) > 1:
            tables |= self.contrasts()
        return tables

    def overall(self) -> Table:
        """Compute the rates of all pairs, by model and panel.

        Returns:
            The table.
        """
        keys = self._keys(())
        return Table(
            frame=self._paired(keys, has_kappa=True),
            caption="All pairs",
            columns=self.score_columns(self.label_columns(keys)),
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
        heads = [key for key in labels if key in ("model", self.panel)]
        for _, places in frame.reset_index(drop=True).groupby(heads, sort=False).indices.items():
            adjusted[places] = adjust_p_values(frame["clustered_p_value"].to_numpy()[places])
        frame = frame.assign(adjusted_p_value=adjusted)
        order = [*labels[len(heads) :], *heads]
        return Table(
            frame=frame,
            caption=name.replace("_", " ").capitalize(),
            columns=self.score_columns(self.label_columns(order), adjusted=True),
            note="p is Obuchowski's, which respects clusters, after Holm's correction.",
            few="n_clusters",
        )

    def contrasts(self) -> dict[str, Table]:
        """Compare every two models on the pairs that both of them answered.

        Returns:
            "contrasts", one row a panel, rate and two models; nothing where no two share a pair.
        """
        wanted = list(dict.fromkeys(["model", "pair_id", self.report.cluster, *_VERDICTS]))
        tasks, panels = [], []
        for panel, part in self._panels():
            frames = dict(list(part[wanted].groupby("model", sort=False)))
            for one, other in combinations(filter(frames.__contains__, self.labels), 2):
                frame = pd.concat([frames[one], frames[other]], ignore_index=True)
                tasks.append(
                    _Contrast(
                        frame=frame,
                        cluster=self.report.cluster,
                        n_resamples=self.report.settings.resamples,
                        seed=self.report.settings.bootstrap_seed,
                    )
                )
                panels.append(panel)
        n_rows = sum(len(task.frame) for task in tasks)
        made = map_processes(_contrast, tasks, n_workers=None if n_rows > _FEW_ROWS else 1)
        rows = [
            found if panel is None else found.assign(**{panel[0]: panel[1]})
            for panel, found in zip(panels, made, strict=True)
            if found is not None
        ]
        if not rows:
            return {}
        frame = pd.concat(rows, ignore_index=True)
        shown = [Column(key="model_a", title="Model"), Column(key="model_b", title="Against")]
        if self.panel in frame:
            shown = [*self.label_columns([str(self.panel)]), *shown]
        return {
            "contrasts": Table(
                frame=frame,
                caption="Models on the pairs that both answered",
                model=None,
                columns=[
                    *shown,
                    Column(
                        key="rate",
                        title="Rate",
                        labels={name: name.replace("_", " ") for name in PAIRED_RATES},
                    ),
                    Column(key="n", title="Pairs", kind="count"),
                    Column(
                        key="difference",
                        title="Difference",
                        kind="difference",
                        unit="points",
                        low="difference_low",
                        high="difference_high",
                    ),
                    Column(key="p_value", title="p", kind="p_value"),
                ],
            )
        }

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
        wanted = list(dict.fromkeys([*keys, self.report.cluster, *_VERDICTS]))
        tasks = [
            _Paired(
                frame=run.outcomes[wanted],
                keys=keys,
                cluster=self.report.cluster,
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

    def _panels(self) -> Iterator[tuple[tuple[str, str] | None, pd.DataFrame]]:
        """Part the outcomes by panel."""
        if self.study.panel is None:
            yield None, self._frame
            return
        for value, part in self._frame.groupby(self.study.panel, sort=False):
            yield (str(self.panel), str(value)), part

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
                blocks=[tables["overall"], *groups],
            )
        )
        if self.report.settings.answers:
            sections.append(Section(anchor="answers", title="Answers", blocks=[self.answers()]))
        if checked := [tables[name] for name in tables if name not in self._own_tables()]:
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
        sentence: list[Part] = [f"The {second} in place of the {first} flips "]
        for place, row in enumerate(rows):
            sentence += [", " if place else "", interval_value(row, "flip_rate", tone="lost")]
            sentence.append(f" of {row['model']}’s verdicts")
        sentence.append(".")
        standfirst: list[Part] = []
        for row in rows:
            standfirst += [
                f"{row['model']} is right on ",
                interval_value(row, "first_accuracy", tone="strong"),
                f" under the {first} and on ",
                interval_value(row, "second_accuracy", tone="strong"),
                f" under the {second}; of its {int(row['first_only'] + row['second_only']):,} "
                f"flips {int(row['first_only']):,} go from right to wrong. ",
            ]
            standfirst += self._noise_sentence(tables, row)
        return Finding(
            sentence=sentence, standfirst=standfirst, warning=self.warning(), chips=self.chips()
        )

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
                if row["rate"] == "flip_rate" and len(note) < 3 * 4:
                    note += [
                        f"On the {int(row['n']):,} pairs that both answered, {row['model_b']} "
                        "flips ",
                        interval_value(row, "difference", kind="difference", tone="strong"),
                        f" against {row['model_a']}. ",
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
        p_value = float(row.get("clustered_p_value", math.nan))
        return [
            ("same verdict", interval_value(row, "consistency"), ""),
            (f"kept of {first} right", interval_value(row, "consistency_given_first_correct"), ""),
            (
                f"{second} minus {first}",
                interval_value(row, "accuracy_difference", kind="difference"),
                "",
            ),
            ("kappa", interval_value(row, "kappa", kind="number"), ""),
            ("flips lean to one side", Value(value=p_value, kind="p_value"), "Obuchowski"),
        ]

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
        found = [*self._check_missing(), *self._check_judges()]
        found += [*self._check_noise(tables), *self._check_sizes(tables)]
        return sorted(found, key=lambda check: check.level != "look here")

    def _check_missing(self) -> Iterator[Check]:
        """Tell how many pairs have no verdict, and how many answers are empty."""
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
            if "first_prediction" in frame:
                predictions = pd.concat([frame["first_prediction"], frame["second_prediction"]])
                empty = int((predictions.notna() & (predictions.str.strip() == "")).sum())
                if empty > 0.02 * len(predictions):
                    yield Check(
                        level="look here",
                        title="Empty answers",
                        text=[
                            f"{run.label}: {empty:,} of {len(predictions):,} judged answers are "
                            "empty and count as wrong. If the outputs begin with a newline, judge "
                            "the whole output."
                        ],
                    )
        if not any(
            (run.outcomes[["first_correct", "second_correct"]].isna()).any(axis=None)
            for run in self.report.runs
        ):
            yield Check(level="fine", title="All judged", text=["Every pair has both verdicts."])

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
        bounds = self._noise_bounds(tables)
        for row in self._rows(tables):
            label = str(row["model"])
            if self.index[label] not in bounds:
                yield Check(
                    level="look here",
                    title="No noise floor",
                    text=[
                        f"{label}: the same prompts were not asked twice, so a part of the flips "
                        "may be the runner’s own noise."
                    ],
                )
                continue
            above = row["flip_rate_low"] > bounds[self.index[label]]
            yield Check(
                level="fine" if above else "look here",
                title="Above the noise" if above else "Near the noise",
                text=[
                    f"{label}: identical prompts asked twice flip up to ",
                    Value(value=bounds[self.index[label]]),
                    "; the flip rate between conditions "
                    + ("lies above it." if above else "does not lie clearly above it."),
                ],
                anchor="check-tables",
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
                        f"{self.clusters}; below {_FEW_CLUSTERS} bootstrap intervals are too "
                        "narrow."
                    ],
                )
            if row["n"] and max(row["first_accuracy"], row["second_accuracy"]) < _LOW_ACCURACY:
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
            f"Brackets are 95 % intervals from {self.report.settings.resamples:,} bootstrap "
            f"resamples of whole {self.clusters} (seed {self.report.settings.bootstrap_seed}), "
            "since pairs of one of them share an answer. p tests whether flips lean to one side, "
            "by Obuchowski's form of McNemar's test, which respects clusters; by group it is "
            "corrected by Holm's method.",
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
        return {"overall", *self.study.groupings}

    def _named(self) -> str:
        """Name the runs in a title."""
        return ", ".join(self.labels) if len(self.labels) <= 3 else f"{len(self.labels)} runs"


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
