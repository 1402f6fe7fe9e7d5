"""Finished audits of forgetting, read from their folders and checked."""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from surface_consistency.errors import (
    DataError,
    SourceNotFoundError,
)
from surface_consistency.report._run_files import read_frame, read_study_manifest
from surface_consistency.schemas.audit import AuditOutcome
from surface_consistency.schemas.manifest import RunManifest

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["AuditRun", "load_audit_runs"]

_VERDICTS: Final = ("full_correct", "first_correct", "second_correct", "has_gold")
_KEYS: Final = ("pair_id", "fact_id", "database", "domain", "variant", "style", "n_surviving")
_INCIDENTAL: Final = frozenset({"sha256", "source_sha256"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRun:
    """One audit's outcomes, with what made them."""

    label: str
    """Name of the run in tables, figures and text; distinct among the runs of one report."""

    home: Path
    """The run folder."""

    manifest: RunManifest
    """The settings of the run."""

    outcomes: "pd.DataFrame"
    """Columns of `AuditOutcome`; `model` holds the label."""

    tables: Mapping[str, "pd.DataFrame"] = field(default_factory=dict)
    """The numbers of the run by name, such as "by_variant"; `model` holds the label."""

    checks: Mapping[str, "pd.DataFrame"] = field(default_factory=dict)
    """Tables on the soundness of the run, by name, such as "closure" and "fit"."""

    rules: str = "not recorded"
    """Cleaner and equivalence that judged the answers."""

    varying: Mapping[str, JsonValue] = field(default_factory=dict)
    """Settings in which the runs of the report differ, by name."""

    @property
    def signature(self) -> str:
        """The manifest's line and the rules that judged the answers."""
        return f"{self.manifest.signature}|judged_by:{self.rules}"


def load_audit_runs(folders: Sequence[str | os.PathLike[str]]) -> list[AuditRun]:
    """Read audits for one report, such as those of a sweep.

    Args:
        folders: The run folders, each once.

    Returns:
        The runs in the order given. Runs of one model get the settings in which they differ added
        to their label ("lmlm (threshold 0.5)"), or else the name of their folder.

    Raises:
        ValueError: If no folder is given, or one twice.
        SourceNotFoundError: If a folder, its manifest, outcomes or tables are not there.
        RecordError: If the manifest breaks its schema.
        ColumnNotFoundError: If the outcomes lack a column.
        DataError: If a run is of another study, a file cannot be read, or the tables are of other
            outcomes than those beside them.
    """
    homes = [Path(folder).resolve() for folder in folders]
    if not homes or len(set(homes)) < len(homes):
        raise ValueError("give at least one run folder, and each of them once")
    for home in homes:
        _check_not_sweep(home)
    manifests = [read_study_manifest(home, study="audit", command="audit") for home in homes]
    varying = _varying(manifests)
    labels = _labels(manifests, homes, varying)
    return [_load(*found) for found in zip(homes, manifests, labels, varying, strict=True)]


def _check_not_sweep(home: Path) -> None:
    """Refuse the folder of a sweep, and name its runs."""
    runs = [] if (home / "manifest.json").is_file() else sorted(home.glob("*/manifest.json"))
    if runs:
        raise SourceNotFoundError(
            f"{home} is not a run folder, but holds several: give "
            f"{', '.join(str(run.parent) for run in runs)}"
        )


def _load(
    home: Path, manifest: RunManifest, label: str, varying: Mapping[str, JsonValue]
) -> AuditRun:
    """Read one run."""
    outcomes = _read_outcomes(home / "outcomes.parquet").assign(model=label)
    tables = _read_tables(home / "tables")
    _check_tables(tables, outcomes, home)
    return AuditRun(
        label=label,
        home=home,
        manifest=manifest,
        outcomes=outcomes,
        tables={
            name: table.assign(model=label)
            for name, table in tables.items()
            if "model" in table and name != "settings" and not name.startswith("check_")
        },
        checks=_read_tables(home / "checks"),
        rules=_read_rules(home / "scoring.json"),
        varying=varying,
    )


def _read_outcomes(path: Path) -> "pd.DataFrame":
    """Read the outcomes and check what the tables rely on."""
    frame = read_frame(
        path,
        AuditOutcome,
        remedy="the same `surface-consistency audit` command goes on from there",
    )
    for name in _KEYS:
        if frame[name].isna().any():
            row = int(frame[name].isna().to_numpy().argmax())
            raise DataError(f"{path}: column {name!r} is empty in row {row}; each fact needs it")
    if frame["pair_id"].duplicated().any():
        pair = frame.loc[frame["pair_id"].duplicated(), "pair_id"].iloc[0]
        raise DataError(
            f"{path}: column 'pair_id' holds {pair!r} more than once; judge the run again"
        )
    return frame.astype(dict.fromkeys(_VERDICTS, "boolean"))


def _check_tables(
    tables: "Mapping[str, pd.DataFrame]", outcomes: "pd.DataFrame", home: Path
) -> None:
    """See that the tables are there and count what the outcomes hold."""
    if "overall" not in tables:
        raise SourceNotFoundError(
            f"{home} has no tables/overall.csv: the run is judged, but its tables are not made; "
            "the same `surface-consistency audit` command goes on from there"
        )
    overall = tables["overall"]
    n, n_missing, told = (
        int(overall[names].to_numpy().sum())
        for names in (["n"], ["n_missing"], ["both", "first_only"])
    )
    right = int(outcomes["first_correct"].sum())
    if n + n_missing != len(outcomes) or (n_missing == 0 and told != right):
        raise DataError(
            f"{home}: tables/overall.csv counts {told} of {n + n_missing} facts right under "
            f"DEL-ON, outcomes.parquet {right} of {len(outcomes)}; they are of different scorings, "
            "so make the tables again"
        )


def _read_rules(path: Path) -> str:
    """Read by which rules the answers were judged."""
    if not path.is_file():
        return "not recorded"
    try:
        told = json.loads(path.read_bytes())
        return ", ".join(f"{told[name]} {name}" for name in ("cleaner", "equivalence"))
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path}: does not name cleaner and equivalence ({error}); judge the run again"
        ) from error


def _read_tables(folder: Path) -> "dict[str, pd.DataFrame]":
    """Read the CSV files of a folder by their stems; empty ones and none at all are no tables."""
    import pandas as pd

    tables = {}
    for path in sorted(folder.glob("*.csv")):
        if path.stat().st_size < 2:
            continue
        try:
            tables[path.stem] = pd.read_csv(path, keep_default_na=False, na_values=[""])
        except ValueError as error:
            raise DataError(
                f"{path}: cannot be read as a CSV table ({error}); make it again or remove it"
            ) from error
    return tables


def _varying(manifests: Sequence[RunManifest]) -> list[dict[str, JsonValue]]:
    """Find the settings that are not the same in all runs, and those of each run."""
    told = [_settings(manifest) for manifest in manifests]
    names = dict.fromkeys(name for settings in told for name in settings)
    differing = [
        name
        for name in names
        if any(settings.get(name) != told[0].get(name) for settings in told[1:])
    ]
    return [{name: settings.get(name) for name in differing} for settings in told]


def _settings(manifest: RunManifest) -> dict[str, JsonValue]:
    """Gather what a person set, by name; digests follow from it."""
    params = {} if manifest.params is None else manifest.params.model_dump(mode="json")
    told: dict[str, JsonValue] = {**params, **manifest.settings}
    return {name: value for name, value in told.items() if name not in _INCIDENTAL}


def _labels(
    manifests: Sequence[RunManifest],
    homes: Sequence[Path],
    varying: Sequence[Mapping[str, JsonValue]],
) -> list[str]:
    """Name the runs by model, and where several share one by settings or folder."""
    times = Counter(manifest.model for manifest in manifests)
    labels = []
    for manifest, settings in zip(manifests, varying, strict=True):
        said = ", ".join(
            f"{name.replace('_', ' ')} {'none' if value is None else value}"
            for name, value in settings.items()
        )
        alone = times[manifest.model] == 1 or not said
        labels.append(manifest.model if alone else f"{manifest.model} ({said})")
    depth = 0
    named = list(labels)
    while len(set(named)) < len(named):
        depth += 1
        shared = {label for label, count in Counter(labels).items() if count > 1}
        named = [
            f"{label} ({'/'.join(home.parts[-depth:])})" if label in shared else label
            for label, home in zip(labels, homes, strict=True)
        ]
    return named
