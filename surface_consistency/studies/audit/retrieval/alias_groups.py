"""When two names count as one: under a key, as aliases of one fact, or by a chain of aliases."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, Self

from surface_consistency.schemas.memory import AuditPrompt, FactDatabase
from surface_consistency.text import folded, token_key

Role = Literal["subject", "relation", "object"]
"""Part of a fact."""
KeyName = Literal["published", "strict"]
"""Name of a key in `KEYS`."""
NameKey = KeyName | Callable[[str], str]
"""Name of a key in `KEYS`, or a function; names with equal keys are equivalent."""
ROLES: Final[tuple[Role, ...]] = ("subject", "relation", "object")
"""Parts of a fact, in the order of a triplet."""
KEYS: Final[Mapping[KeyName, Callable[[str], str]]] = MappingProxyType(
    {"published": token_key, "strict": folded}
)
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


class _Node(NamedTuple):
    """A name of a role as one of the keys reads it."""

    role: Role
    label: KeyName
    key: str


CACHED_KEYS: Final[Mapping[KeyName, Callable[[str], str]]] = MappingProxyType(
    {label: lru_cache(maxsize=1 << 17)(name_key(key)) for label, key in KEYS.items()}
)
"""The functions of `KEYS` for names without key too; they remember what they were asked last."""


class AliasGroups:
    """Names that some chain of aliases makes one, role by role.

    Two names of a role are in one group when a prompt gives one as alias of the other, when their
    published or strict keys are equal, or when a third name is in one group with both. Wider than
    any single prompt's aliases on purpose: where one prompt lacks an alias that another has, the
    group has it. The price is that an alias which two things share ("MJ") makes them one:
    `shared_aliases` tells which do, and `without_shared_aliases` keeps such things apart.
    """

    def __init__(self) -> None:
        """Start with every name in a group of its own."""
        self._parents: dict[_Node, _Node] = {}
        self._families: dict[tuple[Role, tuple[str, ...]], None] = {}
        self._members: dict[tuple[Role, str], None] = {}

    @classmethod
    def from_prompts(
        cls, prompts: Iterable[AuditPrompt], *, database: FactDatabase | None = None
    ) -> Self:
        """Join the names of prompts.

        Args:
            prompts: Facts with their aliases, of one database or several.
            database: Database whose names are grouped by their keys, too.

        Returns:
            The groups.
        """
        groups = cls()
        families = ((role, names_in(prompt, role)) for prompt in prompts for role in ROLES)
        for role, names in dict.fromkeys(families):
            groups.join(role, names)
        for entry in () if database is None else database.triplets:
            for role, name in zip(ROLES, entry, strict=True):
                groups.add(role, name)
        return groups

    def join(self, role: Role, names: Sequence[str]) -> None:
        """Make names one group.

        Args:
            role: Whose names they are.
            names: The names, the own name of what bears them first; what they were in one group
                with comes along. Blank ones are no names.
        """
        family = tuple(name for name in names if name.strip())
        if family:
            self._families[role, family] = None
            self._unite(role, family)

    def group_of(self, role: Role, name: str) -> str:
        """Name the group of a name.

        Args:
            role: Whose name it is.
            name: Any name, known or not.

        Returns:
            A text that the names of one group share and no other has.
        """
        nodes = _nodes(role, name)
        known = next((node for node in nodes if node in self._parents), None)
        return "\1".join(nodes[0] if known is None else self._root(known))

    def add(self, role: Role, name: str) -> None:
        """Take a name in that no fact gives: whatever shares a key with it is in its group.

        Args:
            role: Whose name it is.
            name: The name.
        """
        self._unite(role, (name,))

    def keys(self, role: Role, names: Iterable[str] = ()) -> dict[KeyName, set[str]]:
        """List the keys that a name must have to be in a group that is known.

        Args:
            role: Whose names.
            names: Names whose groups are wanted; none for all groups. Names that no group knows
                are in one of their own.

        Returns:
            By name of the key, in `KEYS`, the keys.
        """
        wanted = {self.group_of(role, name) for name in names}
        keys: dict[KeyName, set[str]] = {label: set() for label in KEYS}
        for name in names:
            for node in _nodes(role, name):
                keys[node.label].add(node.key)
        for node in self._parents:
            if node.role == role and (not wanted or "\1".join(self._root(node)) in wanted):
                keys[node.label].add(node.key)
        return keys

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

    def shared_aliases(self, role: Role) -> dict[str, tuple[str, ...]]:
        """List the aliases of several things that nothing else makes one.

        Args:
            role: Whose names.

        Returns:
            By alias, the own names of what bears it: two or more, none of which is given as alias
            of another, be it by way of further own names.

        Examples:
            >>> groups = AliasGroups()
            >>> groups.join("subject", ["Michael Jordan", "MJ", "Air Jordan"])
            >>> groups.join("subject", ["Magic Johnson", "MJ"])
            >>> groups.shared_aliases("subject")
            {'MJ': ('Michael Jordan', 'Magic Johnson')}
        """
        families = [names for owner, names in self._families if owner == role]
        own = {node for names in families for node in _nodes(role, names[0])}
        declared = AliasGroups()
        for names in families:
            owning = [name for name in names[1:] if not own.isdisjoint(_nodes(role, name))]
            declared.join(role, (names[0], *owning))
        bearers: dict[_Node, dict[str, str]] = {}
        for names in families:
            group = declared.group_of(role, names[0])
            for node in {node for name in names[1:] for node in _nodes(role, name)} - own:
                bearers.setdefault(node, {}).setdefault(group, names[0])
        shared = {}
        for alias in dict.fromkeys(name for names in families for name in names[1:]):
            for node in _nodes(role, alias):
                if len(bearers.get(node, ())) > 1:
                    shared[alias] = tuple(bearers[node].values())
        return shared

    def without_shared_aliases(self) -> "AliasGroups":
        """Give the groups that are left when shared aliases join nothing.

        Returns:
            Other groups; a shared alias has one of its own.
        """
        groups = AliasGroups()
        shared = {role: self.shared_aliases(role) for role in ROLES}
        for role, names in self._families:
            groups.join(role, [name for name in names if name not in shared[role]])
        for role, name in self._members:
            groups.add(role, name)
        return groups

    def _unite(self, role: Role, names: Sequence[str]) -> None:
        """Make all keys of names one group."""
        nodes = [node for name in names for node in _nodes(role, name)]
        for node in nodes:
            self._parents.setdefault(node, node)
            self._parents[self._root(node)] = self._root(nodes[0])
        self._members.update(dict.fromkeys((role, name) for name in names))

    def _root(self, node: _Node) -> _Node:
        """Find the node that stands for a group, and shorten the way to it."""
        while self._parents[node] != node:
            self._parents[node] = self._parents[self._parents[node]]
            node = self._parents[node]
        return node


@lru_cache(maxsize=1 << 17)
def _nodes(role: Role, name: str) -> tuple[_Node, ...]:
    """Give a name under each key."""
    return tuple(_Node(role, label, key(name)) for label, key in CACHED_KEYS.items())
