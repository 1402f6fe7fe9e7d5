"""What unpacks a dump: plain, gzip and bzip2 files as pieces of plain bytes."""

import bz2
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from surface_consistency_build.wikimedia._bzip2_blocks import Bzip2Blocks, IrregularBzip2Error

__all__ = ["DamagedInputError", "Decoder", "open_decoder"]

_READ_BYTES = 1 << 18
_GZIP_WINDOW = 31
_BZIP2_END = 0x177245385090
_OTHER_PACKINGS = {
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"PK\x03\x04": "zip",
}


class DamagedInputError(Exception):
    """The packed input ends early or is damaged; the message says which."""


class Decoder:
    """Reads the plain bytes of a file, here one that is not packed."""

    is_packed = False
    """Whether the file carries a checksum at its end, which has been held against it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    @property
    def offset(self) -> int:
        """Bytes of the file used so far."""
        return self._file.tell()

    def read(self, size: int) -> bytes:
        """Return at most `size` plain bytes, none at the end."""
        return self._file.read(size)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


class _Unpacker(Protocol):
    """What `bz2.BZ2Decompressor` and isal's have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Inflater:
    """The standard library's gzip decoder in the shape of `bz2.BZ2Decompressor`."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=_GZIP_WINDOW)
        self._is_full = False

    @property
    def eof(self) -> bool:
        """Whether the member has ended."""
        return self._inflate.eof

    @property
    def needs_input(self) -> bool:
        """Whether nothing more comes without further input."""
        return not self._is_full and not self._inflate.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        """What followed the member."""
        return self._inflate.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Return at most `max_length` bytes."""
        plain = self._inflate.decompress(self._inflate.unconsumed_tail + data, max(max_length, 0))
        self._is_full = len(plain) == max_length
        return plain


class _SerialDecoder(Decoder):
    """A gzip or bzip2 file of one or many members, unpacked in this thread."""

    is_packed = True

    def __init__(
        self,
        file: BinaryIO,
        make: Callable[[], _Unpacker],
        packing: str,
        errors: tuple[type[Exception], ...],
    ) -> None:
        super().__init__(file)
        self._make = make
        self._packing = packing
        self._errors = errors
        self._unpacker = make()
        self._left = b""
        self._is_done = False

    @property
    def offset(self) -> int:
        """Bytes of the file used so far."""
        return self._file.tell() - len(self._left)

    def read(self, size: int) -> bytes:
        """Return at most `size` plain bytes, none at the end."""
        while not self._is_done:
            if self._unpacker.eof and not self._next_member():
                break
            data = b""
            if self._unpacker.needs_input:
                data = self._left or self._file.read(_READ_BYTES)
                self._left = b""
                if not data:
                    raise DamagedInputError(f"the {self._packing} data end early")
            try:
                plain = self._unpacker.decompress(data, size)
            except self._errors as error:
                late = "; gzip notices late, so bytes before may be wrong" * (
                    self._packing == "gzip"
                )
                raise DamagedInputError(
                    f"the {self._packing} data are damaged ({error}{late})"
                ) from None
            if plain:
                return plain
        return b""

    def _next_member(self) -> bool:
        """Step over padding to what follows a member; False at the end of the file."""
        rest = self._unpacker.unused_data.lstrip(b"\x00")
        while not rest:
            data = self._file.read(_READ_BYTES)
            if not data:
                self._is_done = True
                return False
            rest = data.lstrip(b"\x00")
        self._left = rest
        self._unpacker = self._make()
        return True


class _ParallelBzip2(Decoder):
    """A sound-looking bzip2 file, unpacked by several threads.

    Where they find a fault, the file is unpacked again in this thread, which says where it is and
    gives every byte before that.
    """

    is_packed = True

    def __init__(self, file: BinaryIO, threads: int) -> None:
        super().__init__(file)
        self._threads = Bzip2Blocks(file, threads)
        self._blocks = self._threads.blocks()
        self._block = memoryview(b"")
        self._serial: Decoder | None = None
        self._size = os.fstat(file.fileno()).st_size
        self._is_done = False
        self._plain = 0

    @property
    def offset(self) -> int:
        """Bytes of the file used so far, to the block."""
        if self._serial is not None:
            return self._serial.offset
        return self._size if self._is_done else self._threads.offset

    def read(self, size: int) -> bytes:
        """Return at most `size` plain bytes, none at the end."""
        if self._serial is not None:
            return self._serial.read(size)
        while not self._block and not self._is_done:
            try:
                block = next(self._blocks, None)
            except IrregularBzip2Error:
                self._serial = self._skip_to_here()
                return self._serial.read(size)
            self._is_done = block is None
            self._block = memoryview(block or b"")
        plain, self._block = bytes(self._block[:size]), self._block[size:]
        self._plain += len(plain)
        return plain

    def close(self) -> None:
        """Let go of the file."""
        self._blocks.close()
        self._threads.close()
        super().close()

    def _skip_to_here(self) -> Decoder:
        """Unpack once more, serially, up to the byte that comes next."""
        serial = _serial_bzip2(self._file)
        left = self._plain
        while left and (plain := serial.read(min(left, 1 << 20))):
            left -= len(plain)
        return serial


def open_decoder(path: Path, threads: int) -> Decoder:
    """Open a file by its first bytes; up to `threads` threads unpack bzip2.

    Raises `DamagedInputError` if the content is not what the name says, or nothing that is read
    here.
    """
    file = path.open("rb")
    try:
        head = file.read(64)
        file.seek(0)
        _check_head(path, head)
        if head.startswith(b"\x1f\x8b"):
            return _serial_gzip(file)
        if head.startswith(b"BZh"):
            return _bzip2(file, threads)
    except BaseException:
        file.close()
        raise
    return Decoder(file)


def _check_head(path: Path, head: bytes) -> None:
    """Refuse what is empty, packed otherwise, or not what the name says."""
    if not head:
        raise DamagedInputError("the file is empty")
    for magic, packing in _OTHER_PACKINGS.items():
        if head.startswith(magic):
            raise DamagedInputError(f"{packing} files are not read; unpack it first")
    if path.suffix.lower() in {".gz", ".bz2"} and not head.startswith((b"\x1f\x8b", b"BZh")):
        start = head.decode("latin-1").strip()[:40]
        raise DamagedInputError(
            f"the name says {path.suffix[1:]}, but the content does not; it starts with {start!r}, "
            "as an error page saved under the dump's name would"
        )


def _serial_gzip(file: BinaryIO) -> Decoder:
    """Unpack gzip by isal where it is installed; it is about three times as fast."""
    try:
        from isal import igzip_lib
    except ImportError:
        return _SerialDecoder(file, _Inflater, "gzip", (zlib.error,))
    return _SerialDecoder(
        file,
        lambda: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP),
        "gzip",
        (cast("type[Exception]", igzip_lib.error),),
    )


def _serial_bzip2(file: BinaryIO) -> Decoder:
    """Unpack bzip2 from the start, by the standard library."""
    file.seek(0)
    return _SerialDecoder(file, bz2.BZ2Decompressor, "bzip2", (OSError, ValueError))


def _bzip2(file: BinaryIO, threads: int) -> Decoder:
    """Unpack bzip2 by threads if there are several and the file has its end."""
    if threads > 1 and _has_bzip2_end(file):
        return _ParallelBzip2(file, threads)
    return _serial_bzip2(file)


def _has_bzip2_end(file: BinaryIO) -> bool:
    """Say whether the file ends as a bzip2 stream does: a mark, a checksum, up to 7 bits."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 11))
    tail = int.from_bytes(file.read(), "big")
    file.seek(0)
    return any((tail >> (32 + bits)) & ((1 << 48) - 1) == _BZIP2_END for bits in range(8))
