"""Run counts of responses whose slots do not interact, by pattern of verdicts.

Given how many slots of a response are right, only the pattern is left to chance. There are few
patterns, so that a draw of all responses is one multinomial draw for each number of right slots.
"""

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics.alignment._streaks import STREAKS, all_patterns, streak_counts

__all__ = ["MAX_PATTERN_SLOTS", "null_by_pattern"]

MAX_PATTERN_SLOTS = 12
"""Most slots for which all 2**n_slots patterns are listed."""

_Integers = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]

_MAX_STEPS = 2000


def null_by_pattern(
    verdicts: npt.NDArray[np.int8], n_null: int, rng: np.random.Generator, *, keep_slots: bool
) -> _Floats:
    """Return run counts of draws without momentum, shape `(n_null, 2, n_slots, 2)`.

    All patterns with the right number of right slots are alike, or, to keep the accuracy of each
    slot, a pattern x has weight prod_j w_j^x_j (Rasch), the w_j fitted to the observed accuracies.
    """
    n_slots = verdicts.shape[1]
    patterns = all_patterns(n_slots)
    sums = patterns.sum(axis=1, dtype=np.int64)
    of_sum = np.bincount(verdicts.sum(axis=1, dtype=np.int64), minlength=n_slots + 1)
    if keep_slots:
        right = verdicts.sum(axis=0, dtype=np.int64)
        chances = _fitted_chances(patterns.astype(np.float64), sums, of_sum, right)
    else:
        chances = 1.0 / np.bincount(sums)[sums]
    drawn = np.zeros((n_null, len(patterns)))
    for total, n_responses in enumerate(of_sum):
        members = np.flatnonzero(sums == total)
        drawn[:, members] = rng.multinomial(n_responses, chances[members], size=n_null)
    counts = streak_counts(patterns, np.arange(len(patterns)), len(patterns))
    totals = drawn @ counts.reshape(len(patterns), -1).astype(np.float64)
    return totals.reshape(n_null, len(STREAKS), n_slots, 2)


def _fitted_chances(
    patterns: _Floats, sums: _Integers, of_sum: _Integers, right: _Integers
) -> _Floats:
    """Return each pattern's chance among those of its sum, by iterative scaling of slot weights."""
    weights = np.where(right > 0, 1.0, 0.0)
    for _ in range(_MAX_STEPS):
        products = np.where(patterns > 0, weights, 1.0).prod(axis=1)
        of_products = np.bincount(sums, weights=products)
        # Where no pattern is possible no response has that sum; any chances do.
        chances = products / np.where(of_products > 0, of_products, 1.0)[sums]
        expected = (chances * of_sum[sums]) @ patterns
        if np.abs(expected - right).max() <= 1e-9 * of_sum.sum():
            break
        weights = np.divide(weights * right, expected, out=np.zeros_like(weights), where=right > 0)
        weights /= weights.max()
    return np.asarray(chances)
