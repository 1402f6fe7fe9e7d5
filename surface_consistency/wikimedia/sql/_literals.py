"""One literal of a dump as a value."""

import re

from surface_consistency.wikimedia.sql.tables import STRING, ValueKind

__all__ = ["ESCAPES", "decode_literal"]

ESCAPES = {b"0": b"\0", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"Z": b"\x1a"}
"""Escapes that do not stand for the character itself; `\\%` and `\\_` stand for both characters."""

_ESCAPED = re.compile(rb"\\(.)|''", re.DOTALL)
_NUMBER = re.compile(rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_LITERAL = re.compile(
    rb"(?:_(?P<charset>[A-Za-z0-9_]+)\s*)?(?:(?P<string>%b)|0x(?P<hex>[0-9A-Fa-f]+)"
    rb"|[xX]'(?P<quoted_hex>(?:[0-9A-Fa-f]{2})*)')" % STRING,
    re.DOTALL,
)
_LIMITS = {"integer": (-(1 << 63), (1 << 63) - 1), "unsigned": (0, (1 << 64) - 1)}


def decode_literal(literal: bytes, kind: ValueKind) -> bytes | int | float | None:
    r"""Read one literal.

    Args:
        literal: What stands between the commas.
        kind: What its column holds.

    Returns:
        The value; None for NULL.

    Raises:
        ValueError: If it is no literal, or none of that kind.

    Examples:
        >>> decode_literal(rb"'it\'s \0'", "bytes"), decode_literal(b"0x4A4b", "bytes")
        (b"it's \x00", b'JK')
        >>> decode_literal(b"NULL", "integer"), decode_literal(b"'NULL'", "bytes")
        (None, b'NULL')
    """
    if literal.upper() == b"NULL":
        return None
    found = _LITERAL.fullmatch(literal)
    if found is None:
        if not _NUMBER.fullmatch(literal):
            raise ValueError(f"{literal[:60]!r} is no literal")
        return _number(literal, kind)
    if found["string"] is not None:
        text = _unescape(found["string"][1:-1])
        return text if kind in {"bytes", "decimal"} else _number(text, kind)
    digits = found["hex"] or found["quoted_hex"]
    raw = bytes.fromhex(("0" * (len(digits) % 2)) + digits.decode())
    return raw if kind == "bytes" else _number(b"%d" % int.from_bytes(raw, "big"), kind)


def _unescape(text: bytes) -> bytes:
    """Undo the escapes of a string."""
    if b"\\" not in text and b"'" not in text:
        return text
    return _ESCAPED.sub(_meant, text)


def _meant(found: re.Match[bytes]) -> bytes:
    """Return what one escape stands for."""
    letter = found[1]
    if letter is None:
        return b"'"
    if letter in {b"%", b"_"}:
        return found[0]
    return ESCAPES.get(letter, letter)


def _number(text: bytes, kind: ValueKind) -> bytes | int | float:
    """Read a number as what its column holds."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text[:60]!r} is no number")
    if kind in {"bytes", "decimal"}:
        return text
    if kind == "float":
        return float(text)
    number = int(text)
    low, high = _LIMITS[kind]
    if not low <= number <= high:
        raise ValueError(f"{number} is outside {low} to {high}")
    return number
