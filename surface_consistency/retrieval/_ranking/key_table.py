"""Entries of a store under their distinct keys, and which of them a query may not see."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from surface_consistency.retrieval._ranking.deleted_indices import Ints, deleted_indices
from surface_consistency.retrieval.content import content_digest
from surface_consistency.retrieval.lookup_key import lookup_key
from surface_consistency.retrieval.retriever import Deleted
from surface_consistency.schemas.memory import Triplet

__all__ = ["KeyTable", "Masked"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Masked:
    """What a batch of queries may not see."""

    codes: Ints
    """Sorted `row * n_entries + entry` of all deleted entries."""
    dead_rows: Ints
    """Rows of the keys of which no entry is left..."""
    dead_keys: Ints
    """...and these keys, sorted by key."""
    n_dead: Ints
    """Keys a row that are dead, shape (n_rows,)."""
    n_partly: Ints
    """Keys a row that have lost some entries, not all, shape (n_rows,)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeyTable:
    """The distinct keys of a store in order of their first entry."""

    texts: list[str]
    """The keys."""
    key_of: Ints
    """Key of each entry, shape (n_entries,)."""
    starts: Ints
    """Where the entries of each key start in `members`, shape (n_keys + 1,)."""
    members: Ints
    """Entries grouped by key, ascending within a key, shape (n_entries,)."""
    content: str
    """Digest of the store."""

    @classmethod
    def of(cls, triplets: Sequence[Triplet]) -> Self:
        """Group the entries of a store."""
        numbers: dict[str, int] = {}
        keys = (lookup_key(entry[0], entry[1]) for entry in triplets)
        key_of = np.fromiter(
            (numbers.setdefault(key, len(numbers)) for key in keys), np.int64, len(triplets)
        )
        sizes = np.bincount(key_of, minlength=len(numbers))
        return cls(
            texts=list(numbers),
            key_of=key_of,
            starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            members=np.argsort(key_of, kind="stable").astype(np.int64),
            content=content_digest(triplets),
        )

    @property
    def n_entries(self) -> int:
        """Number of entries."""
        return len(self.key_of)

    @property
    def n_keys(self) -> int:
        """Number of distinct keys."""
        return len(self.texts)

    def masked(self, deleted: Deleted, n_rows: int) -> Masked:
        """Check the deleted entries of a batch and find the keys that they empty.

        Raises:
            ValueError: If they do not fit the queries or the store.
        """
        codes = self._codes(deleted, n_rows)
        rows, entries = np.divmod(codes, max(self.n_entries, 1))
        pairs, counts = np.unique(rows * self.n_keys + self.key_of[entries], return_counts=True)
        key_rows, keys = np.divmod(pairs, max(self.n_keys, 1))
        is_dead = counts == np.diff(self.starts)[keys]
        by_key = np.argsort(keys[is_dead], kind="stable")
        return Masked(
            codes=codes,
            dead_rows=key_rows[is_dead][by_key],
            dead_keys=keys[is_dead][by_key],
            n_dead=np.bincount(key_rows[is_dead], minlength=n_rows),
            n_partly=np.bincount(key_rows[~is_dead], minlength=n_rows),
        )

    def expand(self, rows: Ints, keys: Ints) -> tuple[Ints, Ints]:
        """Return for each entry of each pair the number of the pair, and the entry."""
        sizes = np.diff(self.starts)[keys]
        pairs = np.repeat(np.arange(len(rows)), sizes)
        within = np.arange(len(pairs)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return pairs, self.members[self.starts[keys][pairs] + within]

    def _codes(self, deleted: Deleted, n_rows: int) -> Ints:
        """Return the deleted entries of all rows as sorted distinct numbers."""
        if deleted is None:
            return np.empty(0, np.int64)
        if len(deleted) != n_rows:
            raise ValueError(
                f"deleted must hold one item a query; got {len(deleted)} for {n_rows} queries"
            )
        codes = [np.empty(0, np.int64)]
        for row, entries in enumerate(deleted):
            codes.append(row * self.n_entries + deleted_indices(entries, row, self.n_entries))
        return np.concatenate(codes)
