"""The steps of a build: articles, facts, and surface forms from redirects."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from surface_consistency_build.wikimedia.construction.database import count_of, keep_rows, quoted
from surface_consistency_build.wikimedia.construction.progress import StepCount, step_counts
from surface_consistency_build.wikimedia.wikis import UNCATEGORISED_LABEL

if TYPE_CHECKING:
    import duckdb


def sum_views(connection: "duckdb.DuckDBPyConnection") -> list[StepCount]:
    """Sum the views of a title over months and kinds of access; drop titles that are not pages.

    Redirect pages have their own views, because they are requested under their own title.

    Reads `views` (title, views) and `pages` (title). Makes `page_views` (title, views).

    Args:
        connection: The database.

    Returns:
        Number of rows of views in, and of titles out.
    """
    connection.execute(
        "CREATE OR REPLACE TABLE page_views AS SELECT title, sum(views)::BIGINT AS views "
        "FROM views SEMI JOIN pages USING (title) GROUP BY title"
    )
    n_rows, n_titles = count_of(connection, "views"), count_of(connection, "page_views")
    return step_counts("views", "rows of views to titles", n_rows, n_titles)


_JOINED_PAGES = """
    WITH items AS (
        SELECT page_id, min(entity) AS entity, bool_or(is_disambiguation) AS is_disambiguation
        FROM page_props GROUP BY page_id
    ), links AS (
        SELECT title, min(id) AS entity FROM entities WHERE title IS NOT NULL GROUP BY title
    ), known AS (
        SELECT id, min(label) AS label FROM entities SEMI JOIN
            (SELECT entity FROM items UNION ALL SELECT entity FROM links) AS wanted
            ON entities.id = wanted.entity
        GROUP BY id
    ), joined AS (
        SELECT pages.title, pages.surface, pages.is_redirect,
            coalesce(items.is_disambiguation, false) AS is_disambiguation,
            coalesce(known.id, links.entity, items.entity) AS entity
        FROM pages LEFT JOIN items USING (page_id) LEFT JOIN links USING (title)
        LEFT JOIN known ON known.id = items.entity
    ), first_pages AS (
        SELECT entity, min(title) AS title FROM joined
        WHERE entity IS NOT NULL AND NOT is_redirect AND NOT is_disambiguation GROUP BY entity
    )
    SELECT joined.*, known.label, coalesce(page_views.views, 0) AS views,
        first_pages.title AS first_title
    FROM joined
    LEFT JOIN first_pages USING (entity)
    LEFT JOIN known ON known.id = joined.entity
    LEFT JOIN page_views ON page_views.title = joined.title
"""


def join_articles(connection: "duckdb.DuckDBPyConnection") -> list[StepCount]:
    """Find the entity, label and views of each article.

    The page's property `wikibase_item` names the entity. If it is missing, or Wikidata no longer
    contains that entity, Wikidata's link to the title is used: the two dumps have different times,
    and a page may have been renamed, or items merged, in between. An entity that occurs twice in
    Wikidata's dump counts once.

    Reads `pages` (page_id, title, surface, is_redirect), `page_props` (page_id, entity,
    is_disambiguation), `entities` (id, label, title) and `page_views` (title, views). Makes
    `articles` (entity, title, surface, label, views), one row per entity; `label` may be NULL,
    `views` zero.

    Args:
        connection: The database.

    Returns:
        Pages that are not an article of an entity.
    """
    return keep_rows(
        connection,
        "articles",
        _JOINED_PAGES,
        {
            "a redirect": "is_redirect",
            "a disambiguation page": "is_disambiguation",
            "no Wikidata entity": "entity IS NULL",
            "a second page of the same entity": "title <> first_title",
        },
        step="articles",
        unit="pages",
        columns="entity, title, surface, label, views",
    )


_INTERWIKI, _NAMESPACE, _SECTION = 1, 2, 3

_LINKS = f"""
    CREATE OR REPLACE TEMP TABLE links AS
    SELECT page_id, any_value(pages.title) AS title, any_value(pages.surface) AS surface,
        min(redirects.target) AS target,
        min(CASE WHEN is_interwiki THEN {_INTERWIKI} WHEN target_namespace <> 0 THEN {_NAMESPACE}
            WHEN is_section THEN {_SECTION} ELSE 0 END) AS fault
    FROM redirects JOIN pages USING (page_id) WHERE is_redirect GROUP BY page_id
"""

_ENDS_OF_CHAINS = """
    WITH last_moves AS (
        SELECT page_id, arg_max(target, hop) AS target, arg_max(fault, hop) AS fault,
            max(hop) AS hops
        FROM moves GROUP BY page_id
    ), ends AS (
        SELECT page_id, title, surface, coalesce(last_moves.target, links.target) AS target,
            coalesce(last_moves.fault, links.fault) AS fault,
            coalesce(last_moves.hops, 1) AS hops,
            page_id IN (SELECT page_id FROM frontier) AS is_endless
        FROM links LEFT JOIN last_moves USING (page_id)
    ), disambiguations AS (
        SELECT DISTINCT pages.title FROM pages SEMI JOIN
            (SELECT page_id FROM page_props WHERE is_disambiguation) USING (page_id)
    )
    SELECT ends.page_id, ends.title, ends.surface, ends.hops, ends.fault, ends.is_endless,
        articles.entity,
        ends.target IN (SELECT title FROM disambiguations) AS is_disambiguation
    FROM ends LEFT JOIN articles ON articles.title = ends.target
"""


def resolve_redirects(
    connection: "duckdb.DuckDBPyConnection", *, max_hops: int = 8
) -> list[StepCount]:
    """Follow every redirect to the article at the end of its chain.

    A chain ends when its target is not a redirect. It is excluded if one of its redirects leads to
    another wiki, another namespace or a section, or if it does not end within `max_hops` redirects,
    as in a loop.

    The table of pages decides whether a page is a redirect: `redirects` also has rows of pages that
    are no longer redirects.

    Reads `redirects` (page_id, target, target_namespace, is_interwiki, is_section), `pages`
    (page_id, title, surface, is_redirect), `page_props` (page_id, is_disambiguation) and `articles`
    (entity, title). Makes `resolved` (page_id, title, surface, entity, hops).

    Args:
        connection: The database.
        max_hops: Maximum number of redirects in a chain.

    Returns:
        Redirects that do not lead to an article, by reason.
    """
    connection.execute(_LINKS)
    n_all, n_links = count_of(connection, "redirects"), count_of(connection, "links")
    outside = {"not a redirect page of the article namespace": n_all - n_links}
    counts = step_counts("redirects", "redirect pages", n_all, n_links, outside)
    _follow(connection, max_hops)
    counts += keep_rows(
        connection,
        "resolved",
        _ENDS_OF_CHAINS,
        {
            "leads to another wiki": f"fault = {_INTERWIKI}",
            "leads to another namespace": f"fault = {_NAMESPACE}",
            "leads to a section": f"fault = {_SECTION}",
            f"a loop, or a chain of more than {max_hops} redirects": "is_endless",
            "leads to a disambiguation page": "is_disambiguation",
            "leads to no article of an entity": "entity IS NULL",
        },
        step="resolve",
        unit="redirect pages",
        columns="page_id, title, surface, entity, hops",
    )
    connection.execute("DROP TABLE links; DROP TABLE moves; DROP TABLE moved; DROP TABLE frontier")
    return counts


def _follow(connection: "duckdb.DuckDBPyConnection", max_hops: int) -> None:
    """List the moves of each redirect along its chain; `frontier` contains unfinished chains."""
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE moves (page_id BIGINT, target VARCHAR, "
        "fault INTEGER, hop INTEGER)"
    )
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE frontier AS SELECT page_id, target FROM links WHERE fault = 0"
    )
    for hop in range(2, max_hops + 2):
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE moved AS SELECT frontier.page_id, links.target, "
            f"links.fault, {hop} AS hop FROM frontier JOIN links ON links.title = frontier.target"
        )
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE frontier AS "
            "SELECT page_id, target FROM moved WHERE fault = 0"
        )
        connection.execute("INSERT INTO moves SELECT * FROM moved")
        if not count_of(connection, "frontier"):
            break


def find_shared_names(connection: "duckdb.DuckDBPyConnection") -> list[StepCount]:
    """Find the canonical surface forms that several entities share.

    The names of an entity are its label and, if it has an article, the title without underscores
    and parenthesis. All entities with a label count, including those without an article and the
    items of disambiguation pages, whose labels are ambiguous names.

    Reads `articles` (entity, surface) and `entities` (id, label). Makes `shared_names` (name).

    Args:
        connection: The database.

    Returns:
        Number of distinct canonical surfaces in, and of shared ones out.
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
"""Entities of a fact whose canonical surface form must be unique to one entity."""

_NAMED_CLAIMS = """
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
    """Keep the claims that give a question with an unambiguous subject (section 2.3, step 1).

    Reads `claims` (subject, property, object), `articles` (entity, title, surface, label, views)
    and `shared_names` (name). Makes `candidates` (triplet_id, subject, property, object), where
    `triplet_id` numbers the candidates by subject, property and object; and `facts`, the distinct
    claims of the relations, which give the other answers to a question.

    Args:
        connection: The database.
        properties: Numbers of the wanted properties.
        unambiguous: Entities whose canonical surface form must be unique to one entity. The paper
            calls the name in the question the canonical surface form, so the subject by default.

    Returns:
        Excluded claims, by reason.
    """
    wanted = ", ".join(str(int(number)) for number in properties)
    connection.execute(
        "CREATE OR REPLACE TABLE facts AS SELECT DISTINCT subject, property, object FROM claims "
        f"WHERE property IN ({wanted})"
    )
    n_claims, n_facts = count_of(connection, "claims"), count_of(connection, "facts")
    others = {"another relation, or a repeated claim": n_claims - n_facts}
    counts = step_counts("claims", "claims", n_claims, n_facts, others)
    reasons = dict(_REASONS)
    if unambiguous == "subject":
        del reasons[_SHARED_OBJECT]
    counts += keep_rows(
        connection,
        "unnumbered",
        _NAMED_CLAIMS,
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
    """Draw facts, at most one per question.

    The MD5 hash of seed, subject, property and object gives each candidate a place in a random
    order. Of several correct objects of one subject and relation, the first in that order is the
    gold object, so that questions are distinct; then the first `triples` are drawn. The draw does
    not depend on the order of the rows or the number of threads, and a smaller draw is part of a
    larger one.

    Reads `candidates` (triplet_id, subject, property, object). Makes `sample` with its columns.

    Args:
        connection: The database.
        triples: Number of facts to draw; all if there are fewer.
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
        ), ranked_rows AS (
            SELECT *, row_number() OVER (
                PARTITION BY subject, property ORDER BY place, object
            ) = 1 AS is_gold
            FROM keyed
        )
        SELECT *, row_number() OVER (PARTITION BY is_gold ORDER BY place, triplet_id) AS rank
        FROM ranked_rows
    """
    return keep_rows(
        connection,
        "sample",
        query,
        {
            "another correct object of the question is the gold one": "NOT is_gold",
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

    A subject without an entity is searched by its name, as an article's title, which starts with a
    capital.

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
    """Pair given facts with their subjects' surface forms, except the given name.

    Reads `sample` (triplet_id, subject, surface) and `surfaces` (page_id, title, surface, entity,
    labels). Makes `instances` (triplet_id, page_id, title, labels).

    Args:
        connection: The database.

    Returns:
        Facts without another name, and surfaces that are the given name.
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
        Redirects of the drawn subjects that are in no wanted category.
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
        SEMI JOIN (SELECT DISTINCT surface FROM kinds) AS wanted ON entities.label = wanted.surface
    ), ranked_rows AS (
        SELECT kinds.*, kinds.surface = articles.surface AS is_canonical,
            labels.label IS NOT NULL AS is_label
        FROM kinds
        JOIN articles USING (entity)
        LEFT JOIN labels ON labels.label = kinds.surface
    )
    SELECT *, row_number() OVER (PARTITION BY entity, surface ORDER BY title) AS copy
    FROM ranked_rows
"""


def keep_surfaces(connection: "duckdb.DuckDBPyConnection") -> list[StepCount]:
    """Drop redirects whose surface form is the canonical name or the label of an entity.

    Surfaces are compared exactly, as the questions use them. Labels of all entities count,
    including the redirect's own entity, as in the paper ("matched existing English entity labels").
    Of several redirects of an entity with the same surface, the first by title is kept.

    Reads `kinds` (page_id, title, surface, entity, labels), `articles` (entity, surface) and
    `entities` (label). Makes `surfaces` with the columns of `kinds`.

    Args:
        connection: The database.

    Returns:
        Excluded redirects, by reason.
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
        Facts without a redirect surface, which are excluded.
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
    """Down-sample the instances of categories that have more than `category_cap` instances.

    The MD5 hash of seed, fact and redirect title gives each instance (fact and redirect) a place in
    a random order. An instance is kept if it is among the first `category_cap` of at least one of
    its categories. So a category with at most the cap keeps all of its instances, and a larger one
    at least the cap: instances that are kept because of another category are added, as in the
    paper's Table 3. All redirects without a category (`UNCATEGORISED_LABEL`) are kept. Facts that
    lose all redirects are excluded.

    Reads `instances` (triplet_id, page_id, title, labels). Makes `balanced` (triplet_id, page_id).

    Args:
        connection: The database.
        category_cap: Number of instances above which a category is over-represented; None keeps
            all.
        seed: Seed of the order.

    Returns:
        Excluded instances, and facts excluded with them.
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
    WITH wanted AS (
        SELECT sample.triplet_id, sample.subject, sample.property, sample.object
        FROM sample SEMI JOIN balanced USING (triplet_id)
    ), correct_objects AS (
        SELECT DISTINCT facts.object AS entity FROM facts
        SEMI JOIN wanted ON facts.subject = wanted.subject AND facts.property = wanted.property
        UNION SELECT subject FROM wanted UNION SELECT object FROM wanted
    ), names AS (
        SELECT entity, 0 AS kind, label AS name FROM correct_objects
            JOIN entities ON entities.id = entity WHERE label IS NOT NULL
        UNION ALL SELECT entity, 1, surface FROM articles SEMI JOIN correct_objects USING (entity)
        UNION ALL SELECT entity, 2, alias FROM correct_objects JOIN aliases ON aliases.id = entity
        UNION ALL SELECT entity, 3, surface FROM resolved SEMI JOIN correct_objects USING (entity)
            WHERE {is_wanted}
    ), distinct_names AS (
        SELECT entity, name, min(kind) AS kind FROM names GROUP BY entity, name
    )
    SELECT entity, list(name ORDER BY kind, name) AS names FROM distinct_names GROUP BY entity
"""


def name_objects(
    connection: "duckdb.DuckDBPyConnection", *, labels: Sequence[str]
) -> list[StepCount]:
    """Collect the names of the subjects and the correct objects of the kept facts.

    The names are the label, the article's title as a surface form, the aliases, and the surface
    forms of all redirects in the wanted categories, including those that the balancing excluded.
    Redirects without a category are often about something else, so they count only in wikis that do
    not categorise redirects.

    Reads `sample` (triplet_id, subject, property, object), `balanced` (triplet_id), `facts`
    (subject, property, object), `entities` (id, label), `aliases` (id, alias), `articles` (entity,
    surface), `resolved` (page_id, surface, entity) and `categories` (page_id, label). Makes
    `entity_names` (entity, names), the label first, then by kind and alphabet; and `right_answers`
    (triplet_id, objects), the gold object first.

    Args:
        connection: The database.
        labels: The wanted categories' labels.

    Returns:
        Number of facts in, and of entities with names out.
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
