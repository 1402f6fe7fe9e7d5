"""Surface forms that differ from the canonical one and name nothing else."""

from typing import TYPE_CHECKING

from surface_consistency.wikimedia.construction.attrition import StepCount
from surface_consistency.wikimedia.construction.database import keep_rows

if TYPE_CHECKING:
    import duckdb

__all__ = ["keep_surfaces"]

_QUERY = """
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
        _QUERY,
        {
            "the surface is the canonical one": "is_canonical",
            "the surface is the label of an entity": "is_label",
            "another redirect of the entity has the same surface": "copy > 1",
        },
        step="surfaces",
        unit="redirects",
        columns="page_id, title, surface, entity, labels",
    )
