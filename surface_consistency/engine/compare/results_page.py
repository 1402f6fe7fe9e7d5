"""What a comparison of models says, its tables and its page."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

import surface_consistency
from surface_consistency.engine.compare.results import (
    SAID_MISSING,
    ComparedResults,
    as_json,
)
from surface_consistency.errors import DataError
from surface_consistency.metrics.comparison.comparisons import VERDICTS, ModelComparisonResult
from surface_consistency.metrics.uncertainty.intervals import FEW_CLUSTERS
from surface_consistency.report.html import write_page
from surface_consistency.report.numbers import (
    format_cell,
    format_interval,
    format_number,
    interval_value,
    least_found,
    sentence_text,
    span_text,
    table_text,
    value_text,
)
from surface_consistency.report.page import (
    Answer,
    Answers,
    Check,
    Dot,
    Finding,
    ForestPlot,
    MosaicPlot,
    MosaicPlots,
    Page,
    Part,
    Provenance,
    Section,
    Value,
)
from surface_consistency.report.table import Column, Table, interval_column
from surface_consistency.report.wording import Wording
from surface_consistency.runs.command import COMMAND
from surface_consistency.runs.files import output_folder, staged, write_csv
from surface_consistency.runs.folder import RunFolder
from surface_consistency.text import one_line

_WORDING: Final = Wording("surface_consistency.engine.compare", "models.md.jinja")
_NO_EQUALITY: Final = (
    "“Not told apart” is no equality: only an interval within a margin is called equivalent."
)
_CELLS: Final = ("both", "reference_only", "model_only", "neither")
_MOST_LISTED: Final = 20
_MOST_PRINTED: Final = 45
_MOST_ROWS: Final = 500
_MOST_DRAWN: Final = 60
_MOST_STRIPS: Final = 100
_MOST_ANSWERS: Final = 500
_CITATION: Final = """\
@software{{surface_consistency,
  title = {{surface-consistency}},
  author = {{{{The surface-consistency authors}}}},
  version = {{{version}}}
}}
@misc{{miller2024errorbars,
  title = {{Adding Error Bars to Evals: A Statistical Approach to Language Model Evaluations}},
  author = {{Miller, Evan}},
  year = {{2024}},
  eprint = {{2411.00640}},
  archivePrefix = {{arXiv}}
}}
@article{{mogstad2024ranks,
  title = {{Inference for Ranks with Applications to Mobility across Neighbourhoods and Academic
           Achievement across Countries}},
  author = {{Mogstad, Magne and Romano, Joseph P. and Shaikh, Azeem M. and Wilhelm, Daniel}},
  journal = {{The Review of Economic Studies}},
  volume = {{91}},
  year = {{2024}}
}}"""


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

    def finding(self) -> list[Part]:
        """Say what the comparison shows, first what is missing.

        Returns:
            Words and numbers.
        """
        n, n_any = self.result.n_items, self.result.n_items_of_any
        parts = _WORDING.sentence(
            "missing", share=1 - n / n_any, most=SAID_MISSING, n_items=n, n_any=n_any
        )
        sentence = self._best() if self._of_all() else self._between(self._leading())
        return [*sentence, *([" ", *parts] if parts else [])]

    def summary(self) -> list[Part]:
        """Say who else is told apart, what could have been found, and which tasks disagree.

        Returns:
            Words and numbers.
        """
        rows, groups = self.differences, self.result.groups
        against = groups[groups["is_against"] & (groups["by"] == "task")]
        shown = against[against["is_shown_against"]]
        least = rows["detectable"].median() if len(rows) > 1 else np.nan
        noise = self.compared.noise
        return _WORDING.sentence(
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
        )

    def tables(self) -> dict[str, Table]:
        """Describe the frames.

        Returns:
            "differences", "models", and a table "by_<column>" for tasks and each slice.
        """
        tables = {"differences": self._differences(), "models": self._models()}
        for column, frame in self.result.groups.groupby("by", sort=False):
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
        order = {name: place for place, name in enumerate(self.result.models["model"])}
        rows = self.differences.sort_values("model", key=lambda names: names.map(order))
        return rows.iloc[0].to_dict()

    def _best(self) -> list[Part]:
        """Say which models may be the best."""
        models = self.result.models
        return _WORDING.sentence(
            "best",
            best=models.loc[models["may_be_best"], "model"].tolist(),
            n_models=len(models),
            level=f"{100 * self.compared.table.confidence:g}",
            what=self.what,
        )

    def _between(self, row: Mapping[Any, Any]) -> list[Part]:
        """Say what the difference of two models shows."""
        margin = self.compared.settings.margin
        return _WORDING.sentence(
            "between",
            row=row,
            what=self.what,
            kind=self.kind,
            by_holm=" by Holm’s method" if len(self.differences) > 1 else "",
            margin="" if margin is None else value_text(_plain(margin, self.kind)),
            most=self.result.scale[1] - self.result.scale[0],
        )

    def _names(self) -> list[tuple[str, list[str]]]:
        """Group the models by what is shown of them."""
        words = {
            "better": "better than",
            "worse": "worse than",
            "equivalent": "equivalent to",
            "not told apart": "not told apart from",
            "not inferred": "of too few clusters to be held against",
        }
        rows = self.differences
        named = [
            (verb, rows.loc[rows["conclusion"] == key, "model"]) for key, verb in words.items()
        ]
        return [(verb, list(models)) for verb, models in named if len(models)]

    def _differences(self) -> Table:
        """Describe the differences."""
        frame, has_margin = self.differences, self.compared.settings.margin is not None
        rate, kind, points = self.rate, self.kind, "points" if self.kind == "difference" else ""
        columns = [
            Column(key="model", title="Model"),
            Column(key="reference", title="Reference"),
            interval_column("difference", "Difference", kind, points),
            Column(key="p_value", title="p", kind="p_value"),
        ]
        if len(frame) > 1:
            columns.append(Column(key="p_value_holm", title="p", kind="p_value", unit="Holm"))
        columns.append(Column(key="conclusion", title="Shown"))
        if has_margin:
            columns += [
                Column(key="p_equivalent_holm", title="p", kind="p_value", unit="equivalent"),
                Column(key="p_not_worse_holm", title="p", kind="p_value", unit="not worse"),
            ]
        columns += [
            Column(key="detectable", title="Found 4 in 5", kind=kind, unit=points, on_phones=False),
            Column(key="n", title="Items", kind="count", on_phones=False),
            Column(key="n_clusters", title="Clusters", kind="count", on_phones=False),
            Column(key="reference_mean", title="Reference", kind=rate, unit=_percent(rate)),
            Column(key="model_mean", title="Model", kind=rate, unit=_percent(rate)),
        ]
        if self.result.is_verdicts:
            unit = "both/reference/model/neither"
            columns.append(
                Column(key="square", title="Right", kind="square", unit=unit, cells=_CELLS)
            )
        if self.n_tasks > 1:
            columns.append(interval_column("pooled_difference", "All items", kind, points))
        caption = f"Differences ({self.what})"
        return Table(frame=frame, caption=caption, columns=columns, model=None, note=self._scale())

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
        frame = self.result.models
        ranks = [*map(span_text, frame[["rank_low", "rank_high"]].to_numpy().tolist())]
        columns = [
            Column(key="model", title="Model"),
            Column(key="n", title="Items", kind="count"),
            Column(key="n_missing", title="Missing", kind="count"),
            interval_column("mean", "Mean", self.rate, _percent(self.rate)),
            Column(key="rank", title="Rank", kind="count", direction="lower"),
            Column(key="possible_ranks", title="Possible ranks"),
        ]
        return Table(
            frame=frame.assign(possible_ranks=ranks),
            caption=f"Means and ranks ({self.what})",
            columns=columns,
            model="model",
        )

    def _groups(self, column: str, frame: pd.DataFrame) -> Table:
        """Describe the differences within tasks or slices."""
        against = np.where(
            frame["is_shown_against"], "against the whole",
            np.where(frame["is_against"], "other sign, not shown", ""),
        )  # fmt: skip
        unit = "points" if self.kind == "difference" else ""
        return Table(
            frame=frame.assign(against=against).drop(columns="by"),
            caption=f"By {column.replace('_', ' ')} ({self.what})",
            columns=[
                Column(key="group", title=column.replace("_", " ").capitalize()),
                Column(key="model", title="Model"),
                Column(key="reference", title="Reference"),
                Column(key="n", title="Items", kind="count"),
                Column(key="n_clusters", title="Clusters", kind="count", on_phones=False),
                interval_column("difference", "Difference", self.kind, unit),
                Column(key="p_value_holm", title="p", kind="p_value", unit="Holm"),
                Column(key="against", title="Sign"),
            ],
            model=None,
            cluster_column="n_clusters",
        )

    def forest(self) -> ForestPlot:
        """Draw the differences, tasks below each.

        Returns:
            The chart.
        """
        rows: list[tuple[str, int, Sequence[Dot]]] = []
        remarks = {}
        groups = self.result.groups
        tasks = groups[groups["by"] == "task"]
        alpha = 1 - self.compared.table.confidence
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
            rows.append((label, 0, [self._dot(row, alpha)]))
            own = (tasks["model"] == row["model"]) & (tasks["reference"] == row["reference"])
            rows += [
                (str(one["group"]), 1, [self._dot(one, alpha)])
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

    def _value(self, row: Mapping[Any, Any]) -> Value:
        """Take a difference with its interval."""
        return interval_value(row, "difference", kind=self.kind)

    def _dot(self, row: Mapping[Any, Any], alpha: float) -> Dot:
        """Draw a difference."""
        return Dot(
            model=self.compared.models.index(str(row["model"])),
            value=self._value(row),
            n=int(row["n"]),
            n_clusters=int(row["n_clusters"]),
            is_certain=bool(row["p_value_holm"] < alpha),
        )

    def ranks(self) -> ForestPlot:
        """Draw the ranks that the data allow.

        Returns:
            The chart.
        """
        models = self.result.models
        step = -(-len(models) // 20)
        rows: list[tuple[str, int, Sequence[Dot]]] = [
            (
                str(row["model"]),
                0,
                [
                    Dot(
                        model=self.compared.models.index(str(row["model"])),
                        value=Value(
                            value=float(row["rank"]), low=float(row["rank_low"]),
                            high=float(row["rank_high"]), kind="number",
                        ),
                        n=int(row["n"]),
                        n_clusters=int(row["n_clusters"]),
                        is_certain=True,
                    )
                ],
            )
            for row in models.to_dict("records")
        ]  # fmt: skip
        return ForestPlot(
            name=f"ranks-{self.metric}",
            title=f"Which ranks are possible, {self.what}",
            axis="rank",
            rows=rows,
            clusters="possible",
            certain="",
            ticks=sorted({*range(1, len(models) + 1, step), len(models)}),
            remarks={
                str(row["model"]): span_text([row["rank_low"], row["rank_high"]])
                for row in models.to_dict("records")
            },
        )

    def square(self) -> MosaicPlots | None:
        """Draw the paired table of two models; None of scores or of more models.

        Returns:
            The square.
        """
        if len(self.differences) > 1 or not self.result.is_verdicts:
            return None
        row = self.differences.iloc[0]
        model, reference = str(row["model"]), str(row["reference"])
        counts = zip(("both", "first_only", "second_only", "neither"), _CELLS, strict=True)
        plot = MosaicPlot(
            title=f"{model} against {reference}",
            model=None,
            **{name: int(row[key]) for name, key in counts},  # type: ignore[arg-type]
        )
        return MosaicPlots(
            squares=[plot], conditions=(reference, model), cells=_cell_names(reference, model)
        )

    def checks(self) -> list[Check]:
        """Say whether the numbers can be trusted.

        Returns:
            The checks.
        """
        return _WORDING.checks(
            "checks",
            is_same_questions=self.compared.is_same_questions,
            n_items=self.result.n_items,
            n_any=self.result.n_items_of_any,
            models=self.result.models.to_dict("records"),
            n_clusters=self.n_clusters,
            few=FEW_CLUSTERS,
            clusters=self.compared.cluster_note,
            has_noise=not self.compared.noise.empty,
            notes=self.compared.notes,
        )


def _plain(number: float, kind: Literal["difference", "number"]) -> Value:
    """Set a number without interval and sign."""
    return Value(value=number, kind=kind, tone="lost")


def _percent(kind: str) -> str:
    """Return the unit of a mean."""
    return "%" if kind == "rate" else ""


def _cell_names(reference: str, model: str) -> tuple[str, str, str, str]:
    """Call the cells of a paired table of two models."""
    return ("both right", f"{reference} only", f"{model} only", "neither")


def comparison_text(compared: ComparedResults) -> str:
    """Write a comparison for the terminal.

    Args:
        compared: The comparison.

    Returns:
        For each metric the finding, what stands beside it, and its tables; then the notes.
    """
    parts = []
    for metric in compared.metrics:
        report = ComparisonReport(compared, metric)
        parts.append(
            " ".join(filter(None, map(sentence_text, (report.finding(), report.summary()))))
        )
        parts += [table_text(_first(table, _MOST_PRINTED)) for table in report.tables().values()]
    noted = [
        f"clusters: {compared.cluster_note}",
        *(f"note: {note}" for note in (*compared.missing, *compared.notes)),
    ]
    return "\n\n".join([*parts, "\n".join(noted)]).replace("\u00a0", " ")


def _first(table: Table, most: int) -> Table:
    """Take the first rows of a table, and say how many there are."""
    n = len(table.frame)
    if n <= most:
        return table
    more = f"The first {most} of {n:,} rows; tables/ of --out has all."
    note = " ".join(filter(None, (table.note, more)))
    return replace(table, frame=table.frame.head(most), note=note)


def comparison_json(compared: ComparedResults) -> Iterator[str]:
    """Write a comparison for programs.

    Args:
        compared: The comparison.

    Yields:
        One JSON object a metric: metric, finding, n_items, n_items_of_any, scale, clusters,
        equality, models, differences, groups, notes. Undefined numbers are null.
    """
    for metric, result in compared.metrics.items():
        report = ComparisonReport(compared, metric)
        equality = result.equality
        yield json.dumps(
            {
                "metric": metric,
                "finding": sentence_text(report.finding()).replace("\u00a0", " "),
                "n_items": result.n_items,
                "n_items_of_any": result.n_items_of_any,
                "scale": [as_json(end) for end in result.scale],
                "clusters": compared.cluster_note,
                "equality": equality and {"statistic": as_json(equality.statistic),
                                          "p_value": as_json(equality.p_value),
                                          "df": list(equality.df)},
                "models": _records(result.models),
                "differences": _records(report.differences),
                "groups": _records(result.groups),
                "notes": [*compared.missing, *compared.notes],
            },
            ensure_ascii=False,
            allow_nan=False,
        )  # fmt: skip


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Write the rows of a frame as JSON has them."""
    return [
        {str(key): as_json(value) for key, value in row.items()} for row in frame.to_dict("records")
    ]


def comparison_markdown(compared: ComparedResults) -> str:
    """Write a comparison as a comment of a pull request.

    Args:
        compared: The comparison.

    Returns:
        Of each metric the finding, the differences as a table, and the first items that were lost,
        with both answers.
    """
    parts = []
    for metric in compared.metrics:
        report = ComparisonReport(compared, metric)
        sentences = (f"**{sentence_text(report.finding())}**", sentence_text(report.summary()))
        parts += [
            *filter(None, sentences),
            _markdown(_first(report.tables()["differences"], _MOST_PRINTED)),
        ]
        lists = [one[one["change"] == "lost"] for one in compared.changed(metric)]
        lost = pd.concat(lists) if lists else pd.DataFrame()
        if len(lost):
            listed = _listed(lost.head(_MOST_LISTED), f"{len(lost):,} items lost")
            parts.append(f"<details><summary>{listed.caption}</summary>\n\n{_markdown(listed)}\n\n"
                         "</details>")  # fmt: skip
    parts += [f"- {note}" for note in (*compared.missing, *compared.notes)]
    return "\n\n".join(parts).replace("\u00a0", " ")


def _markdown(table: Table) -> str:
    """Set a table in Markdown."""
    heads = [f"{one.title} ({one.unit})" if one.unit else one.title for one in table.columns]
    rows = [
        [" ".join(filter(None, format_cell(row, column))) for column in table.columns]
        for row in table.frame.to_dict("records")
    ]
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(_markdown_cell, line))} |" for line in lines)


def _markdown_cell(text: str) -> str:
    """Set a cell so that nothing of it is markup."""
    plain = one_line(text)[:200].replace("\\", "\\\\").replace("|", "\\|")
    return plain.replace("<", "&lt;").replace("`", "\\`")


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


def _listed(frame: pd.DataFrame, caption: str) -> Table:
    """Describe a list of items that changed; columns that hold nothing are left out."""
    shown = [key for key in _LISTED if (frame[key].notna() & (frame[key] != "")).any()]
    scores = ["reference_score", "model_score"]
    columns = [Column(key=key, title=_LISTED[key]) for key in shown]
    columns += [
        Column(key=key, title=key.replace("_", " ").capitalize(), kind="number") for key in scores
    ]
    return Table(frame=frame, caption=caption, columns=columns, model=None)


def write_comparison(compared: ComparedResults, out: str | os.PathLike[str]) -> Path:
    """Write the page of a comparison and its tables, all together or none.

    Args:
        compared: The comparison.
        out: Folder of `report.html` and `tables/`; made when absent.

    Returns:
        The page.

    Raises:
        DataError: If the folder holds a run, or a file cannot be written.
    """
    home = output_folder(out)
    folder = RunFolder(home)
    if folder.targets.exists() or folder.prompts.exists():
        raise DataError(
            f"{home} holds a run, beside which no page is written; choose another --out"
        )
    page, tables = comparison_page(compared)
    with staged(home, last="report.html") as beside:
        (beside / "tables").mkdir()
        for name, frame in tables.items():
            write_csv(beside / "tables" / f"{name}.csv", frame)
        write_page(page, beside / "report.html")
    return home / "report.html"


def comparison_page(compared: ComparedResults) -> tuple[Page, dict[str, pd.DataFrame]]:
    """Make the page of a comparison; its finding is of the first metric.

    Args:
        compared: The comparison.

    Returns:
        The page, and the frames of its tables by name: "differences", "models", "by_<column>" and
        "changed", each with a column `metric`.
    """
    reports = [ComparisonReport(compared, metric) for metric in compared.metrics]
    frames: dict[str, list[pd.DataFrame]] = {}
    changed: dict[str, list[pd.DataFrame]] = {}
    for report in reports:
        changed[report.metric] = list(compared.changed(report.metric))
        for name, table in report.tables().items():
            frames.setdefault(name, []).append(table.frame.assign(metric=report.metric))
        for one in changed[report.metric]:
            frames.setdefault("changed", []).append(one.assign(metric=report.metric))
    first = reports[0]
    answers = _answers(compared, first)
    sections = _sections(reports, changed[first.metric], answers)
    page = Page(
        title=f"Compare: {', '.join(compared.models[:4])}",
        study="Compare",
        question=f"{len(compared.models)} models on the same items, scored by {first.what}",
        models=compared.models,
        finding=Finding(
            sentence=first.finding(), summary=first.summary(), facts=_facts(compared, first)
        ),
        sections=sections,
        checks=first.checks(),
        provenance=_provenance(compared),
        method=_method(compared, first),
        citation=_CITATION.format(version=surface_consistency.__version__),
    )
    return page, {name: pd.concat(parts, ignore_index=True) for name, parts in frames.items()}


def _method(compared: ComparedResults, report: ComparisonReport) -> list[str]:
    """Say how the numbers were made."""
    paragraphs = _WORDING.paragraphs(
        "method",
        n_tasks=report.n_tasks,
        level=f"{100 * compared.table.confidence:g}",
        clusters=compared.cluster_note,
        n_rows=len(report.differences),
    )
    return [sentence_text(parts) for parts in paragraphs]


def _facts(compared: ComparedResults, report: ComparisonReport) -> list[tuple[str, str]]:
    """List what stands on chips."""
    result, margin = report.result, compared.settings.margin
    facts = {
        "baseline": compared.settings.baseline or "",
        "items": f"{result.n_items:,} common of {result.n_items_of_any:,}",
        "clusters": f"{report.n_clusters:,} ({compared.cluster_note})",
        "margin": "" if margin is None else value_text(_plain(margin, report.kind)),
        "metric": report.what,
        "files": ", ".join(compared.tools),
    }
    return [(name, value) for name, value in facts.items() if value]


def _sections(
    reports: Sequence[ComparisonReport], changed: Sequence[pd.DataFrame], answers: Answers | None
) -> list[Section]:
    """Put the parts of the page in order."""
    first = reports[0]
    sections = []
    square = first.square()
    if square is not None:
        sections.append(
            Section(anchor="squares", title="The same items, scored of both", blocks=[square])
        )
    sections.append(
        Section(
            anchor="differences",
            title="Differences",
            lead=["Paired differences on the items that all models have a score for."],
            blocks=[report.forest() for report in reports],
        )
    )
    if len(first.compared.models) > 2:
        lead = (
            "Dot: the rank of the means. Line: every rank that the data allow, all models at once."
        )
        ranks = [report.ranks() for report in reports]
        sections.append(Section(anchor="ranks", title="Ranks", lead=[lead], blocks=ranks))
    tables = [_first(table, _MOST_ROWS) for report in reports for table in report.tables().values()]
    sections.append(Section(anchor="numbers", title="Numbers", blocks=tables))
    if answers is not None:
        sections.append(Section(anchor="answers", title="Answers", blocks=[answers]))
    elif any(len(one) for one in changed):
        sections.append(_changes(changed))
    return sections


def _changes(changed: Sequence[pd.DataFrame]) -> Section:
    """List what was lost most, where there is no browser of answers."""
    blocks = [
        _listed(one.head(_MOST_LISTED), f"{one['model'].iat[0]} against {one['reference'].iat[0]}")
        for one in changed
        if len(one)
    ]
    n = sum(map(len, changed))
    lead = (
        f"The largest losses; all {n:,} items that score differently stand in tables/changed.csv."
    )
    return Section(anchor="changed", title="Changed items", lead=[lead], blocks=blocks)


def _answers(compared: ComparedResults, report: ComparisonReport) -> Answers | None:
    """Gather items with both answers; None without texts, of scores, and of all pairs."""
    rows = compared.rows[compared.rows["metric"] == report.metric]
    has_one_reference = report.differences["reference"].nunique() == 1
    if not (report.result.is_verdicts and has_one_reference) or rows["prediction"].isna().all():
        return None
    reference = str(report.differences["reference"].iat[0])
    of_models = {str(name): part for name, part in rows.groupby("model", sort=False)}
    names = [name for name in compared.models if name != reference]
    is_one = len(names) == 1
    chosen = [one for name in names for one in _answers_of(compared, of_models, name, reference)]
    model = names[0] if is_one else "the model"
    return Answers(
        answers=chosen,
        n_pairs={compared.models.index(name): report.result.n_items for name in names},
        conditions=(reference, model),
        cells=_cell_names(reference, model),
        filters=["task"] if report.n_tasks > 1 else [],
    )


_PLACES: Final = ("task", "item", "form")
_CELL_OF: Final[Mapping[tuple[float, float], str]] = {
    (1, 1): "both", (1, 0): "first_only", (0, 1): "second_only", (0, 0): "neither",
}  # fmt: skip


def _answers_of(
    compared: ComparedResults, of_models: Mapping[str, pd.DataFrame], name: str, reference: str
) -> Iterator[Answer]:
    """Yield items of one model, flips first, the rest drawn."""
    keys = list(_PLACES)
    both = of_models[reference].merge(
        of_models[name][[*keys, "score", "prediction"]], on=keys, suffixes=("", "_model")
    )
    both = both[both["score"].notna() & both["score_model"].notna()]
    both = both.sample(frac=1.0, random_state=0)
    is_same = (both["score"] == both["score_model"]).to_numpy()
    both = both.iloc[np.argsort(is_same, kind="stable")]
    place = compared.models.index(name)
    for row in islice(both.to_dict("records"), _MOST_ANSWERS):
        texts = [
            None if pd.isna(row[key]) else str(row[key])
            for key in ("prediction", "prediction_model")
        ]
        yield Answer(
            model=place,
            pair_id="-".join(filter(None, (str(row[key]) for key in keys))),
            cell=_CELL_OF[row["score"], row["score_model"]],  # type: ignore[arg-type]
            question=str(row["item"] if pd.isna(row["question"]) else row["question"]),
            surfaces=(reference, name),
            answers=(texts[0], texts[1]),
            accepted=row["references"],
            labels={"task": [str(row["task"])]},
        )


def _provenance(compared: ComparedResults) -> list[Provenance]:
    """Say of each model where its results came from."""
    files = compared.rows.groupby("model", sort=False)["file"].unique()
    command = COMMAND.get() or "compare_results(...)"
    return [
        Provenance(
            label=str(name),
            settings={"files": ", ".join(Path(str(file)).name for file in files[name])},
            command=command,
            signature=f"surface-consistency {surface_consistency.__version__}, compare",
        )
        for name in compared.models
    ]
