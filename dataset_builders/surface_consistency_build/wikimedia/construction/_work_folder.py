"""The folder of a build: for one at a time, each result with a marker of what it is made from."""

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
    """Tell a file by its content; dumps are too large to be read whole for a name.

    Files up to 64 MiB are read whole. Of larger ones the size counts, with the first and last MiB
    and 256 blocks of 64 KiB spread evenly between: a dump of another date differs in all of these.
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
    """Tell a result by its maker, its settings (values of JSON) and the digests of its inputs."""
    content = json.dumps([name, settings, list(inputs)], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(content.encode("ascii")).hexdigest()


@contextmanager
def locked_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a folder and keep it for one build; the lock ends with the process, the files stay."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)

    def held(owner: str) -> RunError:
        """Say who uses the folder."""
        return RunError(
            f"another build ({owner}) uses the work folder {place}; wait for it to end, or choose "
            "another folder"
        )

    with FileLock(place / ".lock", held):
        yield place


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
        """Find the marker of finished results; None if they are lost or of other inputs."""
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
        """Let `work` write each result to the path that it is given, and mark them as finished."""
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
