"""Sums over a group whose members are drawn anew, all of them or many."""

import itertools
import math

import numpy as np
import numpy.typing as npt

__all__ = ["permuted_sums"]

_Floats = npt.NDArray[np.float64]

# Bounds a chunk of shuffled values to some tens of MB.
_CHUNK_CELLS = 2**21


def permuted_sums(
    values: _Floats,
    in_group: npt.NDArray[np.bool_],
    strata: npt.NDArray[np.int64],
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[_Floats, bool]:
    """Return sums of the group with its members shuffled within strata, and whether all are there.

    All arrangements are listed where they are no more than `n_permutations`.
    """
    parts = [
        (values[strata == stratum], int(in_group[strata == stratum].sum()))
        for stratum in np.unique(strata)
    ]
    if math.prod(math.comb(part.size, size) for part, size in parts) <= n_permutations:
        sums = np.zeros(1)
        for part, size in parts:
            chosen = [float(part[list(members)].sum()) for members in _subsets(part.size, size)]
            sums = np.add.outer(sums, chosen).ravel()
        return sums, True
    sums = np.zeros(n_permutations)
    for part, size in parts:
        sums += _drawn_sums(part, size, n_permutations, rng)
    return sums, False


def _subsets(n: int, size: int) -> "itertools.combinations[tuple[int, ...]]":
    """Return every choice of `size` out of `n`."""
    return itertools.combinations(range(n), size)


def _drawn_sums(
    values: _Floats, size: int, n_permutations: int, rng: np.random.Generator
) -> _Floats:
    """Return sums of `size` values drawn without replacement, in chunks of bounded size."""
    sums = np.empty(n_permutations)
    n_rows = max(1, _CHUNK_CELLS // values.size)
    for start in range(0, n_permutations, n_rows):
        rows = min(n_rows, n_permutations - start)
        shuffled = rng.permuted(np.broadcast_to(values, (rows, values.size)), axis=1)
        sums[start : start + rows] = shuffled[:, :size].sum(axis=1)
    return sums
