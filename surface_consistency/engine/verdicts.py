"""Anyone's verdicts as a study: they enter the engine at the outcomes frame, and get a page."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pandas as pd
from pydantic import Field, create_model

from surface_consistency.engine.judging.judges import Judge
from surface_consistency.engine.run import make_manifest
from surface_consistency.engine.study import Plan, Study, StudySettings
from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.models.runner import Runner
from surface_consistency.runs.files import write_text
from surface_consistency.runs.folder import RunFolder, Scoring
from surface_consistency.runs.frames import make_frame, write_frame
from surface_consistency.schemas import DataSource, PairedOutcome
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.settings import Settings

__all__ = ["VerdictsSettings", "VerdictsStudy", "import_verdicts"]


class VerdictsSettings(StudySettings):
    """How verdicts are compared."""

    by: tuple[str, ...] = Field(default=(), strict=False)
    """Columns that make groups."""

    first: str = "first"
    """Name of the first condition."""

    second: str = "second"
    """Name of the second condition."""


class VerdictsStudy(Study):
    """Verdicts from elsewhere, compared with `surface-consistency compare --out`."""

    name = "verdicts"
    title = "Verdicts"
    question = "the same facts under two conditions, judged elsewhere"
    settings = VerdictsSettings
    outcome: ClassVar[type[PairedOutcome]] = PairedOutcome

    def __init__(self, settings: VerdictsSettings | None = None) -> None:
        self.chosen = chosen = settings or self.settings()
        """What is compared."""
        self.outcome = _outcome_record(self.outcome, chosen.by)  # type: ignore[misc]
        self.groupings = {f"by_{name}": (name,) for name in chosen.by}  # type: ignore[misc]
        self.conditions = (chosen.first, chosen.second)  # type: ignore[misc]
        self.cells = (  # type: ignore[misc]
            "both",
            f"{chosen.first} only",
            f"{chosen.second} only",
            "neither",
        )

    def configured(self, settings: Mapping[str, Any]) -> "VerdictsStudy":
        """Take the columns of groups from a run's settings; see `Study.configured`."""
        return type(self)(self.settings.model_validate(dict(settings), strict=False))

    def load(self, source: Any) -> Any:  # noqa: ANN401
        """Refuse: verdicts are not asked for; see `Study.load`.

        Raises:
            DataError: Always.
        """
        raise DataError("verdicts are compared, not asked: use `surface-consistency compare`")

    def judge(self, scoring: Any, folder: RunFolder) -> Judge:  # noqa: ANN401
        """Refuse: verdicts are judged already; see `Study.judge`.

        Raises:
            DataError: Always.
        """
        raise DataError(
            f"{folder.path} holds verdicts from elsewhere, which are judged already: compare "
            "others with `surface-consistency compare`, or make the page anew with `report`"
        )

    def plan(self, data: Any, settings: Any, *, runner: Runner | None = None) -> Plan:  # noqa: ANN401
        """Refuse: verdicts are not asked for; see `Study.plan`.

        Raises:
            DataError: Always.
        """
        raise DataError("verdicts are compared, not asked: use `surface-consistency compare`")


def import_verdicts(
    frame: pd.DataFrame,
    out: str | os.PathLike[str],
    *,
    origin: str,
    first: str,
    second: str,
    by: Sequence[str] = (),
    model: str = "verdicts",
    study: VerdictsStudy | None = None,
    source: Settings | None = None,
    runner: Mapping[str, Any] | None = None,
    scoring: Scoring | None = None,
    checks: Mapping[str, pd.DataFrame] | None = None,
) -> RunFolder:
    """Make a scored run folder of an outcomes frame, for `report_runs`.

    Args:
        frame: As from `metrics.outcomes_frame`; cells of `by` hold a label or a list of labels.
            Other columns of the study's outcome record stand in it under their names.
        out: Folder of the run; made, its files replaced.
        origin: Where the verdicts came from, for the manifest.
        first: Name of the first condition.
        second: Name of the second condition.
        by: Columns that make groups.
        model: Label in tables.
        study: The study of the folder, its settings being these; None for `VerdictsStudy`.
        source: Where the verdicts came from in more than words, for the manifest.
        runner: What gave the verdicts, for the manifest.
        scoring: How the answers were judged; None where that is not known.
        checks: Tables on what goes in, for the page.

    Returns:
        The run folder.

    Raises:
        ColumnNotFoundError: If a column of `by` is not there.
        DataError: If a column of `by` has the name of a column of outcomes, there is no pair, or
            the folder holds a run of a study.
    """
    for name in by:
        if name not in frame:
            raise ColumnNotFoundError(f"no column {name!r} to group by; there are {list(frame)}")
        if name in PairedOutcome.model_fields:
            raise DataError(f"column {name!r} cannot make groups, every outcome has it; rename it")
    if frame.empty:
        raise DataError(f"{origin} holds no pair, so there is no page to write")
    if study is None:
        settings = VerdictsSettings(by=tuple(by), first=first, second=second, repeat=0)
        study = VerdictsStudy(settings)
    columns: dict[str, Any] = {
        name: frame[name] for name in study.outcome.model_fields if name in frame
    } | {
        "study": study.name,
        "model": model,
        "pair_id": frame["pair_id"].astype(str),
        "fact_id": frame["fact_id"].astype(str),
        "first_condition": first,
        "second_condition": second,
        "first_correct": frame["first_correct"],
        "second_correct": frame["second_correct"],
    }
    columns |= {name: frame[name].map(_labels) for name in by}
    outcomes = make_frame(columns, study.outcome)
    folder = RunFolder.create(out)
    if folder.targets.exists() or folder.prompts.exists():
        raise DataError(
            f"{folder.path} holds a run, which the verdicts would replace; choose another --out"
        )
    digest = pd.util.hash_pandas_object(outcomes.astype(str), index=False).sum()
    manifest = make_manifest(
        study,
        DataSource(
            id=origin, revision=None, digest=f"{int(digest):016x}", n_questions=len(outcomes)
        ),
        model=model,
        settings=study.chosen.model_dump(mode="json"),
        runner=runner or {"runner": "verdicts"},
        source=source,
    )
    judged = scoring or Scoring(judged_by="verdicts as given")
    with folder.replacing_scores(judged) as beside:
        write_frame(beside.outcomes, outcomes, study.outcome)
        beside.write_checks(checks or {})
        write_text(beside.manifest, manifest.model_dump_json(indent=2) + "\n")
    return folder


def _outcome_record(base: type[PairedOutcome], by: Sequence[str]) -> type[PairedOutcome]:
    """Make the outcome record with a column of labels for each group."""
    fields: dict[str, Any] = dict.fromkeys(by, (Items[str], ...))
    return create_model("VerdictOutcome", __base__=base, **fields)


def _labels(value: Any) -> list[str]:  # noqa: ANN401 - a cell
    """Read the labels of a cell."""
    if isinstance(value, list | tuple):
        return [str(item) for item in value]
    return [] if value is None or pd.isna(value) or value == "" else [str(value)]
