"""bzip2 by several threads: each block is unpacked by the standard library as a stream of its own.

A block begins at any bit, with 48 bits that mark it and a checksum of its plain bytes; a stream
ends with another mark and a checksum of its blocks' checksums (bzip2's format has no other index).
What stands between two marks, behind a header and before an end of its own, is a stream of one
block, which `bz2` unpacks and checks while other threads run. Whatever is not as it should be ends
this reader: the serial one then finds out whether the file is damaged, and where.

Kept beside rapidgzip 0.16: of 400 damaged files it gave no wrong byte either, but it passes over
the checksum that ends a stream, and refuses zeros between streams.
"""

import bz2
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

_BLOCK = 0x314159265359
_END = 0x177245385090
_MARK_BITS = 48
_CRC_BITS = 32
_HEADER = int.from_bytes(b"BZh9", "big")
_LOW_32 = (1 << 32) - 1
_READ_BYTES = 1 << 18
_LONGEST_BLOCK = 1 << 21
"""Bytes of a packed block; 900,000 plain ones never take as many."""

# A mark that starts `shift` bits into a byte holds these whole bytes, `shift` or more bits later.
_INNER = tuple(
    (mark, shift, ((mark << (8 - shift)) & ((1 << 48) - 1) if shift else mark).to_bytes(6, "big"))
    for mark in (_BLOCK, _END)
    for shift in range(8)
)


class IrregularBzip2Error(Exception):
    """The file is damaged, or holds bits that look like a mark and are none."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A packed block."""

    bits: int
    n_bits: int
    end: int
    """The byte of the file in which it ends."""

    @property
    def crc(self) -> int:
        """The checksum that the block gives."""
        return (self.bits >> (self.n_bits - _MARK_BITS - _CRC_BITS)) & _LOW_32

    def unpack(self) -> bytes:
        """Unpack the block and hold it against its checksum."""
        whole = (_HEADER << self.n_bits | self.bits) << 80 | _END << 32 | self.crc
        n_bits = 32 + self.n_bits + 80
        padding = -n_bits % 8
        unpacker = bz2.BZ2Decompressor()
        try:
            plain = unpacker.decompress((whole << padding).to_bytes((n_bits + padding) // 8, "big"))
        except (OSError, ValueError) as error:
            raise IrregularBzip2Error(str(error)) from None
        if not unpacker.eof or unpacker.unused_data:
            raise IrregularBzip2Error("a block does not end where the next begins")
        return plain


class Bzip2Blocks:
    """The plain bytes of a bzip2 file, a block at a time, unpacked ahead by some threads.

    Args:
        file: The file, at its start; nobody else reads it meanwhile.
        threads: How many threads unpack.
    """

    def __init__(self, file: BinaryIO, threads: int) -> None:
        self.offset = 0
        """Bytes of the file before the end of the block given last."""
        self._file = file
        self._data = b""
        self._base = 0
        self._depth = threads + 1
        self._executor = ThreadPoolExecutor(threads, "bzip2")

    def close(self) -> None:
        """Let go of the threads."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    def blocks(self) -> Generator[bytes, None, None]:
        """Give the plain blocks in order.

        Yields:
            Plain bytes.

        Raises:
            IrregularBzip2Error: If the file is not what it must be; the blocks before are right.
        """
        pieces = self._pieces()
        waiting: deque[tuple[_Piece, Future[bytes]]] = deque()
        try:
            while True:
                for piece in islice(pieces, self._depth - len(waiting)):
                    waiting.append((piece, self._executor.submit(piece.unpack)))
                if not waiting:
                    return
                piece, future = waiting.popleft()
                plain = future.result()
                self.offset = piece.end
                yield plain
        finally:
            self.close()

    def _pieces(self) -> Iterator[_Piece]:
        """Find the blocks of all streams; check each stream's checksum of checksums."""
        while self._begin_stream():
            position, mark = 32, self._bits(32, _MARK_BITS)
            combined = 0
            while mark == _BLOCK:
                start = position
                position, mark = self._next_mark(start + _MARK_BITS + _CRC_BITS)
                piece = _Piece(
                    self._bits(start, position - start), position - start, self._at(position)
                )
                combined = ((combined << 1 | combined >> 31) & _LOW_32) ^ piece.crc
                yield piece
                used = position // 8
                self._drop(used)
                position -= used * 8
            if mark != _END or self._bits(position + _MARK_BITS, _CRC_BITS) != combined:
                raise IrregularBzip2Error("a stream ends otherwise than it should")
            self._drop((position + _MARK_BITS + _CRC_BITS + 7) // 8)

    def _begin_stream(self) -> bool:
        """Step over padding to the header of a stream; False at the end of the file."""
        while True:
            rest = self._data.lstrip(b"\x00")
            self._drop(len(self._data) - len(rest))
            if rest or not self._fill():
                break
        if not self._data:
            return False
        self._bits(0, 32)
        if self._data[:3] != b"BZh" or self._data[3:4] not in b"123456789":
            raise IrregularBzip2Error("what follows a stream is none")
        return True

    def _next_mark(self, position: int) -> tuple[int, int]:
        """Find the next mark at or after a bit."""
        searched = position // 8
        while True:
            mark = self._find(searched, position)
            if mark is not None:
                return mark
            searched = max(searched, len(self._data) - 7)
            if len(self._data) > _LONGEST_BLOCK or not self._fill():
                raise IrregularBzip2Error("a block does not end")

    def _find(self, start: int, position: int) -> tuple[int, int] | None:
        """Find the first mark among the bytes held."""
        stop = len(self._data)
        best: tuple[int, int] | None = None
        for mark, shift, inner in _INNER:
            pattern = inner[: 6 if shift == 0 else 5]
            place = self._data.find(pattern, start, stop)
            while place >= 0:
                bit = place * 8 if shift == 0 else place * 8 - 8 + shift
                if bit >= position and self._has(bit, mark):
                    best, stop = (bit, mark), min(stop, place + 6)
                    break
                place = self._data.find(pattern, place + 1, stop)
        return best

    def _has(self, bit: int, mark: int) -> bool:
        """Tell whether a mark stands, whole, at a bit of the bytes held."""
        return bit + _MARK_BITS <= len(self._data) * 8 and self._bits(bit, _MARK_BITS) == mark

    def _bits(self, start: int, count: int) -> int:
        """Read bits, from those held."""
        end = start + count
        while len(self._data) * 8 < end:
            if not self._fill():
                raise IrregularBzip2Error("the file ends early")
        number = int.from_bytes(self._data[start // 8 : (end + 7) // 8], "big")
        return (number >> (-end % 8)) & ((1 << count) - 1)

    def _at(self, position: int) -> int:
        """Name the byte of the file that holds a bit."""
        return self._base + (position + 7) // 8

    def _drop(self, count: int) -> None:
        """Let go of bytes that are done with."""
        self._data = self._data[count:]
        self._base += count

    def _fill(self) -> bool:
        """Hold more of the file; False at its end."""
        data = self._file.read(_READ_BYTES)
        self._data += data
        return bool(data)
