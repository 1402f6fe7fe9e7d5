"""The items of the wiki as a Wikidata JSON dump."""

import json
from collections.abc import Iterator
from typing import Any

from dataset_builders.mini_wiki.tables import Claim, Entity, Tables

__all__ = ["wikidata_dump"]


def wikidata_dump(tables: Tables) -> bytes:
    """Write the dump: one entity a line, in the framing of a JSON array.

    Args:
        tables: The wiki.

    Returns:
        The uncompressed dump.
    """
    lines = [
        json.dumps(entity, ensure_ascii=number % 2 == 0, separators=(",", ":"))
        for number, entity in enumerate(_entities(tables))
    ]
    return ("[\n" + ",\n".join(lines) + "\n]\n").encode()


def _entities(tables: Tables) -> Iterator[dict[str, Any]]:
    """Yield the items, and one property among them."""
    claims: dict[str, list[Claim]] = {}
    for claim in tables.claims:
        claims.setdefault(claim.subject, []).append(claim)
    for number, entity in enumerate(tables.entities):
        if number == 30:
            yield _property()
        yield _item(entity, claims.get(entity.qid, []))


def _item(entity: Entity, claims: list[Claim]) -> dict[str, Any]:
    """Write one item; what is empty is an empty array, as PHP writes it."""
    labels = {"en": entity.label, "ja": entity.label_ja, "mul": entity.label_mul}
    aliases = [{"language": "en", "value": alias} for alias in entity.aliases]
    sitelinks: dict[str, Any] = {}
    if entity.title is not None:
        title = entity.title.replace("_", " ")
        sitelinks["enwiki"] = {"site": "enwiki", "title": title, "badges": []}
    if entity.label_ja is not None:
        sitelinks["jawiki"] = {"site": "jawiki", "title": entity.label_ja, "badges": []}
    return {
        "type": "item",
        "id": entity.qid,
        "labels": {
            language: {"language": language, "value": text}
            for language, text in labels.items()
            if text is not None
        }
        or [],
        "descriptions": [],
        "aliases": {"en": aliases} if aliases else [],
        "claims": _statements(entity, claims) or [],
        "sitelinks": sitelinks or [],
        "lastrevid": 1,
    }


def _statements(entity: Entity, claims: list[Claim]) -> dict[str, list[dict[str, Any]]]:
    """Group the statements of an item by property; a date stands among them."""
    grouped: dict[str, list[dict[str, Any]]] = {}
    for number, claim in enumerate(claims):
        grouped.setdefault(claim.property, []).append(
            {
                "mainsnak": _snak(claim),
                "type": "statement",
                "id": f"{entity.qid}$00000000-0000-4000-8000-{number:012d}",
                "rank": claim.rank,
            }
        )
    if entity.qid.endswith("6"):
        time = {"time": "+1970-01-01T00:00:00Z", "precision": 11, "timezone": 0}
        snak = {
            "snaktype": "value",
            "property": "P569",
            "datavalue": {"value": time, "type": "time"},
            "datatype": "time",
        }
        grouped["P569"] = [
            {"mainsnak": snak, "type": "statement", "id": f"{entity.qid}$t", "rank": "normal"}
        ]
    return grouped


def _snak(claim: Claim) -> dict[str, Any]:
    """Write what a statement says."""
    snak: dict[str, Any] = {"snaktype": "value", "property": claim.property}
    if claim.object in {"somevalue", "novalue"}:
        snak["snaktype"] = claim.object
    else:
        value: dict[str, Any] = {"entity-type": "item", "numeric-id": int(claim.object[1:])}
        if claim.form != "numeric":
            value["id"] = claim.object
        snak["datavalue"] = {"value": value, "type": "wikibase-entityid"}
    return snak | {"datatype": "wikibase-item"}


def _property() -> dict[str, Any]:
    """Write a property, which is no item; its label is that of an item here."""
    return {
        "type": "property",
        "datatype": "wikibase-item",
        "id": "P17",
        "labels": {"en": {"language": "en", "value": "Lune"}},
        "descriptions": [],
        "aliases": [],
        "claims": [],
        "lastrevid": 1,
    }
