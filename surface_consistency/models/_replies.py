"""What a server sends back: bounded, free of the key, and read as the kind of reply that it is."""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from surface_consistency.schemas.generations import FinishReason, Generation
from surface_consistency.schemas.prompts import Prompt

__all__ = ["MAX_DEPTH", "MalformedReplyError", "Redactor", "parse_json", "read_reply"]

MAX_DEPTH: Final = 100
"""Levels of nesting in a server's JSON; protocols have fewer than ten."""

_REDACTED: Final = "<key>"
_SHORTEST_KEY: Final = 6
_SHORTEST_CASELESS: Final = 12
# What stands between the pieces of a text that was wrapped, quoted or listed in pieces.
_BETWEEN: Final = r"""(?:[\s"'`,+\[\]\x00-\x1f\u200b]|\\[nrt])*"""
_URL_SAFE: Final = str.maketrans("+/", "-_")
_FINISH: Final[Mapping[object, Literal["stop", "length"]]] = {
    "length": "length",
    "max_tokens": "length",
}
_FILTERED: Final = ("content_filter", "safety")


class MalformedReplyError(ValueError):
    """A response that is not what the protocol says; asked again."""


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

    def json(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """Take the key out of every text of a reply, also where it is split over several.

        Args:
            value: JSON, nested no deeper than `MAX_DEPTH`.

        Returns:
            The same with "<key>" in its place.
        """
        if self._of_answers is None:
            return value
        texts = list(_texts(value))
        marks = map(chr, range(32))
        between = next((mark for mark in marks if not any(mark in text for text in texts)), None)
        if between is None:
            raise MalformedReplyError("its texts hold every control character")
        joined = between.join(texts)
        redacted = self._of_answers.sub(
            lambda match: _REDACTED + between * match.group().count(between), joined
        )
        return self._rebuilt(value, iter(redacted.split(between)))

    def _rebuilt(self, value: Any, texts: Iterator[str]) -> Any:  # noqa: ANN401 - any JSON
        """Put texts in the places of those that `_texts` yields; names are redacted one by one."""
        if isinstance(value, str):
            return next(texts)
        if isinstance(value, dict):
            return {self.text(name): self._rebuilt(item, texts) for name, item in value.items()}
        if isinstance(value, list):
            return [self._rebuilt(item, texts) for item in value]
        return value


def parse_json(data: bytes) -> Any:  # noqa: ANN401 - any JSON
    """Read the JSON of a reply.

    Args:
        data: The body.

    Returns:
        What it holds.

    Raises:
        MalformedReplyError: If it is no JSON, or nested deeper than `MAX_DEPTH`.
    """
    deep = f"its JSON is nested deeper than {MAX_DEPTH} levels, which no reply of the protocol is"
    try:
        value = json.loads(data)
    except UnicodeDecodeError as error:
        raise MalformedReplyError(f"it is not UTF-8: {error.reason}") from None
    except ValueError as error:
        raise MalformedReplyError(str(error)) from None
    except RecursionError:
        raise MalformedReplyError(deep) from None
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for outer in level
            if isinstance(outer, dict | list)
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
    if level:
        raise MalformedReplyError(deep)
    return value


def read_reply(prompt: Prompt, reply: object) -> tuple[Generation, str | None]:
    """Read the answer and the id of the model that gave it.

    Args:
        prompt: What was asked.
        reply: The JSON of the reply.

    Returns:
        The generation, thoughts that stand in a field of their own told apart, and the model's id.

    Raises:
        MalformedReplyError: If the reply is not what the protocol says.
    """
    if not isinstance(reply, dict):
        raise MalformedReplyError(f"a JSON object was expected, got {type(reply).__name__}")
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise MalformedReplyError(f"no `choices` in the reply, which has {sorted(reply)[:8]}")
    choice: dict[str, Any] = choices[0]
    message = choice.get("message")
    if message is not None and not isinstance(message, dict):
        raise MalformedReplyError(f"`message` is a {type(message).__name__}, not an object")
    content = choice.get("text") if message is None else message.get("content")
    text, thought, source = _parts(content)
    for name in ("reasoning_content", "reasoning"):
        found = (choice if message is None else message).get(name)
        if thought is None and isinstance(found, str) and found.strip():
            thought, source = found.strip(), name
    finish = choice.get("finish_reason")
    refusal = None if message is None else message.get("refusal")
    kind, error = _kind(text, thought, finish, refusal)
    usage = reply.get("usage")
    model = reply.get("model")
    generation = Generation(
        prompt_id=prompt.id,
        text=text if error is None else None,
        thought=thought,
        thought_source=source,
        finish_reason=kind,
        error=error,
        n_prompt_tokens=_count(usage, "prompt_tokens"),
        n_new_tokens=_count(usage, "completion_tokens"),
    )
    return generation, model if isinstance(model, str) else None


def _kind(
    text: str | None, thought: str | None, finish: object, refusal: object
) -> tuple[FinishReason, str | None]:
    """Tell how a reply ended, and why it holds no answer."""
    said = "" if text is None or not text.strip() else f": it had written {text!r}"
    if finish in _FILTERED:
        return "content_filter", f"the server's content filter withheld the answer{said}"
    if isinstance(refusal, str) and refusal.strip():
        return "refusal", f"the model refused: {refusal}"
    if finish == "refusal":
        return "refusal", f"the model refused{said}"
    if thought is not None and (text is None or (not text.strip() and finish in _FINISH)):
        ended = "the limit of tokens" if finish in _FINISH else "the model"
        return "unclosed_thought", f"the thought was never closed: {ended} ended it"
    if text is None:
        return "error", f"the server returned no text (finish_reason {finish!r})"
    return _FINISH.get(finish, "stop"), None


def _parts(content: object) -> tuple[str | None, str | None, str | None]:
    """Read the text of a message, as one or in parts, and the thoughts among the parts."""
    if content is None or isinstance(content, str):
        return content, None, None
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise MalformedReplyError(f"the answer is a {type(content).__name__}, not a text")
    texts: list[str] = []
    thoughts: list[str] = []
    for part in content:
        inner = part.get("thinking" if part.get("type") == "thinking" else "text")
        pieces = inner if isinstance(inner, list) else [{"text": inner}]
        written = [piece.get("text") for piece in pieces if isinstance(piece, dict)]
        is_thought = part.get("type") in ("thinking", "reasoning")
        (thoughts if is_thought else texts).extend(t for t in written if isinstance(t, str))
    thought = "".join(thoughts).strip() or None
    return "".join(texts) if texts else None, thought, None if thought is None else "content"


def _count(usage: object, name: str) -> int | None:
    """Read a token count where the server tells it."""
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if type(value) is int and value >= 0 else None


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
