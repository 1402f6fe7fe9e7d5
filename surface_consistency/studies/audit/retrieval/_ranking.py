"""What all retrievers share: the distinct keys of a store, masks, the best keys, ranks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import RunnerError
from surface_consistency.schemas.memory import Triplet
from surface_consistency.studies.audit.retrieval.retriever import Deleted, Hits, content_digest
from surface_consistency.studies.audit.retrieval.triplet_index import Ids, key_column

Ints = npt.NDArray[np.int64]

Floats = npt.NDArray[np.float32]
Scorer = Callable[[slice, slice, Floats], None]
"""Fills `out` with the scores of these rows (queries) and columns (keys); -inf is no hit."""

_BUFFER = 1 << 22
_ROWS = 256
_FIRST_COLUMNS = 1024
_COLUMNS = 1 << 17
_TIES = 1024


def deleted_indices(entries: npt.ArrayLike | None, row: int, n_entries: int) -> Ints:
    """Return the indices of deleted entries, sorted and distinct; ValueError if they are none."""
    given = np.asarray([] if entries is None else entries)
    if given.size and (given.ndim != 1 or not np.issubdtype(given.dtype, np.integer)):
        raise ValueError(
            f"deleted[{row}] must be a one-dimensional array of indices; got shape {given.shape} "
            f"of {given.dtype} (pass np.flatnonzero(mask) for a mask)"
        )
    indices = np.unique(given.astype(np.int64))
    for index in indices[[0, -1]].tolist() if len(indices) else ():
        if not 0 <= index < n_entries:
            raise ValueError(
                f"deleted[{row}] names entry {index}, but the store holds {n_entries} entries, "
                "counted from 0"
            )
    return indices


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Masked:
    """What a batch of queries may not see."""

    codes: Ints
    """Sorted `row * n_entries + entry` of all deleted entries."""
    dead_rows: Ints
    """Rows of the keys of which no entry is left..."""
    dead_keys: Ints
    """...and these keys, sorted by key."""
    n_partly: Ints
    """Keys a row that have lost some entries, not all, shape (n_rows,)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeyTable:
    """The distinct keys of a store in order of their first entry."""

    texts: Sequence[str]
    """The keys."""
    key_of: Ids
    """Key of each entry, shape (n_entries,)."""
    starts: Ids
    """Where the entries of each key start in `members`, shape (n_keys + 1,)."""
    members: Ids
    """Entries grouped by key, ascending within a key, shape (n_entries,)."""
    content: str
    """Digest of the store."""

    @classmethod
    def of(cls, triplets: "Sequence[Triplet] | KeyTable") -> "KeyTable":
        """Group the entries of a store."""
        if isinstance(triplets, KeyTable):
            return triplets
        keys = key_column(triplets)
        return cls(
            texts=keys.names,
            key_of=keys.ids,
            starts=keys.starts,
            members=keys.members,
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
        """Check the deleted entries of a batch and find the keys that they empty."""
        codes = self._codes(deleted, n_rows)
        rows, entries = np.divmod(codes, max(self.n_entries, 1))
        pairs, counts = np.unique(rows * self.n_keys + self.key_of[entries], return_counts=True)
        key_rows, keys = np.divmod(pairs, max(self.n_keys, 1))
        is_dead = counts == self._sizes(keys)
        by_key = np.argsort(keys[is_dead], kind="stable")
        return Masked(
            codes=codes,
            dead_rows=key_rows[is_dead][by_key],
            dead_keys=keys[is_dead][by_key],
            n_partly=np.bincount(key_rows[~is_dead], minlength=n_rows),
        )

    def expand(self, rows: Ints, keys: Ints) -> tuple[Ints, Ints]:
        """Return for each entry of each pair the number of the pair, and the entry."""
        sizes = self._sizes(keys)
        pairs = np.repeat(np.arange(len(rows)), sizes)
        within = np.arange(len(pairs)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return pairs, self.members[self.starts[keys][pairs] + within]

    def _sizes(self, keys: Ints) -> Ids:
        """Return how many entries some keys have."""
        return self.starts[keys + 1] - self.starts[keys]

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeyHits:
    """Pairs of a query and a key, sorted by query, score (highest first) and key."""

    rows: Ints
    """The queries."""
    keys: Ints
    """The keys."""
    scores: Floats
    """Their scores."""

    @classmethod
    def none(cls) -> "KeyHits":
        """Return no pairs."""
        ints = np.empty(0, np.int64)
        return cls(rows=ints, keys=ints, scores=np.empty(0, np.float32))


def top_keys(
    score: Scorer,
    *,
    keys: Sequence[str],
    need: Ints,
    masked: Masked | None = None,
    slack: float = 0.0,
    n_rows_at_once: int = _ROWS,
) -> KeyHits:
    """Return at least the `need` best keys of each row, and all that may be as good.

    Scores are computed into one kept buffer; a running threshold a row (its `need`-th best score
    so far) lets only few of them out of it. Masked keys are no candidates. Scores that are computed
    again more exactly may lie `slack` under the threshold and are still kept, up to 1,024 such keys
    a row. `keys` are the columns, for errors that name one.

    Raises:
        RunnerError: If a score is NaN; names the key.
    """
    n_rows, n_keys = len(need), len(keys)
    step = max(n_rows_at_once, min(_BUFFER // max(n_keys, 1), 1 << 14))
    buffer = np.empty(min(_BUFFER, min(step, max(n_rows, 1)) * max(n_keys, 1)), np.float32)
    parts = [KeyHits.none()]
    for start in range(0, n_rows if n_keys else 0, step):
        rows = slice(start, min(start + step, n_rows))
        block = _Rows(score, rows=rows, need=need[rows], masked=masked, slack=slack, buffer=buffer)
        parts.append(block.best(keys))
    return KeyHits(
        rows=np.concatenate([part.rows for part in parts]),
        keys=np.concatenate([part.keys for part in parts]),
        scores=np.concatenate([part.scores for part in parts]),
    )


class _Rows:
    """The search of some rows; starts with no candidate."""

    def __init__(
        self,
        score: Scorer,
        *,
        rows: slice,
        need: Ints,
        masked: Masked | None,
        slack: float,
        buffer: Floats,
    ) -> None:
        self._score, self._rows, self._need, self._buffer = score, rows, need, buffer
        self._slack = np.float32(slack)
        self._n_rows = rows.stop - rows.start
        self._dead_rows = self._dead_keys = np.empty(0, np.int64)
        if masked is not None:
            inside = (masked.dead_rows >= rows.start) & (masked.dead_rows < rows.stop)
            self._dead_rows = masked.dead_rows[inside] - rows.start
            self._dead_keys = masked.dead_keys[inside]
        self._floor = np.full(self._n_rows, -np.inf, np.float32)
        self._best = KeyHits.none()

    def best(self, keys: Sequence[str]) -> KeyHits:
        """Go through all columns."""
        for start, stop in self._column_blocks(len(keys)):
            block = self._buffer[: self._n_rows * (stop - start)].reshape(self._n_rows, -1)
            self._score(self._rows, slice(start, stop), block)
            if np.isnan(block.min()):
                raise _not_a_number(block, keys[start:stop])
            first, last = np.searchsorted(self._dead_keys, (start, stop))
            block[self._dead_rows[first:last], self._dead_keys[first:last] - start] = -np.inf
            if start == 0:
                self._floor = self._first_floor(block)
            self._take(block, start)
        best = self._best
        return KeyHits(rows=best.rows + self._rows.start, keys=best.keys, scores=best.scores)

    def _column_blocks(self, n_keys: int) -> Iterator[tuple[int, int]]:
        """Cut the columns: a small block for a first threshold, then what the buffer holds."""
        room = max(len(self._buffer) // self._n_rows, 1)
        first = min(max(_FIRST_COLUMNS, 4 * int(self._need.max())), room, n_keys)
        yield 0, first
        step = min(room, _COLUMNS)
        for start in range(first, n_keys, step):
            yield start, min(start + step, n_keys)

    def _first_floor(self, block: Floats) -> Floats:
        """Return what the hits of the first block must exceed."""
        need, width = int(self._need.max()), block.shape[1]
        if need >= width:
            return self._floor
        worst = np.partition(block, width - need, axis=1)[:, width - need]
        floor: Floats = np.nextafter(worst - self._slack, np.float32(-np.inf))
        return floor

    def _take(self, block: Floats, offset: int) -> None:
        """Take a block's hits in, and raise the thresholds."""
        flat = np.flatnonzero(block > self._floor[:, None])
        if not len(flat):
            return
        rows, columns = np.divmod(flat, block.shape[1])
        rows = np.concatenate([self._best.rows, rows])
        keys = np.concatenate([self._best.keys, columns + offset])
        scores = np.concatenate([self._best.scores, block.ravel()[flat]])
        order = np.lexsort((keys, -scores, rows))
        rows, keys, scores = rows[order], keys[order], scores[order]
        counts = np.bincount(rows, minlength=self._n_rows)
        starts = np.cumsum(counts) - counts
        full = counts >= self._need
        worst = np.full(self._n_rows, -np.inf, np.float32)
        worst[full] = scores[(starts + self._need - 1)[full]]
        self._floor = worst - self._slack
        ranks = np.arange(len(rows)) - starts[rows]
        keep = ranks < (self._need + (_TIES if self._slack else 0))[rows]
        keep &= scores >= self._floor[rows]
        self._best = KeyHits(rows=rows[keep], keys=keys[keep], scores=scores[keep])


def _not_a_number(block: Floats, keys: Sequence[str]) -> RunnerError:
    """Say whose scores are NaN; such a key would go missing from every search without a word."""
    broken = np.flatnonzero(np.isnan(block).any(axis=0))
    named = ", ".join(repr(keys[i]) for i in broken[:3])
    return RunnerError(
        f"scores of {len(broken)} keys are NaN ({named}); the index or the model is broken, build "
        "the index again"
    )


def check_k(k: int) -> int:
    """Return `k`, or say that it is too small."""
    if k < 1:
        raise ValueError(f"k must be at least 1; got {k}")
    return k


def rank_entries(table: KeyTable, hits: KeyHits, masked: Masked, *, n_rows: int, k: int) -> Hits:
    """Expand keys to entries, drop the deleted, and keep the k best of each row."""
    pairs, entries = table.expand(hits.rows, hits.keys)
    rows, scores = hits.rows[pairs], hits.scores[pairs]
    if len(masked.codes):
        codes = rows * table.n_entries + entries
        nearest = np.searchsorted(masked.codes, codes)
        nearest[nearest == len(masked.codes)] = 0
        alive = masked.codes[nearest] != codes
        rows, entries, scores = rows[alive], entries[alive], scores[alive]
    return ranked(rows, entries, scores, n_rows=n_rows, k=k)


def ranked(rows: Ints, entries: Ints, scores: np.ndarray, *, n_rows: int, k: int) -> Hits:
    """Rank scored entries: highest score first, lowest index first among equals."""
    order = np.lexsort((entries, -scores, rows))
    rows, entries, scores = rows[order], entries[order], scores[order]
    counts = np.bincount(rows, minlength=n_rows)
    ranks = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
    top = ranks < k
    indices = np.full((n_rows, k), -1, np.int64)
    values = np.full((n_rows, k), -np.inf, np.float32)
    indices[rows[top], ranks[top]] = entries[top]
    values[rows[top], ranks[top]] = scores[top]
    return Hits(indices=indices, scores=values)
