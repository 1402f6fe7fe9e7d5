"""Removal of keys from the replies and errors of services."""

import base64
import re
from collections.abc import Iterator
from typing import Final, TypeVar, cast

_REDACTED: Final = "<key>"
_SHORTEST_KEY: Final = 6
_SHORTEST_CASELESS: Final = 12

_T = TypeVar("_T")


class Redactor:
    r"""Replaces a key by "<key>" in the messages of a server or a library.

    Only these forms are found, alone and within a longer text:

    - the key itself;
    - the key quoted or percent-encoded: each character as it is, as `%2D`, as `\u002d`, or with a
      backslash before it;
    - the key in base64, standard or URL-safe, with any text encoded before and after it (one letter
      at each end, which also encodes the neighbouring text, remains).

    Letter case is ignored for keys of 12 characters or more. Keys under 6 characters, such as
    "EMPTY", are used for servers that need no key, and may be words of answers: they are removed
    from messages as whole words, but not from answers. The time is at most the length of the text
    times that of the key: the pattern is an alternation of fixed sequences, without repetition and
    without backtracking.

    Args:
        key: The key; None for no key.
    """

    def __init__(self, key: str | None) -> None:
        self._pattern: re.Pattern[str] | None = None
        self._of_answers: re.Pattern[str] | None = None
        if key and len(key) < _SHORTEST_KEY:
            self._pattern = re.compile(rf"(?<!\w){re.escape(key)}(?!\w)")
        elif key:
            flags = re.IGNORECASE if len(key) >= _SHORTEST_CASELESS else 0
            forms = [*map(re.escape, _encoded(key.encode())), re.escape(key)]
            forms.append("".join(map(_quoted, key)))
            self._pattern = self._of_answers = re.compile("|".join(forms), flags)

    def text(self, text: str) -> str:
        """Remove the key from a message.

        Args:
            text: Message of a server or a library on a request.

        Returns:
            The same with "<key>" in its place.
        """
        return text if self._pattern is None else self._pattern.sub(_REDACTED, text)

    def json(self, value: _T) -> _T:
        """Remove the key from every text of a reply, names of fields included.

        Args:
            value: JSON, nested no deeper than `reading.parse_json` allows.

        Returns:
            The same with "<key>" in its place.
        """
        made: object = value
        if self._of_answers is None:
            return value
        if isinstance(value, str):
            made = self._of_answers.sub(_REDACTED, value)
        elif isinstance(value, dict):
            made = {self.json(name): self.json(item) for name, item in value.items()}
        elif isinstance(value, list):
            made = [self.json(item) for item in value]
        return cast(_T, made)


def _encoded(data: bytes) -> Iterator[str]:
    """Yield the base64 letters of a key at the three offsets that it may have in a longer text."""
    for n_before in range(3):
        letters = base64.b64encode(b"\0" * n_before + data).decode().rstrip("=")
        # The outer letters also depend on the neighbours of the key.
        end = len(letters) - bool((n_before + len(data)) % 3)
        inner = letters[n_before + bool(n_before) : end]
        yield inner
        yield inner.translate({ord("+"): "-", ord("/"): "_"})


def _quoted(character: str) -> str:
    """Match a character as it is or escaped; the first form that fits is final."""
    code = ord(character)
    escapes = (f"%{code:02x}", f"%{code:02X}", f"\\u{code:04x}", f"\\u{code:04X}")
    forms = (*escapes, f"\\{character}", character)
    return f"(?>{'|'.join(map(re.escape, dict.fromkeys(forms)))})"
