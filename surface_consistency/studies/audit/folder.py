"""The files of an audit."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from surface_consistency.errors import RunMismatchError
from surface_consistency.runs.files import write_text
from surface_consistency.studies.run_folder import RunFolder

__all__ = ["AuditFolder", "check_single", "check_sweep", "mark_sweep"]

_MARK: Final = "sweep.json"


@dataclass(frozen=True, slots=True)
class AuditFolder(RunFolder):
    """A run folder with the products of an audit."""

    @property
    def targets(self) -> Path:
        """What was deleted and asked: lines of `AuditTarget`."""
        return self.path / "targets.jsonl"

    @property
    def results(self) -> Path:
        """Folder of the answers with their traces, one file a cell, in the published rows."""
        return self.path / "results"

    @property
    def tables(self) -> Path:
        """Folder of the tables."""
        return self.path / "tables"

    @property
    def per_state(self) -> Path:
        """Means by cell and state, in the published columns."""
        return self.path / "per_state_metrics.csv"

    @property
    def cross_state(self) -> Path:
        """Leakage, mediated correctness and artifacts by cell, in the published columns."""
        return self.path / "cross_state_metrics.csv"


def check_single(path: str | os.PathLike[str]) -> None:
    """Refuse to write a single run into the folder of a sweep.

    Args:
        path: Folder of the run.

    Raises:
        RunMismatchError: If it holds a sweep.
    """
    folder = Path(path)
    if (folder / _MARK).is_file() or (folder / "tables" / "sweep.csv").is_file():
        raise RunMismatchError(
            f"{folder} holds a sweep, a folder a run, whose tables a single run would replace; "
            "choose another --out, or give several retrievers or thresholds to go on with the sweep"
        )


def check_sweep(path: str | os.PathLike[str]) -> None:
    """Refuse to write a sweep into the folder of a single run.

    Args:
        path: Folder of the sweep.

    Raises:
        RunMismatchError: If it holds a single run.
    """
    folder = Path(path)
    if (folder / "manifest.json").is_file():
        raise RunMismatchError(
            f"{folder} holds a single run, whose tables and page a sweep would replace; choose "
            "another --out, or give one retriever and one threshold to go on with the run"
        )


def mark_sweep(path: str | os.PathLike[str], names: Sequence[str]) -> None:
    """Mark a folder as that of a sweep, before its first run is finished.

    Args:
        path: Folder of the sweep; made when absent.
        names: Folders of its runs.
    """
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / _MARK, json.dumps({"runs": list(names)}, indent=2) + "\n")
