"""The shards of a planned count as steps of a datatrove pipeline: local, Slurm or Ray.

The plan says what the shards are, not the number of tasks: a task counts those whose number leaves
its rank over. So a pipeline that is started again, with as many tasks or others, counts each shard
once, and the merge refuses to add up what is not whole.
"""

import os
from collections.abc import Iterable, Iterator

from surface_consistency.errors import DataError
from surface_consistency_build.counting.engines import EngineName
from surface_consistency_build.counting.runs import CountRun

__all__ = ["CountStep", "MergeStep"]


class CountStep:
    """Counts the shards of a plan that fall to a task; a step for a `datatrove` executor.

    Plan the run once with `CountRun.plan`, in a folder that all tasks reach, then give this step
    alone to an executor: it reads the documents of the plan itself.

    Args:
        folder: Folder of the planned run.
        engine: Which engine; all count the same.

    Examples:
        ```python
        from datatrove.executor import LocalPipelineExecutor

        run = CountRun.plan("counts", NameTask(table), CorpusSettings(corpus=("pile",), shards=64))
        count = LocalPipelineExecutor([CountStep("counts")], tasks=16, logging_dir="logs/count")
        LocalPipelineExecutor(
            [MergeStep("counts")], tasks=1, logging_dir="logs/merge", depends=count
        ).run()
        ```
    """

    def __init__(self, folder: str | os.PathLike[str], *, engine: EngineName = "auto") -> None:
        self.folder = os.path.abspath(folder)
        """Folder of the run; absolute, since tasks start elsewhere."""
        self.engine: EngineName = engine
        """Which engine."""

    def __call__(
        self, data: Iterable[object] | None, rank: int = 0, world_size: int = 1
    ) -> Iterator[object]:
        """Count.

        Args:
            data: Documents of the step before; there must be none.
            rank: Number of this task.
            world_size: Number of tasks.

        Returns:
            No documents.

        Raises:
            DataError: If a step before this one gives documents.
            RunMismatchError: As `CountRun.run`.
        """
        _refuse_documents(data, type(self).__name__)
        run = CountRun.open(self.folder)
        for shard in range(rank, run.n_shards, world_size):
            run.run(shard, engine=self.engine)
        return iter(())

    def __repr__(self) -> str:
        """Name the step in the log."""
        return f"count: {self.folder}"


class MergeStep:
    """Adds all shards and writes the tables, in the first task; a step for a `datatrove` executor.

    Args:
        folder: Folder of the run.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = os.path.abspath(folder)
        """Folder of the run; absolute, since tasks start elsewhere."""

    def __call__(
        self, data: Iterable[object] | None, rank: int = 0, world_size: int = 1
    ) -> Iterator[object]:
        """Merge.

        Args:
            data: Documents of the step before; there must be none.
            rank: Number of this task.
            world_size: Number of tasks.

        Returns:
            No documents.

        Raises:
            DataError: If a step before this one gives documents, or a shard is not counted yet.
            RunMismatchError: If a shard belongs to another plan.
        """
        _refuse_documents(data, type(self).__name__)
        if rank == 0:
            CountRun.open(self.folder).merge()
        return iter(())

    def __repr__(self) -> str:
        """Name the step in the log."""
        return f"merge: {self.folder}"


def _refuse_documents(data: Iterable[object] | None, step: str) -> None:
    """Refuse documents, which would not be those of the plan."""
    first = next(iter(data), None) if data is not None else None
    if first is not None:
        raise DataError(
            f"{step} reads the documents of its plan itself; put no reader before it, or write "
            "what the steps before it give to files and plan the count of those"
        )
