"""Count the documents that name two entities together."""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from surface_consistency.errors import DataError
from surface_consistency.reading import shown
from surface_consistency_build.counting.counter import SurfaceCounter, longest_hits
from surface_consistency_build.counting.finder import Hits
from surface_consistency_build.counting.surfaces import SurfaceTable
from surface_consistency_build.counting.texts import PackedTexts, members_of, offsets_of

Int64s = npt.NDArray[np.int64]

Occurrences = Literal["longest", "bounded"]
"""Occurrences that name an entity: those outside longer names, or all."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairCounts:
    """Document counts of pairs, in the order of `PairCounter.pairs`."""

    n_documents_both: Int64s
    """Number of documents that name both."""

    n_documents_subject: Int64s
    """Number of documents that name the subject."""

    n_documents_object: Int64s
    """Number of documents that name the object."""


class PairCounter:
    """Counts the documents that name both entities of a pair, by any of their names.

    Args:
        table: The names of the entities.
        pairs: (subject id, object id); repeated pairs are counted once.
        occurrences: "longest" (the default) does not count "Paris Hilton" as Paris if both are
            names of the table; "bounded" counts all occurrences that the boundary rule allows.
        options: Options of `SurfaceCounter`.

    Raises:
        DataError: If `pairs` is empty, an entity has no name in the table, or a pair contains the
            same entity twice.
        ValueError: If `occurrences` is not one of its choices.

    Examples:
        >>> table = SurfaceTable.from_records([("Q90", "Paris"), ("Q142", "France")])
        >>> counter = PairCounter(table, [("Q90", "Q142")])
        >>> counter.feed(["Paris is in France.", "Paris, Texas", "Paris. France. Paris."])
        >>> counts = counter.result()
        >>> counts.n_documents_both.tolist(), counts.n_documents_subject.tolist()
        ([2], [3])
    """

    def __init__(
        self,
        table: SurfaceTable,
        pairs: Iterable[Sequence[str]],
        *,
        occurrences: Occurrences = "longest",
        **options: Any,  # noqa: ANN401 - options of SurfaceCounter
    ) -> None:
        if occurrences not in ("longest", "bounded"):
            raise ValueError(f"occurrences must be longest or bounded, got {shown(occurrences)}")
        self.pairs = tuple(dict.fromkeys((first, second) for first, second in pairs))
        """Distinct (subject id, object id), in order of appearance."""
        self.surfaces = SurfaceCounter(table, **options)
        """Counter of the names, which counts the same documents."""
        self._occurrences = occurrences
        self._subjects, self._objects = _numbered(self.pairs, table.entities)
        codes = self._subjects * table.n_entities + self._objects
        self._by_subject = np.argsort(codes)
        self._codes = codes[self._by_subject]
        self._pair_offsets = offsets_of(np.bincount(self._subjects, minlength=table.n_entities))
        self._both = np.zeros(len(self.pairs), dtype=np.int64)
        self._of_entity = np.zeros(table.n_entities, dtype=np.int64)

    def sibling(self) -> "PairCounter":
        """Return a counter with zero counts that shares the tables of this one, for a thread."""
        other = copy(self)
        other.surfaces = self.surfaces.sibling()
        other._both, other._of_entity = np.zeros_like(self._both), np.zeros_like(self._of_entity)
        return other

    def feed(self, texts: Iterable[str | bytes] | PackedTexts) -> None:
        """Count pairs and names in more documents; see `SurfaceCounter.feed`."""
        self.locate(texts)

    def locate(self, texts: Iterable[str | bytes] | PackedTexts) -> tuple[PackedTexts, Hits]:
        """Count, and return the positions of names; see `SurfaceCounter.locate`."""
        located = self.surfaces.locate(texts)
        hits = located[1]
        if self._occurrences == "longest":
            kept = longest_hits(hits)
            hits = Hits(*(column[kept] for column in hits))
        n = self._of_entity.size
        rows, entities = self.surfaces.entities_of(hits.keys)
        named = hits.texts[rows] * n + entities
        present = np.unique(named)
        self._of_entity += np.bincount(present % n, minlength=n)
        self._both += np.bincount(self._together(present), minlength=self._both.size)
        return located

    def _together(self, present: Int64s) -> Int64s:
        """List the pairs that are named in a text, once per text."""
        texts, entities = np.divmod(present, self._of_entity.size)
        text_offsets = np.append(np.flatnonzero(np.diff(texts, prepend=-1)), texts.size)
        text = np.repeat(np.arange(text_offsets.size - 1), np.diff(text_offsets))
        # A subject with more pairs than entities in its text is looked up by these entities.
        n_pairs, n_named = np.diff(self._pair_offsets)[entities], np.diff(text_offsets)[text]
        few, many = np.flatnonzero(n_pairs <= n_named), np.flatnonzero(n_pairs > n_named)
        owners, members = members_of(self._pair_offsets, entities[few])
        pairs, subjects = self._by_subject[members], few[owners]
        wanted = present[subjects] - entities[subjects] + self._objects[pairs]
        _, is_there = _found(present, wanted)
        owners, others = members_of(text_offsets, text[many])
        wanted = entities[many[owners]] * self._of_entity.size + entities[others]
        places, is_pair = _found(self._codes, wanted)
        return np.append(pairs[is_there], self._by_subject[places[is_pair]])

    def result(self) -> PairCounts:
        """Return the counts so far, each of shape `(len(pairs),)`."""
        return PairCounts(
            n_documents_both=self._both.copy(),
            n_documents_subject=self._of_entity[self._subjects],
            n_documents_object=self._of_entity[self._objects],
        )


def _found(values: Int64s, wanted: Int64s) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    """Look up numbers in sorted values."""
    places = np.minimum(np.searchsorted(values, wanted), values.size - 1)
    return places, values[places] == wanted


def _numbered(pairs: Sequence[tuple[str, str]], entities: PackedTexts) -> tuple[Int64s, Int64s]:
    """Number the entities of pairs; raise an error for a pair that cannot be counted."""
    if not pairs:
        raise DataError("no pairs to count; give at least one (subject id, object id)")
    wanted = list(dict.fromkeys(chain.from_iterable(pairs)))
    # Without a Python string per entity of the table.
    found = pc.index_in(entities.to_arrow(), pa.array(wanted, pa.large_string()))
    places = np.flatnonzero(found.is_valid()).tolist()
    numbers = dict(zip((wanted[k] for k in found.drop_null().to_pylist()), places, strict=True))
    for first, second in pairs:
        if first == second:
            raise DataError(
                f"the pair of {shown(first)} with itself cannot be counted; omit it (`pairs`)"
            )
        for entity in (first, second):
            if entity not in numbers:
                raise DataError(
                    f"the pair {shown((first, second))} needs names of {shown(entity)}, which the "
                    "table lacks"
                )
    both = np.array([(numbers[a], numbers[b]) for a, b in pairs], dtype=np.int64)
    return both[:, 0], both[:, 1]
