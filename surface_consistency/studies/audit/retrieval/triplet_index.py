"""Where each name stands in a store: how closures are found without a look at every entry."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from surface_consistency.schemas.memory import AuditPrompt, FactDatabase, Triplet
from surface_consistency.studies.audit.retrieval.alias_groups import (
    CACHED_KEYS,
    ROLES,
    AliasGroups,
    NameKey,
    Role,
    name_key,
    names_in,
)
from surface_consistency.studies.audit.retrieval.retriever import lookup_key

Ids = npt.NDArray[np.integer[Any]]
_NONE: Final = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NameColumn:
    """One part of all entries: its distinct texts, and the entries of each."""

    names: Sequence[str]
    """The texts, in order of their first entry."""

    ids: Ids
    """Number of each entry's text, shape (n_entries,)."""

    starts: Ids
    """Where the entries of each text start in `members`, shape (n_names + 1,)."""

    members: Ids
    """Entries grouped by text, ascending within a text, shape (n_entries,)."""

    _by_key: dict[NameKey, dict[str, list[int]]] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, texts: Iterable[str]) -> "NameColumn":
        """Number the texts of all entries.

        Args:
            texts: One text an entry.

        Returns:
            The column.
        """
        numbers: dict[str, int] = {}
        ids = np.fromiter((numbers.setdefault(text, len(numbers)) for text in texts), np.int64)
        return cls(names=list(numbers), ids=ids, **group_entries(ids, len(numbers)))

    def with_keys(self, key: NameKey, keys: Collection[str]) -> dict[str, Ids]:
        """Find the texts that have some keys.

        Args:
            key: The key, as of `name_key`.
            keys: What they shall be.

        Returns:
            By key, the numbers of the texts that have it; keys of no text are left out.
        """
        if key not in self._by_key:
            of, by_key = name_key(key), dict[str, list[int]]()
            for number, name in enumerate(self.names):
                by_key.setdefault(of(name), []).append(number)
            self._by_key[key] = by_key
        known = self._by_key[key]
        return {one: np.array(known[one], np.int64) for one in keys if one in known}

    def count(self, names: Ids) -> int:
        """Count the entries of some texts.

        Args:
            names: Their numbers, each once.

        Returns:
            How many entries have one of them.
        """
        return int((self.starts[names + 1] - self.starts[names]).sum())

    def entries(self, names: Ids) -> npt.NDArray[np.int64]:
        """List the entries of some texts.

        Args:
            names: Their numbers, each once.

        Returns:
            The entries, text by text.
        """
        parts = [self.members[self.starts[name] : self.starts[name + 1]] for name in names]
        return np.concatenate([_NONE, *parts]).astype(np.int64)


def group_entries(ids: Ids, n_names: int) -> dict[str, Ids]:
    """Group entries by the number of their text: the fields `starts` and `members`."""
    sizes = np.bincount(ids, minlength=n_names)
    return {
        "starts": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        "members": np.argsort(ids, kind="stable"),
    }


def is_among(values: Ids, wanted: Ids) -> npt.NDArray[np.bool_]:
    """Tell which values are among some that are ascending: `np.isin` for few of them."""
    if not len(wanted):
        return np.zeros(len(values), np.bool_)
    places = np.searchsorted(wanted, values)
    places[places == len(wanted)] = 0
    return np.asarray(wanted[places] == values)


def key_column(triplets: Sequence[Triplet]) -> NameColumn:
    """Number the lookup keys of entries, or take the numbers that a mapped database has."""
    known = getattr(triplets, "keys", None)
    if isinstance(known, NameColumn):
        return known
    return NameColumn.of(lookup_key(entry[0], entry[1]) for entry in triplets)


class TripletIndex:
    """The entries of a database, and where each of their names stands.

    Args:
        triplets: The entries.
        columns: Their subjects, relations and objects; None to number them.
    """

    def __init__(
        self, triplets: Sequence[Triplet], columns: Mapping[Role, NameColumn] | None = None
    ) -> None:
        self.triplets = triplets
        """The entries, in order."""
        self.columns = columns or {
            role: NameColumn.of(entry[place] for entry in triplets)
            for place, role in enumerate(ROLES)
        }
        """Subjects, relations and objects."""

    @classmethod
    def of(cls, database: FactDatabase) -> "TripletIndex":
        """Index a database.

        Args:
            database: The database; one that is an index already is returned as it is.

        Returns:
            The index.
        """
        return database if isinstance(database, TripletIndex) else TripletIndex(database.triplets)

    def entries(self, names: Mapping[Role, Ids]) -> npt.NDArray[np.int64]:
        """List the entries that have one of some names in each part.

        Args:
            names: By part, numbers of names, each once and ascending; at least one part.

        Returns:
            The entries, ascending.
        """
        # From the rarest part on: no more entries are looked at than it has.
        order = sorted(names, key=lambda role: self.columns[role].count(names[role]))
        entries = self.columns[order[0]].entries(names[order[0]])
        for role in order[1:]:
            entries = entries[is_among(self.columns[role].ids[entries], names[role])]
        return np.sort(entries)

    def relations_of(self, subjects: Collection[str], objects: Collection[str]) -> list[str]:
        """List the relations under which the database holds a subject and an object.

        Args:
            subjects: Names of the subject, compared by the published key.
            objects: Names of the object.

        Returns:
            The relations, in order of their first entry.
        """
        of = name_key("published")
        wanted: dict[Role, Ids] = {}
        spoken: Mapping[Role, Collection[str]] = {"subject": subjects, "object": objects}
        for role, names in spoken.items():
            keys = {of(name) for name in names}
            numbers = self.columns[role].with_keys("published", keys)
            wanted[role] = np.sort(np.concatenate([_NONE, *numbers.values()]))
        column = self.columns["relation"]
        return list(
            dict.fromkeys(column.names[int(number)] for number in column.ids[self.entries(wanted)])
        )

    def alias_groups(self, facts: Iterable[AuditPrompt]) -> AliasGroups:
        """Join the names of facts, and those of entries that a key makes one with them.

        Of any name of the facts the group is that of `AliasGroups.from_prompts` with the whole
        database; entries that no chain of keys and aliases reaches are not looked at.

        Args:
            facts: Facts with their aliases.

        Returns:
            The groups.
        """
        groups = AliasGroups.from_prompts(facts)
        for role, column in self.columns.items():
            wanted = groups.keys(role)
            known = {label: set(keys) for label, keys in wanted.items()}
            while any(wanted.values()):
                reached = {
                    int(number)
                    for label, keys in wanted.items()
                    for numbers in column.with_keys(label, keys).values()
                    for number in numbers
                }
                names = [column.names[number] for number in sorted(reached)]
                for name in names:
                    groups.add(role, name)
                wanted = {
                    label: set(map(of, names)) - known[label] for label, of in CACHED_KEYS.items()
                }
                for label, keys in wanted.items():
                    known[label] |= keys
        return groups


class NameFinder:
    """Finds the names of a database that are one with names of facts.

    Args:
        index: The database.
        facts: The facts.
        roles: Parts that will be asked for.
        key: When two names are one.
        groups: Alias groups, in place of the key; None for none.
    """

    def __init__(
        self,
        index: TripletIndex,
        facts: Sequence[AuditPrompt],
        *,
        roles: Sequence[Role] = ROLES,
        key: NameKey = "published",
        groups: AliasGroups | None = None,
    ) -> None:
        self._index = index
        self._found: dict[Role, dict[str, Ids]] = {}
        for role in roles:
            names = {name for fact in facts for name in names_in(fact, role)}
            column = index.columns[role]
            if groups is None:
                keys = dict(zip(names, map(name_key(key), names), strict=True))
                numbers = column.with_keys(key, set(keys.values()))
            else:
                keys = {name: groups.group_of(role, name) for name in names}
                numbers = _grouped(column, role, groups, names)
            self._found[role] = {name: numbers.get(one, _NONE) for name, one in keys.items()}

    def names(self, fact: AuditPrompt, role: Role) -> Ids:
        """Give the names that are one with any of a fact's.

        Args:
            fact: One of the facts.
            role: A part.

        Returns:
            Their numbers in the part's column, ascending.
        """
        numbers = [self._found[role][name] for name in names_in(fact, role)]
        return np.unique(np.concatenate([_NONE, *numbers]))

    def entries(self, fact: AuditPrompt) -> npt.NDArray[np.int64]:
        """List the entries that have a name of a fact in every part that was to be asked for.

        Args:
            fact: One of the facts.

        Returns:
            The entries, ascending.
        """
        return self._index.entries({role: self.names(fact, role) for role in self._found})


def _grouped(
    column: NameColumn, role: Role, groups: AliasGroups, names: Collection[str]
) -> dict[str, Ids]:
    """Find by group the names of a column that are in the groups of some names."""
    by_group: dict[str, list[int]] = {groups.group_of(role, name): [] for name in names}
    numbers = {
        int(number)
        for label, keys in groups.keys(role, names).items()
        for some in column.with_keys(label, keys).values()
        for number in some
    }
    for number in numbers:
        group = groups.group_of(role, column.names[number])
        if group in by_group:
            by_group[group].append(number)
    return {group: np.array(numbers, np.int64) for group, numbers in by_group.items()}
