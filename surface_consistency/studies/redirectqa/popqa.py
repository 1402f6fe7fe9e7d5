"""PopQA (Mallen et al., 2023): facts under their canonical names, one question each."""

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from surface_consistency.data.sources import Source, open_source
from surface_consistency.errors import DataError, RecordError, UnscoredWarning
from surface_consistency.rows.cells import (
    RowCells,
    answers_of,
    count_of,
    identifier_of,
    strings_of,
    text_of,
)
from surface_consistency.rows.columns import POPQA_COLUMNS, refuse_late_columns, resolve_columns
from surface_consistency.schemas import (
    DataSource,
    Entity,
    FactualTriple,
    QuestionRealization,
    SurfaceForm,
)
from surface_consistency.schemas.jsonl import describe_validation_error
from surface_consistency.studies.redirectqa.question_table import (
    QuestionTable,
    question_id,
    unanswerable,
)
from surface_consistency.studies.redirectqa.wordings import relation_name

_REQUIRED: Final = ("id", "subj", "prop", "obj", "question", "possible_answers")
_ITEM: Final = re.compile(r"Q\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class PopQA:
    """Questions of PopQA."""

    questions: tuple[QuestionRealization, ...]
    """All questions, in the source's order; template "original", canonical surfaces."""

    source: DataSource
    """Where they came from, and the digest of exactly these."""

    def __repr__(self) -> str:
        """Say what it holds, not all of it."""
        return f"<PopQA {self.source.id!r}: {len(self.questions):,} questions>"


def load_popqa(
    source: Source = "akariasai/PopQA",
    *,
    revision: str | None = None,
    split: str = "test",
    columns: Mapping[str, str] | None = None,
) -> PopQA:
    """Load PopQA.

    The files are read without the NA rules of CSV readers: subjects named "NA", "null" or "None"
    keep their names. `prop_id`, `subj_id` and `obj_id` are PopQA's own numbers and are not used;
    Wikidata items are taken from `s_uri` and `o_uri`.

    Args:
        source: Hub id, folder in the hub's layout, file such as its `test.tsv`, `datasets` object,
            or rows as dictionaries; see `open_source`.
        revision: Branch, tag or commit of the hub repository; pin it in work to be repeated.
        split: Split of a repository, folder or dictionary of splits.
        columns: Field of `POPQA_COLUMNS` to column, where the source uses other names.

    Returns:
        The questions; the accepted answers are `possible_answers` without surrounding white space,
        the object's name first.

    Raises:
        SourceNotFoundError: If the source or the split is not there or cannot be reached.
        ColumnNotFoundError: If a needed column is not found, or `columns` names a wrong one.
        RecordError: If a row is broken, or a column that would be used appears only after the
            first thousand rows; names file, line, column and value.
        DataError: If an id stands twice, or there are no rows.

    Warns:
        UnscoredWarning: If facts have no accepted answer; they are kept.
    """
    opened = open_source(source, revision=revision, split=split)
    fields = resolve_columns(opened.columns, POPQA_COLUMNS, overrides=columns, required=_REQUIRED)
    questions: dict[str, QuestionRealization] = {}
    rows = refuse_late_columns(opened.rows, opened.columns, POPQA_COLUMNS, overrides=columns)
    for place, row in rows:
        try:
            question = _question(RowCells(fields, place, row))
        except ValidationError as error:
            raise RecordError(f"{place}: {describe_validation_error(error)}") from error
        if question.triple.id in questions:
            raise DataError(
                f"{place}: id {question.triple.id!r} stands on an earlier row too; ids are unique"
            )
        questions[question.triple.id] = question
    loaded = tuple(questions.values())
    if note := unanswerable(opened.id, [q.triple.id for q in loaded if not q.triple.answers]):
        warnings.warn(note, UnscoredWarning, stacklevel=2)
    table = QuestionTable.from_records(loaded)
    described = table.describe(source=opened.id, revision=opened.revision)
    return PopQA(questions=loaded, source=described)


def _question(cells: RowCells) -> QuestionRealization:
    """Turn a row into a question."""
    identifier = cells.needed("id", identifier_of)
    name = cells.needed("obj", text_of)
    listed = cells.read("possible_answers", answers_of)
    first = tuple(item for item in (name.strip(),) if item in listed)
    surface = SurfaceForm(text=cells.needed("subj", text_of), is_canonical=True)
    return QuestionRealization(
        id=question_id(identifier, "original", surface),
        triple=FactualTriple(
            id=identifier,
            subject=Entity(
                id=_item(cells.read("s_uri", text_of)),
                name=surface.text,
                aliases=cells.read("s_aliases", strings_of),
                pageviews=cells.read("s_pop", count_of),
            ),
            relation=relation_name(cells.needed("prop", text_of)),
            object=Entity(
                id=_item(cells.read("o_uri", text_of)),
                name=name,
                aliases=cells.read("o_aliases", strings_of),
                pageviews=cells.read("o_pop", count_of),
            ),
            answers=tuple(dict.fromkeys((*first, *listed))),
        ),
        surface=surface,
        template="original",
        question=cells.needed("question", text_of),
    )


def _item(uri: str | None) -> str | None:
    """Take the Wikidata item off its address."""
    last = (uri or "").rpartition("/")[2]
    return last if _ITEM.fullmatch(last) else None
