"""Facts with all that a row says of them, read off the steps' tables a few thousand at a time."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

__all__ = ["AskedFact", "Redirect", "Side", "asked_facts", "redirects_of"]

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
class AskedFact:
    """A fact that is left after the balancing."""

    triplet_id: int
    property: int
    subject: Side
    object: Side
    objects: tuple[int, ...]
    redirects: tuple[Redirect, ...]
    names: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Names by entity, of the subject and of every right object."""


def asked_facts(connection: "duckdb.DuckDBPyConnection") -> Iterator[AskedFact]:
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
) -> Iterator[AskedFact]:
    """Read the facts whose numbers lie between two, both included."""
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
        yield AskedFact(
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
        WITH asked AS (
            SELECT unnest(objects) AS entity FROM right_answers WHERE triplet_id BETWEEN $1 AND $2
            UNION SELECT subject FROM sample SEMI JOIN right_answers USING (triplet_id)
                WHERE triplet_id BETWEEN $1 AND $2
        )
        SELECT entity, names FROM entity_names SEMI JOIN asked USING (entity)
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
    found: defaultdict[int, list[Redirect]] = defaultdict(list)
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
        found[number].append(Redirect(title, surface, tuple(labels), views))
    return found
