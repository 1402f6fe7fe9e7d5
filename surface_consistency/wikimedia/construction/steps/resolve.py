"""Redirect pages and the entities that they lead to."""

from typing import TYPE_CHECKING

from surface_consistency.wikimedia.construction.attrition import StepCount
from surface_consistency.wikimedia.construction.database import count_of, keep_rows

if TYPE_CHECKING:
    import duckdb

__all__ = ["resolve_redirects"]

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
    counts = _outside(connection)
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


def _outside(connection: "duckdb.DuckDBPyConnection") -> list[StepCount]:
    """Count the redirects that are no pages of the article namespace."""
    n_all, n_links = count_of(connection, "redirects"), count_of(connection, "links")
    return [
        StepCount(
            step="redirects",
            unit="redirect pages",
            rows_in=n_all,
            rows_out=n_links,
            reason="no redirect page of the article namespace" if n_all > n_links else None,
            removed=n_all - n_links,
        )
    ]
