"""Rows of RedirectQA, in whatever columns, to validated questions.

One pass over the rows takes them apart into columns: the fact of each row, its name for the
subject, its question and its template. What the rows of a fact repeat is parsed once and compared
from then on. Then relations and templates are settled, and both become columns of a table.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pydantic import ValidationError

from surface_consistency.data.cells import (
    RowCells,
    answers_of,
    count_of,
    identifier_of,
    strings_of,
    text_of,
)
from surface_consistency.data.question_table import (
    FACT_SCHEMA,
    QUESTION_SCHEMA,
    QuestionTable,
    triple_of,
)
from surface_consistency.data.questions import question_id
from surface_consistency.data.readers import Place, Row
from surface_consistency.data.wordings import (
    Wording,
    infer_relation,
    relation_name,
    resolve_templates,
)
from surface_consistency.errors import DataError, RecordError
from surface_consistency.schemas import Record, SurfaceForm
from surface_consistency.schemas._record import NonEmpty
from surface_consistency.schemas.jsonl import describe_validation_error
from surface_consistency.taxonomy import (
    CANONICAL_LABEL,
    RELATIONS,
    TEMPLATES,
    UNKNOWN_TYPE,
    parse_category,
    types_of,
)
from surface_consistency.text import surface_from_title

__all__ = ["RedirectQARows"]

_KEYS: Final = frozenset({str, int})
"""Types of cells that are equal only if they mean the same."""

_NO_CATEGORY: Final = "(no category)"
_IDENTIFYING: Final = (
    "subject_id",
    "subject_name",
    "relation",
    "object_id",
    "object_name",
    "answers",
)
_FILLED: Final = (*_IDENTIFYING, "subject_aliases", "pageviews", "object_aliases")
_NAME_FIELDS: Final = ("surface", "categories", "redirect_title", "subject_title")
_FACT_FIELDS: Final = (
    *("subject_id", "subject_title", "subject_aliases", "pageviews", "relation"),
    *("object_id", "object", "object_title", "object_aliases", "answers"),
)


class _Asked(Record):
    """What a row asks."""

    question: NonEmpty


class Surface(NamedTuple):
    """A name under which rows ask; the fields of `SurfaceForm`."""

    text: str
    is_canonical: bool
    categories: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    redirect_title: str | None = None


@dataclass(slots=True)
class RedirectQARows:
    """The columns of the rows that were read; equal facts and surfaces are kept once."""

    columns: Mapping[str, str]
    """Field of `REDIRECTQA_COLUMNS` to the source's column, for the fields that it has."""

    places: list[Place] = field(default_factory=list)
    """Where each row stands."""

    fact_ids: list[str] = field(default_factory=list)
    """Identifier of each row's fact."""

    surfaces: list[Surface] = field(default_factory=list)
    """The name under which each row asks."""

    questions: list[str | None] = field(default_factory=list)
    """The question of each row; None where the source has none."""

    templates: list[str | None] = field(default_factory=list)
    """The source's name for the template of each row; None where it gives none."""

    foreign_categories: Counter[str] = field(default_factory=Counter)
    """Rows by category outside the taxonomy; "(no category)" counts redirects without any."""

    _facts: dict[str, "_Fact"] = field(default_factory=dict)
    _surfaces: dict[Surface, Surface] = field(default_factory=dict)

    def extend(self, rows: Iterable[Row]) -> None:
        """Read rows.

        Args:
            rows: Rows with their places.

        Raises:
            RecordError: If a cell is not what its field needs; names place, column and value.
            DataError: If two rows contradict each other.
        """
        told_of = _cells_of(self.columns[name] for name in _FACT_FIELDS if name in self.columns)
        name_of = _cells_of(self.columns[name] for name in _NAME_FIELDS if name in self.columns)
        id_column, template_column = self.columns.get("triple_id"), self.columns.get("template")
        fact_ids: dict[object, str] = {}
        templates: dict[object, str | None] = {}
        known: dict[str, tuple[object, ...]] = {}
        last: tuple[object, ...] | None = None
        read: tuple[Surface, list[str]] | None = None
        for place, row in rows:
            cells = RowCells(self.columns, place, row)
            told = told_of(row)
            fact_id = ""
            if id_column is not None:
                value = row.get(id_column)
                found = fact_ids.get(value) if type(value) in _KEYS else None
                fact_id = found or cells.needed("triple_id", identifier_of)
                if type(value) in _KEYS:
                    fact_ids[value] = fact_id
            if not _is_equal(told, known.get(fact_id)):
                fact = _Fact.read(cells)
                fact_id = fact_id or fact.own_id()
                self._facts.setdefault(fact_id, fact).merge(fact, fact_id)
                known[fact_id] = told
            name = name_of(row)
            if read is None or not _is_equal(name, last):
                read, last = self._surface(cells), name
            surface, foreign = read
            if foreign:
                self.foreign_categories.update(foreign)
            value = None if template_column is None else row.get(template_column)
            if type(value) not in _KEYS:
                template = cells.read("template", identifier_of)
            elif value in templates:
                template = templates[value]
            else:
                template = templates[value] = cells.read("template", identifier_of)
            self.places.append(place)
            self.fact_ids.append(fact_id)
            self.surfaces.append(surface)
            self.questions.append(cells.read("question", text_of))
            self.templates.append(template)

    def name_only_facts(self) -> list[str]:
        """List the facts whose object has a name but no aliases, where aliases are the answers.

        Returns:
            Their identifiers; empty when the source has answers of its own, or no aliases at all.
        """
        if "answers" in self.columns or "object_aliases" not in self.columns:
            return []
        return [
            fact_id
            for fact_id, fact in self._facts.items()
            if fact.object_name is not None and not fact.object_aliases
        ]

    def build(self) -> QuestionTable:
        """Build the questions of the rows that were read.

        Returns:
            The questions in order; a row that repeats another to the letter adds none.

        Raises:
            RecordError: If a relation or question is neither given nor to be told, or a text cannot
                be written as UTF-8.
            DataError: If two rows are the same question but differ, or a fact has two canonical
                names.
        """
        try:
            return self._table()
        except (pa.ArrowInvalid, UnicodeEncodeError):
            self._refuse_text()
            raise

    def _table(self) -> QuestionTable:
        """Lay the questions out in columns."""
        names = self._settle_relations()
        templates = self._templates()
        fact_places = {fact_id: place for place, fact_id in enumerate(self._facts)}
        texts = self.questions
        rows: dict[str, int] = {}
        canonical: dict[tuple[str, str], int] = {}
        for row, (fact_id, surface, template) in enumerate(
            zip(self.fact_ids, self.surfaces, templates, strict=True)
        ):
            key = question_id(fact_id, template, surface)
            if texts[row] is None:
                texts[row] = self._asked(row, self._facts[fact_id].relation or "", template)
            first = rows.setdefault(key, row)
            if first != row:
                self._check_repeated(first, row, template)
            elif surface.is_canonical:
                self._check_canonical(canonical.setdefault((fact_id, template), row), row, template)
        kept = list(rows.values())
        surfaces = [self.surfaces[row] for row in kept]
        columns: dict[str, Any] = {
            "id": list(rows),
            "fact": [fact_places[self.fact_ids[row]] for row in kept],
            "template": [templates[row] for row in kept],
            "question": [texts[row] for row in kept],
            "surface": [surface.text for surface in surfaces],
            "is_canonical": [surface.is_canonical for surface in surfaces],
            "categories": [surface.categories for surface in surfaces],
            "types": [surface.types for surface in surfaces],
            "redirect_title": [surface.redirect_title for surface in surfaces],
        }
        described = [fact.told(fact_id, names[fact_id]) for fact_id, fact in self._facts.items()]
        facts = dict(zip(FACT_SCHEMA.names, zip(*described, strict=True), strict=True))
        return QuestionTable(
            pa.table(facts, schema=FACT_SCHEMA), pa.table(columns, schema=QUESTION_SCHEMA)
        )

    def _templates(self) -> list[str]:
        """Name the template of each row; names of the taxonomy need no look at the questions."""
        given = {name: name if name is None else name.casefold() for name in {*self.templates}}
        if all(name in TEMPLATES for name in given.values()):
            return [given[name] or "" for name in self.templates]
        relations = (self._facts[fact_id].relation or "" for fact_id in self.fact_ids)
        names = (surface.text for surface in self.surfaces)
        return resolve_templates(
            list(map(Wording, relations, names, self.questions, self.templates))
        )

    def _refuse_text(self) -> None:
        """Find the text that is no Unicode, which no column can hold."""
        for fact_id, fact in self._facts.items():
            told = dict(zip(FACT_SCHEMA.names, fact.told(fact_id, fact_id), strict=True))
            with _named(f"{fact.place}: fact {fact_id!r}"):
                triple_of(told, {})
                json.dumps(told, ensure_ascii=False).encode()
        for place, surface, question in zip(
            self.places, self.surfaces, self.questions, strict=True
        ):
            with _named(str(place)):
                SurfaceForm(**surface._asdict())
                _Asked(question=question or "?")
                json.dumps(surface, ensure_ascii=False).encode()

    def _surface(self, cells: RowCells) -> tuple[Surface, list[str]]:
        """Read the name that a row asks about, and its categories outside the taxonomy."""
        text = cells.needed("surface", text_of)
        labels = cells.read("categories", strings_of)
        redirect_title = cells.read("redirect_title", text_of)
        is_canonical = CANONICAL_LABEL in labels or (
            not labels
            and redirect_title is None
            and _is_title(text, cells.read("subject_title", text_of))
        )
        foreign: list[str] = []
        if is_canonical:
            surface = Surface(text, is_canonical)
        else:
            labels, types, foreign = _parsed_categories(labels)
            surface = Surface(text, is_canonical, labels, types, redirect_title)
        return self._surfaces.setdefault(surface, surface), foreign

    def _settle_relations(self) -> dict[str, str]:
        """Tell relations that no column names from a question; return a name for each subject."""
        names: dict[str, str] = {}
        for fact_id, surface, question in zip(
            self.fact_ids, self.surfaces, self.questions, strict=True
        ):
            if surface.is_canonical or fact_id not in names:
                names[fact_id] = surface.text
            fact = self._facts[fact_id]
            if fact.relation is None and question is not None:
                fact.relation = infer_relation(question, surface.text)
        for fact_id, fact in self._facts.items():
            if fact.relation is None:
                raise RecordError(
                    f"{fact.place}: fact {fact_id!r} has no relation, and its questions follow no "
                    "known template; name the column that tells it with "
                    "columns={'relation': '<column>'}"
                )
        return names

    def _asked(self, row: int, relation: str, template: str) -> str:
        """Word the question of a row that has none."""
        if relation not in RELATIONS:
            raise RecordError(
                f"{self.places[row]}: no question, and the taxonomy has no template for relation "
                f"{relation!r}; name the column that holds it with "
                "columns={'question': '<column>'}"
            )
        return RELATIONS[relation].question(self.surfaces[row].text, template=template)

    def _check_repeated(self, first: int, row: int, template: str) -> None:
        """Refuse two different rows for one fact, name and template."""
        one, surface = self.surfaces[first], self.surfaces[row]
        if self.questions[first] != self.questions[row]:
            what, values = "question", f"{self.questions[first]!r} and {self.questions[row]!r}"
        elif one != surface:
            what, values = "categories", f"{one.categories} and {surface.categories}"
        else:
            return
        raise DataError(
            f"{self.places[first]} and {self.places[row]} are the same fact "
            f"{self.fact_ids[row]!r}, surface {surface.text!r} and template "
            f"{template!r}, but differ in {what}: {values}; remove one, or name the "
            "column that tells them apart with columns={'template': '<column>'}"
        )

    def _check_canonical(self, first: int, row: int, template: str) -> None:
        """Refuse a second canonical name for one fact and template."""
        if first != row:
            raise DataError(
                f"{self.places[first]} and {self.places[row]} are both canonical for fact "
                f"{self.fact_ids[row]!r}, template {template!r}: {self.surfaces[first].text!r} and "
                f"{self.surfaces[row].text!r}; a fact has one canonical name"
            )


@dataclass(slots=True, kw_only=True)
class _Fact:
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
    def read(cls, cells: RowCells) -> "_Fact":
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

    def merge(self, other: "_Fact", fact_id: str) -> None:
        """Take over what is missing here, and refuse what contradicts."""
        for name in _FILLED:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine in (None, ()):
                setattr(self, name, theirs)
            elif name in _IDENTIFYING and theirs and mine != theirs and _key(mine) != _key(theirs):
                raise DataError(
                    f"{self.place} and {other.place} belong to one fact, {fact_id!r}, but differ "
                    f"in {name}: {mine!r} and {theirs!r}; one triple id must mean one fact"
                )

    def told(self, fact_id: str, name: str) -> tuple[object, ...]:
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


@contextmanager
def _named(place: str) -> Iterator[None]:
    """Say where a text stands that is refused."""
    try:
        yield
    except ValidationError as error:
        raise RecordError(f"{place}: {describe_validation_error(error)}") from error
    except UnicodeEncodeError as error:
        raise RecordError(
            f"{place}: holds half a surrogate pair, which is no character; repair the text"
        ) from error


@lru_cache(maxsize=4096)
def _parsed_categories(
    labels: tuple[str, ...],
) -> tuple[tuple[str, ...], tuple[str, ...], list[str]]:
    """Spell categories as the taxonomy does; name their types, and those that it does not have."""
    parsed = [(label, parse_category(label)) for label in labels]
    foreign = (
        [label for label, category in parsed if category is None] if labels else [_NO_CATEGORY]
    )
    spelled = tuple(dict.fromkeys(known.label if known else label for label, known in parsed))
    return spelled, types_of(spelled) or (UNKNOWN_TYPE,), foreign


def _cells_of(columns: Iterable[str]) -> Callable[[Mapping[str, object]], tuple[object, ...]]:
    """Read some columns of a row, None where it lacks one."""
    names = tuple(columns)
    whole = itemgetter(*names, *names[:1]) if names else None

    def read(row: Mapping[str, object]) -> tuple[object, ...]:
        try:
            return () if whole is None else whole(row)
        except KeyError:
            return tuple(map(row.get, (*names, *names[:1])))

    return read


def _is_equal(cells: tuple[object, ...], known: tuple[object, ...] | None) -> bool:
    """Tell whether cells are those of an earlier row; arrays, which do not compare, are not."""
    try:
        return cells == known
    except ValueError:
        return False


def _is_title(text: str, title: str | None) -> bool:
    """Tell whether a surface is the article's title, with or without its parenthesis."""
    return title is None or text in {title, title.replace("_", " "), surface_from_title(title)}


def _key(value: str | tuple[str, ...]) -> str | frozenset[str]:
    """Compare titles without regard to underscores and answers without regard to order."""
    return value.replace("_", " ") if isinstance(value, str) else frozenset(value)
