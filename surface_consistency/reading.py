"""Reading what others wrote: JSON, TOML and delimited text within bounds, and names nearly right.

Every file and value from outside goes through here, so that a hostile or broken one is an error
that names its place, and never a traceback or gigabytes of memory.
"""

import csv
import gzip
import hashlib
import json
import os
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from surface_consistency.errors import ColumnNotFoundError, RecordError, SourceNotFoundError

__all__ = [
    "DEEPEST",
    "LONGEST_DOCUMENT",
    "LONGEST_LINE",
    "MOST_COLUMNS",
    "check_columns",
    "decode_text",
    "delimited_rows",
    "existing_file",
    "file_digest",
    "find_column",
    "first_names",
    "json_objects",
    "json_or_text",
    "parse_json",
    "parse_toml",
    "read_document",
    "read_lines",
    "read_start",
    "shown",
    "writable",
]

LONGEST_LINE: Final = 16 * 2**20
"""Bytes that one line, which is one row, may have."""

LONGEST_DOCUMENT: Final = 512 * 2**20
"""Bytes that a file may have which is read as a whole."""

DEEPEST: Final = 64
"""Levels to which lists and objects may be nested."""

MOST_COLUMNS: Final = 10_000
"""Columns that one row may have."""

_PACKINGS: Final = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_BOM: Final = b"\xef\xbb\xbf"
_SHOWN: Final = 60
_NAMES: Final = 200
"""Characters of a value, and of a list of names, that a message contains."""

_JSON_REMEDY: Final = (
    "repair or remove the line (a last line that is cut off means that the file was not written to "
    "its end)"
)
_PARTED: Final = (
    "the header parts its names by {0!r}: write the file with commas and decimal points, as "
    "pandas.read_csv(file, sep={0!r}, decimal=',').to_csv(new, index=False) does"
)


def read_lines(path: Path, *, keep_bom: bool = False) -> Iterator[tuple[int, bytes]]:
    """Read the lines of a file, unpacked where its name ends in .gz.

    Args:
        path: The file.
        keep_bom: Whether byte order marks at its start stay, for those who count bytes.

    Yields:
        Number from 1 and content of each line, with its line feed.

    Raises:
        RecordError: If a line has more than `LONGEST_LINE` bytes; no more of it is read. If a
            packed file is none, or is cut off.
    """
    with _opened(path) as file:
        lines = iter(partial(_unpacked, file.readline, path, LONGEST_LINE + 1), b"")
        for number, line in enumerate(lines, start=1):
            if len(line) > LONGEST_LINE:
                raise RecordError(
                    f"{path}:{number}: the line has more than {LONGEST_LINE:,} bytes; one line "
                    "holds one row: break the file into lines, or leave out what is so long"
                )
            yield number, _without_bom(line) if number == 1 and not keep_bom else line


def read_document(path: Path) -> bytes:
    """Read a file that is one document.

    Args:
        path: The file, unpacked where its name ends in .gz; byte order marks at its start are
            removed.

    Returns:
        Its content.

    Raises:
        RecordError: If it has more than `LONGEST_DOCUMENT` bytes; nothing is read then. If a
            packed file is none, or is cut off.
    """
    size = path.stat().st_size
    content = b""
    if size <= LONGEST_DOCUMENT:
        with _opened(path) as file:
            content = _unpacked(file.read, path, LONGEST_DOCUMENT + 1)
        size = max(size, len(content))
    if size > LONGEST_DOCUMENT:
        raise RecordError(
            f"{path}: {size:,} bytes are more than the {LONGEST_DOCUMENT:,} that a file may have "
            "which is read as a whole; give rows one a line (.jsonl) or as Parquet"
        )
    return _without_bom(content)


def _without_bom(content: bytes) -> bytes:
    """Remove the byte order marks at the start, of which a file that was converted may have two."""
    while content.startswith(_BOM):
        content = content.removeprefix(_BOM)
    return content


def read_start(path: Path) -> bytes:
    """Read the first bytes of a file, by which its kind is told.

    Args:
        path: The file, unpacked where its name ends in .gz.

    Returns:
        At most 64 bytes without byte order mark and white space before them.

    Raises:
        RecordError: If a packed file is none, or is cut off.
    """
    with _opened(path) as file:
        return _without_bom(_unpacked(file.read, path, 64)).lstrip()


def parse_json(text: str | bytes, place: str, *, remedy: str = _JSON_REMEDY) -> Any:  # noqa: ANN401
    """Parse JSON from outside.

    Args:
        text: The text, or its bytes in UTF-8.
        place: Where it stands, for messages: a file and line, or an option.
        remedy: What to do where it is no JSON.

    Returns:
        The value.

    Raises:
        RecordError: If it is not UTF-8, not JSON, nested more than `DEEPEST` levels deep or holds
            a number with more digits than Python reads; names the place and the rule.

    Examples:
        >>> parse_json('{"a": [1]}', "line 1")
        {'a': [1]}
        >>> parse_json("[" * 100_000, "line 1")
        Traceback (most recent call last):
        ...
        surface_consistency.errors.RecordError: line 1: nested more than 64 levels deep; ...
    """
    if isinstance(text, bytes):
        text = decode_text(text, place)
    try:
        return _parse(text, place)
    except json.JSONDecodeError as error:
        at = place if error.lineno == 1 else f"{place}:{error.lineno}"
        line = error.doc[error.doc.rfind("\n", 0, error.pos) + 1 :][:_SHOWN].strip()
        raise RecordError(
            f"{at}: not JSON: {error.msg} at column {error.colno} of {shown(line)}; {remedy}"
        ) from error


def json_or_text(text: str, place: str) -> Any:  # noqa: ANN401
    """Parse JSON from outside where it may be plain text as well.

    Args:
        text: The text.
        place: Where it stands, for messages.

    Returns:
        The value; the text itself where it is no JSON.

    Raises:
        RecordError: If it breaks a bound of `parse_json`.

    Examples:
        >>> json_or_text("32", "n"), json_or_text("http://localhost", "base_url")
        (32, 'http://localhost')
    """
    try:
        return _parse(text, place)
    except json.JSONDecodeError:
        return text


def parse_toml(text: str, place: str) -> dict[str, Any]:
    """Parse TOML from outside, within the bounds of `parse_json`.

    Args:
        text: The text.
        place: Where it stands, for messages.

    Returns:
        Its table.

    Raises:
        RecordError: If it is not TOML, or breaks a bound.
    """
    import tomllib

    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecordError(f"{place}: not TOML: {error}") from error
    except RecursionError as error:
        raise _too_deep(place) from error
    except ValueError as error:
        raise _too_many_digits(place) from error
    if _depth_exceeds(value):
        raise _too_deep(place)
    return value


def json_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read a file of JSON objects, one a line; blank lines are passed over.

    Args:
        path: The file.

    Yields:
        Line number from 1, and the object.

    Raises:
        RecordError: If a line is too long, no JSON object within the bounds of `parse_json`, or has
            more than `MOST_COLUMNS` fields; names file and line.
    """
    for number, line in read_lines(path):
        try:
            row = json.loads(line.decode())
        except (ValueError, RecursionError):
            if not line.strip():
                continue
            row = parse_json(line.strip(), f"{path}:{number}")
        if line.count(b"[") + line.count(b"{") > DEEPEST and _depth_exceeds(row):
            raise _too_deep(f"{path}:{number}")
        if type(row) is not dict:
            raise RecordError(
                f"{path}:{number}: a line holds one JSON object with a row's columns, got "
                f"{shown(line[: 4 * _SHOWN].decode(errors='replace').strip()[:_SHOWN])}"
            )
        if len(row) > MOST_COLUMNS:
            check_columns(row, f"{path}:{number}")
        yield number, row


def delimited_rows(path: Path, delimiter: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Read delimited text under a header; every cell stays the text that it is.

    Args:
        path: The file, UTF-8.
        delimiter: What parts the cells: "," or a tab.

    Yields:
        Number from 1 of the line on which the row ends, and its cells by column.

    Raises:
        RecordError: If the header names a column twice or has more than `MOST_COLUMNS`, a row has
            another number of cells, or a quote is out of place; names file and line.
    """
    lines = (decode_text(line, f"{path}:{number}") for number, line in read_lines(path))
    table = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = next(filter(None, table), [])
        check_columns(header, f"{path}:{table.line_num}")
        for cells in table:
            if not cells:
                continue
            if len(cells) != len(header):
                mark = next((mark for mark in ";\t|" if mark in header[0]), None)
                remedy = "quote cells that hold the delimiter, a quote or a line break"
                raise RecordError(
                    f"{path}:{table.line_num}: {len(cells)} cells under {len(header)} columns; "
                    f"{remedy if mark is None else _PARTED.format(mark)}"
                )
            yield table.line_num, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise RecordError(
            f"{path}:{table.line_num}: {error}; quote cells that hold the delimiter, a quote or a "
            "line break, and close every quote"
        ) from error


def check_columns(names: Collection[str], place: str) -> None:
    """Refuse columns that are too many, or of which two have one name.

    Args:
        names: The columns.
        place: Where they stand, for the message.

    Raises:
        RecordError: If they are more than `MOST_COLUMNS`, or a name stands twice.
    """
    if len(names) > MOST_COLUMNS:
        raise RecordError(
            f"{place}: {len(names):,} columns are more than the {MOST_COLUMNS:,} that are read; "
            "keep those that are needed"
        )
    if len(set(names)) < len(names):
        twice = next(name for name, n in Counter(names).items() if n > 1)
        raise RecordError(
            f"{place}: the header names a column twice: {shown(twice)}; rename one of them"
        )


def find_column(wanted: str, columns: Collection[str]) -> str | None:
    """Find a column by its name, or by one that differs in case and separators alone.

    Args:
        wanted: The name that is looked for.
        columns: Those that are there.

    Returns:
        The column; None where there is none.

    Raises:
        ColumnNotFoundError: If it is not there as written and two others could be meant.

    Examples:
        >>> find_column("possible_answers", ["Question ", "possibleAnswers"])
        'possibleAnswers'
    """
    if wanted in columns:
        return wanted
    near = [column for column in columns if _fold(column) == _fold(wanted)]
    if len(near) > 1:
        raise ColumnNotFoundError(
            f"columns {' and '.join(map(shown, near))} are both writings of {shown(wanted)}; "
            "rename or drop one of them"
        )
    return near[0] if near else None


def first_names(names: Collection[object]) -> str:
    """List names for a message, at most 200 characters of them.

    Examples:
        >>> first_names(["a", "b"])
        'a, b'
    """
    listed = list[str]()
    left = _NAMES
    for name in names:
        text = str(name)
        text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        left -= len(text)
        if listed and left < 0:
            break
        listed.append(text)
    more = len(names) - len(listed)
    return ", ".join(listed) + (f" and {more:,} more" if more else "")


def shown(value: object, most: int = _SHOWN) -> str:
    """Show a value from outside in a message: the one way in which messages quote such values.

    Args:
        value: The value.
        most: Maximum number of characters.

    Returns:
        Its representation, shortened.

    Examples:
        >>> shown("a" * 100, 5)
        "'aaaa..."
    """
    value = value.item() if hasattr(value, "item") and not hasattr(value, "__len__") else value
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # An integer with more digits than Python writes.
        text = f"a value of the type {type(value).__name__}"
    return text if len(text) <= most else f"{text[:most]}..."


def decode_text(content: bytes, place: str) -> str:
    """Decode UTF-8 from outside.

    Args:
        content: The bytes.
        place: Where they stand, for the message.

    Returns:
        The text.

    Raises:
        RecordError: If they are not UTF-8; names place and byte.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordError(
            f"{place}: not UTF-8 at byte {error.start} of the line "
            f"({shown(content[error.start : error.start + 8])}); re-save the file as UTF-8"
        ) from error


def existing_file(path: Path, what: str, pattern: str) -> Path:
    """Refuse what is no file.

    Args:
        path: What was named.
        what: What should stand there, for the message.
        pattern: Files to name where it is a folder, such as "*.jsonl".

    Returns:
        The path.

    Raises:
        SourceNotFoundError: If it is a folder, or nothing is there.
    """
    if path.is_dir():
        raise SourceNotFoundError(
            f"{path} is a folder, where {what} is expected; name its files, such as "
            f"{path / pattern}"
        )
    if not path.is_file():
        raise SourceNotFoundError(f"no file {path}; expected {what} there; check the path")
    return path


def _opened(path: Path) -> BinaryIO:
    """Open a file, by way of gzip where it is packed so; refuse other packings by name."""
    file = path.open("rb")
    start = file.read(max(map(len, _PACKINGS)))
    file.seek(0)
    packing = next((name for mark, name in _PACKINGS.items() if start.startswith(mark)), None)
    if packing not in (None, "gzip"):
        file.close()
        raise RecordError(
            f"{path} is packed as {packing}, which is not read here; unpack it, or pack it as gzip "
            "(.gz)"
        )
    if packing is None and path.suffix.lower() != ".gz":
        return file
    file.close()
    return cast(BinaryIO, gzip.open(path, "rb"))


def _unpacked(read: Callable[[int], bytes], path: Path, size: int) -> bytes:
    """Read from a file; name it where it is packed and broken."""
    try:
        return read(size)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise RecordError(
            f"{path}: cannot be unpacked ({error}); it is cut off, or no gzip file: copy it again"
        ) from error


def _parse(text: str, place: str) -> Any:  # noqa: ANN401
    """Parse JSON within bounds; what is no JSON raises the parser's own error."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        raise
    except RecursionError as error:
        raise _too_deep(place) from error
    except ValueError as error:
        raise _too_many_digits(place) from error
    if text.count("[") + text.count("{") > DEEPEST and _depth_exceeds(value):
        raise _too_deep(place)
    return value


def writable(value: Any) -> Any:  # noqa: ANN401
    r"""Replace the lone surrogates in all texts of a value, which UTF-8 cannot hold, by "?".

    Args:
        value: A text, or objects, lists and tuples of such; of a depth within `DEEPEST`.

    Returns:
        The value.

    Examples:
        >>> writable({"Malm\ud800": ["\ud800ö"]})
        {'Malm?': ['?ö']}
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {writable(name): writable(cell) for name, cell in value.items()}
    return type(value)(map(writable, value)) if isinstance(value, list | tuple) else value


def _fold(name: str) -> str:
    """Fold writings of one name into one key."""
    return "".join(name.casefold().replace("_", " ").replace("-", " ").split())


def _depth_exceeds(value: object) -> bool:
    """Tell whether lists and objects are nested too deep, level by level, without recursion."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEEPEST):
        if not level:
            return False
        level = [
            item
            for outer in level
            for item in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(item, dict | list)
        ]
    return bool(level)


def _too_deep(place: str) -> RecordError:
    """Say that something is nested too deep."""
    return RecordError(
        f"{place}: nested more than {DEEPEST} levels deep; a row is flat, or nearly so: repair or "
        "remove it"
    )


def _too_many_digits(place: str) -> RecordError:
    """Say that a number is too long."""
    return RecordError(
        f"{place}: a number has more than {sys.get_int_max_str_digits():,} digits; write it as "
        "text in quotes, or remove it"
    )


def file_digest(path: str | os.PathLike[str]) -> str | None:
    """Compute the SHA-256 of a file.

    Args:
        path: The file.

    Returns:
        The digest in hexadecimal; None where there is no file.
    """
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, IsADirectoryError):
        return None
