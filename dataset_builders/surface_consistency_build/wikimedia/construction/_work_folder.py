"""Work folder of a build: a lock, and results with markers of their inputs."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from surface_consistency.errors import RunError
from surface_consistency.runs.files import write_text
from surface_consistency.runs.locks import FileLock
from surface_consistency.schemas._record import Items, Record
from surface_consistency_build.wikimedia.construction.progress import StepCount

_WHOLE: Final = 64 * 1024 * 1024
_EDGE: Final = 1024 * 1024
_PROBE: Final = 64 * 1024
_N_PROBES: Final = 256


def file_digest(path: Path) -> str:
    """Return a digest of a file's content; large files are read in part.

    Files up to 64 MiB are read completely. For larger files the digest includes the size, the first
    and last MiB, and 256 blocks of 64 KiB at equal distances: a dump of another date differs in all
    of these.
    """
    size = path.stat().st_size
    with path.open("rb") as content:
        if size <= _WHOLE:
            return hashlib.file_digest(content, "sha256").hexdigest()
        digest = hashlib.sha256(b"%d" % size)
        digest.update(content.read(_EDGE))
        for number in range(_N_PROBES):
            content.seek(_EDGE + number * ((size - 2 * _EDGE) // _N_PROBES))
            digest.update(content.read(_PROBE))
        content.seek(size - _EDGE)
        digest.update(content.read())
    return digest.hexdigest()


def digest_of(name: str, settings: Mapping[str, object], inputs: Sequence[str]) -> str:
    """Return a digest of a step's name, settings (JSON values) and the digests of its inputs."""
    content = json.dumps([name, settings, list(inputs)], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(content.encode("ascii")).hexdigest()


@contextmanager
def locked_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Create a folder and lock it for one build; the lock ends with the process."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)

    def in_use(owner: str) -> RunError:
        """Return the error for a folder that another build uses."""
        return RunError(
            f"another build ({owner}) uses the work folder {place}; wait for it to end, or choose "
            "another folder"
        )

    with FileLock(place / ".lock", in_use):
        yield place


class Marker(Record):
    """Marker file of finished results."""

    digest: str
    """Digest of their inputs."""

    files: dict[str, int]
    """Name and size of each result."""

    counts: Items[StepCount]
    """Rows in and out."""

    seconds: float
    """Duration."""


class Checkpoints:
    """Finished results in a folder.

    A result is valid only with its marker, which is written last. Files without a marker are
    overwritten, and incomplete files of a killed process are deleted, so only one process at a time
    may use a folder.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for part in folder.glob(".*.part"):
            part.unlink(missing_ok=True)
        self.folder = folder
        """Folder of the results."""

    def path(self, name: str) -> Path:
        """Return the path of a result."""
        return self.folder / f"{name}.parquet"

    def find(self, name: str, digest: str) -> Marker | None:
        """Return the marker of finished results; None if they are missing or have other inputs."""
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
        """Call `work`, which writes each result to its path, and mark the results as finished."""
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
