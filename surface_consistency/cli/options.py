"""Options and arguments that several commands share."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter
from pydantic import BaseModel

from surface_consistency.cli.record_command import flag_of
from surface_consistency.errors import SourceNotFoundError

RUNS: Final = "Folders of scored runs, or folders that contain them."
"""Help of the runs that a command reads."""

Out = Annotated[Path, Parameter(help="Folder of the results.")]
"""The option --out."""

Json = Annotated[
    bool, Parameter(help="Print machine-readable JSON.", negative=(), show_default=False)
]
"""The option --json."""


def run_folders(paths: Sequence[Path]) -> list[Path]:
    """Find the run folders in the paths of a command.

    Args:
        paths: Run folders, or folders that contain several, such as those of a sweep or of several
            files of predictions.

    Returns:
        The run folders.

    Raises:
        SourceNotFoundError: If a path is neither of these.
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
    """Prefix the flag to an error for a file, folder or repository that is not found.

    Args:
        flag: The option that contains the path.

    Raises:
        SourceNotFoundError: If the code within raises it; the message names the flag.
    """
    try:
        yield
    except SourceNotFoundError as error:
        text = str(error)
        raise SourceNotFoundError(text if flag in text else f"{flag}: {text}") from error


def source_flag(record: type[BaseModel]) -> str:
    """Return the option that sets the source of the data of a study.

    Args:
        record: The settings record of the data.

    Returns:
        "--source", or the flag of the first field of a record without a field `source`; "" if the
        study needs no data.
    """
    fields = record.model_fields
    name = "source" if "source" in fields else next(iter(fields), "")
    return flag_of(name, fields[name]) if name else ""
