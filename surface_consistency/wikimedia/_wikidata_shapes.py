"""The shapes of decoded Wikidata entities; the decoder builds its classes when it is asked to."""

from typing import Protocol

__all__ = ["Entity", "Link", "Snak", "Statement", "Text"]


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
