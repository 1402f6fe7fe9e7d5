"""Where each name stands in a store: how closures are found without a look at every entry."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from surface_consistency.schemas.memory import AuditPrompt, FactDatabase, Triplet
from surface_consistency.studies.audit.retrieval.alias_groups import (
    CACHED_KEYS,
    KEYS,
    ROLES,
    AliasGroups,
    KeyName,
    NameKey,
    Role,
    name_key,
    names_in,
)
from surface_consistency.studies.audit.retrieval.retriever import lookup_key

Ids = npt.NDArray[np.integer[Any]]
_NONE: Final = np.empty(0, np.int64)
_BLOCK: Final = 1 << 20


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

    def with_keys(self, key: NameKey, keys: Collection[str]) -> dict[str, list[int]]:
        """Find the texts that have some keys.

        Args:
            key: The key, as of `name_key`.
            keys: What they shall be.

        Returns:
            By key, the numbers of the texts that have it, ascending; keys of no text are left out.
        """
        if key not in self._by_key:
            of, by_key = name_key(key), dict[str, list[int]]()
            for number, name in enumerate(self.names):
                by_key.setdefault(of(name), []).append(number)
            self._by_key[key] = by_key
        known = self._by_key[key]
        return {one: known[one] for one in keys if one in known}

    def counts(self, names: Ids) -> npt.NDArray[np.int64]:
        """Count the entries of some texts.

        Args:
            names: Their numbers.

        Returns:
            How many entries each has.
        """
        return np.asarray(self.starts[names + 1] - self.starts[names], np.int64)

    def entries(self, names: Ids) -> npt.NDArray[np.int64]:
        """List the entries of some texts.

        Args:
            names: Their numbers.

        Returns:
            The entries, text by text.
        """
        places = join_ranges(self.starts[names], self.counts(names))
        return self.members[places].astype(np.int64)


def group_entries(ids: Ids, n_names: int) -> dict[str, Ids]:
    """Group entries by the number of their text: the fields `starts` and `members`."""
    sizes = np.bincount(ids, minlength=n_names)
    return {
        "starts": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        "members": np.argsort(ids, kind="stable"),
    }


def join_ranges(starts: Ids, sizes: Ids) -> npt.NDArray[np.int64]:
    """Join ranges of numbers: from each start on, as many as its size."""
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(sizes.sum())


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

    def entries(self, names: Mapping[Role, Ids], *, n_facts: int = 1) -> npt.NDArray[np.int64]:
        """List the entries that have one of some names in each part, for many facts at once.

        Args:
            names: By part, the names of facts, at least one part. A name of a fact is one number:
                `fact * n_names + name`, with as many names as the part's column has; ascending,
                each once.
            n_facts: Facts.

        Returns:
            The entries of the facts, ascending, each as `fact * n_entries + entry`.
        """
        pairs = {
            role: np.divmod(numbers, len(self.columns[role].names))
            for role, numbers in names.items()
        }
        # From a fact's rarest part on: no more entries are looked at than it has.
        totals = [
            np.bincount(facts, self.columns[role].counts(own), n_facts)
            for role, (facts, own) in pairs.items()
        ]
        rarest = np.argmin(totals, axis=0)
        parts = [_NONE]
        for place, (role, (facts, own)) in enumerate(pairs.items()):
            is_rarest = rarest[facts] == place
            parts += self._entries_from(role, facts[is_rarest], own[is_rarest], names)
        return np.sort(np.concatenate(parts))

    def _entries_from(
        self, role: Role, facts: Ids, own: Ids, names: Mapping[Role, Ids]
    ) -> Iterator[npt.NDArray[np.int64]]:
        """Look at the entries of one part's names, a block at a time, for names of the others."""
        sizes = self.columns[role].counts(own)
        ends = np.flatnonzero(np.diff(np.cumsum(sizes) // _BLOCK)) + 1
        for some in np.split(np.arange(len(own)), ends):
            owners = np.repeat(facts[some], sizes[some])
            entries = self.columns[role].entries(own[some])
            for other in set(names) - {role}:
                column = self.columns[other]
                pairs = owners * len(column.names) + column.ids[entries]
                is_meant = is_among(pairs, names[other])
                owners, entries = owners[is_meant], entries[is_meant]
            yield owners * len(self.triplets) + entries

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
            numbers = self.columns[role].with_keys("published", keys).values()
            wanted[role] = np.sort(np.fromiter(chain.from_iterable(numbers), np.int64))
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
            wanted = {label: set(keys) for label, keys in groups.keys(role).items()}
            known = {label: set(keys) for label, keys in wanted.items()}
            while any(wanted.values()):
                reached = {
                    number
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
        self._index, self._n_facts = index, len(facts)
        self.names: dict[Role, npt.NDArray[np.int64]] = {}
        """By part, the names that are one with any of a fact's, as `TripletIndex.entries` takes
        them."""
        for role in roles:
            spoken = [names_in(fact, role) for fact in facts]
            distinct = set(chain.from_iterable(spoken))
            column = index.columns[role]
            if groups is None:
                of = CACHED_KEYS[key] if key in KEYS else name_key(key)  # type: ignore[index]
                keys = {name: of(name) for name in distinct}
                numbers = column.with_keys(key, set(keys.values()))
            else:
                keys = {name: groups.group_of(role, name) for name in distinct}
                numbers = _grouped(column, groups.keys(role), keys)
            places = {one: place for place, one in enumerate(numbers)}
            own = [{places[keys[one]] for one in names if keys[one] in places} for names in spoken]
            self.names[role] = _pair(own, list(numbers.values()), len(column.names))

    def entries(self) -> npt.NDArray[np.int64]:
        """List the entries that have a name of a fact in every part that was to be asked for.

        Returns:
            The entries of the facts, as `TripletIndex.entries` gives them.
        """
        return self._index.entries(self.names, n_facts=self._n_facts)


def split_by_fact(pairs: Ids, n_facts: int, n_entries: int) -> list[npt.NDArray[np.int64]]:
    """Part what `TripletIndex.entries` lists: one array of entries a fact."""
    bounds = np.searchsorted(pairs, np.arange(n_facts + 1) * n_entries).tolist()
    entries = np.asarray(pairs % n_entries, np.int64)
    return [entries[start:end] for start, end in pairwise(bounds)]


def _pair(
    own: Sequence[Collection[int]], names: Sequence[Sequence[int]], n_names: int
) -> npt.NDArray[np.int64]:
    """Pair facts, by the groups that each has, with the names of the groups."""
    sizes, flat = _flattened(names)
    n_own, groups = _flattened(own)
    facts = np.repeat(np.arange(len(own)), n_own)
    members = flat[join_ranges((np.cumsum(sizes) - sizes)[groups], sizes[groups])]
    return np.sort(np.repeat(facts, sizes[groups]) * n_names + members)


def _flattened(lists: Sequence[Collection[int]]) -> tuple[npt.NDArray[np.int64], ...]:
    """Give the sizes of lists, and all their numbers in one array."""
    sizes = np.fromiter(map(len, lists), np.int64, len(lists))
    return sizes, np.fromiter(chain.from_iterable(lists), np.int64, sizes.sum())


def _grouped(
    column: NameColumn,
    keys: Mapping[KeyName, Mapping[str, str]],
    groups: Mapping[str, str],
) -> dict[str, list[int]]:
    """Find by group the names of a column, of groups by key, that are in those of some names."""
    group_of: dict[int, str] = {}
    for label, known in keys.items():
        for key, numbers in column.with_keys(label, known).items():
            for number in numbers:
                group_of.setdefault(number, known[key])
    by_group: dict[str, list[int]] = {group: [] for group in groups.values()}
    for number, group in group_of.items():
        if group in by_group:
            by_group[group].append(number)
    # A name that no group knows is one with those of its published key.
    of = CACHED_KEYS["published"]
    shared = {group for some in keys.values() for group in some.values()}
    alone = {of(name): group for name, group in groups.items() if group not in shared}
    for key, numbers in column.with_keys("published", alone).items():
        by_group[alone[key]] += [number for number in numbers if number not in group_of]
    return by_group
