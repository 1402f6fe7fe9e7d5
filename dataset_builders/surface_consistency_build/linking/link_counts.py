"""Counting linked mentions over a corpus, beside names: what `count linked` runs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from surface_consistency.runs.files import write_json
from surface_consistency.schemas.settings import Settings
from surface_consistency.text import counted_name
from surface_consistency_build.counting.counter import Counts
from surface_consistency_build.counting.engines import EngineName, Hits
from surface_consistency_build.counting.tables import MentionCounts
from surface_consistency_build.counting.tasks import NameCounter, NameTask, ShardCounter, State
from surface_consistency_build.counting.texts import PackedTexts
from surface_consistency_build.linking.linkers import CoherenceLinker, Linker, Mention, PriorLinker
from surface_consistency_build.linking.mentions import MentionTable, expected_mentions, mention_file
from surface_consistency_build.linking.spotlight import SpotlightClient

LinkerName = Literal["prior", "coherence", "spotlight"]
"""What links: the commonest entity of a name, the one that goes with the others of the text, or a
server of DBpedia Spotlight."""

_ELSEWHERE = {"url", "cache", "concurrency", "mentions"}
"""Settings that do not change what is counted; the mention table has a digest of its own."""


class LinkSettings(Settings):
    """How mentions are linked."""

    linker: LinkerName = "prior"
    """What links: prior (the entity that the name links to most often), coherence (the one that
    goes with the other names of the text), or spotlight (a server of DBpedia Spotlight)."""

    mentions: Path | None = None
    """Folder of `build mentions`, for prior and coherence, and for expected mentions."""

    min_link_probability: float = Field(default=0.05, ge=0.0, le=1.0)
    """Least share of the pages with a name that link it, for prior and coherence."""

    url: str | None = None
    """Address of the server, such as http://localhost:2222/rest."""

    confidence: float = Field(default=0.4, ge=0.0, le=1.0)
    """Least confidence of the server."""

    support: int = Field(default=20, ge=0)
    """Least number of links in Wikipedia to an entity that the server names."""

    window: int = Field(default=300, ge=0)
    """Characters on each side of a counted name that are sent to the server."""

    whole_documents: bool = False
    """Whether whole documents are sent, for mentions under names that are not counted."""

    cache: Path | None = None
    """File of the server's answers, on a disk of this machine; spotlight.sqlite in --out by
    default."""

    concurrency: int = Field(default=4, ge=1)
    """Requests to the server at once, from each process."""

    def check(self) -> None:
        """Refuse settings that lack what their linker needs.

        Raises:
            ValueError: If the linker needs a table or an address; names the field.
        """
        if self.linker == "spotlight" and self.url is None:
            raise ValueError("`linker` spotlight needs `url`: where the server is")
        if self.linker != "spotlight" and self.mentions is None:
            raise ValueError(
                f"`linker` {self.linker} needs `mentions`: a folder of `build mentions`"
            )


def make_linker(
    settings: LinkSettings,
    titles: Mapping[str, str],
    *,
    mentions: MentionTable | None = None,
    engine: EngineName = "auto",
    only: bool = True,
    **options: Any,  # noqa: ANN401 - those of PriorLinker
) -> Linker:
    """Make a linker.

    Args:
        settings: Which.
        titles: Title of each entity that is asked for, by its id.
        mentions: The mention table, its entities known by these ids.
        engine: Which engine finds names.
        only: Whether only the entities of `titles` are wanted.
        options: Options of `PriorLinker`.

    Returns:
        The linker.

    Raises:
        ValueError: If the settings lack what their linker needs.
        SourceNotFoundError: If there is no mention table.
    """
    settings.check()
    if settings.linker == "spotlight":
        return SpotlightClient(
            str(settings.url),
            confidence=settings.confidence,
            support=settings.support,
            titles=titles,
            cache=settings.cache,
            concurrency=settings.concurrency,
        )
    path = mention_file(settings.mentions or Path())
    table = MentionTable.read(path).named(titles) if mentions is None else mentions
    given: dict[str, Any] = {
        "min_link_probability": settings.min_link_probability,
        "engine": engine,
        "entities": titles if only else None,
        **options,
    }
    if settings.linker == "coherence":
        return CoherenceLinker(table, path.parent, **given)
    return PriorLinker(table, **given)


@dataclass(eq=False)
class LinkTask(NameTask):
    """Names, and the mentions of their entities that a linker finds."""

    link: LinkSettings = field(default_factory=LinkSettings)
    """How mentions are linked."""

    titles: Mapping[str, str] = field(default_factory=dict)
    """Title of each entity in the wiki, by its id."""

    _linkers: dict[EngineName, Linker] = field(default_factory=dict, repr=False)

    @property
    def kind(self) -> str:
        """Name of the kind of run."""
        return "links"

    @cached_property
    def mention_table(self) -> MentionTable | None:
        """The mention table, if there is one."""
        path = self.link.mentions
        return None if path is None else MentionTable.read(path).named(self.titles)

    @classmethod
    def load(cls, folder: Path, described: Mapping[str, Any]) -> "LinkTask":
        """Read what `save` wrote; see `NameTask.load`."""
        names = NameTask.load(folder, described)
        told = json.loads((folder / "inputs" / "link.json").read_bytes())
        return cls(
            names.table,
            names.settings,
            instances=names.instances,
            link=LinkSettings.model_validate_json(json.dumps(told["link"])),
            titles=told["titles"],
        )

    def describe(self) -> dict[str, Any]:
        """Return settings and digests of what is counted, as JSON."""
        self.link.check()
        if self.settings.case != "exact":
            raise ValueError("`case` must be exact: a linker reads texts as they are spelled")
        told = super().describe()
        told["link"] = self.link.model_dump(mode="json", exclude=_ELSEWHERE)
        told["titles"] = dict(self.titles)
        told["mentions"] = None if self.mention_table is None else self.mention_table.digest
        return told

    def save(self, folder: Path) -> None:
        """Write what is counted into the folder of the run."""
        super().save(folder)
        # A shard may be counted from another folder than the one that the run was planned in.
        paths = {
            name: path.resolve()
            for name in ("mentions", "cache")
            if (path := getattr(self.link, name)) is not None
        }
        link = self.link.model_copy(update=paths).model_dump(mode="json")
        told = {"link": link, "titles": dict(self.titles)}
        write_json(folder / "inputs" / "link.json", told, indent=None)

    def counter(self, engine: EngineName) -> ShardCounter:
        """Make a counter at zero; what takes long to build is built once."""
        if engine not in self._linkers:
            self._linkers[engine] = make_linker(
                self.link,
                self.titles,
                mentions=self.mention_table,
                engine=engine,
                boundary=self.settings.boundary,
            )
        return _Links(self, self.name_counter(engine), self._linkers[engine])

    def mentions(self, counts: Counts, totals: State) -> MentionCounts:
        """Add what was linked, and share names out to the entities that they may mean."""
        counted = {name: totals[name] for name in _COUNTED}
        table = self.mention_table
        expected = None if table is None else expected_mentions(self.table, counts.n_longest, table)
        return MentionCounts(**counted, expected=expected)

    def write(self, folder: Path, totals: State) -> dict[str, Any]:
        """Write the tables of the summed states of all shards, and return what was counted."""
        return super().write(folder, totals) | {name: int(totals[name]) for name in _TOTALS}


_COUNTED = ("linked_mentions", "linked_documents", "entity_linked", "entity_linked_documents")
_TOTALS = ("n_linked", "n_documents_not_linked", "n_characters_linked")


class _Links:
    """Counts names and linked mentions of the same documents."""

    def __init__(self, task: LinkTask, names: NameCounter, linker: Linker) -> None:
        self.names = names
        self._linker = linker
        table = task.table
        self._entities = {name: number for number, name in enumerate(table.entities)}
        self._rows: dict[tuple[str, int], list[int]] = {}
        keys = list(table.keys)
        pairs = zip(table.rows.key.tolist(), table.rows.entity.tolist(), strict=True)
        for row, (key, entity) in enumerate(pairs):
            self._rows.setdefault((keys[key], entity), []).append(row)
        self._case = task.settings.case
        self._counts = {
            name: np.zeros(
                table.n_entities if name.startswith("entity") else len(table), dtype=np.int64
            )
            for name in _COUNTED
        }
        self._totals = dict.fromkeys(_TOTALS, 0)
        in_windows = isinstance(linker, SpotlightClient) and not task.link.whole_documents
        self._window = task.link.window if in_windows else None

    def feed(self, texts: PackedTexts) -> None:
        """Count in more documents."""
        prepared, hits = self.names.locate(texts)
        if self._window is None:
            found = self._linker.link(prepared)
            self._totals["n_characters_linked"] += int(prepared.characters_before()[-1])
        else:
            found = self._in_windows(prepared, hits, self._window)
        for mentions in found:
            if mentions is None:
                self._totals["n_documents_not_linked"] += 1
            else:
                self._add(mentions)

    def state(self) -> State:
        """Return the counts."""
        totals = {name: np.asarray(value) for name, value in self._totals.items()}
        return {**self.names.state(), **self._counts, **totals}

    def _add(self, mentions: Sequence[Mention]) -> None:
        """Count the mentions of a document."""
        entities: set[int] = set()
        rows: set[int] = set()
        for mention in mentions:
            entity = self._entities.get(mention.entity_id)
            if entity is None:
                continue
            self._totals["n_linked"] += 1
            self._counts["entity_linked"][entity] += 1
            entities.add(entity)
            name = counted_name(mention.surface)
            for row in self._rows.get((name, entity), ()):
                self._counts["linked_mentions"][row] += 1
                rows.add(row)
        self._counts["entity_linked_documents"][list(entities)] += 1
        self._counts["linked_documents"][list(rows)] += 1

    def _in_windows(
        self, texts: PackedTexts, hits: Hits, window: int
    ) -> Iterator[list[Mention] | None]:
        """Link only what stands around counted names."""
        spans = [_windows(texts, hits, number, window) for number in range(len(texts))]
        pieces = [
            text[start:stop]
            for number, of_text in enumerate(spans)
            for text in ([texts[number]] if of_text else [])
            for start, stop in of_text
        ]
        self._totals["n_characters_linked"] += sum(map(len, pieces))
        replies = self._linker.link(pieces)
        for of_text in spans:
            found = [(start, next(replies)) for start, _ in of_text]
            if any(mentions is None for _, mentions in found):
                yield None
                continue
            yield [
                mention._replace(start=mention.start + first, stop=mention.stop + first)
                for first, mentions in found
                for mention in mentions or ()
            ]


def _windows(texts: PackedTexts, hits: Hits, number: int, width: int) -> list[tuple[int, int]]:
    """Find the stretches of a text around its hits, in characters, cut at white space."""
    first, last = np.searchsorted(hits.texts, [number, number + 1])
    if first == last:
        return []
    text, begin = texts[number], texts.offsets[number]
    characters = PackedTexts.pack([text]).characters_before()
    starts = characters[hits.starts[first:last] - begin].tolist()
    stops = characters[hits.stops[first:last] - begin].tolist()
    spans: list[tuple[int, int]] = []
    for start, stop in zip(starts, stops, strict=True):
        low, high = max(0, start - width), min(len(text), stop + width)
        while low > 0 and start - low < 2 * width and not text[low - 1].isspace():
            low -= 1
        while high < len(text) and high - stop < 2 * width and not text[high].isspace():
            high += 1
        if spans and low <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(high, spans[-1][1]))
        else:
            spans.append((low, high))
    return spans
