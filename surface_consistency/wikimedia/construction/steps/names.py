"""Names that do not tell entities apart."""

from typing import TYPE_CHECKING

from surface_consistency.wikimedia.construction.attrition import StepCount
from surface_consistency.wikimedia.construction.database import count_of

if TYPE_CHECKING:
    import duckdb

__all__ = ["find_shared_names"]


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
    return [
        StepCount(
            step="names",
            unit="canonical surfaces to shared ones",
            rows_in=count_of(connection, "(SELECT DISTINCT surface FROM articles)"),
            rows_out=count_of(connection, "shared_names"),
        )
    ]
