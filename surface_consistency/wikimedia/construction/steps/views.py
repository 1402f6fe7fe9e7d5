"""Views of each page over the whole period."""

from typing import TYPE_CHECKING

from surface_consistency.wikimedia.construction.attrition import StepCount
from surface_consistency.wikimedia.construction.database import count_of

if TYPE_CHECKING:
    import duckdb

__all__ = ["sum_views"]


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
    return [
        StepCount(
            step="views",
            unit="rows of views to titles",
            rows_in=count_of(connection, "views"),
            rows_out=count_of(connection, "page_views"),
        )
    ]
