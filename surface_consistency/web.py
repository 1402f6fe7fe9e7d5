"""Requests to web services that may fail: many at once, asked again where that may help."""

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
from surface_consistency.reading import parse_json
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
    """What is sent to a service."""

    body: Mapping[str, JsonValue]
    """The fields."""

    path: str = ""
    """Where to, behind the address of the client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Generic[_Value]):
    """What a service said to one request."""

    place: int
    """Which request, from 0."""

    value: _Value | None = None
    """What was read of its answer; None where there is none."""

    refusal: str | None = None
    """Why there is none: status and start of what the service said, or what failed to the last."""

    refusal_body: JsonValue = None
    """The JSON with which it refused the request; None where there was none."""


class ReplyCache:
    """Answers of a service on the disk, for many processes of one machine at once.

    Args:
        path: A file; its folder must exist, on a disk of this machine and not of the network.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        file: sqlite3.Connection | None = None
        try:
            file = sqlite3.connect(
                path, timeout=60.0, isolation_level=None, check_same_thread=False
            )
            # A power cut may lose the last answers, which are then asked for again.
            file.execute("PRAGMA journal_mode = WAL")
            file.execute("PRAGMA synchronous = NORMAL")
            file.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, body BLOB)")
        except sqlite3.Error as error:
            if file is not None:
                file.close()
            raise DataError(
                f"{path} is no cache of answers, or cannot be written ({error}); delete it or name "
                "another"
            ) from error
        self._file = file

    def get(self, key: str) -> bytes | None:
        """Look an answer up.

        Args:
            key: Of its request.

        Returns:
            Its bytes; None where there is none.
        """
        with self._lock:
            row = self._file.execute("SELECT body FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def put(self, key: str, body: bytes) -> None:
        """Keep an answer.

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
            raise DataError(f"{self._path}: the answer cannot be kept ({error})") from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@dataclass(kw_only=True)
class WebClient:
    """Sends POST requests, many at once; patient with a busy service, firm with a wrong one.

    Requests that time out, break off, come back damaged or with a status of 408, 409, 425, 429 or
    5xx are sent again after a growing wait; a `Retry-After` is honoured by all requests. What the
    service refuses (400, 413, 422) or answers at too great a length is a reply without a value, and
    so is a compressed reply: requests ask for none, and nothing is decompressed. A wrong key, an
    address where nothing is served, and a redirection end all. Cookies are not stored.

    Raises:
        MissingDependencyError: If httpx is not installed.
        ValueError: If a limit is out of range.
    """

    url: str
    """Where the service is."""

    name: str
    """What it is called in messages."""

    key: str | None = field(default=None, repr=False)
    """Sent as a bearer token; removed from messages and replies, see `Redactor`."""

    key_env: str | None = None
    """Environment variable that the key was read from; None for none."""

    as_form: bool = False
    """Whether bodies are sent as forms rather than as JSON."""

    cache: Path | None = None
    """File in which answers are kept, so that nothing is asked twice; None for none."""

    concurrency: int = 4
    """Requests in flight at most."""

    timeout: float = 60.0
    """Seconds that a request may take from its first byte to the last of its reply."""

    max_retries: int = 5
    """Further attempts after the first."""

    first_wait: float = 1.0
    """Seconds before the first further attempt; doubled each time, with jitter."""

    longest_wait: float = 60.0
    """Longest wait; a service that asks for a longer one ends all."""

    max_reply_bytes: int = 16 << 20
    """Maximum size of a reply; of a larger one no more is read."""

    most_lost: int = 1
    """Requests in a row that end all when they get no answer in all attempts."""

    key_hint: str = "see whether it lets you ask"
    """What to do when it refuses everything."""

    address_hint: str = "see the address"
    """What to do when it is not where it was asked."""

    is_of_one_request: Callable[[JsonValue], bool] = lambda _: False
    """Whether the JSON of a refusal concerns one request alone, whatever its status."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, and learn what must not be repeated."""
        try:
            import httpx  # noqa: F401
        except ImportError as error:
            raise MissingDependencyError(f"asking {self.name}", "httpx", "server") from error
        if self.concurrency < 1 or self.max_retries < 0 or self.timeout <= 0 or self.first_wait < 0:
            raise ValueError(
                "concurrency is at least 1, max_retries and first_wait at least 0, timeout above "
                f"0; got {self.concurrency}, {self.max_retries}, {self.first_wait}, {self.timeout}"
            )
        if self.max_reply_bytes < 1:
            raise ValueError(f"max_reply_bytes is at least 1, got {self.max_reply_bytes}")
        self.redactor = Redactor(self.key)
        self._is_announced = False

    @property
    def place(self) -> str:
        """Name and address, for messages."""
        return f"{self.name} at {address_of(self.url)}"

    def ask(
        self, requests: Sequence[Request], read: Callable[[int, dict[str, Any]], _Value]
    ) -> Generator[Reply[_Value], None, None]:
        """Send requests and read what comes.

        Args:
            requests: What is sent.
            read: Reads the answer to a request, by its place and the JSON object, free of the key;
                a ValueError of it means that the answer is damaged, and the request is sent again.
                It is called in two threads: long replies are read in one of their own.

        Yields:
            One reply a request, in the order of arrival; see `in_order`.

        Raises:
            RunnerError: If the service cannot be reached, answers damaged to the last attempt,
                asks for too long a wait, or refuses every request (its address or key is wrong).
            DataError: If answers cannot be kept.
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
    """Describe in a line what requests are sent to; the key is not in it.

    Args:
        name: What the service is called.
        url: Its address; "" if it is not known.
        key_env: Environment variable with the key; None for none.

    Returns:
        The line.
    """
    line = f"contacts: {name} at {address_of(url) if url else 'an address that is not set'}"
    if key_env is None:
        return line
    state = "set" if os.environ.get(key_env) else "not set"
    return f"{line}, with the key in the environment variable {key_env} ({state})"


def in_order(replies: Iterator[Reply[_Value]]) -> Iterator[Reply[_Value]]:
    """Put replies into the order of their requests.

    Args:
        replies: One for each request, in any order.

    Yields:
        Them, as soon as all before them are there.
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
    """The requests of one call on their way."""

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
        """Run the loop to the end of all; whatever goes wrong is told to the caller."""
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
        """Make a client of one connection for each worker: a shared pool looks through all."""
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
        """Ask until there is an answer or a refusal, or nothing helps."""
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
        """Ask once: the wait that the service asks for, the problem, or the reply."""
        import httpx

        try:
            async with asyncio.timeout(self.client.timeout):
                response, data = await self._send(http, request)
        except TimeoutError:
            return None, f"no whole reply within timeout = {self.client.timeout:g} s", None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise RunnerError(
                f"{address_of(self.client.url)!r} is no address of {self.client.name}: {error}"
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
        said = data if isinstance(data, str) else await self._work(data, self._stated)
        problem = f"HTTP {response.status_code}: {said or self._cleared(response.reason_phrase)}"
        if is_transient(response.status_code):
            delay = retry_after(response.headers)
            if delay is not None and response.status_code in (429, 503):
                self.quiet_until = max(self.quiet_until, time.monotonic() + self._capped(delay))
            return delay, problem, None
        body = None if isinstance(data, str) else await self._work(data, _json_or_none)
        ends_all = response.status_code in _BAD_KEY | _NOT_SERVED or response.is_redirect
        if ends_all and not self.client.is_of_one_request(body):
            raise RunnerError(self._ended(request, response, problem))
        refusal = f"{self.client.name} refused this request: {problem}"
        return None, problem, Reply(place=place, refusal=refusal, refusal_body=body)

    async def _send(
        self, http: "httpx.AsyncClient", request: Request
    ) -> "tuple[httpx.Response, bytes | str]":
        """Send one request; return the response and its body, or why that is not read."""
        url, body = self.client.url + request.path, dict(request.body)
        sent: dict[str, Any] = {"data" if self.client.as_form else "json": body}
        data, limit = bytearray(), self.client.max_reply_bytes
        async with http.stream("POST", url, **sent) as response:
            encoding = response.headers.get("content-encoding", "").strip()
            if encoding.lower() not in ("", "identity"):
                # The size of a compressed reply is known only when it is decompressed.
                return response, (
                    f"the reply has the Content-Encoding {self._cleared(encoding)[:40]!r}, which "
                    "is not decoded; let the server, or the proxy before it, send replies "
                    "uncompressed (the requests say `Accept-Encoding: identity`)"
                )
            async for part in response.aiter_raw():
                data += part
                if len(data) > limit:
                    return response, (
                        f"the reply is larger than max_reply_bytes = {limit:,}; see what the "
                        "server sends, request less, or raise max_reply_bytes"
                    )
        return response, bytes(data)

    async def _work(self, data: bytes, read: Callable[..., _T], *before: object) -> _T:
        """Read a reply; a long one in a thread, so that time limits and other requests go on."""
        if len(data) <= _SHORT:
            return read(*before, data)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.reader, partial(read, *before, data))

    def _value(self, place: int, data: bytes) -> _Value:
        """Read an answer; a ValueError means that it is none."""
        try:
            value = parse_json(data, "there")
        except RecordError as error:
            raise ValueError(_not_json(data, error)) from error
        if not isinstance(value, dict):
            raise ValueError("JSON, but no object")
        return self.read(place, self.client.redactor.json(value))

    def _lost(self, place: int, problem: str) -> Reply[_Value]:
        """Give a request up; end all when too many in a row were."""
        client = self.client
        attempts = f"{client.max_retries + 1} attempts"
        self.n_lost_in_a_row += 1
        if self.n_lost_in_a_row < client.most_lost:
            return Reply(place=place, refusal=f"gave up after {attempts}: {problem}")
        n = self.n_lost_in_a_row
        raise RunnerError(
            f"{client.place} gave no answer in {attempts}, at last {problem}"
            f"{f', to {n} requests in a row' if n > 1 else ''}; see whether it runs, then start "
            "again: what was answered is kept in the log of the run, or where there is a cache"
        )

    async def _wait(self, attempt: int, delay: float | None) -> None:
        """Wait longer after each attempt, and at least as long as the service asks."""
        first, longest = self.client.first_wait, self.client.longest_wait
        own = backoff(attempt, first=first, longest=longest, rng=_RANDOM)
        await asyncio.sleep(max(own, self._capped(delay or 0.0)))

    def _capped(self, seconds: float) -> float:
        """Refuse to sleep longer than the user allows."""
        if seconds > self.client.longest_wait:
            raise RunnerError(
                f"{self.client.place} asks to wait {seconds:.0f} s, more than longest_wait = "
                f"{self.client.longest_wait:.0f} s; start again later, answers so far are kept"
            )
        return seconds

    def _ended(self, request: Request, response: "httpx.Response", problem: str) -> str:
        """Say what a refusal that concerns every request may come from."""
        where = f"{self.client.place}{request.path}"
        if response.status_code in _BAD_KEY:
            return f"{where} refused the request ({problem}); {self.client.key_hint}"
        if response.is_redirect:
            return (
                f"{where} is elsewhere ({problem}): requests are not sent on, give the new address"
            )
        url = address_of(self.client.url + request.path)
        return (
            f"{self.client.name} is not served at {url}, or not to you ({problem}); "
            f"{self.client.address_hint}"
        )

    def _cleared(self, text: str) -> str:
        """Return the start of what a service or a library says, without the key."""
        return " ".join(self.client.redactor.text(text).split())[:_SHOWN]

    def _stated(self, data: bytes) -> str:
        """Return the start of a reply that is a refusal."""
        return self._cleared(data.decode("utf-8", "replace"))


def _not_json(data: bytes, error: RecordError) -> str:
    """Name what a service sent in place of JSON, and the remedy if there is one."""
    start = data[:60].decode("utf-8", "replace")
    first = data.lstrip()[:15].lower()
    if first.startswith((b"data:", b"event:", b":")):
        remedy = 'switch streaming off, such as by `runner_option` extra_body={"stream": false}'
        return f"a stream of server-sent events ({start!r}), which is not read; {remedy}"
    if first.startswith((b"<!doctype html", b"<html")):
        remedy = "see whether the service runs, and give the address at which its API begins"
        return f"a page in HTML ({start!r}), such as of a gateway or a login; {remedy}"
    return f"no readable JSON ({start!r}; {error})"


def _json_or_none(data: bytes) -> JsonValue:
    """Read the JSON of a refusal, if it is JSON."""
    try:
        value: JsonValue = parse_json(data, "a refusal")
    except RecordError:
        return None
    return value


def is_transient(status: int) -> bool:
    """Tell whether a status may pass: too many requests, time-outs, and a server in trouble.

    Args:
        status: Status of a reply.

    Returns:
        Whether asking again may help.
    """
    return status in _PASSING or (status >= 500 and status not in _LASTING)


def backoff(attempt: int, *, first: float, longest: float, rng: random.Random) -> float:
    """Return the seconds to wait after a failed attempt: doubled each time, jittered.

    Args:
        attempt: Its number from 0.
        first: Seconds after the first.
        longest: Most seconds.
        rng: Draws between half the wait and the whole.

    Returns:
        The seconds.
    """
    return float(min(longest, first * 2**attempt) * (0.5 + rng.random() / 2))


def retry_after(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Return the seconds that the server asks to wait.

    Args:
        headers: Headers of its reply.
        now: The time; the present by default.

    Returns:
        The seconds; None when it does not say, or nonsense.
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
