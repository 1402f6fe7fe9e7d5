"""Count a corpus in shards, each of which is counted only once.

The plan of a run contains the files with their sizes and times, the shards, the digests of the
counted names and all rules.
"""

import heapq
import math
import os
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa
from pydantic import Field

from surface_consistency.errors import (
    DataError,
    RunError,
    SourceNotFoundError,
    SurfaceConsistencyWarning,
)
from surface_consistency.rows.columnar import open_parquet
from surface_consistency.runs.job import Job, ShardResult, file_stamp
from surface_consistency.schemas.settings import Settings
from surface_consistency_build.counting.documents import (
    DocumentReader,
    FilePart,
    ReadReport,
    corpus_files,
    is_splittable,
    read_documents,
)
from surface_consistency_build.counting.tasks import CountTask, NameTask, NgramTask
from surface_consistency_build.linking.link_counts import LinkTask

_TASKS: Final[Mapping[str, type[NameTask] | type[NgramTask]]] = {
    "surfaces": NameTask,
    "pairs": NameTask,
    "ngrams": NgramTask,
    "links": LinkTask,
}
_SHARD_BYTES: Final = 256 << 20
_SMALLEST_PART: Final = 1 << 20


class CorpusSettings(Settings):
    """Documents to count."""

    corpus: tuple[str, ...] = Field(strict=False, min_length=1)
    """Files, folders and patterns of documents: lines of JSON, text, or Parquet; compressed or
    not."""

    text_field: str = "text"
    """Field or column of the text."""

    id_field: str | None = None
    """Field that identifies a document for the random draw; by default file name and position."""

    sample: float = Field(default=1.0, gt=0.0, le=1.0)
    """Proportion of the documents to read; each document is drawn independently."""

    sample_seed: int = 0
    """Random seed of the sample."""

    allow_truncated: bool = False
    """Count the data before the place at which a compressed file is cut off."""

    shards: int | None = Field(default=None, ge=1)
    """Number of parts that are counted separately; by default it depends on the size of the corpus
    and the cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountResult:
    """Result of a merged run."""

    folder: Path
    """The folder with the tables."""

    counted: dict[str, int]
    """Numbers of names, occurrences or n-grams."""

    report: ReadReport
    """Report of the documents that were read, and of their faults."""


class CountRun(Job):
    """A run of counting; `plan` starts or resumes a run, `open` reads its plan.

    Args:
        folder: Its folder.
        manifest: Contents of its manifest.
    """

    noun = "count"
    kinds = tuple(_TASKS)
    own_names = ("inputs", "dbpedia.sqlite")
    begun_by = "`surface-consistency count names ... --out DIR`"

    @classmethod
    def plan(
        cls,
        folder: str | os.PathLike[str],
        task: CountTask,
        corpus: CorpusSettings,
        *,
        shard: int | None = None,
    ) -> Self:
        """Plan a run, or resume the existing one.

        Args:
            folder: The folder; created if it does not exist.
            task: The task of counting.
            corpus: The corpus.
            shard: The only shard to count now, if given: if the run exists and has the same
                `corpus`, its other files are not checked.

        Returns:
            The run.

        Raises:
            RunError: If the folder contains a run of another plan; the message lists the
                differences.
            SourceNotFoundError: If the corpus has no documents.
            DataError: If the folder is a file, or contains other files.
        """

        def make_plan(before: Self | None) -> dict[str, Any]:
            known = {} if shard is None or before is None else before.planned
            return _make_plan(
                task, corpus, corpus.shards or (before.n_shards if before else None), known
            )

        run = cls.begin(folder, task.kind, make_plan, save=task.save)
        if isinstance(task, NameTask):
            task.table = replace(task.table, folder=run.folder / "inputs")
        run.task = task
        return run

    @classmethod
    def plan_documents(
        cls, folder: str | os.PathLike[str], task: CountTask, *, shards: int
    ) -> Self:
        """Plan a run over documents that a `datatrove` pipeline passes to `CountStep`.

        Args:
            folder: The folder; created if it does not exist.
            task: The task of counting.
            shards: Number of tasks of the executor: each counts its documents as one shard.

        Returns:
            The run. The plan does not contain the readers and filters before the step; the caller
            must not change them.

        Raises:
            RunError: If the folder contains a run of another plan; the message lists the
                differences.
            DataError: If the folder is a file, or contains other files.
            ValueError: If `shards` is below 1.
        """
        if shards < 1:
            raise ValueError(f"shards must be at least 1, got {shards}")
        shared: dict[str, Any] = {"files": [], "shards": [[] for _ in range(shards)]}
        plan = _plan_of(task, CorpusSettings(corpus=("-",)), shared) | {"is_given": True}
        run = cls.begin(folder, task.kind, lambda before: plan, save=task.save)
        run.task = task
        return run

    @cached_property
    def task(self) -> CountTask:
        """The task of counting."""
        task: CountTask = _TASKS[self.manifest["kind"]].load(self.folder, self.planned["task"])
        if task.describe() != self.planned["task"]:
            raise RunError(
                f"{self.folder / 'inputs'} was changed since the run was planned; count again in "
                "another folder"
            )
        return task

    def run(self, shard: int, *, documents: Iterable[str] | None = None) -> bool:
        """Count one shard, unless it is already counted.

        Args:
            shard: Its number from 0.
            documents: The texts of the shard, only for a run of `plan_documents`.

        Returns:
            True if it was counted now; False if it was already counted.

        Raises:
            ValueError: If the shard does not exist.
            RunError: If a file of the corpus changed since the plan, or the existing shard belongs
                to another plan; the message contains the file.
            RunError: If another process counts the shard.
            DataError: If a file cannot be read; the message contains it. Also if documents are
                given for a plan that reads them, or are missing for a plan that does not.
        """
        if self.planned.get("is_given", False) != (documents is not None):
            raise DataError(
                f"{self.folder} contains the plan of a count that reads its documents; remove the "
                "reader before it, or plan a count of given documents (`plan_documents`)"
                if documents is not None
                else f"{self.folder} contains the plan of a count of given documents; put a reader "
                "before its step, or plan a count of files (`plan`)"
            )
        return self.do(shard, lambda number: self._count(number, documents))

    def run_all(self, *, n_workers: int | None = None) -> int:
        """Count all unfinished shards, on all cores.

        Args:
            n_workers: Maximum number of processes; None for one per core.

        Returns:
            Number of shards that were counted now.

        Raises:
            RunError: If a process was killed; run again to count the remaining shards.
            RunError: As `run`.
            DataError: As `run`.
        """
        if self.missing():
            # Built before the processes are forked, which then share the tables.
            self.task.counter()
        return self.do_all(self._count, n_workers=n_workers)

    def reader(self, shard: int) -> DocumentReader:
        """Return a reader of the documents of a shard.

        Args:
            shard: Its number from 0.

        Returns:
            Their batches.
        """
        files = self.planned["files"]
        return DocumentReader(
            [FilePart(Path(files[f]["path"]), a, b) for f, a, b in self.planned["shards"][shard]],
            **self.planned["documents"],
        )

    def merge(self) -> CountResult:
        """Add the counts of all shards and write the tables.

        Returns:
            The result.

        Raises:
            DataError: If a shard is not counted, or its file is damaged; the message contains it.
            RunError: If a shard belongs to another plan; the message contains it.

        Warns:
            SurfaceConsistencyWarning: If the corpus has no documents.
        """
        report = ReadReport()
        totals: dict[str, Any] = {}
        for one in self.results():
            report.merge(ReadReport(**one.notes["report"]))
            totals = {name: totals.get(name, 0) + array for name, array in one.arrays.items()}
        if not report.documents:
            sampled = f"; {report.not_sampled:,} were not drawn" if report.not_sampled else ""
            warnings.warn(
                f"{self.folder}: no documents were counted{sampled}; all counts are 0 and no "
                "frequency is defined",
                SurfaceConsistencyWarning,
                stacklevel=2,
            )
        counted = self.task.write(self.folder, totals)
        self.finish({"counted": counted, "read": asdict(report)})
        return CountResult(folder=self.folder, counted=counted, report=report)

    @classmethod
    def named(cls, plan: Mapping[str, Any]) -> Mapping[str, object]:
        """Return the settings of a plan by name; see `Job.named`."""
        names = {"number of shards": len(plan["shards"]), "Unicode": plan["unicode"]}
        names |= {f"file {item['path']}": item for item in plan["files"]} | plan["documents"]
        for name, value in plan["task"].items():
            names |= value if isinstance(value, dict) else {name: value}
        return names

    def _count(self, shard: int, documents: Iterable[str] | None = None) -> ShardResult:
        """Count a shard."""
        counter = self.task.counter()
        reader = self.reader(shard)
        if documents is not None:
            reader = read_documents({"text": text} for text in documents)
        self._check_files(shard)
        for batch in reader:
            counter.feed(batch)
        self._check_files(shard)
        return ShardResult(counter.state(), {"report": asdict(reader.report)})

    def _check_files(self, shard: int) -> None:
        """Reject files that changed since the plan."""
        for number in sorted({part[0] for part in self.planned["shards"][shard]}):
            stamp = self.planned["files"][number]
            path = Path(stamp["path"])
            if not path.is_file():
                raise SourceNotFoundError(f"{path} was deleted after the plan was made; restore it")
            if file_stamp(path) != stamp:
                raise RunError(
                    f"{path} changed since the run was planned (size {stamp['n_bytes']:,}, now "
                    f"{path.stat().st_size:,} bytes, or its time); restore it, or count again in "
                    "another folder"
                )


def _make_plan(
    task: CountTask, corpus: CorpusSettings, n_shards: int | None, known: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the inputs of the counts, with the known files and shards if there are any."""
    named = [os.path.abspath(path) for path in corpus.corpus]
    if known.get("corpus") == named and n_shards == len(known["shards"]):
        shared = {name: known[name] for name in ("files", "shards")}
    else:
        shared = _shared_out_files(corpus.corpus, n_shards)
    return _plan_of(task, corpus, {"corpus": named, **shared})


def _plan_of(task: CountTask, corpus: CorpusSettings, shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of the counts, except the files and their shards."""
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
        **shared,
    }


def _shared_out_files(corpus: Sequence[str], n_shards: int | None) -> dict[str, Any]:
    """List the files of a corpus, and assign them to shards."""
    files = corpus_files(corpus)
    described = [file_stamp(path) for path in files]
    sizes = [item["n_bytes"] for item in described]
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    n = n_shards or max(cores, math.ceil(sum(sizes) / _SHARD_BYTES))
    return {"files": described, "shards": _share_out(files, sizes, n)}


def _share_out(files: Sequence[Path], sizes: Sequence[int], n: int) -> list[list[list[int | None]]]:
    """Assign files to shards of about equal size, and split large uncompressed files."""
    parts: list[tuple[int, int, int, int | None]] = []
    target = max(_SMALLEST_PART, math.ceil(sum(sizes) / n))
    for number, (path, size) in enumerate(zip(files, sizes, strict=True)):
        if not is_splittable(path) or size <= target:
            parts.append((size, number, 0, None))
            continue
        end = _n_row_groups(path) if path.suffix.lower() == ".parquet" else size
        units = max(1, min(end, math.ceil(size / target)))
        bounds = [end * k // units for k in range(units + 1)]
        parts += [(size // units, number, a, b) for a, b in pairwise(bounds)]
    loads = [(0, shard) for shard in range(n)]
    shards: list[list[list[int | None]]] = [[] for _ in range(n)]
    for size, number, start, stop in sorted(parts, key=lambda part: (-part[0], *part[1:3])):
        load, lightest = loads[0]
        heapq.heapreplace(loads, (load + size, lightest))
        shards[lightest].append([number, start, stop])
    return [sorted(shard, key=lambda part: (part[0], part[1])) for shard in shards]


def _n_row_groups(path: Path) -> int:
    """Count the row groups of a Parquet file; 1 for other files, which the reader rejects."""
    try:
        with open_parquet(path, groups=slice(0)) as file:
            return int(file.num_row_groups)
    except (DataError, pa.ArrowException, OSError):
        return 1


class _Step:
    """A step of a `datatrove` pipeline with the folder of its run: local, on Slurm or Ray."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = os.path.abspath(folder)
        """Folder of the run; absolute, because tasks start in other folders."""

    def __repr__(self) -> str:
        """Return the name of the step in the log."""
        return f"{type(self).__name__}: {self.folder}"


class CountStep(_Step):
    """Counts the shards of a plan that belong to a task; a step for a `datatrove` executor.

    Plan the run once, in a folder that all tasks can access. A run of `CountRun.plan` reads its
    files: the plan defines the shards, independent of the number of tasks, and a task counts the
    shards whose number modulo the number of tasks is its rank. A run of `CountRun.plan_documents`
    counts the documents of the steps before it: any reader (Parquet on a hub, S3, WARC), followed
    by filters. A pipeline that is started again counts each shard once, and the merge rejects
    incomplete counts.

    Args:
        folder: Folder of the planned run.

    Examples:
        ```python
        from datatrove.executor import LocalPipelineExecutor
        from datatrove.pipeline.readers import ParquetReader

        run = CountRun.plan("counts", NameTask(table), CorpusSettings(corpus=("pile",), shards=64))
        count = LocalPipelineExecutor([CountStep("counts")], tasks=16, logging_dir="logs/count")
        LocalPipelineExecutor(
            [MergeStep("counts")], tasks=1, logging_dir="logs/merge", depends=count
        ).run()

        CountRun.plan_documents("from_hub", NameTask(table), shards=16)
        reader = ParquetReader("hf://datasets/HuggingFaceFW/fineweb/sample/10BT")
        LocalPipelineExecutor([reader, CountStep("from_hub")], tasks=16, logging_dir="logs/hub")
        ```
    """

    def __call__(
        self, data: Iterable[Any] | None, rank: int = 0, world_size: int = 1
    ) -> Iterator[object]:
        """Count the shards of a task.

        Args:
            data: Documents of the step before, with their `text`; empty if the plan reads its
                files.
            rank: Number of this task.
            world_size: Number of tasks.

        Returns:
            No documents.

        Raises:
            DataError: As `CountRun.run`, or if the number of tasks is not the number of shards of
                given documents.
            RunError: As `CountRun.run`.
        """
        run = CountRun.open(self.folder)
        is_given = run.planned.get("is_given", False)
        documents = data if is_given else _first_seen(data)
        if is_given and world_size != run.n_shards:
            raise DataError(
                f"{self.folder}: the plan has {run.n_shards} shards, one for the documents of each "
                f"task, but there are {world_size} tasks; start one task per shard"
            )
        texts = None if documents is None else (document.text for document in documents)
        shards = (rank,) if is_given else range(rank, run.n_shards, world_size)
        for shard in shards:
            run.run(shard, documents=texts)
        return iter(())


class MergeStep(_Step):
    """Adds the counts of all shards and writes the tables, in the first task, for `datatrove`.

    Args:
        folder: Folder of the run.
    """

    def __call__(
        self, data: Iterable[object] | None, rank: int = 0, world_size: int = 1
    ) -> Iterator[object]:
        """Merge the shards, in the first task.

        Args:
            data: Documents of the step before; must be empty.
            rank: Number of this task.
            world_size: Number of tasks.

        Returns:
            No documents.

        Raises:
            DataError: If a step before this one passes documents, or a shard is not counted yet.
            RunError: As `CountRun.merge`.
        """
        if _first_seen(data) is not None:
            raise DataError(
                f"{type(self).__name__} adds the counts of {CountStep.__name__}; remove the reader "
                "before it"
            )
        if rank == 0:
            CountRun.open(self.folder).merge()
        return iter(())


def _first_seen(data: Iterable[Any] | None) -> Iterable[Any] | None:
    """Return documents, or None for an empty stream, which executors also pass."""
    stream = iter(data or ())
    first = next(stream, None)
    return None if first is None else chain((first,), stream)
