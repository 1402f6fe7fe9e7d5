"""Finished SLAQ runs, read from their folders and checked."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from surface_consistency.errors import (
    DataError,
)
from surface_consistency.report._run_files import read_frame, read_study_manifest
from surface_consistency.schemas.jsonl import read_jsonl
from surface_consistency.schemas.manifest import RunManifest
from surface_consistency.schemas.slaq import Judgement, SlaqOutcome

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SLAQ_CHECKS", "SlaqRun", "load_slaq_runs"]

SLAQ_CHECKS = ("noise_floor", "judge_agreement", "corrected")
"""Tables about a run that scoring leaves in `checks/`, without their ending."""

_VERDICTS = ("first_correct", "second_correct", "is_recalled")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlaqRun:
    """One model's outcomes, with what made them."""

    label: str
    """Name of the run in tables, figures and text; distinct among the runs of one report."""

    manifest: RunManifest
    """The settings of the run."""

    outcomes: "pd.DataFrame"
    """Columns of `SlaqOutcome`; `model` holds the label."""

    judge: str
    """Name of the judge."""

    unjudged: Mapping[str, int] = field(default_factory=dict)
    """Facts without a verdict, by reason."""

    checks: "Mapping[str, pd.DataFrame]" = field(default_factory=dict)
    """Tables about the run itself, by name: "noise_floor", "judge_agreement", "corrected"; those
    that were not made are left out."""

    @property
    def signature(self) -> str:
        """The manifest's line and the judge."""
        return f"{self.manifest.signature}|judged_by:{self.judge}"


def load_slaq_runs(folders: Sequence[str | os.PathLike[str]]) -> list[SlaqRun]:
    """Read scored runs for one report.

    Args:
        folders: The run folders, each once.

    Returns:
        The runs in the order given. A label that several runs share gets the folder's name added.

    Raises:
        ValueError: If no folder is given, or one twice.
        SourceNotFoundError: If a folder, its manifest, outcomes or judgements are not there.
        RecordError: If the manifest or a judgement breaks its schema.
        ColumnNotFoundError: If the outcomes lack a column.
        DataError: If a run is of another study, or its outcomes cannot be read.
    """
    homes = [Path(folder).resolve() for folder in folders]
    if not homes or len(set(homes)) < len(homes):
        raise ValueError("give at least one run folder, and each of them once")
    manifests = [read_study_manifest(home, study="slaq", command="run slaq") for home in homes]
    models = Counter(manifest.model for manifest in manifests)
    return [
        _load(
            home,
            manifest,
            manifest.model if models[manifest.model] == 1 else f"{manifest.model} ({home.name})",
        )
        for home, manifest in zip(homes, manifests, strict=True)
    ]


def _load(home: Path, manifest: RunManifest, label: str) -> SlaqRun:
    """Read one run."""
    reasons: Counter[str] = Counter()
    judge = "not recorded"
    for judgement in read_jsonl(home / "judgements.jsonl", Judgement):
        judge = judgement.judge
        if judgement.reason is not None:
            reasons[judgement.reason.split(":")[0]] += 1
    return SlaqRun(
        label=label,
        manifest=manifest,
        outcomes=_outcomes(home / "outcomes.parquet").assign(model=label),
        judge=judge,
        unjudged=dict(reasons.most_common()),
        checks=_read_checks(home / "checks"),
    )


def _read_checks(folder: Path) -> "dict[str, pd.DataFrame]":
    """Read the tables about the run that are there."""
    import pandas as pd

    paths = {name: folder / f"{name}.csv" for name in SLAQ_CHECKS}
    try:
        return {name: pd.read_csv(path) for name, path in paths.items() if path.is_file()}
    except ValueError as error:
        raise DataError(
            f"{folder}: a table there cannot be read as CSV ({error}); score the run again"
        ) from error


def _outcomes(path: Path) -> "pd.DataFrame":
    """Read the outcomes, verdicts as nullable booleans."""
    frame = read_frame(path, SlaqOutcome, remedy="`surface-consistency score` does that")
    return frame.astype(dict.fromkeys(_VERDICTS, "boolean"))
