"""Many texts as one block of UTF-8, and the form in which names and texts are compared."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from surface_consistency.text import comparable
from surface_consistency_build.counting.boundaries import (
    MAY_BREAK_NFC,
    character_classes,
    code_points,
)

__all__ = ["CASES", "Case", "PackedTexts", "comparable_texts", "encoded"]

Case = Literal["exact", "fold"]
"""Whether case tells names apart ("exact") or not ("fold", full Unicode case folding)."""

CASES: Final[tuple[str, ...]] = get_args(Case)
"""The ways to treat case."""


@dataclass(frozen=True, slots=True, eq=False)
class PackedTexts:
    """Texts one after the other in a block of UTF-8.

    Examples:
        >>> texts = PackedTexts.pack(["Édith", "", "Paris"])
        >>> len(texts), texts[0], texts.offsets.tolist()
        (3, 'Édith', [0, 6, 6, 11])
    """

    buffer: npt.NDArray[np.uint8]
    """The bytes of all texts."""

    offsets: npt.NDArray[np.int64]
    """Where each begins, and where the last ends; shape `(n_texts + 1,)`."""

    n_repaired: int = 0
    """Texts that held invalid UTF-8 or lone surrogates, which became U+FFFD."""

    @classmethod
    def pack(cls, texts: Iterable[str | bytes]) -> Self:
        """Put texts together.

        Args:
            texts: Strings, or bytes of UTF-8. What is invalid becomes U+FFFD and is counted.

        Returns:
            The texts.
        """
        parts, n_repaired = [], 0
        for text in texts:
            part, is_repaired = encoded(text)
            n_repaired += is_repaired
            parts.append(part)
        return cls._join(parts, n_repaired)

    @classmethod
    def _join(cls, parts: list[bytes], n_repaired: int) -> Self:
        """Put valid bytes together."""
        offsets = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=offsets[1:])
        return cls(np.frombuffer(b"".join(parts), dtype=np.uint8), offsets, n_repaired)

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
            texts: The new ones by number.

        Returns:
            All texts; itself where none is to be replaced.
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
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        buffer = np.frombuffer(b"".join(parts), dtype=np.uint8)
        return type(self)(buffer, offsets, self.n_repaired)


def encoded(text: str | bytes) -> tuple[bytes, bool]:
    r"""Return a text as valid UTF-8, and whether it had to be repaired.

    Args:
        text: A string, or bytes of UTF-8.

    Returns:
        The bytes, U+FFFD where something was invalid, and whether there was.

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


def comparable_texts(texts: PackedTexts, case: Case) -> PackedTexts:
    """Return `comparable` of many texts; those that are so already are not touched.

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
    # One kind of array, so that the kernel is compiled once.
    folded.flags.writeable = False
    beyond = np.unique(np.searchsorted(texts.offsets, np.flatnonzero(plain & 0x80), side="right"))
    return PackedTexts(folded, texts.offsets, texts.n_repaired).changed(
        {i: comparable(texts[i], case) for i in (beyond - 1).tolist()}
    )


def _may_change(texts: PackedTexts) -> list[int]:
    """List the texts that hold a character without which they would be in NFC."""
    starts = np.flatnonzero(texts.buffer >= 0xC0)
    breaks = starts[character_classes()[code_points(texts.buffer, starts)] & MAY_BREAK_NFC > 0]
    owners = np.searchsorted(texts.offsets, breaks, side="right") - 1
    found: list[int] = np.unique(owners).tolist()
    return found
