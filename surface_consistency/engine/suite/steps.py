"""A suite that outgrows one machine: steps of a datatrove pipeline, local, on Slurm or Ray.

Its runs are asked whole or in shards; the merge refuses what is not of one plan.
"""

import hashlib
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

from surface_consistency.engine.suite.file import read_suite
from surface_consistency.engine.suite.runs import (
    Loader,
    attempt_cell,
    is_waiting,
    merge_cell,
    report_suite,
    suite_states,
)
from surface_consistency.errors import DataError
from surface_consistency.runs.files import as_file_name
from surface_consistency.runs.locks import FileLock


class _Step:
    """A step for `datatrove` that knows its suite."""

    verb: ClassVar[str]
    """What it does, for the log."""

    def __init__(
        self, file: str | os.PathLike[str], out: str | os.PathLike[str], *, shards: int = 1
    ) -> None:
        if shards < 1:
            raise ValueError(f"`shards` is 1 or more, got {shards}")
        self.file, self.out = os.path.abspath(file), os.path.abspath(out)
        """The suite file and its folder; absolute, since tasks start elsewhere."""
        self.shards = shards
        """Parts of a run."""

    def __repr__(self) -> str:
        """Name the step in the log."""
        return f"{self.verb}: {self.file}"


class SuiteStep(_Step):
    """Asks the runs, or shards of runs, of a suite that fall to a task; a step for `datatrove`.

    Give this step alone to an executor with any number of tasks, then `SuiteMergeStep` with one.
    A run that fails is told by the merge and does not stop the others.

    Args:
        file: The suite file, in a place that all tasks reach.
        out: Folder of the suite, too.
        shards: Parts that the prompts of each run are cut into; 1 leaves runs whole.
        devices: Where models run, such as "cuda:0" and "cuda:1": each task takes the next one that
            no other task of this suite holds on its machine. None leaves it to the suite file, or
            to what the scheduler shows a task, as Slurm and Ray do.

    Raises:
        ValueError: If `shards` is below 1.

    Examples:
        ```python
        from datatrove.executor import LocalPipelineExecutor

        ask = LocalPipelineExecutor(
            [SuiteStep("suite.toml", "runs", shards=4)],
            tasks=8,
            workers=2,
            logging_dir="logs/ask",
            skip_completed=False,
        )
        LocalPipelineExecutor(
            [SuiteMergeStep("suite.toml", "runs", shards=4)],
            tasks=1,
            logging_dir="logs/merge",
            depends=ask,
            skip_completed=False,
        ).run()
        ```
    """

    verb = "ask"

    def __init__(
        self,
        file: str | os.PathLike[str],
        out: str | os.PathLike[str],
        *,
        shards: int = 1,
        devices: Sequence[str] | None = None,
    ) -> None:
        super().__init__(file, out, shards=shards)
        self.devices = list(devices or ())
        """Where models run."""

    def __call__(
        self, data: Iterable[object] | None, rank: int = 0, world_size: int = 1
    ) -> Iterator[object]:
        """Ask.

        Args:
            data: Documents of the step before; there must be none.
            rank: Number of this task.
            world_size: Number of tasks.

        Returns:
            No documents.

        Raises:
            DataError: If a step before this one gives documents, or the suite file is broken.
        """
        _refuse_documents(data, type(self).__name__)
        home = Path(self.out)
        states = suite_states(read_suite(self.file), home)
        waiting = {one.cell.folder for one in states if is_waiting(one, home)}
        # What a rank asks must not hang on what others have finished meanwhile.
        parts = [(one.cell, number) for one in states for number in range(self.shards)]
        with self._device(rank) as device:
            loader = Loader(device)
            for cell, number in parts[rank::world_size]:
                if cell.folder in waiting:
                    shard = (number, self.shards)
                    attempt_cell(cell, home, loader, progress=False, shard=shard)
            loader.let_go()
        return iter(())

    @contextmanager
    def _device(self, rank: int) -> Iterator[str | None]:
        """Take a device that no other task here holds; where all are held, share one."""
        if not self.devices:
            yield None
            return
        suite = hashlib.sha256(self.out.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        first = rank % len(self.devices)
        # In a folder of the user, where nobody else can lay out or hold the files; names of devices
        # are those of one machine.
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        locks = cache / "surface-consistency" / "devices"
        locks.mkdir(parents=True, exist_ok=True)
        for place in (*range(first, len(self.devices)), *range(first)):
            path = locks / f"{as_file_name(platform.node())}-{suite}-{place}.lock"
            with suppress(_DeviceHeldError), FileLock(path, held=_DeviceHeldError):
                yield self.devices[place]
                return
        yield self.devices[first]


class SuiteMergeStep(_Step):
    """Merges the shards of each run, judges and reports, in the first task.

    Args:
        file: The suite file.
        out: Folder of the suite.
        shards: Parts of each run, as `SuiteStep` had them.
    """

    verb = "merge"

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
            DataError: If a step before this one gives documents, or the suite file is broken.
        """
        _refuse_documents(data, type(self).__name__)
        if rank == 0:
            suite, home = read_suite(self.file), Path(self.out)
            if self.shards > 1:
                for cell in suite.cells:
                    merge_cell(cell, home, self.shards)
            report_suite(suite, home)
        return iter(())


class _DeviceHeldError(Exception):
    """Another task holds the device."""


def _refuse_documents(data: Iterable[object] | None, step: str) -> None:
    """Refuse documents, which no step here reads."""
    if data is not None and next(iter(data), None) is not None:
        raise DataError(f"{step} asks what its suite file says; put no reader before it")
