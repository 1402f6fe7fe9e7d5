"""Facts that were given rather than drawn."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from surface_consistency.wikimedia.construction._arrow import import_arrow
from surface_consistency.wikimedia.construction.attrition import StepCount
from surface_consistency.wikimedia.construction.database import keep_rows

if TYPE_CHECKING:
    import duckdb

__all__ = ["GivenFact", "insert_facts", "pair_given_facts"]

GivenFact = tuple[int, int | None, str]
"""Number of a fact, number of its subject's Wikidata entity, and the subject's name."""


def insert_facts(
    connection: "duckdb.DuckDBPyConnection", facts: Sequence[GivenFact]
) -> list[StepCount]:
    """Find the articles of given subjects.

    A subject without an entity is looked for by its name, as an article's title, which starts with
    a capital.

    Reads `articles` (entity, title). Makes `sample` (triplet_id, subject, surface), where `surface`
    is the given name.

    Args:
        connection: The database.
        facts: The facts; their numbers are distinct.

    Returns:
        Facts whose subject has no article.
    """
    pa = import_arrow()
    numbers, entities, surfaces = zip(*facts, strict=True) if facts else ((), (), ())
    columns = {
        "triplet_id": pa.array(numbers, pa.int64()),
        "entity": pa.array(entities, pa.int64()),
        "surface": pa.array(surfaces, pa.string()),
    }
    connection.register("given", pa.table(columns))
    counts = keep_rows(
        connection,
        "sample",
        """
        SELECT given.triplet_id, given.surface,
            coalesce(by_entity.entity, by_title.entity) AS subject
        FROM given
        LEFT JOIN articles AS by_entity ON by_entity.entity = given.entity
        LEFT JOIN articles AS by_title
            ON given.entity IS NULL AND by_title.title = replace(
                upper(left(given.surface, 1)) || substr(given.surface, 2), ' ', '_')
        """,
        {"the subject has no article": "subject IS NULL"},
        step="facts",
        unit="triples",
        columns="triplet_id, subject, surface",
    )
    connection.unregister("given")
    return counts


def pair_given_facts(connection: "duckdb.DuckDBPyConnection") -> list[StepCount]:
    """Pair given facts with their subjects' surface forms, the given name left out.

    Reads `sample` (triplet_id, subject, surface) and `surfaces` (page_id, title, surface, entity,
    labels). Makes `instances` (triplet_id, page_id, title, labels).

    Args:
        connection: The database.

    Returns:
        Facts without any other name, and surfaces that are the given one.
    """
    return keep_rows(
        connection,
        "instances",
        """
        SELECT sample.triplet_id, sample.surface AS given, surfaces.*
        FROM sample LEFT JOIN surfaces ON surfaces.entity = sample.subject
        """,
        {
            "the subject has no redirect surface": "page_id IS NULL",
            "the surface is the given name": "surface = given",
        },
        step="instances",
        unit="facts and their redirects",
        columns="triplet_id, page_id, title, labels",
    )
