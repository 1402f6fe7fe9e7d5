"""Count names in texts: all occurrences, the longest ones, and documents."""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from surface_consistency_build.counting.boundaries import BoundaryRule, rules_digest
from surface_consistency_build.counting.finder import Hits, NameFinder, Segmenter
from surface_consistency_build.counting.surfaces import SurfaceTable
from surface_consistency_build.counting.texts import (
    Case,
    PackedTexts,
    comparable_texts,
    map_arrays,
    members_of,
    offsets_of,
    write_arrays,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Int64s = npt.NDArray[np.int64]

_Counts = TypeVar("_Counts", bound="DataclassInstance")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counts:
    """Counts of the names and entities of a table."""

    n_bounded: Int64s
    """Number of occurrences of each name that the boundary rule allows, including those inside
    longer names."""

    n_longest: Int64s
    """Number of occurrences if a text is read from its start, with the longest name at each place,
    and without the names inside it."""

    n_documents: Int64s
    """Number of documents that contain each name, by `n_bounded`."""

    entity_documents: Int64s
    """Number of documents that contain a name of each entity, by `n_bounded`."""

    documents: int
    """Number of documents read."""

    n_bytes: int
    """Number of bytes of UTF-8 read."""

    n_repaired: int
    """Number of documents in which invalid UTF-8 or lone surrogates were replaced by U+FFFD."""


class SurfaceCounter:
    """Counts the names of a table in texts.

    A name is counted if its characters occur in the text (in NFC), with one space for each of its
    spaces, and the boundary rule allows its start and end.

    Args:
        table: The names.
        case: "exact", or "fold" to count without regard to case; names that differ only in case
            then have the same counts.
        boundary: Rule for the characters adjacent to a name; see `BoundaryRule`.
        segmenter: Function that splits a text into words, for boundary="segmented".

    Raises:
        ValueError: If an option is not one of its choices, or the segmenter does not match the
            rule.

    Examples:
        >>> table = SurfaceTable.from_records([("Q60", "New York"), ("Q42462", "York")])
        >>> counter = SurfaceCounter(table)
        >>> counter.feed(["From York to New York.", "Yorkshire"])
        >>> counts = counter.result()
        >>> counts.n_bounded.tolist(), counts.n_longest.tolist(), counts.n_documents.tolist()
        ([1, 2], [1, 1], [1, 1])
    """

    def __init__(
        self,
        table: SurfaceTable,
        *,
        case: Case = "exact",
        boundary: BoundaryRule = "word",
        segmenter: Segmenter | None = None,
    ) -> None:
        self.table = table
        """The names."""
        self._file = f"{case}-{table.digest[:16]}-{rules_digest(boundary)[:16]}.arrow"
        saved = None if table.folder is None else table.folder / self._file
        made = map_arrays(saved) if saved is not None and saved.is_file() else []
        # Read-only, as mapped arrays are, so that the kernel is compiled once.
        self._made = [pa.array(part).to_numpy() for part in made[4:] or _patterns(table, case)]
        names = table.keys
        self._pattern_of_key: Int64s | slice = slice(None)
        if case == "fold":
            names, self._pattern_of_key = PackedTexts(self._made[2], self._made[3]), self._made[4]
        self._finder = NameFinder(
            names, case=case, boundary=boundary, segmenter=segmenter, built=made[:4]
        )
        self._owners: tuple[Int64s, npt.NDArray[np.int32]] = self._made[0], self._made[1]
        self._reset()

    def save(self, folder: Path) -> None:
        """Write the tables built from the names, for counters of the table opened from the folder.

        Args:
            folder: The folder; it must exist.
        """
        write_arrays(folder / self._file, *self._finder.tables, *self._made)

    def _reset(self) -> None:
        """Set all counts to zero."""
        # Memory is allocated when something is counted, so nothing is written here.
        self._counters = np.zeros(4 * (self._owners[0].size - 1), dtype=np.int64)
        self._entity_counters = np.zeros(2 * self.table.n_entities, dtype=np.int64)
        self._documents = self._n_bytes = self._n_repaired = 0

    def sibling(self) -> Self:
        """Return a counter with zero counts that shares the tables of this one, for a thread."""
        other = copy(self)
        other._reset()
        return other

    def feed(self, texts: Iterable[str | bytes] | PackedTexts) -> None:
        """Count names in more documents.

        Args:
            texts: One text per document: strings, bytes of UTF-8, or packed texts. Invalid UTF-8
                and lone surrogates become U+FFFD, and are counted.
        """
        self.locate(texts)

    def locate(self, texts: Iterable[str | bytes] | PackedTexts) -> tuple[PackedTexts, Hits]:
        """Count names in more documents, and return their positions.

        Args:
            texts: As `feed`.

        Returns:
            The documents in the form in which names are compared, and all occurrences that the
            boundary rule allows. With case="fold" the keys number the distinct folded names.
        """
        packed = texts if isinstance(texts, PackedTexts) else PackedTexts.pack(texts)
        prepared = self._finder.prepare(packed)
        hits = self._finder.find(prepared)
        self._finder.accumulate(
            hits, self._documents + 1, self._counters, *self._owners, self._entity_counters
        )
        self._documents += len(packed)
        self._n_bytes += int(packed.buffer.size)
        self._n_repaired += packed.n_repaired
        return prepared, hits

    def entities_of(self, keys: Int64s) -> tuple[Int64s, npt.NDArray[np.int32]]:
        """Return the entities that each hit may name.

        Args:
            keys: Keys of hits of `locate`.

        Returns:
            Positions in `keys`, once per entity, and the numbers of the entities.
        """
        offsets, entities = self._owners
        places, members = members_of(offsets, keys)
        return places, entities[members]

    def result(self) -> Counts:
        """Return the counts so far.

        Returns:
            The counts; those of names have shape `(table.n_keys,)`, those of entities
            `(table.n_entities,)`.
        """
        bounded, longest, documents, _ = self._counters.reshape(-1, 4).T
        return Counts(
            n_bounded=bounded[self._pattern_of_key].copy(),
            n_longest=longest[self._pattern_of_key].copy(),
            n_documents=documents[self._pattern_of_key].copy(),
            entity_documents=self._entity_counters[::2].copy(),
            documents=self._documents,
            n_bytes=self._n_bytes,
            n_repaired=self._n_repaired,
        )


def _patterns(table: SurfaceTable, case: Case) -> Sequence[npt.NDArray[Any]]:
    """Return the owners of the searched forms; if folded, also the form of each name."""
    offsets, entities = table.owners
    if case != "fold":
        return table.owners

    folded = comparable_texts(table.keys, case).to_arrow().dictionary_encode()
    names = PackedTexts.from_arrow(folded.dictionary)
    pattern_of_key = folded.indices.cast(pa.int64()).to_numpy()
    patterns = np.repeat(pattern_of_key, np.diff(offsets))
    pairs = np.unique(patterns * table.n_entities + entities)
    starts = offsets_of(np.bincount(pairs // table.n_entities, minlength=len(names)))
    owners = (pairs % table.n_entities).astype(np.int32)
    return starts, owners, names.buffer, names.offsets, pattern_of_key


def longest_hits(hits: Hits) -> npt.NDArray[np.bool_]:
    """Mark the hits that are kept if the longest is taken at each place, from the start.

    Args:
        hits: Hits in order of text, start and end.

    Returns:
        Whether each hit is kept.
    """
    marks = np.zeros(hits.keys.size, dtype=np.bool_)
    is_last_of_start = np.ones(hits.keys.size, dtype=np.bool_)
    is_last_of_start[:-1] = hits.starts[1:] != hits.starts[:-1]
    taken_until = -1
    for place in np.flatnonzero(is_last_of_start).tolist():
        # Texts are consecutive, so the end of one is not after the start of the next.
        if hits.starts[place] >= taken_until:
            marks[place] = True
            taken_until = hits.stops[place]
    return marks
