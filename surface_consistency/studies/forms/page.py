"""The page of a study of forms: what decides a verdict, which forms lose, and which go together."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pandas as pd

from surface_consistency.engine.design import Report
from surface_consistency.engine.paired.page import PairedReport
from surface_consistency.report.page import (
    Answer,
    Answers,
    Block,
    Check,
    Dot,
    Finding,
    ForestPlot,
    Heatmap,
    Lines,
    MosaicPlots,
    Point,
    Section,
    Series,
    Value,
)
from surface_consistency.report.wording import Wording
from surface_consistency.runs.loader import Run
from surface_consistency.studies.forms.tables import FormTables
from surface_consistency.tables.numbers import interval_value, shown_sign
from surface_consistency.tables.table import Table

_WORDING: Final = Wording("surface_consistency.studies.forms")
_SHOWN_ROWS: Final = 50
"""Forms that tables and charts of the page show; the CSV files have all."""
_SQUARES: Final = 12
_FOLDED: Final = ("contrasts", "check-tables")
_OWN: Final = (
    *("forms", "variance", "spread", "right_counts", "form_answers", "form_pairs", "samples"),
    *("models_forms", "rank_agreement"),
)


class FormsReport(PairedReport):
    """Computes the tables of all forms together, and what their page says.

    Args:
        report: The runs.
    """

    def __init__(self, report: Report) -> None:
        super().__init__(_as_held(report))
        self._right: dict[str, dict[tuple[str, int], str]] = {}

    def tables(self) -> dict[str, Table]:
        """Compute the tables of `FormTables` before those of the reference against each form.

        Returns:
            Tables by name.
        """
        outcomes = {run.label: run.outcomes for run in self.report.runs}
        return FormTables(outcomes).tables() | super().tables()

    def finding(self, tables: Mapping[str, Table]) -> Finding:
        """Say how often two forms agree, with accuracy, losses and the question of the interval.

        Args:
            tables: The tables.

        Returns:
            The finding.
        """
        rows = [self._facts_of(tables, label) for label in self.labels]
        return Finding(
            sentence=_WORDING.sentence("finding", rows=rows),
            summary=_WORDING.sentence(
                "summary", rows=rows, models=self._model_rows(tables), reference=self._reference()
            ),
            warning=self.warning(),
            facts=self.key_facts(),
        )

    def _reference(self) -> str:
        """Name the reference form."""
        names = self.frame["first_condition"].unique()
        return str(names[0]) if len(names) == 1 else "reference form"

    def _facts_of(self, tables: Mapping[str, Table], label: str) -> dict[str, Any]:
        """Gather what is said of a model."""
        of_model = {
            name: table.frame[table.frame["model"] == label].to_dict("records")
            for name, table in tables.items()
            if "model" in table.frame
        }
        forms = of_model["forms"]
        against = [
            row | {"sign": shown_sign(row, "accuracy_difference", row["adjusted_p_value"])}
            for row in of_model["by_form"]
        ]
        wrong = [row for row in of_model.get("same_answer", ()) if row["among"] == "both wrong"]
        run = next(run for run in self.report.runs if run.label == label)
        by_item = run.outcomes.groupby(["fact_id", "sample"])["first_surface"]
        sizes = by_item.size() + by_item.count().clip(upper=1)
        return {
            "model": label,
            "these": forms[0],
            "like": forms[-1],
            "n_sizes": (int(sizes.min()), int(sizes.max())),
            "lower": [row["form"] for row in against if row["sign"] == -1],
            "higher": [row["form"] for row in against if row["sign"] == 1],
            "unclear": [row["form"] for row in against if row["sign"] == 0],
            "spread": of_model.get("spread", []),
            "wrong": wrong,
            "is_comparable": bool(run.outcomes["is_same_answer"].all()),
            "samples": of_model.get("samples", []),
            "wordings": run.outcomes["wordings"].iloc[0],
        }

    def _model_rows(self, tables: Mapping[str, Table]) -> list[dict[Any, Any]]:
        """List how far two models differ in consistency."""
        if "models_forms" not in tables:
            return []
        frame = tables["models_forms"].frame
        rows: list[dict[Any, Any]] = frame[frame["rate"] == "consistency"].to_dict("records")
        return rows[:4]

    def sections(self, tables: Mapping[str, Table]) -> list[Section]:
        """Say what stands between the finding and the checks.

        Args:
            tables: The tables.

        Returns:
            What decides a verdict, accuracy by form, how many forms are right, which go together,
            squares, numbers, answers, and the tables of tests and checks.
        """
        paired = {section.anchor: section for section in super().sections(tables)}
        own = [id(tables[name]) for name in _OWN if name in tables]
        rest = [one for one in _blocks(paired, "check-tables") if id(one) not in own]
        names = (
            *(name for name in _OWN if name != "form_pairs"),
            "overall",
            *self.design.groupings,
        )
        names = (*names, "same_answer", "generalisation")
        parts: list[tuple[str, str, list[Block]]] = [
            ("decides", "What decides a verdict", self._decides(tables)),
            ("by-form", "Accuracy by form", _blocks(paired, "flips")),
            ("right-counts", "How many forms are right", list(self._counts(tables))),
            ("together", "Which forms go together", list(self._together(tables))),
            ("squares", "The reference against each form", self._squares(tables)),
            ("numbers", "The numbers", [_short(tables[one]) for one in names if one in tables]),
            ("contrasts", "Differences that were tested", _blocks(paired, "contrasts")),
            ("answers", "Items, by how evenly their forms split", _blocks(paired, "answers")),
            ("check-tables", "Checks in numbers", rest),
        ]
        leads = {
            name: _WORDING.sentence(f"lead_{name.replace('-', '_')}", reference=self._reference())
            for name in ("decides", "by-form", "right-counts", "together", "squares", "answers")
        }
        return [
            Section(
                anchor=anchor,
                title=title,
                lead=leads.get(anchor, ()),
                blocks=blocks,
                is_folded=anchor in _FOLDED,
            )
            for anchor, title, blocks in parts
            if blocks
        ]

    def _decides(self, tables: Mapping[str, Table]) -> list[Block]:
        """Show the shares of the variance, if there are items enough for them."""
        if "variance" not in tables:
            return []
        frame = tables["variance"].frame
        rows = [
            (str(part), 0, [self._share(row) for row in of_part.to_dict("records")])
            for part, of_part in frame.groupby("part", sort=False)
        ]
        return [
            ForestPlot(
                name="variance",
                title="Shares of the variance of right and wrong",
                axis="share of the variance, %",
                rows=rows,
                clusters="clusters",
                certain="shown to be above 0",
            )
        ]

    def _share(self, row: Mapping[Any, Any]) -> Dot:
        """Draw a share of one model."""
        return Dot(
            model=self.index[str(row["model"])],
            value=interval_value(row, "share"),
            n=int(row["n"]),
            n_clusters=int(row["n_clusters"]),
            is_certain=shown_sign(row, "share") == 1,
        )

    def dots(self, tables: Mapping[str, Table]) -> Iterator[ForestPlot]:
        """Show the accuracy of each form, and kind of form, less that of the reference.

        Args:
            tables: The tables.

        Yields:
            One chart a grouping, of the forms that flip most where there are very many.
        """
        for name in self.design.groupings:
            frame = _first_forms(tables[name].frame)
            key = self.design.shown(self.design.groupings[name][-1])
            rows = [
                (str(label), 0, [self._difference(row) for row in part.to_dict("records")])
                for label, part in frame[frame["n"] > 0].groupby(key, sort=False)
            ]
            if rows:
                yield ForestPlot(
                    name=f"accuracy-{name.removeprefix('by_')}",
                    title=name.replace("_", " ").capitalize(),
                    axis=f"right, points less {self._reference()}",
                    rows=rows,
                    clusters=self.clusters,
                    certain="shown to differ (Holm)",
                )

    def _difference(self, row: Mapping[Any, Any]) -> Dot:
        """Draw one form of one model."""
        sign = shown_sign(row, "accuracy_difference", row["adjusted_p_value"])
        return Dot(
            model=self.index[str(row["model"])],
            value=interval_value(row, "accuracy_difference", kind="difference"),
            n=int(row["n"]),
            n_clusters=int(row["n_clusters"]),
            is_certain=bool(sign),
        )

    def _counts(self, tables: Mapping[str, Table]) -> Iterator[Lines]:
        """Show how many of k forms are right, beside what independence would give."""
        if "right_counts" not in tables:
            return
        frame = tables["right_counts"].frame
        series = []
        for label, part in frame.groupby("model", sort=False):
            rows = part.to_dict("records")
            model = self.index[str(label)]
            series.append(_series(str(label), model, rows, "share"))
            series.append(
                _series(f"{label}, if forms were independent", None, rows, "share_independent")
            )
        yield Lines(
            name="right-counts",
            title="Items by the number of right forms",
            x_title="forms answered rightly",
            series=series,
        )

    def _together(self, tables: Mapping[str, Table]) -> Iterator[Heatmap]:
        """Show how often the verdicts of every two forms differ."""
        if "form_pairs" not in tables:
            return
        frame = tables["form_pairs"].frame
        for label, part in frame.groupby("model", sort=False):
            names = list(dict.fromkeys([*part["first"], *part["second"]]))
            known = {
                (row["first"], row["second"]): 1.0 - row["agreement"]
                for row in part.to_dict("records")
            }
            known |= {(second, first): value for (first, second), value in known.items()}
            rows = [(one, [known.get((one, other), math.nan) for other in names]) for one in names]
            yield Heatmap(
                name=f"together-{self.index[str(label)]}",
                title=f"Items whose verdict differs between two forms, {label}",
                columns=names,
                panels=[("", rows)],
            )

    def _squares(self, tables: Mapping[str, Table]) -> list[Block]:
        """Show the reference against the forms that differ most from it."""
        frame = tables["by_form"].frame
        order = frame["flip_rate"].rank(ascending=False, method="first")
        rows = frame[(order <= _SQUARES) & (frame["n"] > 0)].to_dict("records")
        squares = [
            replace(
                self.square(row),
                title=f"{row['form']}" + (f", {row['model']}" if len(self.labels) > 1 else ""),
                filters={"model": str(row["model"]), "form": str(row["form"])},
            )
            for row in rows
        ]
        return [
            MosaicPlots(
                squares=squares,
                conditions=(self._reference(), "other form"),
                cells=self.design.cells,
                size="small",
            )
        ]

    def square_facts(self, row: Mapping[Any, Any]) -> list[tuple[str, Value, str]]:
        """Say what stands below a square: the difference; see `PairedReport.square_facts`."""
        difference = interval_value(row, "accuracy_difference", kind="difference")
        return [("other minus reference", difference, "")]

    def answers(self) -> Answers:
        """Gather pairs for the browser, items whose forms split most evenly first."""
        answers = super().answers()
        shown = sorted(answers.answers, key=lambda one: (one.model, _evenness(one), one.question))
        return replace(answers, answers=shown)

    def answer(self, run: Run, row: Mapping[Any, Any], cell: str) -> Answer:
        """Show one pair, with how many forms of its item are right; see `PairedReport.answer`."""
        answer = super().answer(run, row, cell)
        if run.label not in self._right:
            self._right[run.label] = _right_forms(run.outcomes)
        right = self._right[run.label].get((row["fact_id"], row["sample"]))
        return replace(answer, labels={**answer.labels, "right": [right] if right else []})

    def checks(self, tables: Mapping[str, Table]) -> list[Check]:
        """Ask what limits the numbers: forms that are few or unequal, and what paired pages ask.

        Args:
            tables: The tables.

        Returns:
            "warning" first.
        """
        rows = [self._facts_of(tables, label) for label in self.labels]
        spread = tables["spread"].frame.to_dict("records") if "spread" in tables else []
        checks = [*_WORDING.checks("checks", rows=rows, spread=spread), *super().checks(tables)]
        return sorted(checks, key=lambda check: check.level != "warning")


def _as_held(report: Report) -> Report:
    """Leave out of the design what the rows do not hold: kinds of forms, and clusters of items."""
    frame = report.frame
    changes: dict[str, Mapping[str, Any]] = {}
    if frame["kind"].isna().all():
        changes["groupings"] = {"by_form": report.design.groupings["by_form"]}
    if (frame["cluster"] == frame["fact_id"]).all():
        changes["clusters"] = {"fact_id": "items"}
        report = replace(report, cluster="fact_id")
    elif (frame["wordings"] == "templates").all():
        changes["clusters"] = {"cluster": "relations", "fact_id": "items"}
    return replace(report, design=report.design.model_copy(update=changes))


def _blocks(sections: Mapping[str, Section], anchor: str) -> list[Block]:
    """Take the blocks of a section, if it is there."""
    return list(sections[anchor].blocks) if anchor in sections else []


def _first_forms(frame: pd.DataFrame) -> pd.DataFrame:
    """Keep the forms that flip most, where there are too many for a page."""
    if len(frame) <= _SHOWN_ROWS:
        return frame
    places = frame["flip_rate"].rank(ascending=False, method="first")
    return frame[places <= _SHOWN_ROWS]


def _short(table: Table) -> Table:
    """Cut a table of very many forms for the page, and say so."""
    if len(table.frame) <= _SHOWN_ROWS:
        return table
    has_flips = "flip_rate" in table.frame
    shown = _first_forms(table.frame) if has_flips else table.frame.head(_SHOWN_ROWS)
    which = (
        f"The {_SHOWN_ROWS} rows that flip most" if has_flips else f"The first {_SHOWN_ROWS} rows"
    )
    note = f"{which}, of {len(table.frame):,}; the CSV file has all. {table.note}"
    return replace(table, frame=shown, note=note)


def _series(label: str, model: int | None, rows: Sequence[Mapping[Any, Any]], name: str) -> Series:
    """Draw a share by the number of right forms."""
    points = [Point(x=float(row["n_right"]), value=Value(value=float(row[name]))) for row in rows]
    return Series(label=label, model=model, points=points)


def _right_forms(outcomes: pd.DataFrame) -> dict[tuple[str, int], str]:
    """Count the right forms of each item and sample, such as "3 of 5"."""
    by_item = outcomes.groupby(["fact_id", "sample"], sort=False)
    right = by_item["second_correct"].sum() + by_item["first_correct"].first().fillna(False)
    judged = by_item["second_correct"].count() + by_item["first_correct"].first().notna()
    return {
        key: f"{int(n)} of {int(k)}" for key, n, k in zip(right.index, right, judged, strict=True)
    }


def _evenness(answer: Answer) -> float:
    """Tell how far the forms of an item are from half right."""
    n, _, k = "".join(answer.labels.get("right", ())).partition(" of ")
    return abs(int(n) / int(k) - 0.5) if k and int(k) else 1.0
