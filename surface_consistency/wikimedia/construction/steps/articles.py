"""Articles and the Wikidata entities that they are about."""

from typing import TYPE_CHECKING

from surface_consistency.wikimedia.construction.attrition import StepCount
from surface_consistency.wikimedia.construction.database import keep_rows

if TYPE_CHECKING:
    import duckdb

__all__ = ["join_articles"]

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
