"""Answers with their traces, as published rows, one file a cell."""

from contextlib import ExitStack
from pathlib import Path
from typing import IO

from surface_consistency.schemas.audit import AuditTarget
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.memory import MemoryState
from surface_consistency.studies.audit.published_rows import result_line

__all__ = ["ResultFiles"]


class ResultFiles:
    """One file of published rows a cell; all take their places when everything is written.

    Args:
        folder: Where they go.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[Path, IO[str]] = {}
        self._stack = ExitStack()

    def write(self, target: AuditTarget, state: MemoryState, generation: Generation) -> None:
        """Add a row to the file of its cell."""
        path = self._folder / target.database / f"{target.style}.jsonl"
        if path not in self._open:
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(".part")
            self._open[path] = self._stack.enter_context(
                part.open("w", encoding="utf-8", newline="\n")
            )
        self._open[path].write(result_line(target, state, generation))

    def __enter__(self) -> "ResultFiles":
        """Use as a context manager."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the files and move them to their places, or drop them."""
        self._stack.close()
        for path in self._open:
            part = path.with_suffix(".part")
            if error[0] is None:
                part.replace(path)
            else:
                part.unlink()
