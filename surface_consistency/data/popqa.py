"""PopQA (Mallen et al., 2023): facts with their canonical names, one question each."""

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pandas as pd

from surface_consistency.data.questions import (
    describe_questions,
    question_id,
    question_records,
    typed_questions,
    unanswerable,
)
from surface_consistency.data.redirectqa_wordings import relation_name
from surface_consistency.data.sources import Source, open_source
from surface_consistency.errors import DataError, UnscoredWarning
from surface_consistency.reading import shown
from surface_consistency.rows.cells import (
    RowCells,
    answers_of,
    count_of,
    identifier_of,
    strings_of,
    text_of,
)
from surface_consistency.rows.columns import POPQA_COLUMNS, reject_late_columns, resolve_columns
from surface_consistency.schemas import DataSource, QuestionRealization
from surface_consistency.taxonomy import CANONICAL_LABEL, TEMPLATES

_REQUIRED: Final = ("id", "subj", "prop", "obj", "question", "possible_answers")
_ITEM: Final = re.compile(r"Q\d+")


@dataclass(frozen=True, kw_only=True, eq=False)
class PopQA:
    """Questions of PopQA, one row per question; records are created on access."""

    rows: pd.DataFrame
    """The questions in the source's order, columns of `QUESTION_COLUMNS`; template "original",
    canonical surfaces."""

    source: DataSource
    """Origin of the questions, and the digest of exactly these."""

    @cached_property
    def questions(self) -> tuple[QuestionRealization, ...]:
        """Records of all questions, in the source's order."""
        return tuple(question_records(self.rows))

    def __repr__(self) -> str:
        """Summarise the content."""
        return f"<PopQA {self.source.id!r}: {len(self.rows):,} questions>"


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
        revision: Branch, tag or commit of the hub repository; pin it for reproducible work.
        split: Split of a repository, folder or dictionary of splits.
        columns: Field of `POPQA_COLUMNS` to column, if the source uses other names.

    Returns:
        The questions; the accepted answers are `possible_answers` without surrounding white space,
        the object's name first.

    Raises:
        SourceNotFoundError: If the source or the split does not exist or cannot be reached.
        ColumnNotFoundError: If a required column is not found, or `columns` names an unknown field
            or a missing column.
        RecordError: If a row is broken, or a column that would be used appears only after the
            first thousand rows; names file, line, column and value.
        DataError: If an id occurs twice, or there are no rows.

    Warns:
        UnscoredWarning: If facts have no accepted answer; they are kept.
    """
    opened = open_source(source, revision=revision, split=split, sample="popqa")
    fields = resolve_columns(opened.columns, POPQA_COLUMNS, overrides=columns, required=_REQUIRED)
    questions: dict[str, dict[str, Any]] = {}
    late = reject_late_columns(opened.rows, opened.columns, POPQA_COLUMNS, overrides=columns)
    for place, row in late:
        question = _question(RowCells(fields, place, row))
        if question["item"] in questions:
            raise DataError(
                f"{place}: id {shown(question['item'])} is also on an earlier row; ids are unique"
            )
        questions[question["item"]] = question
    rows = typed_questions(pd.DataFrame(list(questions.values()), dtype=object))
    without = rows.loc[~rows["references"].map(bool), "item"].tolist()
    if note := unanswerable(opened.id, without):
        warnings.warn(note, UnscoredWarning, stacklevel=2)
    described = describe_questions(rows, source=opened.id, revision=opened.revision)
    return PopQA(rows=rows, source=described)


def _question(cells: RowCells) -> dict[str, Any]:
    """Read the columns of a question from a row."""
    fact, subject = cells.needed("id", identifier_of), cells.needed("subj", text_of)
    name, listed = cells.needed("obj", text_of), cells.read("possible_answers", answers_of)
    named = (name.strip(),) if name.strip() in listed else ()
    return {
        "id": question_id(fact, TEMPLATES[0], subject, CANONICAL_LABEL),
        "item": fact,
        "subject_id": _item(cells.read("s_uri", text_of)),
        "subject_name": subject,
        "subject_aliases": cells.read("s_aliases", strings_of),
        "subject_pageviews": cells.read("s_pop", count_of),
        "relation": relation_name(cells.needed("prop", text_of)),
        "object_id": _item(cells.read("o_uri", text_of)),
        "object_name": name,
        "object_aliases": cells.read("o_aliases", strings_of),
        "object_pageviews": cells.read("o_pop", count_of),
        "references": tuple(dict.fromkeys((*named, *listed))),
        "template": TEMPLATES[0],
        "question": cells.needed("question", text_of),
        "surface": subject,
        "is_canonical": True,
        "categories": (),
        "types": (),
        "redirect_title": None,
    }


def _item(uri: str | None) -> str | None:
    """Return the Wikidata item of a URI."""
    last = (uri or "").rpartition("/")[2]
    return last if _ITEM.fullmatch(last) else None
