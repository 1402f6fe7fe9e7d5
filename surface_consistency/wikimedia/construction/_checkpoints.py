"""Results in a folder, each with a marker that says what it was made from."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError

from surface_consistency.runs.files import write_text
from surface_consistency.schemas._record import Items, Record
from surface_consistency.wikimedia.construction.attrition import StepCount

__all__ = ["Checkpoints", "Marker"]


class Marker(Record):
    """What stands beside finished results."""

    digest: str
    """What they were made from."""

    files: dict[str, int]
    """Name and size of each result."""

    counts: Items[StepCount]
    """What went in and out."""

    seconds: float
    """How long it took."""


class Checkpoints:
    """Finished results of one folder.

    A result counts only with its marker, which is written last; files without one are overwritten,
    and what a killed process left half-written goes. So one process at a time uses a folder.

    Args:
        folder: Where results go; made if need be.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for part in folder.glob(".*.part"):
            part.unlink(missing_ok=True)
        self.folder = folder
        """Where results go."""

    def path(self, name: str) -> Path:
        """Name the file of a result."""
        return self.folder / f"{name}.parquet"

    def find(self, name: str, digest: str) -> Marker | None:
        """Look for finished results.

        Args:
            name: Name of the marker.
            digest: What they must have been made from.

        Returns:
            The marker; None when there is none, or it tells of other inputs or of lost files.
        """
        try:
            text = (self.folder / f"{name}.done.json").read_bytes()
            marker = Marker.model_validate_json(text)
        except (FileNotFoundError, ValidationError):
            return None
        whole = all(
            (file := self.folder / result).is_file() and file.stat().st_size == size
            for result, size in marker.files.items()
        )
        return marker if whole and marker.digest == digest else None

    def make(
        self,
        name: str,
        digest: str,
        results: Sequence[str],
        work: Callable[[dict[str, Path]], Sequence[StepCount]],
    ) -> Marker:
        """Make results and mark them as finished.

        Args:
            name: Name of the marker.
            digest: What they are made from.
            results: Names of the results.
            work: Writes each result to the path it is given, and tells what went in and out.

        Returns:
            The marker.
        """
        (self.folder / f"{name}.done.json").unlink(missing_ok=True)
        parts = {result: self.folder / f".{result}.parquet.part" for result in results}
        start = time.perf_counter()
        try:
            counts = work(parts)
            for result, part in parts.items():
                part.replace(self.path(result))
        finally:
            for part in parts.values():
                part.unlink(missing_ok=True)
        marker = Marker(
            digest=digest,
            files={self.path(result).name: self.path(result).stat().st_size for result in results},
            counts=tuple(counts),
            seconds=time.perf_counter() - start,
        )
        write_text(self.folder / f"{name}.done.json", marker.model_dump_json(indent=1))
        return marker
