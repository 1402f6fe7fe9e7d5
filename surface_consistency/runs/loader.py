"""Reading of finished runs from their folders, with checks and labels for a report."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pandas as pd
from pydantic import JsonValue

from surface_consistency.errors import DataError
from surface_consistency.reading import shown
from surface_consistency.runs.folder import RunFolder, Scoring, read_tables
from surface_consistency.runs.frames import check_frame, read_frame
from surface_consistency.runs.manifest import RunManifest
from surface_consistency.schemas._record import Record
from surface_consistency.schemas.outcomes import PairedOutcome

_REMEDY = "its answers are not scored yet; use `surface-consistency score`"
_INCIDENTAL = frozenset({"sha256", "source_sha256"})


class _NoiseFloor(Record):
    """Columns of the noise floor that the report reads."""

    model: str
    n_repeated: int
    n_verdict_flips: int
    flip_rate: float | None
    flip_rate_low: float | None
    flip_rate_high: float | None


class _Replies(Record):
    """Columns of the kinds of replies that the report reads."""

    n_replies: int
    n_with_reasoning: int
    n_error: int
    n_unclosed_reasoning: int
    n_content_filter: int
    n_refusal: int
    n_tie: int


class _CutAnswers(Record):
    """Columns of the answers that were cut off that the report reads."""

    n_cut: int
    n_answers: int


_MOST: Final = 10_000_000
"""Maximum of a count of checks if the folder has no correctness labels."""

_CHECKS: Final[Mapping[str, type[Record]]] = {
    "noise_floor": _NoiseFloor,
    "replies": _Replies,
    "cut_answers": _CutAnswers,
}
"""Tables of checks of the engine; a study may add others."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """The outcomes of one model, with the settings of the run."""

    label: str
    """Name of the run in tables, figures and text; distinct among the runs of one report."""

    folder: RunFolder
    """The run folder."""

    manifest: RunManifest
    """The settings of the run."""

    outcomes: pd.DataFrame
    """One row per pair, with the columns of the study's outcome record; `model` is the label."""

    scoring: Scoring | None = None
    """How the answers were scored; None if it is not recorded."""

    checks: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Small tables on the quality of the run, by name, such as "noise_floor"."""

    highlights: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Tables that the report shows first, by title."""

    varying: Mapping[str, JsonValue] = field(default_factory=dict)
    """Settings in which the runs of the report differ, by name."""

    @property
    def judged_by(self) -> str:
        """The rule or judge of the correctness labels."""
        return "not recorded" if self.scoring is None else self.scoring.judged_by

    @property
    def signature(self) -> str:
        """The signature of the manifest, and the rule or judge."""
        return f"{self.manifest.signature}|judged_by:{self.judged_by}"


def study_name(folders: Sequence[str | os.PathLike[str]]) -> str:
    """Return the name of the study of run folders, which must be the same.

    Args:
        folders: The run folders.

    Returns:
        The study's name.

    Raises:
        ValueError: If no folder is given, or the runs are of several studies.
        SourceNotFoundError: If a folder is not a run folder.
    """
    studies = {str(folder): RunFolder.open(folder).read_manifest().study for folder in folders}
    if not studies:
        raise ValueError("no run folder was given; give at least one")
    if len(set(studies.values())) > 1:
        named = ", ".join(f"{folder} is of {study}" for folder, study in studies.items())
        raise ValueError(f"a report must be of one study, but {named}; report them separately")
    return next(iter(studies.values()))


def load_runs(
    folders: Sequence[str | os.PathLike[str]], *, outcome: type[PairedOutcome]
) -> list[Run]:
    """Read scored runs for one report.

    Args:
        folders: The run folders, each once.
        outcome: The study's outcome record.

    Returns:
        The runs in the given order. The labels of runs of one model contain the settings in which
        they differ ("gpt2 (threshold 0.5)"), or else the part of their path that distinguishes
        them.

    Raises:
        ValueError: If no folder is given, or a folder is given twice.
        SourceNotFoundError: If a folder, its manifest or its outcomes do not exist.
        RecordError: If the manifest does not match its schema.
        ColumnNotFoundError: If the outcomes lack a column.
        DataError: If the outcomes have no pair, pairs of another model, a pair twice, a column that
            the study does not declare, or a value that its column does not allow; or if they do not
            belong to the answers or the scoring of the run (`check_scores`).
    """
    homes = [Path(folder).resolve() for folder in folders]
    if not homes:
        raise ValueError("folders is empty; give at least one run folder")
    again = next((home for home, times in Counter(homes).items() if times > 1), None)
    if again is not None:
        raise ValueError(f"run folder {again} is given more than once; give each run once")
    opened = [RunFolder.open(home) for home in homes]
    manifests = [folder.read_manifest() for folder in opened]
    varying = _varying(manifests)
    labels = _labels(manifests, homes, varying)
    return [
        _load(folder, manifest, label, settings, outcome)
        for folder, manifest, label, settings in zip(
            opened, manifests, labels, varying, strict=True
        )
    ]


def _load(
    folder: RunFolder,
    manifest: RunManifest,
    label: str,
    varying: Mapping[str, JsonValue],
    outcome: type[PairedOutcome],
) -> Run:
    """Read one run."""
    if folder.scoring.is_file() and not folder.outcomes.is_file():
        folder.check_scores()  # Raises the error with a remedy.
    frame = read_frame(folder.outcomes, outcome, remedy=_REMEDY)
    _check_outcomes(frame, folder.outcomes, manifest.model)
    scoring, most = folder.check_scores(), folder.check_verdicts() or _MOST
    checks = read_tables(folder.checks)
    for name, record in _CHECKS.items():
        if name in checks:
            _check_table(checks[name], record, folder.checks / f"{name}.csv", most)
    return Run(
        label=label,
        folder=folder,
        manifest=manifest,
        outcomes=frame.assign(model=label),
        scoring=scoring,
        checks=checks,
        highlights={
            stem.replace("_", " "): table for stem, table in read_tables(folder.highlights).items()
        },
        varying=varying,
    )


def _check_outcomes(frame: pd.DataFrame, path: Path, model: str) -> None:
    """Raise an error for a frame without pairs, other models, empty keys and repeated pairs."""
    if frame.empty:
        raise DataError(
            f"{path}: no pair to report; score the run again with `surface-consistency score`, or "
            "run more questions with a higher `limit`"
        )
    models = frame["model"].unique().tolist()
    if models != [model]:
        raise DataError(
            f"{path}: column 'model' has {', '.join(map(shown, models))}, but manifest.json is "
            f"of {shown(model)}; use one run folder per model"
        )
    for name in ("pair", "item", "first_condition", "second_condition"):
        if frame[name].isna().any():
            row = int(frame[name].isna().to_numpy().argmax())
            raise DataError(f"{path}: column {name!r} is empty in row {row}; each pair needs it")
    repeated = frame["pair"].duplicated()
    if repeated.any():
        pair = frame.loc[repeated, "pair"].iloc[0]
        raise DataError(
            f"{path}: column 'pair' has {shown(pair)} more than once, which would be counted "
            "twice; make the file again with `surface-consistency score`"
        )


def _check_table(table: pd.DataFrame, record: type[Record], path: Path, most: int) -> None:
    """Raise an error for a table of checks with invalid columns or impossible counts."""
    check_frame(table, record, str(path))
    if table.empty:
        raise DataError(f"{path} has no row; score the run again, or remove the file")
    for name in record.model_fields:
        if (
            name.startswith("n_")
            and (strange := table.loc[~table[name].between(0, most), name]).size
        ):
            raise DataError(
                f"{path}: column {name!r} has {shown(strange.iloc[0])}, which is not a count "
                f"from 0 to {most:,}; score the run again"
            )


def _varying(manifests: Sequence[RunManifest]) -> list[dict[str, JsonValue]]:
    """Return for each run the values of the settings that differ between runs."""
    of_runs = [
        {name: value for name, value in manifest.settings.items() if name not in _INCIDENTAL}
        for manifest in manifests
    ]
    names = dict.fromkeys(name for settings in of_runs for name in settings)
    differing = [
        name
        for name in names
        if any(settings.get(name) != of_runs[0].get(name) for settings in of_runs[1:])
    ]
    return [{name: settings.get(name) for name in differing} for settings in of_runs]


def _shown(value: JsonValue) -> str:
    """Format a setting for a label."""
    if isinstance(value, list):
        return "+".join(map(_shown, value))
    return "none" if value is None else str(value)


def _labels(
    manifests: Sequence[RunManifest],
    homes: Sequence[Path],
    varying: Sequence[Mapping[str, JsonValue]],
) -> list[str]:
    """Label the runs by model, and if several have the same model, by settings or folder."""
    times = Counter(manifest.model for manifest in manifests)
    labels = []
    for manifest, settings in zip(manifests, varying, strict=True):
        differing = ", ".join(
            f"{name.replace('_', ' ')} {_shown(value)}" for name, value in settings.items()
        )
        alone = times[manifest.model] == 1 or not differing
        labels.append(manifest.model if alone else f"{manifest.model} ({differing})")
    shared = {label for label, count in Counter(labels).items() if count > 1}
    depth, named = 0, list(labels)
    while len(set(named)) < len(named):
        depth += 1
        named = [
            f"{label} ({'/'.join(home.parts[-depth:])})" if label in shared else label
            for label, home in zip(labels, homes, strict=True)
        ]
    return named
