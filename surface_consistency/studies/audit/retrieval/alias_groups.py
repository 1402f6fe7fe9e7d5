"""Equivalence of names: by a key, as aliases of one fact, or by a chain of aliases."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, Self

from surface_consistency.schemas.memory import AuditPrompt
from surface_consistency.text import folded, token_key

if TYPE_CHECKING:
    from surface_consistency.studies.audit.retrieval.triplets import Triplets

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
"""By name: the audit's key, which drops punctuation (".us" is "US"), and one that keeps it."""


@lru_cache
def name_key(key: NameKey) -> Callable[[str], str]:
    """Return the function of a key, under which a name with an empty key equals only itself.

    Args:
        key: Name of a key, or a function.

    Returns:
        The function; it caches its last results.

    Raises:
        ValueError: If the name of the key is unknown.

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
    return lru_cache(maxsize=1 << 17)(lambda name: function(name) or f"\0{name}")


def names_in(prompt: AuditPrompt, role: Role) -> tuple[str, ...]:
    """Return all names of a part of a fact, first the one in the prompt.

    Args:
        prompt: The fact.
        role: The part.

    Returns:
        The names.
    """
    if role == "subject":
        return (prompt.subject, *prompt.subject_aliases)
    if role == "relation":
        return (prompt.relation, *prompt.relation_aliases)
    return (prompt.gold_object, *prompt.object_aliases)


class AliasGroups:
    """Groups of names that chains of aliases connect, for each role.

    Two names of a role are in one group if a prompt gives one as alias of the other, or if their
    published or strict keys are equal. They are also in one group if both are in a group with a
    third name. Groups are wider than the aliases of a single prompt: an alias that is missing in
    one prompt and given in another is in the group. However, an alias that two entities share
    ("MJ") joins their groups: `shared_aliases` lists such aliases, and `without_shared_aliases`
    separates the groups.
    """

    def __init__(self) -> None:
        """Start with every name in a separate group."""
        # A node is a key of a role; the root of a tree represents its group.
        self._nodes: dict[Role, dict[KeyName, dict[str, int]]] = {
            role: {label: {} for label in KEYS} for role in ROLES
        }
        self._parents: list[int] = []
        self._titles: list[str] = []
        self._families: dict[tuple[Role, tuple[str, ...]], None] = {}
        self._members: dict[Role, dict[str, list[int]]] = {role: {} for role in ROLES}

    @classmethod
    def from_prompts(
        cls, prompts: Iterable[AuditPrompt], *, database: "Triplets | None" = None
    ) -> Self:
        """Join the names of prompts.

        Args:
            prompts: Facts with their aliases, of one database or several.
            database: Database whose names are also grouped by their keys.

        Returns:
            The groups.
        """
        groups = cls()
        families = ((role, names_in(prompt, role)) for prompt in prompts for role in ROLES)
        for role, names in dict.fromkeys(families):
            groups.join(role, names)
        for role, column in () if database is None else database.columns.items():
            for name in column.names.to_pylist():
                groups.add(role, name)
        return groups

    def join(self, role: Role, names: Sequence[str]) -> None:
        """Join names and their groups into one group.

        Args:
            role: The role of the names.
            names: The names, first the main name of the entity or relation. Blank names are
                ignored.
        """
        family = tuple(name for name in names if name.strip())
        if family:
            self._families[role, family] = None
            self._unite(role, family)

    def group_of(self, role: Role, name: str) -> str:
        """Return the group of a name.

        Args:
            role: The role of the name.
            name: Any name, known or not.

        Returns:
            The published key of one of the group's names; two names of one role have the same group
            key if and only if they are in one group.
        """
        for label, nodes in self._nodes[role].items():
            if (node := nodes.get(name_key(label)(name))) is not None:
                return self._titles[self._root(node)]
        return name_key("published")(name)

    def add(self, role: Role, name: str) -> None:
        """Add a name that is not in a fact; names with an equal key are in its group.

        Args:
            role: The role of the name.
            name: The name.
        """
        self._unite(role, (name,))

    def keys(self, role: Role) -> dict[KeyName, dict[str, str]]:
        """List the keys of the names in all groups.

        Args:
            role: The role of the names.

        Returns:
            By name of the key, in `KEYS`, the group of each key. If the keys of a name are in two
            groups, the first counts.
        """
        return {
            label: {key: self._titles[self._root(node)] for key, node in nodes.items()}
            for label, nodes in self._nodes[role].items()
        }

    def members(self, role: Role) -> dict[str, list[str]]:
        """List the names of each group.

        Args:
            role: The role of the names.

        Returns:
            By group, its names in the order in which they were joined.
        """
        groups: dict[str, list[str]] = {}
        for name in self._members[role]:
            groups.setdefault(self.group_of(role, name), []).append(name)
        return groups

    def shared_aliases(self, role: Role) -> dict[str, tuple[str, ...]]:
        """List the aliases of several entities or relations that nothing else joins.

        Args:
            role: The role of the names.

        Returns:
            By alias, the main names of the entities or relations with this alias: two or more, not
            connected to each other as aliases, also not through further main names.

        Examples:
            >>> groups = AliasGroups()
            >>> groups.join("subject", ["Michael Jordan", "MJ", "Air Jordan"])
            >>> groups.join("subject", ["Magic Johnson", "MJ"])
            >>> groups.shared_aliases("subject")
            {'MJ': ('Michael Jordan', 'Magic Johnson')}
        """
        families = [names for owner, names in self._families if owner == role]
        nodes_of = self._members[role]
        own = {node for names in families for node in nodes_of[names[0]]}
        declared = AliasGroups()
        for names in families:
            owning = [name for name in names[1:] if not own.isdisjoint(nodes_of[name])]
            declared.join(role, (names[0], *owning))
        sharers: dict[int, dict[str, str]] = {}
        for names in families:
            group = declared.group_of(role, names[0])
            for node in {node for name in names[1:] for node in nodes_of[name]} - own:
                sharers.setdefault(node, {}).setdefault(group, names[0])
        shared = {}
        for alias in dict.fromkeys(name for names in families for name in names[1:]):
            for node in nodes_of[alias]:
                if len(sharers.get(node, ())) > 1:
                    shared[alias] = tuple(sharers[node].values())
        return shared

    def of_facts(self, facts: Iterable[AuditPrompt]) -> "AliasGroups":
        """Return the groups of the names of some facts.

        Args:
            facts: The facts.

        Returns:
            Only these groups.
        """
        facts, groups = list(facts), AliasGroups()
        wanted = {
            role: {self.group_of(role, name) for fact in facts for name in names_in(fact, role)}
            for role in ROLES
        }
        for role, family in self._families:
            if self.group_of(role, family[0]) in wanted[role]:
                groups.join(role, family)
        for role, members in self._members.items():
            for name in members:
                if self.group_of(role, name) in wanted[role]:
                    groups.add(role, name)
        return groups

    def without_shared_aliases(self) -> "AliasGroups":
        """Return the groups without the links by shared aliases.

        Returns:
            New groups; each shared alias is in a separate group.
        """
        groups = AliasGroups()
        shared = {role: self.shared_aliases(role) for role in ROLES}
        for role, family in self._families:
            groups.join(role, [name for name in family if name not in shared[role]])
        for role, names in self._members.items():
            for name in names:
                groups.add(role, name)
        return groups

    def _unite(self, role: Role, names: Sequence[str]) -> None:
        """Join all keys of names into one group."""
        members = self._members[role]
        for name in names:
            if name not in members:
                members[name] = [self._node(role, label, name_key(label)(name)) for label in KEYS]
        # The root of every group is a node of the published key.
        head = self._root(members[names[0]][0])
        for name in names:
            for node in members[name]:
                self._parents[self._root(node)] = head

    def _node(self, role: Role, label: KeyName, key: str) -> int:
        """Return the number of a key; a new key gets a new number."""
        node = self._nodes[role][label].setdefault(key, len(self._parents))
        if node == len(self._parents):
            self._parents.append(node)
            self._titles.append(key)
        return node

    def _root(self, node: int) -> int:
        """Find the root of the tree of a node, and shorten the path to it."""
        parents = self._parents
        while parents[node] != node:
            parents[node] = node = parents[parents[node]]
        return node
