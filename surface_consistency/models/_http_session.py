"""One batch of requests to a server: many at once, asked again where that may help."""

import asyncio
import contextlib
import queue
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from surface_consistency.errors import RunnerError
from surface_consistency.models._replies import (
    MalformedReplyError,
    Redactor,
    parse_json,
    read_reply,
)
from surface_consistency.runs.web import backoff, is_transient, retry_after
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.prompts import Prompt

if TYPE_CHECKING:
    import httpx

__all__ = ["Limits", "Session"]

_SHOWN = 300
_FILTERED = ("content_filter", "content_policy_violation")
_BAD_KEY = frozenset({401, 402, 403, 407})
_FATAL = _BAD_KEY | {404, 405}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How hard to press the server."""

    concurrency: int
    """Requests in flight at most."""

    timeout: float
    """Seconds that a request may take from its first byte to the last of its reply."""

    max_reply_bytes: int
    """Longest reply that is read."""

    max_retries: int
    """Further attempts after the first."""

    first_wait: float
    """Seconds before the first further attempt; doubled each time."""

    longest_wait: float
    """Longest wait, also for a server that names one itself."""


@dataclass(kw_only=True, eq=False)
class Session:
    """Asks a batch and hands the answers over as they come."""

    base_url: str
    key: str | None
    limits: Limits
    request: Callable[[Prompt], tuple[str, dict[str, JsonValue]]]
    finish: Callable[[Generation], Generation]
    check_model: Callable[[str | None], None]
    key_hint: str
    read: Callable[[Prompt, object], tuple[Generation, str | None]] = read_reply
    _rng: random.Random = field(default_factory=random.Random, init=False)
    _answers: "queue.SimpleQueue[Generation | BaseException | None]" = field(
        default_factory=queue.SimpleQueue, init=False
    )
    _quiet_until: float = field(default=0.0, init=False)
    _n_lost_in_a_row: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Learn what must not be repeated."""
        self._redactor = Redactor(self.key)

    def ask(self, prompts: Sequence[Prompt]) -> Iterator[Generation]:
        """Yield one generation a prompt, in the order of their arrival."""
        loop = asyncio.new_event_loop()
        stop = asyncio.Event()
        thread = threading.Thread(target=self._run, args=(loop, stop, prompts), daemon=True)
        thread.start()
        try:
            while True:
                item = self._answers.get()
                if item is None:
                    return
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(stop.set)
            thread.join()

    def _run(
        self, loop: asyncio.AbstractEventLoop, stop: asyncio.Event, prompts: Sequence[Prompt]
    ) -> None:
        """Run the loop to the end of the batch; whatever goes wrong is told to the caller."""
        try:
            loop.run_until_complete(self._all(prompts, stop))
            self._answers.put(None)
        except BaseException as error:
            self._answers.put(error)
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    async def _all(self, prompts: Sequence[Prompt], stop: asyncio.Event) -> None:
        """Keep as many requests in flight as allowed until all are answered or `stop` is set."""
        waiting = iter(prompts)

        async with AsyncExitStack() as stack:

            async def work(client: "httpx.AsyncClient") -> None:
                for prompt in waiting:
                    self._answers.put(await self._one(client, prompt))

            clients = [
                await stack.enter_async_context(client)
                for client in self._clients(min(self.limits.concurrency, len(prompts)))
            ]
            workers = [asyncio.create_task(work(client)) for client in clients]
            stopped = asyncio.create_task(stop.wait())
            everything = asyncio.gather(*workers)
            try:
                first: set[asyncio.Future[Any]] = {everything, stopped}
                await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
                if everything.done():
                    everything.result()
            finally:
                for task in (*workers, stopped):
                    task.cancel()
                await asyncio.gather(*workers, everything, stopped, return_exceptions=True)

    def _clients(self, n: int) -> "list[httpx.AsyncClient]":
        """Make a client of one connection for each worker: a shared pool looks through all."""
        import httpx

        context = httpx.create_ssl_context()
        # A compressed reply could be a thousand times larger than what came over the wire.
        headers = {"Accept-Encoding": "identity"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        one = httpx.Limits(max_connections=1, max_keepalive_connections=1)
        timeout = httpx.Timeout(self.limits.timeout)
        return [
            httpx.AsyncClient(headers=headers, timeout=timeout, limits=one, verify=context)
            for _ in range(n)
        ]

    async def _one(self, client: "httpx.AsyncClient", prompt: Prompt) -> Generation:
        """Ask for one prompt until it is answered, refused or lost."""
        path, body = self.request(prompt)
        problem = ""
        for attempt in range(self.limits.max_retries + 1):
            await self._quiet()
            wait, problem, generation = await self._try(client, prompt, path, body)
            if generation is not None:
                self._n_lost_in_a_row = 0
                return generation
            if attempt < self.limits.max_retries:
                await self._wait(attempt, wait)
        self._n_lost_in_a_row += 1
        if self._n_lost_in_a_row >= max(3, self.limits.concurrency):
            raise RunnerError(
                f"{self._n_lost_in_a_row} requests in a row to {self.base_url} failed for good, "
                f"the last with {problem}; see whether the server runs, then start again: answers "
                "so far are kept"
            )
        return Generation(
            prompt_id=prompt.id,
            text=None,
            finish_reason="error",
            error=f"gave up after {self.limits.max_retries + 1} attempts: {problem}",
        )

    async def _try(
        self, client: "httpx.AsyncClient", prompt: Prompt, path: str, body: dict[str, JsonValue]
    ) -> tuple[float | None, str, Generation | None]:
        """Ask once: the wait that the server asks for, the problem, or the answer."""
        import httpx

        try:
            async with asyncio.timeout(self.limits.timeout):
                response, data = await self._send(client, path, body)
        except TimeoutError:
            return None, f"no whole reply within timeout = {self.limits.timeout:g} s", None
        except (httpx.TransportError, httpx.DecodingError) as error:
            told = self._redactor.text(f"{type(error).__name__}: {error}")
            return None, told.rstrip(": "), None
        problem = self._problem(response, data or b"")
        if is_transient(response.status_code):
            asked = retry_after(response.headers)
            if asked is not None and response.status_code in (429, 503):
                self._quiet_until = max(self._quiet_until, time.monotonic() + self._capped(asked))
            return asked, problem, None
        if response.status_code in _FATAL or response.is_redirect:
            raise RunnerError(self._refused(path, response, problem))
        if not response.is_success:
            return None, problem, self._refuse(prompt, problem, data)
        if data is None:
            large = (
                f"the reply is larger than max_reply_bytes = {self.limits.max_reply_bytes:,}; see "
                "what the server sends, ask for fewer tokens, or raise max_reply_bytes"
            )
            return None, large, self._refuse(prompt, large, None)
        try:
            reply = self._redactor.json(parse_json(data))
            generation, model = self.read(prompt, reply)
        except MalformedReplyError as error:
            return None, self._redactor.text(f"a malformed reply: {error}"), None
        self.check_model(model)
        return None, "", self.finish(self._cleared(generation))

    async def _send(
        self, client: "httpx.AsyncClient", path: str, body: dict[str, JsonValue]
    ) -> "tuple[httpx.Response, bytes | None]":
        """Send one request; return the response and its body, None where that is too long."""
        data = bytearray()
        async with client.stream("POST", f"{self.base_url}/{path}", json=body) as response:
            async for part in response.aiter_bytes():
                data += part
                if len(data) > self.limits.max_reply_bytes:
                    return response, None
        return response, bytes(data)

    def _refuse(self, prompt: Prompt, problem: str, data: bytes | None) -> Generation:
        """Make the record of a refused prompt."""
        if _is_filtered(data):
            return Generation(
                prompt_id=prompt.id,
                text=None,
                finish_reason="content_filter",
                error=f"the server's content filter refused the prompt: {problem}",
            )
        return Generation(
            prompt_id=prompt.id,
            text=None,
            finish_reason="error",
            error=f"the server refused this prompt: {problem}",
        )

    def _cleared(self, generation: Generation) -> Generation:
        """Take the key out of texts that were put together from several."""
        names = ("text", "thought", "error")
        texts = {name: getattr(generation, name) for name in names}
        return generation.model_copy(
            update={name: self._redactor.json(text) for name, text in texts.items()}
        )

    async def _quiet(self) -> None:
        """Hold every worker back while the server asked for silence."""
        while (rest := self._quiet_until - time.monotonic()) > 0:
            await asyncio.sleep(rest)

    async def _wait(self, attempt: int, asked: float | None) -> None:
        """Wait longer after each attempt, and at least as long as the server asks."""
        limits = self.limits
        own = backoff(attempt, first=limits.first_wait, longest=limits.longest_wait, rng=self._rng)
        await asyncio.sleep(max(own, self._capped(asked or 0.0)))

    def _capped(self, seconds: float) -> float:
        """Refuse to sleep longer than the user allows."""
        if seconds > self.limits.longest_wait:
            raise RunnerError(
                f"{self.base_url} asks to wait {seconds:.0f} s, more than longest_wait = "
                f"{self.limits.longest_wait:.0f} s; start again later, answers so far are kept"
            )
        return seconds

    def _refused(self, path: str, response: "httpx.Response", problem: str) -> str:
        """Say what a refusal that concerns every prompt may come from."""
        if response.status_code in _BAD_KEY:
            return f"{self.base_url} refused the request ({problem}); {self.key_hint}"
        if response.is_redirect:
            return (
                f"{self.base_url}/{path} is elsewhere ({problem}): requests are not sent on, give "
                "the new address as base_url"
            )
        return (
            f"{self.base_url}/{path} is not served, or not this model ({problem}); see the "
            "model's name, that base_url ends where the server's API begins (often /v1), and "
            "text_as_chat for servers without plain completions"
        )

    def _problem(self, response: "httpx.Response", data: bytes) -> str:
        """Name the status and what the server says about it, the key left out if it is quoted."""
        said = self._redactor.text(data.decode("utf-8", "replace"))
        text = " ".join(said.split())[:_SHOWN]
        return f"HTTP {response.status_code}: {text or self._redactor.text(response.reason_phrase)}"


def _is_filtered(data: bytes | None) -> bool:
    """Tell whether a refusal is that of a content filter, as Azure words it."""
    try:
        reply = None if data is None else parse_json(data)
    except MalformedReplyError:
        return False
    error = reply.get("error") if isinstance(reply, dict) else None
    return isinstance(error, dict) and error.get("code") in (
        "content_filter",
        "content_policy_violation",
    )
