"""When two names count as one: by a key, or by the alias groups that they belong to."""

from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType
from typing import Final, Literal, Self

from surface_consistency.schemas.memory import AuditPrompt, TripletDatabase
from surface_consistency.text import folded, token_key

__all__ = ["KEYS", "ROLES", "AliasGroups", "NameKey", "Role", "name_key", "names_in"]

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


class AliasGroups:
    """Names that some chain of aliases makes one, role by role.

    Two names of a role are in one group when a prompt gives one as alias of the other, when their
    published or strict keys are equal, or when a third name is in one group with both. Wider than
    any single prompt's aliases on purpose: where one prompt lacks an alias that another has, the
    group has it.
    """

    def __init__(self) -> None:
        """Start with every name in a group of its own."""
        self._parents: dict[tuple[Role, str, str], tuple[Role, str, str]] = {}
        self._members: dict[tuple[Role, str], None] = {}

    @classmethod
    def from_prompts(
        cls, prompts: Iterable[AuditPrompt], *, database: TripletDatabase | None = None
    ) -> Self:
        """Join the names of prompts.

        Args:
            prompts: Facts with their aliases, of one database or several.
            database: Database whose names are grouped by their keys, too.

        Returns:
            The groups.
        """
        groups = cls()
        families: dict[tuple[Role, tuple[str, ...]], None] = {}
        for prompt in prompts:
            for role in ROLES:
                families[role, names_in(prompt, role)] = None
        for entry in () if database is None else database.triplets:
            for role, name in zip(ROLES, entry, strict=True):
                families[role, (name,)] = None
        for role, names in families:
            groups.join(role, names)
        return groups

    def join(self, role: Role, names: Sequence[str]) -> None:
        """Make names one group.

        Args:
            role: Whose names they are.
            names: The names; what they were in one group with comes along.
        """
        first: tuple[Role, str, str] | None = None
        for name in names:
            self._members.setdefault((role, name))
            for label, key in KEYS.items():
                node = (role, label, key(name) or f"\0{name}")
                self._parents.setdefault(node, node)
                if first is None:
                    first = node
                self._parents[self._root(node)] = self._root(first)

    def group_of(self, role: Role, name: str) -> str:
        """Name the group of a name.

        Args:
            role: Whose name it is.
            name: Any name, known or not.

        Returns:
            A text that the names of one group share and no other has.
        """
        for label, key in KEYS.items():
            node = (role, label, key(name) or f"\0{name}")
            if node in self._parents:
                return "\1".join(self._root(node))
        return "\1".join((role, "published", token_key(name) or f"\0{name}"))

    def members(self, role: Role) -> dict[str, list[str]]:
        """List the names of each group.

        Args:
            role: Whose names.

        Returns:
            By group, its names as they were joined.
        """
        groups: dict[str, list[str]] = {}
        for owner, name in self._members:
            if owner == role:
                groups.setdefault(self.group_of(role, name), []).append(name)
        return groups

    def _root(self, node: tuple[Role, str, str]) -> tuple[Role, str, str]:
        """Find the node that stands for a group, and shorten the way to it."""
        while self._parents[node] != node:
            self._parents[node] = self._parents[self._parents[node]]
            node = self._parents[node]
        return node
