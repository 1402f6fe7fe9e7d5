"""Dump files as streams of plain bytes: packed or not, whole or cut off, in one thread or ahead."""

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypedDict, Unpack

from surface_consistency.errors import DataError, DataWarning, SourceNotFoundError
from surface_consistency_build.unpacking.decoders import DamagedInputError, Decoder, open_decoder

_CHUNK_BYTES = 1 << 20
_DEPTH = 3
MAX_LINE_BYTES = 1 << 26
"""No line of a dump is longer, 64 MiB; Wikidata's longest are a few megabytes. One that seems to be
is a file of another kind, or one that unpacks to nonsense without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadProgress:
    """How far a dump has been read."""

    path: Path
    """The dump."""

    read_bytes: int
    """Bytes of the file used so far; packed ones if it is packed."""

    total_bytes: int
    """Size of the file."""

    plain_bytes: int
    """Plain bytes handed out so far."""

    is_truncated: bool = False
    """Whether the file turned out to be cut off or damaged (only where that is allowed)."""

    is_end_unmarked: bool = False
    """Whether the file was read to its end and nothing in it tells that this is the end."""


ProgressHook = Callable[[ReadProgress], None]


class ReadOptions(TypedDict, total=False):
    """What every reader of dumps takes beside its path, with the meaning that it has there."""

    allow_truncated: bool
    """Keep what came before the place where the dump is cut off or damaged, and warn, rather than
    raise; False by default."""

    progress: ProgressHook | None
    """Called after every chunk, and once at the end."""

    threads: int | None
    """How many threads may unpack bzip2; as many as there are processors by default."""


class MarkedReadOptions(ReadOptions, total=False):
    """What readers take of dumps whose format may lack the mark of an end; XML has one."""

    require_end_mark: bool
    """Refuse a plain file of which nothing tells whether it is whole; False by default."""


def open_dump(
    path: str | os.PathLike[str],
    *,
    allow_truncated: bool = False,
    require_end_mark: bool = False,
    progress: ProgressHook | None = None,
    threads: int | None = None,
) -> "DumpStream":
    r"""Open a dump file, whatever it is packed with.

    The content decides, not the name: gzip, bzip2, xz or zstd with one or many members, or plain.
    bzip2 is unpacked by several threads, each block held against its checksum.

    Args:
        path: The file.
        allow_truncated: Keep what came before the place where the file is cut off or damaged, and
            warn, rather than raise.
        require_end_mark: Refuse a file whose format cannot tell that it is whole, where a reader
            finds it so (`DumpStream.end_unmarked`).
        progress: Called after every chunk, and once at the end.
        threads: How many threads may unpack bzip2; as many as there are processors when None.

    Returns:
        A stream to use in a `with` statement.

    Raises:
        SourceNotFoundError: If there is no such file.
        DataError: If the file is empty, or its content is not what its name says.
        ValueError: If `threads` is below 1.

    Examples:
        >>> import gzip, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = Path(folder.name, "pages.gz")
        >>> _ = path.write_bytes(gzip.compress(b"one\ntwo\n"))
        >>> with open_dump(path) as stream:
        ...     b"".join(stream.chunks())
        b'one\ntwo\n'
        >>> folder.cleanup()
    """
    if threads is not None and threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads}")
    place = Path(path)
    if place.is_dir():
        raise SourceNotFoundError(f"{place} is a folder; give the dump file itself")
    if not place.exists():
        raise SourceNotFoundError(f"there is no dump {place}; fetch it or give its path")
    try:
        decoder = open_decoder(place, threads or os.cpu_count() or 1)
    except DamagedInputError as damage:
        raise DataError(f"{place}: {damage}. Fetch the file again.") from None
    return DumpStream(
        place,
        decoder,
        allow_truncated=allow_truncated,
        require_end_mark=require_end_mark,
        progress=progress,
    )


class DumpStream:
    """The plain bytes of a dump, in order, once; `open_dump` makes one.

    Args:
        path: The file.
        decoder: What unpacks it.
        allow_truncated: Whether damage ends the stream with a warning, not an error.
        require_end_mark: Whether an end that nothing marks is an error.
        progress: Called after every chunk, and once at the end.
    """

    def __init__(
        self,
        path: Path,
        decoder: Decoder,
        *,
        allow_truncated: bool = False,
        require_end_mark: bool = False,
        progress: ProgressHook | None = None,
    ) -> None:
        self.path = path
        """The file."""
        self.plain_bytes = 0
        """Plain bytes handed out so far."""
        self.is_truncated = False
        """Whether the file turned out to be cut off or damaged (only where that is allowed)."""
        self.is_end_unmarked = False
        """Whether a reader came to the end of a plain file of which nothing tells that it is whole;
        a packed one tells by its packing."""
        self.total_bytes = path.stat().st_size
        """Size of the file."""
        self.allow_truncated = allow_truncated
        """Whether damage ends the stream with a warning, not an error."""
        self._require_end_mark = require_end_mark
        self._decoder = decoder
        self._progress = progress
        self._is_at_end = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def compressed_offset(self) -> int:
        """Bytes of the file used so far; by threads, to the block."""
        return self._decoder.offset

    def close(self) -> None:
        """Let go of the file."""
        self._decoder.close()

    def chunks(self, size: int = _CHUNK_BYTES) -> Iterator[bytes]:
        """Give the plain bytes that have not been given yet.

        Args:
            size: Most bytes a chunk.

        Yields:
            Chunks, none of them empty.

        Raises:
            DataError: If the file is cut off or damaged and that is not allowed.
            ValueError: If `size` is below 1.

        Warns:
            DataWarning: If the file is cut off or damaged and that is allowed; once.
        """
        if size < 1:
            raise ValueError(f"size must be at least 1 byte, got {size}")
        while chunk := self._read(size):
            self.plain_bytes += len(chunk)
            self._report()
            yield chunk

    def ends_in_line(self, n_bytes: int, number: int, offset: int) -> bool:
        """Tell whether the dump ends early because a line is longer than any may be.

        Args:
            n_bytes: Bytes of the line that have been read.
            number: Its number, from 1.
            offset: Plain bytes before it.

        Returns:
            Whether it is too long; never where damage is not allowed.

        Raises:
            DataError: If it is too long and damage is not allowed.
        """
        if n_bytes <= MAX_LINE_BYTES:
            return False
        self.end_early(
            f"line {number:,} is longer than {MAX_LINE_BYTES:,} bytes, so this is no dump of lines "
            f"or a damaged one, at plain byte {offset:,}"
        )
        return True

    def _read(self, size: int) -> bytes:
        """Return the next bytes, none at the end or where damage starts."""
        if self._is_at_end:
            return b""
        try:
            chunk = self._decoder.read(size)
        except DamagedInputError as damage:
            self.end_early(
                f"{damage} at byte {self.compressed_offset:,} of {self.total_bytes:,}, "
                f"after {self.plain_bytes:,} plain bytes"
            )
            chunk = b""
        if not chunk:
            self._is_at_end = True
            self._report()
        return chunk

    def end_early(self, problem: str) -> None:
        """Go on as if the dump ended here, if that is allowed; once for each dump.

        Args:
            problem: What is wrong, where, and after how much.

        Raises:
            DataError: If damage is not allowed.

        Warns:
            DataWarning: If it is, and nothing was wrong before.
        """
        if not self.allow_truncated:
            raise DataError(
                f"{self.path}: {problem}. Fetch the file again, or keep what came before it "
                "with `allow_truncated`."
            ) from None
        if not self.is_truncated:
            self.is_truncated = True
            message = f"{self.path}: {problem}; what came before is kept"
            warnings.warn(message, DataWarning, stacklevel=5)
            self._report()

    def end_unmarked(self, lacking: str) -> None:
        """Note that a dump came to an end that its format does not mark, unless it is packed.

        gzip and bzip2 end with a checksum, so that a packed file which is read to its end is whole.
        A plain one may have been cut where a line or statement ends, and nobody can tell.

        Args:
            lacking: What the end would be told by, for the error.

        Raises:
            DataError: If the file is plain and an end mark is required.
        """
        if self._decoder.is_packed or self.is_truncated:
            return
        if self._require_end_mark:
            raise DataError(
                f"{self.path}: {lacking}, so that a file cut off at the end of a line or statement "
                f"looks like this one of {self.total_bytes:,} bytes. Give the packed file, whose "
                "checksum tells, or take it as it is without require_end_mark (--require-end-mark)."
            )
        self.is_end_unmarked = True
        self._report()

    def _report(self) -> None:
        """Tell the caller how far the reading is."""
        if self._progress is not None:
            self._progress(
                ReadProgress(
                    path=self.path,
                    read_bytes=self.compressed_offset,
                    total_bytes=self.total_bytes,
                    plain_bytes=self.plain_bytes,
                    is_truncated=self.is_truncated,
                    is_end_unmarked=self.is_end_unmarked,
                )
            )


@contextmanager
def open_ahead(
    path: str | os.PathLike[str],
    *,
    chunk_bytes: int = _CHUNK_BYTES,
    **options: Unpack[MarkedReadOptions],
) -> Iterator[tuple[DumpStream, Iterator[bytes]]]:
    """Open a dump whose next chunks are unpacked while the last one is used.

    The decoders of gzip and bzip2 let other threads run, so that unpacking and parsing share two
    processors. At most three chunks wait.

    Args:
        path: The dump.
        chunk_bytes: Most bytes a chunk.
        options: How it is read; `progress` is called in the caller's thread, when a chunk is handed
            out.

    Yields:
        The stream, for its path and settings, and the chunks. The stream's counters run ahead of
        the chunks.
    """
    reports: deque[ReadProgress] = deque()
    progress = options.get("progress")
    options["progress"] = None if progress is None else reports.append
    with open_dump(path, **options) as stream, ThreadPoolExecutor(1, "dump") as executor:
        try:
            yield stream, _chunks(stream, executor, chunk_bytes, reports, progress)
        finally:
            executor.shutdown(wait=True, cancel_futures=True)
            if stream.is_truncated or stream.is_end_unmarked:
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
