"""The layout of the release: its rows from questions, and its table of categories and types."""

import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from pydantic import ConfigDict, Field

from surface_consistency import taxonomy
from surface_consistency.errors import DataError, SurfaceConsistencyWarning
from surface_consistency.reading import shown
from surface_consistency.rows.readers import read_rows
from surface_consistency.schemas import QuestionRealization, Record
from surface_consistency.schemas._record import Items, NonEmpty

CATEGORY_TYPES_PATH: Final = "metadata/redirect_category_to_type.csv"
"""Path of the table in the repository and in folders of its layout."""


class RedirectQARow(Record):
    """One row in the column layout of release v1.0.0, as this package writes it.

    The first eight columns are those that public code reads from the release. The names of the
    others are defined by this package, because those of the release are not publicly described.
    """

    # Cards show the descriptions of the columns.
    model_config = ConfigDict(use_attribute_docstrings=True)

    triplet_id: int = Field(ge=0)
    """Identifier of the fact."""

    subject_id: str | None
    """Wikidata item of the subject."""

    subject_surface: NonEmpty
    """Name of the subject in the question."""

    subject_surface_category: Items[str]
    """Redirect categories; "__MAIN__" if canonical."""

    subject_wiki_title: NonEmpty
    """Title of the subject's article, with spaces."""

    subject_redirect_wiki_title: str | None
    """Title of the redirect page, with underscores; None if canonical."""

    subject_pageviews: int | None = Field(ge=0)
    """Views of the subject's article over the period."""

    subject_aliases: Items[str]
    """Names of the subject."""

    relation: NonEmpty
    """Name of the relation."""

    relation_id: str | None
    """Its Wikidata property; None outside the taxonomy."""

    object_id: str | None
    """Wikidata item of the object."""

    object_surface: str | None
    """Name of the object; None if no answer is accepted."""

    object_aliases: Items[str]
    """Accepted answers."""

    template: NonEmpty
    """Wording of the question."""

    question: NonEmpty
    """The question."""


def hub_rows(questions: Iterable[QuestionRealization]) -> Iterator[RedirectQARow]:
    """Convert questions to rows of the release's layout, which `load_redirectqa` reads.

    Args:
        questions: The questions.

    Yields:
        One row per question, in order.

    Raises:
        DataError: If the identifier of a fact is not an integer.
    """
    for question in questions:
        triple = question.triple
        if not (triple.id.isascii() and triple.id.isdigit()):
            raise DataError(
                f"fact {shown(triple.id)}: the release's layout has integers for triplet_id; "
                "number the facts before writing them"
            )
        yield RedirectQARow(**question_cells(question) | {"triplet_id": int(triple.id)})


def question_cells(question: QuestionRealization) -> dict[str, Any]:
    """Return the cells of a question in the release's columns.

    Args:
        question: The question.

    Returns:
        Value by column of `RedirectQARow`; the identifier of the fact is a text, as in the record.
    """
    triple, surface = question.triple, question.surface
    relation = taxonomy.RELATIONS.get(triple.relation)
    return {
        "triplet_id": triple.id,
        "subject_id": triple.subject.id,
        "subject_surface": surface.text,
        "subject_surface_category": (
            (taxonomy.CANONICAL_LABEL,) if surface.is_canonical else surface.categories
        ),
        "subject_wiki_title": triple.subject.name,
        "subject_redirect_wiki_title": surface.redirect_title,
        "subject_pageviews": triple.subject.pageviews,
        "subject_aliases": triple.subject.aliases,
        "relation": triple.relation,
        "relation_id": None if relation is None else relation.property_id,
        "object_id": triple.object.id,
        "object_surface": triple.object.name if triple.answers else None,
        "object_aliases": triple.answers,
        "template": question.template,
        "question": question.question,
    }


def read_category_types(path: Path) -> dict[str, str]:
    """Read the type of each category of the taxonomy from the table.

    Args:
        path: The CSV file. Its columns may have any name and order: the cell that names a category
            and the cell that names a type are recognised by their content.

    Returns:
        Category label to type name, for the rows that name one of the 33 categories and one of the
        three types.

    Raises:
        SourceNotFoundError: If there is no such file.
        RecordError: If a line is broken.
    """
    types: dict[str, str] = {}
    for _, row in read_rows(path):
        cells = [str(cell) for cell in row.values()]
        category = next(filter(None, map(taxonomy.parse_category, cells)), None)
        kind = next(filter(None, map(taxonomy.parse_type, cells)), None)
        if category is not None and kind is not None:
            types[category.label] = kind.name
    return types


def check_category_types(folder: Path) -> None:
    """Warn if a source groups the categories differently from the taxonomy of this package.

    Args:
        folder: A folder in the hub's layout; one without the table is skipped.

    Warns:
        SurfaceConsistencyWarning: If the table has another type for a category, or lacks categories
            of the taxonomy. The taxonomy is used in any case.
    """
    path = folder / CATEGORY_TYPES_PATH
    if not path.is_file():
        return
    table = read_category_types(path)
    differences = [
        f"{label} is {table[label]} there and {category.type} here"
        if label in table
        else f"{label} is not in it"
        for label, category in taxonomy.CATEGORIES.items()
        if table.get(label) != category.type
    ]
    if differences:
        warnings.warn(
            f"{path} differs from the taxonomy of the paper, which is used: "
            f"{'; '.join(differences)}",
            SurfaceConsistencyWarning,
            stacklevel=3,
        )
