"""Redirects of the drawn facts, and their kinds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from surface_consistency.wikimedia.construction.attrition import StepCount
from surface_consistency.wikimedia.construction.database import keep_rows, quoted
from surface_consistency.wikimedia.wikis import UNCATEGORISED_LABEL

if TYPE_CHECKING:
    import duckdb

__all__ = ["keep_categories"]


def keep_categories(
    connection: "duckdb.DuckDBPyConnection",
    *,
    labels: Sequence[str],
    varied: Literal["subject", "object"] = "subject",
) -> list[StepCount]:
    """Keep the redirects to drawn entities that are in one of the wanted categories.

    Reads `sample` (subject, object), `resolved` (page_id, title, surface, entity) and `categories`
    (page_id, label). Makes `kinds` (page_id, title, surface, entity, labels), the labels sorted.

    Args:
        connection: The database.
        labels: The wanted labels; with `UNCATEGORISED_LABEL` among them, redirects in no other
            wanted category are kept under it.
        varied: Whose redirects are wanted.

    Returns:
        Redirects of the drawn entities that are in none.
    """
    wanted = ", ".join(quoted(label) for label in labels)
    rest = f"[{quoted(UNCATEGORISED_LABEL)}]" if UNCATEGORISED_LABEL in labels else "NULL"
    query = f"""
        WITH ours AS (
            SELECT * FROM resolved SEMI JOIN sample ON resolved.entity = sample.{varied}
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
        unit=f"redirects of drawn {varied}s",
        columns="page_id, title, surface, entity, labels",
    )
