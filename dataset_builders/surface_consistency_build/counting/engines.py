"""Two engines that find names in texts; they find the same on every input.

"numba" looks tokens up in a hash table of its own, "ahocorasick" runs the automaton of
ahocorasick_rs and then looks at the neighbours of what it finds.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from typing import Any, ClassVar, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from surface_consistency.errors import DataError, MissingDependencyError
from surface_consistency_build.counting.boundaries import (
    MAY_BREAK_NFC,
    BoundaryRule,
    boundary_tables,
    character_classes,
    check_boundary,
    class_after,
    class_before,
    segment_edges,
)
from surface_consistency_build.counting.texts import (
    CASES,
    Case,
    PackedTexts,
    comparable,
    comparable_texts,
)

EngineName = Literal["auto", "numba", "ahocorasick"]
"""Which engine finds names; "auto" takes the first of the others that is installed."""

Segmenter = Callable[[str], Iterable[str]]
"""Cuts a text into words, given in order as they stand in it; white space may be left out."""

_LOAD: Final = 0.6
_BLOCK: Final = 1 << 12
_ROOM: Final = 1 << 16
_MOST_NAMES: Final = (1 << 30) - 2
_ALL_BITS: Final = (1 << 64) - 1

Int64s = npt.NDArray[np.int64]


class Hits(NamedTuple):
    """Where names stand in some texts, sorted by text, start and end."""

    texts: npt.NDArray[np.int64]
    """Number of the text."""

    starts: npt.NDArray[np.int64]
    """First byte, in the block of all texts (in the form that names are compared in)."""

    stops: npt.NDArray[np.int64]
    """Byte after the last."""

    keys: npt.NDArray[np.int64]
    """Number of the name."""


class Finder(ABC):
    """Finds names in texts; made once, used by any number of threads.

    Args:
        names: Distinct names in the form in which they are compared.
        case: Whether texts are folded.
        boundary: What may stand beside a name.
        segmenter: For "segmented".
    """

    name: ClassVar[str]
    """Name of the engine."""

    library: ClassVar[str]
    """What it needs to be installed."""

    def __init__(
        self, names: PackedTexts, case: Case, boundary: BoundaryRule, segmenter: Segmenter | None
    ) -> None:
        self.names = names
        self._case: Case = case
        self._segmenter = segmenter
        self._tables = boundary_tables(boundary)

    def prepare(self, texts: PackedTexts) -> PackedTexts:
        """Bring texts into the form in which names are compared."""
        return comparable_texts(texts, self._case)

    @abstractmethod
    def find(self, texts: PackedTexts) -> Hits:
        """Find every occurrence that the rule allows, overlapping ones too."""

    def _edges(self, texts: PackedTexts) -> npt.NDArray[np.uint8]:
        """Mark where words begin (1) and end (2); empty where the rule needs no segmenter."""
        if self._segmenter is None:
            return np.zeros(0, dtype=np.uint8)
        edges = np.zeros(texts.buffer.size + 1, dtype=np.uint8)
        for index, text in enumerate(texts):
            start, stop = texts.offsets[index : index + 2]
            edges[start : stop + 1] |= segment_edges(text, self._segmenter(text))
        return edges

    def _allowed_hits(
        self, texts: PackedTexts, owners: Int64s, starts: Int64s, stops: Int64s, keys: Int64s
    ) -> Hits:
        """Keep the spans that the rule allows, in order."""
        edges = self._edges(texts)
        if edges.size:
            is_allowed = (edges[starts] & 1 > 0) & (edges[stops] & 2 > 0)
        else:
            before, after = np.zeros((2, starts.size), dtype=np.uint8)
            inner = starts > texts.offsets[owners]
            before[inner] = class_before(texts.buffer, starts[inner])
            inner = stops < texts.offsets[owners + 1]
            after[inner] = class_after(texts.buffer, stops[inner])
            first, last = class_after(texts.buffer, starts), class_before(texts.buffer, stops)
            begins, ends = self._tables.begins[before, first], self._tables.ends[last, after]
            is_allowed = (begins > 0) & (ends > 0)
        kept = np.flatnonzero(is_allowed)
        order = kept[np.lexsort((stops[kept], starts[kept]))]
        return Hits(owners[order], starts[order], stops[order], keys[order])


def choose_engine(engine: EngineName) -> str:
    """Name the engine that will be used.

    Args:
        engine: The engine, or "auto".

    Returns:
        The engine, never "auto".

    Raises:
        ValueError: If there is no such engine.
        MissingDependencyError: If its library is not installed; for "auto", if none is.
    """
    if engine != "auto" and engine not in FINDERS:
        raise ValueError(f"engine must be one of auto, {', '.join(FINDERS)}, got {engine!r}")
    names = [*FINDERS] if engine == "auto" else [engine]
    found = next((name for name in names if find_spec(FINDERS[name].library)), None)
    if found is None:
        library = FINDERS[names[0]].library
        raise MissingDependencyError(f"counting with engine={engine!r}", library, "build")
    return found


def make_finder(
    names: PackedTexts,
    *,
    case: Case = "exact",
    boundary: BoundaryRule = "word",
    engine: EngineName = "auto",
    segmenter: Segmenter | None = None,
    built: Sequence[npt.NDArray[Any]] = (),
) -> Finder:
    """Build what finds some names.

    Args:
        names: Distinct names in the form of `comparable`, none of them empty.
        case: Whether the texts are folded as the names were.
        boundary: What may stand beside a name.
        engine: Which engine.
        segmenter: Cuts texts into words, for the rule "segmented" and only for it.
        built: Tables of a `NumbaFinder` of the same names and rule, if there are any.

    Returns:
        The finder.

    Raises:
        ValueError: If there is no such rule, case or engine, a segmenter lacks or is of no use, or
            two names are equal.
        DataError: If there are more names than can be numbered.
        MissingDependencyError: If the library of the engine is not installed.
    """
    check_boundary(boundary)
    if case not in CASES:
        raise ValueError(f"case must be one of {', '.join(CASES)}, got {case!r}")
    if (boundary == "segmented") != (segmenter is not None):
        raise ValueError(
            "boundary='segmented' needs a segmenter, a function from a text to its words"
            if segmenter is None
            else f"a segmenter is for boundary='segmented', not for {boundary!r}"
        )
    if len(names) > _MOST_NAMES:
        raise DataError(f"{len(names):,} names are more than {_MOST_NAMES:,}; count them in parts")
    chosen = FINDERS[choose_engine(engine)]
    more = {"built": built} if chosen is NumbaFinder else {}
    return chosen(names, case, boundary, segmenter, **more)


class NumbaFinder(Finder):
    """A trie of tokens in a hash table, compiled; every hit's bytes are compared.

    Args:
        names: Distinct names in the form in which they are compared.
        case: Whether texts are folded.
        boundary: What may stand beside a name.
        segmenter: For "segmented".
        hash_bits: Bits of the hashes that are used; fewer make it slower, not wrong.
        built: The tables, where they were built before.
    """

    name = library = "numba"

    def __init__(
        self,
        names: PackedTexts,
        case: Case,
        boundary: BoundaryRule,
        segmenter: Segmenter | None,
        *,
        hash_bits: int = 64,
        built: Sequence[npt.NDArray[Any]] = (),
    ) -> None:
        from surface_consistency_build.counting import _kernel

        super().__init__(names, case, boundary, segmenter)
        self._kernel: Any = _kernel
        self._mask = np.uint64(_ALL_BITS >> (64 - hash_bits))
        # Not to be written to, as mapped ones are not: the kernel is compiled once.
        self.tables = [pa.array(part).to_numpy() for part in built or self._build()]
        """Slots, heads, offsets of the names, and the number of tokens of the longest."""
        self._table, self._heads, self._offsets, most = self.tables
        self._most_tokens = int(most[0])

    def _build(self) -> Sequence[npt.NDArray[Any]]:
        """Build the tables."""
        names = self.names
        narrow = names.offsets[-1] < (1 << 32)
        offsets = names.offsets.astype(np.uint32) if narrow else names.offsets
        rule = (names.buffer, offsets, character_classes(), self._tables)
        scratch = _scratch(int(np.diff(names.offsets).max(initial=1)))
        n_tokens, most = self._kernel.count_tokens(*rule, scratch)
        table = np.zeros(int(n_tokens / _LOAD) + 16, dtype=np.uint64)
        n_heads = 1 << min(23, 10 + len(names).bit_length())
        heads = np.zeros(n_heads // 8, dtype=np.uint8)
        repeated = self._kernel.build(*rule, table, heads, self._mask, scratch)
        if repeated >= 0:
            raise ValueError(f"names must be distinct; {names[repeated]!r} is given twice")
        return table, heads, offsets, np.array([max(1, most)])

    def prepare(self, texts: PackedTexts) -> PackedTexts:
        """Bring texts into the form in which names are compared."""
        if self._case == "fold":
            return super().prepare(texts)
        needs = np.zeros(len(texts), dtype=np.uint8)
        self._kernel.needs_nfc(
            texts.buffer, texts.offsets, character_classes(), MAY_BREAK_NFC, needs
        )
        return texts.changed(
            {i: comparable(texts[i], self._case) for i in np.flatnonzero(needs).tolist()}
        )

    def find(self, texts: PackedTexts) -> Hits:
        """Find every occurrence that the rule allows, overlapping ones too."""
        edges = self._edges(texts)
        names = (self.names.buffer, self._offsets, character_classes(), self._tables)
        table = (self._table, self._heads, self._mask, self._most_tokens)
        block = max(_BLOCK, 4 * self._most_tokens)
        scratch = (_scratch(block), np.empty(block, np.int64), np.empty((block, 3), np.int64))
        parts: list[tuple[npt.NDArray[np.int64], ...]] = []
        room, text = max(_ROOM, 4 * self._most_tokens, texts.buffer.size // 16), 0
        while text < len(texts):
            out = tuple(np.empty(room, dtype=np.int64) for _ in range(4))
            read = (texts.buffer, texts.offsets, text)
            n, following = self._kernel.find(*read, *names, edges, *table, *scratch, out)
            if following == text:
                room *= 2
            parts.append(tuple(column[:n] for column in out))
            text = following
        if not parts:
            return _no_hits()
        return Hits(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def accumulate(self, hits: Hits, *counts: Any) -> None:  # noqa: ANN401 - arrays
        """Add hits to counts, compiled; see the kernel."""
        self._kernel.accumulate(*hits, *counts)


class AhoCorasickFinder(Finder):
    """The automaton of ahocorasick_rs, whose hits are kept where the rule allows them."""

    name, library = "ahocorasick", "ahocorasick_rs"

    def __init__(
        self, names: PackedTexts, case: Case, boundary: BoundaryRule, segmenter: Segmenter | None
    ) -> None:
        from ahocorasick_rs import BytesAhoCorasick

        super().__init__(names, case, boundary, segmenter)
        patterns = [names.bytes_of(index) for index in range(len(names))]
        if len(set(patterns)) < len(patterns):
            raise ValueError("names must be distinct; give each once")
        self._automaton = BytesAhoCorasick(patterns)

    def find(self, texts: PackedTexts) -> Hits:
        """Find every occurrence that the rule allows, overlapping ones too."""
        found, owners = [], []
        for index in range(len(texts)):
            hits = self._automaton.find_matches_as_indexes(texts.bytes_of(index), overlapping=True)
            if hits:
                rows = np.array(hits, dtype=np.int64)
                rows[:, 1:] += texts.offsets[index]
                found.append(rows)
                owners.append(np.full(len(rows), index, dtype=np.int64))
        if not found:
            return _no_hits()
        keys, starts, stops = np.concatenate(found).T
        return self._allowed_hits(texts, np.concatenate(owners), starts, stops, keys)


FINDERS: Final[dict[str, type[Finder]]] = {
    finder.name: finder for finder in (NumbaFinder, AhoCorasickFinder)
}
"""The engines by name, the fastest first."""


def _no_hits() -> Hits:
    """Return no hits."""
    return Hits(*(np.zeros(0, dtype=np.int64) for _ in range(4)))


def _scratch(n: int) -> tuple[npt.NDArray[Any], ...]:
    """Make room for tokens: hashes, starts, stops, flags."""
    return tuple(np.empty(n, kind) for kind in (np.uint64, np.int64, np.int64, np.uint8))
