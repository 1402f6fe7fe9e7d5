"""Log-probabilities of texts from servers, held against what was sent.

Two ways are known. With "echo" a completion repeats its prompt, with the log-probability of each of
its tokens (the OpenAI protocol of old: vLLM, SGLang and others). "prompt_logprobs" is vLLM's own
field. A chat reply has the log-probabilities of what was written and none of what was sent.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import JsonValue

from surface_consistency.errors import RunnerError
from surface_consistency.models.server._replies import first_choice
from surface_consistency.schemas.scoring import ScoredText, ScoringRequest

PromptScores = Literal["echo", "prompt_logprobs"]
"""How a server is asked for the log-probabilities of a prompt."""

_LOST: Final = "�"
_BYTES: Final = "bytes:"
_SPECIAL: Final = re.compile(r"<[^<>\s]+>|\[[A-Z]+\]|")
_BYTE: Final = re.compile(r"\\x([0-9a-fA-F]{2})|(.)", re.DOTALL)
_ROUNDING: Final = 1e-3
_LONGEST_FIRST: Final = 64
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    """A token as a server tells it."""

    text: str | None
    log_probability: float | None
    id: int | None = None
    is_greedy: bool | None = None


class _OtherTokensError(Exception):
    """Tokens that do not make up the text."""

    def __init__(self, place: int, token: str) -> None:
        super().__init__(place, token)
        self.place, self.token = place, token


def scoring_body(
    request: ScoringRequest, *, model: str, by: PromptScores, extra: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Build the body that asks for the log-probabilities of a text.

    Args:
        request: What to score.
        model: The server's name of the model.
        by: How.
        extra: Further fields.

    Returns:
        The body of a request to `completions`. One token is asked for besides, since many servers
        refuse to write none; temperature 1 leaves the probabilities as they are.
    """
    fields: dict[str, JsonValue] = (
        {"echo": True, "logprobs": 1} if by == "echo" else {"prompt_logprobs": 0}
    )
    return {
        "model": model,
        "prompt": request.context + request.continuation,
        "max_tokens": 1,
        "temperature": 1.0,
        "top_p": 1.0,
        **fields,
        **extra,
    }


def read_prompt_scores(
    request: ScoringRequest, reply: Mapping[str, Any], *, by: PromptScores, server: str
) -> ScoredText:
    """Read the log-probabilities of a continuation.

    Args:
        request: What was asked.
        reply: The JSON of the reply.
        by: How it was asked.
        server: Address, for messages.

    Returns:
        The scores, with the texts of the tokens, and their ids where the server tells them.

    Raises:
        ValueError: If the reply is not what the protocol says.
        RunnerError: If the server tells no log-probabilities of prompts, those of other tokens than
            were sent, or what are none.
    """
    choice = first_choice(reply)
    tokens = _echoed(choice) if by == "echo" else _prompt_tokens(choice, reply)
    if tokens is None:
        raise RunnerError(
            f"{server} tells no log-probabilities of prompts (asked for by {by!r}); ask with "
            f"score_by={'prompt_logprobs' if by == 'echo' else 'echo'!r} (`runner_option` "
            f"score_by=...), read answers with `read=generate`, or take a server that tells them, "
            "such as vLLM"
        )
    text = request.context + request.continuation
    try:
        spans = _aligned(tokens, text)
    except _OtherTokensError as error:
        sent = text[error.place : error.place + _SHOWN]
        raise RunnerError(
            f"{server} tells log-probabilities of other tokens than were sent: request "
            f"{request.id!r} goes on with {sent!r} at character {error.place}, and the server with "
            f"{error.token!r}; see that it neither changes prompts (templates, trimming) nor "
            "answers requests of others"
        ) from None
    return _scored(request, tokens[: len(spans)], spans, server)


def _echoed(choice: Mapping[str, Any]) -> list[_Token] | None:
    """Read the tokens of an echoed prompt, the written one behind them; None where there are none.

    Without an echo only what was written has log-probabilities, from its first token on.
    """
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, dict):
        return None
    texts, values = logprobs.get("tokens"), logprobs.get("token_logprobs")
    if not isinstance(texts, list) or not isinstance(values, list) or len(texts) <= 1:
        return None
    if len(texts) != len(values) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{len(texts)} tokens have {len(values)} log-probabilities")
    best = logprobs.get("top_logprobs")
    if not isinstance(best, list) or len(best) != len(texts):
        best = [None] * len(texts)
    return [
        _Token(text=text, log_probability=_number(value), is_greedy=_is_best(value, others))
        for text, value, others in zip(texts, values, best, strict=True)
    ]


def _is_best(value: object, others: object) -> bool | None:
    """Tell whether no other token is more probable; None where no other is told."""
    if not isinstance(others, dict) or not others or not isinstance(value, int | float):
        return None
    return all(value >= other for other in others.values() if isinstance(other, int | float))


def _prompt_tokens(choice: Mapping[str, Any], reply: Mapping[str, Any]) -> list[_Token] | None:
    """Read vLLM's field: for each token but the first one mapping of ids."""
    entries = choice.get("prompt_logprobs", reply.get("prompt_logprobs"))
    if not isinstance(entries, list) or not entries:
        return None
    tokens: list[_Token] = []
    for entry in entries:
        if entry is None and not tokens:
            tokens.append(_Token(text=None, log_probability=None))
            continue
        # The token of the prompt comes first; what the server adds are more probable ones.
        name, value = next(iter(entry.items()), ("", None)) if isinstance(entry, dict) else ("", 0)
        if not isinstance(value, dict) or not isinstance(value.get("decoded_token"), str):
            raise ValueError(f"an entry of `prompt_logprobs` is {str(entry)[:80]}")
        rank = value.get("rank")
        tokens.append(
            _Token(
                text=value["decoded_token"],
                log_probability=_number(value.get("logprob")),
                id=int(name) if name.isdecimal() else None,
                is_greedy=rank == 1 if isinstance(rank, int) else None,
            )
        )
    return tokens


def _number(value: object) -> float | None:
    """Read a number; whether it is a log-probability is asked where it is used."""
    return float(value) if isinstance(value, int | float) else None


def _aligned(tokens: Sequence[_Token], text: str) -> list[tuple[int, int]]:
    """Find the characters that tokens cover; those behind the end of the text are left out.

    Raises:
        _OtherTokensError: If they do not make up the text.
    """
    texts = [token.text for token in tokens]
    first = texts[0]
    if first is not None and (text.startswith(first) or not _SPECIAL.fullmatch(first)):
        return _spans([str(item) for item in texts], text, 0)
    # A begin token covers nothing; a first token of which nothing is told covers what is left.
    rest = [str(item) for item in texts[1:]]
    error = None
    for end in range(1 if first is not None else min(len(text), _LONGEST_FIRST)):
        try:
            return [(0, end), *_spans(rest, text, end)]
        except _OtherTokensError as other:
            error = error or other
    raise error or _OtherTokensError(0, "")


def _spans(texts: Sequence[str], text: str, start: int) -> list[tuple[int, int]]:
    """Walk along the text, token by token."""
    spans: list[tuple[int, int]] = []
    parts: list[str] = []
    place = start
    for token in texts:
        if place == len(text):
            break
        if (_LOST in token or token.startswith(_BYTES)) and not text.startswith(token, place):
            parts.append(token)
            continue
        if parts:
            spans += _of_parts(parts, token, text, place)
            place, parts = spans[-1][1], []
            if place == len(text):
                break
        end = _end(token, text, place, is_first=not spans)
        if end is None:
            raise _OtherTokensError(place, token)
        spans.append((place, end))
        place = end
    if parts and place < len(text):
        spans += _of_parts(parts, "", text, place)
        place = spans[-1][1]
    if place != len(text):
        raise _OtherTokensError(place, "")
    return spans


def _of_parts(parts: Sequence[str], after: str, text: str, place: int) -> list[tuple[int, int]]:
    """Find the characters of which tokens are parts.

    Bytes tell them. Where a server writes "\ufffd" for a part, all such tokens in a row cover
    together what lies before the next token.
    """
    end = place
    if all(part.startswith(_BYTES) for part in parts):
        behind = text[place:].encode()
        spans, n_bytes = [], 0
        for part in parts:
            if place == len(text) or n_bytes == len(behind):
                break
            data = _bytes(part.removeprefix(_BYTES))
            if not behind.startswith(data, n_bytes):
                raise _OtherTokensError(place, part)
            begin = len(behind[:n_bytes].decode(errors="ignore"))
            n_bytes += len(data)
            # A character belongs to every token that holds some of its bytes.
            end = len(behind[:n_bytes].decode(errors="replace"))
            spans.append((place + begin, place + end))
        return spans
    while end < len(text) and (end == place or not text[end].isascii()):
        end += 1
        if after and text.startswith(after.replace("▁", " "), end):
            break
    if text[place:end].isascii():
        raise _OtherTokensError(place, parts[0])
    return [(place, end)] * len(parts)


def _bytes(escaped: str) -> bytes:
    """Read letters and escaped bytes."""
    return b"".join(
        bytes([int(code, 16)]) if code else letter.encode()
        for code, letter in _BYTE.findall(escaped)
    )


def _end(token: str, text: str, place: int, *, is_first: bool) -> int | None:
    """Tell where a token ends that begins at a place; None where it does not stand there."""
    # sentencepiece writes a space as "▁", puts one before a text, and loses one in decoding.
    plain = token.replace("▁", " ")
    for form in (token, plain, plain.removeprefix(" ") if is_first else plain):
        if text.startswith(form, place):
            return place + len(form)
    behind = place + len(text[place:]) - len(text[place:].lstrip())
    return behind + len(plain) if plain and text.startswith(plain, behind) else None


def _scored(
    request: ScoringRequest, tokens: Sequence[_Token], spans: Sequence[tuple[int, int]], server: str
) -> ScoredText:
    """Take the tokens of the continuation."""
    n_context, text = len(request.context), request.context + request.continuation
    has_begin = bool(spans) and spans[0] == (0, 0)
    start = int(has_begin)
    if n_context:
        start = next(n for n, (_, end) in enumerate(spans) if end > n_context)
    _check_begin(request, server, has_begin=has_begin, is_whole=start == 0)
    own = tokens[start:]
    values = [
        _checked(token, request, server, is_first=start + n == 0) for n, token in enumerate(own)
    ]
    greedy = [token.is_greedy for token in own[start == 0 :]]
    ids = tuple(token.id for token in own if token.id is not None)
    return ScoredText(
        request_id=request.id,
        log_probabilities=tuple(values),
        tokens=tuple(
            text[begin:end] if token.text is None else token.text
            for token, (begin, end) in zip(own, spans[start:], strict=True)
        ),
        token_ids=ids if len(ids) == len(own) else None,
        n_context_tokens=start,
        is_greedy=None if None in greedy or not greedy else all(greedy),
        boundary="moved" if n_context and spans[start][0] < n_context else "clean",
    )


def _check_begin(request: ScoringRequest, server: str, *, has_begin: bool, is_whole: bool) -> None:
    """Refuse to score after another begin than was asked for."""
    if request.bos == "eos":
        raise RunnerError(
            f"a server decides what stands before a text, so request {request.id!r} cannot be "
            'asked with bos="eos"; ask with bos="model", or "none"'
        )
    if request.bos == "none" and has_begin:
        raise RunnerError(
            f"{server} puts a begin token before request {request.id!r}, which asks for "
            'bos="none"; ask with bos="model"'
        )
    if request.bos == "model" and is_whole:
        raise RunnerError(
            f"{server} puts no begin token before request {request.id!r}, a text without context; "
            'ask with bos="none", which leaves its first token out'
        )


def _checked(
    token: _Token, request: ScoringRequest, server: str, *, is_first: bool
) -> float | None:
    """Refuse what is no log-probability."""
    value = token.log_probability
    if is_first and value is None:
        return None
    if value is None or math.isnan(value) or value > _ROUNDING:
        shown = "none" if value is None else f"{value:g}"
        raise RunnerError(
            f"{server} gives token {token.text!r} of request {request.id!r} the log-probability "
            f"{shown}, which is none; see the server's log, and that it tells log-probabilities of "
            "the model as they are"
        )
    return min(value, 0.0)
