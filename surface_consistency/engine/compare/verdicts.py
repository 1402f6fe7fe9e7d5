"""Anyone's verdicts: they enter the engine at the outcomes frame, and get a page.

It is the page of a paired study, with squares, conditional rates and cards of both answers, which
the page of several models (`results_page`) has no words for.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from pydantic import Field, JsonValue, create_model

from surface_consistency.engine.compare.runs_page import RunsOutcome, RunsReport
from surface_consistency.engine.design import Design
from surface_consistency.engine.paired.page import PairedReport, fact_trace
from surface_consistency.engine.run import make_manifest
from surface_consistency.engine.study import StudySettings
from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.runs.files import write_text
from surface_consistency.runs.folder import RunFolder, Scoring
from surface_consistency.runs.frames import make_frame, write_frame
from surface_consistency.schemas import DataSource, PairedOutcome
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.settings import Settings


class VerdictsSettings(StudySettings):
    """How verdicts are compared."""

    by: tuple[str, ...] = Field(default=(), strict=False)
    """Columns that make groups."""

    first: str = "first"
    """Name of the first condition."""

    second: str = "second"
    """Name of the second condition."""

    @property
    def design(self) -> Design:
        """How the conditions are compared."""
        return Design(
            title="Verdicts",
            question="the same facts under two conditions, judged elsewhere",
            conditions=(self.first, self.second),
            cells=("both", f"{self.first} only", f"{self.second} only", "neither"),
            groupings={f"by_{name}": (name,) for name in self.by},
        )


class RunsSettings(VerdictsSettings):
    """How two runs are compared."""

    wording: Mapping[str, str] = Field(default_factory=dict)
    """Wording of the labels of groups, by "<column>:<label>"."""

    @property
    def design(self) -> Design:
        """How the runs are compared."""
        labels: dict[str, dict[str, str]] = {}
        for name, text in self.wording.items():
            column, _, label = name.partition(":")
            labels.setdefault(column, {})[label] = text
        return super().design.model_copy(
            update={
                "title": "Two runs",
                "question": "the same questions, answered by two models",
                "cells": ("both right", "lost", "gained", "neither"),
                "labels": labels,
            }
        )


class RunsSource(Settings):
    """The two runs."""

    first: str
    """Folder of the first run."""

    second: str
    """Folder of the second run."""


_KINDS: Final[
    Mapping[str, tuple[type[VerdictsSettings], type[PairedOutcome], type[PairedReport]]]
] = {
    "verdicts": (VerdictsSettings, PairedOutcome, PairedReport),
    "runs": (RunsSettings, RunsOutcome, RunsReport),
}
"""How the verdicts of each of `VERDICTS` are compared and shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What a folder of verdicts from elsewhere is reported as: a design, and how to show it."""

    name: str
    """What its manifest calls it: "verdicts", or "runs" for two runs."""

    design: Design
    """How the conditions are compared."""

    outcome: type[PairedOutcome]
    """The record of a pair, with a column of labels for each group."""

    report: type[PairedReport]
    """Computes tables and page."""

    @classmethod
    def of(cls, name: str, settings: Mapping[str, Any]) -> "Verdicts":
        """Say how verdicts are reported.

        Args:
            name: "verdicts" or "runs".
            settings: What the manifest holds of how they are compared.

        Returns:
            The design, the record of a pair and its report.
        """
        record, base, report = _KINDS[name]
        chosen = record.model_validate(dict(settings), strict=False)
        labels: dict[str, Any] = dict.fromkeys(chosen.by, (Items[str], ...))
        return cls(
            name=name,
            design=chosen.design,
            outcome=create_model("VerdictOutcome", __base__=base, **labels),
            report=report,
        )

    def trace(self, folder: str | os.PathLike[str], fact_id: str) -> str:
        """Tell what became of one fact; see `Study.trace`."""
        return fact_trace(folder, fact_id, outcome=self.outcome)


def import_verdicts(
    frame: pd.DataFrame,
    out: str | os.PathLike[str],
    *,
    origin: str,
    first: str,
    second: str,
    by: Sequence[str] = (),
    model: str = "the model",
) -> RunFolder:
    """Make a scored run folder of an outcomes frame, for `report_runs`.

    Args:
        frame: As from `metrics.outcomes_frame`; cells of `by` hold a label or a list of labels.
            Other columns of the outcome record stand in it under their names.
        out: Folder of the run; made, its files replaced.
        origin: Where the verdicts came from, for the manifest.
        first: Name of the first condition.
        second: Name of the second condition.
        by: Columns that make groups.
        model: Label in tables.

    Returns:
        The run folder.

    Raises:
        ColumnNotFoundError: If a column of `by` is not there.
        DataError: If a column of `by` has the name of a column of outcomes, there is no pair, or
            the folder holds a run of a study.
    """
    settings = VerdictsSettings(by=tuple(by), first=first, second=second, repeat=0)
    return write_verdicts(frame, out, settings, origin=origin, model=model)


def write_verdicts(
    frame: pd.DataFrame,
    out: str | os.PathLike[str],
    settings: VerdictsSettings,
    *,
    origin: str,
    model: str,
    source: Settings | None = None,
    runner: Mapping[str, JsonValue] | None = None,
    scoring: Scoring | None = None,
    checks: Mapping[str, pd.DataFrame] | None = None,
) -> RunFolder:
    """Make a scored run folder of an outcomes frame; see `import_verdicts`.

    Args:
        frame: The outcomes.
        out: Folder of the run.
        settings: How they are compared: `RunsSettings` where the conditions are runs.
        origin: Where the verdicts came from, for the manifest.
        model: Label in tables.
        source: Where the verdicts came from in more than words, for the manifest.
        runner: What gave the verdicts, for the manifest.
        scoring: How the answers were judged; None where that is not known.
        checks: Tables on what goes in, for the page.

    Returns:
        The run folder.
    """
    _refuse_groups(frame, settings.by)
    if frame.empty:
        raise DataError(f"{origin} holds no pair, so there is no page to write")
    name = "runs" if isinstance(settings, RunsSettings) else "verdicts"
    record = Verdicts.of(name, settings.model_dump()).outcome
    columns = {field: frame[field] for field in record.model_fields if field in frame} | {
        "study": name,
        "model": model,
        "pair_id": frame["pair_id"].astype(str),
        "fact_id": frame["fact_id"].astype(str),
        "first_condition": settings.first,
        "second_condition": settings.second,
        **{column: frame[column].map(label_list) for column in settings.by},
    }
    outcomes = make_frame(columns, record)
    folder = RunFolder.create(out)
    if folder.targets.exists() or folder.prompts.exists():
        raise DataError(
            f"{folder.path} holds a run, which the verdicts would replace; choose another --out"
        )
    texts = outcomes.astype(str).where(outcomes.notna(), np.nan)
    digest = int(pd.util.hash_pandas_object(texts, index=False).sum())
    data = DataSource(id=origin, revision=None, digest=f"{digest:016x}", n_questions=len(outcomes))
    manifest = make_manifest(
        name,
        data,
        model=model,
        settings=settings.model_dump(mode="json"),
        runner=runner or {"runner": "verdicts"},
        source=source,
    )
    with folder.replacing_scores(scoring or Scoring(judged_by="verdicts as given")) as beside:
        write_frame(beside.outcomes, outcomes, record)
        beside.write_checks(checks or {})
        write_text(beside.manifest, manifest.model_dump_json(indent=2) + "\n")
    return folder


def _refuse_groups(frame: pd.DataFrame, by: Sequence[str]) -> None:
    """Refuse columns of groups that are not there, that every outcome has, or that name no file."""
    for name in by:
        if name not in frame:
            raise ColumnNotFoundError(f"no column {name!r} to group by; there are {list(frame)}")
        if name in PairedOutcome.model_fields:
            raise DataError(f"column {name!r} cannot make groups, every outcome has it; rename it")
        if {"/", "\0"} & set(name):
            raise DataError(
                f"column {name!r} cannot name the file of a table; rename it, or leave out --out"
            )


def label_list(value: object) -> list[str]:
    """Read the labels of a cell.

    Args:
        value: The cell: a label, several, or what stands for none.

    Returns:
        The labels as text.
    """
    if isinstance(value, list | tuple | np.ndarray):
        return [str(item) for item in value]
    return [] if pd.isna(value) or value == "" else [str(value)]  # type: ignore[call-overload]
