"""Questions on facts as one data frame: its columns, its records, and its digest."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from json.encoder import encode_basestring_ascii
from typing import Any, Final, NamedTuple

import pandas as pd

from surface_consistency.data.selection import first_few
from surface_consistency.schemas import (
    DataSource,
    Entity,
    FactualTriple,
    QuestionRealization,
    SurfaceForm,
)

_TEXT: Final = pd.Series([""]).dtype
_DTYPES: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("id", "item", "subject_id", "subject_name"), _TEXT),
    "subject_aliases": object,
    "subject_pageviews": "Int64",
    **dict.fromkeys(("relation", "object_id", "object_name"), _TEXT),
    "object_aliases": object,
    "object_pageviews": "Int64",
    "references": object,
    **dict.fromkeys(("template", "question", "surface"), _TEXT),
    "is_canonical": bool,
    "categories": object,
    "types": object,
    "redirect_title": _TEXT,
}

QUESTION_COLUMNS: Final = tuple(_DTYPES)
"""Columns of a frame of questions, one row per question. `id`: unique, see `question_id`; `item`:
its fact; `subject_*` and `object_*`: the entities of the fact, as in `schemas.Entity`; `relation`;
`references`: accepted answers, the object's name first; `template`: the wording; `question`;
`surface`: the name of the subject in the question; `is_canonical`, `categories`, `types` and
`redirect_title`: as in `schemas.SurfaceForm`. Lists are tuples; all other columns are text, except
the integer page views."""

_SURFACE: Final = {"text": "surface"} | {
    name: name for name in SurfaceForm.model_fields if name != "text"
}
"""Column of each field of `SurfaceForm`."""


class Question(NamedTuple):
    """The cells of a question from which prompts are made."""

    id: str
    """Identifier of the question."""

    item: str
    """The fact of the question."""

    subject_id: str | None
    """Wikidata item of the subject; None if unknown."""

    relation: str
    """Name of the relation."""

    template: str
    """Wording of the question."""

    question: str
    """The question."""

    references: tuple[str, ...]
    """Accepted answers; may be empty."""

    is_canonical: bool
    """Whether the subject has its canonical name in the question."""


def typed_questions(columns: Mapping[str, Any] | pd.DataFrame) -> pd.DataFrame:
    """Make the frame of questions from columns of Python values.

    Args:
        columns: Values by name of `QUESTION_COLUMNS`, None for a missing value. An omitted column
            is missing in every row.

    Returns:
        The frame, with a range index; the types do not depend on missing values.
    """
    series = {name: pd.Series(columns.get(name), dtype=object) for name in QUESTION_COLUMNS}
    typed = {name: column.astype(_DTYPES[name]) for name, column in series.items()}
    return pd.DataFrame(typed, copy=False)


def plain_values(frame: pd.DataFrame, columns: Iterable[str]) -> Iterable[tuple[Any, ...]]:
    """Read columns row by row as plain Python values.

    Args:
        frame: Rows.
        columns: Names of columns.

    Returns:
        One tuple per row, None for a missing value.
    """
    cells = (frame[name].astype(object) for name in columns)
    return zip(*(column.where(column.notna(), None) for column in cells), strict=True)


def questions_of(rows: pd.DataFrame) -> list[Question]:
    """Read the cells of questions from which prompts are made.

    Args:
        rows: Columns of `QUESTION_COLUMNS`.

    Returns:
        One item per row, in order.
    """
    return [Question(*cells) for cells in plain_values(rows, Question._fields)]


def question_frame(records: Iterable[QuestionRealization]) -> pd.DataFrame:
    """Convert records to a frame.

    Args:
        records: The questions.

    Returns:
        Columns of `QUESTION_COLUMNS`, one row per record, in order.
    """
    cells = [
        {
            "id": record.id,
            "item": record.triple.id,
            **{f"subject_{name}": value for name, value in record.triple.subject},
            "relation": record.triple.relation,
            **{f"object_{name}": value for name, value in record.triple.object},
            "references": record.triple.answers,
            "template": record.template,
            "question": record.question,
            **{column: getattr(record.surface, name) for name, column in _SURFACE.items()},
        }
        for record in records
    ]
    return typed_questions({name: [row[name] for row in cells] for name in QUESTION_COLUMNS})


def question_records(rows: pd.DataFrame) -> list[QuestionRealization]:
    """Build the records of questions; equal facts, entities and surfaces are one object.

    Args:
        rows: Columns of `QUESTION_COLUMNS`.

    Returns:
        One record per row, in order.

    Raises:
        ValidationError: If a value does not match its field.
    """
    known: dict[Any, Any] = {}
    made = []
    for cells in plain_values(rows, QUESTION_COLUMNS):
        row = dict(zip(QUESTION_COLUMNS, cells, strict=True))
        if row["item"] not in known:
            sides = (
                Entity(**{name: row[f"{side}_{name}"] for name in Entity.model_fields})
                for side in ("subject", "object")
            )
            subject, thing = (known.setdefault(entity, entity) for entity in sides)
            known[row["item"]] = FactualTriple(
                id=row["item"],
                subject=subject,
                relation=row["relation"],
                object=thing,
                answers=row["references"],
            )
        named = tuple(row[column] for column in _SURFACE.values())
        if named not in known:
            known[named] = SurfaceForm(**dict(zip(_SURFACE, named, strict=True)))
        made.append(
            QuestionRealization(
                id=row["id"],
                triple=known[row["item"]],
                surface=known[named],
                template=row["template"],
                question=row["question"],
            )
        )
    return made


def describe_questions(rows: pd.DataFrame, *, source: str, revision: str | None) -> DataSource:
    """Describe which questions are in use.

    Args:
        rows: Columns of `QUESTION_COLUMNS`.
        source: Origin of the questions.
        revision: Commit of the hub repository; None for other sources.

    Returns:
        The description for a run's manifest. The digest covers id, wording and answers of each
        question and does not depend on their order.
    """
    quoted = encode_basestring_ascii
    digest = hashlib.sha256()
    for name, text, answers in sorted(plain_values(rows, ("id", "question", "references"))):
        accepted = ", ".join(map(quoted, answers))
        digest.update(f"[{quoted(name)}, {quoted(text)}, [{accepted}]]\n".encode("ascii"))
    return DataSource(
        id=source, revision=revision, digest=digest.hexdigest(), n_questions=len(rows)
    )


def question_id(item: str, template: str, surface: str, redirect_title: str | None) -> str:
    """Return an id of a question from its content, which does not depend on the order of the rows.

    Args:
        item: Identifier of the fact.
        template: Name of the wording.
        surface: The name of the subject in the question.
        redirect_title: Title of the redirect page; "__MAIN__" for the canonical name, None if
            unknown.

    Returns:
        `<fact id>:<template>:<hash>`, where the hash is the first 12 hexadecimal digits of the
        SHA-256 of the surface, a line feed and the redirect's title ("" if unknown): two redirects
        may have the same surface after their parentheses are removed.

    Examples:
        >>> question_id("1318704", "original", "Chris Metzen", "__MAIN__")
        '1318704:original:5680837e88a7'
    """
    name = f"{surface}\n{redirect_title or ''}"
    return f"{item}:{template}:{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def unanswerable(source: str, without: Sequence[str]) -> str:
    """Describe the questions without an accepted answer, by fact, for a warning; "" if none."""
    facts = list(dict.fromkeys(without))
    return (
        f"{len(without)} questions of {source} have no accepted answer ({len(facts)} facts: "
        f"{first_few(facts)}); they are kept, but no answer to them can be scored: fill in the "
        "answers or drop these facts"
        if without
        else ""
    )
