"""When two names count as one."""

from collections.abc import Callable
from types import MappingProxyType
from typing import Final, Literal

from surface_consistency.schemas.memory import AuditPrompt
from surface_consistency.text import folded, token_key

__all__ = ["KEYS", "ROLES", "NameKey", "Role", "name_key", "names_in"]

Role = Literal["subject", "relation", "object"]
"""Part of a fact."""

NameKey = Literal["published", "strict"] | Callable[[str], str]
"""Name of a key in `KEYS`, or a function; names with equal keys are equivalent."""

ROLES: Final[tuple[Role, ...]] = ("subject", "relation", "object")
"""Parts of a fact, in the order of a triplet."""

KEYS: Final = MappingProxyType({"published": token_key, "strict": folded})
"""The audit's key, which drops punctuation (".us" is "US"), and one that keeps it."""


def name_key(key: NameKey) -> Callable[[str], str]:
    """Turn a key into a function under which a name without any key equals itself alone.

    Args:
        key: Name of a key, or a function.

    Returns:
        The function.

    Raises:
        ValueError: If there is no key of that name.

    Examples:
        >>> published = name_key("published")
        >>> published(".us") == published("US"), published("€") == published("$")
        (True, False)
    """
    if callable(key):
        function = key
    elif key in KEYS:
        function = KEYS[key]
    else:
        raise ValueError(f"key must be one of {', '.join(KEYS)} or a function, got {key!r}")
    return lambda name: function(name) or f"\0{name}"


def names_in(prompt: AuditPrompt, role: Role) -> tuple[str, ...]:
    """Give all names of a part of a fact, the prompt's own first.

    Args:
        prompt: The fact.
        role: Which part.

    Returns:
        The names.
    """
    if role == "subject":
        return (prompt.subject, *prompt.subject_aliases)
    if role == "relation":
        return (prompt.relation, *prompt.relation_aliases)
    return (prompt.gold_object, *prompt.object_aliases)
