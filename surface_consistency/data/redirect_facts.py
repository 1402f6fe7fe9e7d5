"""Facts of RedirectQA, gathered from the rows that speak of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from surface_consistency.data.readers import Place
from surface_consistency.errors import DataError, RecordError
from surface_consistency.schemas import Entity, FactualTriple
from surface_consistency.schemas.jsonl import describe_validation_error

__all__ = ["FactDraft", "build_triples"]

_IDENTIFYING: Final = (
    "subject_id",
    "subject_name",
    "relation",
    "object_id",
    "object_name",
    "answers",
)
_FILLED: Final = (*_IDENTIFYING, "subject_aliases", "pageviews", "object_aliases")
_NAMELESS: Final = "unknown"


@dataclass(slots=True, kw_only=True)
class FactDraft:
    """What the rows of one fact say about it; a row may fill in what an earlier one lacked."""

    place: Place
    """Where the fact appears first."""

    subject_id: str | None
    """Wikidata item of the subject."""

    subject_name: str | None
    """Title of the subject's article."""

    subject_aliases: tuple[str, ...]
    """Other names of the subject."""

    pageviews: int | None
    """Views of the subject's article."""

    relation: str | None
    """Name of the relation."""

    object_id: str | None
    """Wikidata item of the object."""

    object_name: str | None
    """Name of the object."""

    object_aliases: tuple[str, ...]
    """Other names of the object."""

    answers: tuple[str, ...]
    """Accepted answers."""

    def merge(self, other: "FactDraft", fact: str) -> None:
        """Take over what is missing here, and refuse what contradicts.

        Args:
            other: What a later row says.
            fact: Identifier, for the error.

        Raises:
            DataError: If the rows name different subjects, relations, objects or answers.
        """
        for name in _FILLED:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine in (None, ()):
                setattr(self, name, theirs)
            elif name in _IDENTIFYING and theirs and mine != theirs and _key(mine) != _key(theirs):
                raise DataError(
                    f"{self.place} and {other.place} belong to one fact, {fact!r}, but differ in "
                    f"{name}: {mine!r} and {theirs!r}; one triple id must mean one fact"
                )


def build_triples(
    drafts: Mapping[str, FactDraft], names: Mapping[str, str]
) -> dict[str, FactualTriple]:
    """Build the facts, each once, with shared entities.

    Args:
        drafts: Fact identifier to what is known of it.
        names: Fact identifier to the name of its subject, for sources without article titles.

    Returns:
        Fact identifier to triple.

    Raises:
        RecordError: If a fact has no relation, or a name is no proper text.
    """
    entities: dict[Entity, Entity] = {}
    triples = {}
    for fact, draft in drafts.items():
        if draft.relation is None:
            raise RecordError(
                f"{draft.place}: fact {fact!r} has no relation, and its questions follow no known "
                "template; name the column that tells it with columns={'relation': '<column>'}"
            )
        try:
            subject, thing = _entities(draft, names[fact])
            triples[fact] = FactualTriple(
                id=fact,
                subject=entities.setdefault(subject, subject),
                relation=draft.relation,
                object=entities.setdefault(thing, thing),
                answers=draft.answers,
            )
        except ValidationError as error:
            raise RecordError(
                f"{draft.place}: fact {fact!r}: {describe_validation_error(error)}"
            ) from error
    return triples


def _entities(draft: FactDraft, name: str) -> tuple[Entity, Entity]:
    """Build subject and object."""
    subject = Entity(
        id=draft.subject_id,
        name=draft.subject_name or name,
        aliases=draft.subject_aliases,
        pageviews=draft.pageviews,
    )
    return subject, Entity(
        id=draft.object_id, name=_object_name(draft), aliases=draft.object_aliases
    )


def _object_name(draft: FactDraft) -> str:
    """Name the object by the best that the source gives."""
    return draft.object_name or next(iter(draft.answers), None) or draft.object_id or _NAMELESS


def _key(value: str | tuple[str, ...]) -> str | frozenset[str]:
    """Compare titles without regard to underscores and answers without regard to order."""
    return value.replace("_", " ") if isinstance(value, str) else frozenset(value)
