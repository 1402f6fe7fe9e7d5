"""How often each trailing run of equal verdicts came before a slot, and what followed it."""

import numpy as np
import numpy.typing as npt

__all__ = ["STREAKS", "all_patterns", "pattern_numbers", "slopes", "streak_counts"]

STREAKS = (1, 0)
"""Verdicts that make a run, in the order of the second axis of `streak_counts`."""


def streak_counts(
    verdicts: npt.NDArray[np.int8], groups: npt.NDArray[np.int64], n_groups: int
) -> npt.NDArray[np.int64]:
    """Count slots from the second on by the length of the run before them.

    From verdicts of shape `(n_responses, n_slots)`, in slot order, and the group of each response,
    to counts of shape `(n_groups, 2, n_slots, 2)`: by group, by kind of run (of 1s, of 0s), by its
    length, all such slots and those of them that are right.
    """
    n_slots = verdicts.shape[1]
    size = n_groups * n_slots
    counts = np.zeros((n_groups, len(STREAKS), n_slots, 2), dtype=np.int64)
    for kind, streak in enumerate(STREAKS):
        cells = n_slots * groups
        for slot in range(1, n_slots):
            cells = np.where(verdicts[:, slot - 1] == streak, cells + 1, n_slots * groups)
            right = cells[verdicts[:, slot] == 1]
            counts[:, kind, :, 0] += np.bincount(cells, minlength=size).reshape(n_groups, -1)
            counts[:, kind, :, 1] += np.bincount(right, minlength=size).reshape(n_groups, -1)
    return counts


def all_patterns(n_slots: int) -> npt.NDArray[np.int8]:
    """Return every pattern of verdicts, shape `(2**n_slots, n_slots)`, in order of its number."""
    return ((np.arange(2**n_slots)[:, None] >> np.arange(n_slots)) & 1).astype(np.int8)


def pattern_numbers(verdicts: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    """Return the number of each response's pattern."""
    return np.asarray(verdicts.astype(np.int64) @ (1 << np.arange(verdicts.shape[1])))


def slopes(counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the least-squares slope of correctness on run length, over all slots.

    Counts have shape `(..., n_lengths, 2)`: slots and right ones. NaN where all runs are equally
    long.
    """
    lengths = np.arange(counts.shape[-2], dtype=np.float64)
    slots, right = counts[..., 0], counts[..., 1]
    n, total = slots.sum(axis=-1), slots @ lengths
    above = n * (right @ lengths) - total * right.sum(axis=-1)
    below = n * (slots @ lengths**2) - total**2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(below == 0, np.nan, above / below))
