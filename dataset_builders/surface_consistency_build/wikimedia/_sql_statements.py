"""Find the CREATE TABLE and the INSERTs of an SQL dump."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from surface_consistency_build.wikimedia.sql_tables import name_of
from surface_consistency_build.wikimedia.streams import DumpStream

MAX_STATEMENT_BYTES = 1 << 26
"""Maximum length of a row or statement, 64 MiB; a longer one is a string without an end."""

_EDGE_BYTES = 4096
_HEADER_COMMENT = re.compile(rb"^-- (?:MySQL|MariaDB) dump\b", re.MULTILINE)
_FOOTER_COMMENT = re.compile(rb"^-- Dump completed\b[^\n]*+\s*\Z", re.MULTILINE)
_NOTES_OFF = b"@OLD_SQL_NOTES=@@SQL_NOTES"
_NOTES_ON = re.compile(rb"SQL_NOTES=@OLD_SQL_NOTES \*/;\s*(?:--[^\n]*\s*)*\Z")

_FIRST_READ = 1 << 19
_SPACE = rb"(?:\s++|--(?=\s)[^\n]*+\n|\#[^\n]*+\n|/\*.*?\*/|;)*+"
_NAME = rb"(?:`(?:[^`]|``)++`|[^\s`(.;]++)"
_BLANK = re.compile(_SPACE, re.DOTALL)
_COMMENT_START = re.compile(rb"--(?:\s|\Z)|#|/\*|-\Z|/\Z")
_LINE_COMMENT = re.compile(rb"--\s|#")
_WHOLE = re.compile(
    rb"(?:[^'\"`;/#-]++|'[^'\\]*+(?:(?:\\.|'')[^'\\]*+)*+'|\"[^\"\\]*+(?:(?:\\.|\"\")[^\"\\]*+)*+\""
    rb"|`[^`]*+`|/\*.*?\*/|--\s[^\n]*+\n|\#[^\n]*+\n|/(?!\*)|-(?!-\s))*+;",
    re.DOTALL,
)
_INSERT = re.compile(
    rb"(?:INSERT|REPLACE)\s+(?:(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE)\s+)*+(?:INTO\s+)?"
    rb"(%b(?:\s*\.\s*%b)?)\s*(?:\(([^()]*)\)\s*)?VALUES?(?=[\s(])\s*" % (_NAME, _NAME),
    re.IGNORECASE,
)
_INSERT_START = re.compile(rb"(?:INSERT|REPLACE)\s", re.IGNORECASE)
_CREATE_TABLE = re.compile(rb"CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMPORARY\s+)?TABLE\s", re.IGNORECASE)
_WORD_START = re.compile(rb"[A-Za-z(]")
_COLUMN = re.compile(rb"`(?:[^`]|``)++`|[^`\s,()]++")
_HEADER_BYTES = 1 << 16


class DumpFaultError(Exception):
    """The dump has invalid content at a window's position."""


class Window:
    """Bytes of a stream from `position` on, as many as were requested."""

    def __init__(self, stream: DumpStream) -> None:
        self.stream = stream
        """The dump."""
        self.data = b""
        """The bytes in memory."""
        self.position = 0
        """Start of the unread bytes in `data`."""
        self.is_at_end = False
        """Whether the stream is at its end."""
        self._base = 0
        self._head = b""
        self._tail = b""
        self._chunks: Iterator[bytes] = stream.chunks(_FIRST_READ)

    @property
    def offset(self) -> int:
        """Plain bytes of the dump before `position`."""
        return self._base + self.position

    @property
    def unused(self) -> int:
        """Number of bytes in memory from `position` on."""
        return len(self.data) - self.position

    def fill(self) -> bool:
        """Read more bytes, at least as many as are unread; return False at the end."""
        parts = [self.data[self.position :]]
        wanted = max(1, len(parts[0]))
        while wanted > 0:
            chunk = next(self._chunks, b"")
            if not chunk:
                self.is_at_end = True
                break
            parts.append(chunk)
            wanted -= len(chunk)
            if len(self._head) < _EDGE_BYTES:
                self._head = (self._head + chunk)[:_EDGE_BYTES]
            self._tail = (self._tail + chunk[-_EDGE_BYTES:])[-_EDGE_BYTES:]
        self._base += self.position
        self.position = 0
        self.data = b"".join(parts)
        return len(parts) > 1

    @property
    def end(self) -> Literal["marked", "lacking", "unmarked"]:
        """Check whether a dump that was read to its end has the end marker that its start implies.

        A dump that starts with mysqldump's comment ends with its comment, and a dump that changes
        settings restores them at its end. A dump without both, such as a compact one, has no end
        marker.
        """
        if _HEADER_COMMENT.search(self._head):
            return "marked" if _FOOTER_COMMENT.search(self._tail) else "lacking"
        if _NOTES_OFF in self._head:
            return "marked" if _NOTES_ON.search(self._tail) else "lacking"
        return "marked" if _FOOTER_COMMENT.search(self._tail) else "unmarked"


@dataclass(frozen=True, slots=True)
class CreateTable:
    """A CREATE TABLE statement; the window is after it."""

    statement: bytes


@dataclass(frozen=True, slots=True)
class InsertInto:
    """The head of an INSERT; the window is at the first row."""

    table: str
    columns: tuple[str, ...] | None
    """The columns that it names, if any."""


Statement = CreateTable | InsertInto


def next_statement(window: Window) -> Statement | Literal["end", "cut off"]:
    """Read a dump up to its next CREATE TABLE or INSERT, or to its end.

    "cut off" means that the dump ends within a statement; text that is not SQL raises
    `DumpFaultError`.
    """
    while True:
        if not _skip_blank(window):
            return "cut off" if window.unused else "end"
        if not _WORD_START.match(window.data, window.position):
            start = window.data[window.position : window.position + 40]
            if start.startswith(b"<"):
                raise DumpFaultError("this is a page of HTML or XML, not an SQL dump,")
            raise DumpFaultError(f"this is not SQL: {start!r}")
        while window.unused < _HEADER_BYTES and not window.is_at_end:
            window.fill()
        if _INSERT_START.match(window.data, window.position):
            return _insert(window) or "cut off"
        statement = _whole(window)
        if statement is None:
            return "cut off"
        if _CREATE_TABLE.match(statement):
            return CreateTable(statement)


def _skip_blank(window: Window) -> bool:
    """Skip white space, comments and single semicolons; return False if nothing follows."""
    while True:
        blank = _BLANK.match(window.data, window.position)
        window.position = blank.end() if blank else window.position
        if window.unused > 1 and not _COMMENT_START.match(window.data, window.position):
            return True
        _check_length(window, "comment")
        if not window.fill():
            break
    if _LINE_COMMENT.match(window.data, window.position):
        window.position = len(window.data)
    return bool(window.unused) and not _COMMENT_START.match(window.data, window.position)


def _whole(window: Window) -> bytes | None:
    """Read a statement up to its semicolon; None if the dump ends before it."""
    while True:
        statement = _WHOLE.match(window.data, window.position)
        if statement:
            window.position = statement.end()
            return statement[0]
        _check_length(window, "statement")
        if not window.fill():
            return None


def _insert(window: Window) -> InsertInto | None:
    """Read the head of an INSERT; None if the dump ends in it."""
    head = _INSERT.match(window.data, window.position)
    if head is None:
        start = window.data[window.position : window.position + 80]
        if window.is_at_end and b";" not in window.data[window.position :]:
            return None
        raise DumpFaultError(f"an INSERT that is not followed by VALUES: {start!r}")
    window.position = head.end()
    names = tuple(name_of(name) for name in _COLUMN.findall(head[2] or b""))
    return InsertInto(name_of(head[1]), names or None)


def _check_length(window: Window, what: str) -> None:
    """Raise an error if a statement exceeds the maximum length."""
    if window.unused > MAX_STATEMENT_BYTES:
        raise DumpFaultError(f"a {what} is longer than {MAX_STATEMENT_BYTES:,} bytes")
