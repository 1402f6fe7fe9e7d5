"""Questions of RedirectQA as Arrow columns, which hold ten times as many as records do."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from surface_consistency.data.selection import first_few
from surface_consistency.rows.readers import python_values
from surface_consistency.schemas import (
    CanonicalRedirectPair,
    DataSource,
    Entity,
    FactualTriple,
    QuestionRealization,
    SurfaceForm,
)
from surface_consistency.taxonomy import CANONICAL_LABEL

_STRINGS: Final = pa.list_(pa.string())

FACT_SCHEMA: Final = pa.schema(
    {
        "fact_id": pa.string(),
        "subject_id": pa.string(),
        "subject_name": pa.string(),
        "subject_aliases": _STRINGS,
        "subject_pageviews": pa.int64(),
        "relation": pa.string(),
        "object_id": pa.string(),
        "object_name": pa.string(),
        "object_aliases": _STRINGS,
        "object_pageviews": pa.int64(),
        "answers": _STRINGS,
    }
)
"""Columns of the facts."""

QUESTION_SCHEMA: Final = pa.schema(
    {
        "id": pa.string(),
        "fact": pa.int64(),
        "template": pa.string(),
        "question": pa.string(),
        "surface": pa.string(),
        "is_canonical": pa.bool_(),
        "categories": _STRINGS,
        "types": _STRINGS,
        "redirect_title": pa.string(),
    }
)
"""Columns of the questions; `fact` is a row of the facts."""

_SURFACE: Final = {"text": "surface"} | {
    name: name for name in ("is_canonical", "categories", "types", "redirect_title")
}
"""Field of `SurfaceForm` to column."""

_LINES_AT_ONCE: Final = 8_192


@dataclass(frozen=True, slots=True, eq=False)
class QuestionTable:
    """Questions and the facts that they ask for."""

    facts: pa.Table
    """One row a fact, columns of `FACT_SCHEMA`."""

    questions: pa.Table
    """One row a question, columns of `QUESTION_SCHEMA`."""

    def __repr__(self) -> str:
        """Say what it holds, not all of it."""
        return f"<QuestionTable: {len(self):,} questions on {len(self.facts):,} facts>"

    def __eq__(self, other: object) -> bool:
        """Compare by value."""
        if not isinstance(other, QuestionTable):
            return NotImplemented
        return bool(self.facts.equals(other.facts) and self.questions.equals(other.questions))

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        """Return the number of questions."""
        return int(self.questions.num_rows)

    @classmethod
    def from_records(cls, records: Sequence[QuestionRealization]) -> "QuestionTable":
        """Lay records out in columns.

        Args:
            records: The questions.

        Returns:
            The table, in their order.
        """
        places: dict[int, int] = {}
        triples: list[FactualTriple] = []
        for record in records:
            if places.setdefault(id(record.triple), len(places)) == len(triples):
                triples.append(record.triple)
        facts = [
            {"fact_id": triple.id, "relation": triple.relation, "answers": triple.answers}
            | {
                f"{side}_{name}": getattr(getattr(triple, side), name)
                for side in ("subject", "object")
                for name in Entity.model_fields
            }
            for triple in triples
        ]
        questions = [
            {
                "id": record.id,
                "fact": places[id(record.triple)],
                "template": record.template,
                "question": record.question,
                **{column: getattr(record.surface, name) for name, column in _SURFACE.items()},
            }
            for record in records
        ]
        return cls(
            pa.Table.from_pylist(facts, schema=FACT_SCHEMA),
            pa.Table.from_pylist(questions, schema=QUESTION_SCHEMA),
        )

    def records(self) -> list[QuestionRealization]:
        """Build the records; equal facts, entities and surfaces are one object.

        Returns:
            The questions in order.

        Raises:
            ValidationError: If a value breaks a record's rules.
        """
        entities: dict[Entity, Entity] = {}
        triples = [triple_of(row, entities) for row in _rows(self.facts)]
        surfaces: dict[tuple[Any, ...], SurfaceForm] = {}
        made = []
        for row in _rows(self.questions):
            named = {name: row[column] for name, column in _SURFACE.items()}
            key = tuple(
                tuple(value) if isinstance(value, list) else value for value in named.values()
            )
            if key not in surfaces:
                surfaces[key] = SurfaceForm(**named)
            made.append(
                QuestionRealization(
                    id=row["id"],
                    triple=triples[row["fact"]],
                    surface=surfaces[key],
                    template=row["template"],
                    question=row["question"],
                )
            )
        return made

    def column(self, name: str, rows: npt.NDArray[np.int64] | None = None) -> pa.ChunkedArray:
        """Take a column of the questions, or of their facts.

        Args:
            name: Name of a column of either schema.
            rows: Questions to take; all by default.

        Returns:
            One value a question.
        """
        if name in QUESTION_SCHEMA.names:
            values = self.questions[name]
            return values if rows is None else values.take(pa.array(rows))
        places = self.questions["fact"].to_numpy()
        return self.facts[name].take(pa.array(places if rows is None else places[rows]))

    def take(self, rows: npt.NDArray[np.int64]) -> "QuestionTable":
        """Keep some questions and their facts.

        Args:
            rows: Questions to keep.

        Returns:
            The part, in the order of `rows`.
        """
        part = self.questions.take(pa.array(rows))
        facts, places = np.unique(part["fact"].to_numpy(), return_inverse=True)
        place = QUESTION_SCHEMA.get_field_index("fact")
        return QuestionTable(
            self.facts.take(pa.array(facts)),
            part.set_column(place, QUESTION_SCHEMA.field(place), pa.array(places, pa.int64())),
        )

    def pair(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Pair each redirect question with the canonical one of the same fact and template.

        Returns:
            Row of the canonical and of the redirect question of each pair, and the rows of redirect
            questions without a canonical one, in order.
        """
        facts = self.facts["fact_id"].combine_chunks().dictionary_encode().indices.to_numpy()
        templates = self.questions["template"].combine_chunks().dictionary_encode()
        n_templates = max(len(templates.dictionary), 1)
        keys = facts[self.questions["fact"].to_numpy()].astype(np.int64) * n_templates
        keys += templates.indices.to_numpy()
        is_canonical = self.questions["is_canonical"].to_numpy(zero_copy_only=False).astype(bool)
        partner = np.full(int(keys.max()) + 1 if len(keys) else 0, -1, dtype=np.int64)
        canonical, redirect = np.flatnonzero(is_canonical), np.flatnonzero(~is_canonical)
        partner[keys[canonical]] = canonical
        partners = partner[keys[redirect]]
        return partners[partners >= 0], redirect[partners >= 0], redirect[partners < 0]

    def describe(self, *, source: str, revision: str | None) -> DataSource:
        """Sum up which questions are in use.

        Args:
            source: Where they came from.
            revision: Commit of the hub repository; None elsewhere.

        Returns:
            The facts for a run's manifest. The digest covers id, wording and answers of each
            question and does not depend on their order.
        """
        quoted = encode_basestring_ascii
        answers = [
            f"[{', '.join(map(quoted, accepted))}]"
            for accepted in python_values(self.facts["answers"])
        ]
        digest = hashlib.sha256()
        # Arrow sorts by the bytes of UTF-8, whose order is that of code points.
        rows = pc.array_sort_indices(self.questions["id"].combine_chunks()).to_numpy()
        for start in range(0, len(rows), _LINES_AT_ONCE):
            part = self.questions.select(["id", "question", "fact"]).take(
                pa.array(rows[start : start + _LINES_AT_ONCE])
            )
            lines = (
                f"[{quoted(name)}, {quoted(text)}, {answers[fact]}]\n"
                for name, text, fact in zip(*map(python_values, part.columns), strict=True)
            )
            digest.update("".join(lines).encode("ascii"))
        return DataSource(
            id=source, revision=revision, digest=digest.hexdigest(), n_questions=len(self)
        )


def pair_records(
    questions: Sequence[QuestionRealization], canonical: Iterable[int], redirect: Iterable[int]
) -> tuple[CanonicalRedirectPair, ...]:
    """Build the records of pairs.

    Args:
        questions: The questions.
        canonical: Rows of the canonical questions.
        redirect: Rows of the redirect questions.

    Returns:
        The pairs.
    """
    return tuple(
        CanonicalRedirectPair(
            id=questions[second].id, canonical=questions[first], redirect=questions[second]
        )
        for first, second in zip(canonical, redirect, strict=True)
    )


def _rows(table: pa.Table) -> Iterable[dict[str, Any]]:
    """Read the rows of a table as dictionaries."""
    columns = [python_values(column) for column in table.columns]
    return (dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True))


def triple_of(row: Mapping[str, Any], entities: dict[Entity, Entity]) -> FactualTriple:
    """Build a fact.

    Args:
        row: Values by column of `FACT_SCHEMA`.
        entities: Those that were built before, by themselves; equal ones are shared.

    Returns:
        The record.

    Raises:
        ValidationError: If a value breaks the record's rules.
    """
    subject, thing = (
        Entity(
            id=row[f"{side}_id"],
            name=row[f"{side}_name"],
            aliases=row[f"{side}_aliases"],
            pageviews=row[f"{side}_pageviews"],
        )
        for side in ("subject", "object")
    )
    return FactualTriple(
        id=row["fact_id"],
        subject=entities.setdefault(subject, subject),
        relation=row["relation"],
        object=entities.setdefault(thing, thing),
        answers=row["answers"],
    )


class Named(Protocol):
    """What names a question: a `SurfaceForm`, or whatever has its fields."""

    @property
    def text(self) -> str:
        """The name as the question uses it."""

    @property
    def is_canonical(self) -> bool:
        """Whether it is the article's title."""

    @property
    def redirect_title(self) -> str | None:
        """Title of the redirect page."""


def question_id(triple_id: str, template: str, surface: Named) -> str:
    """Name a question by what it asks, so that the name survives a new order of the rows.

    Args:
        triple_id: Identifier of the fact.
        template: Name of the wording.
        surface: The name that is asked about.

    Returns:
        `<triple id>:<template>:<hash>`, where the hash is the first 12 hexadecimal digits of the
        SHA-256 of the surface, a line feed and the redirect's title ("__MAIN__" when canonical, ""
        when unknown): two redirects may share a surface once their parentheses are gone.

    Examples:
        >>> from surface_consistency.schemas import SurfaceForm
        >>> question_id("1318704", "original", SurfaceForm(text="Chris Metzen", is_canonical=True))
        '1318704:original:5680837e88a7'
    """
    return f"{triple_id}:{template}:{surface_digest(surface)}"


def surface_digest(surface: Named) -> str:
    """Sum up a name: the last part of `question_id`."""
    title = CANONICAL_LABEL if surface.is_canonical else surface.redirect_title or ""
    return hashlib.sha256(f"{surface.text}\n{title}".encode()).hexdigest()[:12]


def unanswerable(source: str, without: Sequence[str]) -> str:
    """Tell of the questions, by their facts, for which a source accepts no answer; "" of none."""
    facts = list(dict.fromkeys(without))
    return (
        f"{len(without)} questions of {source} have no accepted answer ({len(facts)} facts: "
        f"{first_few(facts)}); they are kept, but no answer to them can be scored: fill in the "
        "answers or leave these facts out"
        if without
        else ""
    )
