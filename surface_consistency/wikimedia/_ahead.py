"""Unpack a dump in one thread while another makes sense of it."""

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from surface_consistency.wikimedia.streams import (
    DumpStream,
    ProgressHook,
    ReadProgress,
    open_dump,
)

__all__ = ["open_ahead"]

_CHUNK_BYTES = 1 << 20
_DEPTH = 3


@contextmanager
def open_ahead(
    path: str | os.PathLike[str],
    *,
    allow_truncated: bool,
    progress: ProgressHook | None,
    threads: int | None,
    chunk_bytes: int = _CHUNK_BYTES,
) -> Iterator[tuple[DumpStream, Iterator[bytes]]]:
    """Open a dump whose next chunks are unpacked while the last one is used.

    The decoders of gzip and bzip2 let other threads run, so that unpacking and parsing share two
    processors. At most three chunks wait.

    Args:
        path: The dump.
        allow_truncated: Whether damage ends the chunks with a warning.
        progress: Called in the caller's thread, when a chunk is handed out.
        threads: How many threads may unpack bzip2.
        chunk_bytes: Most bytes a chunk.

    Yields:
        The stream, for its path and settings, and the chunks. The stream's counters run ahead of
        the chunks.
    """
    reports: deque[ReadProgress] = deque()
    hook = None if progress is None else reports.append
    with (
        open_dump(path, allow_truncated=allow_truncated, progress=hook, threads=threads) as stream,
        ThreadPoolExecutor(1, "dump") as executor,
    ):
        try:
            yield stream, _chunks(stream, executor, chunk_bytes, reports, progress)
        finally:
            executor.shutdown(wait=True, cancel_futures=True)
            if stream.is_truncated:
                _pass_on(reports, progress)


def _chunks(
    stream: DumpStream,
    executor: ThreadPoolExecutor,
    chunk_bytes: int,
    reports: deque[ReadProgress],
    progress: ProgressHook | None,
) -> Iterator[bytes]:
    """Yield chunks in order, always asking for the ones after them."""
    source = stream.chunks(chunk_bytes)
    waiting: deque[Future[bytes]] = deque(executor.submit(next, source, b"") for _ in range(_DEPTH))
    while chunk := waiting.popleft().result():
        waiting.append(executor.submit(next, source, b""))
        _pass_on(reports, progress)
        yield chunk
    _pass_on(reports, progress)


def _pass_on(reports: deque[ReadProgress], progress: ProgressHook | None) -> None:
    """Hand what the other thread reported to the caller's function."""
    while reports and progress is not None:
        progress(reports.popleft())
