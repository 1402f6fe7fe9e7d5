"""Facts whose subject and relation have further objects in the database."""

from collections.abc import Sequence

from surface_consistency.retrieval import AliasGroups, alias_closures
from surface_consistency.schemas.memory import AuditPrompt, TripletDatabase
from surface_consistency.studies.audit.settings import AuditSettings

__all__ = ["other_objects"]


def other_objects(
    database: TripletDatabase,
    facts: Sequence[AuditPrompt],
    settings: AuditSettings,
    *,
    groups: AliasGroups | None,
) -> tuple[tuple[int, ...], ...]:
    """Find the entries that answer a fact's question with something else than its gold.

    One subject may have several objects under one relation. A lookup then finds any of them, so
    FULL may be wrong although the store holds the fact, and DEL-ON may say another true object.

    Args:
        database: The database.
        facts: Its facts.
        settings: When two names are one.
        groups: The alias groups that name it; None for a fact's own aliases.

    Returns:
        For each fact the places of these entries, in order.
    """
    asked = alias_closures(
        database,
        facts,
        key=settings.closure_key,
        scope=("subject", "relation"),
        groups=groups,
    )
    stated = alias_closures(database, facts, key=settings.closure_key, groups=groups)
    return tuple(
        tuple(sorted(set(one.indices.tolist()) - set(other.indices.tolist())))
        for one, other in zip(asked, stated, strict=True)
    )
