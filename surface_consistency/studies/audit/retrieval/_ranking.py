"""Shared code of the retrievers: deleted entries, the best lookup keys of each query, ranks."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from surface_consistency.errors import RunnerError
from surface_consistency.studies.audit.retrieval.retriever import Deleted, Hits
from surface_consistency.studies.audit.retrieval.triplets import Ints, TextColumn, is_among

Floats = npt.NDArray[np.float32]
Scorer = Callable[[slice, slice, Floats], None]
"""Fills `out` with the scores of these rows (queries) and columns (keys); -inf is not a hit."""

_BUFFER = 1 << 22
_ROWS = 256
_FIRST_COLUMNS = 1024
_COLUMNS = 1 << 17
_TIES = 1024


def deleted_indices(entries: npt.ArrayLike | None, row: int, n_entries: int) -> Ints:
    """Return the indices of deleted entries, sorted and distinct; ValueError if invalid."""
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
                f"deleted[{row}] contains entry {index}, but the store has {n_entries} entries, "
                "counted from 0"
            )
    return indices


class Masked(NamedTuple):
    """The deleted entries and keys of a batch of queries."""

    codes: Ints
    """Sorted `row * n_entries + entry` of all deleted entries."""
    dead_rows: Ints
    """Row of each pair of a row and a key without remaining entries."""
    dead_keys: Ints
    """Key of each of these pairs, ascending."""
    n_partly: Ints
    """Number of keys per row with some, but not all entries deleted, shape (n_rows,)."""


def mask(keys: TextColumn, deleted: Deleted, n_rows: int) -> Masked:
    """Check the deleted entries of a batch and find the keys without remaining entries.

    Args:
        keys: Lookup keys of the store's entries.
        deleted: For each query the deleted entries; None for no deletion.
        n_rows: Number of queries.

    Returns:
        The deleted entries and keys.

    Raises:
        ValueError: If `deleted` does not match the queries or the store.
    """
    if deleted is not None and len(deleted) != n_rows:
        raise ValueError(
            f"deleted must have one item per query; got {len(deleted)} for {n_rows} queries"
        )
    n_entries, n_keys = len(keys.ids), len(keys.names)
    codes = [np.empty(0, np.int64)]
    codes += [
        row * n_entries + deleted_indices(entries, row, n_entries)
        for row, entries in enumerate(deleted or ())
    ]
    rows, entries = np.divmod(np.concatenate(codes), max(n_entries, 1))
    pairs, counts = np.unique(rows * n_keys + keys.ids[entries], return_counts=True)
    key_rows, own = np.divmod(pairs, max(n_keys, 1))
    is_dead = counts == keys.starts[own + 1] - keys.starts[own]
    by_key = np.argsort(own[is_dead], kind="stable")
    return Masked(
        codes=np.concatenate(codes),
        dead_rows=key_rows[is_dead][by_key],
        dead_keys=own[is_dead][by_key],
        n_partly=np.bincount(key_rows[~is_dead], minlength=n_rows),
    )


class KeyHits(NamedTuple):
    """Pairs of a query and a key, sorted by query, score (highest first) and key."""

    rows: Ints
    """The queries."""
    keys: Ints
    """The keys."""
    scores: Floats
    """Their scores."""


NO_HITS = KeyHits(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
"""No pairs."""


def top_keys(
    score: Scorer,
    *,
    keys: pa.Array,
    need: Ints,
    masked: Masked,
    slack: float = 0.0,
    n_rows_at_once: int = _ROWS,
) -> KeyHits:
    """Return at least the `need` best keys of each row, and all keys with possibly equal scores.

    Scores are computed into one reused buffer; a running threshold per row (its `need`-th best
    score so far) limits the number of scores that are copied. Masked keys are not candidates. If
    scores are recomputed more exactly later, keys up to `slack` below the threshold are also kept,
    up to 1,024 per row. `keys` are the columns, for errors that name one.

    Raises:
        RunnerError: If a score is NaN; the message names the key.
    """
    n_rows, n_keys = len(need), len(keys)
    step = max(n_rows_at_once, min(_BUFFER // max(n_keys, 1), 1 << 14))
    buffer = np.empty(min(_BUFFER, min(step, max(n_rows, 1)) * max(n_keys, 1)), np.float32)
    parts = [NO_HITS]
    for start in range(0, n_rows if n_keys else 0, step):
        rows = slice(start, min(start + step, n_rows))
        is_inside = (masked.dead_rows >= rows.start) & (masked.dead_rows < rows.stop)
        dead = masked.dead_rows[is_inside] - start, masked.dead_keys[is_inside]
        best = _best_of_rows(score, keys, rows, need[rows], dead, np.float32(slack), buffer)
        parts.append(best._replace(rows=best.rows + start))
    return _joined(parts)


def _best_of_rows(
    score: Scorer,
    keys: pa.Array,
    rows: slice,
    need: Ints,
    dead: tuple[Ints, Ints],
    slack: np.float32,
    buffer: Floats,
) -> KeyHits:
    """Score all columns of some rows: a small block for a first threshold, then large ones."""
    n_rows, available = len(need), max(len(buffer) // len(need), 1)
    start, width = 0, min(max(_FIRST_COLUMNS, 4 * int(need.max())), available)
    floor, best = np.full(n_rows, -np.inf, np.float32), NO_HITS
    while start < len(keys):
        columns = slice(start, min(start + width, len(keys)))
        block = buffer[: n_rows * (columns.stop - start)].reshape(n_rows, -1)
        score(rows, columns, block)
        if np.isnan(block.min()):
            raise _not_a_number(block, keys[columns])
        first, last = np.searchsorted(dead[1], (start, columns.stop))
        block[dead[0][first:last], dead[1][first:last] - start] = -np.inf
        most = int(need.max())
        if not start and most < block.shape[1]:
            worst = np.partition(block, block.shape[1] - most, axis=1)[:, -most]
            floor = np.nextafter(worst - slack, np.float32(-np.inf))
        flat = np.flatnonzero(block > floor[:, None])
        if len(flat):
            found, own = np.divmod(flat, block.shape[1])
            new = KeyHits(found, own + start, block.ravel()[flat])
            best, floor = _merged(best, new, need, slack)
        start, width = columns.stop, min(available, _COLUMNS)
    return best


def _merged(best: KeyHits, new: KeyHits, need: Ints, slack: np.float32) -> tuple[KeyHits, Floats]:
    """Merge new hits into the best ones; return the best hits and the new thresholds."""
    hits = _joined([best, new])
    order = np.lexsort((hits.keys, -hits.scores, hits.rows))
    rows, keys, scores = hits.rows[order], hits.keys[order], hits.scores[order]
    counts = np.bincount(rows, minlength=len(need))
    starts = np.cumsum(counts) - counts
    is_full = counts >= need
    worst = np.full(len(need), -np.inf, np.float32)
    worst[is_full] = scores[(starts + need - 1)[is_full]]
    floor = worst - slack
    ranks = np.arange(len(rows)) - starts[rows]
    keep = (ranks < (need + (_TIES if slack else 0))[rows]) & (scores >= floor[rows])
    return KeyHits(rows[keep], keys[keep], scores[keep]), floor


def _joined(parts: Sequence[KeyHits]) -> KeyHits:
    """Concatenate hits."""
    return KeyHits(
        rows=np.concatenate([part.rows for part in parts]),
        keys=np.concatenate([part.keys for part in parts]),
        scores=np.concatenate([part.scores for part in parts]),
    )


def _not_a_number(block: Floats, keys: pa.Array) -> RunnerError:
    """Return the error for keys whose scores are NaN, which no search would find."""
    broken = np.flatnonzero(np.isnan(block).any(axis=0))
    named = ", ".join(repr(keys[int(place)].as_py()) for place in broken[:3])
    return RunnerError(
        f"scores of {len(broken)} keys are NaN ({named}); the index or the model is damaged, "
        "rebuild the index"
    )


def check_k(k: int) -> int:
    """Return `k`; ValueError if it is below 1."""
    if k < 1:
        raise ValueError(f"k must be at least 1; got {k}")
    return k


def rank_entries(keys: TextColumn, hits: KeyHits, masked: Masked, k: int) -> Hits:
    """Expand keys to entries, drop deleted entries, and keep the k best of each row."""
    pairs, entries = keys.entries(hits.keys)
    rows, scores = hits.rows[pairs], hits.scores[pairs]
    is_left = ~is_among(rows * len(keys.ids) + entries, masked.codes)
    return ranked(
        rows[is_left], entries[is_left], scores[is_left], n_rows=len(masked.n_partly), k=k
    )


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
