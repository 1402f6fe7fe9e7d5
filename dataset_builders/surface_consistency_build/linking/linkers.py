"""Linkers: which entity a name means where it stands, by what a wiki's links say."""

import os
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency_build.counting.boundaries import BoundaryRule
from surface_consistency_build.counting.counter import longest_hits
from surface_consistency_build.counting.engines import EngineName, Hits, make_finder
from surface_consistency_build.counting.texts import PackedTexts
from surface_consistency_build.linking.mentions import MentionTable

LINKED_FROM: Final = ("linked_entities.parquet", "linked_offsets.npy", "linked_from.npy")
"""Files of `build mentions` with the pages that link to each entity."""

Int64s = npt.NDArray[np.int64]

_NEIGHBOURS: Final = 20
_VOTERS: Final = 5


class Mention(NamedTuple):
    """A name that means an entity."""

    start: int
    """First character, in the text in NFC."""

    stop: int
    """Character after the last."""

    surface: str
    """The name as it stands there, in NFC."""

    entity_id: str
    """The entity."""

    score: float
    """How sure the linker is, in [0, 1]."""


class Linker(Protocol):
    """Finds mentions in texts."""

    def link(self, texts: Iterable[str | bytes] | PackedTexts) -> Iterator[list[Mention] | None]:
        """Find the mentions of each text.

        Args:
            texts: The texts, as `SurfaceCounter.feed` takes them.

        Yields:
            The mentions of each text, in order; None for a text that the linker failed on.
        """
        ...


class PriorLinker:
    """Takes each name for the entity that it links to most often.

    Names whose link probability is too low ("Number", "Up") are passed over; of the others the
    longest is taken at each place, from the start of the text on.

    Args:
        mentions: What names link to.
        min_link_probability: Least probability that a page with the name links it.
        boundary: What may stand beside a name; see `BoundaryRule`.
        engine: Which engine finds names; all find the same.
        entities: Entities whose mentions are wanted; all by default.

    Raises:
        ValueError: If `min_link_probability` is not in [0, 1].
        DataError: If no name is left.

    Examples:
        >>> rows = [("Paris", "Q90", 8), ("Paris", "Q167646", 1), ("up", "Q1", 1)]
        >>> table = MentionTable.from_rows(
        ...     {"surface": name, "entity_id": entity, "title": entity, "n_links": n,
        ...      "is_title": False, "is_redirect": False, "n_link_documents": 8,
        ...      "n_surface_documents": 10_000 if name == "up" else 10}
        ...     for name, entity, n in rows)
        >>> next(PriorLinker(table, engine="ahocorasick").link(["Look up Paris!"]))
        [Mention(start=8, stop=13, surface='Paris', entity_id='Q90', score=0.888...)]
    """

    def __init__(
        self,
        mentions: MentionTable,
        *,
        min_link_probability: float = 0.05,
        boundary: BoundaryRule = "word",
        engine: EngineName = "auto",
        entities: Collection[str] | None = None,
    ) -> None:
        if not 0.0 <= min_link_probability <= 1.0:
            raise ValueError(
                f"min_link_probability must be from 0 to 1, got {min_link_probability!r}"
            )
        self.mentions = mentions
        """What names link to."""
        # A name whose links all lead to no article names nothing.
        has_link = np.add.reduceat(mentions.commonness, mentions.offsets[:-1]) > 0
        kept = np.flatnonzero((mentions.link_probability >= min_link_probability) & has_link)
        if not kept.size:
            raise DataError(
                f"no name of the mention table has a link probability of {min_link_probability:g}; "
                "lower min_link_probability"
            )
        self._first_row = mentions.offsets[:-1][kept]
        self._last_row = mentions.offsets[1:][kept]
        # The commonest is the first row but where only titles and redirects are counted.
        sizes = np.diff(mentions.offsets)
        best = np.maximum.reduceat(mentions.commonness, mentions.offsets[:-1])
        is_best = mentions.commonness == np.repeat(best, sizes)
        first_best = np.flatnonzero(is_best)
        owners = np.searchsorted(mentions.offsets, first_best, side="right") - 1
        _, places = np.unique(owners, return_index=True)
        self._best_row = first_best[places][kept]
        self._finder = make_finder(_chosen(mentions.names, kept), boundary=boundary, engine=engine)
        numbers = {entity: number for number, entity in enumerate(mentions.entities)}
        self._wanted: npt.NDArray[np.bool_] | None = None
        if entities is not None:
            self._wanted = np.zeros(len(numbers), dtype=np.bool_)
            self._wanted[[numbers[name] for name in entities if name in numbers]] = True

    def link(self, texts: Iterable[str | bytes] | PackedTexts) -> Iterator[list[Mention] | None]:
        """Find the mentions of each text; see `Linker.link`."""
        packed = texts if isinstance(texts, PackedTexts) else PackedTexts.pack(texts)
        prepared = self._finder.prepare(packed)
        hits = self._finder.find(prepared)
        kept = longest_hits(hits)
        hits = Hits(*(column[kept] for column in hits))
        rows, scores = self._choose(hits)
        shown = rows >= 0
        if self._wanted is not None:
            shown &= self._wanted[self.mentions.entity[np.maximum(rows, 0)]]
        bounds = np.searchsorted(hits.texts, np.arange(len(packed) + 1))
        characters = prepared.characters_before()
        for text in range(len(packed)):
            first = characters[prepared.offsets[text]]
            found = []
            for place in (
                np.flatnonzero(shown[bounds[text] : bounds[text + 1]]) + bounds[text]
            ).tolist():
                start, stop = hits.starts[place], hits.stops[place]
                found.append(
                    Mention(
                        int(characters[start] - first),
                        int(characters[stop] - first),
                        prepared.buffer[start:stop].tobytes().decode(),
                        self.mentions.entities[int(self.mentions.entity[rows[place]])],
                        float(scores[place]),
                    )
                )
            yield found

    def _choose(self, hits: Hits) -> tuple[Int64s, npt.NDArray[np.float64]]:
        """Choose the row of the mention table that each hit means, -1 for none, and its score."""
        rows = self._best_row[hits.keys]
        return rows, self.mentions.commonness[rows]


class InLinks:
    """The pages that link to each entity, read from the disk as they are needed."""

    def __init__(self, folder: str | os.PathLike[str], entities: PackedTexts) -> None:
        """Open the files of `build mentions`.

        Args:
            folder: Their folder.
            entities: Ids of the entities, in the order of `relatedness`.

        Raises:
            SourceNotFoundError: If a file is missing.
        """
        places = [Path(folder, name) for name in LINKED_FROM]
        for place in places:
            if not place.is_file():
                raise SourceNotFoundError(
                    f"there is no {place}; coherence needs the folder of `build mentions`"
                )
        ids = pq.read_table(places[0])["entity_id"].cast(pa.large_string())
        # Where an entity of the table stands in the files; those renamed keep their place.
        found = pc.index_in(entities.to_arrow(), value_set=ids.combine_chunks())
        self._place = found.fill_null(-1).to_numpy(zero_copy_only=False)
        self._offsets: Int64s = np.load(places[1])
        self._sources = np.load(places[2], mmap_mode="r")
        self.n_pages = len(ids)
        """Articles of the wiki."""

    def pages(self, entity: int) -> npt.NDArray[Any]:
        """Return the pages that link to an entity.

        Args:
            entity: Its number.

        Returns:
            Their numbers, rising; none for one that the files lack.
        """
        place = int(self._place[entity])
        if place < 0:
            return np.zeros(0, dtype=np.int32)
        return np.asarray(self._sources[self._offsets[place] : self._offsets[place + 1]])

    def relatedness(self, first: int, second: int) -> float:
        """Tell how much two entities belong together, after Milne and Witten (2008).

        1 - (log max(a, b) - log c) / (log W - log min(a, b)), where a and b are the numbers of
        pages that link to either, c to both, and W of all pages.

        Args:
            first: Number of an entity.
            second: Likewise.

        Returns:
            A number in [0, 1]; 0 where no page links to both, 1 for an entity and itself.
        """
        if first == second:
            return 1.0
        a, b = self.pages(first), self.pages(second)
        short, long = (a, b) if a.size <= b.size else (b, a)
        if not short.size:
            return 0.0
        place = np.minimum(np.searchsorted(long, short), long.size - 1)
        both = int(np.count_nonzero(long[place] == short))
        if not both:
            return 0.0
        reach = np.log(max(self.n_pages, 2)) - np.log(short.size)
        if reach <= 0:
            return 1.0
        return float(min(1.0, max(0.0, 1.0 - (np.log(long.size) - np.log(both)) / reach)))


class CoherenceLinker(PriorLinker):
    """Takes each name for an entity that goes with the others of the text.

    TagMe's disambiguation by threshold (Ferragina and Scaiella, 2010): every candidate of a name is
    voted for by the names around it, each with the mean relatedness of its own candidates weighted
    by their commonness; of the candidates whose votes are within `margin` of the best the
    commonest is taken. Candidates of a commonness below `min_commonness` are left out.

    Args:
        mentions: What names link to.
        folder: Folder of `build mentions`, with the pages that link to each entity.
        in_links: Them, where they are open already.
        margin: Share by which votes may lie below the best.
        min_commonness: Least share of the name's links.
        options: Options of `PriorLinker`.

    Raises:
        SourceNotFoundError: If the folder lacks the files.
        ValueError: If an option is not in [0, 1].
    """

    def __init__(
        self,
        mentions: MentionTable,
        folder: str | os.PathLike[str] | None = None,
        *,
        in_links: InLinks | None = None,
        margin: float = 0.3,
        min_commonness: float = 0.02,
        **options: Any,  # noqa: ANN401 - those of PriorLinker
    ) -> None:
        for name, value in (("margin", margin), ("min_commonness", min_commonness)):
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"{name} must be from 0 to 1, got {value!r}")
        super().__init__(mentions, **options)
        if in_links is None:
            if folder is None:
                raise ValueError("give folder or in_links: which pages link to each entity")
            in_links = InLinks(folder, mentions.entities)
        self._relatedness = lru_cache(1 << 20)(in_links.relatedness)
        self._margin, self._least = margin, min_commonness

    def _choose(self, hits: Hits) -> tuple[Int64s, npt.NDArray[np.float64]]:
        """Choose by the votes of the names around."""
        rows, scores = super()._choose(hits)
        candidates = [self._candidates(key) for key in hits.keys.tolist()]
        for place in range(len(candidates)):
            if len(candidates[place]) < 2 or not self._is_asked(candidates[place]):
                continue
            votes = self._votes(hits, candidates, place)
            best = votes.max(initial=0.0)
            if best <= 0.0:
                continue
            own = candidates[place]
            close = own[votes >= (1.0 - self._margin) * best]
            rows[place] = close[np.argmax(self.mentions.commonness[close])]
            scores[place] = float(votes[own == rows[place]][0])
        return rows, scores

    def _candidates(self, key: int) -> Int64s:
        """Return the rows that a name may mean."""
        rows = np.arange(self._first_row[key], self._last_row[key])
        return rows[self.mentions.commonness[rows] >= self._least]

    def _is_asked(self, rows: Int64s) -> bool:
        """Tell whether any candidate is wanted."""
        return self._wanted is None or bool(self._wanted[self.mentions.entity[rows]].any())

    def _votes(self, hits: Hits, candidates: list[Int64s], place: int) -> npt.NDArray[np.float64]:
        """Return the mean vote for each candidate of a name."""
        first, last = max(0, place - _NEIGHBOURS // 2), place + _NEIGHBOURS // 2 + 1
        around = {
            int(hits.keys[other]): candidates[other]
            for other in range(first, min(last, len(candidates)))
            if hits.texts[other] == hits.texts[place] and hits.keys[other] != hits.keys[place]
        }
        votes = np.zeros(len(candidates[place]))
        for rows in around.values():
            shares = self.mentions.commonness[rows]
            voters = rows[np.argsort(-shares, kind="stable")[:_VOTERS]].tolist()
            for number, row in enumerate(candidates[place].tolist()):
                entity = int(self.mentions.entity[row])
                votes[number] += sum(
                    self.mentions.commonness[voter]
                    * self._relatedness(entity, int(self.mentions.entity[voter]))
                    for voter in voters
                ) / max(1, len(voters))
        return votes / max(1, len(around))


def _chosen(names: PackedTexts, kept: Int64s) -> PackedTexts:
    """Return some names."""
    return names if kept.size == len(names) else PackedTexts.from_arrow(names.to_arrow().take(kept))
