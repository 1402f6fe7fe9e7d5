"""What every build does: read the dumps, run its steps, write its rows."""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from surface_consistency.errors import MissingDependencyError, WorkFolderLockedError
from surface_consistency.runs.locks import FileLock
from surface_consistency.wikimedia.construction._pipeline import Pipeline, Step
from surface_consistency.wikimedia.construction._tracker import Tracker
from surface_consistency.wikimedia.construction.database import open_database
from surface_consistency.wikimedia.construction.dump_files import DumpFiles
from surface_consistency.wikimedia.construction.progress import BuildHook
from surface_consistency.wikimedia.construction.result import BuildResult, finish_build
from surface_consistency.wikimedia.construction.rows import BuiltRow
from surface_consistency.wikimedia.construction.staging import stage
from surface_consistency.wikimedia.wikis import WikiConfig

if TYPE_CHECKING:
    import duckdb

__all__ = ["run_build"]

_LIBRARIES = ("pyarrow", "duckdb", "msgspec")


def run_build(
    dumps: DumpFiles,
    work: str | os.PathLike[str],
    *,
    config: WikiConfig,
    steps: Sequence[Step],
    steps_folder: str,
    last: Step,
    rows: "Callable[[duckdb.DuckDBPyConnection], Iterator[BuiltRow]]",
    memory_limit: str,
    threads: int | None,
    allow_truncated: bool,
    progress: BuildHook | None,
) -> BuildResult:
    """Do what is left to do of a build.

    Args:
        dumps: The files.
        work: Folder for what is staged and for the steps' results; kept for this build.
        config: The wiki.
        steps: The steps after the dumps, in their order.
        steps_folder: Name of the subfolder for their results.
        last: What the rows depend on.
        rows: Makes the rows from the steps' tables.
        memory_limit: Memory for DuckDB.
        threads: Threads for reading and for DuckDB; as many as there are processors when None.
        allow_truncated: Whether a dump that ends early counts as far as it goes.
        progress: Called as dumps are read and before each step.

    Returns:
        The rows and what was left out on the way.

    Raises:
        MissingDependencyError: If a library is not installed that some step needs, even a late one.
        WorkFolderLockedError: If another build uses the folder.
    """
    _require_libraries()
    folder = Path(work)
    folder.mkdir(parents=True, exist_ok=True)
    with (
        FileLock(
            folder / ".lock",
            lambda owner: WorkFolderLockedError(
                f"another build ({owner}) uses the work folder {folder}; wait for it to end, or "
                "choose another folder"
            ),
        ),
        open_database(folder, memory_limit=memory_limit, threads=threads) as connection,
    ):
        tracker = Tracker(progress, dumps.paths, n_steps=len(steps))
        staged = stage(
            dumps,
            folder / "staged",
            config,
            allow_truncated=allow_truncated,
            threads=threads,
            tracker=tracker,
        )
        pipeline = Pipeline(connection, staged, folder / steps_folder, tracker)
        pipeline.run(steps)
        return finish_build(pipeline, staged, folder / "rows", last, partial(rows, connection))


def _require_libraries() -> None:
    """Refuse to start where a library is missing, rather than stop after hours."""
    for library in _LIBRARIES:
        try:
            import_module(library)
        except ImportError as error:
            purpose = "Building data sets from dumps"
            raise MissingDependencyError(purpose, library, "build") from error
