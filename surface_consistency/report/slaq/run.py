"""Finished SLAQ runs, read from their folders and checked."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RecordError,
    SourceNotFoundError,
)
from surface_consistency.schemas.jsonl import describe_validation_error, read_jsonl
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
    manifests = [_read_manifest(home) for home in homes]
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
        outcomes=_read_outcomes(home / "outcomes.parquet").assign(model=label),
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


def _read_manifest(home: Path) -> RunManifest:
    """Read the settings of a run, and see that it is one of this study."""
    path = home / "manifest.json"
    if not path.is_file():
        raise SourceNotFoundError(
            f"{home} is not a run folder: it has no manifest.json, which "
            "`surface-consistency run slaq --out` writes"
        )
    try:
        manifest = RunManifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise RecordError(
            f"{path}: not a RunManifest: {describe_validation_error(error)}; restore the file, or "
            "make the run again"
        ) from error
    if manifest.study != "slaq":
        raise DataError(
            f"{home} is a run of the study {manifest.study!r}, not of slaq; report the runs of one "
            "study together"
        )
    return manifest


def _read_outcomes(path: Path) -> "pd.DataFrame":
    """Read the outcomes and check their columns."""
    import pandas as pd

    if not path.is_file():
        raise SourceNotFoundError(
            f"{path.parent} has no {path.name}: its answers are not judged yet; "
            "`surface-consistency score` does that"
        )
    try:
        frame = pd.read_parquet(path)
    except (ValueError, OSError) as error:
        raise DataError(
            f"{path}: cannot be read as Parquet ({error}); score the run again"
        ) from error
    missing = [name for name in SlaqOutcome.model_fields if name not in frame]
    if missing:
        raise ColumnNotFoundError(
            f"{path}: no column {', '.join(missing)} of SlaqOutcome; score the run again"
        )
    if frame.empty:
        raise DataError(f"{path}: holds no pair, so there is nothing to report")
    return frame.astype(dict.fromkeys(_VERDICTS, "boolean"))
