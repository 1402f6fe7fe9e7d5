"""Count linked mentions: with DBpedia Spotlight on a corpus, or from rows of any linker."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from surface_consistency.errors import DataError
from surface_consistency.reading import within
from surface_consistency.runs.files import write_json
from surface_consistency.schemas.settings import Settings
from surface_consistency.text import counted_name
from surface_consistency_build.counting.counter import Counts
from surface_consistency_build.counting.finder import Hits
from surface_consistency_build.counting.surfaces import SurfaceTable
from surface_consistency_build.counting.tables import MentionCounts
from surface_consistency_build.counting.tasks import NameCounter, NameTask, ShardCounter, State
from surface_consistency_build.counting.texts import PackedTexts, comparable
from surface_consistency_build.linking.dbpedia import resource_title
from surface_consistency_build.linking.spotlight import Mention, SpotlightClient

if TYPE_CHECKING:
    import duckdb

_ELSEWHERE = {"url", "cache", "concurrency"}
"""Settings that do not change the counts."""


class LinkSettings(Settings):
    """Settings for linking mentions with a server of DBpedia Spotlight."""

    url: str | None = None
    """Address of the server, such as http://localhost:2222/rest."""

    confidence: float = Field(default=0.4, ge=0.0, le=1.0)
    """Minimum confidence of a mention; 0.4 in Kandpal et al."""

    support: int = Field(default=20, ge=0)
    """Minimum number of links in Wikipedia to an entity; 20 in Kandpal et al."""

    window: int = Field(default=300, ge=0)
    """Number of characters on each side of a counted name to send to the server."""

    whole_documents: bool = False
    """Send whole documents, to find mentions by names that are not counted."""

    cache: Path | None = None
    """File that stores the answers of the server, on a local disk; by default spotlight.sqlite in
    --out."""

    concurrency: int = Field(default=4, ge=1)
    """Maximum number of concurrent requests to the server, per process."""


@dataclass(eq=False)
class LinkTask(NameTask):
    """Task of counting names, and the mentions of their entities that DBpedia Spotlight finds."""

    link: LinkSettings = field(default_factory=LinkSettings)
    """Settings for linking."""

    entities: Mapping[str, str] = field(default_factory=dict)
    """Entity id by DBpedia URI or title."""

    @property
    def kind(self) -> str:
        """Name of the kind of run."""
        return "links"

    @classmethod
    def load(cls, folder: Path, described: Mapping[str, Any]) -> "LinkTask":
        """Read the files of `save`; see `NameTask.load`."""
        names = NameTask.load(folder, described)
        stored = json.loads((folder / "inputs" / "link.json").read_bytes())
        link = LinkSettings.model_validate_json(json.dumps(stored["link"]))
        # A path outside the folder is accepted only as an option, not from a file.
        cache = within(folder, "spotlight.sqlite")
        return cls(
            names.table,
            names.settings,
            instances=names.instances,
            link=link.model_copy(update={"cache": cache}),
            entities=stored["entities"],
        )

    def describe(self) -> dict[str, Any]:
        """Return settings and digests of the task, as JSON."""
        if self.link.url is None:
            raise ValueError("`url` is required: the address of the server of DBpedia Spotlight")
        if self.settings.case != "exact":
            raise ValueError("`case` must be exact: a linker reads texts with their case")
        described = super().describe()
        described["link"] = self.link.model_dump(mode="json", exclude=_ELSEWHERE)
        described["entities"] = dict(self.entities)
        return described

    def save(self, folder: Path) -> None:
        """Write the task to the folder of the run."""
        super().save(folder)
        link = self.link.model_dump(mode="json", exclude={"cache"})
        described = {"link": link, "entities": dict(self.entities)}
        write_json(folder / "inputs" / "link.json", described, indent=None)

    def counter(self) -> ShardCounter:
        """Make a counter with zero counts; tables that are slow to build are built once."""
        return _Links(self, self.name_counter())

    def mentions(self, counts: Counts, totals: State) -> MentionCounts:
        """Return the counts of linked mentions."""
        return MentionCounts(**{name: totals[name] for name in _COUNTED})

    def write(self, folder: Path, totals: State) -> dict[str, Any]:
        """Write the tables of the summed states of all shards, and return the numbers counted."""
        return super().write(folder, totals) | {name: int(totals[name]) for name in _TOTALS}


_COUNTED = ("linked_mentions", "linked_documents", "entity_linked", "entity_linked_documents")
_TOTALS = ("n_linked", "n_documents_not_linked", "n_characters_linked")


def _rows_of(table: SurfaceTable) -> dict[tuple[str, str], list[int]]:
    """Find the rows of each (name, entity id)."""
    keys, entities = list(table.keys), list(table.entities)
    rows: dict[tuple[str, str], list[int]] = {}
    pairs = zip(table.rows.key.tolist(), table.rows.entity.tolist(), strict=True)
    for row, (key, entity) in enumerate(pairs):
        rows.setdefault((keys[key], entities[entity]), []).append(row)
    return rows


def _no_counts(table: SurfaceTable) -> dict[str, npt.NDArray[np.int64]]:
    """Make zero counts."""
    sizes = {
        name: table.n_entities if name.startswith("entity") else len(table) for name in _COUNTED
    }
    return {name: np.zeros(size, dtype=np.int64) for name, size in sizes.items()}


class _Links:
    """Counts names and linked mentions of the same documents."""

    def __init__(self, task: LinkTask, names: NameCounter) -> None:
        self.names = names
        link = task.link
        self._linker = SpotlightClient(
            str(link.url),
            entities=task.entities,
            **link.model_dump(include={"confidence", "support", "cache", "concurrency"}),
        )
        self._entities = {name: number for number, name in enumerate(task.table.entities)}
        self._rows = _rows_of(task.table)
        self._counts = _no_counts(task.table)
        self._totals = dict.fromkeys(_TOTALS, 0)
        self._window = None if link.whole_documents else link.window

    def feed(self, texts: PackedTexts) -> None:
        """Count more documents."""
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
            for row in self._rows.get((name, mention.entity_id), ()):
                self._counts["linked_mentions"][row] += 1
                rows.add(row)
        self._counts["entity_linked_documents"][list(entities)] += 1
        self._counts["linked_documents"][list(rows)] += 1

    def _in_windows(
        self, texts: PackedTexts, hits: Hits, window: int
    ) -> Iterator[list[Mention] | None]:
        """Link only the text around counted names."""
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
    """Return the windows of a text around its hits, in characters, cut at white space."""
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


def count_link_rows(
    source: str | Path, table: SurfaceTable, entities: Mapping[str, str]
) -> MentionCounts:
    """Count the mentions in the rows of a linker, one row per mention.

    As in RedirectQA (section 4.1), the frequency of an entity is the number of its mentions by any
    name. The frequency of a name is the number of mentions of the entity whose span is exactly the
    name. DuckDB reads the rows, so a file may be larger than memory.

    Args:
        source: File or pattern of files (.parquet, .jsonl, .csv, .tsv; text files also as .gz) with
            the columns `uri` (a DBpedia URI or title) or `entity_id`, `surface` (the text of the
            span) and, if known, `document`.
        table: The names and entities to count.
        entities: Entity id by DBpedia URI or title; not used for a column `entity_id`.

    Returns:
        The counts; counts of documents are None without a column `document`.

    Raises:
        DataError: If the rows cannot be read, or a column is missing.
    """
    import duckdb

    place = str(source)
    ids = {comparable(resource_title(name)): entity for name, entity in entities.items()}
    with duckdb.connect() as connection:
        try:
            connection.sql(f"CREATE VIEW given AS FROM {_reader(place)}")
            columns = {row[0] for row in connection.sql("DESCRIBE given").fetchall()}
            key = "entity_id" if "entity_id" in columns else "uri"
            if missing := {key, "surface"} - columns:
                raise DataError(
                    f"{place}: column {' or '.join(sorted(missing))} not found; rows of a linker "
                    f"need uri or entity_id, and surface. Columns: {', '.join(sorted(columns))}"
                )
            documents = "count(DISTINCT document)" if "document" in columns else "NULL"
            known = set(table.entities)
            wanted = {
                name: entity
                for (name,) in connection.sql(f"SELECT DISTINCT {key} FROM given").fetchall()
                if name is not None
                and (
                    entity := name
                    if key == "entity_id"
                    else ids.get(comparable(resource_title(name)))
                )
                in known
            }
            _register(connection, "wanted", wanted)
            connection.sql(
                f"CREATE VIEW ours AS FROM given JOIN wanted ON given.{key} = wanted.given"
            )
            surfaces = connection.sql("SELECT DISTINCT surface FROM ours").fetchall()
            spelled = {text: counted_name(text) for (text,) in surfaces if text is not None}
            _register(connection, "spelled", spelled)
            of_entities = connection.sql(
                f"SELECT meant, count(*), {documents} FROM ours GROUP BY meant"
            ).fetchall()
            of_names = connection.sql(
                f"SELECT spelled.meant, ours.meant, count(*), {documents} FROM ours "
                "JOIN spelled ON ours.surface = spelled.given GROUP BY ALL"
            ).fetchall()
        except duckdb.Error as error:
            raise DataError(f"{place} cannot be read as rows of a linker: {error}") from error
    numbers = {name: number for number, name in enumerate(table.entities)}
    rows, counts = _rows_of(table), _no_counts(table)
    for entity, n, n_documents in of_entities:
        counts["entity_linked"][numbers[entity]] = n
        counts["entity_linked_documents"][numbers[entity]] = n_documents or 0
    for name, entity, n, n_documents in of_names:
        found = rows.get((name, entity), [])
        counts["linked_mentions"][found] = n
        counts["linked_documents"][found] = n_documents or 0
    if "document" not in columns:
        return MentionCounts(**{k: v for k, v in counts.items() if "documents" not in k})
    return MentionCounts(**counts)


def _reader(place: str) -> str:
    """Return the call of DuckDB that reads a file, by its suffix."""
    quoted = "'" + place.replace("'", "''") + "'"
    suffix = Path(place.removesuffix(".gz")).suffix.lower()
    calls = {
        ".parquet": f"read_parquet({quoted})",
        ".csv": f"read_csv({quoted}, all_varchar = true)",
        ".tsv": f"read_csv({quoted}, all_varchar = true, delim = '\t')",
        **dict.fromkeys((".jsonl", ".ndjson", ".json"), f"read_json({quoted})"),
    }
    if suffix not in calls:
        raise DataError(
            f"{place}: rows of a linker can be read from {', '.join(calls)}; convert the file"
        )
    return calls[suffix]


def _register(connection: "duckdb.DuckDBPyConnection", name: str, pairs: Mapping[str, str]) -> None:
    """Register pairs as a table with the columns given and meant."""
    columns = {"given": list(pairs), "meant": list(pairs.values())}
    arrays = {key: pa.array(values, pa.string()) for key, values in columns.items()}
    connection.register(name, pa.table(arrays))
