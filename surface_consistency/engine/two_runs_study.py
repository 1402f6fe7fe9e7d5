"""The page of two runs: what the second model lost of what the first one knew, and who forgot what.

A pair is one question; flips are told by their direction, since what is lost weighs more than what
changes.

References:
    Yan et al. 2021, Positive-Congruent Training: Towards Regression-Free Model Updates (CVPR),
    section 3: the negative flip rate.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from surface_consistency.engine.paired import PairedReport
from surface_consistency.engine.paired_tables import interval_value
from surface_consistency.engine.two_runs import TwoRuns
from surface_consistency.engine.verdicts import VerdictsSettings, VerdictsStudy, import_verdicts
from surface_consistency.report.page import Answer, Check, Finding, Part, Value
from surface_consistency.report.table import Column, Table, interval_column
from surface_consistency.runs.folder import RunFolder, Scoring
from surface_consistency.runs.loader import Run
from surface_consistency.schemas import PairedOutcome
from surface_consistency.schemas.settings import Settings

__all__ = [
    "RunsOutcome",
    "RunsReport",
    "RunsSettings",
    "RunsSource",
    "RunsStudy",
    "import_two_runs",
]


class RunsOutcome(PairedOutcome):
    """One question, asked of two models."""

    question: str | None
    """The question; None where the run does not keep it."""

    first_prediction: str | None
    """Judged part of the first model's answer."""

    second_prediction: str | None
    """Judged part of the second model's answer."""


class RunsSettings(VerdictsSettings):
    """How two runs are compared."""

    labels: Mapping[str, str] = Field(default_factory=dict)
    """Wording of the labels of groups, by "<column>:<label>"."""


class RunsSource(Settings):
    """The two runs."""

    first: str
    """Folder of the first run."""

    second: str
    """Folder of the second run."""


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
        change = np.where(flips["first_correct"].astype(bool), "lost", "gained")
        groups = [column for columns in self.study.groupings.values() for column in columns]
        rows = pd.DataFrame(
            {
                "change": change,
                "pair_id": flips["pair_id"],
                "fact_id": flips["fact_id"],
                "question": flips["question"],
                "first_prediction": flips["first_prediction"],
                "second_prediction": flips["second_prediction"],
                **{name: flips[name].map("; ".join) for name in groups},
            }
        ).sort_values(["change", "fact_id", "pair_id"], ascending=[False, True, True])
        titles = dict(
            zip(("first_prediction", "second_prediction"), self.study.conditions, strict=True)
        )
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
        first, second = self.study.conditions
        row = tables["overall"].frame.iloc[0].to_dict()
        n_known = int(row["both"] + row["first_only"])
        sentence: list[Part] = [
            f"{second} in place of {first} loses ",
            interval_value(row, "lost_of_known", tone="lost"),
            f" of the {n_known:,} questions that {first} answers rightly, and gains ",
            interval_value(row, "gained_of_unknown", tone="strong"),
            " of the others.",
        ]
        standfirst: list[Part] = [
            f"{int(row['first_only']):,} verdicts go from right to wrong and "
            f"{int(row['second_only']):,} from wrong to right; accuracy goes from ",
            interval_value(row, "first_accuracy", tone="strong"),
            " to ",
            interval_value(row, "second_accuracy", tone="strong"),
            ", by ",
            interval_value(row, "accuracy_difference", kind="difference", tone="strong"),
            ", ",
            Value(value=float(row["mcnemar_p_value"]), kind="p_value"),
            ". ",
        ]
        standfirst += self._same_sentence(tables, row)
        return Finding(
            sentence=sentence, standfirst=standfirst, warning=self.warning(), chips=self.chips()
        )

    def score_columns(self, labels: Sequence[Column], *, adjusted: bool = False) -> list[Column]:
        """Leave out the model, which is both; see `PairedTables.score_columns`."""
        shown = [column for column in labels if column.key != "model"]
        return super().score_columns(shown, adjusted=adjusted)

    def answer(self, run: Run, row: Mapping[Any, Any], cell: str) -> Answer:
        """Show one question; see `PairedReport.answer`."""
        shown = super().answer(run, row, cell)
        return replace(shown, question=str(row["question"] or row["fact_id"]))

    def _check_noise(self, tables: Mapping[str, Table]) -> Iterator[Check]:
        """Tell how often either model flips by itself, beside how often they differ."""
        held = tables["noise_of_runs"].frame if "noise_of_runs" in tables else None
        for label in self.study.conditions:
            rows = None if held is None else held[held["run"] == label]
            if rows is None or rows.empty:
                yield Check(
                    level="look here",
                    title="No noise floor",
                    text=[
                        f"{label}: no prompt has a verdict on each of two answers, so a part of "
                        "the flips may be the runner’s own noise; --repeat asks some twice."
                    ],
                )
                continue
            n, n_flips = int(rows["n_repeated"].sum()), int(rows["n_verdict_flips"].sum())
            flips = Value(value=n_flips / n if n else np.nan, tone="strong")
            yield Check(
                level="fine",
                title="Noise of its own",
                text=[f"{label}: of {n:,} identical prompts asked twice flip ", flips, "."],
                anchor="check-tables",
            )

    def _own_tables(self) -> set[str]:
        """Name the tables that stand elsewhere on the page, or in their file alone."""
        return super()._own_tables() | {"changed"}


class RunsStudy(VerdictsStudy):
    """Two runs of a study, compared with `surface-consistency compare RUN RUN`."""

    name = "runs"
    title = "Two runs"
    question = "the same questions, answered by two models"
    settings = RunsSettings
    outcome = RunsOutcome
    report = RunsReport
    clusters: ClassVar[Mapping[str, str]] = {"fact_id": "facts"}

    def __init__(self, settings: RunsSettings | None = None) -> None:
        super().__init__(settings)
        self.cells = ("both right", "lost", "gained", "neither")  # type: ignore[misc]
        labels: dict[str, dict[str, str]] = {}
        for name, wording in (settings.labels if settings is not None else {}).items():
            column, _, label = name.partition(":")
            labels.setdefault(column, {})[label] = wording
        self.labels = labels  # type: ignore[misc]


def import_two_runs(
    compared: TwoRuns,
    out: str | os.PathLike[str],
    *,
    first: str,
    second: str,
    by: Sequence[str],
) -> RunFolder:
    """Make a scored run folder of two runs, for `report_runs`.

    Args:
        compared: The pairs.
        out: Folder of the new run.
        first: What to call the first run.
        second: What to call the second run.
        by: Columns that make groups.

    Returns:
        The run folder.

    Raises:
        ColumnNotFoundError: If a column of `by` is not there.
        DataError: If there is no pair, or the folder holds a run of a study.
    """
    before, after = compared.runs
    settings = RunsSettings(
        by=tuple(by),
        first=first,
        second=second,
        labels={
            f"{name}:{label}": wording
            for name in by
            for label, wording in compared.labels.get(name, {}).items()
        },
        repeat=0,
    )
    noise = [
        run.checks["noise_floor"].drop(columns="model", errors="ignore").assign(run=name)
        for run, name in zip(compared.runs, (first, second), strict=True)
        if "noise_floor" in run.checks
    ]
    differing = pd.DataFrame(
        [(name, str(one), str(other)) for name, (one, other) in compared.differing.items()],
        columns=["setting", "first", "second"],
    )
    judged = before.scoring or Scoring(judged_by=before.judged_by)
    return import_verdicts(
        compared.frame,
        out,
        origin=before.manifest.data.id,
        first=first,
        second=second,
        by=by,
        model=f"{second} against {first}",
        study=RunsStudy(settings),
        source=RunsSource(first=str(before.folder.path), second=str(after.folder.path)),
        runner={"runner": "runs", "first": before.signature, "second": after.signature},
        scoring=Scoring(judged_by=judged.judged_by, settings=judged.settings),
        checks={
            "settings_that_differ": differing,
            **({"noise_of_runs": pd.concat(noise, ignore_index=True)} if noise else {}),
        },
    )


def _with_directions(table: Table) -> Table:
    """Add what was lost of what was known, and gained of what was not."""
    frame = table.frame
    added = {}
    for name, kept in (
        ("lost_of_known", "consistency_given_first_correct"),
        ("gained_of_unknown", "consistency_given_first_incorrect"),
    ):
        added[name] = 1 - frame[kept]
        added[f"{name}_low"], added[f"{name}_high"] = (
            1 - frame[f"{kept}_high"],
            1 - frame[f"{kept}_low"],
        )
    columns = list(table.columns)
    place = next(n for n, column in enumerate(columns) if column.key == "flip_rate")
    columns[place : place + 1] = [
        interval_column(key, title, "rate", unit, direction=direction)
        for key, title, unit, direction in (
            ("negative_flip_rate", "Lost", "of all, %", "lower"),
            ("lost_of_known", "Lost", "of known, %", "lower"),
            ("positive_flip_rate", "Gained", "of all, %", "higher"),
        )
    ]
    return replace(table, frame=frame.assign(**added), columns=columns)
