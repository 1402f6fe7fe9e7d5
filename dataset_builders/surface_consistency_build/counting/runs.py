"""Counting a corpus in shards, each of which counts once however often it is started.

The plan of a run holds the files with their sizes and times, the shards, the digests of what is
counted and every rule.
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


class CountRun(Job):
    """A run of counting; `plan` starts one or goes on with it, `open` reads its plan.

    Args:
        folder: Its folder.
        manifest: Content of its manifest.
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
        """Plan a run, or take up the one that is there.

        Args:
            folder: The folder; made if it is not there.
            task: What is counted.
            corpus: Where.
            shard: The only shard that is counted now, if there is one: where the run is there and
                of the same `corpus`, its other files are not looked at.

        Returns:
            The run.

        Raises:
            RunError: If the folder holds a run of another plan; names what differs.
            SourceNotFoundError: If there are no documents.
            DataError: If the folder is a file, or holds other things.
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
        """Plan a run over documents that steps of a `datatrove` pipeline give to `CountStep`.

        Args:
            folder: The folder; made if it is not there.
            task: What is counted.
            shards: Tasks of the executor: each counts the documents that it is given as one shard.

        Returns:
            The run. What the readers and filters before the step are is theirs to keep the same:
            the plan holds none of it.

        Raises:
            RunError: If the folder holds a run of another plan; names what differs.
            DataError: If the folder is a file, or holds other things.
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
        """What is counted."""
        task: CountTask = _TASKS[self.manifest["kind"]].load(self.folder, self.planned["task"])
        if task.describe() != self.planned["task"]:
            raise RunError(
                f"{self.folder / 'inputs'} was changed since the run was planned; count anew in "
                "another folder"
            )
        return task

    def run(self, shard: int, *, documents: Iterable[str] | None = None) -> bool:
        """Count one shard, unless that was done.

        Args:
            shard: Its number from 0.
            documents: The texts of the shard, for a run of `plan_documents`, and for it alone.

        Returns:
            Whether it was counted now; False if it was done before.

        Raises:
            ValueError: If there is no such shard.
            RunError: If a file of the corpus changed since the plan, or the shard that is
                there belongs to another plan; names it.
            RunError: If another process counts the shard.
            DataError: If a file cannot be read; names it. If documents are given that the plan
                reads itself, or none where it has none.
        """
        if self.planned.get("is_given", False) != (documents is not None):
            raise DataError(
                f"{self.folder} holds the plan of a count that reads its documents itself; put no "
                "reader before it, or plan one of documents that are given (`plan_documents`)"
                if documents is not None
                else f"{self.folder} holds the plan of a count of documents that are given; put a "
                "reader before its step, or plan one of files (`plan`)"
            )
        return self.do(shard, lambda number: self._count(number, documents))

    def run_all(self, *, n_workers: int | None = None) -> int:
        """Count all shards that are not done, on all cores.

        Args:
            n_workers: Processes at most; None for one a core.

        Returns:
            Shards counted now.

        Raises:
            RunError: If a process was killed; start again to count the rest.
            RunError: As `run`.
            DataError: As `run`.
        """
        if self.missing():
            # Before the processes are forked, which then share the tables.
            self.task.counter()
        return self.do_all(self._count, n_workers=n_workers)

    def reader(self, shard: int) -> DocumentReader:
        """Read the documents of a shard.

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
        """Add all shards and write the tables.

        Returns:
            What was counted.

        Raises:
            DataError: If a shard is not done, or its file is broken; names it.
            RunError: If a shard belongs to another plan; names it.

        Warns:
            SurfaceConsistencyWarning: If there were no documents.
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
        """Name everything that a plan says; see `Job.named`."""
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
        """Refuse files that changed since the plan."""
        for number in sorted({part[0] for part in self.planned["shards"][shard]}):
            stamp = self.planned["files"][number]
            path = Path(stamp["path"])
            if not path.is_file():
                raise SourceNotFoundError(f"{path} is gone since the run was planned; restore it")
            if file_stamp(path) != stamp:
                raise RunError(
                    f"{path} changed since the run was planned (size {stamp['n_bytes']:,}, now "
                    f"{path.stat().st_size:,} bytes, or its time); restore it, or count anew in "
                    "another folder"
                )


def _make_plan(
    task: CountTask, corpus: CorpusSettings, n_shards: int | None, known: Mapping[str, Any]
) -> dict[str, Any]:
    """Write down everything that counts depend on, with files and shards that are known if so."""
    named = [os.path.abspath(path) for path in corpus.corpus]
    if known.get("corpus") == named and n_shards == len(known["shards"]):
        shared = {name: known[name] for name in ("files", "shards")}
    else:
        shared = _shared_out_files(corpus.corpus, n_shards)
    return _plan_of(task, corpus, {"corpus": named, **shared})


def _plan_of(task: CountTask, corpus: CorpusSettings, shared: Mapping[str, Any]) -> dict[str, Any]:
    """Write down everything that counts depend on besides the files and their shards."""
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
    """List the files of a corpus, and share them out."""
    files = corpus_files(corpus)
    described = [file_stamp(path) for path in files]
    sizes = [item["n_bytes"] for item in described]
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    n = n_shards or max(cores, math.ceil(sum(sizes) / _SHARD_BYTES))
    return {"files": described, "shards": _share_out(files, sizes, n)}


def _share_out(files: Sequence[Path], sizes: Sequence[int], n: int) -> list[list[list[int | None]]]:
    """Share files out to shards of about equal size, large plain ones in parts."""
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
    """Count the row groups of a Parquet file; 1 for what is none, which the reader refuses."""
    try:
        with open_parquet(path, groups=slice(0)) as file:
            return int(file.num_row_groups)
    except (DataError, pa.ArrowException, OSError):
        return 1


class _Step:
    """A step of a `datatrove` pipeline that knows its run: local, on Slurm or Ray."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = os.path.abspath(folder)
        """Folder of the run; absolute, since tasks start elsewhere."""

    def __repr__(self) -> str:
        """Name the step in the log."""
        return f"{type(self).__name__}: {self.folder}"


class CountStep(_Step):
    """Counts the shards of a plan that fall to a task; a step for a `datatrove` executor.

    Plan the run once, in a folder that all tasks reach. One of `CountRun.plan` reads its files
    itself: the plan says what the shards are, not the number of tasks, and a task counts those
    whose number leaves its rank over. One of `CountRun.plan_documents` counts what the steps before
    it give: any reader (Parquet on a hub, S3, WARC), with filters behind it. A pipeline that is
    started again counts each shard once, and the merge refuses to add up what is not whole.

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
            data: Documents of the step before, with their `text`; none where the plan reads its
                files itself.
            rank: Number of this task.
            world_size: Number of tasks.

        Returns:
            No documents.

        Raises:
            DataError: As `CountRun.run`, or if there are not as many tasks as shards of documents
                that are given.
            RunError: As `CountRun.run`.
        """
        run = CountRun.open(self.folder)
        is_given = run.planned.get("is_given", False)
        documents = data if is_given else _first_seen(data)
        if is_given and world_size != run.n_shards:
            raise DataError(
                f"{self.folder}: the plan has {run.n_shards} shards, one for the documents of each "
                f"task, and there are {world_size} tasks; start as many tasks as shards"
            )
        texts = None if documents is None else (document.text for document in documents)
        shards = (rank,) if is_given else range(rank, run.n_shards, world_size)
        for shard in shards:
            run.run(shard, documents=texts)
        return iter(())


class MergeStep(_Step):
    """Adds all shards and writes the tables, in the first task; a step for a `datatrove` executor.

    Args:
        folder: Folder of the run.
    """

    def __call__(
        self, data: Iterable[object] | None, rank: int = 0, world_size: int = 1
    ) -> Iterator[object]:
        """Merge, in the first task.

        Args:
            data: Documents of the step before; there must be none.
            rank: Number of this task.
            world_size: Number of tasks.

        Returns:
            No documents.

        Raises:
            DataError: If a step before this one gives documents, or a shard is not counted yet.
            RunError: As `CountRun.merge`.
        """
        if _first_seen(data) is not None:
            raise DataError(
                f"{type(self).__name__} adds what {CountStep.__name__} counted; put no reader "
                "before it"
            )
        if rank == 0:
            CountRun.open(self.folder).merge()
        return iter(())


def _first_seen(data: Iterable[Any] | None) -> Iterable[Any] | None:
    """Return documents, or None where there are none: executors give an empty stream, too."""
    stream = iter(data or ())
    first = next(stream, None)
    return None if first is None else chain((first,), stream)
