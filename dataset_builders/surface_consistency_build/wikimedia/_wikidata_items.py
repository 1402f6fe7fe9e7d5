"""Read the items of a Wikidata dump with a typed decoder that builds only the wanted fields."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from types import GenericAlias
from typing import Any, Literal, Protocol, TypeVar, cast

import msgspec
import numpy as np

from surface_consistency_build.wikimedia.streams import DumpStream, MarkedReadOptions, open_ahead

_Part = TypeVar("_Part")
_Getter = Callable[[object], tuple[_Part | None, ...]]
_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_FRAME = b" \t\r\n,[]"
_NEWLINE = 10
_ITEM = re.compile("Q[0-9]+")
_LONGEST_ID = len("Q") + 18  # Maximum that fits into 64 bits.


class _Text(msgspec.Struct, gc=False):
    """A label or an alias."""

    value: str


class _Link(msgspec.Struct, gc=False):
    """A page of a wiki."""

    title: str


class _Target(msgspec.Struct, gc=False, rename={"kind": "entity-type", "number": "numeric-id"}):
    """The entity that a value names; old dumps contain only its number."""

    kind: str | None = None
    id: str | None = None
    number: int | None = None


class _DataValue(msgspec.Struct, gc=False):
    """The value of a snak: an entity, or anything else."""

    value: _Target | str | int | float | bool | list[msgspec.Raw] | None = None


# Literals are decoded to shared objects, strings to new ones.
class _Snak(msgspec.Struct, gc=False):
    """A property's value, or the statement that it has none or an unknown one."""

    snaktype: Literal["value", "somevalue", "novalue"]
    datavalue: _DataValue | None = None


class _Statement(msgspec.Struct, gc=False):
    """One claim of an entity."""

    mainsnak: _Snak
    rank: Literal["preferred", "normal", "deprecated"] = "normal"


class Entity(Protocol):
    """One entity; the decoder's functions read its maps."""

    id: str
    type: str
    labels: object
    aliases: object
    claims: object
    sitelinks: object


class EntityDecoder:
    """Decodes entities with some properties, languages and wikis, and reads their maps.

    Other parts of the JSON are skipped without building objects, which makes decoding several times
    as fast.
    """

    def __init__(
        self, properties: Sequence[str], languages: Sequence[str], wikis: Sequence[str]
    ) -> None:
        maps = {
            "labels": _map_of("Labels", languages, _Text),
            "aliases": _map_of("Aliases", languages, list[_Text]),
            "claims": _map_of("Claims", properties, list[_Statement]),
            "sitelinks": _map_of("Sitelinks", wikis, _Link),
        }
        fields: list[tuple[str, Any] | tuple[str, Any, Any]] = [("id", str), ("type", str, "item")]
        fields += [(name, kind, None) for name, kind in maps.items()]
        entity = msgspec.defstruct("Entity", fields, gc=False)
        decoder = msgspec.json.Decoder(GenericAlias(list, (entity,)))
        self.decode_array = cast("Callable[[bytes], list[Entity]]", decoder.decode)
        """Decode the bytes of a JSON array of entities."""
        self.labels = cast("_Getter[_Text]", _getter(len(languages)))
        """Read an entity's `labels`: one text, or None, per language."""
        self.aliases = cast("_Getter[list[_Text]]", _getter(len(languages)))
        """Read its `aliases`: a list of texts, or None, per language."""
        self.sitelinks = cast("_Getter[_Link]", _getter(len(wikis)))
        """Read its `sitelinks`: one link, or None, per wiki."""
        self._claims = cast("_Getter[list[_Statement]]", _getter(len(properties)))

    def objects(self, claims: object) -> list[list[int]]:
        """Return the items of the best statements of `claims`, per property."""
        return [_best_objects(each) if each else [] for each in self._claims(claims)]


def _map_of(name: str, keys: Sequence[str], value: type | GenericAlias) -> Any:  # noqa: ANN401  (a type)
    """Describe a map with some wanted keys; PHP writes an empty one as a list."""
    fields = [(f"field_{place}", value | None, None) for place in range(len(keys))]
    renamed = {field[0]: key for field, key in zip(fields, keys, strict=True)}
    wanted = msgspec.defstruct(name, fields, rename=renamed, gc=False)
    return wanted | list[msgspec.Raw] | None


def _getter(n_keys: int) -> Callable[[object], tuple[object, ...]]:
    """Return a function that reads a map's fields as a tuple; Nones for a missing map or a list."""
    if not n_keys:
        return lambda _: ()
    take = attrgetter(*(f"field_{place}" for place in range(n_keys)))
    nothing = (None,) * n_keys

    def get(record: object) -> tuple[object, ...]:
        if record is None or type(record) is list:
            return nothing
        return take(record) if n_keys > 1 else (take(record),)

    return get


def _best_objects(statements: Sequence[_Statement]) -> list[int]:
    """List the distinct numbers of the items that the best statements of one property name.

    These are Wikidata's "truthy" values: the preferred statements if there are any, else the normal
    ones, and never deprecated ones. Statements without a value, or whose value is not an item, are
    skipped.
    """
    ranks = {statement.rank for statement in statements}
    best = "preferred" if "preferred" in ranks else "normal"
    numbers = (_item_number(each.mainsnak) for each in statements if each.rank == best)
    return list(dict.fromkeys(number for number in numbers if number is not None))


def _item_number(snak: _Snak) -> int | None:
    """Return the number after Q of a snak's item; None without an item."""
    value = snak.datavalue.value if snak.datavalue is not None else None
    if snak.snaktype != "value" or not isinstance(value, _Target):
        return None
    if value.id is not None:
        is_item = _ITEM.fullmatch(value.id) and len(value.id) <= _LONGEST_ID
        return int(value.id[1:]) if is_item else None
    return value.number if value.kind == "item" else None


def dump_items(
    path: str | os.PathLike[str], decoder: EntityDecoder, options: MarkedReadOptions
) -> Iterator[tuple[int, Entity]]:
    """Yield the items of a dump with the number after Q, and skip other entities."""
    with open_ahead(path, **options) as (stream, chunks):
        reader = _BlockReader(stream, decoder)
        for block in _line_blocks(stream, chunks, reader):
            yield from reader.items(block)
            if reader.is_damaged:
                return
        reader.finish()


class _BlockReader:
    """Decodes blocks of whole lines."""

    def __init__(self, stream: DumpStream, decoder: EntityDecoder) -> None:
        self.is_damaged = False
        self._stream = stream
        self._decoder = decoder
        self._n_items = 0
        self._n_lines = 0
        self._offset = 0
        self._first = b""
        self._last = b""

    def items(self, block: bytes) -> Iterator[tuple[int, Entity]]:
        """Yield the items of a block, up to the first line that is not an entity."""
        bare = block[:64].strip() or block.strip()
        if bare:
            self._first = self._first or bare[:1]
            self._last = block[-64:].strip()[-1:] or block.strip()[-1:]
        problem = None
        try:
            entities: Sequence[Entity] = self._decoder.decode_array(_array(block))
        except _ERRORS:
            entities, problem = self._line_by_line(block)
        yield from self._counted(entities)
        if problem is not None:
            self._end_early(*problem)
        # Several times as fast as `bytes.count`, which takes as long as the decoding.
        self._n_lines += int(np.count_nonzero(np.frombuffer(block, np.uint8) == _NEWLINE))
        self._offset += len(block)

    def finish(self) -> None:
        """Check that an array was closed; entities outside an array have no end to check."""
        if self._stream.is_truncated:
            return
        if self._first != b"[":
            self._stream.end_unmarked("entities outside an array have no end marker")
        elif self._last != b"]":
            self._end_early(
                "the array of entities has no closing bracket, so the file is cut off", self._offset
            )

    def is_endless(self, n_bytes: int) -> bool:
        """Check whether the dump ends early because of a line of at least `n_bytes`."""
        return self._stream.ends_in_line(n_bytes, self._n_lines + 1, self._offset)

    def _line_by_line(self, block: bytes) -> tuple[list[Entity], tuple[str, int] | None]:
        """Decode lines until one is not an entity; for damaged blocks and those without commas."""
        entities: list[Entity] = []
        offset = self._offset
        for number, line in enumerate(block.split(b"\n"), self._n_lines + 1):
            body = line.strip(_FRAME)
            try:
                entities.extend(self._decoder.decode_array(b"[%b]" % body))
            except _ERRORS as error:
                problem = "too deeply nested" if type(error) is RecursionError else error
                return entities, (f"line {number:,} is not a Wikidata entity ({problem})", offset)
            offset += len(line) + 1
        return entities, None

    def _counted(self, entities: Iterable[Entity]) -> Iterator[tuple[int, Entity]]:
        """Yield the items among entities, with their numbers."""
        for entity in entities:
            identifier = entity.id
            if entity.type == "item" and _ITEM.fullmatch(identifier):
                if len(identifier) > _LONGEST_ID:
                    self._end_early(
                        f"the id {identifier[:_LONGEST_ID]}... of {len(identifier):,} characters "
                        "in the block is not the id of an item",
                        self._offset,
                    )
                    return
                self._n_items += 1
                yield int(identifier[1:]), entity

    def _end_early(self, problem: str, offset: int) -> None:
        """Raise an error, or warn if damage is allowed."""
        self.is_damaged = True
        self._stream.end_early(f"{problem} at plain byte {offset:,}, after {self._n_items:,} items")


def _array(block: bytes) -> bytes:
    """Put lines of entities into brackets, with few copies because they are large."""
    start, end = block.find(b"{"), block.rfind(b"}") + 1
    if start < 0 or block[:start].strip(_FRAME) or block[end:].strip(_FRAME):
        return b"[%b]" % block.strip(_FRAME)
    return b"".join((b"[", memoryview(block)[start:end], b"]"))


def _line_blocks(
    stream: DumpStream, chunks: Iterable[bytes], reader: _BlockReader
) -> Iterator[bytes]:
    """Yield blocks of whole lines, about one chunk each, until a line is too long."""
    parts: list[bytes] = []
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1
        if reader.is_endless(sum(map(len, parts)) + (cut or len(chunk))):
            return
        if cut:
            yield b"".join((*parts, memoryview(chunk)[:cut]))
            parts = [chunk[cut:]]
        else:
            parts.append(chunk)
    rest = b"".join(parts)
    if rest and not stream.is_truncated:
        yield rest
