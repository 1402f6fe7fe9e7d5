"""Keys taken out of what services send back, in whatever form they quote them."""

import base64
import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar, cast

_REDACTED: Final = "<key>"
_SHORTEST_KEY: Final = 6
_SHORTEST_CASELESS: Final = 12
# What stands between the pieces of a text that was wrapped, quoted or listed in pieces.
_BETWEEN: Final = r"""(?:[\s"'`,+\[\]\x00-\x1f\u200b]|\\[nrt])*"""
_URL_SAFE: Final = str.maketrans("+/", "-_")

_T = TypeVar("_T")


class Redactor:
    """Takes a key out of everything that a server says, in whatever form it is quoted.

    Found are the key itself, in any letter case, and its percent-encoded, JSON-escaped, hexadecimal
    and base64 forms (alone, and behind "Bearer " or "user:"), each also in pieces with white space,
    quotes, commas or escapes between them. Keys under 6 characters, such as "EMPTY", are those of
    servers that need none, and words of answers: they are taken out of errors, not of answers.

    Args:
        key: The key; None for none.
    """

    def __init__(self, key: str | None) -> None:
        self._pattern = re.compile("|".join(_forms(key))) if key else None
        self._of_answers = self._pattern if key and len(key) >= _SHORTEST_KEY else None

    def text(self, text: str) -> str:
        """Take the key out of a message.

        Args:
            text: What a server or a library said of a request.

        Returns:
            The same with "<key>" in its place.
        """
        return text if self._pattern is None else self._pattern.sub(_REDACTED, text)

    def json(self, value: _T) -> _T:
        """Take the key out of every text of a reply, also where it is split over several.

        Args:
            value: JSON, nested no deeper than `reading.parse_json` allows.

        Returns:
            The same with "<key>" in its place.

        Raises:
            ValueError: If its texts hold every control character.
        """
        if self._of_answers is None:
            return value
        texts = list(_texts(value))
        marks = map(chr, range(32))
        between = next((mark for mark in marks if not any(mark in text for text in texts)), None)
        if between is None:
            raise ValueError("its texts hold every control character")
        joined = between.join(texts)
        redacted = self._of_answers.sub(
            lambda match: _REDACTED + between * match.group().count(between), joined
        )
        return cast(_T, self._rebuilt(value, iter(redacted.split(between))))

    def _rebuilt(self, value: object, texts: Iterator[str]) -> object:
        """Put texts in the places of those that `_texts` yields; names are redacted one by one."""
        if isinstance(value, str):
            return next(texts)
        if isinstance(value, dict):
            return {self.text(name): self._rebuilt(item, texts) for name, item in value.items()}
        if isinstance(value, list):
            return [self._rebuilt(item, texts) for item in value]
        return value


def _forms(key: str) -> list[str]:
    """Write patterns of the forms in which a key may be quoted, the longest first."""
    data = key.encode()
    forms = [data.hex()]
    for before in (b"", b"Bearer ", b"user:", b":"):
        forms.append(base64.b64encode(before + data).decode().rstrip("="))
    # Inside a longer text the key stands at any of three offsets; the outer letters of each also
    # depend on what is beside it.
    for n_before in range(3):
        encoded = base64.b64encode(b"\0" * n_before + data).decode().rstrip("=")
        end = len(encoded) - bool((n_before + len(data)) % 3)
        forms.append(encoded[n_before + bool(n_before) : end])
    forms += [form.translate(_URL_SAFE) for form in forms]
    patterns = [_in_pieces(map(re.escape, form), len(form)) for form in dict.fromkeys(forms)]
    return [*patterns, _in_pieces(map(_any_escape, key), len(key))]


def _any_escape(character: str) -> str:
    """Match a character as it is, or as URLs, JSON, Python and HTML write it."""
    code = ord(character)
    return (
        f"(?:{re.escape(character)}|%{code:02x}|\\\\u{code:04x}|\\\\x{code:02x}|"
        f"&#0*{code};|&#x0*{code:x};)"
    )


def _in_pieces(letters: Iterable[str], n: int) -> str:
    """Match a form: a word as it stands when short, else in pieces, in any case when long."""
    if n < _SHORTEST_KEY:
        return rf"(?<!\w){''.join(letters)}(?!\w)"
    return f"(?{'i' if n >= _SHORTEST_CASELESS else ''}:{_BETWEEN.join(letters)})"


def _texts(value: object) -> Iterator[str]:
    """Yield the texts of JSON in their order, without the names of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
