"""Options that several commands share: who answers, and where results go."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from surface_consistency.runs.folder import RunFolder

RUNS: Final = "Folders of scored runs, or folders that hold such folders."
"""Help of the runs that a command reads."""

Out = Annotated[Path, Parameter(help="Folder of the results.")]
"""The option --out."""

Json = Annotated[bool, Parameter(help="Print JSON for machines.", negative=())]
"""The option --json."""


def run_folders(paths: Sequence[Path]) -> list[Path]:
    """Find the runs that a user names, before anything else is asked of the command.

    Args:
        paths: Run folders, or folders that hold several, such as of a sweep or of several files of
            predictions.

    Returns:
        The run folders.

    Raises:
        SourceNotFoundError: If a path is neither.
    """
    folders: list[Path] = []
    for path in paths:
        folder = RunFolder(path)
        within = [] if folder.manifest.is_file() else folder.runs_within()
        folders += within or [RunFolder.open(path).path]
    return folders
