"""Read dump files, compressed or not, as streams of plain bytes."""

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
"""Maximum length of a line, 64 MiB; the longest lines of Wikidata have a few megabytes. A longer
line means that the file has another format or is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadProgress:
    """Progress of reading a dump."""

    path: Path
    """The dump."""

    read_bytes: int
    """Bytes of the file read so far; compressed bytes if the file is compressed."""

    total_bytes: int
    """Size of the file."""

    plain_bytes: int
    """Plain bytes returned so far."""

    is_truncated: bool = False
    """Whether the file is cut off or damaged (only if that is allowed)."""

    is_end_unmarked: bool = False
    """Whether the file was read to its end and has no end marker."""


ProgressHook = Callable[[ReadProgress], None]


class ReadOptions(TypedDict, total=False):
    """Options that all readers of dumps accept."""

    allow_truncated: bool
    """If the dump is cut off or damaged, keep the data before that place and warn instead of
    raising an error; False by default."""

    progress: ProgressHook | None
    """Called after every chunk, and once at the end."""

    threads: int | None
    """Maximum number of threads that decompress bzip2; by default the number of processors."""


class MarkedReadOptions(ReadOptions, total=False):
    """Options of readers of dumps whose format may have no end marker; XML has one."""

    require_end_mark: bool
    """Reject an uncompressed file without an end marker, because it may be incomplete; False by
    default."""


def open_dump(
    path: str | os.PathLike[str],
    *,
    allow_truncated: bool = False,
    require_end_mark: bool = False,
    progress: ProgressHook | None = None,
    threads: int | None = None,
) -> "DumpStream":
    r"""Open a dump file, compressed or not.

    The format is detected from the content, not from the name: gzip, bzip2, xz or zstd with one or
    many members, or uncompressed. Several threads decompress bzip2 and compare each block with its
    checksum.

    Args:
        path: The file.
        allow_truncated: If the file is cut off or damaged, keep the data before that place and warn
            instead of raising an error.
        require_end_mark: Raise an error if a reader finds that the file has no end marker
            (`DumpStream.end_unmarked`).
        progress: Called after every chunk, and once at the end.
        threads: Maximum number of threads that decompress bzip2; None for the number of processors.

    Returns:
        A stream to use in a `with` statement.

    Raises:
        SourceNotFoundError: If the file does not exist.
        DataError: If the file is empty, or its content does not have the format of its name.
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
        raise SourceNotFoundError(f"dump {place} not found; download it or give its path")
    try:
        decoder = open_decoder(place, threads or os.cpu_count() or 1)
    except DamagedInputError as damage:
        raise DataError(f"{place}: {damage}. Download the file again.") from None
    return DumpStream(
        place,
        decoder,
        allow_truncated=allow_truncated,
        require_end_mark=require_end_mark,
        progress=progress,
    )


class DumpStream:
    """The plain bytes of a dump, in order, once; returned by `open_dump`.

    Args:
        path: The file.
        decoder: Decoder that decompresses the file.
        allow_truncated: Whether damage ends the stream with a warning instead of an error.
        require_end_mark: Whether a missing end marker is an error.
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
        """Plain bytes returned so far."""
        self.is_truncated = False
        """Whether the file is cut off or damaged (only if that is allowed)."""
        self.is_end_unmarked = False
        """Whether a reader reached the end of an uncompressed file without an end marker; a
        compressed file ends with a checksum."""
        self.total_bytes = path.stat().st_size
        """Size of the file."""
        self.allow_truncated = allow_truncated
        """Whether damage ends the stream with a warning instead of an error."""
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
        """Bytes of the file read so far; with several threads, to the end of a block."""
        return self._decoder.offset

    def close(self) -> None:
        """Close the file."""
        self._decoder.close()

    def chunks(self, size: int = _CHUNK_BYTES) -> Iterator[bytes]:
        """Yield the plain bytes that have not been returned yet.

        Args:
            size: Maximum number of bytes per chunk.

        Yields:
            Chunks that are not empty.

        Raises:
            DataError: If the file is cut off or damaged and that is not allowed
                (`allow_truncated`).
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
        """Check whether the dump ends early because a line exceeds the maximum length.

        Args:
            n_bytes: Bytes of the line that have been read.
            number: Its number, from 1.
            offset: Plain bytes before it.

        Returns:
            Whether the line is too long; never True if damage is not allowed.

        Raises:
            DataError: If the line is too long and damage is not allowed.
        """
        if n_bytes <= MAX_LINE_BYTES:
            return False
        self.end_early(
            f"line {number:,} is longer than {MAX_LINE_BYTES:,} bytes, so this is not a dump of "
            f"lines, or it is damaged, at plain byte {offset:,}"
        )
        return True

    def _read(self, size: int) -> bytes:
        """Return the next bytes; empty at the end and at the start of damage."""
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
        """Treat this place as the end of the dump, if that is allowed; once per dump.

        Args:
            problem: Description of the damage, its place, and the amount of data before it.

        Raises:
            DataError: If damage is not allowed.

        Warns:
            DataWarning: If damage is allowed, and none was found before.
        """
        if not self.allow_truncated:
            raise DataError(
                f"{self.path}: {problem}. Download the file again, or keep the data before it with "
                "`allow_truncated`."
            ) from None
        if not self.is_truncated:
            self.is_truncated = True
            message = f"{self.path}: {problem}; the data before it is kept"
            warnings.warn(message, DataWarning, stacklevel=5)
            self._report()

    def end_unmarked(self, lacking: str) -> None:
        """Record that a dump ended without an end marker, unless it is compressed.

        gzip and bzip2 end with a checksum, so a compressed file that is read to its end is
        complete. An uncompressed file may have been cut at the end of a line or statement, which
        cannot be detected.

        Args:
            lacking: Description of the missing end marker, for the error.

        Raises:
            DataError: If the file is uncompressed and an end marker is required.
        """
        if self._decoder.is_packed or self.is_truncated:
            return
        if self._require_end_mark:
            raise DataError(
                f"{self.path}: {lacking}, so that a file cut off at the end of a line or statement "
                f"looks like this one of {self.total_bytes:,} bytes. Give the compressed file, "
                "which has a checksum, or omit require_end_mark (--require-end-mark)."
            )
        self.is_end_unmarked = True
        self._report()

    def _report(self) -> None:
        """Report the progress of reading to the caller."""
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
    """Open a dump whose next chunks are decompressed while the last one is used.

    The decoders of gzip and bzip2 release the interpreter lock, so decompression and parsing use
    two processors. At most three chunks wait.

    Args:
        path: The dump.
        chunk_bytes: Maximum number of bytes per chunk.
        options: Options of the reader; `progress` is called in the caller's thread, when a chunk is
            returned.

    Yields:
        The stream, for its path and settings, and the chunks. The stream's counters are ahead of
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
    """Yield chunks in order, and request the following ones in advance."""
    source = stream.chunks(chunk_bytes)
    waiting: deque[Future[bytes]] = deque(executor.submit(next, source, b"") for _ in range(_DEPTH))
    while chunk := waiting.popleft().result():
        waiting.append(executor.submit(next, source, b""))
        _pass_on(reports, progress)
        yield chunk
    _pass_on(reports, progress)


def _pass_on(reports: deque[ReadProgress], progress: ProgressHook | None) -> None:
    """Pass the reports of the other thread to the caller's function."""
    while reports and progress is not None:
        progress(reports.popleft())
