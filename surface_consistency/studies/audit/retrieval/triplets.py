"""A database of triplets as a table: subject, relation and object of each entry, and name keys.

Each part is stored as its distinct names and one number per entry, so that a key is computed once
per name and millions of entries are compared as integers.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from surface_consistency.schemas.memory import AuditPrompt, Triplet
from surface_consistency.studies.audit.retrieval.alias_groups import (
    ROLES,
    AliasGroups,
    KeyName,
    NameKey,
    Role,
    name_key,
)
from surface_consistency.studies.audit.retrieval.retriever import lookup_part

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.integer[Any]]
NameRule = NameKey | AliasGroups
"""When two names are equivalent: their keys are equal, or one alias group contains both."""

_CHUNK = 4096
_BLOCK = 1 << 16
_WEAKEST_FIRST: tuple[KeyName, ...] = ("strict", "published")
_LOW_BITS = np.uint64((1 << 20) - 1)


@dataclass(frozen=True, eq=False)
class TextColumn:
    """One text per entry, as distinct texts and numbers."""

    names: pa.Array
    """The distinct texts, in order of their first entry."""

    ids: Ids
    """Number of each entry's text, shape (n_entries,)."""

    @classmethod
    def of(cls, texts: "pa.Array | pa.ChunkedArray") -> Self:
        """Number the texts of all entries.

        Args:
            texts: One text per entry.

        Returns:
            The column.
        """
        encoded = pc.dictionary_encode(texts)
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        return cls(encoded.dictionary, encoded.indices.to_numpy())

    @cached_property
    def starts(self) -> Ints:
        """Position in `members` of the first entry of each text, shape (n_names + 1,)."""
        sizes = np.bincount(self.ids, minlength=len(self.names))
        return np.concatenate([[0], np.cumsum(sizes)])

    @cached_property
    def members(self) -> Ints:
        """Entries grouped by text, ascending within a text, shape (n_entries,)."""
        return np.argsort(self.ids, kind="stable")

    def entries(self, names: Ids) -> tuple[Ints, Ints]:
        """List the entries of some texts.

        Args:
            names: Numbers of the texts.

        Returns:
            For each entry the position of its text in `names`, and the entry.
        """
        starts = self.starts[names]
        owners, within = spread(self.starts[names + 1] - starts)
        return owners, self.members[starts[owners] + within]


class Triplets(Sequence[Triplet]):
    """The entries of a database, in order; an index names an entry.

    It is created by `Triplets.of` from entries in memory, and by `read_database` from a file.

    Args:
        columns: The three parts.
        content: Digest of the entries, if it is known, as of `content_digest`.
        hashes: For each part and named key, the hashes of the keys of the distinct names, if they
            are known.
    """

    def __init__(
        self,
        columns: Mapping[Role, TextColumn],
        *,
        content: str | None = None,
        hashes: Mapping[tuple[Role, NameKey], npt.NDArray[np.uint64]] | None = None,
    ) -> None:
        self.columns = columns
        """Subjects, relations and objects."""
        self._content = content
        self._hashes = dict(hashes or {})

    @classmethod
    def of(cls, entries: Iterable[Triplet]) -> "Triplets":
        """Make a table of entries.

        Args:
            entries: The entries, in order; a table is returned as it is.

        Returns:
            The table.

        Examples:
            >>> Triplets.of([Triplet("France", "capital", "Paris")])[0].object
            'Paris'
        """
        if isinstance(entries, Triplets):
            return entries
        rows = list(entries)
        return cls(
            {
                role: TextColumn.of(pa.array([row[place] for row in rows], pa.large_string()))
                for place, role in enumerate(ROLES)
            }
        )

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.columns["subject"].ids)

    @overload
    def __getitem__(self, place: int) -> Triplet: ...
    @overload
    def __getitem__(self, place: slice) -> list[Triplet]: ...
    def __getitem__(self, place: int | slice) -> Triplet | list[Triplet]:
        """Return one entry, or a list of some."""
        columns = [self.columns[role] for role in ROLES]
        if isinstance(place, slice):
            parts = [one.names.take(pa.array(one.ids[place])).to_pylist() for one in columns]
            return list(map(Triplet, *parts))
        return Triplet(*(one.names[int(one.ids[place])].as_py() for one in columns))

    def __iter__(self) -> Iterator[Triplet]:
        """Iterate over all entries."""
        for start in range(0, len(self), _BLOCK):
            yield from self[start : start + _BLOCK]

    @cached_property
    def keys(self) -> TextColumn:
        """Lookup keys of the entries, as of `lookup_key`."""
        parts = []
        for role in ("subject", "relation"):
            column = self.columns[role]
            forms = pa.array(map(lookup_part, column.names.to_pylist()), pa.large_string())
            parts.append(forms.take(pa.array(column.ids)))
        joined = pc.binary_join_element_wise(*parts, pa.scalar(" ", pa.large_string()))
        return TextColumn.of(joined)

    @property
    def content(self) -> str:
        """Digest of the entries, as of `content_digest`."""
        if self._content is None:
            digest, parts = hashlib.sha256(), chain.from_iterable(self)
            while text := "".join(f"{len(part)}:{part}" for part in islice(parts, _CHUNK)):
                digest.update(text.encode())
            self._content = digest.hexdigest()
        return self._content

    def name_ids(self, role: Role, rule: NameRule = "published") -> npt.NDArray[np.uint64]:
        """Number the distinct names of a part so that equivalent names have the same number.

        Args:
            role: The part.
            rule: When two names are equivalent.

        Returns:
            For each of `columns[role].names` the `name_id` of its key or group.
        """
        if isinstance(rule, AliasGroups):
            return self._group_ids(role, rule)
        if (role, rule) not in self._hashes:
            of, names = name_key(rule), self.columns[role].names
            self._hashes[role, rule] = np.fromiter(
                (
                    name_id(of(name))
                    for start in range(0, len(names), _BLOCK)
                    for name in names[start : start + _BLOCK].to_pylist()
                ),
                np.uint64,
                len(names),
            )
        return self._hashes[role, rule]

    def names_among(
        self, role: Role, rule: NameRule, wanted: npt.NDArray[np.uint64]
    ) -> tuple[Ints, npt.NDArray[np.uint64]]:
        """Find the distinct names of a part by their numbers.

        Args:
            role: The part.
            rule: When two names are equivalent.
            wanted: Numbers as of `name_ids`.

        Returns:
            The names, ascending, and their numbers.
        """
        ids = self.name_ids(role, rule)
        # The low bits of the hashes exclude most names without a search.
        is_near = np.zeros(_LOW_BITS + 1, np.bool_)
        is_near[wanted & _LOW_BITS] = True
        names = np.flatnonzero(is_near[ids & _LOW_BITS])
        names = names[np.isin(ids[names], wanted)]
        return names, ids[names]

    def alias_groups(self, facts: Iterable[AuditPrompt]) -> AliasGroups:
        """Join the names of facts, and the names of entries that keys connect with them.

        The group of any name of the facts is that of `AliasGroups.from_prompts` with the full
        database; names that no chain of keys and aliases reaches are not added.

        Args:
            facts: Facts with their aliases.

        Returns:
            The groups.
        """
        groups = AliasGroups.from_prompts(facts)
        for role, column in self.columns.items():
            known = np.empty(0, np.int64)
            while True:
                reached = [
                    self.names_among(role, label, _ids_of(keys))[0]
                    for label, keys in groups.keys(role).items()
                ]
                new = np.setdiff1d(np.concatenate(reached), known)
                if not len(new):
                    break
                known = np.union1d(known, new)
                for name in column.names.take(pa.array(new)).to_pylist():
                    groups.add(role, name)
        return groups

    def _group_ids(self, role: Role, groups: AliasGroups) -> npt.NDArray[np.uint64]:
        """Number the names of a part by group; a name without a group by its published key."""
        ids = self.name_ids(role).copy()
        keys = groups.keys(role)
        # If the keys of a name are in two groups, the group of the published key counts.
        for label in _WEAKEST_FIRST:
            known = dict(zip(_ids_of(keys[label]).tolist(), keys[label].values(), strict=True))
            names, own = self.names_among(role, label, _ids_of(keys[label]))
            ids[names] = _ids_of(known[one] for one in own.tolist())
        return ids


def content_digest(triplets: Iterable[Triplet]) -> str:
    """Return a digest that identifies triplets and their order.

    An index on disk, a retriever and a run identify their store by this digest, never by a file's
    name or a number of entries.

    Args:
        triplets: The entries, in order.

    Returns:
        SHA-256 of all parts with their lengths, as 64 hex digits.

    Examples:
        >>> one = content_digest([Triplet("ab", "c", "d")])
        >>> one == content_digest([Triplet("a", "bc", "d")])
        False
    """
    return Triplets.of(triplets).content


def name_id(key: str) -> int:
    """Hash a key of a name.

    Args:
        key: The key, as of `name_key`, or the name of an alias group.

    Returns:
        BLAKE2b in 64 bits. Among 100 million names, the probability that one has the hash of any
        of 10,000 other keys is below 10⁻⁷.
    """
    # A name of a prompt may contain half a character, which an entry cannot.
    raw = key.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "little")


def _ids_of(keys: Iterable[str]) -> npt.NDArray[np.uint64]:
    """Hash keys."""
    return np.fromiter(map(name_id, keys), np.uint64)


def spread(sizes: Ids) -> tuple[Ints, Ints]:
    """Return the group and the position in it of each member, for groups of given sizes."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    return groups, np.arange(len(groups)) - (np.cumsum(sizes) - sizes)[groups]


def is_among(values: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which values are in `wanted`, which is ascending: `np.isin` for few values."""
    if not len(wanted):
        return np.zeros(len(values), np.bool_)
    places = np.minimum(np.searchsorted(wanted, values), len(wanted) - 1)
    return np.asarray(wanted[places] == values)
