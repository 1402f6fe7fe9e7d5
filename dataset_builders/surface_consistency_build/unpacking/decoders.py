"""Read compressed (gzip, bzip2, xz, zstd) and uncompressed files as plain bytes, by content."""

import bz2
import lzma
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, Protocol, cast

import zstandard
from isal import igzip_lib

PACKED_SUFFIXES: Final = (".gz", ".bz2", ".xz", ".zst")
"""Suffixes of compressed files."""

_BZIP2_END = 0x177245385090
_OTHER_PACKINGS = {b"7z\xbc\xaf\x27\x1c": "7z", b"PK\x03\x04": "zip"}


class DamagedInputError(Exception):
    """The compressed input ends early or is damaged, as described by the message."""


class Decoder:
    """Reads the plain bytes of a file; this class reads uncompressed files."""

    is_packed = False
    """Whether the file ends with a checksum, which has been compared."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    @property
    def offset(self) -> int:
        """Number of bytes of the file read so far."""
        return self._file.tell()

    def read(self, size: int) -> bytes:
        """Return at most `size` plain bytes; empty at the end."""
        return self._file.read(size)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _Unpacker(Protocol):
    """Common interface of `bz2.BZ2Decompressor` and the decompressors of isal."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _ZstdFrame:
    """zstandard's decoder with the interface of `bz2.BZ2Decompressor`."""

    def __init__(self) -> None:
        self._frame = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
        self._plain = b""

    @property
    def eof(self) -> bool:
        """Whether the frame has ended and all its bytes were returned."""
        return self._frame.eof and not self._plain

    @property
    def needs_input(self) -> bool:
        """Whether further output needs more input."""
        return not self._plain

    @property
    def unused_data(self) -> bytes:
        """The bytes after the frame."""
        return self._frame.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Return at most `max_length` bytes, unless it is negative."""
        plain = self._plain or self._frame.decompress(data)
        stop = len(plain) if max_length < 0 else max_length
        self._plain = plain[stop:]
        return plain[:stop]


@dataclass(frozen=True, slots=True)
class _Packing:
    """A compression format, and its decompressor in one thread."""

    name: str
    magic: bytes
    make: Callable[[], _Unpacker]
    errors: tuple[type[Exception], ...] = (OSError, ValueError)
    read_bytes: int = 1 << 18


_GZIP: Final = _Packing(
    "gzip",
    b"\x1f\x8b",
    partial(igzip_lib.IgzipDecompressor, flag=igzip_lib.DECOMP_GZIP),
    (cast("type[Exception]", igzip_lib.error),),
)
_BZIP2: Final = _Packing("bzip2", b"BZh", bz2.BZ2Decompressor)
_XZ: Final = _Packing("xz", b"\xfd7zXZ\x00", lzma.LZMADecompressor, (lzma.LZMAError,))
# zstandard returns all output of its input: at most 32 MiB for a kilobyte.
_ZSTD: Final = _Packing(
    "zstd", b"\x28\xb5\x2f\xfd", _ZstdFrame, (zstandard.ZstdError,), read_bytes=1 << 10
)
_PACKINGS: Final = (_GZIP, _BZIP2, _XZ, _ZSTD)


class _SerialDecoder(Decoder):
    """A compressed file of one or many members, decompressed in this thread."""

    is_packed = True

    def __init__(self, file: BinaryIO, packing: _Packing) -> None:
        super().__init__(file)
        self._packing = packing
        self._unpacker = packing.make()
        self._left = b""
        self._is_done = False

    @property
    def offset(self) -> int:
        """Number of bytes of the file read so far."""
        return self._file.tell() - len(self._left)

    def read(self, size: int) -> bytes:
        """Return at most `size` plain bytes; empty at the end."""
        while not self._is_done:
            if self._unpacker.eof and not self._next_member():
                break
            data = b""
            if self._unpacker.needs_input:
                data = self._left or self._file.read(self._packing.read_bytes)
                self._left = b""
                if not data:
                    raise DamagedInputError(f"the {self._packing.name} data end early")
            try:
                plain = self._unpacker.decompress(data, size)
            except self._packing.errors as error:
                late = "; gzip detects damage late, so bytes before may be incorrect"
                raise DamagedInputError(
                    f"the {self._packing.name} data are damaged "
                    f"({error}{late if self._packing is _GZIP else ''})"
                ) from None
            if plain:
                return plain
        return b""

    def _next_member(self) -> bool:
        """Skip padding after a member; return False at the end of the file."""
        rest = self._unpacker.unused_data.lstrip(b"\x00")
        while not rest:
            data = self._file.read(self._packing.read_bytes)
            if not data:
                self._is_done = True
                return False
            rest = data.lstrip(b"\x00")
        self._left = rest
        self._unpacker = self._packing.make()
        return True


class _ParallelBzip2(Decoder):
    """A bzip2 file with a valid end, decompressed by several threads of rapidgzip.

    rapidgzip checks each block before it returns a byte of it. If it finds a fault, the file is
    decompressed again in this thread, which reports the place and returns all bytes before it.
    """

    is_packed = True

    def __init__(self, file: BinaryIO, path: Path, threads: int) -> None:
        import rapidgzip

        super().__init__(file)
        self._parallel = rapidgzip.open(str(path), parallelization=threads)
        self._serial: Decoder | None = None
        self._plain = 0

    @property
    def offset(self) -> int:
        """Number of bytes of the file read so far, to the end of a block."""
        if self._serial is not None:
            return self._serial.offset
        return int(self._parallel.tell_compressed() + 7) // 8

    def read(self, size: int) -> bytes:
        """Return at most `size` plain bytes; empty at the end."""
        if self._serial is None:
            try:
                plain: bytes = self._parallel.read(size)
            except (RuntimeError, ValueError, OSError):
                self._serial = self._skip_to_here()
            else:
                self._plain += len(plain)
                return plain
        return self._serial.read(size)

    def close(self) -> None:
        """Close the file."""
        self._parallel.close()
        super().close()

    def _skip_to_here(self) -> Decoder:
        """Decompress again, serially, up to the next byte."""
        serial = _SerialDecoder(self._file, _BZIP2)
        left = self._plain
        while left and (plain := serial.read(min(left, 1 << 20))):
            left -= len(plain)
        return serial


def open_decoder(path: Path, threads: int) -> Decoder:
    """Open a file by its first bytes; up to `threads` threads decompress bzip2.

    Raises `DamagedInputError` if the content does not match the name, or its format is not
    supported.
    """
    file = path.open("rb")
    try:
        head = file.read(64)
        file.seek(0)
        packing = _packing_of(path, head)
        if packing is _BZIP2 and threads > 1 and _has_bzip2_end(file):
            return _ParallelBzip2(file, path, threads)
    except BaseException:
        file.close()
        raise
    return _SerialDecoder(file, packing) if packing else Decoder(file)


def _packing_of(path: Path, head: bytes) -> _Packing | None:
    """Detect the compression; reject empty files, other formats, and content unlike the name."""
    if not head:
        raise DamagedInputError("the file is empty")
    for packing in _PACKINGS:
        if head.startswith(packing.magic):
            return packing
    for magic, name in _OTHER_PACKINGS.items():
        if head.startswith(magic):
            raise DamagedInputError(f"{name} files are not supported; decompress it first")
    if path.suffix.lower() in PACKED_SUFFIXES:
        start = head.decode("latin-1").strip()[:40]
        raise DamagedInputError(
            f"the name ends with {path.suffix}, but the content is not {path.suffix[1:]}; it "
            f"starts with {start!r}, like an error page saved under the dump's name"
        )
    return None


def _has_bzip2_end(file: BinaryIO) -> bool:
    """Check whether the file ends like a bzip2 stream: a marker, a checksum, up to 7 bits."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 11))
    tail = int.from_bytes(file.read(), "big")
    file.seek(0)
    return any((tail >> (32 + bits)) & ((1 << 48) - 1) == _BZIP2_END for bits in range(8))
