"""The best keys of each query, from scores that are computed block by block."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import RetrievalError
from surface_consistency.retrieval._ranking.deleted_indices import Ints
from surface_consistency.retrieval._ranking.key_table import Masked

__all__ = ["Floats", "KeyHits", "Scorer", "top_keys"]

Floats = npt.NDArray[np.float32]

Scorer = Callable[[slice, slice, Floats], None]
"""Fills `out` with the scores of these rows (queries) and columns (keys); -inf is no hit."""

_BUFFER = 1 << 22
_ROWS = 256
_FIRST_COLUMNS = 1024
_COLUMNS = 1 << 17
_TIES = 1024


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeyHits:
    """Pairs of a query and a key, sorted by query, score (highest first) and key."""

    rows: Ints
    """The queries."""
    keys: Ints
    """The keys."""
    scores: Floats
    """Their scores."""


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
    so far) lets only few of them out of it. Masked keys are no candidates.

    Args:
        score: Fills a block of scores.
        keys: The columns, for errors that name one.
        need: How many keys each row needs, shape (n_rows,).
        masked: Keys that a row may not see; None to see all.
        slack: How far a score may lie under the threshold and still be kept, for scores that are
            computed again more exactly; up to 1,024 such keys a row are kept.
        n_rows_at_once: How many rows a block has where the keys are many.

    Raises:
        RetrievalError: If a score is NaN; names the key.
    """
    n_rows, n_keys = len(need), len(keys)
    step = max(n_rows_at_once, min(_BUFFER // max(n_keys, 1), 1 << 14))
    buffer = np.empty(min(_BUFFER, min(step, max(n_rows, 1)) * max(n_keys, 1)), np.float32)
    parts = []
    for start in range(0, n_rows if n_keys else 0, step):
        rows = slice(start, min(start + step, n_rows))
        block = _Rows(score, rows=rows, need=need[rows], masked=masked, slack=slack, buffer=buffer)
        parts.append(block.best(keys))
    return KeyHits(
        rows=np.concatenate([part.rows for part in parts] or [np.empty(0, np.int64)]),
        keys=np.concatenate([part.keys for part in parts] or [np.empty(0, np.int64)]),
        scores=np.concatenate([part.scores for part in parts] or [np.empty(0, np.float32)]),
    )


class _Rows:
    """The search of some rows."""

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
        """Start with no candidate."""
        self._score, self._rows, self._need, self._buffer = score, rows, need, buffer
        self._slack = np.float32(slack)
        self._n_rows = rows.stop - rows.start
        self._dead_rows, self._dead_keys = _dead_in(masked, rows)
        self._floor = np.full(self._n_rows, -np.inf, np.float32)
        self._best = _no_hits()

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


def _not_a_number(block: Floats, keys: Sequence[str]) -> RetrievalError:
    """Say whose scores are NaN; such a key would go missing from every search without a word."""
    broken = np.flatnonzero(np.isnan(block).any(axis=0))
    named = ", ".join(repr(keys[i]) for i in broken[:3])
    return RetrievalError(
        f"scores of {len(broken)} keys are NaN ({named}); the index or the model is broken, build "
        "the index again"
    )


def _no_hits() -> KeyHits:
    """Return no pairs."""
    ints = np.empty(0, np.int64)
    return KeyHits(rows=ints, keys=ints, scores=np.empty(0, np.float32))


def _dead_in(masked: Masked | None, rows: slice) -> tuple[Ints, Ints]:
    """Return the masked pairs of some rows, counted from the first, sorted by key."""
    if masked is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    inside = (masked.dead_rows >= rows.start) & (masked.dead_rows < rows.stop)
    return masked.dead_rows[inside] - rows.start, masked.dead_keys[inside]
