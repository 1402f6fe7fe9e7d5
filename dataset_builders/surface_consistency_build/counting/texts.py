"""Store many texts in one block of UTF-8, in the form in which names and texts are compared."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from surface_consistency.errors import DataError
from surface_consistency.schemas.jsonl import atomic_path
from surface_consistency.text import normalized
from surface_consistency_build.counting.boundaries import (
    MAY_BREAK_NFC,
    character_classes,
    code_points,
)

Int64s = npt.NDArray[np.int64]

Case = Literal["exact", "fold"]
"""Whether case distinguishes names ("exact") or not ("fold", full Unicode case folding)."""

CASES: Final[tuple[str, ...]] = get_args(Case)
"""The choices for case."""


@dataclass(frozen=True, slots=True, eq=False)
class PackedTexts:
    """Consecutive texts in a block of UTF-8.

    Examples:
        >>> texts = PackedTexts.pack(["Édith", "", "Paris"])
        >>> len(texts), texts[0], texts.offsets.tolist()
        (3, 'Édith', [0, 6, 6, 11])
    """

    buffer: npt.NDArray[np.uint8]
    """The bytes of all texts."""

    offsets: npt.NDArray[np.int64]
    """Start of each text, and end of the last one; shape `(n_texts + 1,)`."""

    n_repaired: int = 0
    """Number of texts with invalid UTF-8 or lone surrogates, which became U+FFFD."""

    @classmethod
    def pack(cls, texts: Iterable[str | bytes]) -> Self:
        """Pack texts.

        Args:
            texts: Strings, or bytes of UTF-8. Invalid characters become U+FFFD and are counted.

        Returns:
            The texts.
        """
        parts, n_repaired = [], 0
        for text in texts:
            part, is_repaired = encoded(text)
            n_repaired += is_repaired
            parts.append(part)
        return cls.join(parts, n_repaired)

    @classmethod
    def join(cls, parts: Sequence[bytes], n_repaired: int = 0) -> Self:
        """Pack texts that are valid UTF-8.

        Args:
            parts: Their bytes.
            n_repaired: Number of texts that were repaired.

        Returns:
            The texts.
        """
        sizes = np.fromiter(map(len, parts), np.int64, len(parts))
        return cls(np.frombuffer(b"".join(parts), dtype=np.uint8), offsets_of(sizes), n_repaired)

    @classmethod
    def from_arrow(cls, array: pa.Array | pa.ChunkedArray) -> Self:
        """Pack the texts of an Arrow array, without a Python string per text.

        Args:
            array: Strings that are not null.

        Returns:
            The texts.
        """
        texts = array.cast(pa.large_string())
        whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
        if not len(whole):
            return cls.join([])
        _, offsets, values = whole.buffers()
        bounds = np.frombuffer(offsets, np.int64)[whole.offset : whole.offset + len(whole) + 1]
        block = np.frombuffer(values or b"", np.uint8)[bounds[0] : bounds[-1]]
        return cls(block, bounds - bounds[0])

    def to_arrow(self) -> pa.Array:
        """Return the texts as an Arrow array of large strings, without copying them."""
        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self.buffer)]
        return pa.Array.from_buffers(pa.large_string(), len(self), buffers)

    def characters_before(self) -> Int64s:
        """Count the characters before each byte, and before the end; shape `(n_bytes + 1,)`."""
        return offsets_of((self.buffer & 0xC0) != 0x80)

    def __len__(self) -> int:
        """Count the texts."""
        return self.offsets.size - 1

    def __getitem__(self, index: int) -> str:
        """Return one text."""
        return self.bytes_of(index).decode()

    def __iter__(self) -> Iterator[str]:
        """Yield the texts."""
        return (self[index] for index in range(len(self)))

    def bytes_of(self, index: int) -> bytes:
        """Return the UTF-8 of one text.

        Args:
            index: Its number from 0.

        Returns:
            Its bytes.
        """
        return self.buffer[self.offsets[index] : self.offsets[index + 1]].tobytes()

    def changed(self, texts: Mapping[int, str]) -> Self:
        """Replace some texts.

        Args:
            texts: The new texts by number.

        Returns:
            All texts; this object if no text is replaced.
        """
        if not texts:
            return self
        new = {index: texts[index].encode() for index in sorted(texts)}
        parts: list[bytes] = []
        done = 0
        for index in new:
            parts += [self.buffer[self.offsets[done] : self.offsets[index]].tobytes(), new[index]]
            done = index + 1
        parts.append(self.buffer[self.offsets[done] : self.offsets[-1]].tobytes())
        lengths = np.diff(self.offsets)
        lengths[[*new]] = [len(part) for part in new.values()]
        buffer = np.frombuffer(b"".join(parts), dtype=np.uint8)
        return type(self)(buffer, offsets_of(lengths), self.n_repaired)


def encoded(text: str | bytes) -> tuple[bytes, bool]:
    r"""Return a text as valid UTF-8, and whether it was repaired.

    Args:
        text: A string, or bytes of UTF-8.

    Returns:
        The bytes, with U+FFFD for invalid characters, and whether there were any.

    Examples:
        >>> encoded("Zoë"), encoded(b"Zo\xeb")
        ((b'Zo\xc3\xab', False), (b'Zo\xef\xbf\xbd', True))
    """
    if isinstance(text, str):
        try:
            return text.encode(), False
        except UnicodeEncodeError:
            whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return whole.encode(), True
    if text.isascii():
        return text, False
    try:
        text.decode()
    except UnicodeDecodeError:
        return text.decode(errors="replace").encode(), True
    return text, False


def comparable(text: str, case: Case = "exact") -> str:
    """Return the form in which names and texts are compared: NFC, optionally case-folded.

    Args:
        text: A name or a text.
        case: "exact" or "fold".

    Returns:
        The form.
    """
    composed = normalized("NFC", text)
    return composed.casefold() if case == "fold" else composed


def comparable_texts(texts: PackedTexts, case: Case) -> PackedTexts:
    """Return `comparable` of many texts; texts that already have this form are not changed.

    Args:
        texts: The texts.
        case: "exact" or "fold".

    Returns:
        The texts in that form.
    """
    if case == "exact":
        return texts.changed({i: comparable(texts[i], case) for i in _may_change(texts)})
    plain = texts.buffer
    is_upper = (plain >= ord("A")) & (plain <= ord("Z"))
    folded = plain | (is_upper * np.uint8(32))
    # Arrays of one type, so that the kernel is compiled once.
    folded.flags.writeable = False
    beyond = np.unique(np.searchsorted(texts.offsets, np.flatnonzero(plain & 0x80), side="right"))
    return PackedTexts(folded, texts.offsets, texts.n_repaired).changed(
        {i: comparable(texts[i], case) for i in (beyond - 1).tolist()}
    )


def _may_change(texts: PackedTexts) -> list[int]:
    """List the texts with a character that can make them differ from NFC."""
    starts = np.flatnonzero(texts.buffer >= 0xC0)
    breaks = starts[character_classes()[code_points(texts.buffer, starts)] & MAY_BREAK_NFC > 0]
    owners = np.searchsorted(texts.offsets, breaks, side="right") - 1
    found: list[int] = np.unique(owners).tolist()
    return found


def offsets_of(sizes: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Int64s:
    """Return the offsets of consecutive groups of given sizes.

    Args:
        sizes: Number of members per group, shape `(n,)`.

    Returns:
        Start of each group, and end of the last one; shape `(n + 1,)`.
    """
    offsets = np.zeros(sizes.size + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def members_of(offsets: Int64s, groups: Int64s) -> tuple[Int64s, Int64s]:
    """List the members of given groups.

    Args:
        offsets: Start of the members of each group, as from `offsets_of`.
        groups: Numbers of groups, in any order.

    Returns:
        For each member the position of its group in `groups`, and its number among all members.
    """
    sizes = np.diff(offsets)[groups]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.repeat(np.arange(groups.size), sizes), np.repeat(offsets[groups], sizes) + within


def arrays_digest(*parts: PackedTexts | npt.NDArray[np.generic]) -> str:
    """Compute the SHA-256 of texts and numbers.

    Args:
        parts: The texts and arrays.

    Returns:
        The digest in hexadecimal.
    """
    digest = hashlib.sha256()
    for part in parts:
        arrays = (part.offsets, part.buffer) if isinstance(part, PackedTexts) else (part,)
        for array in arrays:
            digest.update(np.ravel(array).data)
    return digest.hexdigest()


def write_arrays(path: Path, *arrays: npt.NDArray[Any]) -> None:
    """Write arrays to one file, for `map_arrays`.

    Args:
        path: The file; its folder must exist.
        arrays: One-dimensional arrays.
    """
    bounds = [pa.array([0, array.size]) for array in arrays]
    columns = map(pa.LargeListArray.from_arrays, bounds, map(pa.array, arrays))
    table = pa.table({str(number): column for number, column in enumerate(columns)})
    with atomic_path(path) as part, pa.ipc.new_file(str(part), table.schema) as writer:
        writer.write_table(table)


def map_arrays(path: Path) -> list[npt.NDArray[Any]]:
    """Map a file of `write_arrays` into memory, which processes of a machine share.

    Args:
        path: The file.

    Returns:
        The arrays, which are read-only.

    Raises:
        DataError: If it is not such a file, or is cut off.
    """
    try:
        columns = pa.ipc.open_file(pa.memory_map(str(path))).read_all().columns
        return [column.chunk(0).values.to_numpy() for column in columns]
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read ({error}); use another folder") from error
