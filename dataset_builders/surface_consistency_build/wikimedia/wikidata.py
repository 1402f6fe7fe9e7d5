"""Read Wikidata's JSON dump: items with labels, aliases, best claims, and titles in a wiki."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Unpack

import pyarrow as pa

from surface_consistency_build.wikimedia._wikidata_items import Entity, EntityDecoder, dump_items
from surface_consistency_build.wikimedia.streams import MarkedReadOptions

_PROPERTY: Final = re.compile(r"P[1-9]\d*")
_BATCH_ITEMS: Final = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityBatch:
    """A batch of items as three tables."""

    entities: pa.RecordBatch
    """Columns `id` (int64, the number after Q), `label` and `title` (string or null): one row per
    item, including those with neither label nor title."""

    aliases: pa.RecordBatch
    """Columns `id` and `alias`: one row per alias."""

    claims: pa.RecordBatch
    """Columns `subject`, `property` (the number after P) and `object`: one row per claim."""


def read_entity_batches(
    path: str | os.PathLike[str],
    *,
    properties: Sequence[str],
    language: str,
    wiki: str,
    fallback_languages: Sequence[str] = ("mul",),
    batch_size: int = _BATCH_ITEMS,
    **options: Unpack[MarkedReadOptions],
) -> Iterator[EntityBatch]:
    """Read the items of a Wikidata JSON dump as tables.

    A claim's value must be an item. Only statements of the best rank count (the preferred ones if
    there are any, else the normal ones), and statements without a known value are skipped. Old
    dumps that contain only a number for the value's item are also read.

    Args:
        path: The dump, compressed or not: one entity per line, as in Wikidata's dumps.
        properties: Properties whose claims are wanted, such as "P19".
        language: Language of the labels and aliases.
        wiki: Wiki of the titles, such as "enwiki".
        fallback_languages: Languages whose label is used if it is missing in `language`, in order;
            their aliases also count. Since 2025 many names exist only in "mul" (all languages).
        batch_size: Number of items per batch.
        options: Handling of damaged dumps and of uncompressed files without the brackets of an
            array, which have no end marker; hook for progress; number of threads:
            `MarkedReadOptions`.

    Yields:
        Batches in the order of the dump; the last one may be smaller, and empty ones are omitted.

    Raises:
        ValueError: If a property is not a property identifier, or `batch_size` is below 1.
        SourceNotFoundError: If the file does not exist.
        DataError: If the file is cut off or damaged, the array of entities is not closed, a line is
            longer than 64 MiB or too deeply nested; the message contains file, line and byte.

    Warns:
        DataWarning: If the file is cut off or damaged and that is allowed.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1 item, got {batch_size}")
    wanted = _checked(properties)
    languages = tuple(dict.fromkeys((language, *fallback_languages)))
    decoder = EntityDecoder(wanted, languages, (wiki,))
    columns = _EntityColumns(decoder, [int(name[1:]) for name in wanted])
    for number, entity in dump_items(path, decoder, options):
        columns.add(number, entity)
        if len(columns.ids) == batch_size:
            yield columns.take()
    if columns.ids:
        yield columns.take()


def _checked(properties: Sequence[str]) -> tuple[str, ...]:
    """Return the distinct properties, and reject invalid ones."""
    for name in properties:
        if not _PROPERTY.fullmatch(name):
            raise ValueError(f"properties must be identifiers such as 'P19', got {name!r}")
    return tuple(dict.fromkeys(properties))


class _EntityColumns:
    """Collects items and returns them as tables; the wanted language and wiki are first."""

    def __init__(self, decoder: EntityDecoder, properties: list[int]) -> None:
        self._decoder = decoder
        self._properties = properties
        self._clear()

    def add(self, number: int, entity: Entity) -> None:
        """Add one item by the number after Q."""
        decoder = self._decoder
        label = next((text.value for text in decoder.labels(entity.labels) if text), None)
        link = decoder.sitelinks(entity.sitelinks)[0]
        self.ids.append(number)
        self._labels.append(label)
        self._titles.append(None if link is None else link.title)
        texts = (text for part in decoder.aliases(entity.aliases) if part for text in part)
        names = dict.fromkeys(text.value for text in texts)
        self._alias_ids.extend([number] * len(names))
        self._aliases.extend(names)
        for key, objects in zip(self._properties, decoder.objects(entity.claims), strict=True):
            self._subjects.extend([number] * len(objects))
            self._keys.extend([key] * len(objects))
            self._objects.extend(objects)

    def take(self) -> EntityBatch:
        """Return the collected items, and clear the columns."""
        batch = EntityBatch(
            entities=_table(id=self.ids, label=self._labels, title=self._titles),
            aliases=_table(id=self._alias_ids, alias=self._aliases),
            claims=_table(subject=self._subjects, property=self._keys, object=self._objects),
        )
        self._clear()
        return batch

    def _clear(self) -> None:
        """Start with empty columns."""
        self.ids: list[int] = []
        self._labels: list[str | None] = []
        self._titles: list[str | None] = []
        self._alias_ids: list[int] = []
        self._aliases: list[str] = []
        self._subjects: list[int] = []
        self._keys: list[int] = []
        self._objects: list[int] = []


def _table(**columns: Sequence[int | str | None]) -> pa.RecordBatch:
    """Make a table of numbers, and of texts for columns with certain names."""
    texts = {"label", "title", "alias"}
    kinds = {name: pa.string() if name in texts else pa.int64() for name in columns}
    arrays = [pa.array(values, kinds[name]) for name, values in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))
