"""Steps from pages to articles: views, entities, and the articles that redirects lead to."""

from typing import TYPE_CHECKING

from surface_consistency_build.wikimedia.construction.database import count_of, keep_rows
from surface_consistency_build.wikimedia.construction.progress import StepCount, step_counts

if TYPE_CHECKING:
    import duckdb


def sum_views(connection: "duckdb.DuckDBPyConnection") -> list[StepCount]:
    """Sum the views of a title over months and kinds of access; titles that are no page go.

    Redirect pages keep their own views: those are asked for under their own title.

    Reads `views` (title, views) and `pages` (title). Makes `page_views` (title, views).

    Args:
        connection: The database.

    Returns:
        Rows of views in, titles out.
    """
    connection.execute(
        "CREATE OR REPLACE TABLE page_views AS SELECT title, sum(views)::BIGINT AS views "
        "FROM views SEMI JOIN pages USING (title) GROUP BY title"
    )
    n_rows, n_titles = count_of(connection, "views"), count_of(connection, "page_views")
    return step_counts("views", "rows of views to titles", n_rows, n_titles)


_QUERY = """
    WITH items AS (
        SELECT page_id, min(entity) AS entity, bool_or(is_disambiguation) AS is_disambiguation
        FROM page_props GROUP BY page_id
    ), links AS (
        SELECT title, min(id) AS entity FROM entities WHERE title IS NOT NULL GROUP BY title
    ), known AS (
        SELECT id, min(label) AS label FROM entities SEMI JOIN
            (SELECT entity FROM items UNION ALL SELECT entity FROM links) AS asked
            ON entities.id = asked.entity
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

    The page's own property `wikibase_item` names the entity; where there is none, or Wikidata no
    longer holds it, Wikidata's link to the title does (the two dumps are never of one moment: a
    page may have been renamed, or items merged, between them). An entity that Wikidata's dump holds
    twice counts once.

    Reads `pages` (page_id, title, surface, is_redirect), `page_props` (page_id, entity,
    is_disambiguation), `entities` (id, label, title) and `page_views` (title, views). Makes
    `articles` (entity, title, surface, label, views), one row an entity; `label` may be NULL,
    `views` zero.

    Args:
        connection: The database.

    Returns:
        Pages that are no article of an entity.
    """
    return keep_rows(
        connection,
        "articles",
        _QUERY,
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

_JUDGED = """
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

    A chain ends where its target is no redirect. It is left out when any of its redirects leads
    to another wiki, another namespace or a section, and when it does not end within `max_hops`
    redirects, as a loop never does.

    The page says whether it is a redirect: the other table keeps rows of pages that were one.

    Reads `redirects` (page_id, target, target_namespace, is_interwiki, is_section), `pages`
    (page_id, title, surface, is_redirect), `page_props` (page_id, is_disambiguation) and `articles`
    (entity, title). Makes `resolved` (page_id, title, surface, entity, hops).

    Args:
        connection: The database.
        max_hops: Redirects of the longest chain that is followed.

    Returns:
        Redirects that lead to no article, by reason.
    """
    connection.execute(_LINKS)
    n_all, n_links = count_of(connection, "redirects"), count_of(connection, "links")
    outside = {"no redirect page of the article namespace": n_all - n_links}
    counts = step_counts("redirects", "redirect pages", n_all, n_links, outside)
    _follow(connection, max_hops)
    counts += keep_rows(
        connection,
        "resolved",
        _JUDGED,
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
    """List the moves of each redirect along its chain; `frontier` keeps those that still go on."""
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
