"""Questions back to rows in the columns of the RedirectQA release."""

from collections.abc import Iterable, Iterator

from surface_consistency.errors import DataError
from surface_consistency.schemas import QuestionRealization, Record
from surface_consistency.schemas._record import Items, NonEmpty
from surface_consistency.taxonomy import CANONICAL_LABEL, RELATIONS

__all__ = ["RedirectQARow", "hub_rows"]


class RedirectQARow(Record):
    """One row in the column layout of release v1.0.0, as this package writes it.

    The first eight columns are those that public code reads from the release. The names of the
    others are this package's: no public description tells those of the release.
    """

    triplet_id: int
    """Identifier of the fact."""

    subject_id: str | None
    """Wikidata item of the subject."""

    subject_surface: NonEmpty
    """Name of the subject in the question."""

    subject_surface_category: Items[str]
    """Redirect categories; "__MAIN__" when canonical."""

    subject_wiki_title: NonEmpty
    """Title of the subject's article."""

    subject_redirect_wiki_title: str | None
    """Title of the redirect page; None when canonical."""

    subject_pageviews: int | None
    """Views of the subject's article."""

    subject_aliases: Items[str]
    """Names of the subject."""

    relation: NonEmpty
    """Name of the relation."""

    relation_id: str | None
    """Its Wikidata property; None outside the taxonomy."""

    object_id: str | None
    """Wikidata item of the object."""

    object_surface: str | None
    """Name of the object; None when no answer is accepted."""

    object_aliases: Items[str]
    """Accepted answers."""

    template: NonEmpty
    """Which wording of the question."""

    question: NonEmpty
    """The question."""


def hub_rows(questions: Iterable[QuestionRealization]) -> Iterator[RedirectQARow]:
    """Turn questions into rows of the release's layout; `load_redirectqa` reads them back.

    Args:
        questions: The questions.

    Yields:
        One row a question, in order.

    Raises:
        DataError: If the identifier of a fact is no whole number.
    """
    for question in questions:
        triple, surface = question.triple, question.surface
        if not (triple.id.isascii() and triple.id.isdigit()):
            raise DataError(
                f"fact {triple.id!r}: the release's layout has whole numbers for triplet_id; "
                "number the facts before writing them"
            )
        relation = RELATIONS.get(triple.relation)
        yield RedirectQARow(
            triplet_id=int(triple.id),
            subject_id=triple.subject.id,
            subject_surface=surface.text,
            subject_surface_category=(
                (CANONICAL_LABEL,) if surface.is_canonical else surface.categories
            ),
            subject_wiki_title=triple.subject.name,
            subject_redirect_wiki_title=surface.redirect_title,
            subject_pageviews=triple.subject.pageviews,
            subject_aliases=triple.subject.aliases,
            relation=triple.relation,
            relation_id=None if relation is None else relation.property_id,
            object_id=triple.object.id,
            object_surface=triple.object.name if triple.answers else None,
            object_aliases=triple.answers,
            template=question.template,
            question=question.question,
        )
