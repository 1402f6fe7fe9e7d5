"""Prompts to request bodies, and response bodies to generations."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import JsonValue

from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.prompts import GenerationParams, Prompt

__all__ = ["MalformedReplyError", "generation_of", "request_of"]

_FINISH: Mapping[object, Literal["stop", "length"]] = {"length": "length", "max_tokens": "length"}


class MalformedReplyError(ValueError):
    """A response that is not what the protocol says; asked again."""


def request_of(
    prompt: Prompt,
    params: GenerationParams,
    *,
    model: str,
    text_as_chat: bool,
    max_tokens_field: str,
    extra: Mapping[str, JsonValue],
) -> tuple[str, dict[str, JsonValue]]:
    """Build the path and the body that ask for one prompt."""
    body: dict[str, JsonValue] = {
        "model": model,
        max_tokens_field: params.max_new_tokens,
        "temperature": params.temperature,
    }
    if params.stop:
        body["stop"] = list(params.stop)
    if params.temperature > 0:
        body["top_p"] = params.top_p
        if params.seed is not None:
            body["seed"] = params.seed
    if prompt.messages is not None:
        body["messages"] = [{"role": t.role, "content": t.content} for t in prompt.messages]
    elif text_as_chat:
        body["messages"] = [{"role": "user", "content": prompt.text}]
    else:
        return "completions", {**body, "prompt": prompt.text, **extra}
    return "chat/completions", {**body, **extra}


def generation_of(prompt: Prompt, reply: object) -> tuple[Generation, str | None]:
    """Read the answer and the id of the model that gave it."""
    if not isinstance(reply, dict):
        raise MalformedReplyError(f"a JSON object was expected, got {type(reply).__name__}")
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise MalformedReplyError(f"no `choices` in the reply, which has {sorted(reply)[:8]}")
    choice: dict[str, Any] = choices[0]
    usage = reply.get("usage") if isinstance(reply.get("usage"), dict) else {}
    model = reply.get("model")
    text = _text(choice)
    finish = choice.get("finish_reason")
    if text is None:
        generation = Generation(
            prompt_id=prompt.id,
            text=None,
            finish_reason="error",
            error=f"the server returned no text (finish_reason {finish!r})",
        )
    else:
        generation = Generation(
            prompt_id=prompt.id,
            text=text,
            finish_reason=_FINISH.get(finish, "stop"),
            n_prompt_tokens=_count(usage, "prompt_tokens"),
            n_new_tokens=_count(usage, "completion_tokens"),
        )
    return generation, model if isinstance(model, str) else None


def _text(choice: Mapping[str, Any]) -> str | None:
    """Find the text of a choice; a refusal is an answer too."""
    message = choice.get("message")
    if message is None:
        found = choice.get("text")
    elif isinstance(message, dict):
        found = message.get("content")
        if found is None:
            found = message.get("refusal")
    else:
        raise MalformedReplyError(f"`message` is a {type(message).__name__}, not an object")
    if found is not None and not isinstance(found, str):
        raise MalformedReplyError(f"the answer is a {type(found).__name__}, not a text")
    return found


def _count(usage: object, name: str) -> int | None:
    """Read a token count where the server tells it."""
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and value >= 0 else None
