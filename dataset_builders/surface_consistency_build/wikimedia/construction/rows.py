"""Make the rows of a data set from the facts of the steps."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError

from surface_consistency.data.redirectqa_release import RedirectQARow
from surface_consistency.errors import RecordError
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.jsonl import describe_validation_error
from surface_consistency.taxonomy import CANONICAL_LABEL, RELATIONS
from surface_consistency_build.wikimedia.wikis import WikiConfig

if TYPE_CHECKING:
    import duckdb


class BuiltRow(RedirectQARow):
    """A fact with one surface form in one wording; further columns follow those of RedirectQA."""

    triplet_id: int = Field(ge=0)
    """Number of the fact: its rank among the candidate triples, independent of the sample."""

    subject_aliases: Items[str]
    """Names of the subject: label, title, aliases, and redirects in the wanted categories."""

    object_aliases: Items[str]
    """Accepted answers, `object_surface` first."""

    object_surface_category: Items[str]
    """As `subject_surface_category`, for the object."""

    object_wiki_title: str | None
    """Title of the object's article, with spaces; None if not known."""

    object_redirect_wiki_title: str | None
    """As `subject_redirect_wiki_title`, for the object: None, because its name does not vary."""

    object_pageviews: int | None = Field(ge=0)
    """Views of the object's article over the period."""

    redirect_pageviews: int | None = Field(ge=0)
    """Views of the redirect page's own title over the period; None when canonical."""

    n_objects: int | None = Field(ge=1)
    """Number of correct objects of the question in Wikidata, all of which are accepted; None if not
    known."""


def checked_row(row: BuiltRow) -> BuiltRow:
    """Validate a row that was assembled from parts.

    Args:
        row: The row.

    Returns:
        An equal row.

    Raises:
        RecordError: If a field breaks its rule; the message contains the fact and the field.
    """
    try:
        return BuiltRow.model_validate(row.__dict__)
    except ValidationError as error:
        message = describe_validation_error(error)
        raise RecordError(f"fact {row.triplet_id}: {message}") from error


_FACTS_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class Side:
    """The subject or object of a fact."""

    entity: int
    title: str
    surface: str
    views: int


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirect's name."""

    title: str
    surface: str
    labels: tuple[str, ...]
    views: int


@dataclass(frozen=True, slots=True)
class KeptFact:
    """A fact that is kept after the balancing."""

    triplet_id: int
    property: int
    subject: Side
    object: Side
    objects: tuple[int, ...]
    redirects: tuple[Redirect, ...]
    names: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Names by entity, of the subject and of all correct objects."""


def kept_facts(connection: "duckdb.DuckDBPyConnection") -> Iterator[KeptFact]:
    """Read the facts in the order of their numbers.

    Reads `sample`, `balanced`, `articles`, `surfaces`, `page_views`, `entity_names` and
    `right_answers`.
    """
    rows = connection.execute(
        "SELECT DISTINCT triplet_id FROM balanced ORDER BY triplet_id"
    ).fetchall()
    for start in range(0, len(rows), _FACTS_AT_ONCE):
        last = rows[min(start + _FACTS_AT_ONCE, len(rows)) - 1]
        yield from _facts_between(connection, rows[start][0], last[0])


def _facts_between(
    connection: "duckdb.DuckDBPyConnection", first: int, last: int
) -> Iterator[KeptFact]:
    """Read the facts whose numbers are between two numbers, both included."""
    facts = connection.execute(
        """
        SELECT sample.triplet_id, property, right_answers.objects,
            s.entity, s.title, s.surface, s.views, o.entity, o.title, o.surface, o.views
        FROM sample JOIN right_answers USING (triplet_id)
        JOIN articles AS s ON s.entity = sample.subject
        JOIN articles AS o ON o.entity = sample.object
        WHERE sample.triplet_id BETWEEN ? AND ? ORDER BY sample.triplet_id
        """,
        [first, last],
    ).fetchall()
    names = _names_of(connection, first, last)
    redirects = redirects_of(connection, first, last)
    for number, prop, objects, *sides in facts:
        subject = Side(*sides[:4])
        yield KeptFact(
            triplet_id=number,
            property=prop,
            subject=subject,
            object=Side(*sides[4:]),
            objects=tuple(objects),
            redirects=tuple(redirects[number]),
            names={entity: names.get(entity, ()) for entity in (subject.entity, *objects)},
        )


def _names_of(
    connection: "duckdb.DuckDBPyConnection", first: int, last: int
) -> dict[int, tuple[str, ...]]:
    """Read the names of the entities of some facts."""
    rows = connection.execute(
        """
        WITH wanted AS (
            SELECT unnest(objects) AS entity FROM right_answers WHERE triplet_id BETWEEN $1 AND $2
            UNION SELECT subject FROM sample SEMI JOIN right_answers USING (triplet_id)
                WHERE triplet_id BETWEEN $1 AND $2
        )
        SELECT entity, names FROM entity_names SEMI JOIN wanted USING (entity)
        """,
        [first, last],
    ).fetchall()
    return {entity: tuple(names) for entity, names in rows}


def redirects_of(
    connection: "duckdb.DuckDBPyConnection", first: int, last: int
) -> defaultdict[int, list[Redirect]]:
    """Read the kept redirects of some facts, by fact, ordered by surface and title.

    Reads `balanced`, `surfaces` and `page_views`.
    """
    redirects: defaultdict[int, list[Redirect]] = defaultdict(list)
    rows = connection.execute(
        """
        SELECT triplet_id, surfaces.title, surfaces.surface, surfaces.labels,
            coalesce(page_views.views, 0)
        FROM balanced JOIN surfaces USING (page_id)
        LEFT JOIN page_views ON page_views.title = surfaces.title
        WHERE triplet_id BETWEEN ? AND ?
        ORDER BY triplet_id, surfaces.surface, surfaces.title
        """,
        [first, last],
    ).fetchall()
    for number, title, surface, labels, views in rows:
        redirects[number].append(Redirect(title, surface, tuple(labels), views))
    return redirects


def subject_rows(fact: KeptFact, config: WikiConfig) -> Iterator[BuiltRow]:
    """Yield the rows of a fact with its subject's canonical name, then with its redirects."""
    answers = tuple(dict.fromkeys(name for item in fact.objects for name in fact.names[item]))
    canonical = _row_of_names(fact, config, answers)
    yield from rows_of_wordings(canonical, config)
    for redirect in fact.redirects:
        yield from rows_of_wordings(with_subject_redirect(canonical, redirect), config)


def with_subject_redirect(
    canonical: BuiltRow, redirect: Redirect, *, has_views: bool = True
) -> BuiltRow:
    """Replace the subject's name in a canonical row by a redirect; the question is unchanged."""
    return canonical.model_copy(
        update={
            "subject_surface": redirect.surface,
            "subject_surface_category": redirect.labels,
            "subject_redirect_wiki_title": redirect.title,
            "redirect_pageviews": redirect.views if has_views else None,
        }
    )


def canonical_row(
    number: int,
    relation: str,
    title: str,
    answers: tuple[str, ...],
    **columns: Any,  # noqa: ANN401  (types of the record's fields)
) -> BuiltRow:
    """Make the row of a fact's canonical names; the question is filled in later."""
    return BuiltRow(
        triplet_id=number,
        subject_surface_category=(CANONICAL_LABEL,),
        subject_wiki_title=title.replace("_", " "),
        subject_redirect_wiki_title=None,
        relation=relation,
        relation_id=RELATIONS[relation].property_id,
        object_aliases=answers,
        template="-",
        question="-",
        object_surface_category=(CANONICAL_LABEL,),
        object_redirect_wiki_title=None,
        redirect_pageviews=None,
        **columns,
    )


def _row_of_names(fact: KeptFact, config: WikiConfig, answers: tuple[str, ...]) -> BuiltRow:
    """Make the row of a drawn fact's canonical names."""
    return canonical_row(
        fact.triplet_id,
        config.properties[fact.property],
        fact.subject.title,
        answers,
        subject_id=f"Q{fact.subject.entity}",
        subject_surface=fact.subject.surface,
        subject_pageviews=fact.subject.views,
        subject_aliases=tuple(sorted(fact.names[fact.subject.entity])),
        object_id=f"Q{fact.object.entity}",
        object_surface=answers[0],
        object_wiki_title=fact.object.title.replace("_", " "),
        object_pageviews=fact.object.views,
        n_objects=len(fact.objects),
    )


def rows_of_wordings(row: BuiltRow, config: WikiConfig) -> Iterator[BuiltRow]:
    """Yield the row with its question in each wording; rows are validated when they are written."""
    for template in config.question_templates:
        question = config.question(row.relation, row.subject_surface, template=template)
        yield row.model_copy(update={"template": template, "question": question})
