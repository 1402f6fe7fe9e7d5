"""A runner for any server with an OpenAI-compatible API."""

import os
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import JsonValue

from surface_consistency.errors import RunnerError, SurfaceConsistencyWarning
from surface_consistency.models.reasoning import separate_reasoning
from surface_consistency.models.runner import Runner, cut_at_stop
from surface_consistency.models.server._replies import is_filtered, read_reply
from surface_consistency.reading import shown
from surface_consistency.redaction import Redactor
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.prompts import GenerationParams, Prompt
from surface_consistency.web import Reply, Request, WebClient, contact

_BATCHES_IN_FLIGHT: Final = 16
_NAME: Final = "the server"
_SHOWN: Final = 100
_COMPLETIONS: Final = "/completions"
_CHAT: Final = "/chat/completions"
_ADDRESS_HINT: Final = (
    "check that it serves this model, that base_url ends where its API begins (often /v1), and "
    "set text_as_chat for servers without plain completions"
)


class OpenAICompatibleRunner(Runner):
    r"""Queries a server with concurrent requests; temporary errors are retried.

    Requests that time out, are interrupted, return malformed content or a status of 408, 409, 425,
    429 or 5xx are repeated after an increasing wait; all requests respect a `Retry-After`. A prompt
    that the server rejects (400, 413, 422, or by a content filter) becomes an error of that prompt
    only. The run ends at an invalid key or model, an empty account, a redirection, a change of the
    model, or consecutive prompts that fail or are rejected; finished answers are kept.

    Reasoning is the content of the fields `reasoning_content`, `reasoning` and `reasoning_details`,
    of parts of the content marked as thinking, or the text between known tags. Replies withheld by
    a content filter and refusals marked by the server have their own `Generation.finish_reason` and
    are not sent again. A reply that ended neither at a stop nor at the token limit is an error,
    which is sent again on resume; see `schemas.generations.server_end`.

    Args:
        model: Model id on the server.
        base_url: Base address of the API, such as "http://localhost:8000/v1"; None for the
            environment variable OPENAI_BASE_URL.
        api_key_env: Environment variable of the key; if it is unset, no key is sent. The key does
            not appear in fingerprints, logs or messages.
        concurrency: Maximum number of concurrent requests.
        timeout: Maximum total time of a request in seconds, after which it is repeated.
        max_retries: Number of further attempts after the first.
        first_wait: Seconds before the first further attempt; doubled each time, with jitter.
        longest_wait: Maximum wait in seconds; a server that requests a longer one ends the run.
        max_reply_bytes: Maximum size of a reply; a prompt with a longer one is an error.
        max_refusals: Number of rejections with the same message that end a run without any answer.
        served_model: Model id that every response must contain; None for that of the first
            response.
        text_as_chat: Whether plain-text prompts are sent as one user message, for servers with only
            chat.
        max_tokens_field: Name of the field of the token limit, of reasoning and answer together;
            "max_completion_tokens" for some servers.
        extra_body: Further fields of every request, such as {"top_k": 1}.

    Raises:
        MissingDependencyError: If httpx is not installed.
        ValueError: If an option is out of range or the address is invalid.

    Notes:
        Servers have one token limit, so reasoning and answer together may have the sum of
        `max_reasoning_tokens` and `max_new_tokens`. If `max_reasoning_tokens` is given, stop
        strings are not sent, since they would end the reasoning; the answer is cut at them here.
        Servers apply stop strings from the first character on, so a model that starts its answer
        with a newline returns an empty answer with `stop=("\n",)`; let chat models end by
        themselves. Greedy decoding is requested as temperature 0; few servers guarantee equal
        answers in other batches; the test-retest flip rate measures the difference.
    """

    name = "openai-compatible"
    """Short name."""

    served_model: str | None
    """Model id of the responses; None before the first."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key_env: str = "OPENAI_API_KEY",
        concurrency: int = 32,
        timeout: float = 120.0,
        max_retries: int = 6,
        first_wait: float = 0.5,
        longest_wait: float = 120.0,
        max_reply_bytes: int = 4_000_000,
        max_refusals: int = 20,
        served_model: str | None = None,
        text_as_chat: bool = False,
        max_tokens_field: str = "max_tokens",
        extra_body: Mapping[str, JsonValue] | None = None,
    ) -> None:
        if not model:
            raise ValueError("model is empty; give the model id on the server")
        if max_refusals < 1:
            raise ValueError(f"max_refusals must be at least 1, got {max_refusals}")
        self.max_refusals = max_refusals
        """Number of equal errors that end a run without answers; see `run_prompts`."""
        self._model = model
        self._api_key_env = _variable(api_key_env)
        self._client = WebClient(
            url=_address(base_url),
            name=_NAME,
            key_env=api_key_env,
            concurrency=concurrency,
            timeout=timeout,
            max_retries=max_retries,
            first_wait=first_wait,
            longest_wait=longest_wait,
            max_reply_bytes=max_reply_bytes,
            most_lost=max(3, concurrency),
            address_hint=_ADDRESS_HINT,
            is_of_one_request=is_filtered,
        )
        self._pinned = served_model
        self.served_model = served_model
        self._text_as_chat = text_as_chat
        self._max_tokens_field = max_tokens_field
        self._extra = dict(extra_body or {})
        self._warned: set[str] = set()
        self._checking = threading.Lock()

    @staticmethod
    def contacts(
        *, base_url: str | None = None, api_key_env: str = "OPENAI_API_KEY", **_: object
    ) -> str:
        """Describe in one line the server that a runner with these options contacts.

        Args:
            base_url: As for the runner.
            api_key_env: As for the runner.

        Returns:
            Address and environment variable, without the key; see `web.contact`.

        Raises:
            ValueError: If the address is invalid.
        """
        is_known = base_url or os.environ.get("OPENAI_BASE_URL")
        return contact(_NAME, _address(base_url) if is_known else "", _variable(api_key_env))

    def fingerprint(self) -> dict[str, JsonValue]:
        """Return model and request settings, without key, address and concurrency.

        The address of a server may change; `served_model` ensures that its model does not.
        """
        return {
            "runner": self.name,
            "model": self._model,
            "served_model": self._pinned,
            "text_as_chat": self._text_as_chat,
            "extra_body": dict(self._extra),
        }

    def plan(
        self, prompts: Sequence[Prompt], params: GenerationParams
    ) -> Iterator[Sequence[Prompt]]:
        """Divide the run into batches that keep the server busy; see `Runner.plan`."""
        size = self._client.concurrency * _BATCHES_IN_FLIGHT
        for start in range(0, len(prompts), size):
            yield prompts[start : start + size]

    def generate(self, prompts: Sequence[Prompt], params: GenerationParams) -> Iterator[Generation]:
        """Send all prompts of a batch at once, limited by `concurrency`.

        Args:
            prompts: The batch; ids are unique.
            params: How to decode.

        Yields:
            One generation for each prompt, in the order of arrival.

        Raises:
            RunnerError: If the server rejects the key or the model, responds with another model
                than before, requests too long a wait, or fails for consecutive prompts.

        Warns:
            SurfaceConsistencyWarning: If replies contain no `finish_reason`, or the server counts
                equal `prompt_tokens` for prompts of different length; once each.
        """
        client = self._ready_client()
        unstated: list[int] = []
        lengths: dict[int, list[int]] = {}

        def read(place: int, content: dict[str, Any]) -> Generation:
            answer = read_reply(prompts[place], content)
            if answer.error is None and not content["choices"][0].get("finish_reason"):
                unstated.append(place)
            asked = prompts[place].text or "".join(t.content for t in prompts[place].messages or ())
            lengths.setdefault(answer.n_prompt_tokens or 0, []).append(len(asked))
            self._check_model(content.get("model"))
            return _finished(_cleared(answer, client.redactor), params)

        requests = [self._request(prompt, params) for prompt in prompts]
        with closing(client.ask(requests, read)) as replies:
            for reply in replies:
                yield reply.value or _unanswered(prompts[reply.place], reply)
        if unstated:
            self._warn_once(
                "finish_reason",
                f"{len(unstated):,} of {len(prompts):,} replies contain no finish_reason; they "
                "count as complete answers, although truncated answers would look the same",
            )
        if is_cut := _cut_context(lengths):
            self._warn_once("prompt_tokens", is_cut)

    def _warn_once(self, kind: str, text: str) -> None:
        """Issue a warning about the replies, once per kind."""
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(text, SurfaceConsistencyWarning, stacklevel=3)

    def _ready_client(self) -> WebClient:
        """Return the client with the key, which may have been set since the last batch."""
        variable = self._api_key_env
        key = os.environ.get(variable, "").strip()
        if any(not "!" <= character <= "~" for character in key):
            # A header cannot contain it, and it would be quoted in an error.
            raise RunnerError(
                f"the environment variable {variable} contains spaces or characters that are not "
                "allowed in keys; set it again"
            )
        hint = f"put a key into the environment variable {variable}, which is unset"
        if key:
            hint = f"check the key in the environment variable {variable}"
        return replace(self._client, key=key or None, key_hint=hint)

    def _request(self, prompt: Prompt, params: GenerationParams) -> Request:
        """Build the request of one prompt."""
        body: dict[str, JsonValue] = {
            "model": self._model,
            self._max_tokens_field: params.max_tokens,
            "temperature": params.temperature,
        }
        if params.stop and params.max_reasoning_tokens is None:
            body["stop"] = list(params.stop)
        if params.temperature > 0:
            body["top_p"] = params.top_p
            if params.seed is not None:
                body["seed"] = params.seed
        if prompt.messages is not None:
            body["messages"] = [{"role": t.role, "content": t.content} for t in prompt.messages]
        elif self._text_as_chat:
            body["messages"] = [{"role": "user", "content": prompt.text}]
        else:
            return Request({**body, "prompt": prompt.text, **self._extra}, _COMPLETIONS)
        return Request({**body, **self._extra}, _CHAT)

    def _check_model(self, model: object) -> None:
        """Raise an error if the model changes in a run; some servers do not return its name."""
        if not isinstance(model, str):
            return
        with self._checking:  # Long replies are read in a separate thread.
            self.served_model = before = self.served_model or model
        if model != before:
            raise RunnerError(
                f"{self._client.url} now returns the model name {shown(model[:_SHOWN])}, and "
                f"before {shown(before)}, but a run has one model; start a new run, and set the "
                "model by served_model"
            )


def _cut_context(lengths: Mapping[int, Sequence[int]]) -> str | None:
    """Return a warning if the longest prompts have equal token counts, probably the context length.

    A few prompts of similar length can have the largest count by chance, so there are thresholds.
    """
    most = max(lengths, default=0)  # 0 if the server does not count.
    same, n_counted = sorted(lengths.get(most, ())), sum(map(len, lengths.values()))
    if most == 0 or len(same) < max(2, 0.05 * n_counted) or same[-1] < 1.5 * same[0]:
        return None
    return (
        f"{len(same):,} of {n_counted:,} prompts, of {same[0]:,} to {same[-1]:,} characters, have "
        f"{most:,} prompt_tokens each: the server probably cuts them at the length of its context; "
        "make that longer (for Ollama by OLLAMA_CONTEXT_LENGTH) and start a new run"
    )


def _unanswered(prompt: Prompt, reply: Reply[Generation]) -> Generation:
    """Create the record of a prompt that was rejected or lost."""
    error = reply.refusal or ""
    is_filter = is_filtered(reply.refusal_body)
    return Generation(
        prompt_id=prompt.id,
        text=None,
        finish_reason="content_filter" if is_filter else "error",
        error=f"the server's content filter: {error}" if is_filter else error,
    )


def _cleared(generation: Generation, redactor: Redactor) -> Generation:
    """Remove the key from texts that were joined from several parts."""
    texts = {name: getattr(generation, name) for name in ("text", "reasoning", "error")}
    return generation.model_copy(update={name: redactor.json(text) for name, text in texts.items()})


def _finished(generation: Generation, params: GenerationParams) -> Generation:
    """Separate the reasoning in the text, and cut the answer of a reasoning model."""
    done = separate_reasoning(generation, params)
    if params.max_reasoning_tokens is None or done.text is None:
        return done
    cut = cut_at_stop(done.text, params.stop)
    return done if cut is None else done.model_copy(update={"text": cut, "finish_reason": "stop"})


def _variable(name: object) -> str:
    """Check the name of an environment variable."""
    if isinstance(name, str) and name:
        return name
    raise ValueError(f"api_key_env must be the name of an environment variable, got {shown(name)}")


def _address(base_url: str | None) -> str:
    """Check an address; credentials are not allowed, since manifests and messages contain it."""
    address = base_url or os.environ.get("OPENAI_BASE_URL", "")
    try:
        parts = urlsplit(address)
    except (AttributeError, TypeError, ValueError):  # From an option that is not a string.
        address, parts = str(address), urlsplit("")
    if "@" in address or parts.query or parts.fragment:
        raise ValueError(
            "base_url must not contain a user, password, query or fragment; put the key into the "
            "environment variable that api_key_env names"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(
            "base_url must be the http(s) base address of the API, such as "
            "'http://localhost:8000/v1' (`runner_option` base_url=ADDRESS, or OPENAI_BASE_URL); "
            f"got {shown(address)}"
        )
    return address.rstrip("/")
