"""Jobs that are planned once and run in shards; a finished shard is not run again.

A job is a folder. `manifest.json` contains the plan with all inputs of the result. Each finished
shard writes one file of arrays with the digest of the plan. The result combines all shards of the
plan, and no others.
"""

import hashlib
import json
import os
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, Self
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

import surface_consistency
from surface_consistency.errors import DataError, RecordError, RunError, SourceNotFoundError
from surface_consistency.reading import parse_json, read_document, shown, within
from surface_consistency.rows.columnar import check_arrays
from surface_consistency.runs.command import COMMAND
from surface_consistency.runs.files import CLAIMED, claim_files, output_folder, write_json
from surface_consistency.runs.locks import FileLock
from surface_consistency.runs.processes import map_processes
from surface_consistency.schemas.jsonl import atomic_path

_FORMAT: Final = 1
_SHOWN: Final = 5
_WAIT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, eq=False)
class ShardResult:
    """Result of a shard."""

    arrays: Mapping[str, npt.NDArray[Any]]
    """Its arrays, by name."""

    notes: Mapping[str, Any]
    """Further values, which can be written as JSON."""


class Job:
    """A job in its folder; each type of job is a subclass. `begin` starts or resumes a job.

    Args:
        folder: The folder.
        manifest: Content of its manifest.
    """

    noun: ClassVar[str] = "job"
    """Its name in messages, such as "count"."""

    kinds: ClassVar[tuple[str, ...]] = ("job",)
    """Kinds that a manifest may name."""

    own_names: ClassVar[Collection[str]] = ()
    """Files and folders of its folder, except for the manifest, the shards and the lock."""

    begun_by: ClassVar[str] = "the command that begins it"
    """The command that makes such a folder, for messages."""

    def __init__(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        self.folder = folder
        """The folder."""
        self.manifest = manifest
        """Content of its manifest."""
        self.planned: Mapping[str, Any] = manifest["plan"]
        """The plan."""

    @classmethod
    def begin(
        cls,
        folder: str | os.PathLike[str],
        kind: str,
        make_plan: Callable[[Self | None], Mapping[str, Any]],
        *,
        save: Callable[[Path], None] | None = None,
    ) -> Self:
        """Plan a job, or open the existing one.

        Args:
            folder: The folder; created if it does not exist.
            kind: Kind of the job.
            make_plan: Returns the plan, which can be written as JSON: all inputs of the result, and
                one entry per shard under "shards" if there are shards. Its argument is the existing
                job, or None.
            save: Writes files that the shards need to the folder of a new job.

        Returns:
            The job.

        Raises:
            RunError: If the folder contains a job with another plan; names the differences.
            RunError: If another process plans it for more than a minute.
            DataError: If the folder is a file, or contains other files.
        """
        place = output_folder(folder)
        manifest = place / "manifest.json"
        given = {item.name for item in place.iterdir() if not item.name.endswith(".part")}
        foreign = given - {*cls.own_names, manifest.name, "shards", ".plan.lock", CLAIMED}
        if foreign and not manifest.is_file():
            raise DataError(
                f"{place} contains files that do not belong to a {cls.noun}, such as "
                f"{min(foreign)}; choose another `out`"
            )
        if not manifest.is_file():
            with cls._planning(place):
                if not manifest.is_file():
                    return cls._planned(place, kind, make_plan(None), save)
        # A manifest is written atomically, so several processes can open a job without a lock.
        job = cls.open(place)
        job._reject_other_plan(make_plan(job))
        return job

    @classmethod
    def _planned(
        cls, place: Path, kind: str, plan: Mapping[str, Any], save: Callable[[Path], None] | None
    ) -> Self:
        """Write the manifest of a new job."""
        claim_files(place, ["shards", *(name for name in cls.own_names if "." not in name)])
        if save is not None:
            save(place)
        content = {
            "format": _FORMAT,
            "kind": kind,
            "package_version": surface_consistency.__version__,
            "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": COMMAND.get(),
            "plan": plan,
            "result": None,
        }
        write_json(place / "manifest.json", content)
        return cls(place, content)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Self:
        """Open an existing job.

        Args:
            folder: Its folder.

        Returns:
            The job.

        Raises:
            SourceNotFoundError: If the folder has no manifest.
            DataError: If the manifest is invalid, or of a newer version of this package.
        """
        path = within(Path(folder), "manifest.json")
        if not path.is_file():
            raise SourceNotFoundError(
                f"{folder} is not a folder of a {cls.noun}: {path.name} is missing; make it with "
                f"{cls.begun_by}"
            )
        try:
            content = parse_json(read_document(path), str(path))
            kind, version = content.get("kind", cls.kinds[0]), content.get("format", _FORMAT)
            content["plan"].items()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"{path} is not a manifest of a {cls.noun} ({error}); restore it, or start again "
                "in another folder"
            ) from error
        if version != _FORMAT or kind not in cls.kinds:
            raise DataError(
                f"{path} is of format {version}, kind {shown(kind)}; this version reads format "
                f"{_FORMAT}, kinds {', '.join(cls.kinds)}: update surface-consistency"
            )
        return cls(Path(folder), content)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan; shards with the same digest belong together."""
        return hashlib.sha256(json.dumps(self.planned, sort_keys=True).encode()).hexdigest()

    @property
    def n_shards(self) -> int:
        """Number of shards of the plan."""
        return len(self.planned.get("shards", ()))

    def missing(self) -> list[int]:
        """List the shards that are not finished.

        Returns:
            Their numbers from 0.
        """
        return [shard for shard in range(self.n_shards) if not self._file(shard).is_file()]

    def do(self, shard: int, work: Callable[[int], ShardResult]) -> bool:
        """Run one shard, unless it is already finished.

        Args:
            shard: Its number from 0.
            work: Function that runs it.

        Returns:
            True if it was run now; False if it was already finished.

        Raises:
            ValueError: If there is no such shard.
            RunError: If the existing shard belongs to another plan; names it.
            RunError: If another process is running it.
            DataError: If the existing file is invalid, or cannot be written; names it.
        """
        if not 0 <= shard < self.n_shards:
            raise ValueError(
                f"`shard` must be one of 0 to {self.n_shards - 1}, the shards of the plan in "
                f"{self.folder}, got {shard}"
            )
        path = self._file(shard)
        path.parent.mkdir(exist_ok=True)
        with self.locked(path.with_name(f".{path.stem}.lock")):
            if path.is_file():
                self._read(shard)
                return False
            made = work(shard)
            meta = json.dumps({"plan": self.digest, "shard": shard, **made.notes}).encode()
            arrays: dict[str, Any] = {**made.arrays, "meta": np.frombuffer(meta, dtype=np.uint8)}
            with atomic_path(path) as part, part.open("wb") as file:
                np.savez_compressed(file, **arrays)
        return True

    def do_all(self, work: Callable[[int], ShardResult], *, n_workers: int | None = None) -> int:
        """Run all shards that are not finished, on all cores.

        Args:
            work: Function that runs one shard; processes inherit its closure.
            n_workers: Maximum number of processes; None for one per core.

        Returns:
            Number of shards that were run now.

        Raises:
            RunError: If a process was killed; start again to run the remaining shards.
            RunError: As `do`.
            DataError: As `do`.
        """
        done = map_processes(lambda one: self.do(one, work), self.missing(), n_workers=n_workers)
        return len(done)

    def results(self) -> Iterator[ShardResult]:
        """Read the results of all shards.

        Yields:
            The results, in order.

        Raises:
            DataError: If a shard is not finished, or its file is invalid; names it.
            RunError: If a shard belongs to another plan; names it.
        """
        if missing := self.missing():
            shown = ", ".join(map(str, missing[:_SHOWN])) + (", ..." if missing[_SHOWN:] else "")
            raise DataError(
                f"{self.folder}: {len(missing)} of {self.n_shards} shards are not done yet "
                f"({shown}); repeat the command with `shard` NUMBER for each, or without `shard` "
                "for all"
            )
        yield from map(self._read, range(self.n_shards))

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write the result of the job to its manifest.

        Args:
            result: The result, which can be written as JSON.
        """
        self.manifest = {**self.manifest, "result": result}
        write_json(self.folder / "manifest.json", self.manifest)

    @classmethod
    def named(cls, plan: Mapping[str, Any]) -> Mapping[str, object]:
        """Return the values of a plan by name, for the message on differences.

        Args:
            plan: The plan.

        Returns:
            Its values by name.
        """
        return plan

    @classmethod
    def locked(cls, path: Path) -> FileLock:
        """Lock a file against other processes.

        Args:
            path: The lock file.

        Returns:
            The acquired lock; a context manager.

        Raises:
            RunError: If another process has the lock.
        """
        return FileLock(
            path,
            lambda owner: RunError(
                f"{owner} already works on this {cls.noun} ({path}); wait for it, or stop it"
            ),
        )

    @classmethod
    def _planning(cls, folder: Path) -> FileLock:
        """Wait for other processes that plan the same job, such as the tasks of an array job."""
        until = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                return cls.locked(folder / ".plan.lock")
            except RunError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def _file(self, shard: int) -> Path:
        """Return the file of a shard."""
        return within(self.folder, f"shards/{shard:05}.npz")

    def _read(self, shard: int) -> ShardResult:
        """Read the result of a shard of this plan."""
        path = self._file(shard)
        try:
            check_arrays(path)
            with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
                arrays = dict(content)
            notes = parse_json(arrays.pop("meta").tobytes(), f"{path} (meta)")
        except RecordError:
            raise
        except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
            raise DataError(
                f"{path} is invalid ({error}); delete it and do shard {shard} again"
            ) from error
        if (notes.pop("plan", None), notes.pop("shard", None)) != (self.digest, shard):
            raise RunError(
                f"{path} belongs to another plan or shard; delete it and do shard {shard} again"
            )
        return ShardResult(arrays, notes)

    def _reject_other_plan(self, plan: Mapping[str, Any]) -> None:
        """Raise an error that lists the differences from the existing plan."""
        now, before = self.named(plan), self.named(self.planned)
        differing = [
            f"{name} was {_shown(before.get(name))}, now {_shown(now.get(name))}"
            for name in sorted(now.keys() | before.keys())
            if now.get(name) != before.get(name)
        ]
        if differing:
            # Shards without a part of a file need no work and do not count.
            todo, shards = set(self.missing()), self.planned.get("shards", ())
            is_empty = shards and todo.issuperset(n for n, parts in enumerate(shards) if parts)
            more = f"; and {len(differing) - _SHOWN} more" if differing[_SHOWN:] else ""
            raise RunError(
                f"{self.folder} contains a {self.noun} with another plan: "
                f"{'; '.join(differing[:_SHOWN])}{more}. Use the earlier options and files, or "
                "another `out`"
                + (", or delete the folder: no shard is done in it yet" if is_empty else "")
            )


def file_stamp(path: Path) -> dict[str, Any]:
    """Describe a file so that changes can be detected.

    Args:
        path: The file.

    Returns:
        Path, n_bytes and mtime_ns.
    """
    stat = path.stat()
    return {"path": str(path), "n_bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns}


def _shown(value: object) -> str:
    """Format a value of a plan: the size and time of a file, a short digest, or the value."""
    if isinstance(value, dict):
        return f"{value['n_bytes']:,} bytes of time {value['mtime_ns']}"
    if isinstance(value, str) and len(value) == 64:
        return value[:12]
    return "absent" if value is None else repr(value)
