"""Send many requests to a web service at once, and retry those that fail temporarily."""

import asyncio
import contextlib
import hashlib
import json
import logging
import math
import os
import queue
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

from pydantic import JsonValue

from surface_consistency.errors import DataError, MissingDependencyError, RecordError, RunnerError
from surface_consistency.reading import parse_json, shown
from surface_consistency.redaction import Redactor

if TYPE_CHECKING:
    import httpx

_logger = logging.getLogger(__name__)

_PASSING: Final = frozenset({408, 409, 425, 429})
_LASTING: Final = frozenset({501, 505})
_BAD_KEY: Final = frozenset({401, 402, 403, 407})
_NOT_SERVED: Final = frozenset({404, 405})
_SHOWN: Final = 300
_SHORT: Final = 1 << 16
"""Bytes of a reply that takes no more than milliseconds to read."""
_RANDOM: Final = random.Random()

_Value = TypeVar("_Value")
_T = TypeVar("_T")


class Request(NamedTuple):
    """A request to a service."""

    body: Mapping[str, JsonValue]
    """The fields."""

    path: str = ""
    """Path that is appended to the address of the client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Generic[_Value]):
    """The reply of a service to one request."""

    place: int
    """Number of the request, from 0."""

    value: _Value | None = None
    """The value that was read from the answer; None if there is none."""

    refusal: str | None = None
    """Why there is no value: status and start of the error reply, or the last failure."""

    refusal_body: JsonValue = None
    """The JSON of the error reply; None if it is not JSON."""


class ReplyCache:
    """Cache of answers on disk, which several processes of one machine can use at once.

    Args:
        path: A file; its folder must exist, on a local disk and not a network drive.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        file: sqlite3.Connection | None = None
        try:
            file = sqlite3.connect(
                path, timeout=60.0, isolation_level=None, check_same_thread=False
            )
            # A power cut may lose the last answers; their requests are then sent again.
            file.execute("PRAGMA journal_mode = WAL")
            file.execute("PRAGMA synchronous = NORMAL")
            file.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, body BLOB)")
        except sqlite3.Error as error:
            if file is not None:
                file.close()
            raise DataError(
                f"{path} is not a cache of answers, or cannot be written ({error}); delete it or "
                "name another file"
            ) from error
        self._file = file

    def get(self, key: str) -> bytes | None:
        """Return the answer to a request.

        Args:
            key: Of its request.

        Returns:
            Its bytes; None if the cache does not contain it.
        """
        with self._lock:
            row = self._file.execute("SELECT body FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def put(self, key: str, body: bytes) -> None:
        """Store an answer.

        Args:
            key: Of its request.
            body: Its bytes.

        Raises:
            DataError: If it cannot be written.
        """
        try:
            with self._lock:
                self._file.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", (key, body))
        except sqlite3.Error as error:
            raise DataError(f"{self._path}: the answer cannot be stored ({error})") from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@dataclass(kw_only=True)
class WebClient:
    """Client that sends many POST requests at once and retries temporary failures.

    Requests that time out, are interrupted, or return a damaged reply or a status of 408, 409, 425,
    429 or 5xx are sent again after a growing wait; a `Retry-After` delays all requests. A request
    that the service rejects (400, 413, 422), and a response that is too long or compressed, give a
    `Reply` without a value; nothing is decompressed. An invalid key, an address that is not served,
    and a redirection raise an error. Cookies are not stored.

    Raises:
        MissingDependencyError: If httpx is not installed.
        ValueError: If a limit is out of range.
    """

    url: str
    """Address of the service."""

    name: str
    """Name of the service in messages."""

    key: str | None = field(default=None, repr=False)
    """Key that is sent as a bearer token; removed from messages and replies, see `Redactor`."""

    key_env: str | None = None
    """Environment variable that the key was read from; None without one."""

    as_form: bool = False
    """Whether bodies are sent as forms instead of JSON."""

    cache: Path | None = None
    """File in which answers are cached, so that no request is sent twice; None for no cache."""

    concurrency: int = 4
    """Maximum number of requests in flight."""

    timeout: float = 60.0
    """Seconds that a request may take from its first byte to the last of its reply."""

    max_retries: int = 5
    """Number of further attempts after the first."""

    first_wait: float = 1.0
    """Seconds before the first further attempt; doubled each time, with jitter."""

    longest_wait: float = 60.0
    """Maximum wait, in seconds; if a service requests a longer one, an error is raised."""

    max_reply_bytes: int = 16 << 20
    """Maximum size of a reply; the rest of a larger one is not read."""

    most_lost: int = 1
    """Number of consecutive requests that fail in all attempts, after which an error is raised."""

    key_hint: str = "check that you have access"
    """Remedy that messages name if the service rejects every request."""

    address_hint: str = "check the address"
    """Remedy that messages name if the service is not found at its address."""

    is_of_one_request: Callable[[JsonValue], bool] = lambda _: False
    """Function that returns whether the JSON of an error reply concerns only its request, at any
    status."""

    def __post_init__(self) -> None:
        """Check the settings, and prepare the removal of the key from texts."""
        try:
            import httpx  # noqa: F401
        except ImportError as error:
            raise MissingDependencyError(f"querying {self.name}", "httpx", "server") from error
        if self.concurrency < 1 or self.max_retries < 0 or self.timeout <= 0 or self.first_wait < 0:
            raise ValueError(
                "concurrency must be at least 1, max_retries and first_wait at least 0, timeout "
                f"above 0; got {self.concurrency}, {self.max_retries}, {self.first_wait}, "
                f"{self.timeout}"
            )
        if self.max_reply_bytes < 1:
            raise ValueError(f"max_reply_bytes must be at least 1, got {self.max_reply_bytes}")
        self.redactor = Redactor(self.key)
        self._is_announced = False

    @property
    def place(self) -> str:
        """Name and address, for messages."""
        return f"{self.name} at {address_of(self.url)}"

    def ask(
        self, requests: Sequence[Request], read: Callable[[int, dict[str, Any]], _Value]
    ) -> Generator[Reply[_Value], None, None]:
        """Send requests and read the replies.

        Args:
            requests: The requests.
            read: Reads the answer to a request from its place and the JSON object without the key;
                a ValueError means that the answer is damaged, and the request is sent again. It is
                called in two threads: long replies are read in a separate one.

        Yields:
            One reply per request, in the order of arrival; see `in_order`.

        Raises:
            RunnerError: If the service cannot be reached, its answer is damaged in the last
                attempt, it requests too long a wait, or it rejects every request (incorrect address
                or key).
            DataError: If answers cannot be written to the cache.
        """
        if not self._is_announced:
            self._is_announced = True
            _logger.info(contact(self.name, self.url, self.key_env))
        cache = None if self.cache is None else ReplyCache(self.cache)
        session = _Session(self, requests, read, cache)
        loop = asyncio.new_event_loop()
        task = loop.create_task(session.run())
        thread = threading.Thread(target=session.drive, args=(loop, task), daemon=True)
        thread.start()
        try:
            while (item := session.replies.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(task.cancel)
            thread.join()
            if cache is not None:
                cache.close()


def address_of(url: str) -> str:
    """Return an address without user, password, query and fragment, for messages.

    Args:
        url: The address.

    Returns:
        Scheme, host, port and path.

    Examples:
        >>> address_of("https://me:secret@localhost:8000/v1?key=secret")
        'https://localhost:8000/v1'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def contact(name: str, url: str, key_env: str | None = None) -> str:
    """Describe in one line the service to which requests are sent; the key is not contained.

    Args:
        name: Name of the service.
        url: Its address; "" if it is not known.
        key_env: Environment variable with the key; None without one.

    Returns:
        The line.
    """
    line = f"contacts: {name} at {address_of(url) if url else 'an address that is not set'}"
    if key_env is None:
        return line
    state = "set" if os.environ.get(key_env) else "not set"
    return f"{line}, with the key in the environment variable {key_env} ({state})"


def in_order(replies: Iterator[Reply[_Value]]) -> Iterator[Reply[_Value]]:
    """Return replies in the order of their requests.

    Args:
        replies: One per request, in any order.

    Yields:
        Each reply, as soon as all earlier ones have arrived.
    """
    early: dict[int, Reply[_Value]] = {}
    n_given = 0
    for reply in replies:
        early[reply.place] = reply
        while n_given in early:
            yield early.pop(n_given)
            n_given += 1


@dataclass(eq=False)
class _Session(Generic[_Value]):
    """The requests of one call."""

    client: WebClient
    requests: Sequence[Request]
    read: Callable[[int, dict[str, Any]], _Value]
    cache: ReplyCache | None
    replies: "queue.SimpleQueue[Reply[_Value] | BaseException | None]" = field(
        default_factory=queue.SimpleQueue
    )
    reader: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, max_workers=1))
    quiet_until: float = 0.0
    n_lost_in_a_row: int = 0

    def drive(self, loop: asyncio.AbstractEventLoop, task: "asyncio.Task[None]") -> None:
        """Run the event loop until all requests have ended; pass any error to the caller."""
        try:
            loop.run_until_complete(task)
            self.replies.put(None)
        except BaseException as error:
            self.replies.put(error)
        finally:
            self.reader.shutdown()
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    async def run(self) -> None:
        """Keep as many requests in flight as allowed until all are answered."""
        waiting = iter(enumerate(self.requests))

        async def work(http: "httpx.AsyncClient") -> None:
            for place, request in waiting:
                self.replies.put(await self._answer(http, place, request))

        async with contextlib.AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(http) for http in self._clients()]
            try:
                async with asyncio.TaskGroup() as group:
                    for http in clients:
                        group.create_task(work(http))
            except BaseExceptionGroup as errors:
                raise errors.exceptions[0] from None

    def _clients(self) -> "list[httpx.AsyncClient]":
        """Create a client with one connection per worker: a shared pool searches all of them."""
        from http.cookiejar import CookieJar, DefaultCookiePolicy

        import httpx

        context = httpx.create_ssl_context()
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if self.client.key:
            headers["Authorization"] = f"Bearer {self.client.key}"
        one = httpx.Limits(max_connections=1, max_keepalive_connections=1)
        return [
            httpx.AsyncClient(
                headers=headers,
                timeout=self.client.timeout,
                limits=one,
                verify=context,
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            )
            for _ in range(min(self.client.concurrency, len(self.requests)))
        ]

    async def _answer(
        self, http: "httpx.AsyncClient", place: int, request: Request
    ) -> Reply[_Value]:
        """Send a request until it is answered or rejected, or no attempt is left."""
        named = json.dumps([self.client.url + request.path, request.body], sort_keys=True)
        key = hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()
        if self.cache is not None and (stored := self.cache.get(key)) is not None:
            return Reply(place=place, value=await self._work(stored, self._value, place))
        problem = ""
        for attempt in range(self.client.max_retries + 1):
            while (rest := self.quiet_until - time.monotonic()) > 0:
                await asyncio.sleep(rest)
            wait, problem, reply = await self._try(http, place, request, key)
            if reply is not None:
                self.n_lost_in_a_row = 0
                return reply
            if attempt < self.client.max_retries:
                await self._wait(attempt, wait)
        return self._lost(place, problem)

    async def _try(
        self, http: "httpx.AsyncClient", place: int, request: Request, key: str
    ) -> tuple[float | None, str, Reply[_Value] | None]:
        """Send a request once; return the requested wait, the problem, and the reply."""
        import httpx

        try:
            async with asyncio.timeout(self.client.timeout):
                response, data = await self._send(http, request)
        except TimeoutError:
            return None, f"no complete reply within timeout = {self.client.timeout:g} s", None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise RunnerError(
                f"{address_of(self.client.url)!r} is not an address of {self.client.name}: {error}"
            ) from error
        except httpx.TransportError as error:
            return None, self._cleared(f"{type(error).__name__}: {error}").rstrip(": "), None
        if response.is_success and isinstance(data, bytes):
            try:
                reply = Reply(place=place, value=await self._work(data, self._value, place))
            except ValueError as error:
                return None, self._cleared(f"a damaged answer: {error}"), None
            if self.cache is not None:
                self.cache.put(key, data)
            return None, "", reply
        detail = data if isinstance(data, str) else await self._work(data, self._stated)
        problem = f"HTTP {response.status_code}: {detail or self._cleared(response.reason_phrase)}"
        if is_transient(response.status_code):
            delay = retry_after(response.headers)
            if delay is not None and response.status_code in (429, 503):
                self.quiet_until = max(self.quiet_until, time.monotonic() + self._capped(delay))
            return delay, problem, None
        body = None if isinstance(data, str) else await self._work(data, _json_or_none)
        ends_all = response.status_code in _BAD_KEY | _NOT_SERVED or response.is_redirect
        if ends_all and not self.client.is_of_one_request(body):
            raise RunnerError(self._ended(request, response, problem))
        refusal = f"{self.client.name} rejected this request: {problem}"
        return None, problem, Reply(place=place, refusal=refusal, refusal_body=body)

    async def _send(
        self, http: "httpx.AsyncClient", request: Request
    ) -> "tuple[httpx.Response, bytes | str]":
        """Send one request; return the response and its body, or why it was not read."""
        url, body = self.client.url + request.path, dict(request.body)
        sent: dict[str, Any] = {"data" if self.client.as_form else "json": body}
        data, limit = bytearray(), self.client.max_reply_bytes
        async with http.stream("POST", url, **sent) as response:
            encoding = response.headers.get("content-encoding", "").strip()
            if encoding.lower() not in ("", "identity"):
                # The size of a compressed reply is known only when it is decompressed.
                return response, (
                    f"the reply has the Content-Encoding {shown(self._cleared(encoding), 40)}, "
                    "which is not decoded; configure the server, or its proxy, to send replies "
                    "uncompressed (the requests contain `Accept-Encoding: identity`)"
                )
            async for part in response.aiter_raw():
                data += part
                if len(data) > limit:
                    return response, (
                        f"the reply is larger than max_reply_bytes = {limit:,}; check the replies "
                        "of the server, request less, or raise max_reply_bytes"
                    )
        return response, bytes(data)

    async def _work(self, data: bytes, read: Callable[..., _T], *before: object) -> _T:
        """Read a reply; a long one in a thread, so that it does not delay other requests."""
        if len(data) <= _SHORT:
            return read(*before, data)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.reader, partial(read, *before, data))

    def _value(self, place: int, data: bytes) -> _Value:
        """Read an answer; a ValueError means that it is not valid."""
        try:
            value = parse_json(data, "the reply")
        except RecordError as error:
            raise ValueError(_not_json(data, error)) from error
        if not isinstance(value, dict):
            raise ValueError("JSON, but not an object")
        return self.read(place, self.client.redactor.json(value))

    def _lost(self, place: int, problem: str) -> Reply[_Value]:
        """Give up a request; raise an error if too many consecutive ones were given up."""
        client = self.client
        attempts = f"{client.max_retries + 1} attempts"
        self.n_lost_in_a_row += 1
        if self.n_lost_in_a_row < client.most_lost:
            return Reply(place=place, refusal=f"gave up after {attempts}: {problem}")
        n = self.n_lost_in_a_row
        raise RunnerError(
            f"{client.place} did not answer in {attempts}; the last problem was: "
            f"{problem}{f' ({n} consecutive requests)' if n > 1 else ''}; check that it runs, "
            "then start again: answers so far are kept in the log of the run, or in the cache "
            "if one is set"
        )

    async def _wait(self, attempt: int, delay: float | None) -> None:
        """Wait longer after each attempt, and at least as long as the service requests."""
        first, longest = self.client.first_wait, self.client.longest_wait
        own = backoff(attempt, first=first, longest=longest, rng=_RANDOM)
        await asyncio.sleep(max(own, self._capped(delay or 0.0)))

    def _capped(self, seconds: float) -> float:
        """Return the wait; raise an error if it exceeds `longest_wait`."""
        if seconds > self.client.longest_wait:
            raise RunnerError(
                f"{self.client.place} requests a wait of {seconds:.0f} s, more than longest_wait "
                f"= {self.client.longest_wait:.0f} s; start again later: answers so far are kept"
            )
        return seconds

    def _ended(self, request: Request, response: "httpx.Response", problem: str) -> str:
        """Describe an error reply that concerns every request, with its possible cause."""
        where = f"{self.client.place}{request.path}"
        if response.status_code in _BAD_KEY:
            return f"{where} rejected the request ({problem}); {self.client.key_hint}"
        if response.is_redirect:
            return (
                f"{where} has moved ({problem}): redirects are not followed; give the new address"
            )
        url = address_of(self.client.url + request.path)
        return (
            f"{self.client.name} is not served at {url}, or you have no access ({problem}); "
            f"{self.client.address_hint}"
        )

    def _cleared(self, text: str) -> str:
        """Return the start of a message of a service or a library, without the key."""
        return " ".join(self.client.redactor.text(text).split())[:_SHOWN]

    def _stated(self, data: bytes) -> str:
        """Return the start of an error reply."""
        return self._cleared(data.decode("utf-8", "replace"))


def _not_json(data: bytes, error: RecordError) -> str:
    """Describe a reply that is not JSON, with the remedy if there is one."""
    start = data[:60].decode("utf-8", "replace")
    first = data.lstrip()[:15].lower()
    if first.startswith((b"data:", b"event:", b":")):
        remedy = 'switch streaming off, for example by `runner_option` extra_body={"stream": false}'
        return f"a stream of server-sent events ({shown(start)}), which is not read; {remedy}"
    if first.startswith((b"<!doctype html", b"<html")):
        remedy = "check that the service runs, and give the address at which its API begins"
        return f"a page in HTML ({shown(start)}), such as of a gateway or a login; {remedy}"
    return f"no readable JSON ({shown(start)}; {error})"


def _json_or_none(data: bytes) -> JsonValue:
    """Read the JSON of an error reply; None if it is not JSON."""
    try:
        value: JsonValue = parse_json(data, "an error reply")
    except RecordError:
        return None
    return value


def is_transient(status: int) -> bool:
    """Return whether a status is temporary: too many requests, time-outs, and server errors.

    Args:
        status: Status of a reply.

    Returns:
        Whether another attempt may succeed.
    """
    return status in _PASSING or (status >= 500 and status not in _LASTING)


def backoff(attempt: int, *, first: float, longest: float, rng: random.Random) -> float:
    """Return the seconds to wait after a failed attempt: doubled each time, jittered.

    Args:
        attempt: Its number from 0.
        first: Seconds after the first.
        longest: Maximum number of seconds.
        rng: Random generator of the jitter, a factor of the wait from 0.5 to 1.

    Returns:
        The seconds.
    """
    return float(min(longest, first * 2**attempt) * (0.5 + rng.random() / 2))


def retry_after(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Return the wait that the server requests, in seconds.

    Args:
        headers: Headers of its reply.
        now: The time; the current time by default.

    Returns:
        The seconds; None if the header is missing or not valid.
    """
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    with contextlib.suppress(ValueError):
        seconds = float(value)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())
