"""Steps that choose the facts: those that can be asked, a sample of them, or given ones."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from surface_consistency_build.wikimedia.construction.database import count_of, keep_rows, quoted
from surface_consistency_build.wikimedia.construction.progress import StepCount, step_counts

if TYPE_CHECKING:
    import duckdb


def find_shared_names(connection: "duckdb.DuckDBPyConnection") -> list[StepCount]:
    """Find the canonical surface forms that several entities share.

    The names of an entity are its label and, if it has an article, the title without underscores
    and parenthesis. Every labelled entity counts, those without an article too; so does the item
    of a disambiguation page, whose label is an ambiguous name by its nature.

    Reads `articles` (entity, surface) and `entities` (id, label). Makes `shared_names` (name).

    Args:
        connection: The database.

    Returns:
        Distinct canonical surfaces in, shared ones out.
    """
    connection.execute(
        """
        CREATE OR REPLACE TABLE shared_names AS
        WITH surfaces AS (SELECT DISTINCT surface FROM articles), names AS (
            SELECT label AS name, id FROM entities SEMI JOIN surfaces ON label = surfaces.surface
            UNION SELECT surface, entity FROM articles
        )
        SELECT name FROM names GROUP BY name HAVING count(DISTINCT id) > 1
        """
    )
    n_surfaces = count_of(connection, "(SELECT DISTINCT surface FROM articles)")
    n_shared = count_of(connection, "shared_names")
    return step_counts("names", "canonical surfaces to shared ones", n_surfaces, n_shared)


Unambiguous = Literal["subject", "both"]
"""Whose canonical surface form must be that of one entity alone."""

_QUERY = """
    SELECT facts.subject, facts.property, facts.object,
        subjects.title AS subject_title, subjects.label AS subject_label,
        subjects.views AS subject_views,
        subjects.surface IN (SELECT name FROM shared_names) AS is_subject_shared,
        objects.title AS object_title, objects.label AS object_label,
        objects.views AS object_views,
        objects.surface IN (SELECT name FROM shared_names) AS is_object_shared
    FROM facts
    LEFT JOIN articles AS subjects ON subjects.entity = facts.subject
    LEFT JOIN articles AS objects ON objects.entity = facts.object
"""

_SHARED_OBJECT = "the object's canonical surface is shared by several entities"
_REASONS = {
    "the subject has no page": "subject_title IS NULL",
    "the subject has no label": "subject_label IS NULL",
    "the subject's canonical surface is shared by several entities": "is_subject_shared",
    "the object has no page": "object_title IS NULL",
    "the object has no label": "object_label IS NULL",
    _SHARED_OBJECT: "is_object_shared",
    "the subject's page was not viewed": "subject_views = 0",
    "the object's page was not viewed": "object_views = 0",
}


def candidate_triples(
    connection: "duckdb.DuckDBPyConnection",
    *,
    properties: Sequence[int],
    unambiguous: Unambiguous = "subject",
) -> list[StepCount]:
    """Keep the claims that make a question with an unambiguous subject (section 2.3, step 1).

    Reads `claims` (subject, property, object), `articles` (entity, title, surface, label, views)
    and `shared_names` (name). Makes `candidates` (triplet_id, subject, property, object), where
    `triplet_id` numbers the candidates by subject, property and object; and `facts`, the distinct
    claims of the relations, which say what else answers a question.

    Args:
        connection: The database.
        properties: Numbers of the wanted properties.
        unambiguous: Whose canonical surface form must be that of one entity alone. The paper calls
            the name in the question the canonical surface form, so the subject's by default.

    Returns:
        Claims that were left out, by reason.
    """
    wanted = ", ".join(str(int(number)) for number in properties)
    connection.execute(
        "CREATE OR REPLACE TABLE facts AS SELECT DISTINCT subject, property, object FROM claims "
        f"WHERE property IN ({wanted})"
    )
    n_claims, n_facts = count_of(connection, "claims"), count_of(connection, "facts")
    others = {"another relation, or said twice": n_claims - n_facts}
    counts = step_counts("claims", "claims", n_claims, n_facts, others)
    reasons = dict(_REASONS)
    if unambiguous == "subject":
        del reasons[_SHARED_OBJECT]
    counts += keep_rows(
        connection,
        "unnumbered",
        _QUERY,
        reasons,
        step="candidates",
        unit="triples",
        columns="subject, property, object",
    )
    connection.execute(
        "CREATE OR REPLACE TABLE candidates AS SELECT "
        "row_number() OVER (ORDER BY subject, property, object) AS triplet_id, * FROM unnumbered"
    )
    connection.execute("DROP TABLE unnumbered")
    return counts


def sample_triples(
    connection: "duckdb.DuckDBPyConnection", *, triples: int, seed: int
) -> list[StepCount]:
    """Draw facts, at most one of each question.

    Every candidate has a place in a random order: the MD5 hash of seed, subject, property and
    object. Of several right objects of one subject and relation, the first in that order becomes
    the gold one, so that no question is asked twice; then the first `triples` are drawn. So the
    draw depends neither on the order of the rows nor on the number of threads, and a smaller one
    is part of a larger one.

    Reads `candidates` (triplet_id, subject, property, object). Makes `sample` with its columns.

    Args:
        connection: The database.
        triples: How many are drawn; all when there are fewer.
        seed: Seed of the order.

    Returns:
        Candidates that were not drawn.
    """
    query = f"""
        WITH keyed AS (
            SELECT *, md5(
                concat({quoted(f"{seed}:triple:")}, subject, ':', property, ':', object)
            ) AS place
            FROM candidates
        ), judged_once AS (
            SELECT *, row_number() OVER (
                PARTITION BY subject, property ORDER BY place, object
            ) = 1 AS is_gold
            FROM keyed
        )
        SELECT *, row_number() OVER (PARTITION BY is_gold ORDER BY place, triplet_id) AS rank
        FROM judged_once
    """
    return keep_rows(
        connection,
        "sample",
        query,
        {
            "another right object of the question is the gold one": "NOT is_gold",
            "not drawn": f"rank > {int(triples)}",
        },
        step="sample",
        unit="triples",
        columns="triplet_id, subject, property, object",
    )


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
