"""Rows of RedirectQA, in whatever columns, to validated questions.

One pass over the rows takes them apart into columns: the fact of each row, its name for the
subject, its question and its template. What the rows of a fact repeat is parsed once and compared
from then on. Then relations and templates are settled, and both become columns of a table.
"""

import hashlib
import json
import marshal
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import first_names
from surface_consistency.rows.cells import (
    RowCells,
    identifier_of,
    strings_of,
    text_of,
)
from surface_consistency.rows.readers import Place, Row, python_values
from surface_consistency.schemas import Record, SurfaceForm
from surface_consistency.schemas._record import NonEmpty
from surface_consistency.schemas.jsonl import describe_validation_error
from surface_consistency.studies.redirectqa.facts import FactStore, StatedFact
from surface_consistency.studies.redirectqa.question_table import (
    FACT_SCHEMA,
    QUESTION_SCHEMA,
    QuestionTable,
    surface_digest,
    triple_of,
)
from surface_consistency.studies.redirectqa.wordings import (
    Wording,
    infer_relation,
    resolve_templates,
)
from surface_consistency.taxonomy import (
    CANONICAL_LABEL,
    RELATIONS,
    UNKNOWN_TYPE,
    is_template,
    parse_category,
    types_of,
)
from surface_consistency.text import surface_from_title

_KEYS: Final = frozenset({str, int})
"""Types of cells that are equal only if they mean the same."""

_NO_CATEGORY: Final = "(no category)"
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


_ROW_SCHEMA: Final = pa.schema(
    {
        "source": pa.dictionary(pa.int32(), pa.string()),
        "number": pa.int64(),
        "fact": pa.int64(),
        "digest": pa.string(),
        "template": pa.string(),
        "question": pa.string(),
        "rest": pa.binary(),
        **{
            name: QUESTION_SCHEMA.field(name).type
            for name in ("surface", "is_canonical", "categories", "types", "redirect_title")
        },
    }
)
"""What is kept of a row: its place, its fact, its name for the subject, how it asks, and checksums
of the cells that are not compared otherwise: of all about the fact, then of each unread column."""

_ROWS_AT_ONCE: Final = 4_096
_NO_REFERENCES: Final = 2
"""Version of `marshal` whose bytes depend on the values alone."""

_CHECKSUM: Final = 4
"""Bytes of the checksum of one cell."""

_Waiting = tuple[Place, int, str, str | None, str | None, bytes, Surface]


@dataclass(slots=True)
class RedirectQARows:
    """The columns of the rows that were read; equal facts are kept once."""

    columns: Mapping[str, str]
    """Field of `REDIRECTQA_COLUMNS` to the source's column, for the fields that it has."""

    ask_by_template: bool = False
    """Whether rows without a question are asked in the words of the taxonomy's templates."""

    n_rows: int = 0
    """Number of rows that were read."""

    foreign_categories: Counter[str] = field(default_factory=Counter)
    """Rows by category outside the taxonomy; "(no category)" counts redirects without any."""

    _facts: FactStore = field(default_factory=FactStore)
    _parts: list[pa.Table] = field(default_factory=list)
    _unread: list[str] = field(default_factory=list)

    def extend(self, rows: Iterable[Row]) -> None:
        """Read rows.

        Args:
            rows: Rows with their places.

        Raises:
            RecordError: If a cell is not what its field needs, or is no Unicode; names place,
                column and value.
            DataError: If two rows contradict each other.
        """
        fact_cells = _cells_of(self.columns[name] for name in _FACT_FIELDS if name in self.columns)
        name_of = _cells_of(self.columns[name] for name in _NAME_FIELDS if name in self.columns)
        id_column, template_column = self.columns.get("triple_id"), self.columns.get("template")
        read_columns = {*self.columns.values(), *self._unread}
        rest_of = _cells_of(self._unread)
        templates: dict[object, str | None] = {}
        known: dict[str, bytes] = {}
        last: tuple[object, ...] | None = None
        read: tuple[Surface, str, list[str]] | None = None
        fact_id, last_id = "", None
        waiting: list[_Waiting] = []
        for place, row in rows:
            cells = RowCells(self.columns, place, row)
            if not read_columns.issuperset(row):
                self._unread += [name for name in row if name not in read_columns]
                read_columns.update(row)
                rest_of = _cells_of(self._unread)
            fact_digest = _summed(fact_cells(row))
            if id_column is None:
                fact_id = ""
            else:
                value = row.get(id_column)
                if value is None or type(value) is not type(last_id) or value != last_id:
                    fact_id, last_id = cells.needed("triple_id", identifier_of), value
            if fact_digest is None or fact_digest != known.get(fact_id):
                fact = StatedFact.read(cells)
                fact_id = fact_id or fact.own_id()
                self._facts.merge(fact_id, fact)
                if fact_digest is not None:
                    known[fact_id] = fact_digest
            name = name_of(row)
            if read is None or not _is_equal(name, last):
                read, last = self._surface(cells), name
            surface, digest, foreign = read
            if foreign:
                self.foreign_categories.update(foreign)
            value = None if template_column is None else row.get(template_column)
            if type(value) not in _KEYS:
                template = cells.read("template", identifier_of)
            elif value in templates:
                template = templates[value]
            else:
                template = templates[value] = cells.read("template", identifier_of)
            question = cells.read("question", text_of)
            rest = fact_digest[:_CHECKSUM] if fact_digest else _checksum(fact_cells(row))
            if self._unread:
                rest += b"".join(map(_checksum, rest_of(row)[: len(self._unread)]))
            fact_row = self._facts.rows[fact_id]
            waiting.append((place, fact_row, digest, template, question, rest, surface))
            if len(waiting) == _ROWS_AT_ONCE:
                self._keep(waiting)
                waiting = []
        self._keep(waiting)

    def _keep(self, rows: list[_Waiting]) -> None:
        """Lay rows out in columns."""
        if not rows:
            return
        places, facts, digests, templates, questions, rests, surfaces = zip(*rows, strict=True)
        columns: list[Any] = [
            [place.source for place in places],
            [place.number for place in places],
        ]
        columns += [facts, digests, templates, questions, rests, *zip(*surfaces, strict=True)]
        try:
            made = dict(zip(_ROW_SCHEMA.names, columns, strict=True))
            self._parts.append(pa.table(made, schema=_ROW_SCHEMA))
        except (pa.ArrowInvalid, UnicodeEncodeError):
            for place, _, _, template, question, _, surface in rows:
                with _named(str(place)):
                    _Asked(question=question or "?")
                    json.dumps([template, surface], ensure_ascii=False).encode()
            raise
        self.n_rows += len(rows)

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
            RecordError: If a relation or question is neither given nor to be told, or a text is no
                Unicode.
            DataError: If two rows are the same question but differ, or a fact has two canonical
                names.
        """
        rows = pa.concat_tables(self._parts).unify_dictionaries()
        self._parts = []
        names = self._settle(rows)
        facts = self._fact_table(names)
        rows = _replaced(rows, "template", self._templates(rows))
        if rows["question"].null_count:
            rows = _replaced(rows, "question", self._asked(rows))
        fact_ids = facts["fact_id"].take(rows["fact"])
        ids = pc.binary_join_element_wise(fact_ids, rows["template"], rows["digest"], ":")
        rows = rows.append_column("id", ids)
        if pc.count_distinct(ids).as_py() < len(rows):
            read = " or ".join(self.columns[name] for name in _FACT_FIELDS if name in self.columns)
            rows = rows.take(pa.array(_first_rows(rows, facts, (read, *self._unread))))
        _check_canonical(rows, facts)
        return QuestionTable(facts, rows.select(QUESTION_SCHEMA.names).cast(QUESTION_SCHEMA))

    def _fact_table(self, names: Mapping[str, str]) -> pa.Table:
        """Lay the facts out in columns."""
        facts, parts = iter(self._facts.items()), []
        while chunk := list(islice(facts, _ROWS_AT_ONCE)):
            rows = [fact.values(name, names.get(name, "")) for name, fact in chunk]
            columns = zip(FACT_SCHEMA.names, zip(*rows, strict=True), strict=True)
            try:
                parts.append(pa.table(dict(columns), schema=FACT_SCHEMA))
            except (pa.ArrowInvalid, UnicodeEncodeError):
                for values, (fact_id, fact) in zip(rows, chunk, strict=True):
                    with _named(f"{fact.place}: fact {fact_id!r}"):
                        triple_of(dict(zip(FACT_SCHEMA.names, values, strict=True)), {})
                        json.dumps(values, ensure_ascii=False).encode()
                raise
        return pa.concat_tables(parts)

    def _templates(self, rows: pa.Table) -> pa.Array:
        """Name the template of each row; names of the taxonomy need no look at the questions."""
        given = rows["template"].combine_chunks().dictionary_encode()
        names = [name.casefold() for name in given.dictionary.to_pylist()]
        if not given.null_count and all(map(is_template, names)):
            return pa.array(names, pa.string()).take(given.indices)
        named = [fact.relation or "" for _, fact in self._facts.items()]
        relations = (named[fact] for fact in rows["fact"].to_pylist())
        columns = (python_values(rows[name]) for name in ("surface", "question", "template"))
        return pa.array(resolve_templates(list(map(Wording, relations, *columns))), pa.string())

    def _surface(self, cells: RowCells) -> tuple[Surface, str, list[str]]:
        """Read the name that a row asks about, its digest, and categories outside the taxonomy."""
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
        with _named(str(cells.place)):
            if not text.isascii():
                SurfaceForm(**surface._asdict())
            return surface, surface_digest(surface), foreign

    def _settle(self, rows: pa.Table) -> dict[str, str]:
        """Tell relations that no column names from a question; name subjects without a title."""
        unsettled = {
            row: (fact_id, fact)
            for row, (fact_id, fact) in enumerate(self._facts.items())
            if fact.relation is None or fact.subject_name is None
        }
        names: dict[str, str] = {}
        if unsettled:
            cells = (rows[name] for name in ("fact", "surface", "is_canonical", "question"))
            for row, surface, is_canonical, question in zip(
                *map(python_values, cells), strict=True
            ):
                if row not in unsettled:
                    continue
                fact_id, fact = unsettled[row]
                if is_canonical or fact_id not in names:
                    names[fact_id] = surface
                if fact.relation is None and question is not None:
                    fact.relation = infer_relation(question, surface)
        for fact_id, fact in unsettled.values():
            if fact.relation is None:
                raise RecordError(
                    f"{fact.place}: fact {fact_id!r} has no relation, and its questions follow no "
                    "known template; name the column that tells it with "
                    "columns={'relation': 'NAME'}"
                )
            self._facts.put(fact_id, fact)
        return names

    def _asked(self, rows: pa.Table) -> pa.Array:
        """Word the questions of rows that have none, where that is asked."""
        if not self.ask_by_template:
            row = rows["question"].combine_chunks().is_null().index(True).as_py()
            raise RecordError(
                f"{_place(rows, row)}: column {self.columns['question']!r} is empty, and a "
                "question is not made up: fill it in, or set `ask_by_template=True` to ask such "
                "rows in the words of this package's templates"
            )
        relations = [fact.relation or "" for _, fact in self._facts.items()]
        questions = python_values(rows["question"])
        columns = (rows[name] for name in ("fact", "surface", "template"))
        for row, (fact, surface, template) in enumerate(
            zip(*map(python_values, columns), strict=True)
        ):
            if questions[row] is not None:
                continue
            relation = relations[fact]
            if relation not in RELATIONS:
                raise RecordError(
                    f"{_place(rows, row)}: no question, and the taxonomy has no template for "
                    f"relation {relation!r}; name the column that holds it with "
                    "columns={'question': 'NAME'}"
                )
            questions[row] = RELATIONS[relation].question(surface, template=template)
        return pa.array(questions, pa.string())


def _replaced(rows: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """Put other values into a column."""
    return rows.set_column(rows.schema.get_field_index(name), name, values)


def _place(rows: pa.Table, row: int) -> Place:
    """Say where a row stands."""
    return Place(rows["source"][row].as_py(), rows["number"][row].as_py())


def _first_rows(rows: pa.Table, facts: pa.Table, columns: tuple[str, ...]) -> list[int]:
    """Number the rows that repeat no other; refuse two different ones for one question."""
    first: dict[str, int] = {}
    for row, name in enumerate(python_values(rows["id"])):
        if first.setdefault(name, row) != row:
            _check_repeated(rows, first[name], row, facts, columns)
    return list(first.values())


def _check_repeated(
    rows: pa.Table, first: int, row: int, facts: pa.Table, columns: tuple[str, ...]
) -> None:
    """Refuse two different rows for one fact, name and template."""
    one, other = (rows.slice(place, 1).to_pylist()[0] for place in (first, row))
    if one["question"] != other["question"]:
        what, values = "question", f"{one['question']!r} and {other['question']!r}"
    elif any(one[name] != other[name] for name in Surface._fields if name != "text"):
        what = "categories"
        values = f"{tuple(one['categories'])} and {tuple(other['categories'])}"
    elif differing := _differing(one["rest"], other["rest"], columns):
        raise DataError(
            f"{_place(rows, first)} and {_place(rows, row)} would be one question, fact "
            f"{facts['fact_id'][other['fact']].as_py()!r}, surface {other['surface']!r} and "
            f"template {other['template']!r}, but they differ in "
            f"{differing}; if one of these columns tells the "
            "questions apart, name it with columns={'question': 'NAME'} or "
            "columns={'template': 'NAME'}, else drop the column or all rows of a question but one"
        )
    else:
        return
    raise DataError(
        f"{_place(rows, first)} and {_place(rows, row)} are the same fact "
        f"{facts['fact_id'][other['fact']].as_py()!r}, surface {other['surface']!r} and template "
        f"{other['template']!r}, but differ in {what}: {values}; remove one, or name the "
        "column that tells them apart with columns={'template': 'NAME'}"
    )


def _differing(one: bytes, other: bytes, columns: tuple[str, ...]) -> str:
    """Name the columns whose checksums differ; a row read early lacks those that came late."""
    empty = _checksum(None)
    sums = [
        [
            cells[at : at + _CHECKSUM] or empty
            for at in range(0, len(columns) * _CHECKSUM, _CHECKSUM)
        ]
        for cells in (one, other)
    ]
    return first_names([name for name, a, b in zip(columns, *sums, strict=True) if a != b])


def _check_canonical(rows: pa.Table, facts: pa.Table) -> None:
    """Refuse a second canonical name for one fact and template."""
    templates = rows["template"].combine_chunks().dictionary_encode()
    is_canonical = rows["is_canonical"].combine_chunks().to_numpy(zero_copy_only=False)
    places = np.flatnonzero(is_canonical)
    keys = rows["fact"].to_numpy()[places] * len(templates.dictionary)
    keys += templates.indices.to_numpy()[places]
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[place] != np.arange(len(places)))
    if not len(again):
        return
    one, other = int(places[first[place[again[0]]]]), int(places[again[0]])
    raise DataError(
        f"{_place(rows, one)} and {_place(rows, other)} are both canonical for fact "
        f"{facts['fact_id'][rows['fact'][other].as_py()].as_py()!r}, template "
        f"{rows['template'][other].as_py()!r}: {rows['surface'][one].as_py()!r} and "
        f"{rows['surface'][other].as_py()!r}; a fact has one canonical name"
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


def _summed(cells: tuple[Any, ...]) -> bytes | None:
    """Sum up plain cells in a few bytes; None for others, such as arrays."""
    try:
        return hashlib.blake2b(marshal.dumps(cells, _NO_REFERENCES), digest_size=16).digest()
    except ValueError:
        return None


def _checksum(cell: object) -> bytes:
    """Sum up one cell in four bytes; an absent one is as an empty one."""
    try:
        data = marshal.dumps(cell, _NO_REFERENCES)  # type: ignore[arg-type]
    except ValueError:
        data = repr(cell).encode("utf-8", "replace")
    return zlib.crc32(data).to_bytes(_CHECKSUM)


def _is_equal(cells: tuple[object, ...], known: tuple[object, ...] | None) -> bool:
    """Tell whether cells are those of an earlier row; arrays, which do not compare, are not."""
    try:
        return cells == known
    except ValueError:
        return False


def _is_title(text: str, title: str | None) -> bool:
    """Tell whether a surface is the article's title, with or without its parenthesis."""
    return title is None or text in {title, title.replace("_", " "), surface_from_title(title)}
