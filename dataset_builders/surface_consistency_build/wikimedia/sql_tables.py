"""Parse CREATE TABLE statements and the literals of rows."""

import math
import re
from dataclasses import dataclass
from typing import Literal

from surface_consistency.errors import DataError
from surface_consistency.reading import shown

ValueKind = Literal["integer", "unsigned", "float", "decimal", "bytes"]

STRING = rb"'[^'\\]*+(?:(?:\\.|'')[^'\\]*+)*+'"
"""Pattern of a string in SQL, without a group."""

_TOKEN = re.compile(
    rb"`(?:[^`]|``)*+(?:`|\Z)|%b|'.*+|\"[^\"]*+\"|/\*.*?(?:\*/|\Z)|--[^\n]*+|[(),;=]"
    rb"|[^\s`'\"(),;=]++" % STRING,
    re.DOTALL,
)
_NAME = re.compile(rb"`((?:[^`]|``)+)`|([^`.\s]+)")
_HEADER = re.compile(
    rb"CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMPORARY\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    rb"((?:`(?:[^`]|``)+`|[^\s`(.]+)(?:\s*\.\s*(?:`(?:[^`]|``)+`|[^\s`(.]+))?)\s*\(",
    re.IGNORECASE,
)
_NOT_COLUMN = re.compile(
    rb"(?:CHECK|CONSTRAINT|FOREIGN|FULLTEXT|INDEX|KEY|PERIOD|PRIMARY|SPATIAL|UNIQUE)\Z",
    re.IGNORECASE,
)
_INTEGER = re.compile("(?:tiny|small|medium|middle|big)?int(?:eger)?|int[1-48]|year|bool(?:ean)?")
_FLOAT = re.compile("float[48]?|double|real")
_DECIMAL = re.compile("dec(?:imal)?|numeric|fixed")
ESCAPES = {b"0": b"\0", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"Z": b"\x1a"}
"""Escapes that do not mean the character itself; `\\%` and `\\_` mean both characters."""

_ESCAPED = re.compile(rb"\\(.)|''", re.DOTALL)
_NUMBER = re.compile(rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_LITERAL = re.compile(
    rb"(?:_(?P<charset>[A-Za-z0-9_]+)\s*)?(?:(?P<string>%b)|0x(?P<hex>[0-9A-Fa-f]+)"
    rb"|[xX]'(?P<quoted_hex>(?:[0-9A-Fa-f]{2})*)')" % STRING,
    re.DOTALL,
)
_LIMITS = {"integer": (-(1 << 63), (1 << 63) - 1), "unsigned": (0, (1 << 64) - 1)}


@dataclass(frozen=True, slots=True)
class SqlColumn:
    """A column of a table."""

    name: str
    """Its name."""

    type: str
    """Its type as written in the statement, such as "int(8) unsigned" or "varbinary(255)"."""

    @property
    def kind(self) -> ValueKind:
        """Type as which its values are read.

        `integer` is a signed 64-bit integer, `unsigned` an unsigned one (`bigint unsigned`, the
        only type that needs it), `float` a 64-bit float. `decimal` keeps its digits as written. All
        other types are `bytes`.
        """
        words = self.type.lower().split()
        base = words[0].split("(", 1)[0]
        if base == "serial":
            return "unsigned"
        if _INTEGER.fullmatch(base):
            is_unsigned = "unsigned" in words or "zerofill" in words
            return "unsigned" if is_unsigned and base in {"bigint", "int8"} else "integer"
        if _FLOAT.fullmatch(base):
            return "float"
        return "decimal" if _DECIMAL.fullmatch(base) else "bytes"


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table as described by its CREATE TABLE."""

    name: str
    """Its name."""

    columns: tuple[SqlColumn, ...]
    """Its columns in the order of the statement."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.name for column in self.columns)


def parse_create_table(statement: bytes) -> SqlTable:
    """Read a CREATE TABLE statement.

    Args:
        statement: The statement, as `mysqldump` writes it.

    Returns:
        The table.

    Raises:
        DataError: If the statement has no columns or unclosed parentheses.

    Examples:
        >>> table = parse_create_table(
        ...     b"CREATE TABLE `page` (`page_id` int(8) unsigned NOT NULL, `page_title` "
        ...     b"varbinary(255) NOT NULL DEFAULT 'a,b', PRIMARY KEY (`page_id`)) ENGINE=InnoDB;"
        ... )
        >>> [(column.name, column.type, column.kind) for column in table.columns]
        [('page_id', 'int(8) unsigned', 'integer'), ('page_title', 'varbinary(255)', 'bytes')]
    """
    header = _HEADER.match(statement)
    if header is None:
        raise DataError(f"not a CREATE TABLE with columns: {statement[:80]!r}")
    columns: list[SqlColumn] = []
    for item in _items(statement, header.end()):
        is_quoted = item[0].startswith(b"`")
        if len(item) > 1 and (is_quoted or not _NOT_COLUMN.match(item[0])):
            columns.append(SqlColumn(name_of(item[0]), _type(item[1:])))
    name = name_of(header[1])
    if not columns:
        raise DataError(f"the CREATE TABLE of {name} has no columns")
    return SqlTable(name, tuple(columns))


def name_of(identifier: bytes) -> str:
    """Return a name without its quotes and its database.

    Args:
        identifier: A name as written in SQL.

    Returns:
        The name.

    Examples:
        >>> name_of(b"`enwiki`.`page`")
        'page'
    """
    quoted, plain = _NAME.findall(identifier)[-1]
    return bytes(quoted.replace(b"``", b"`") or plain).decode(errors="backslashreplace")


def _items(statement: bytes, start: int) -> list[list[bytes]]:
    """Split the text between the outer parentheses at its commas."""
    items: list[list[bytes]] = [[]]
    depth = 1
    for found in _TOKEN.finditer(statement, start):
        token = found[0]
        depth += (token == b"(") - (token == b")")
        if depth == 0:
            return [item for item in items if item]
        if token == b"," and depth == 1:
            items.append([])
        elif not token.startswith((b"/*", b"--")):
            items[-1].append(token)
    raise DataError(f"the parentheses of a CREATE TABLE are not closed: {statement[:80]!r}")


def _type(tokens: list[bytes]) -> str:
    """Join the tokens of a type: its word, its parenthesis, its sign."""
    text = tokens[0]
    rest = tokens[1:]
    if rest and rest[0] == b"(":
        end = rest.index(b")") + 1
        text += b"".join(rest[:end])
        rest = rest[end:]
    signs = [word.lower() for word in rest[:3] if word.lower() in {b"unsigned", b"zerofill"}]
    return b" ".join([text, *signs]).decode(errors="backslashreplace")


def decode_literal(literal: bytes, kind: ValueKind) -> bytes | int | float | None:
    r"""Read one literal.

    Args:
        literal: Text between the commas.
        kind: Type of its column.

    Returns:
        The value; None for NULL.

    Raises:
        ValueError: If it is not a literal of that type.

    Examples:
        >>> decode_literal(rb"'it\'s \0'", "bytes"), decode_literal(b"0x4A4b", "bytes")
        (b"it's \x00", b'JK')
        >>> decode_literal(b"NULL", "integer"), decode_literal(b"'NULL'", "bytes")
        (None, b'NULL')
    """
    if literal.upper() == b"NULL":
        return None
    parts = _LITERAL.fullmatch(literal)
    if parts is None:
        if not _NUMBER.fullmatch(literal):
            raise ValueError(f"{literal[:60]!r} is not a literal")
        return _number(literal, kind)
    if parts["string"] is not None:
        text = _ESCAPED.sub(_unescaped, parts["string"][1:-1])
        return text if kind in {"bytes", "decimal"} else _number(text, kind)
    digits = parts["hex"] or parts["quoted_hex"]
    raw = bytes.fromhex(("0" * (len(digits) % 2)) + digits.decode())
    return raw if kind == "bytes" else _number(b"%d" % int.from_bytes(raw, "big"), kind)


def _unescaped(escape: re.Match[bytes]) -> bytes:
    """Return the character or characters that an escape means."""
    letter = escape[1]
    if letter is None:
        return b"'"
    if letter in {b"%", b"_"}:
        return escape[0]
    return ESCAPES.get(letter, letter)


def _number(text: bytes, kind: ValueKind) -> bytes | int | float:
    """Read a number as the type of its column."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text[:60]!r} is not a number")
    if kind in {"bytes", "decimal"}:
        return text
    if kind == "float":
        if math.isinf(float(text)):
            raise ValueError(f"{shown(text)} is not a finite number")
        return float(text)
    number = int(text)
    low, high = _LIMITS[kind]
    if not low <= number <= high:
        raise ValueError(f"{shown(text)} is outside {low} to {high}")
    return number
