"""A typed decoder of Wikidata entities that builds only the wanted fields."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from types import GenericAlias, UnionType
from typing import Literal, TypeVar, cast

from surface_consistency.errors import MissingDependencyError
from surface_consistency.wikimedia._wikidata_shapes import Entity, Link, Snak, Statement, Text

__all__ = ["EntityDecoder", "best_objects", "entity_decoder"]

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
