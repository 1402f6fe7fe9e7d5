"""Wikidata's JSON dump: items with labels, aliases, the best claims, and their pages in a wiki."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from surface_consistency.wikimedia._wikidata_items import (
    Entity,
    EntityDecoder,
    WikidataCounts,
    best_objects,
    dump_items,
    entity_decoder,
)
from surface_consistency.wikimedia.streams import ProgressHook

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "EntityBatch",
    "WikidataCounts",
    "WikidataEntity",
    "read_entities",
    "read_entity_batches",
]

_PROPERTY: Final = re.compile(r"P[1-9]\d*")
_BATCH_ITEMS: Final = 50_000
_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True, kw_only=True)
class WikidataEntity:
    """The wanted fields of one item."""

    id: str
    """Identifier, such as "Q571"."""

    labels: dict[str, str]
    """Label by language, for the wanted languages that have one."""

    aliases: dict[str, tuple[str, ...]]
    """Aliases by language, for the wanted languages that have any."""

    claims: dict[str, tuple[str, ...]]
    """Items by property, of the best rank; for the wanted properties that have any."""

    sitelinks: dict[str, str]
    """Title by wiki, for the wanted wikis that have a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityBatch:
    """Some items of a dump as three tables."""

    entities: "pa.RecordBatch"
    """Columns `id` (int64, the number after Q), `label` and `title` (string or null): one row an
    item, those with neither label nor title too."""

    aliases: "pa.RecordBatch"
    """Columns `id` and `alias`: one row an alias."""

    claims: "pa.RecordBatch"
    """Columns `subject`, `property` (the number after P) and `object`: one row a claim."""


def read_entities(
    path: str | os.PathLike[str],
    *,
    properties: Sequence[str],
    languages: Sequence[str],
    wikis: Sequence[str],
    allow_truncated: bool = False,
    progress: ProgressHook | None = None,
    threads: int | None = None,
    counts: WikidataCounts | None = None,
) -> Iterator[WikidataEntity]:
    """Read the items of a Wikidata JSON dump.

    A claim's value must be an item; statements of the best rank alone count (the preferred ones if
    there are any, else the normal ones), and those without a known value give nothing. Old dumps
    that hold only a number for the value's item are read too.

    Args:
        path: The dump, packed or not: one entity a line, as in Wikidata's dumps.
        properties: Properties whose claims are wanted, such as "P19".
        languages: Languages whose labels and aliases are wanted. Since 2025 many names stand under
            "mul" (all languages) alone.
        wikis: Wikis whose sitelinks are wanted, such as "enwiki".
        allow_truncated: Keep what came before the place where the file is cut off or damaged, and
            warn, rather than raise.
        progress: Called after every chunk.
        threads: How many threads may unpack bzip2; as many as there are processors when None.
        counts: Where to count the items and the entities of other types, which are passed over.

    Yields:
        The items in order.

    Raises:
        ValueError: If a property is no property identifier.
        SourceNotFoundError: If there is no such file.
        DumpError: If the file is cut off or damaged; names file, line and byte.
        MissingDependencyError: If msgspec is not installed.

    Warns:
        TruncatedDumpWarning: If the file is cut off or damaged and that is allowed.
    """
    wanted = _checked(properties)
    decoder = entity_decoder(wanted, languages, wikis)
    for number, entity in dump_items(
        path,
        decoder,
        WikidataCounts() if counts is None else counts,
        allow_truncated=allow_truncated,
        progress=progress,
        threads=threads,
    ):
        aliases = _present(languages, decoder.aliases(entity.aliases))
        claims = _present(wanted, decoder.claims(entity.claims))
        objects = {key: best_objects(statements) for key, statements in claims.items()}
        yield WikidataEntity(
            id=f"Q{number}",
            labels={
                key: text.value
                for key, text in _present(languages, decoder.labels(entity.labels)).items()
            },
            aliases={key: tuple(text.value for text in texts) for key, texts in aliases.items()},
            claims={key: tuple(f"Q{n}" for n in items) for key, items in objects.items() if items},
            sitelinks={
                key: link.title
                for key, link in _present(wikis, decoder.sitelinks(entity.sitelinks)).items()
            },
        )


def read_entity_batches(
    path: str | os.PathLike[str],
    *,
    properties: Sequence[str],
    language: str,
    wiki: str,
    fallback_languages: Sequence[str] = ("mul",),
    batch_size: int = _BATCH_ITEMS,
    allow_truncated: bool = False,
    progress: ProgressHook | None = None,
    threads: int | None = None,
    counts: WikidataCounts | None = None,
) -> Iterator[EntityBatch]:
    """Read the items of a Wikidata JSON dump as tables, for staging.

    Args:
        path: The dump, packed or not.
        properties: Properties whose claims are wanted, such as "P19".
        language: Language of the labels and aliases.
        wiki: Wiki of the titles, such as "enwiki".
        fallback_languages: Languages whose label is taken where there is none in `language`, in
            order; their aliases count as well.
        batch_size: Items a batch.
        allow_truncated: Keep what came before the place where the file is cut off or damaged, and
            warn, rather than raise.
        progress: Called after every chunk.
        threads: How many threads may unpack bzip2; as many as there are processors when None.
        counts: Where to count the items and the entities of other types, which are passed over.

    Yields:
        Batches in the order of the dump; the last one may be smaller, none is empty.

    Raises:
        ValueError: If a property is no property identifier, or `batch_size` is below 1.
        SourceNotFoundError: If there is no such file.
        DumpError: If the file is cut off or damaged; names file, line and byte.
        MissingDependencyError: If msgspec is not installed.

    Warns:
        TruncatedDumpWarning: If the file is cut off or damaged and that is allowed.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1 item, got {batch_size}")
    wanted = _checked(properties)
    decoder = entity_decoder(wanted, tuple(dict.fromkeys((language, *fallback_languages))), (wiki,))
    columns = _EntityColumns(decoder, [int(name[1:]) for name in wanted])
    for number, entity in dump_items(
        path,
        decoder,
        WikidataCounts() if counts is None else counts,
        allow_truncated=allow_truncated,
        progress=progress,
        threads=threads,
    ):
        columns.add(number, entity)
        if len(columns) == batch_size:
            yield columns.take()
    if len(columns):
        yield columns.take()


def _checked(properties: Sequence[str]) -> tuple[str, ...]:
    """Return the distinct properties, or refuse what is none."""
    for name in properties:
        if not _PROPERTY.fullmatch(name):
            raise ValueError(f"properties must be identifiers such as 'P19', got {name!r}")
    return tuple(dict.fromkeys(properties))


def _present(keys: Sequence[str], values: tuple[_Part | None, ...]) -> dict[str, _Part]:
    """Pair keys with their values, without empty ones."""
    return {key: value for key, value in zip(keys, values, strict=True) if value}


class _EntityColumns:
    """Collects items until they are taken as tables.

    Args:
        decoder: What decoded the items; its first language and its only wiki come first.
        properties: Numbers of its properties.
    """

    def __init__(self, decoder: EntityDecoder, properties: list[int]) -> None:
        self._decoder = decoder
        self._properties = properties
        self._clear()

    def __len__(self) -> int:
        """Count the items."""
        return len(self._ids)

    def add(self, number: int, entity: Entity) -> None:
        """Add one item.

        Args:
            number: The number after Q.
            entity: What the decoder made of it.
        """
        decoder = self._decoder
        label = next((text.value for text in decoder.labels(entity.labels) if text), None)
        link = decoder.sitelinks(entity.sitelinks)[0]
        self._ids.append(number)
        self._labels.append(label)
        self._titles.append(None if link is None else link.title)
        names: dict[str, None] = {}
        for texts in decoder.aliases(entity.aliases):
            if texts:
                names.update((text.value, None) for text in texts)
        if names:
            self._alias_ids.extend([number] * len(names))
            self._aliases.extend(names)
        for key, statements in zip(self._properties, decoder.claims(entity.claims), strict=True):
            if statements:
                objects = best_objects(statements)
                self._subjects.extend([number] * len(objects))
                self._keys.extend([key] * len(objects))
                self._objects.extend(objects)

    def take(self) -> EntityBatch:
        """Hand out what was collected, and start afresh."""
        batch = EntityBatch(
            entities=_table(id=self._ids, label=self._labels, title=self._titles),
            aliases=_table(id=self._alias_ids, alias=self._aliases),
            claims=_table(subject=self._subjects, property=self._keys, object=self._objects),
        )
        self._clear()
        return batch

    def _clear(self) -> None:
        """Start with empty columns."""
        self._ids: list[int] = []
        self._labels: list[str | None] = []
        self._titles: list[str | None] = []
        self._alias_ids: list[int] = []
        self._aliases: list[str] = []
        self._subjects: list[int] = []
        self._keys: list[int] = []
        self._objects: list[int] = []


def _table(**columns: Sequence[int | str | None]) -> "pa.RecordBatch":
    """Make a table of numbers and, where their names say so, texts."""
    import pyarrow as pa

    texts = {"label", "title", "alias"}
    kinds = {name: pa.string() if name in texts else pa.int64() for name in columns}
    arrays = [pa.array(values, kinds[name]) for name, values in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))
