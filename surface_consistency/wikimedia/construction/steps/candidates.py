"""Facts that can be asked."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from surface_consistency.wikimedia.construction.attrition import StepCount
from surface_consistency.wikimedia.construction.database import count_of, keep_rows

if TYPE_CHECKING:
    import duckdb

__all__ = ["Unambiguous", "candidate_triples"]

Unambiguous = Literal["subject", "both"]
"""Whose canonical surface form must be that of one entity alone."""

_QUERY = """
    SELECT facts.subject, facts.property, facts.object,
        subjects.title AS subject_title, subjects.label AS subject_label,
        subjects.views AS subject_views,
        subjects.surface IN (SELECT name FROM shared_names) AS is_subject_shared,
        objects.title AS object_title, objects.label AS object_label,
        objects.views AS object_views,
        objects.surface IN (SELECT name FROM shared_names) AS is_object_shared
    FROM facts
    LEFT JOIN articles AS subjects ON subjects.entity = facts.subject
    LEFT JOIN articles AS objects ON objects.entity = facts.object
"""

_SHARED_OBJECT = "the object's canonical surface is shared by several entities"
_REASONS = {
    "the subject has no page": "subject_title IS NULL",
    "the subject has no label": "subject_label IS NULL",
    "the subject's canonical surface is shared by several entities": "is_subject_shared",
    "the object has no page": "object_title IS NULL",
    "the object has no label": "object_label IS NULL",
    _SHARED_OBJECT: "is_object_shared",
    "the subject's page was not viewed": "subject_views = 0",
    "the object's page was not viewed": "object_views = 0",
}


def candidate_triples(
    connection: "duckdb.DuckDBPyConnection",
    *,
    properties: Sequence[int],
    unambiguous: Unambiguous = "subject",
) -> list[StepCount]:
    """Keep the claims that make a question with an unambiguous subject (section 2.3, step 1).

    Reads `claims` (subject, property, object), `articles` (entity, title, surface, label, views)
    and `shared_names` (name). Makes `candidates` (triplet_id, subject, property, object), where
    `triplet_id` numbers the candidates by subject, property and object; and `facts`, the distinct
    claims of the relations, which say what else answers a question.

    Args:
        connection: The database.
        properties: Numbers of the wanted properties.
        unambiguous: Whose canonical surface form must be that of one entity alone. The paper calls
            the name in the question the canonical surface form, so the subject's by default.

    Returns:
        Claims that were left out, by reason.
    """
    wanted = ", ".join(str(int(number)) for number in properties)
    connection.execute(
        "CREATE OR REPLACE TABLE facts AS SELECT DISTINCT subject, property, object FROM claims "
        f"WHERE property IN ({wanted})"
    )
    n_claims, n_facts = count_of(connection, "claims"), count_of(connection, "facts")
    counts = [
        StepCount(
            step="claims",
            unit="claims",
            rows_in=n_claims,
            rows_out=n_facts,
            reason="another relation, or said twice" if n_facts < n_claims else None,
            removed=n_claims - n_facts,
        )
    ]
    reasons = dict(_REASONS)
    if unambiguous == "subject":
        del reasons[_SHARED_OBJECT]
    counts += keep_rows(
        connection,
        "unnumbered",
        _QUERY,
        reasons,
        step="candidates",
        unit="triples",
        columns="subject, property, object",
    )
    connection.execute(
        "CREATE OR REPLACE TABLE candidates AS SELECT "
        "row_number() OVER (ORDER BY subject, property, object) AS triplet_id, * FROM unnumbered"
    )
    connection.execute("DROP TABLE unnumbered")
    return counts
