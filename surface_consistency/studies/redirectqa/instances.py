"""Surface instances of questions, whose entities, names and pairs are counted in a corpus."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from surface_consistency.text import counted_name

if TYPE_CHECKING:
    import pandas as pd

    from surface_consistency.schemas import Entity, QuestionRealization


def entity_id(entity: "Entity") -> str:
    """Return the id of an entity in tables: its Wikidata item, or "name:NAME" without one.

    Args:
        entity: The entity.

    Returns:
        The id.
    """
    return entity.id or f"name:{entity.name}"


def surface_id(item: str, surface: str) -> str:
    """Return the id of a surface instance, which is a fact under one name.

    Args:
        item: The fact.
        surface: The name, as a question spells it.

    Returns:
        "FACT|SURFACE", with the name as it is counted: in NFC, with single spaces.
    """
    return f"{item}|{counted_name(surface)}"


def instance_rows(questions: "Iterable[QuestionRealization]") -> "pd.DataFrame":
    """List the surface instances of questions: one per fact and name, for all templates.

    Args:
        questions: The questions.

    Returns:
        One row per instance: item, surface_id ("FACT|SURFACE", with the name as it is counted),
        subject_id, object_id, surface, is_canonical, pageviews (of the subject, null if
        missing).
    """
    import pandas as pd

    rows: dict[tuple[str, str], dict[str, object]] = {}
    for question in questions:
        triple = question.triple
        surface = counted_name(question.surface.text)
        rows.setdefault(
            (triple.id, surface),
            {
                "item": triple.id,
                "surface_id": surface_id(triple.id, surface),
                "subject_id": entity_id(triple.subject),
                "object_id": entity_id(triple.object),
                "surface": surface,
                "is_canonical": question.surface.is_canonical,
                "pageviews": triple.subject.pageviews,
            },
        )
    columns = ["item", "surface_id", "subject_id", "object_id", "surface", "is_canonical"]
    frame = pd.DataFrame(list(rows.values()), columns=[*columns, "pageviews"])
    return frame.astype({"pageviews": "Int64"})
