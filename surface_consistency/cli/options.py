"""Options that several commands share: who answers, and where results go."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter
from pydantic import BaseModel

from surface_consistency.cli.record_command import flag_of
from surface_consistency.errors import SourceNotFoundError

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
    from surface_consistency.runs.folder import RunFolder

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


def source_flag(record: type[BaseModel]) -> str:
    """Name the option that sets where the data of a study come from.

    Args:
        record: The settings record of the data.

    Returns:
        "--source", or the flag of the first field of a record without a field `source`; "" if the
        study needs no data.
    """
    fields = record.model_fields
    name = "source" if "source" in fields else next(iter(fields), "")
    return flag_of(name, fields[name]) if name else ""
