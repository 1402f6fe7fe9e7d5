"""A zip archive of rows of integers with millions of members, of which few are read.

`np.load` and `zipfile` make an object of every member: 2.7 s and 328 MB for 400,000, where this
takes 0.9 s and 49 MB. A member takes 16 bytes: a hash of its key and the place of its entry in the
archive's directory, which stays on the disk.
"""

import mmap
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

_END: Final = struct.Struct("<4s4H2LH")
_END64: Final = struct.Struct("<4sQ2H2L4Q")
_LOCATOR: Final = struct.Struct("<4sLQL")
_ENTRY: Final = struct.Struct("<4s6H3L5H2L")
_LOCAL: Final = struct.Struct("<4s5H3L2H")
_LONGEST_COMMENT: Final = 1 << 16
_FULL: Final = 0xFFFFFFFF
_UTF8: Final = 1 << 11
_ENCRYPTED: Final = 1
_STORED, _DEFLATED = 0, 8
_SUFFIX: Final = ".npy"
_CHUNK: Final = 1 << 16
_LARGEST: Final = 1 << 30
_UNSUSPECTED: Final = 1 << 26
_DENSEST: Final = 50
"""Rising numbers of documents are packed to a third; a row of zeros to a thousandth."""
_HEADER: Final = re.compile(
    rb"\x93NUMPY(?:\x01\x00..|\x02\x00....)\{'descr': '([<>|][iu][1248])', "
    rb"'fortran_order': (?:True|False), 'shape': \((\d{1,18})L?,\), *\} *\n",
    re.DOTALL,
)
"""What stands before a row of integers, as numpy writes it."""


class BrokenArchiveError(ValueError):
    """A file is no zip archive, or damaged."""


class ArrayArchive:
    """The members of an npz file by a key of their names.

    Args:
        path: The file.
        key: Maps the name of a member, without ".npy", to what it is looked up by; members whose
            names have one key belong together.

    Raises:
        BrokenArchiveError: If the file is no zip archive.
    """

    def __init__(self, path: Path, key: Callable[[str], str]) -> None:
        self._key = key
        self._file = path.open("rb")
        try:
            # An empty file cannot be mapped.
            if not path.stat().st_size:
                raise BrokenArchiveError("it is empty")
            self._bytes = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
            places, hashes = self._scan(*self._directory())
        except BaseException:
            self._file.close()
            raise
        order = np.argsort(hashes, kind="stable")
        self._hashes, self._places = hashes[order], places[order]

    def close(self) -> None:
        """Close the file."""
        self._bytes.close()
        self._file.close()

    def __len__(self) -> int:
        """Count the distinct keys."""
        return int(np.count_nonzero(np.diff(self._hashes))) + 1 if self._hashes.size else 0

    def find(self, key: str) -> list[int]:
        """Find the members of a key.

        Args:
            key: The key.

        Returns:
            Places of their entries in the directory.
        """
        wanted = np.int64(hash(key))
        first, last = np.searchsorted(self._hashes, [wanted, wanted + np.int64(1)])
        return [
            place
            for place in self._places[first:last].tolist()
            if self._key(self._name(place)) == key
        ]

    def read(self, place: int) -> tuple[str, npt.NDArray[Any]]:
        """Read an array.

        Args:
            place: Place of its entry, of `find`.

        Returns:
            The name of the member, and the array.

        Raises:
            BrokenArchiveError: If it is damaged, encrypted, no row of integers, larger than a
                gibibyte, or larger than 64 MiB and than 50 times what is packed; names it.
        """
        entry = _ENTRY.unpack_from(self._bytes, place)
        name = self._name(place)
        flags, method, crc = entry[3], entry[4], entry[7]
        n_packed, n_plain, start = self._sizes(place, entry)
        if flags & _ENCRYPTED or method not in (_STORED, _DEFLATED):
            raise BrokenArchiveError(f"{name!r} is encrypted or packed in an unknown way")
        most = min(_LARGEST, max(_UNSUSPECTED, _DENSEST * min(n_packed, len(self._bytes))))
        if n_plain > most:
            raise BrokenArchiveError(
                f"{name!r} unpacks to {n_plain:,} bytes, where at most {most:,} are read"
            )
        if start + _LOCAL.size > len(self._bytes) or self._bytes[start : start + 4] != b"PK\3\4":
            raise BrokenArchiveError(f"{name!r} is not where the directory says")
        local = _LOCAL.unpack_from(self._bytes, start)
        begin = start + _LOCAL.size + local[9] + local[10]
        packed = self._bytes[begin : begin + n_packed]
        try:
            data = packed
            if method == _DEFLATED:
                data = zlib.decompressobj(-15).decompress(packed, n_plain + 1)
        except zlib.error as error:
            raise BrokenArchiveError(f"{name!r} cannot be unpacked: {error}") from error
        if len(data) != n_plain or zlib.crc32(data) != crc:
            raise BrokenArchiveError(f"{name!r} is cut off or damaged")
        header = _HEADER.match(data)
        if header is None:
            raise BrokenArchiveError(
                f"{name!r} must hold numbers of documents, a row of integers; "
                f"it begins {data[:80]!r}"
            )
        kind, length = np.dtype(header[1].decode()), int(header[2])
        if len(data) - header.end() != length * kind.itemsize:
            raise BrokenArchiveError(
                f"the header of {name!r} says {length:,} numbers of {kind.itemsize} bytes, and "
                f"{len(data) - header.end():,} bytes follow"
            )
        return name, np.frombuffer(data, dtype=kind, offset=header.end())

    def _directory(self) -> tuple[int, int, int]:
        """Find the directory: its first byte, its bytes and its entries."""
        tail = max(0, len(self._bytes) - _LONGEST_COMMENT - _END.size)
        end = self._bytes.rfind(b"PK\5\6", tail)
        if end < 0 or end + _END.size > len(self._bytes):
            raise BrokenArchiveError("it does not end as a zip archive")
        _, _, _, _, n, size, start, _ = _END.unpack_from(self._bytes, end)
        locator = end - _LOCATOR.size
        if locator >= 0 and self._bytes[locator : locator + 4] == b"PK\6\7":
            place = _LOCATOR.unpack_from(self._bytes, locator)[2]
            if self._bytes[place : place + 4] != b"PK\6\6" or place + _END64.size > end:
                raise BrokenArchiveError("its zip64 directory is not where it says")
            n, size, start = _END64.unpack_from(self._bytes, place)[7:10]
        if start + size > end:
            raise BrokenArchiveError("its directory lies beyond its end")
        return start, size, n

    def _scan(
        self, start: int, size: int, n: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Go through the directory once: place and hash of each entry."""
        places = np.fromiter(self._entries(start, size), dtype=np.int64, count=-1)
        if places.size != n:
            raise BrokenArchiveError(f"its directory lists {places.size:,} of {n:,} members")
        hashes = np.empty(places.size, dtype=np.int64)
        for first in range(0, places.size, _CHUNK):
            some = places[first : first + _CHUNK].tolist()
            hashes[first : first + _CHUNK] = [hash(self._key(self._name(p))) for p in some]
        return places, hashes

    def _entries(self, start: int, size: int) -> Iterator[int]:
        """Yield the place of each entry."""
        place, end = start, start + size
        while place < end:
            if place + _ENTRY.size > end or self._bytes[place : place + 4] != b"PK\1\2":
                raise BrokenArchiveError("its directory is damaged")
            lengths = struct.unpack_from("<3H", self._bytes, place + 28)
            yield place
            place += _ENTRY.size + sum(lengths)

    def _name(self, place: int) -> str:
        """Read the name of a member, without the suffix of arrays."""
        flags = struct.unpack_from("<H", self._bytes, place + 8)[0]
        length = struct.unpack_from("<H", self._bytes, place + 28)[0]
        raw = self._bytes[place + _ENTRY.size : place + _ENTRY.size + length]
        return raw.decode("utf-8" if flags & _UTF8 else "cp437", "replace").removesuffix(_SUFFIX)

    def _sizes(self, place: int, entry: tuple[int, ...]) -> tuple[int, int, int]:
        """Read packed and plain size and the place of a member, of zip64 where they are large."""
        n_packed, n_plain, start = entry[8], entry[9], entry[16]
        fields = [n_plain, n_packed, start]
        if _FULL in fields:
            begin = place + _ENTRY.size + entry[10]
            extra, at = self._bytes[begin : begin + entry[11]], 0
            while at + 4 <= len(extra):
                kind, length = struct.unpack_from("<2H", extra, at)
                if kind == 1 and at + 4 + length <= len(extra):
                    given = iter(struct.unpack_from(f"<{length // 8}Q", extra, at + 4))
                    fields = [next(given, n) if n == _FULL else n for n in fields]
                at += 4 + length
        return fields[1], fields[0], fields[2]
