"""Read external JSON, TOML and delimited text within size limits, and find similar names.

All external files and values are read with these functions, so that a hostile or broken file raises
an error with the place of the fault, and does not fill the memory.
"""

import csv
import gzip
import hashlib
import io
import json
import os
import re
import stat
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final, cast

from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RecordError,
    SourceNotFoundError,
)

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = [
    "CELL_BYTES",
    "DEEPEST",
    "LONGEST_DOCUMENT",
    "LONGEST_LINE",
    "MOST_COLUMNS",
    "SCORE_BYTES",
    "VALUE_BYTES",
    "UnpackedSize",
    "check_columns",
    "csv_rows",
    "decode_text",
    "delimited_rows",
    "existing_file",
    "file_digest",
    "find_column",
    "first_names",
    "json_items",
    "json_objects",
    "json_or_text",
    "packed_text",
    "parse_json",
    "parse_toml",
    "read_document",
    "read_lines",
    "read_start",
    "shown",
    "unpacked",
    "within",
    "writable",
]

LONGEST_LINE: Final = 16 * 2**20
"""Maximum number of bytes of a line, a row, a cell and an item of a list, in each format."""

LONGEST_DOCUMENT: Final = 512 * 2**20
"""Maximum number of bytes of a file that is read at once."""

DEEPEST: Final = 64
"""Maximum number of levels of nested lists and objects."""

MOST_COLUMNS: Final = 10_000
"""Maximum number of columns of a row."""

_UNPACKED_MB: Final = "SURFACE_CONSISTENCY_MAX_UNPACKED_MB"
_UNPACKED_RATIO: Final = 400
_UNPACKED_MINIMUM: Final = 400_000_000
VALUE_BYTES: Final = 100
"""Approximate bytes per value of a row that is stored as Python objects."""

CELL_BYTES: Final = 50
"""Approximate bytes per number or short text of a table that is read by columns, with copies."""

SCORE_BYTES: Final = 250
"""Approximate bytes per row of a frame of results, which has one score per row, with copies."""

_TEXT_VALUES: Final = b",\t\n[{"
_CHUNK: Final = 2**18
_PACKINGS: Final = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_BOM: Final = b"\xef\xbb\xbf"
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_SHOWN: Final = 60
_NAMES: Final = 200
"""Maximum number of characters of a value, and of a list of names, in a message."""

_JSON_REMEDY: Final = (
    "repair or remove the line (if the last line is cut off, the file was not written completely)"
)
_PARTED: Final = (
    "the header separates its names by {0!r}: write the file with commas and decimal points, as "
    "pandas.read_csv(file, sep={0!r}, decimal=',').to_csv(new, index=False) does"
)


class UnpackedSize:
    """Counter of the estimated memory of one file's content, with its limit.

    A value counts as its text plus 100 bytes, or plus 50 if the file is read by columns. The limit
    is 400 times the size of the file, 400 MB for files of less than 1 MB; the environment variable
    SURFACE_CONSISTENCY_MAX_UNPACKED_MB sets another limit, in MB (10**6 bytes).

    Args:
        path: The file.
        value_bytes: Memory of one value, in addition to its text.

    Raises:
        DataError: If the environment variable is not a whole number.
    """

    def __init__(self, path: Path, value_bytes: int = VALUE_BYTES) -> None:
        self.path, self.used, self.value_bytes = path, 0, value_bytes
        self._n_bytes = path.stat().st_size
        self.limit = max(_UNPACKED_MINIMUM, _UNPACKED_RATIO * self._n_bytes)
        if given := os.environ.get(_UNPACKED_MB, "").strip():
            if not (given.isascii() and given.isdigit() and len(given) < _SHOWN):
                raise DataError(
                    f"environment variable {_UNPACKED_MB} must be a whole number of megabytes, got "
                    f"{shown(given)}"
                )
            self.limit = int(given) * 1_000_000

    def add(self, n_bytes: int, n_values: int = 0) -> None:
        """Count a part of the content.

        Args:
            n_bytes: Bytes after unpacking and decoding.
            n_values: Number of its values (cells, items of lists).

        Raises:
            RecordError: If the file exceeds its limit.
        """
        self.used += n_bytes + self.value_bytes * n_values
        if self.used > self.limit:
            raise RecordError(
                f"{self.path}: {self._n_bytes:,} bytes unpack to more than "
                f"{self.limit // 1_000_000:,} MB (each value counts as {self.value_bytes} bytes "
                "and its text); if you trust the file, set the environment variable "
                f"{_UNPACKED_MB} to a higher number of MB, or split the file"
            )


class _Unpacked(io.RawIOBase):
    """Content of a packed file; each part that is read is counted."""

    def __init__(self, file: IO[bytes], size: UnpackedSize, values: bytes, step: int) -> None:
        self._file, self._size, self._values, self._step = file, size, values, step

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer).cast("B")
        try:
            content = self._file.read(min(len(view), self._step))
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            if not isinstance(self._file, gzip.GzipFile):
                raise
            raise RecordError(
                f"{self._size.path}: cannot be unpacked ({error}); it is cut off, or not a gzip "
                "file: copy it again"
            ) from error
        self._size.add(len(content), sum(map(content.count, self._values)))
        view[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._file.close()
        super().close()


def unpacked(
    file: IO[bytes], size: UnpackedSize, values: bytes = _TEXT_VALUES, step: int = _CHUNK
) -> BinaryIO:
    """Count the content that is read from a packed file, and raise an error above its limit.

    Args:
        file: The file, which unpacks as it is read.
        size: The counter, with its limit.
        values: Bytes that each begin or end a value of the text.
        step: Maximum number of bytes that are read from the file at once.

    Returns:
        A file with the same content.
    """
    return io.BufferedReader(_Unpacked(file, size, values, step), _CHUNK)


def read_lines(path: Path, *, keep_bom: bool = False) -> Iterator[tuple[int, bytes]]:
    """Read the lines of a file, which is unpacked if its name ends in .gz.

    Args:
        path: The file.
        keep_bom: Whether byte order marks at its start are kept, for callers that count bytes.

    Yields:
        Number from 1 and content of each line, with its line feed.

    Raises:
        RecordError: If a line has more than `LONGEST_LINE` bytes; the rest of it is not read. If a
            packed file is not valid, or is cut off.
    """
    with _opened(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), start=1):
            if len(line) > LONGEST_LINE:
                raise RecordError(
                    f"{path}:{number}: the line has more than {LONGEST_LINE:,} bytes; one line "
                    "contains one row: break the file into lines, or remove the long values"
                )
            yield number, _without_bom(line) if number == 1 and not keep_bom else line


def read_document(path: Path) -> bytes:
    """Read a file that is one document.

    Args:
        path: The file, which is unpacked if its name ends in .gz; byte order marks at its start are
            removed.

    Returns:
        Its content.

    Raises:
        RecordError: If it has more than `LONGEST_DOCUMENT` bytes, before it is read. If a packed
            file is not valid, or is cut off.
    """
    size = path.stat().st_size
    content = b""
    if size <= LONGEST_DOCUMENT:
        with _opened(path) as file:
            content = file.read(LONGEST_DOCUMENT + 1)
        size = max(size, len(content))
    if size > LONGEST_DOCUMENT:
        raise RecordError(
            f"{path}: {size:,} bytes are more than the maximum of {LONGEST_DOCUMENT:,} of a file "
            "that is read at once; write one row per line (.jsonl), or Parquet"
        )
    return _without_bom(content)


def _without_bom(content: bytes) -> bytes:
    """Remove the byte order marks at the start; a converted file may have two."""
    start = 0
    while content.startswith(_BOM, start):
        start += len(_BOM)
    return content[start:]


def read_start(path: Path) -> bytes:
    """Read the first bytes of a file, by which its kind is detected.

    Args:
        path: The file, which is unpacked if its name ends in .gz.

    Returns:
        At most 64 bytes without byte order mark and white space before them.

    Raises:
        RecordError: If a packed file is not valid, or is cut off.
    """
    with _opened(path) as file:
        return _without_bom(file.read(64)).lstrip()


def parse_json(text: str | bytes, place: str, *, remedy: str = _JSON_REMEDY) -> Any:  # noqa: ANN401
    """Parse external JSON.

    Args:
        text: The text, or its bytes in UTF-8, of which byte order marks at the start are removed.
        place: Its place, for messages: a file and line, or an option.
        remedy: Remedy in the message if it is not JSON.

    Returns:
        The value.

    Raises:
        RecordError: If it is not UTF-8, not JSON, nested more than `DEEPEST` levels deep or
            contains a number with more digits than Python reads; names the place and the rule.

    Examples:
        >>> parse_json('{"a": [1]}', "line 1")
        {'a': [1]}
        >>> parse_json("[" * 100_000, "line 1")
        Traceback (most recent call last):
        ...
        surface_consistency.errors.RecordError: line 1: nested more than 64 levels deep; ...
    """
    if isinstance(text, bytes):
        text = decode_text(_without_bom(text), place)
    try:
        return _parse(text, place)
    except json.JSONDecodeError as error:
        raise _not_json(error, place, remedy) from error


def json_or_text(text: str, place: str) -> Any:  # noqa: ANN401
    """Parse external text that may be JSON or plain text.

    Args:
        text: The text.
        place: Its place, for messages.

    Returns:
        The value; the text itself if it is not JSON.

    Raises:
        RecordError: If it exceeds a limit of `parse_json`.

    Examples:
        >>> json_or_text("32", "n"), json_or_text("http://localhost", "base_url")
        (32, 'http://localhost')
    """
    try:
        return _parse(text, place)
    except json.JSONDecodeError:
        return text


def parse_toml(text: str, place: str) -> dict[str, Any]:
    """Parse external TOML, within the limits of `parse_json`.

    Args:
        text: The text.
        place: Its place, for messages.

    Returns:
        Its table.

    Raises:
        RecordError: If it is not TOML, or exceeds a limit.
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
    """Read a file with one JSON object per line; blank lines are skipped.

    Args:
        path: The file.

    Yields:
        Line number from 1, and the object.

    Raises:
        RecordError: If a line is too long, not a JSON object within the limits of `parse_json`, or
            has more than `MOST_COLUMNS` fields; names file and line.
    """
    for number, line in read_lines(path):
        if line.isspace():
            continue
        try:
            row = json.loads(line.decode())
        except (ValueError, RecursionError):
            if not line.strip():  # A line that contains only a byte order mark.
                continue
            row = parse_json(line.strip(), f"{path}:{number}")
        if line.count(b"[") + line.count(b"{") > DEEPEST and _depth_exceeds(row):
            raise _too_deep(f"{path}:{number}")
        if type(row) is not dict:
            raise RecordError(
                f"{path}:{number}: each line must be a JSON object with the columns of a row, got "
                f"{shown(line[: 4 * _SHOWN].decode(errors='replace').strip()[:_SHOWN])}"
            )
        if len(row) > MOST_COLUMNS:
            check_columns(row, f"{path}:{number}")
        yield number, row


def json_items(path: Path, *, remedy: str = _JSON_REMEDY) -> Iterator[tuple[int, Any]]:
    """Read the items of a file that is one JSON list, each when it is needed.

    Args:
        path: The file.
        remedy: Remedy in the message if it is not such a list.

    Yields:
        Number from 1 and value of each item.

    Raises:
        RecordError: If the file is not UTF-8 or not a JSON list, or an item has more than
            `LONGEST_LINE` characters or exceeds a limit of `parse_json`.
    """
    text = decode_text(read_document(path), str(path))
    scan, number, at = json.JSONDecoder().raw_decode, 0, _skip(text, text.find("[") + 1)
    is_more = not text.startswith("]", at)
    try:
        while is_more:
            number, place = number + 1, f"{path}:{number + 1}"
            value, end = _within_bounds(partial(scan, text, at), place)
            if end - at > LONGEST_LINE:
                raise RecordError(
                    f"{place}: the item of the list has more than {LONGEST_LINE:,} characters; one "
                    "item contains one row: shorten it"
                )
            if isinstance(value, list | dict) and _depth_exceeds(value):
                raise _too_deep(place)
            yield number, value
            at = _skip(text, end)
            is_more = text.startswith(",", at)
            if not is_more and not text.startswith("]", at):
                raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
            at = _skip(text, at + 1) if is_more else at
        if (at := _skip(text, at + 1)) < len(text):
            raise json.JSONDecodeError("Extra data", text, at)
    except json.JSONDecodeError as error:
        raise _not_json(error, str(path), remedy) from error


def _skip(text: str, at: int) -> int:
    """Return the next position that is not white space."""
    return cast(re.Match[str], _SPACE.match(text, at)).end()


def csv_rows(
    path: Path, delimiter: str = ",", *, is_strict: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """Read the rows of delimited text; blank lines are skipped.

    Python's `csv` rejects cells of more than `csv.field_size_limit()` characters, a limit of the
    process; the first longer row raises this limit to `LONGEST_LINE`.

    Args:
        path: The file, UTF-8.
        delimiter: Delimiter of the cells: "," or a tab.
        is_strict: Whether text that is not UTF-8 and quotes out of place are errors.

    Yields:
        Number from 1 of the line on which the row ends, and its cells.

    Raises:
        RecordError: If a row has more than `LONGEST_LINE` bytes, or a quote is out of place; names
            file and line.
    """
    n_bytes = 0

    def lines() -> Iterator[str]:
        nonlocal n_bytes
        for number, line in read_lines(path):
            n_bytes += len(line)
            if n_bytes > LONGEST_LINE:
                raise RecordError(
                    f"{path}:{number}: the row has more than {LONGEST_LINE:,} bytes; close every "
                    "quote, or shorten its cells"
                )
            if n_bytes > csv.field_size_limit():
                csv.field_size_limit(LONGEST_LINE)
            if is_strict:
                yield decode_text(line, f"{path}:{number}")
            else:
                yield line.decode("utf-8", "replace")

    table = csv.reader(lines(), delimiter=delimiter, strict=is_strict)
    try:
        for cells in table:
            n_bytes = 0
            if cells:
                yield table.line_num, cells
    except csv.Error as error:
        raise RecordError(
            f"{path}:{table.line_num}: {error}; quote cells that contain the delimiter, a quote or "
            "a line break, and close each quote"
        ) from error


def delimited_rows(path: Path, delimiter: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Read delimited text with a header; every cell is returned as text.

    Args:
        path: The file, UTF-8.
        delimiter: Delimiter of the cells: "," or a tab.

    Yields:
        Number from 1 of the line on which the row ends, and its cells by column.

    Raises:
        RecordError: If the header names a column twice or has more than `MOST_COLUMNS`, a row has a
            different number of cells or more than `LONGEST_LINE` bytes, or a quote is out of place;
            names file and line.
    """
    rows = csv_rows(path, delimiter)
    first, header = next(rows, (1, []))
    check_columns(header, f"{path}:{first}")
    for number, cells in rows:
        if len(cells) != len(header):
            mark = next((mark for mark in ";\t|" if mark in header[0]), None)
            remedy = "quote cells that contain the delimiter, a quote or a line break"
            raise RecordError(
                f"{path}:{number}: {len(cells)} cells under {len(header)} columns; "
                f"{remedy if mark is None else _PARTED.format(mark)}"
            )
        yield number, dict(zip(header, cells, strict=True))


def check_columns(names: Collection[str], place: str) -> None:
    """Check that there are not too many columns, and that no two have the same name.

    Args:
        names: The columns.
        place: Their place, for the message.

    Raises:
        RecordError: If there are more than `MOST_COLUMNS`, or a name occurs twice.
    """
    if len(names) > MOST_COLUMNS:
        raise RecordError(
            f"{place}: {len(names):,} columns are more than the maximum of {MOST_COLUMNS:,}; keep "
            "only the columns that are needed"
        )
    if len(set(names)) < len(names):
        twice = next(name for name, n in Counter(names).items() if n > 1)
        raise RecordError(
            f"{place}: the header names a column twice: {shown(twice)}; rename one of them"
        )


def find_column(wanted: str, columns: Collection[str]) -> str | None:
    """Find a column by its name, or by one that differs only in case and separators.

    Args:
        wanted: The name to find.
        columns: Names of the columns.

    Returns:
        The column; None if there is none.

    Raises:
        ColumnNotFoundError: If it does not exist as written and two others match.

    Examples:
        >>> find_column("possible_answers", ["Question ", "possibleAnswers"])
        'possibleAnswers'
    """
    if wanted in columns:
        return wanted
    near = [column for column in columns if _fold(column) == _fold(wanted)]
    if len(near) > 1:
        raise ColumnNotFoundError(
            f"columns {' and '.join(map(shown, near))} are both spellings of {shown(wanted)}; "
            "rename or drop one of them"
        )
    return near[0] if near else None


def first_names(names: Collection[object]) -> str:
    """List names for a message, at most 200 characters of them.

    Examples:
        >>> first_names(["a", "b"])
        'a, b'
    """
    texts = [text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..." for text in map(str, names)]
    listed = texts[: max(sum(n <= _NAMES for n in accumulate(map(len, texts))), 1)]
    more = len(names) - len(listed)
    return ", ".join(listed) + (f" and {more:,} more" if more else "")


def shown(value: object, most: int = _SHOWN) -> str:
    """Return an external value as text for a message; all messages quote such values this way.

    Args:
        value: The value.
        most: Maximum number of characters.

    Returns:
        Its `repr`, shortened.

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
    """Decode external UTF-8.

    Args:
        content: The bytes.
        place: Their place, for the message.

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
    """Check that a path is a file.

    Args:
        path: The path.
        what: The expected content, for the message.
        pattern: Files to name if it is a folder, such as "*.jsonl".

    Returns:
        The path.

    Raises:
        SourceNotFoundError: If it is a folder, or does not exist.
    """
    if path.is_dir():
        raise SourceNotFoundError(
            f"{path} is a folder, but {what} is expected; name its files, such as {path / pattern}"
        )
    if not path.is_file():
        raise SourceNotFoundError(f"file {path} not found; expected {what}; check the path")
    return path


def packed_text(path: Path) -> BinaryIO | None:
    """Open a packed file for a reader that reads text by columns.

    Args:
        path: The file.

    Returns:
        A file with its content, which is counted as it is read; None if it is not packed.

    Raises:
        RecordError: If it is packed in a format other than gzip.
    """
    file = _opened(path, CELL_BYTES)
    if isinstance(cast(io.BufferedReader, file).raw, _Unpacked):
        return file
    file.close()
    return None


def within(folder: Path, name: str) -> Path:
    """Return the path of a file in an untrusted folder; reject paths outside it and special files.

    Args:
        folder: The folder; it may be reached by a symbolic link.
        name: Path of the file in it.

    Returns:
        The path; the file may be missing.

    Raises:
        DataError: If the path leads out of the folder, by a symbolic link or by ".."; or if it is a
            named pipe, a socket or a device, whose content may be endless.
    """
    path = folder / name
    try:
        is_within = path.resolve().is_relative_to(folder.resolve())
    # Circular links (RuntimeError before Python 3.13), or a name that is not valid for a file.
    except (OSError, RuntimeError, ValueError):
        is_within = False
    if not is_within:
        raise DataError(
            f"{folder / name[:_SHOWN]} leads out of its folder by a symbolic link or '..', which "
            "is not followed; put a copy of the file in its place, or remove it"
        )
    try:
        mode = path.stat().st_mode
    except OSError:  # It is missing, or another process has just removed it.
        return path
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise DataError(
            f"{folder / name[:_SHOWN]} is not a regular file but a named pipe, a socket or a "
            "device; put a copy of the file in its place, or remove it"
        )
    return path


def _opened(path: Path, value_bytes: int = VALUE_BYTES) -> BinaryIO:
    """Open a file, with gzip if it is packed in that format; reject other formats by name."""
    file = path.open("rb")
    start = file.read(max(map(len, _PACKINGS)))
    file.seek(0)
    packing = next((name for mark, name in _PACKINGS.items() if start.startswith(mark)), None)
    if packing not in (None, "gzip"):
        file.close()
        raise RecordError(
            f"{path} is packed as {packing}, which is not supported; unpack it, or pack it as gzip "
            "(.gz)"
        )
    if packing is None and path.suffix.lower() != ".gz":
        return file
    file.close()
    return unpacked(cast(BinaryIO, gzip.open(path, "rb")), UnpackedSize(path, value_bytes))


def _parse(text: str, place: str) -> Any:  # noqa: ANN401
    """Parse JSON within limits; text that is not JSON raises the error of the parser."""
    value = _within_bounds(partial(json.loads, text), place)
    if text.count("[") + text.count("{") > DEEPEST and _depth_exceeds(value):
        raise _too_deep(place)
    return value


def _within_bounds(parse: Callable[[], Any], place: str) -> Any:  # noqa: ANN401
    """Parse JSON that may be too deep for the parser, or contain a number that is too long."""
    try:
        return parse()
    except json.JSONDecodeError:
        raise
    except RecursionError as error:
        raise _too_deep(place) from error
    except ValueError as error:
        raise _too_many_digits(place) from error


def _not_json(error: json.JSONDecodeError, place: str, remedy: str) -> RecordError:
    """Return the error for text that is not JSON, with its place."""
    at = place if error.lineno == 1 else f"{place}:{error.lineno}"
    start = error.doc.rfind("\n", 0, error.pos) + 1
    line = error.doc[start : start + _SHOWN].strip()
    return RecordError(
        f"{at}: not JSON: {error.msg} at column {error.colno} of {shown(line)}; {remedy}"
    )


def writable(value: Any) -> Any:  # noqa: ANN401
    r"""Replace the lone surrogates in all texts of a value, which UTF-8 cannot encode.

    Each becomes its escape in JSON, so that names that differ remain different.

    Args:
        value: A text, or objects, lists and tuples of texts, nested at most `DEEPEST` levels deep.

    Returns:
        The value.

    Examples:
        >>> writable({"Malm\ud800": ["\udfffö"]})
        {'Malm\\ud800': ['\\udfffö']}
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {writable(name): writable(cell) for name, cell in value.items()}
    return type(value)(map(writable, value)) if isinstance(value, list | tuple) else value


def _fold(name: str) -> str:
    """Return one key for all spellings of a name."""
    return "".join(name.casefold().replace("_", " ").replace("-", " ").split())


def _depth_exceeds(value: object) -> bool:
    """Return whether lists and objects are nested too deep; works by levels, without recursion."""
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
    """Return the error for a value that is nested too deep."""
    return RecordError(
        f"{place}: nested more than {DEEPEST} levels deep; a row has few levels: repair or remove "
        "it"
    )


def _too_many_digits(place: str) -> RecordError:
    """Return the error for a number that is too long."""
    return RecordError(
        f"{place}: a number has more than {sys.get_int_max_str_digits():,} digits; write it as "
        "text in quotes, or remove it"
    )


def file_digest(path: str | os.PathLike[str]) -> str | None:
    """Compute the SHA-256 of a file.

    Args:
        path: The file.

    Returns:
        The digest in hexadecimal; None if the file does not exist.
    """
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, IsADirectoryError):
        return None
