"""Requests to web services that may fail: asked again where that may help, answers kept."""

import contextlib
import hashlib
import json
import math
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from surface_consistency.errors import DataError, MissingDependencyError, RunnerError

if TYPE_CHECKING:
    import httpx

__all__ = ["Reply", "ReplyCache", "WebClient", "backoff", "is_transient", "retry_after"]

_PASSING: Final = frozenset({408, 409, 425, 429})
_LASTING: Final = frozenset({501, 505})
_REFUSED: Final = frozenset({400, 413, 414, 422})
_SHOWN: Final = 200

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Generic[_Value]):
    """What a service said to one request."""

    value: _Value | None
    """What was read of its answer; None where it refused the request."""

    refusal: str | None = None
    """Why, where it did: its status and the start of what it said."""


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
    """Sends POST requests, several at once, each again while that may help."""

    url: str
    """Where requests go."""

    name: str
    """What the service is called in messages."""

    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of every request."""

    cache: Path | None = None
    """File in which answers are kept, so that nothing is asked twice; None for none."""

    concurrency: int = 4
    """Requests in flight at most."""

    timeout: float = 60.0
    """Seconds that a request may take."""

    max_retries: int = 5
    """Further attempts after the first."""

    first_wait: float = 1.0
    """Seconds before the first further attempt; doubled each time."""

    longest_wait: float = 60.0
    """Longest wait, also for a server that names one itself."""

    max_reply_bytes: int = 64 << 20
    """Longest reply that is read."""

    def ask(
        self,
        bodies: Sequence[Mapping[str, Any]],
        read: Callable[[bytes], _Value],
        *,
        as_form: bool = False,
    ) -> Iterator[Reply[_Value]]:
        """Ask about many things.

        Args:
            bodies: What each request says.
            read: Reads an answer; a ValueError of it means that the answer is damaged, and the
                request is sent again.
            as_form: Whether bodies are sent as a form rather than as JSON.

        Yields:
            The replies, in order.

        Raises:
            MissingDependencyError: If httpx is not installed.
            RunnerError: If the service cannot be reached, answers damaged to the last attempt, or
                refuses every request (its address or key is wrong).
            DataError: If answers cannot be kept.
        """
        try:
            import httpx
        except ImportError as error:
            raise MissingDependencyError(f"asking {self.name}", "httpx", "server") from error
        cache = None if self.cache is None else ReplyCache(self.cache)
        headers = {"Accept": "application/json", **self.headers}
        with contextlib.ExitStack() as stack:
            if cache is not None:
                stack.callback(cache.close)
            client = stack.enter_context(httpx.Client(headers=headers, timeout=self.timeout))
            workers = stack.enter_context(ThreadPoolExecutor(self.concurrency))
            tasks = [
                workers.submit(self._one, client, cache, body, read, as_form=as_form)
                for body in bodies
            ]
            try:
                for task in tasks:
                    yield task.result()
            finally:
                for task in tasks:
                    task.cancel()

    def _one(
        self,
        client: "httpx.Client",
        cache: ReplyCache | None,
        body: Mapping[str, Any],
        read: Callable[[bytes], _Value],
        *,
        as_form: bool,
    ) -> Reply[_Value]:
        """Ask until there is an answer or a refusal."""
        told = json.dumps([self.url, body], sort_keys=True)
        key = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
        if cache is not None and (kept := cache.get(key)) is not None:
            return Reply(value=read(kept))
        problem = ""
        for attempt in range(self.max_retries + 1):
            wait, problem, data = self._try(client, body, as_form=as_form)
            if data is not None:
                try:
                    value = read(data)
                except ValueError as error:
                    problem = f"a damaged answer: {error}"
                else:
                    if cache is not None:
                        cache.put(key, data)
                    return Reply(value=value)
            elif wait is None and problem.startswith("refused"):
                return Reply(value=None, refusal=problem)
            if attempt < self.max_retries:
                self._sleep(attempt, wait or 0.0)
        raise RunnerError(
            f"{self.name} at {self.url} gave no answer in {self.max_retries + 1} attempts, at last "
            f"{problem}; see whether it runs, then start again: what was answered is kept where "
            "there is a cache"
        )

    def _try(
        self, client: "httpx.Client", body: Mapping[str, Any], *, as_form: bool
    ) -> tuple[float | None, str, bytes | None]:
        """Ask once: the wait that the server asks for, the problem, or the answer."""
        import httpx

        sent: dict[str, Any] = {"data" if as_form else "json": dict(body)}
        data = bytearray()
        try:
            with client.stream("POST", self.url, **sent) as response:
                for part in response.iter_bytes():
                    data += part
                    if len(data) > self.max_reply_bytes:
                        raise RunnerError(
                            f"{self.name} at {self.url} sent more than {self.max_reply_bytes:,} "
                            "bytes; see what is served there"
                        )
        except (httpx.TransportError, httpx.DecodingError) as error:
            return None, f"{type(error).__name__}: {error}".rstrip(": "), None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise RunnerError(f"{self.url!r} is no address of {self.name}: {error}") from error
        if response.is_success:
            return None, "", bytes(data)
        text = " ".join(data.decode("utf-8", "replace").split())[:_SHOWN]
        problem = f"HTTP {response.status_code}: {text or response.reason_phrase}"
        if is_transient(response.status_code):
            return retry_after(response.headers), problem, None
        if response.status_code in _REFUSED:
            return None, f"refused with {problem}", None
        raise RunnerError(
            f"{self.name} is not served at {self.url}, or not to you ({problem}); see the address"
        )

    def _sleep(self, attempt: int, asked: float) -> None:
        """Wait longer after each attempt, and at least as long as the server asks."""
        if asked > self.longest_wait:
            raise RunnerError(
                f"{self.name} at {self.url} asks to wait {asked:.0f} s, more than longest_wait = "
                f"{self.longest_wait:.0f} s; start again later"
            )
        own = backoff(attempt, first=self.first_wait, longest=self.longest_wait, rng=_RANDOM)
        time.sleep(max(own, asked))


_RANDOM: Final = random.Random()


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
