"""Records as lines of JSON: what is written is what is read, and a bad line is named."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from surface_consistency.errors import RecordError, SourceNotFoundError
from surface_consistency.schemas._record import Record

__all__ = ["describe_validation_error", "parse_line", "read_jsonl", "write_jsonl", "write_text"]

R = TypeVar("R", bound=Record)

_SHOWN = 80


def describe_validation_error(error: ValidationError) -> str:
    """Say which field broke which rule with which value.

    Args:
        error: What pydantic raised.

    Returns:
        One clause for each broken field, joined by "; ".
    """
    clauses = []
    for detail in error.errors(include_url=False):
        field = ".".join(str(part) for part in detail["loc"]) or "record"
        shown = repr(detail["input"])
        if len(shown) > _SHOWN:
            shown = shown[:_SHOWN] + "..."
        clauses.append(f"field {field!r}: {detail['msg']}, got {shown}")
    return "; ".join(clauses)


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
        RecordError: If the line is not UTF-8, not JSON, or breaks the schema.
    """
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordError(
            f"{source}:{number}: not UTF-8 at byte {error.start} of the line "
            f"({line[error.start : error.start + 8]!r}); re-save the file as UTF-8"
        ) from error
    try:
        return record.model_validate_json(text)
    except ValidationError as error:
        raise RecordError(
            f"{source}:{number}: not a {record.__name__}: {describe_validation_error(error)}"
        ) from error


def read_jsonl(path: str | os.PathLike[str], record: type[R]) -> Iterator[R]:
    """Read a file of records, one a line; blank lines are skipped.

    Args:
        path: The file, UTF-8, a byte order mark allowed.
        record: The record class of every line.

    Yields:
        The records in the file's order.

    Raises:
        SourceNotFoundError: If there is no such file.
        RecordError: If a line is not such a record; names file, line, field and value.
    """
    file = Path(path)
    if not file.is_file():
        raise SourceNotFoundError(f"no file {file}; expected lines of {record.__name__} there")
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            content = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if content.strip():
                yield parse_line(content, record, source=str(file), number=number)


def write_jsonl(path: str | os.PathLike[str], records: Iterable[Record]) -> int:
    """Write records, one a line; the file appears whole or not at all.

    Args:
        path: The file; its folder must exist. An older file of that name is replaced.
        records: What to write.

    Returns:
        The number of records written.
    """
    count = 0
    target = Path(path)
    part = _part(target)
    try:
        with part.open("w", encoding="utf-8", newline="\n") as lines:
            for item in records:
                lines.write(item.model_dump_json())
                lines.write("\n")
                count += 1
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return count


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file that appears whole or not at all.

    Args:
        path: The file; its folder must exist. An older file of that name is replaced.
        text: Its content.
    """
    target = Path(path)
    part = _part(target)
    try:
        part.write_text(text, encoding="utf-8", newline="\n")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _part(target: Path) -> Path:
    """Name the file that is written before it takes its place."""
    return target.with_name(f".{target.name}.{os.getpid()}.part")
