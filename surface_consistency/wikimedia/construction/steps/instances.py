"""Facts under their redirects' names."""

from typing import TYPE_CHECKING, Literal

from surface_consistency.wikimedia.construction.attrition import StepCount
from surface_consistency.wikimedia.construction.database import count_of

if TYPE_CHECKING:
    import duckdb

__all__ = ["pair_with_surfaces"]


def pair_with_surfaces(
    connection: "duckdb.DuckDBPyConnection", *, varied: Literal["subject", "object"] = "subject"
) -> list[StepCount]:
    """Pair each drawn fact with the surface forms of its subject (or object).

    Reads `sample` (triplet_id, subject, object) and `surfaces` (page_id, title, entity, labels).
    Makes `instances` (triplet_id, page_id, title, labels).

    Args:
        connection: The database.
        varied: Whose surface form varies.

    Returns:
        Facts without any redirect surface, which go.
    """
    connection.execute(
        "CREATE OR REPLACE TABLE instances AS "
        "SELECT sample.triplet_id, surfaces.page_id, surfaces.title, surfaces.labels "
        f"FROM sample JOIN surfaces ON surfaces.entity = sample.{varied}"
    )
    n_drawn = count_of(connection, "sample")
    n_left = count_of(connection, "(SELECT DISTINCT triplet_id FROM instances)")
    return [
        StepCount(
            step="instances",
            unit="triples",
            rows_in=n_drawn,
            rows_out=n_left,
            reason=f"the {varied} has no redirect surface" if n_left < n_drawn else None,
            removed=n_drawn - n_left,
        )
    ]
