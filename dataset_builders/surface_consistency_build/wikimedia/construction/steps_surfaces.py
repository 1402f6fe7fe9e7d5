"""Steps that give the facts their surface forms, and the right answers their names."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from surface_consistency_build.wikimedia.construction.database import count_of, keep_rows, quoted
from surface_consistency_build.wikimedia.construction.progress import StepCount, step_counts
from surface_consistency_build.wikimedia.wikis import UNCATEGORISED_LABEL

if TYPE_CHECKING:
    import duckdb


def keep_categories(
    connection: "duckdb.DuckDBPyConnection", *, labels: Sequence[str]
) -> list[StepCount]:
    """Keep the redirects to drawn subjects that are in one of the wanted categories.

    Reads `sample` (subject, object), `resolved` (page_id, title, surface, entity) and `categories`
    (page_id, label). Makes `kinds` (page_id, title, surface, entity, labels), the labels sorted.

    Args:
        connection: The database.
        labels: The wanted labels; with `UNCATEGORISED_LABEL` among them, redirects in no other
            wanted category are kept under it.

    Returns:
        Redirects of the drawn subjects that are in none.
    """
    wanted = ", ".join(quoted(label) for label in labels)
    rest = f"[{quoted(UNCATEGORISED_LABEL)}]" if UNCATEGORISED_LABEL in labels else "NULL"
    query = f"""
        WITH ours AS (
            SELECT * FROM resolved SEMI JOIN sample ON resolved.entity = sample.subject
        ), listed AS (
            SELECT page_id, list_sort(list(DISTINCT label)) AS labels
            FROM categories SEMI JOIN ours USING (page_id)
            WHERE label IN ({wanted}) GROUP BY page_id
        )
        SELECT ours.*, coalesce(listed.labels, {rest}) AS labels
        FROM ours LEFT JOIN listed USING (page_id)
    """
    return keep_rows(
        connection,
        "kinds",
        query,
        {"in none of the categories": "labels IS NULL"},
        step="categories",
        unit="redirects of drawn subjects",
        columns="page_id, title, surface, entity, labels",
    )


_OTHER_SURFACES = """
    WITH labels AS (
        SELECT DISTINCT label FROM entities
        SEMI JOIN (SELECT DISTINCT surface FROM kinds) AS asked ON entities.label = asked.surface
    ), judged_once AS (
        SELECT kinds.*, kinds.surface = articles.surface AS is_canonical,
            labels.label IS NOT NULL AS is_label
        FROM kinds
        JOIN articles USING (entity)
        LEFT JOIN labels ON labels.label = kinds.surface
    )
    SELECT *, row_number() OVER (PARTITION BY entity, surface ORDER BY title) AS copy
    FROM judged_once
"""


def keep_surfaces(connection: "duckdb.DuckDBPyConnection") -> list[StepCount]:
    """Drop redirects whose surface form is no other name, or the label of an entity.

    Surfaces are compared as the questions use them, letter by letter. A label of any entity counts,
    the redirect's own one too, as in the paper ("matched existing English entity labels"). Of
    several redirects of an entity with one surface, the first by title stays.

    Reads `kinds` (page_id, title, surface, entity, labels), `articles` (entity, surface) and
    `entities` (label). Makes `surfaces` with the columns of `kinds`.

    Args:
        connection: The database.

    Returns:
        Redirects that went, by reason.
    """
    return keep_rows(
        connection,
        "surfaces",
        _OTHER_SURFACES,
        {
            "the surface is the canonical one": "is_canonical",
            "the surface is the label of an entity": "is_label",
            "another redirect of the entity has the same surface": "copy > 1",
        },
        step="surfaces",
        unit="redirects",
        columns="page_id, title, surface, entity, labels",
    )


def pair_with_surfaces(connection: "duckdb.DuckDBPyConnection") -> list[StepCount]:
    """Pair each drawn fact with the surface forms of its subject.

    Reads `sample` (triplet_id, subject, object) and `surfaces` (page_id, title, entity, labels).
    Makes `instances` (triplet_id, page_id, title, labels).

    Args:
        connection: The database.

    Returns:
        Facts without any redirect surface, which go.
    """
    connection.execute(
        "CREATE OR REPLACE TABLE instances AS "
        "SELECT sample.triplet_id, surfaces.page_id, surfaces.title, surfaces.labels "
        "FROM sample JOIN surfaces ON surfaces.entity = sample.subject"
    )
    n_drawn = count_of(connection, "sample")
    n_left = count_of(connection, "(SELECT DISTINCT triplet_id FROM instances)")
    lost = {"the subject has no redirect surface": n_drawn - n_left}
    return step_counts("instances", "triples", n_drawn, n_left, lost)


_RANKED_INSTANCES = """
    WITH keyed AS (
        SELECT *, md5(concat({prefix}, triplet_id, ':', title)) AS place FROM instances
    ), ranked AS (
        SELECT triplet_id, page_id, label, row_number() OVER (
            PARTITION BY label ORDER BY place, triplet_id, page_id
        ) AS rank
        FROM (SELECT triplet_id, page_id, place, unnest(labels) AS label FROM keyed)
    )
    SELECT triplet_id, page_id,
        bool_or(coalesce(rank <= {cap}, true) OR label = {uncategorised}) AS is_kept
    FROM ranked GROUP BY triplet_id, page_id
"""


def balance(
    connection: "duckdb.DuckDBPyConnection", *, category_cap: int | None, seed: int
) -> list[StepCount]:
    """Down-sample the instances of categories that hold more than a cap.

    Every instance (fact and redirect) has a place in a random order: the MD5 hash of seed, fact and
    redirect title. An instance stays when it is among the first `category_cap` of at least one of
    its categories. So a category of at most the cap keeps all of its instances, a larger one at
    least the cap; it holds more by those that stay for the sake of another category, as in the
    paper's Table 3. Redirects without a category (`UNCATEGORISED_LABEL`) have none to balance
    against and all stay. Facts that lose all redirects go.

    Reads `instances` (triplet_id, page_id, title, labels). Makes `balanced` (triplet_id, page_id).

    Args:
        connection: The database.
        category_cap: Instances at which a category counts as over-represented; None keeps all.
        seed: Seed of the order.

    Returns:
        Instances that went, and facts that went with them.
    """
    cap = "NULL" if category_cap is None else str(int(category_cap))
    query = _RANKED_INSTANCES.format(
        prefix=quoted(f"{seed}:instance:"), cap=cap, uncategorised=quoted(UNCATEGORISED_LABEL)
    )
    n_before = count_of(connection, "(SELECT DISTINCT triplet_id FROM instances)")
    counts = keep_rows(
        connection,
        "balanced",
        query,
        {"all of its categories are full": "NOT is_kept"},
        step="balance",
        unit="redirect instances",
        columns="triplet_id, page_id",
    )
    n_after = count_of(connection, "(SELECT DISTINCT triplet_id FROM balanced)")
    lost = {"no redirect surface is left": n_before - n_after}
    return [*counts, *step_counts("balance", "triples", n_before, n_after, lost)]


_NAMES_OF_ENTITIES = """
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
    connection.execute(_NAMES_OF_ENTITIES.format(is_wanted=is_wanted))
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
    n_facts, n_named = count_of(connection, "right_answers"), count_of(connection, "entity_names")
    return step_counts("answers", "triples to named entities", n_facts, n_named)
