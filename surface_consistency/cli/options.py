"""Options that several commands share: who answers, and where results go."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from surface_consistency.engine.study import Study
from surface_consistency.errors import SourceNotFoundError
from surface_consistency.runs.folder import RunFolder
from surface_consistency.schemas.settings import record_options

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


@contextmanager
def naming(flag: str) -> Iterator[None]:
    """Put the flag before an error about a file, folder or repository that is not found.

    Args:
        flag: The option that named it.

    Raises:
        SourceNotFoundError: As within, with the flag.
    """
    try:
        yield
    except SourceNotFoundError as error:
        told = str(error)
        raise SourceNotFoundError(told if flag in told else f"{flag}: {told}") from error


def source_flag(study: Study) -> str:
    """Name the option that says where the data of a study come from.

    Args:
        study: The study.

    Returns:
        "--source", or for a record without such a field the flag of its first.
    """
    flags = [option.flags[0] for option in record_options(study.source)]
    return "--source" if "--source" in flags else flags[0]
