"""A finished run, read from its folder and checked."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from surface_consistency.errors import DataError, RecordError, SourceNotFoundError
from surface_consistency.report._outcomes import read_outcomes
from surface_consistency.schemas.jsonl import describe_validation_error, read_jsonl
from surface_consistency.schemas.manifest import RunManifest
from surface_consistency.schemas.verdicts import Verdict

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["StudyRun", "load_run", "load_runs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRun:
    """One model's outcomes, with what made them."""

    label: str
    """Name of the run in tables, figures and text; distinct among the runs of one report."""

    manifest: RunManifest
    """The settings of the run."""

    outcomes: "pd.DataFrame"
    """One row a pair, the columns of `RedirectOutcome`."""

    judged_by: str | None = None
    """Matching rule and region of the verdicts, such as "popqa on first_line"; None if unknown."""

    checks: Mapping[str, "pd.DataFrame"] = field(default_factory=dict)
    """Small tables on the soundness of the run, by name: "noise_floor", "rules", "regions"."""

    highlights: Mapping[str, "pd.DataFrame"] = field(default_factory=dict)
    """Tables that the report shows before all else, by title."""

    @property
    def signature(self) -> str:
        """The manifest's line and the rule that judged the answers."""
        return f"{self.manifest.signature}|judged_by:{self.judged_by or 'not recorded'}"


def load_run(folder: str | os.PathLike[str], *, label: str | None = None) -> StudyRun:
    """Read a run folder.

    Args:
        folder: Holds `manifest.json` and `outcomes.parquet`, and may hold `verdicts.jsonl` (whose
            first line names the matching rule), `checks/*.csv` and `highlights/*.csv`.
        label: Name of the run in the report; the manifest's model by default.

    Returns:
        The run, its verdict columns as nullable booleans.

    Raises:
        SourceNotFoundError: If the folder, its manifest or its outcomes are not there.
        RecordError: If the manifest, or the first verdict, breaks its schema.
        ColumnNotFoundError: If the outcomes lack a column.
        DataError: If the outcomes hold no pair, another model's pairs, a pair twice, or a value
            that its column does not allow.
    """
    home = Path(folder)
    _check_files(home)
    manifest = _read_manifest(home / "manifest.json")
    return StudyRun(
        label=label or manifest.model,
        manifest=manifest,
        outcomes=read_outcomes(home / "outcomes.parquet", manifest.model),
        judged_by=_read_rule(home / "verdicts.jsonl"),
        checks=_read_tables(home / "checks"),
        highlights={
            stem.replace("_", " "): table
            for stem, table in _read_tables(home / "highlights").items()
        },
    )


def load_runs(folders: Sequence[str | os.PathLike[str]]) -> list[StudyRun]:
    """Read several run folders for one report.

    Args:
        folders: The run folders, each once.

    Returns:
        The runs in the order given. Runs that share a model label get the folder's name added, and
        as much of its path as it takes to tell them apart.

    Raises:
        ValueError: If no folder is given, or one twice.
        DataError: As `load_run`.
    """
    homes = [Path(folder).resolve() for folder in folders]
    if not homes:
        raise ValueError("folders is empty; give at least one run folder")
    again = next((home for home, times in Counter(homes).items() if times > 1), None)
    if again is not None:
        raise ValueError(f"run folder {again} is given more than once; give each run once")
    runs = [load_run(folder) for folder in folders]
    labels = _distinct([run.label for run in runs], homes)
    return [replace(run, label=label) for run, label in zip(runs, labels, strict=True)]


def _check_files(home: Path) -> None:
    """Name the first thing that a run folder must hold and this one does not."""
    if not home.is_dir():
        raise SourceNotFoundError(
            f"no folder {home}; give the folder that `surface-consistency run redirectqa --out` "
            "or `surface-consistency demo --out` wrote"
        )
    if not (home / "manifest.json").is_file():
        raise SourceNotFoundError(
            f"{home} is not a run folder: it has no manifest.json, which "
            "`surface-consistency run redirectqa --out` writes"
        )
    if not (home / "outcomes.parquet").is_file():
        raise SourceNotFoundError(
            f"{home} has no outcomes.parquet: its answers are not scored yet; "
            "`surface-consistency score` makes it"
        )


def _read_manifest(path: Path) -> RunManifest:
    """Read the settings of the run."""
    try:
        return RunManifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise RecordError(
            f"{path}: not a RunManifest: {describe_validation_error(error)}; "
            "restore the file, or make the run again"
        ) from error


def _read_rule(path: Path) -> str | None:
    """Name the rule and region of the first verdict; None where there is no such file."""
    if not path.is_file():
        return None
    verdict = next(read_jsonl(path, Verdict), None)
    return f"{verdict.rule} on {verdict.region}" if verdict else None


def _read_tables(folder: Path) -> "dict[str, pd.DataFrame]":
    """Read the CSV files of a folder by their stems; none where the folder is absent."""
    import pandas as pd

    tables = {}
    for path in sorted(folder.glob("*.csv")):
        try:
            tables[path.stem] = pd.read_csv(path, keep_default_na=False, na_values=[""])
        except ValueError as error:
            raise DataError(
                f"{path}: cannot be read as a CSV table ({error}); make it again or remove it"
            ) from error
    return tables


def _distinct(labels: Sequence[str], homes: Sequence[Path]) -> list[str]:
    """Add to labels that several runs share the shortest end of the path that separates them."""
    shared = {label for label, times in Counter(labels).items() if times > 1}
    found = list(labels)
    depth = 0
    while len(set(found)) < len(found):
        depth += 1
        found = [
            f"{label} ({'/'.join(home.parts[-depth:])})" if label in shared else label
            for label, home in zip(labels, homes, strict=True)
        ]
    return found
