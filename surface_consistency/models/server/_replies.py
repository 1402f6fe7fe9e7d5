"""Conversion of replies of servers with the OpenAI protocol to generations."""

from collections.abc import Mapping
from typing import Any, Final

from surface_consistency.reading import first_names, shown
from surface_consistency.schemas.generations import FinishReason, Generation, server_end
from surface_consistency.schemas.prompts import Prompt

_FILTER_CODES: Final = ("content_filter", "content_policy_violation")
_MODERATED: Final = ("reasons", "flagged_input")
"""Fields of OpenRouter for a flagged prompt."""

_REASONING: Final = ("reasoning_content", "reasoning", "thinking", "reasoning_details")

_STATED: Final = ("error", "message", "detail", "msg", "errors", "base_resp")
"""Fields in which servers report an error in place of an answer."""

_LONGEST: Final = 200
_CODE: Final = 30
"""Maximum number of recorded characters of the message and of the code of an error."""

_UNCLOSED: Final = "the reasoning was never closed"
_ALL_REASONING: Final = (
    "the answer is empty and all text is in the field of the reasoning: if the model does not "
    "reason, start the server without its reasoning parser; else switch thinking on, such as by "
    'extra_body={"chat_template_kwargs": {"enable_thinking": true}}'
)


def is_filtered(reply: object) -> bool:
    """Return whether an error reply is from a content filter, of Azure or OpenRouter.

    OpenRouter marks a flagged prompt by `reasons` and `flagged_input` in the metadata of error 403,
    which is also the status of a key without permission.
    """
    error = reply.get("error") if isinstance(reply, dict) else None
    if not isinstance(error, dict):
        return False
    stated = error.get("metadata")
    metadata = stated if isinstance(stated, dict) else {}
    codes = (error.get("code"), metadata.get("error_type"))
    return any(code in _FILTER_CODES for code in codes) or any(map(metadata.get, _MODERATED))


def read_reply(prompt: Prompt, reply: Mapping[str, Any]) -> Generation:
    """Convert a reply to a generation.

    Args:
        prompt: The prompt of the request.
        reply: The JSON of the reply.

    Returns:
        The generation, with reasoning that has a separate field or part in `reasoning`.

    Raises:
        ValueError: If the reply does not follow the protocol; if it reports an error instead, the
            message contains the error of the server.
    """
    choices = [reply] if is_filtered(reply) else reply.get("choices")
    if not choices:
        stated = next((reply[name] for name in _STATED if reply.get(name)), None)
        if stated is not None:
            raise ValueError(f"the server reports an error: {_words(stated)}")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ValueError(f"no `choices` in the reply, which has {first_names(sorted(reply))}")
    choice = choices[0]
    message = choice.get("message")
    if message is not None and not isinstance(message, dict):
        raise ValueError(f"`message` is a {type(message).__name__}, not an object")
    content = choice.get("text") if message is None else message.get("content")
    text, reasoning, source = _parts(content)
    for name in _REASONING:
        stated = (choice if message is None else message).get(name)
        if isinstance(stated, list):
            # Details may be encrypted, and then contain neither text nor summary.
            parts = (part for part in stated if isinstance(part, dict))
            stated = "".join(str(part.get("text") or part.get("summary") or "") for part in parts)
        if reasoning is None and isinstance(stated, str) and stated.strip():
            reasoning, source = stated.strip(), name
    refusal = None if message is None else message.get("refusal")
    choice = {**choice, "error": choice.get("error") or reply.get("error")}
    kind, error = _kind(text, reasoning, choice, refusal)
    usage = reply.get("usage")
    return Generation(
        prompt_id=prompt.id,
        text=text if error is None else None,
        reasoning=reasoning,
        reasoning_source=source,
        finish_reason=kind,
        error=error,
        n_prompt_tokens=_count(usage, "prompt_tokens"),
        n_new_tokens=_count(usage, "completion_tokens"),
    )


def _kind(
    text: str | None, reasoning: str | None, choice: Mapping[str, Any], refusal: object
) -> tuple[FinishReason, str | None]:
    """Return how a reply ended, and the reason if it has no answer."""
    finish = choice.get("finish_reason")
    end = server_end(finish)
    is_blank = text is None or not text.strip()
    so_far = "" if is_blank else f": it had written {shown(text)}"
    if is_filtered(choice):
        return "content_filter", f"the server's content filter: {_words(choice['error'])}"
    if end == "content_filter":
        return end, f"the server's content filter withheld the answer{so_far}"
    if isinstance(refusal, str) and refusal.strip():
        return "refusal", f"the model refused: {_words(refusal)}"
    if end == "refusal":
        return end, f"the model refused{so_far}"
    if choice.get("error"):
        return "error", f"the server reports an error: {_words(choice['error'])}{so_far}"
    if end == "error":
        return end, f"the server ended the reply with finish_reason {shown(finish)}{so_far}"
    if reasoning is not None and is_blank:
        if end == "length":
            return "unclosed_reasoning", f"{_UNCLOSED}: the limit of tokens ended it"
        return "error", _ALL_REASONING
    if text is None:
        return "error", f"the server returned no text (finish_reason {shown(finish)})"
    return end, None


def _words(error: object) -> str:
    """Return the first words of an error of a server, and its code, if any."""
    if not isinstance(error, dict) or not error.get("message"):
        words, code = str(error), None
    else:
        words, code = str(error["message"]), error.get("code")
    words = words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."
    return words if code is None else f"{words} (code {str(code)[:_CODE]})"


def _parts(content: object) -> tuple[str | None, str | None, str | None]:
    """Return the text of a message, in one piece or in parts, and the reasoning in the parts."""
    if content is None or isinstance(content, str):
        return content, None, None
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise ValueError(f"the answer is a {type(content).__name__}, not a text")
    texts: list[str] = []
    passages: list[str] = []
    for part in content:
        inner = part.get("thinking" if part.get("type") == "thinking" else "text")
        pieces = inner if isinstance(inner, list) else [{"text": inner}]
        written = [piece.get("text") for piece in pieces if isinstance(piece, dict)]
        is_reasoning = part.get("type") in ("thinking", "reasoning")
        (passages if is_reasoning else texts).extend(t for t in written if isinstance(t, str))
    reasoning = "".join(passages).strip() or None
    return "".join(texts) if texts else None, reasoning, None if reasoning is None else "content"


def _count(usage: object, name: str) -> int | None:
    """Return a token count, if the server reports it."""
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if type(value) is int and value >= 0 else None
