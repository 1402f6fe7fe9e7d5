"""Counting a corpus in parts, each of which counts once however often it is started.

A run is a folder. `manifest.json` holds the plan: the files with their sizes and times, the shards,
the digests of what is counted and every rule. Each shard writes one file when it is done, marked
with the digest of the plan; the merge takes exactly those of the plan, and all of them.
"""

import hashlib
import json
import math
import os
import time
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from pydantic import Field

import surface_consistency
from surface_consistency.errors import (
    DataError,
    RunLogLockedError,
    RunMismatchError,
    SourceNotFoundError,
    SurfaceConsistencyWarning,
)
from surface_consistency.runs.command import COMMAND
from surface_consistency.runs.files import atomic_path, write_json
from surface_consistency.runs.locks import FileLock
from surface_consistency.runs.processes import map_processes
from surface_consistency.schemas.jsonl import remove_abandoned
from surface_consistency.schemas.settings import Settings
from surface_consistency_build.counting.documents import (
    DocumentReader,
    FilePart,
    ReadReport,
    corpus_files,
    is_splittable,
)
from surface_consistency_build.counting.engines import EngineName, choose_engine
from surface_consistency_build.counting.tasks import CountTask, NameTask, NgramTask, State
from surface_consistency_build.linking.link_counts import LinkTask

__all__ = ["CorpusSettings", "CountResult", "CountRun"]

_FORMAT: Final = 1
_KINDS: Final = ("surfaces", "pairs", "ngrams", "links")
_SHARD_BYTES: Final = 256 << 20
_SMALLEST_PART: Final = 1 << 20
_SHOWN: Final = 5
_WAIT_SECONDS: Final = 60.0
_OWN_NAMES: Final = frozenset({"inputs", "shards", "manifest.json", ".plan.lock"})


class CorpusSettings(Settings):
    """Which documents are counted."""

    corpus: tuple[str, ...] = Field(strict=False, min_length=1)
    """Files, folders and patterns of documents: lines of JSON, text, or Parquet; packed or not."""

    text_field: str = "text"
    """Field or column of the text."""

    id_field: str | None = None
    """Field by which documents are drawn; by file name and place by default."""

    sample: float = Field(default=1.0, gt=0.0, le=1.0)
    """Share of the documents that is read, drawn one by one."""

    sample_seed: int = 0
    """Seed of the sample."""

    allow_truncated: bool = False
    """Whether what comes before the place where a packed file is cut off is counted."""

    shards: int | None = Field(default=None, ge=1)
    """Parts that are counted apart; by the size of the corpus and the cores by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountResult:
    """What a merged run counted."""

    folder: Path
    """The folder with the tables."""

    counted: dict[str, int]
    """How many names, occurrences or n-grams."""

    report: ReadReport
    """What was read, and what was wrong with it."""


class CountRun:
    """A run of counting; `plan` starts one or goes on with it, `open` reads its plan.

    Args:
        folder: Its folder.
        manifest: Content of its manifest.
        task: What it counts; None reads it from the folder.
    """

    def __init__(
        self, folder: Path, manifest: Mapping[str, Any], task: CountTask | None = None
    ) -> None:
        self.folder = folder
        """The folder."""
        self.manifest = manifest
        """Content of its manifest."""
        self._task = task
        self._plan: dict[str, Any] = manifest["plan"]

    @classmethod
    def plan(cls, folder: str | os.PathLike[str], task: CountTask, corpus: CorpusSettings) -> Self:
        """Plan a run, or take up the one that is there.

        Args:
            folder: The folder; made if it is not there.
            task: What is counted.
            corpus: Where.

        Returns:
            The run.

        Raises:
            RunMismatchError: If the folder holds a run of another plan; names what differs.
            SourceNotFoundError: If there are no documents.
            DataError: If the folder is a file, or holds other things.
        """
        place = Path(folder)
        if place.exists() and not place.is_dir():
            raise DataError(f"{place} is a file; give --out a folder")
        manifest = place / "manifest.json"
        place.mkdir(parents=True, exist_ok=True)
        # A manifest that another process writes now, or was killed at, is half of our own.
        remove_abandoned(place)
        others = {item.name for item in place.iterdir() if not item.name.endswith(".part")}
        foreign = sorted(others - _OWN_NAMES)
        if foreign and not manifest.is_file():
            raise DataError(
                f"{place} holds other things than a count, such as {foreign[0]}; give --out "
                "another folder"
            )
        with cls._planning(place):
            before = cls.open(place) if manifest.is_file() else None
            n_shards = corpus.shards or (before.n_shards if before else None)
            plan = _make_plan(task, corpus, n_shards)
            if before is not None:
                _refuse_other_plan(before, plan)
                return cls(place, before.manifest, task)
            task.save(place)
            told = {
                "format": _FORMAT,
                "kind": task.kind,
                "package_version": surface_consistency.__version__,
                "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
                "command": COMMAND.get(),
                "plan": plan,
                "result": None,
            }
            write_json(manifest, told)
        return cls(place, told, task)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Self:
        """Open a run that was planned.

        Args:
            folder: Its folder.

        Returns:
            The run.

        Raises:
            SourceNotFoundError: If the folder holds no manifest.
            DataError: If the manifest is broken, or of a newer version of this package.
        """
        path = Path(folder) / "manifest.json"
        if not path.is_file():
            raise SourceNotFoundError(
                f"{folder} is no folder of a count: {path.name} is missing; plan it with "
                "`surface-consistency count surfaces ... --out DIR`"
            )
        try:
            told = json.loads(path.read_bytes())
            kind, version = told["kind"], told["format"]
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path} is no manifest of a count ({error}); restore it or count anew"
            ) from error
        if version != _FORMAT or kind not in _KINDS:
            raise DataError(
                f"{path} is of format {version}, kind {kind!r}; this version reads format "
                f"{_FORMAT}, kinds {', '.join(_KINDS)}: update surface-consistency"
            )
        return cls(Path(folder), told)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan: shards of equal digests belong together."""
        return hashlib.sha256(json.dumps(self._plan, sort_keys=True).encode()).hexdigest()

    @property
    def n_shards(self) -> int:
        """Shards of the plan."""
        return len(self._plan["shards"])

    @cached_property
    def task(self) -> CountTask:
        """What is counted."""
        if self._task is not None:
            return self._task
        kinds = {"ngrams": NgramTask, "links": LinkTask}
        kind: Any = kinds.get(self.manifest["kind"], NameTask)
        task: CountTask = kind.load(self.folder, self._plan["task"])
        if task.describe() != self._plan["task"]:
            raise RunMismatchError(
                f"{self.folder / 'inputs'} was changed since the run was planned; count anew in "
                "another folder"
            )
        return task

    def missing(self) -> list[int]:
        """List the shards that are not done.

        Returns:
            Their numbers from 0.
        """
        return [shard for shard in range(self.n_shards) if not self._file(shard).is_file()]

    def run(self, shard: int, *, engine: EngineName = "auto") -> bool:
        """Count one shard, unless that was done.

        Args:
            shard: Its number from 0.
            engine: Which engine; all count the same.

        Returns:
            Whether it was counted now; False if it was done before.

        Raises:
            ValueError: If there is no such shard.
            RunMismatchError: If a file of the corpus changed since the plan, or the shard that is
                there belongs to another plan; names it.
            RunLogLockedError: If another process counts the shard.
            DataError: If a file cannot be read; names it.
        """
        if not 0 <= shard < self.n_shards:
            raise ValueError(
                f"shard must be one of 0 to {self.n_shards - 1}, the shards of the plan in "
                f"{self.folder}, got {shard}"
            )
        self._file(shard).parent.mkdir(exist_ok=True)
        with self._lock(self.folder / "shards", f"{shard:05}"):
            if self._file(shard).is_file():
                self._read(shard)
                return False
            counter = self.task.counter(engine)
            reader = self.reader(shard)
            self._check_files(shard)
            for batch in reader:
                counter.feed(batch)
            self._check_files(shard)
            self.save_shard(shard, self.task.state(counter), reader.report, engine=engine)
        return True

    def run_all(self, *, n_workers: int | None = None, engine: EngineName = "auto") -> int:
        """Count all shards that are not done, on all cores.

        Args:
            n_workers: Processes at most; None for one a core.
            engine: Which engine.

        Returns:
            Shards counted now.

        Raises:
            WorkerLostError: If a process was killed; start again to count the rest.
            RunMismatchError: As `run`.
            DataError: As `run`.
        """
        shards = self.missing()
        if shards:
            # Before the processes are forked, which then share the tables.
            self.task.counter(engine)
            _FORKED[:] = [self]
            try:
                map_processes(_run_forked, [(s, engine) for s in shards], n_workers=n_workers)
            finally:
                _FORKED.clear()
        return len(shards)

    def reader(self, shard: int) -> DocumentReader:
        """Read the documents of a shard.

        Args:
            shard: Its number from 0.

        Returns:
            Their batches.
        """
        files = self._plan["files"]
        return DocumentReader(
            [FilePart(Path(files[f]["path"]), a, b) for f, a, b in self._plan["shards"][shard]],
            **self._plan["documents"],
        )

    def save_shard(
        self, shard: int, state: State, report: ReadReport, *, engine: EngineName = "auto"
    ) -> None:
        """Write the counts of a shard; the file appears whole or not at all.

        Args:
            shard: Its number from 0.
            state: Its counts.
            report: What was read.
            engine: What counted.
        """
        told = {"plan": self.digest, "shard": shard, "engine": choose_engine(engine)}
        meta = json.dumps(told | {"report": asdict(report)}).encode()
        self._file(shard).parent.mkdir(exist_ok=True)
        with atomic_path(self._file(shard)) as part, part.open("wb") as file:
            arrays: dict[str, Any] = {**state, "meta": np.frombuffer(meta, dtype=np.uint8)}
            np.savez_compressed(file, **arrays)

    def merge(self) -> CountResult:
        """Add all shards and write the tables.

        Returns:
            What was counted.

        Raises:
            DataError: If a shard is not done, or its file is broken; names it.
            RunMismatchError: If a shard belongs to another plan; names it.

        Warns:
            SurfaceConsistencyWarning: If there were no documents.
        """
        if missing := self.missing():
            named = ", ".join(map(str, missing[:_SHOWN])) + (", ..." if missing[_SHOWN:] else "")
            raise DataError(
                f"{self.folder}: {len(missing)} of {self.n_shards} shards are not counted yet "
                f"({named}); count them with the same command and --shard NUMBER, or without "
                "--shard to count all"
            )
        report, states = ReadReport(), []
        for shard in range(self.n_shards):
            state, read = self._read(shard)
            report.merge(read)
            states.append(state)
        if not report.documents:
            sampled = f"; {report.not_sampled:,} were not drawn" if report.not_sampled else ""
            warnings.warn(
                f"{self.folder}: no documents were counted{sampled}; all counts are 0 and no "
                "frequency is defined",
                SurfaceConsistencyWarning,
                stacklevel=2,
            )
        counted = self.task.write(self.folder, states)
        result = {"counted": counted, "read": asdict(report)}
        write_json(self.folder / "manifest.json", {**self.manifest, "result": result})
        return CountResult(folder=self.folder, counted=counted, report=report)

    def _file(self, shard: int) -> Path:
        """Name the file of a shard."""
        return self.folder / "shards" / f"{shard:05}.npz"

    def _read(self, shard: int) -> tuple[dict[str, Any], ReadReport]:
        """Read the counts of a shard, of this plan only."""
        path = self._file(shard)
        try:
            with np.load(path, allow_pickle=False) as arrays:
                state = dict(arrays)
            meta = json.loads(state.pop("meta").tobytes())
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise DataError(
                f"{path} is broken ({error}); delete it and count shard {shard} again"
            ) from error
        if (meta["plan"], meta["shard"]) != (self.digest, shard):
            raise RunMismatchError(
                f"{path} belongs to another plan or shard; delete it and count shard {shard} again"
            )
        return state, ReadReport(**meta["report"])

    def _check_files(self, shard: int) -> None:
        """Refuse files that changed since the plan."""
        for number in sorted({part[0] for part in self._plan["shards"][shard]}):
            planned = self._plan["files"][number]
            path = Path(planned["path"])
            if not path.is_file():
                raise SourceNotFoundError(f"{path} is gone since the run was planned; restore it")
            if _stat(path) != planned:
                raise RunMismatchError(
                    f"{path} changed since the run was planned (size {planned['n_bytes']:,}, now "
                    f"{path.stat().st_size:,} bytes, or its time); restore it, or count anew in "
                    "another folder"
                )

    @classmethod
    def _planning(cls, folder: Path) -> FileLock:
        """Wait for others that plan the same run, as the tasks of an array job do."""
        until = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                return cls._lock(folder, "plan")
            except RunLogLockedError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    @staticmethod
    def _lock(folder: Path, name: str) -> FileLock:
        """Keep other processes out."""
        path = folder / f".{name}.lock"
        return FileLock(
            path,
            lambda owner: RunLogLockedError(
                f"{owner} counts here already ({path}); wait for it, or end it"
            ),
        )


_FORKED: list[CountRun] = []
"""The run whose shards forked processes count; they inherit its tables instead of pickling them."""


def _run_forked(work: tuple[int, EngineName]) -> bool:
    """Count a shard of the run that this process inherited."""
    return _FORKED[0].run(work[0], engine=work[1])


def _make_plan(task: CountTask, corpus: CorpusSettings, n_shards: int | None) -> dict[str, Any]:
    """Write down everything that counts depend on."""
    files = corpus_files(corpus.corpus)
    described = [_stat(path) for path in files]
    total = sum(item["n_bytes"] for item in described)
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    n = n_shards or max(cores, math.ceil(total / _SHARD_BYTES))
    return {
        "task": task.describe(),
        "documents": {
            "text": corpus.text_field,
            "id": corpus.id_field,
            "sample": corpus.sample,
            "seed": corpus.sample_seed,
            "allow_truncated": corpus.allow_truncated,
        },
        "unicode": unicodedata.unidata_version,
        "files": described,
        "shards": _share_out(files, [item["n_bytes"] for item in described], n),
    }


def _stat(path: Path) -> dict[str, Any]:
    """Describe a file so that a change shows."""
    told = path.stat()
    return {"path": str(path), "n_bytes": told.st_size, "mtime_ns": told.st_mtime_ns}


def _share_out(files: Sequence[Path], sizes: Sequence[int], n: int) -> list[list[list[int | None]]]:
    """Share files out to shards of about equal size, large plain ones in parts."""
    parts: list[tuple[int, int, int, int | None]] = []
    target = max(_SMALLEST_PART, math.ceil(sum(sizes) / n))
    for number, (path, size) in enumerate(zip(files, sizes, strict=True)):
        units = _units(path, size, target)
        if units < 2:
            parts.append((size, number, 0, None))
            continue
        end = size
        if path.suffix.lower() == ".parquet":
            end = _n_row_groups(path)
        bounds = [end * k // units for k in range(units + 1)]
        parts += [(size // units, number, a, b) for a, b in pairwise(bounds)]
    loads = [0] * n
    shards: list[list[list[int | None]]] = [[] for _ in range(n)]
    for size, number, start, stop in sorted(parts, key=lambda part: (-part[0], *part[1:3])):
        lightest = loads.index(min(loads))
        loads[lightest] += size
        shards[lightest].append([number, start, stop])
    return [sorted(shard, key=lambda part: (part[0], part[1])) for shard in shards]


def _units(path: Path, size: int, target: int) -> int:
    """Say in how many parts a file is counted."""
    if not is_splittable(path) or size <= target:
        return 1
    units = math.ceil(size / target)
    return min(units, _n_row_groups(path)) if path.suffix.lower() == ".parquet" else units


def _n_row_groups(path: Path) -> int:
    """Count the row groups of a Parquet file; 1 for what is none, which the reader refuses."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return int(pq.ParquetFile(path).num_row_groups)
    except (pa.ArrowException, OSError):
        return 1


def _refuse_other_plan(before: CountRun, now: Mapping[str, Any]) -> None:
    """Say in what a plan differs from the one that is there."""
    ours, theirs = _named(now), _named(before._plan)
    differing = [
        f"{name} was {_shown(theirs.get(name))}, now {_shown(ours.get(name))}"
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]
    if differing:
        more = f"; and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
        # A shard without a part of a file is done at once.
        missing, shards = set(before.missing()), before._plan["shards"]
        is_empty = all(number in missing for number, parts in enumerate(shards) if parts)
        raise RunMismatchError(
            f"{before.folder} holds a count of another plan: {'; '.join(differing[:_SHOWN])}"
            f"{more}. Give the options and files of then, or another --out"
            + (", or delete the folder: nothing is counted in it yet" if is_empty else "")
        )


def _named(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Name everything that a plan says."""
    told: dict[str, Any] = {"number of shards": len(plan["shards"]), "Unicode": plan["unicode"]}
    told |= {f"file {item['path']}": item for item in plan["files"]}
    told |= plan["documents"]
    for name, value in plan["task"].items():
        told |= value if isinstance(value, dict) else {name: value}
    return told


def _shown(value: object) -> str:
    """Write a value of a plan."""
    if isinstance(value, dict):
        return f"{value['n_bytes']:,} bytes of time {value['mtime_ns']}"
    if isinstance(value, str) and len(value) == 64:
        return value[:12]
    return "absent" if value is None else repr(value)
