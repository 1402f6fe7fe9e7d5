"""The page of two runs: what the second model lost of what the first one knew, and who forgot what.

A pair is one question; flips are told by their direction, since what is lost weighs more than what
changes.

References:
    Yan et al. 2021, Positive-Congruent Training: Towards Regression-Free Model Updates (CVPR),
    section 3: the negative flip rate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from surface_consistency.engine.paired.page import PairedReport
from surface_consistency.report.numbers import sentence_text
from surface_consistency.report.page import Answer, Check, Finding, Section
from surface_consistency.report.table import Column, Table, interval_column
from surface_consistency.report.wording import Wording
from surface_consistency.runs.loader import Run
from surface_consistency.schemas import PairedOutcome

_WORDING: Final = Wording("surface_consistency.engine.compare")
"""The template `page.md.jinja`."""


class RunsOutcome(PairedOutcome):
    """One question, asked of two models."""

    question: str | None
    """The question; None where the run does not keep it."""

    first_prediction: str | None
    """Judged part of the first model's answer."""

    second_prediction: str | None
    """Judged part of the second model's answer."""


class RunsReport(PairedReport):
    """The page of two runs: what was lost and what was gained, in which groups."""

    def overall(self) -> Table:
        """Add lost_of_known and gained_of_unknown; see `PairedTables.overall`."""
        return _with_directions(super().overall())

    def grouped(self, name: str, columns: tuple[str, ...]) -> Table:
        """Add lost_of_known and gained_of_unknown; see `PairedTables.grouped`."""
        return _with_directions(super().grouped(name, columns))

    def tables(self) -> dict[str, Table]:
        """Compute the tables of a paired study, and list what changed.

        Returns:
            Those of `PairedReport.tables`, and "changed": one row a question whose verdict
            changed, with both answers.
        """
        frame = self.frame
        known = frame["first_correct"].notna() & frame["second_correct"].notna()
        flips = frame[known & (frame["first_correct"] != frame["second_correct"])]
        groups = [column for columns in self.design.groupings.values() for column in columns]
        titles = dict(
            zip(("first_prediction", "second_prediction"), self.design.conditions, strict=True)
        )
        rows = flips[["pair_id", "fact_id", "question", *titles]].assign(
            **{name: flips[name].map("; ".join) for name in groups}
        )
        change = np.where(flips["first_correct"].astype(bool), "lost", "gained")
        rows.insert(0, "change", change)
        rows = rows.sort_values(["change", "fact_id", "pair_id"], ascending=[False, True, True])
        changed = Table(
            frame=rows.reset_index(drop=True),
            caption="Questions whose verdict changed",
            columns=[
                Column(key=key, title=titles.get(key, key.replace("_", " ").capitalize()))
                for key in ("change", "fact_id", "question", *titles)
            ],
            model=None,
        )
        return super().tables() | {"changed": changed}

    def finding(self, tables: Mapping[str, Table]) -> Finding:
        """Say what the second model lost of what the first one knew, and what it gained."""
        first, second = self.design.conditions
        row = tables["overall"].frame.iloc[0].to_dict()
        facts = {"row": row, "first": first, "second": second, "clusters": self.clusters}
        return Finding(
            sentence=_WORDING.sentence("finding", **facts),
            summary=_WORDING.sentence("summary", same=self._wrong_twice(tables, row), **facts),
            warning=self.warning(),
            facts=self.key_facts(),
        )

    def squares_section(self, tables: Mapping[str, Table]) -> Section:
        """Show the square of both models; see `PairedReport.squares_section`."""
        first, second = self.design.conditions
        return replace(
            super().squares_section(tables),
            title="The same questions, asked of both models",
            lead=_WORDING.sentence("squares", first=first, second=second),
        )

    def method(self) -> list[str]:
        """Say what a pair is, and the rest as `PairedReport.method`."""
        first, second = self.design.conditions
        pairs = _WORDING.sentence("method", first=first, second=second)
        return [sentence_text(pairs), *super().method()[1:]]

    def score_columns(self, labels: Sequence[Column], *, adjusted: bool = False) -> list[Column]:
        """Leave out the model, which is both; see `PairedTables.score_columns`."""
        shown = [column for column in labels if column.key != "model"]
        return super().score_columns(shown, adjusted=adjusted)

    def answer(self, run: Run, row: Mapping[Any, Any], cell: str) -> Answer:
        """Show one question; see `PairedReport.answer`."""
        shown = super().answer(run, row, cell)
        return replace(shown, question=str(row["question"] or row["fact_id"]))

    def _check_noise(self, tables: Mapping[str, Table]) -> list[Check]:
        """Tell how often either model flips by itself, beside how often they differ."""
        noise = tables["noise_of_runs"].frame if "noise_of_runs" in tables else None
        return _WORDING.checks(
            "noise",
            noise=[
                (label, [] if noise is None else noise[noise["run"] == label].to_dict("records"))
                for label in self.design.conditions
            ],
        )

    def _own_tables(self) -> set[str]:
        """Name the tables that stand elsewhere on the page, or in their file alone."""
        return super()._own_tables() | {"changed"}


def _with_directions(table: Table) -> Table:
    """Add what was lost of what was known, and gained of what was not."""
    frame = table.frame
    added = {}
    for name, complement in (
        ("lost_of_known", "consistency_given_first_correct"),
        ("gained_of_unknown", "consistency_given_first_incorrect"),
    ):
        ends = {"": "", "_low": "_high", "_high": "_low"}
        for end, other in ends.items():
            added[f"{name}{end}"] = 1 - frame[f"{complement}{other}"]
    columns = list(table.columns)
    place = next(n for n, column in enumerate(columns) if column.key == "flip_rate")
    columns[place : place + 1] = [
        interval_column("negative_flip_rate", "Lost", "rate", "of all, %", direction="lower"),
        interval_column("lost_of_known", "Lost", "rate", "of known, %", direction="lower"),
        interval_column("positive_flip_rate", "Gained", "rate", "of all, %", direction="higher"),
    ]
    return replace(table, frame=frame.assign(**added), columns=columns)
