"""A sample of facts."""

from typing import TYPE_CHECKING

from surface_consistency.wikimedia.construction.attrition import StepCount
from surface_consistency.wikimedia.construction.database import keep_rows, quoted

if TYPE_CHECKING:
    import duckdb

__all__ = ["sample_triples"]


def sample_triples(
    connection: "duckdb.DuckDBPyConnection", *, triples: int, seed: int
) -> list[StepCount]:
    """Draw facts, at most one of each question.

    Every candidate has a place in a random order: the MD5 hash of seed, subject, property and
    object. Of several right objects of one subject and relation, the first in that order becomes
    the gold one, so that no question is asked twice; then the first `triples` are drawn. So the
    draw depends neither on the order of the rows nor on the number of threads, and a smaller one
    is part of a larger one.

    Reads `candidates` (triplet_id, subject, property, object). Makes `sample` with its columns.

    Args:
        connection: The database.
        triples: How many are drawn; all when there are fewer.
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
        ), judged_once AS (
            SELECT *, row_number() OVER (
                PARTITION BY subject, property ORDER BY place, object
            ) = 1 AS is_gold
            FROM keyed
        )
        SELECT *, row_number() OVER (PARTITION BY is_gold ORDER BY place, triplet_id) AS rank
        FROM judged_once
    """
    return keep_rows(
        connection,
        "sample",
        query,
        {
            "another right object of the question is the gold one": "NOT is_gold",
            "not drawn": f"rank > {int(triples)}",
        },
        step="sample",
        unit="triples",
        columns="triplet_id, subject, property, object",
    )
