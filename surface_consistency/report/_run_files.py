"""The files of a run folder that every study's report reads: settings and outcomes."""

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RecordError,
    SourceNotFoundError,
)
from surface_consistency.schemas._record import Record
from surface_consistency.schemas.jsonl import describe_validation_error
from surface_consistency.schemas.manifest import RunManifest

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_frame", "read_study_manifest"]


def read_study_manifest(home: Path, *, study: str, command: str) -> RunManifest:
    """Read the settings of a run, and see that it is one of this study."""
    path = home / "manifest.json"
    if not path.is_file():
        raise SourceNotFoundError(
            f"{home} is not a run folder: it has no manifest.json, which "
            f"`surface-consistency {command} --out` writes"
        )
    try:
        manifest = RunManifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise RecordError(
            f"{path}: not a RunManifest: {describe_validation_error(error)}; restore the file, or "
            "make the run again"
        ) from error
    if manifest.study != study:
        raise DataError(
            f"{home} is a run of the study {manifest.study!r}, not of {study!r}; report the runs "
            "of one study together"
        )
    return manifest


def read_frame(path: Path, record: type[Record], *, remedy: str) -> "pd.DataFrame":
    """Read the outcomes of a run and check that its columns are there and rows in them."""
    import pandas as pd

    if not path.is_file():
        raise SourceNotFoundError(
            f"{path.parent} has no {path.name}: its answers are not judged yet; {remedy}"
        )
    try:
        frame = pd.read_parquet(path)
    except (ValueError, OSError) as error:
        raise DataError(f"{path}: cannot be read as Parquet ({error}); {remedy}") from error
    missing = [name for name in record.model_fields if name not in frame]
    if missing:
        raise ColumnNotFoundError(
            f"{path}: no column {', '.join(missing)} of {record.__name__}; {remedy}"
        )
    if frame.empty:
        raise DataError(f"{path}: holds no outcome, so there is nothing to report")
    return frame
