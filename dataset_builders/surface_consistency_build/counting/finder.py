"""Find names in texts, with a trie of tokens in a hash table, compiled by numba."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from surface_consistency.errors import DataError
from surface_consistency_build.counting import boundaries
from surface_consistency_build.counting.texts import CASES, Case, PackedTexts, comparable_texts

Segmenter = Callable[[str], Iterable[str]]
"""Function that splits a text into its unchanged words, in order; white space may be omitted."""

_LOAD: Final = 0.6
_BLOCK: Final = 1 << 12
_ROOM: Final = 1 << 16
_MAX_NAMES: Final = (1 << 30) - 2
_ALL_BITS: Final = (1 << 64) - 1

Int64s = npt.NDArray[np.int64]


class Hits(NamedTuple):
    """Positions of names in texts, sorted by text, start and end."""

    texts: npt.NDArray[np.int64]
    """Number of the text."""

    starts: npt.NDArray[np.int64]
    """Position of the first byte, in the block of all texts (in the form in which names are
    compared)."""

    stops: npt.NDArray[np.int64]
    """Position after the last byte."""

    keys: npt.NDArray[np.int64]
    """Number of the name."""


class NameFinder:
    """Finds names in texts; one object can be used by any number of threads.

    The bytes of all hits are compared, so colliding hashes cost time but do not change a count.

    Args:
        names: Distinct non-empty names in the form of `comparable`.
        case: Case of the names; texts are folded in the same way.
        boundary: Rule for the characters adjacent to a name.
        segmenter: Function that splits texts into words, only for the rule "segmented".
        hash_bits: Number of used bits of the hashes; fewer bits are slower, with the same result.
        built: `tables` of a finder with the same names and rule, if there is one.

    Raises:
        ValueError: If the rule or case does not exist, a segmenter is missing or not used, or two
            names are equal.
        DataError: If there are too many names.
    """

    def __init__(
        self,
        names: PackedTexts,
        *,
        case: Case = "exact",
        boundary: boundaries.BoundaryRule = "word",
        segmenter: Segmenter | None = None,
        hash_bits: int = 64,
        built: Sequence[npt.NDArray[Any]] = (),
    ) -> None:
        boundaries.check_boundary(boundary)
        if case not in CASES:
            raise ValueError(f"case must be one of {', '.join(CASES)}, got {case!r}")
        if (boundary == "segmented") != (segmenter is not None):
            raise ValueError(
                "boundary='segmented' needs a segmenter, a function from a text to its words"
                if segmenter is None
                else f"a segmenter is for boundary='segmented', not for {boundary!r}"
            )
        if len(names) > _MAX_NAMES:
            raise DataError(
                f"{len(names):,} names are more than {_MAX_NAMES:,}; count them in parts"
            )
        from surface_consistency_build.counting import _kernel

        self.names = names
        """The names."""
        self._case: Case = case
        self._segmenter = segmenter
        self._rule = boundaries.boundary_tables(boundary)
        self._kernel: Any = _kernel
        self._mask = np.uint64(_ALL_BITS >> (64 - hash_bits))
        # Read-only, as mapped arrays are, so that the kernel is compiled once.
        self.tables = [pa.array(part).to_numpy() for part in built or self._build()]
        """Slots, heads, offsets of the names, and the number of tokens of the longest."""
        self._table, self._heads, self._offsets, most = self.tables
        self._most_tokens = int(most[0])

    def prepare(self, texts: PackedTexts) -> PackedTexts:
        """Convert texts to the form in which names are compared."""
        return comparable_texts(texts, self._case)

    def _build(self) -> Sequence[npt.NDArray[Any]]:
        """Build the tables."""
        names = self.names
        narrow = names.offsets[-1] < (1 << 32)
        offsets = names.offsets.astype(np.uint32) if narrow else names.offsets
        rule = (names.buffer, offsets, boundaries.character_classes(), self._rule)
        scratch = _scratch(int(np.diff(names.offsets).max(initial=1)))
        n_tokens, most = self._kernel.count_tokens(*rule, scratch)
        table = np.zeros(int(n_tokens / _LOAD) + 16, dtype=np.uint64)
        n_heads = 1 << min(23, 10 + len(names).bit_length())
        heads = np.zeros(n_heads // 8, dtype=np.uint8)
        repeated = self._kernel.build(*rule, table, heads, self._mask, scratch)
        if repeated >= 0:
            raise ValueError(f"names must be distinct; {names[repeated]!r} is given twice")
        return table, heads, offsets, np.array([max(1, most)])

    def find(self, texts: PackedTexts) -> Hits:
        """Find all occurrences that the rule allows, including overlapping ones."""
        edges = np.zeros(0, dtype=np.uint8)
        if self._segmenter is not None:
            # Starts (1) and ends (2) of words.
            edges = np.zeros(texts.buffer.size + 1, dtype=np.uint8)
            for index, text in enumerate(texts):
                start, stop = texts.offsets[index : index + 2]
                edges[start : stop + 1] |= boundaries.segment_edges(text, self._segmenter(text))
        names = (self.names.buffer, self._offsets, boundaries.character_classes(), self._rule)
        table = (self._table, self._heads, self._mask, self._most_tokens)
        block = max(_BLOCK, 4 * self._most_tokens)
        scratch = (_scratch(block), np.empty(block, np.int64), np.empty((block, 3), np.int64))
        parts: list[tuple[npt.NDArray[np.int64], ...]] = []
        room, first = max(_ROOM, 4 * self._most_tokens, texts.buffer.size // 16), 0
        while first < len(texts):
            out = tuple(np.empty(room, dtype=np.int64) for _ in range(4))
            read = (texts.buffer, texts.offsets, first)
            n, following = self._kernel.find(*read, *names, edges, *table, *scratch, out)
            if following == first:
                room *= 2
            parts.append(tuple(column[:n] for column in out))
            first = following
        if not parts:
            return Hits(*(np.zeros(0, dtype=np.int64) for _ in range(4)))
        return Hits(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def accumulate(self, hits: Hits, *counts: Any) -> None:  # noqa: ANN401 - arrays
        """Add hits to counts with the compiled kernel."""
        self._kernel.accumulate(*hits, *counts)


def _scratch(n: int) -> tuple[npt.NDArray[Any], ...]:
    """Allocate buffers for tokens: hashes, starts, stops, flags."""
    return tuple(np.empty(n, kind) for kind in (np.uint64, np.int64, np.int64, np.uint8))
