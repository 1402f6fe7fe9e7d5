"""What the rows of RedirectQA say of each fact, put together and packed."""

import marshal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from surface_consistency.errors import DataError, RecordError
from surface_consistency.rows.cells import (
    RowCells,
    answers_of,
    count_of,
    identifier_of,
    strings_of,
    text_of,
)
from surface_consistency.rows.readers import Place
from surface_consistency.studies.redirectqa.wordings import (
    relation_name,
)
from surface_consistency.text import surface_from_title

_IDENTIFYING: Final = (
    "subject_id",
    "subject_name",
    "relation",
    "object_id",
    "object_name",
    "answers",
)
_FILLED: Final = (*_IDENTIFYING, "subject_aliases", "pageviews", "object_aliases")


class FactStore:
    """Facts by their ids, packed, since objects of so many short texts take five times the room."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self._packed: list[bytes] = []

    def merge(self, fact_id: str, fact: "StatedFact") -> None:
        """Add what a row says of a fact."""
        if fact_id not in self.rows:
            self.rows[fact_id] = len(self._packed)
            self._packed.append(_pack(fact))
            return
        known = _unpack(self._packed[self.rows[fact_id]])
        known.merge(fact, fact_id)
        self.put(fact_id, known)

    def put(self, fact_id: str, fact: "StatedFact") -> None:
        """Replace what is known of a fact."""
        self._packed[self.rows[fact_id]] = _pack(fact)

    def items(self) -> Iterator[tuple[str, "StatedFact"]]:
        """Give the facts in order of appearance."""
        return zip(self.rows, map(_unpack, self._packed), strict=True)


def _pack(fact: "StatedFact") -> bytes:
    """Write a fact as bytes."""
    return marshal.dumps([*fact.place, *(getattr(fact, name) for name in StatedFact.__slots__[1:])])


def _unpack(data: bytes) -> "StatedFact":
    """Read what `_pack` wrote."""
    source, number, *values = marshal.loads(data)
    fields = dict(zip(StatedFact.__slots__[1:], values, strict=True))
    return StatedFact(place=Place(source, number), **fields)


@dataclass(slots=True, kw_only=True)
class StatedFact:
    """What the rows of one fact say about it; a row may fill in what an earlier one lacked."""

    place: Place
    subject_id: str | None
    subject_name: str | None
    subject_aliases: tuple[str, ...]
    pageviews: int | None
    relation: str | None
    object_id: str | None
    object_name: str | None
    object_aliases: tuple[str, ...]
    answers: tuple[str, ...]

    @classmethod
    def read(cls, cells: RowCells) -> "StatedFact":
        """Read what one row says."""
        relation = cells.read("relation", identifier_of)
        title = cells.read("object_title", text_of)
        name = cells.read("object", text_of) or (surface_from_title(title) if title else None)
        aliases = cells.read("object_aliases", strings_of)
        named = () if name is None else (name.strip(),)
        if "answers" in cells.columns:
            listed = cells.read("answers", answers_of)
            answers = (*(item for item in named if item in listed), *listed)
        else:
            answers = (*named, *map(str.strip, aliases))
        return cls(
            place=cells.place,
            subject_id=cells.read("subject_id", identifier_of),
            subject_name=cells.read("subject_title", text_of),
            subject_aliases=cells.read("subject_aliases", strings_of),
            pageviews=cells.read("pageviews", count_of),
            relation=None if relation is None else relation_name(relation),
            object_id=cells.read("object_id", identifier_of),
            object_name=name,
            object_aliases=aliases,
            answers=tuple(dict.fromkeys(answers)),
        )

    def own_id(self) -> str:
        """Identify the fact by itself, where no column does."""
        parts = (
            self.subject_id or self.subject_name,
            self.relation,
            self.object_id or self.object_name or "|".join(self.answers),
        )
        if not all(parts):
            raise RecordError(
                f"{self.place}: without a column of triple ids a row needs subject, relation and "
                f"object, got {parts!r}"
            )
        return "|".join(part for part in parts if part)

    def merge(self, other: "StatedFact", fact_id: str) -> None:
        """Take over what is missing here, and refuse what contradicts."""
        for name in _FILLED:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine in (None, ()):
                setattr(self, name, theirs)
            elif name in _IDENTIFYING and theirs and mine != theirs and _key(mine) != _key(theirs):
                rule = "one triple id must mean one fact"
                if name in ("object_name", "answers"):
                    rule += (
                        " with all its accepted answers; rows that vary the name of the object are "
                        "not for this study, which compares names of the subject"
                    )
                raise DataError(
                    f"{self.place} and {other.place} belong to one fact, {fact_id!r}, but differ "
                    f"in {name}: {mine!r} and {theirs!r}; {rule}"
                )

    def values(self, fact_id: str, name: str) -> tuple[object, ...]:
        """Give the values of `FACT_SCHEMA`; `name` is for a subject that has no title."""
        object_name = self.object_name or next(iter(self.answers), None) or self.object_id
        return (
            fact_id,
            self.subject_id,
            self.subject_name or name,
            self.subject_aliases,
            self.pageviews,
            self.relation,
            self.object_id,
            object_name or "unknown",
            self.object_aliases,
            None,
            self.answers,
        )


def _key(value: str | tuple[str, ...]) -> str | frozenset[str]:
    """Compare titles without regard to underscores and answers without regard to order."""
    return value.replace("_", " ") if isinstance(value, str) else frozenset(value)
