"""The items of a Wikidata dump, by a typed decoder that builds only the wanted fields."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import GenericAlias, UnionType
from typing import Literal, Protocol, TypeVar, cast

import numpy as np

from surface_consistency.errors import MissingDependencyError
from surface_consistency.wikimedia.streams import DumpStream, ProgressHook, open_ahead

__all__ = [
    "Entity",
    "EntityDecoder",
    "Link",
    "Snak",
    "Statement",
    "Text",
    "WikidataCounts",
    "best_objects",
    "dump_items",
    "entity_decoder",
]


@dataclass(slots=True, kw_only=True)
class WikidataCounts:
    """Counts that grow while a Wikidata dump is read."""

    n_items: int = 0
    """Items read so far."""

    skipped: dict[str, int] = field(default_factory=dict)
    """Entities of other types passed over so far, such as properties and lexemes, by type."""


class Text(Protocol):
    """A label or an alias."""

    value: str


class Link(Protocol):
    """A page of a wiki."""

    title: str


class _DataValue(Protocol):
    """What a snak holds."""

    value: object


class Snak(Protocol):
    """A property's value, or the statement that it has none or an unknown one."""

    snaktype: str
    datavalue: _DataValue | None


class Statement(Protocol):
    """One claim of an entity."""

    mainsnak: Snak
    rank: str


class Entity(Protocol):
    """One entity; its maps are taken apart by the decoder's functions."""

    id: str
    type: str
    labels: object
    aliases: object
    claims: object
    sitelinks: object


_Part = TypeVar("_Part")
_Getter = Callable[[object], tuple[_Part | None, ...]]
_Type = type | UnionType | GenericAlias
# Literals decode to shared objects, strings to new ones.
_RANKS = cast("type", Literal["preferred", "normal", "deprecated"])
_SNAK_TYPES = cast("type", Literal["value", "somevalue", "novalue"])
_Field = tuple[str, _Type] | tuple[str, _Type, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityDecoder:
    """Decodes entities, and takes their maps apart."""

    decode_array: Callable[[bytes], list[Entity]]
    """From the bytes of a JSON array of entities."""

    errors: tuple[type[Exception], ...]
    """What `decode_array` raises on bytes that are none."""

    labels: _Getter[Text]
    """From an entity's `labels`: one text, or None, for each language."""

    aliases: _Getter[list[Text]]
    """From its `aliases`: a list of texts, or None, for each language."""

    claims: _Getter[list[Statement]]
    """From its `claims`: a list of statements, or None, for each property."""

    sitelinks: _Getter[Link]
    """From its `sitelinks`: one link, or None, for each wiki."""


def entity_decoder(
    properties: Sequence[str], languages: Sequence[str], wikis: Sequence[str]
) -> EntityDecoder:
    """Build a decoder for some properties, languages and wikis.

    Everything else in the JSON is stepped over without becoming objects, which makes the decoding
    several times as fast.

    Args:
        properties: Properties, such as "P19".
        languages: Languages of labels and aliases.
        wikis: Wikis of sitelinks, such as "enwiki".

    Returns:
        The decoder.

    Raises:
        MissingDependencyError: If msgspec is not installed.
    """
    try:
        import msgspec
    except ImportError:
        raise MissingDependencyError("reading Wikidata dumps", "msgspec", "build") from None

    text = _struct("Text", [("value", str)])
    link = _struct("Link", [("title", str)])
    maps = {
        "labels": _map_of("Labels", languages, text),
        "aliases": _map_of("Aliases", languages, GenericAlias(list, (text,))),
        "claims": _map_of("Claims", properties, GenericAlias(list, (_statement(),))),
        "sitelinks": _map_of("Sitelinks", wikis, link),
    }
    entity = _struct(
        "Entity",
        [("id", str), ("type", str, "item"), *((name, kind, None) for name, kind in maps.items())],
    )
    return EntityDecoder(
        decode_array=cast(
            "Callable[[bytes], list[Entity]]",
            msgspec.json.Decoder(GenericAlias(list, (entity,))).decode,
        ),
        errors=(msgspec.MsgspecError, UnicodeDecodeError),
        labels=cast("_Getter[Text]", _getter(len(languages))),
        aliases=cast("_Getter[list[Text]]", _getter(len(languages))),
        claims=cast("_Getter[list[Statement]]", _getter(len(properties))),
        sitelinks=cast("_Getter[Link]", _getter(len(wikis))),
    )


def best_objects(statements: Sequence[Statement]) -> list[int]:
    """List the items that the best statements of one property name.

    These are Wikidata's "truthy" values: the preferred statements if there is one, else the normal
    ones; deprecated ones never. Statements without a value, or with one that is no item, give
    nothing.

    Args:
        statements: The statements of one property.

    Returns:
        Distinct numbers of items, in order.
    """
    ranks = {statement.rank for statement in statements}
    best = "preferred" if "preferred" in ranks else "normal"
    found: dict[int, None] = {}
    for statement in statements:
        if statement.rank == best:
            number = _item_number(statement.mainsnak)
            if number is not None:
                found[number] = None
    return list(found)


def _struct(name: str, fields: list[_Field], keys: Sequence[str] | None = None) -> type:
    """Define a class; `keys` are the names in the JSON where they differ."""
    import msgspec

    renamed = None if keys is None else dict(zip((f[0] for f in fields), keys, strict=True))
    return msgspec.defstruct(name, fields, rename=renamed, gc=False)


def _map_of(name: str, keys: Sequence[str], value: _Type) -> _Type:
    """Describe a map with some wanted keys; PHP writes an empty one as a list."""
    import msgspec

    fields: list[_Field] = [(_field(i), value | None, None) for i in range(len(keys))]
    return _struct(name, fields, keys) | GenericAlias(list, (msgspec.Raw,)) | None


def _statement() -> type:
    """Describe a claim whose value may be an item or anything else."""
    import msgspec

    target = _struct(
        "Target",
        [("kind", str | None, None), ("id", str | None, None), ("number", int | None, None)],
        ("entity-type", "id", "numeric-id"),
    )
    anything = target | str | int | float | bool | GenericAlias(list, (msgspec.Raw,)) | None
    datavalue = _struct("DataValue", [("value", anything, None)])
    snak = _struct("Snak", [("snaktype", _SNAK_TYPES), ("datavalue", datavalue | None, None)])
    return _struct("Statement", [("mainsnak", snak), ("rank", _RANKS, "normal")])


def _field(index: int) -> str:
    """Name the attribute of a wanted key, whatever characters that has."""
    return f"field_{index}"


def _getter(n_keys: int) -> Callable[[object], tuple[object, ...]]:
    """Take the fields of a map as a tuple; of a missing map or a list, Nones."""
    if not n_keys:
        return lambda _: ()
    take = attrgetter(*map(_field, range(n_keys)))
    nothing = (None,) * n_keys

    def get(record: object) -> tuple[object, ...]:
        if record is None or type(record) is list:
            return nothing
        return take(record) if n_keys > 1 else (take(record),)

    return get


def _item_number(snak: Snak) -> int | None:
    """Return the number after Q of a snak's item; None if it has none."""
    if snak.snaktype != "value" or snak.datavalue is None:
        return None
    value = snak.datavalue.value
    identifier = getattr(value, "id", None)
    if isinstance(identifier, str):
        is_item = identifier[:1] == "Q" and identifier[1:].isdecimal()
        return int(identifier[1:]) if is_item else None
    number = getattr(value, "number", None)
    return number if getattr(value, "kind", None) == "item" else None


_FRAME = b" \t\r\n,[]"
_NEWLINE = 10


def dump_items(
    path: str | os.PathLike[str],
    decoder: EntityDecoder,
    counts: WikidataCounts,
    *,
    allow_truncated: bool,
    progress: ProgressHook | None,
    threads: int | None,
) -> Iterator[tuple[int, Entity]]:
    """Yield the items of a dump with their numbers, and count what is passed over.

    Args:
        path: The dump: one entity a line, in an array or without.
        decoder: Decodes entities.
        counts: Where to count.
        allow_truncated: Whether damage ends the items with a warning.
        progress: Called after every chunk.
        threads: How many threads may unpack bzip2.

    Yields:
        The number after Q, and the decoded entity.

    Raises:
        DumpError: If the dump is cut off or damaged and that is not allowed.
    """
    with open_ahead(path, allow_truncated=allow_truncated, progress=progress, threads=threads) as (
        stream,
        chunks,
    ):
        reader = _BlockReader(stream, decoder, counts)
        for block in _line_blocks(stream, chunks):
            yield from reader.items(block)
            if reader.is_damaged:
                return
        reader.finish()


class _BlockReader:
    """Decodes blocks of whole lines."""

    def __init__(self, stream: DumpStream, decoder: EntityDecoder, counts: WikidataCounts) -> None:
        self.is_damaged = False
        self._stream = stream
        self._decoder = decoder
        self._counts = counts
        self._n_lines = 0
        self._offset = 0
        self._first = b""
        self._last = b""

    def items(self, block: bytes) -> Iterator[tuple[int, Entity]]:
        """Yield the items of a block; those before a line that is no entity, if there is one."""
        bare = block[:64].strip() or block.strip()
        if bare:
            self._first = self._first or bare[:1]
            self._last = block[-64:].strip()[-1:] or block.strip()[-1:]
        problem = None
        try:
            entities: Sequence[Entity] = self._decoder.decode_array(_array(block))
        except self._decoder.errors:
            entities, problem = self._line_by_line(block)
        yield from self._counted(entities)
        if problem is not None:
            self._end_early(*problem)
        # Several times as fast as `bytes.count`, which would take as long as the decoding.
        self._n_lines += int(np.count_nonzero(np.frombuffer(block, np.uint8) == _NEWLINE))
        self._offset += len(block)

    def finish(self) -> None:
        """Check that an array was closed."""
        if self._first == b"[" and self._last != b"]" and not self._stream.is_truncated:
            self._end_early(
                "the array of entities has no closing bracket, so the file is cut off",
                self._offset,
            )

    def _line_by_line(self, block: bytes) -> tuple[list[Entity], tuple[str, int] | None]:
        """Decode lines until one is no entity; blocks without commas, or damaged, come here."""
        found: list[Entity] = []
        offset = self._offset
        for number, line in enumerate(block.split(b"\n"), self._n_lines + 1):
            body = line.strip(_FRAME)
            try:
                found.extend(self._decoder.decode_array(b"[%b]" % body))
            except self._decoder.errors as error:
                return found, (f"line {number:,} is no Wikidata entity ({error})", offset)
            offset += len(line) + 1
        return found, None

    def _counted(self, entities: Iterable[Entity]) -> Iterator[tuple[int, Entity]]:
        """Yield the items among entities, with their numbers."""
        counts = self._counts
        for entity in entities:
            identifier = entity.id
            if entity.type == "item" and identifier[:1] == "Q" and identifier[1:].isdecimal():
                counts.n_items += 1
                yield int(identifier[1:]), entity
            else:
                counts.skipped[entity.type] = counts.skipped.get(entity.type, 0) + 1

    def _end_early(self, problem: str, offset: int) -> None:
        """Raise, or warn where that is allowed."""
        self.is_damaged = True
        self._stream.end_early(
            f"{problem} at plain byte {offset:,}, after {self._counts.n_items:,} items"
        )


def _array(block: bytes) -> bytes:
    """Put lines of entities into brackets of their own; with few copies, as they are large."""
    start, end = block.find(b"{"), block.rfind(b"}") + 1
    if start < 0 or block[:start].strip(_FRAME) or block[end:].strip(_FRAME):
        return b"[%b]" % block.strip(_FRAME)
    return b"".join((b"[", memoryview(block)[start:end], b"]"))


def _line_blocks(stream: DumpStream, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield whole lines, about a chunk's worth at a time."""
    parts: list[bytes] = []
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield b"".join((*parts, memoryview(chunk)[:cut]))
            parts = [chunk[cut:]]
        else:
            parts.append(chunk)
    rest = b"".join(parts)
    if rest and not stream.is_truncated:
        yield rest
