"""Rows of RedirectQA, in whatever columns, to facts and the names they are asked under."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import ValidationError

from surface_consistency.data.cells import answers_of, count_of, identifier_of, strings_of, text_of
from surface_consistency.data.readers import Place, Row
from surface_consistency.data.redirect_facts import FactDraft
from surface_consistency.data.row_cells import RowCells
from surface_consistency.data.wordings import relation_name
from surface_consistency.errors import RecordError
from surface_consistency.schemas import SurfaceForm
from surface_consistency.schemas.jsonl import describe_validation_error
from surface_consistency.taxonomy import CANONICAL_LABEL, UNKNOWN_TYPE, parse_category, types_of
from surface_consistency.text import surface_from_title

__all__ = ["NO_CATEGORY", "InstanceRow", "RedirectRows"]

NO_CATEGORY: Final = "(no category)"
"""Label under which redirects without any category are counted."""


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """One row: a fact under one name in one wording."""

    place: Place
    """Where it stands."""

    fact: str
    """Identifier of the fact."""

    surface: SurfaceForm
    """The name."""

    question: str | None
    """The question; None when the source has none."""

    template: str | None
    """The source's name for the template; None when it gives none."""


@dataclass(slots=True)
class RedirectRows:
    """Collects rows; equal facts and surfaces are kept once."""

    columns: Mapping[str, str]
    """Field of `REDIRECTQA_COLUMNS` to column."""

    instances: list[InstanceRow] = field(default_factory=list)
    """The rows in order."""

    facts: dict[str, FactDraft] = field(default_factory=dict)
    """Fact identifier to what the rows say of it, in order of appearance."""

    foreign_categories: Counter[str] = field(default_factory=Counter)
    """Rows by category outside the taxonomy; `NO_CATEGORY` counts redirects without any."""

    _surfaces: dict[SurfaceForm, SurfaceForm] = field(default_factory=dict)

    def extend(self, rows: Iterable[Row]) -> None:
        """Read rows.

        Args:
            rows: Rows with their places.

        Raises:
            RecordError: If a cell is not what its field needs; names place, column and value.
            DataError: If two rows contradict each other.
        """
        for place, row in rows:
            try:
                self._add(RowCells(self.columns, place, row))
            except ValidationError as error:
                raise RecordError(f"{place}: {describe_validation_error(error)}") from error

    def subject_names(self) -> dict[str, str]:
        """Name each subject by its canonical surface, or by its first one where there is none.

        Returns:
            Fact identifier to name.
        """
        names: dict[str, str] = {}
        for instance in self.instances:
            if instance.surface.is_canonical or instance.fact not in names:
                names[instance.fact] = instance.surface.text
        return names

    def facts_by_name_only(self) -> list[str]:
        """List the facts whose object has a name but no aliases, where aliases are the answers.

        Returns:
            Their identifiers; empty when the source has answers of its own, or no aliases at all.
        """
        if "answers" in self.columns or "object_aliases" not in self.columns:
            return []
        return [
            fact
            for fact, draft in self.facts.items()
            if draft.object_name is not None and not draft.object_aliases
        ]

    def _add(self, cells: RowCells) -> None:
        """Take one row in."""
        draft = _draft(cells)
        fact = _fact_id(cells, draft)
        known = self.facts.setdefault(fact, draft)
        if known is not draft:
            known.merge(draft, fact)
        self.instances.append(
            InstanceRow(
                place=cells.place,
                fact=fact,
                surface=self._surface(cells, draft.subject_name),
                question=cells.read("question", text_of),
                template=cells.read("template", identifier_of),
            )
        )

    def _surface(self, cells: RowCells, title: str | None) -> SurfaceForm:
        """Read the name that a row asks about."""
        text = cells.needed("surface", text_of)
        labels = cells.read("categories", strings_of)
        redirect_title = cells.read("redirect_title", text_of)
        if CANONICAL_LABEL in labels or (
            not labels and redirect_title is None and _is_title(text, title)
        ):
            surface = SurfaceForm(text=text, is_canonical=True)
        else:
            labels = self._normalised(labels)
            surface = SurfaceForm(
                text=text,
                is_canonical=False,
                categories=labels,
                types=types_of(labels) or (UNKNOWN_TYPE,),
                redirect_title=redirect_title,
            )
        return self._surfaces.setdefault(surface, surface)

    def _normalised(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """Give categories the taxonomy's spelling, and count those that it does not hold."""
        normalised = []
        for text in labels:
            category = parse_category(text)
            normalised.append(text if category is None else category.label)
            if category is None:
                self.foreign_categories[text] += 1
        if not normalised:
            self.foreign_categories[NO_CATEGORY] += 1
        return tuple(dict.fromkeys(normalised))


def _draft(cells: RowCells) -> FactDraft:
    """Read what a row says about its fact."""
    relation = cells.read("relation", identifier_of)
    title = cells.read("object_title", text_of)
    name = cells.read("object", text_of) or (surface_from_title(title) if title else None)
    aliases = cells.read("object_aliases", strings_of)
    return FactDraft(
        place=cells.place,
        subject_id=cells.read("subject_id", identifier_of),
        subject_name=cells.read("subject_title", text_of),
        subject_aliases=cells.read("subject_aliases", strings_of),
        pageviews=cells.read("pageviews", count_of),
        relation=None if relation is None else relation_name(relation),
        object_id=cells.read("object_id", identifier_of),
        object_name=name,
        object_aliases=aliases,
        answers=_answers(cells, name, aliases),
    )


def _answers(cells: RowCells, name: str | None, aliases: tuple[str, ...]) -> tuple[str, ...]:
    """Put the object's name first; without a column of answers, its names are the answers."""
    named = () if name is None else (name.strip(),)
    if "answers" not in cells.columns:
        return tuple(dict.fromkeys((*named, *map(str.strip, aliases))))
    listed = cells.read("answers", answers_of)
    first = tuple(item for item in named if item in listed)
    return tuple(dict.fromkeys((*first, *listed)))


def _fact_id(cells: RowCells, draft: FactDraft) -> str:
    """Read the fact's identifier; without a column for it, the fact itself is one."""
    if "triple_id" in cells.columns:
        return cells.needed("triple_id", identifier_of)
    parts = (
        draft.subject_id or draft.subject_name,
        draft.relation,
        draft.object_id or draft.object_name or "|".join(draft.answers),
    )
    if not all(parts):
        raise RecordError(
            f"{draft.place}: without a column of triple ids a row needs subject, relation and "
            f"object, got {parts!r}"
        )
    return "|".join(part for part in parts if part)


def _is_title(text: str, title: str | None) -> bool:
    """Tell whether a surface is the article's title, with or without its parenthesis."""
    return title is None or text in {title, title.replace("_", " "), surface_from_title(title)}
