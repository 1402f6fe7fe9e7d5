"""Reading and writing records as JSON lines, with errors that name the line."""

import errno
import glob
import itertools
import os
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from surface_consistency.errors import DataError, RecordError, SourceNotFoundError
from surface_consistency.reading import decode_text, read_lines, shown
from surface_consistency.schemas._record import Record

R = TypeVar("R", bound=Record)

_LISTED = 3
_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NOT_ALLOWED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_HOST = f"{zlib.crc32(os.uname().nodename.encode()):08x}" if os.name == "posix" else "0"
_numbers = itertools.count()


def describe_validation_error(error: ValidationError) -> str:
    """Describe which fields of a record are invalid, by rule and value.

    Args:
        error: The error of pydantic.

    Returns:
        One clause per invalid field (at most 3), joined by "; ".
    """
    clauses = []
    for detail in error.errors(include_url=False):
        field, rule = ".".join(str(part) for part in detail["loc"]), detail["msg"]
        if detail["type"] != "value_error":
            field, rule = field or "record", f"{rule}, got {shown(detail['input'])}"
        rule = rule.removeprefix("Value error, ")
        clauses.append(f"field {shown(field)}: {rule}" if field else rule)
    more = f"; and {len(clauses) - _LISTED} more fields" if len(clauses) > _LISTED else ""
    return "; ".join(clauses[:_LISTED]) + more


def parse_line(line: bytes, record: type[R], *, source: str, number: int) -> R:
    """Read one line of JSON as a record.

    Args:
        line: The line, with or without its newline.
        record: The record class.
        source: Name of the file, for the error.
        number: Line number from 1, for the error.

    Returns:
        The record.

    Raises:
        RecordError: If the line is not UTF-8, not JSON, or does not match the schema.
    """
    text = decode_text(line, f"{source}:{number}")
    try:
        return record.model_validate_json(text)
    except ValidationError as error:
        raise RecordError(
            f"{source}:{number}: not a {record.__name__}: {describe_validation_error(error)}"
        ) from error


def read_jsonl(path: str | os.PathLike[str], record: type[R]) -> Iterator[R]:
    """Read a file of records, one per line; blank lines are skipped.

    Args:
        path: The file, UTF-8, a byte order mark allowed.
        record: The record class of every line.

    Yields:
        The records in the order of the file.

    Raises:
        SourceNotFoundError: If the file does not exist.
        RecordError: If a line is not such a record; the message names file, line, field and value.
    """
    file = Path(path)
    if not file.is_file():
        raise SourceNotFoundError(f"file {file} not found; it needs lines of {record.__name__}")
    for number, line in read_lines(file):
        if line.strip():
            yield parse_line(line, record, source=str(file), number=number)


def write_jsonl(path: str | os.PathLike[str], records: Iterable[Record]) -> int:
    """Write records, one per line, to a file that is replaced atomically.

    Args:
        path: The file; its folder must exist. An older file of that name is replaced.
        records: The records.

    Returns:
        The number of records written.
    """
    count = 0
    with atomic_path(path) as part, part.open("w", encoding="utf-8", newline="\n") as lines:
        for item in records:
            lines.write(item.model_dump_json())
            lines.write("\n")
            count += 1
    return count


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Return a temporary path to write to, which replaces the file atomically at the end.

    The temporary file is a hidden sibling of the file. If the block succeeds, it is flushed to the
    disk and renamed; on any error it is removed and an older file is unchanged. Temporary files of
    killed processes of this computer are removed when the same file is written again.

    Args:
        path: The file; its folder must exist. An older file of that name is replaced.

    Yields:
        The path to write to, closed again before the block ends. Its suffix differs from that of
        the file, so libraries that infer the format from the suffix need an explicit format.

    Raises:
        DataError: If the disk is full or the file cannot be written; the message names the file.
    """
    target = Path(path)
    remove_abandoned(target.parent, target.name)
    part = partial_path(target)
    try:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        explained = writing_error(target, error)
        if explained is None or Path(error.filename or part) not in {part, target}:
            raise
        raise explained from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def partial_path(target: Path) -> Path:
    """Return the path of a hidden sibling, which no other process writes to.

    Args:
        target: The file or folder.

    Returns:
        The sibling; its name contains the process id, which `remove_abandoned` checks.
    """
    return target.with_name(f".{target.name}.{_HOST}-{os.getpid()}-{next(_numbers)}.part")


def remove_abandoned(folder: Path, name: str | None = None) -> None:
    """Remove temporary files of processes of this computer that were killed.

    Args:
        folder: The folder to search; a missing folder is ignored.
        name: The file or folder that was being written; None for all.
    """
    if os.name != "posix":
        return
    beginning = "*" if name is None else glob.escape(name)
    for part in folder.glob(f".{beginning}.{_HOST}-*.part"):
        owner = re.fullmatch(rf"\..*\.{_HOST}-(\d+)-\d+\.part", part.name, re.DOTALL)
        if owner is None or _is_alive(int(owner[1])):
            continue
        with suppress(OSError):
            if part.is_dir():
                shutil.rmtree(part)
            else:
                part.unlink(missing_ok=True)


def writing_error(target: Path, error: OSError) -> DataError | None:
    """Describe which file could not be written, and the remedy.

    Args:
        target: The file or folder.
        error: The error of the system.

    Returns:
        The error to raise; None if the cause is neither disk space nor permission.
    """
    if error.errno in _DISK_FULL:
        remedy = "free disk space or choose another folder, then repeat the command"
    elif error.errno in _NOT_ALLOWED:
        remedy = "allow writing there, or choose another folder"
    else:
        return None
    return DataError(f"{target} cannot be written ({error.strerror or error}); {remedy}")


def _is_alive(process: int) -> bool:
    """Return whether a process of this computer is running."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
