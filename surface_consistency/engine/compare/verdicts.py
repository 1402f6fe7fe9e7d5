"""Anyone's verdicts: they enter the engine at the outcomes frame, and get a page.

It is the page of a paired study, with squares, conditional rates and cards of both answers, which
the page of several models (`results_page`) has no words for.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd
from pydantic import Field, JsonValue, create_model

from surface_consistency.engine.compare.settings import TableSettings
from surface_consistency.engine.compare.table import label_list, split_labels
from surface_consistency.engine.design import VERDICTS, Design
from surface_consistency.engine.paired.answers import TEXTS
from surface_consistency.engine.paired.page import PageSpec, fact_trace
from surface_consistency.engine.run import make_manifest
from surface_consistency.engine.settings import ReportSettings, StudySettings
from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.runs.files import write_text
from surface_consistency.runs.folder import RunFolder, Scoring
from surface_consistency.runs.frames import make_frame, write_frame
from surface_consistency.schemas import DataSource, PairedOutcome
from surface_consistency.schemas._record import Items

_TEXTS: Final = ("question", *TEXTS)


class VerdictsSettings(StudySettings):
    """How verdicts are compared."""

    by: tuple[str, ...] = Field(default=(), strict=False)
    """Columns that make groups."""

    first: str = "first"
    """Name of the first condition."""

    second: str = "second"
    """Name of the second condition."""

    texts: tuple[str, ...] = Field(default=(), strict=False)
    """Columns of the question and of both answers, as far as they are known."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What a folder of verdicts from elsewhere is reported as: a design, and how to show it."""

    name: ClassVar[str] = VERDICTS
    """What its manifest calls it."""

    design: Design
    """How the conditions are compared."""

    outcome: type[PairedOutcome]
    """The record of a pair, with a column of labels for each group."""

    report: ClassVar[PageSpec] = PageSpec()
    """The functions that make tables and page."""

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "Verdicts":
        """Say how verdicts are reported.

        Args:
            settings: What the manifest holds of how they are compared.

        Returns:
            The design and the record of a pair.
        """
        chosen = VerdictsSettings.model_validate(dict(settings), strict=False)
        labels: dict[str, Any] = dict.fromkeys(chosen.by, (Items[str], ...))
        labels |= dict.fromkeys(chosen.texts, (str | None, ...))
        return cls(
            design=chosen.design,
            outcome=create_model("VerdictOutcome", __base__=PairedOutcome, **labels),
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
            Other columns of the outcome record stand in it under their names, and question,
            first_prediction and second_prediction where they are there.
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
    texts = tuple(name for name in _TEXTS if name in frame)
    settings = VerdictsSettings(by=tuple(by), first=first, second=second, texts=texts, repeat=0)
    _refuse_groups(frame, settings.by)
    if frame.empty:
        raise DataError(f"{origin} holds no pair, so there is no page to write")
    record = Verdicts.of(settings.model_dump()).outcome
    columns = {field: frame[field] for field in record.model_fields if field in frame} | {
        "study": VERDICTS,
        "model": model,
        "pair_id": frame["pair_id"].astype(str),
        "fact_id": frame["fact_id"].astype(str),
        "first_condition": settings.first,
        "second_condition": settings.second,
        **{column: frame[column].map(label_list) for column in settings.by},
        **{name: frame[name].where(frame[name].notna(), None) for name in texts},
    }
    return write_outcomes(
        make_frame(columns, record),
        record,
        out,
        study=VERDICTS,
        model=model,
        origin=origin,
        settings=settings.model_dump(mode="json"),
    )


def write_outcomes(
    outcomes: pd.DataFrame,
    record: type[PairedOutcome],
    out: str | os.PathLike[str],
    *,
    study: str,
    model: str,
    origin: str,
    settings: Mapping[str, JsonValue],
    judged_by: str = "verdicts as given",
    n_questions: int | None = None,
) -> RunFolder:
    """Make a scored run folder of outcomes whose verdicts came from elsewhere.

    Args:
        outcomes: Rows of the record.
        record: The outcome record.
        out: Folder of the run; made, its files replaced.
        study: What the manifest names: a study, or `VERDICTS`.
        model: Label in tables.
        origin: Where the verdicts came from.
        settings: How they are compared.
        judged_by: The rule or judge.
        n_questions: Questions that were asked; a pair each by default.

    Returns:
        The run folder.

    Raises:
        DataError: If the folder holds a run of a study.
    """
    folder = RunFolder.create(out)
    if folder.targets.exists() or folder.prompts.exists():
        raise DataError(
            f"{folder.path} holds a run, which the verdicts would replace; choose another `out`"
        )
    cells = outcomes.astype(str).where(outcomes.notna(), np.nan)
    digest = int(pd.util.hash_pandas_object(cells, index=False).sum())
    data = DataSource(
        id=origin, revision=None, digest=f"{digest:016x}", n_questions=n_questions or len(outcomes)
    )
    manifest = make_manifest(
        study, data, model=model, settings=settings, runner={"runner": "verdicts"}
    )
    with folder.replacing_scores(Scoring(judged_by=judged_by)) as beside:
        write_frame(beside.outcomes, outcomes, record)
        beside.write_checks({})
        write_text(beside.manifest, manifest.model_dump_json(indent=2) + "\n")
    return folder


def report_verdicts(
    frame: pd.DataFrame, out: str | os.PathLike[str], settings: TableSettings, *, origin: str
) -> Path:
    """Write the page of two conditions, and the run folder that it is made of.

    Args:
        frame: As from `read_verdicts`.
        out: Folder of both.
        settings: By what and how.
        origin: Where the verdicts came from.

    Returns:
        The page.

    Raises:
        ColumnNotFoundError: If a column of groups is not there.
        DataError: If there is no pair, or the folder holds a run of a study.
    """
    # Reports import this module.
    from surface_consistency.engine.report import report_runs

    split = split_labels(frame, settings.by, settings.separator)
    first, second = frame[["first_condition", "second_condition"]].iloc[0]
    folder = import_verdicts(split, out, origin=origin, first=first, second=second, by=settings.by)
    report = ReportSettings(resamples=settings.resamples, bootstrap_seed=settings.seed)
    if not {*TEXTS} & {*frame}:
        report = report.model_copy(update={"answers": 0})
    report_runs([folder.path], out, settings=report)
    return Path(out) / "report.html"


def _refuse_groups(frame: pd.DataFrame, by: Sequence[str]) -> None:
    """Refuse columns of groups that are not there, that every outcome has, or that name no file."""
    for name in by:
        if name not in frame:
            raise ColumnNotFoundError(f"no column {name!r} to group by; there are {list(frame)}")
        if name in PairedOutcome.model_fields:
            raise DataError(f"column {name!r} cannot make groups, every outcome has it; rename it")
        if {"/", "\0"} & set(name):
            raise DataError(
                f"column {name!r} cannot name the file of a table; rename it, or leave out `out`"
            )
