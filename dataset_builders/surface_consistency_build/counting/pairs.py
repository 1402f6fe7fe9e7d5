"""In how many documents two entities are named together."""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import DataError
from surface_consistency_build.counting.counter import SurfaceCounter, longest_hits
from surface_consistency_build.counting.engines import Hits
from surface_consistency_build.counting.surfaces import SurfaceTable
from surface_consistency_build.counting.texts import PackedTexts, members_of, offsets_of

Int64s = npt.NDArray[np.int64]

Occurrences = Literal["longest", "bounded"]
"""Which occurrences name an entity: those that no longer name covers, or all."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairCounts:
    """Document counts of pairs, in the order of `PairCounter.pairs`."""

    n_documents_both: Int64s
    """Documents that name both, within the window if there is one."""

    n_documents_subject: Int64s
    """Documents that name the subject."""

    n_documents_object: Int64s
    """Documents that name the object."""


class PairCounter:
    """Counts the documents that name both entities of a pair, by whatever names.

    Args:
        table: The names of the entities.
        pairs: (subject id, object id); a pair that is given twice is counted once.
        window: Most characters between a name of one and a name of the other; None for anywhere in
            the document.
        occurrences: "longest" (the default) does not take "Paris Hilton" for Paris where both are
            names of the table; "bounded" takes every occurrence that the boundary rule allows.
        options: Options of `SurfaceCounter`.

    Raises:
        DataError: If there is no pair, an entity has no name in the table, or a pair is of an
            entity with itself.
        ValueError: If `window` is negative or `occurrences` none of its choices.

    Examples:
        >>> table = SurfaceTable.from_records([("Q90", "Paris"), ("Q142", "France")])
        >>> counter = PairCounter(table, [("Q90", "Q142")], engine="ahocorasick")
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
        window: int | None = None,
        occurrences: Occurrences = "longest",
        **options: Any,  # noqa: ANN401 - those of SurfaceCounter
    ) -> None:
        if window is not None and window < 0:
            raise ValueError(f"window must be at least 0 characters, or None, got {window}")
        if occurrences not in ("longest", "bounded"):
            raise ValueError(f"occurrences must be one of longest, bounded, got {occurrences!r}")
        self.pairs = tuple(dict.fromkeys((first, second) for first, second in pairs))
        """Distinct (subject id, object id), in order of appearance."""
        self.surfaces = SurfaceCounter(table, **options)
        """Counter of the names, fed with the same documents."""
        self._window, self._occurrences = window, occurrences
        numbers = {entity: number for number, entity in enumerate(table.entities)}
        self._subjects, self._objects = _numbered(self.pairs, numbers)
        self._pairs_by_subject = np.argsort(self._subjects, kind="stable")
        self._pair_offsets = offsets_of(np.bincount(self._subjects, minlength=table.n_entities))
        self._both = np.zeros(len(self.pairs), dtype=np.int64)
        self._of_entity = np.zeros(table.n_entities, dtype=np.int64)

    def sibling(self) -> "PairCounter":
        """Return a counter at zero that shares the tables of this one, for another thread."""
        other = copy(self)
        other.surfaces = self.surfaces.sibling()
        other._both, other._of_entity = np.zeros_like(self._both), np.zeros_like(self._of_entity)
        return other

    def feed(self, texts: Iterable[str | bytes] | PackedTexts) -> None:
        """Count pairs and names in more documents; see `SurfaceCounter.feed`."""
        self.locate(texts)

    def locate(self, texts: Iterable[str | bytes] | PackedTexts) -> tuple[PackedTexts, Hits]:
        """Count, and tell where names stand; see `SurfaceCounter.locate`."""
        located = prepared, hits = self.surfaces.locate(texts)
        if self._occurrences == "longest":
            kept = longest_hits(hits)
            hits = Hits(*(column[kept] for column in hits))
        n = self._of_entity.size
        rows, entities = self.surfaces.entities_of(hits.keys)
        named = hits.texts[rows] * n + entities
        present, places = np.unique(named), np.argsort(named, kind="stable")
        self._of_entity += np.bincount(present % n, minlength=n)
        owners, members = members_of(self._pair_offsets, present % n)
        pairs, subjects = self._pairs_by_subject[members], present[owners]
        objects = subjects // n * n + self._objects[pairs]
        is_there = np.isin(objects, present)
        if self._window is not None and is_there.any():
            spans = _Spans(prepared, hits, rows[places], named[places])
            for place in np.flatnonzero(is_there).tolist():
                is_there[place] = spans.gap(subjects[place], objects[place]) <= self._window
        self._both += np.bincount(pairs[is_there], minlength=self._both.size)
        return located

    def result(self) -> PairCounts:
        """Return the counts so far, each of shape `(len(pairs),)`."""
        return PairCounts(
            n_documents_both=self._both.copy(),
            n_documents_subject=self._of_entity[self._subjects],
            n_documents_object=self._of_entity[self._objects],
        )


class _Spans:
    """Where entities are named in a batch, in characters."""

    def __init__(self, texts: PackedTexts, hits: Hits, rows: Int64s, named: Int64s) -> None:
        characters = texts.characters_before()
        self._named = named
        self._starts = characters[hits.starts[rows]]
        self._stops = characters[hits.stops[rows]]

    def gap(self, first: int, second: int) -> int:
        """Return the fewest characters between names of two entities in a text; 0 if they meet."""
        ours, theirs = self._of(first), self._of(second)
        apart = np.maximum(
            self._starts[theirs][None, :] - self._stops[ours][:, None],
            self._starts[ours][:, None] - self._stops[theirs][None, :],
        )
        return max(int(apart.min()), 0)

    def _of(self, named: int) -> slice:
        """Find the spans of an entity in a text."""
        first, last = np.searchsorted(self._named, [named, named + 1])
        return slice(int(first), int(last))


def _numbered(pairs: Sequence[tuple[str, str]], numbers: dict[str, int]) -> tuple[Int64s, Int64s]:
    """Number the entities of pairs, or say which pair cannot be counted."""
    if not pairs:
        raise DataError("there are no pairs to count; give at least one (subject id, object id)")
    for first, second in pairs:
        if first == second:
            raise DataError(
                f"the pair of {first!r} with itself cannot be counted; leave it out (`pairs`)"
            )
        for entity in (first, second):
            if entity not in numbers:
                raise DataError(
                    f"the pair {(first, second)} needs names of {entity!r}, and the table has none"
                )
    both = np.array([(numbers[a], numbers[b]) for a, b in pairs], dtype=np.int64)
    return both[:, 0], both[:, 1]
