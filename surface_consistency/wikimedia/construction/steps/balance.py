"""Over-represented categories, cut down."""

from typing import TYPE_CHECKING

from surface_consistency.wikimedia.construction.attrition import StepCount
from surface_consistency.wikimedia.construction.database import count_of, keep_rows, quoted
from surface_consistency.wikimedia.wikis import UNCATEGORISED_LABEL

if TYPE_CHECKING:
    import duckdb

__all__ = ["balance"]

_QUERY = """
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
    query = _QUERY.format(
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
    lost = StepCount(
        step="balance",
        unit="triples",
        rows_in=n_before,
        rows_out=n_after,
        reason="no redirect surface is left" if n_after < n_before else None,
        removed=n_before - n_after,
    )
    return [*counts, lost]
