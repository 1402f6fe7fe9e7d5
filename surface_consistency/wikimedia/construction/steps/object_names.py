"""What the right answers may be called."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from surface_consistency.wikimedia.construction.attrition import StepCount
from surface_consistency.wikimedia.construction.database import count_of, quoted
from surface_consistency.wikimedia.wikis import UNCATEGORISED_LABEL

if TYPE_CHECKING:
    import duckdb

__all__ = ["name_objects"]

_QUERY = """
    CREATE OR REPLACE TABLE entity_names AS
    WITH asked AS (
        SELECT sample.triplet_id, sample.subject, sample.property, sample.object
        FROM sample SEMI JOIN balanced USING (triplet_id)
    ), right_objects AS (
        SELECT DISTINCT facts.object AS entity FROM facts
        SEMI JOIN asked ON facts.subject = asked.subject AND facts.property = asked.property
        UNION SELECT subject FROM asked UNION SELECT object FROM asked
    ), names AS (
        SELECT entity, 0 AS kind, label AS name FROM right_objects
            JOIN entities ON entities.id = entity WHERE label IS NOT NULL
        UNION ALL SELECT entity, 1, surface FROM articles SEMI JOIN right_objects USING (entity)
        UNION ALL SELECT entity, 2, alias FROM right_objects JOIN aliases ON aliases.id = entity
        UNION ALL SELECT entity, 3, surface FROM resolved SEMI JOIN right_objects USING (entity)
            WHERE {is_wanted}
    ), distinct_names AS (
        SELECT entity, name, min(kind) AS kind FROM names GROUP BY entity, name
    )
    SELECT entity, list(name ORDER BY kind, name) AS names FROM distinct_names GROUP BY entity
"""


def name_objects(
    connection: "duckdb.DuckDBPyConnection", *, labels: Sequence[str]
) -> list[StepCount]:
    """Collect the names of every entity that a kept fact is about or that answers its question.

    The names are the label, the article's title as a surface form, the aliases, and the surface
    forms of redirects in the wanted categories: of all of them, whatever the balancing left out.
    Redirects in no category are often about something else, so they count only in wikis that do
    not sort theirs.

    Reads `sample` (triplet_id, subject, property, object), `balanced` (triplet_id), `facts`
    (subject, property, object), `entities` (id, label), `aliases` (id, alias), `articles` (entity,
    surface), `resolved` (page_id, surface, entity) and `categories` (page_id, label). Makes
    `entity_names` (entity, names), the label first, then by kind and alphabet; and `right_answers`
    (triplet_id, objects), the gold object first.

    Args:
        connection: The database.
        labels: The wanted categories' labels.

    Returns:
        Facts in, entities with names out.
    """
    wanted = ", ".join(quoted(label) for label in labels)
    members = f"page_id IN (SELECT page_id FROM categories WHERE label IN ({wanted}))"
    is_wanted = "true" if UNCATEGORISED_LABEL in labels else members
    connection.execute(_QUERY.format(is_wanted=is_wanted))
    connection.execute(
        """
        CREATE OR REPLACE TABLE right_answers AS
        SELECT triplet_id, list(facts.object ORDER BY facts.object <> sample.object, facts.object)
            AS objects
        FROM sample SEMI JOIN balanced USING (triplet_id)
        JOIN facts ON facts.subject = sample.subject AND facts.property = sample.property
        GROUP BY triplet_id
        """
    )
    return [
        StepCount(
            step="answers",
            unit="triples to named entities",
            rows_in=count_of(connection, "right_answers"),
            rows_out=count_of(connection, "entity_names"),
        )
    ]
