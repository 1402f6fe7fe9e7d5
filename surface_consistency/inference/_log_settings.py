"""The settings beside a run log: written once, compared at every later start."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from surface_consistency.errors import RunLogError, RunMismatchError
from surface_consistency.schemas.jsonl import describe_validation_error, write_text
from surface_consistency.schemas.manifest import RunManifest

__all__ = ["agree_on_settings"]


def agree_on_settings(log: Path, settings: Path, manifest: RunManifest) -> RunManifest:
    """Compare with the settings on disk, or write them for a new run; return those on disk."""
    if settings.is_file():
        stored = _read_manifest(settings)
        differences = stored.differences(manifest)
        if differences:
            raise RunMismatchError(_mismatch(log, differences))
        return stored
    if log.exists() and log.stat().st_size:
        raise RunLogError(
            f"{log} has lines but no settings beside it ({settings} is missing), so it cannot be "
            "continued; restore that file, or choose another --out"
        )
    try:
        write_text(settings, manifest.model_dump_json(indent=2) + "\n")
    except OSError as error:
        raise RunLogError(
            f"{settings}: the settings of the run cannot be written ({error.strerror}); free disk "
            "space or choose another --out"
        ) from error
    return manifest


def _read_manifest(settings: Path) -> RunManifest:
    """Read the settings of a run."""
    try:
        return RunManifest.model_validate_json(settings.read_bytes())
    except ValidationError as error:
        raise RunLogError(
            f"{settings}: not the settings of a run: {describe_validation_error(error)}. Restore "
            "the file, or choose another --out"
        ) from error


def _mismatch(log: Path, differences: Mapping[str, tuple[object, object]]) -> str:
    """Name every setting that differs, with both values."""
    named = "; ".join(
        f"{name} is {old!r} there and {new!r} now" for name, (old, new) in differences.items()
    )
    return (
        f"{log} belongs to a run with other settings: {named}. Use the same settings to continue "
        "it, or choose another --out"
    )
