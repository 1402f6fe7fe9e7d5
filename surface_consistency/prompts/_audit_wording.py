"""How relations are worded in the prompts of an audit."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

__all__ = ["AuditWording", "filled", "load_wordings", "possessive", "wording_of"]

_FILE: Final = Path(__file__).parent / "audit_wordings.tsv"
_SLOT: Final = re.compile(r"\{([^{}]+)\}")
_NAMED: Final = re.compile(r"\{([A-Za-z_]\w*)\}")
_LOWER: Final = "|lower"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditWording:
    """The two wordings of a relation.

    `{subject}` stands for the subject, `{subject's}` for its possessive ("James'"); a slot of the
    relation's name stands for its value, and `{slot|lower}` for the value in lower case.
    """

    question: str
    """A question that the object answers."""

    statement: str
    """A statement that the object completes, without the object."""


@cache
def load_wordings() -> Mapping[str, AuditWording]:
    """Read the wordings of the published databases.

    Returns:
        By relation, its wordings; the table is read once.

    Examples:
        >>> load_wordings()["Capital"].question
        'What is the capital of {subject}?'
    """
    lines = _FILE.read_text(encoding="utf-8").splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return MappingProxyType(
        {
            relation: AuditWording(question=question, statement=statement)
            for relation, question, statement in rows
        }
    )


def wording_of(
    relation: str, wordings: Mapping[str, AuditWording]
) -> tuple[AuditWording, dict[str, str]]:
    """Find the wordings of a relation and the values of its slots; plain ones where none are."""
    if relation in wordings:
        return wordings[relation], {}
    for pattern, wording in wordings.items():
        found = _pattern(pattern).fullmatch(relation) if _NAMED.search(pattern) else None
        if found:
            slots = found.groupdict()
            return wording, slots | {name + _LOWER: slots[name].lower() for name in slots}
    return _plain(relation), {}


def filled(frame: str, values: Mapping[str, str]) -> str:
    """Fill the slots of a frame, once: braces in a value stay as they are."""
    return _SLOT.sub(lambda slot: values.get(slot[1], slot[0]), frame)


def possessive(name: str) -> str:
    """Write a name's possessive, as the published prompts do."""
    return f"{name}'" if name.endswith("s") else f"{name}'s"


@cache
def _pattern(relation: str) -> re.Pattern[str]:
    """Read a relation with slots as a pattern."""
    parts = _NAMED.split(relation)
    return re.compile(
        "".join(
            f"(?P<{part}>.+)" if place % 2 else re.escape(part) for place, part in enumerate(parts)
        )
    )


def _plain(relation: str) -> AuditWording:
    """Word a relation that has no wordings."""
    name = (
        " ".join(
            word if word.isupper() and len(word) > 1 else word.lower() for word in relation.split()
        )
        .replace("{", "")
        .replace("}", "")
    )
    return AuditWording(
        question=f"What is the {name} of {{subject}}?", statement=f"The {name} of {{subject}} is"
    )
