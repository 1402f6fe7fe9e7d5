"""Sums over a group whose rows or clusters exchange membership, all ways or many."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from surface_consistency.metrics._inputs import Flags, Floats, Integers

__all__ = ["ClusterBlock", "cluster_blocks", "n_arrangements", "permuted_clusters", "permuted_sums"]

# Bounds a chunk of shuffled values to some tens of MB.
_CHUNK_ROWS = 2**21


def permuted_sums(
    values: Floats, in_group: Flags, strata: Integers, n_permutations: int, rng: np.random.Generator
) -> tuple[Floats, bool]:
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


def _drawn_sums(values: Floats, size: int, n_permutations: int, rng: np.random.Generator) -> Floats:
    """Return sums of `size` values drawn without replacement, in chunks of bounded size."""
    sums = np.empty(n_permutations)
    n_rows = max(1, _CHUNK_ROWS // values.size)
    for start in range(0, n_permutations, n_rows):
        rows = min(n_rows, n_permutations - start)
        shuffled = rng.permuted(np.broadcast_to(values, (rows, values.size)), axis=1)
        sums[start : start + rows] = shuffled[:, :size].sum(axis=1)
    return sums


# Bounds a chunk of shuffled clusters to some tens of MB.
_CHUNK_CELLS = 2**20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterBlock:
    """Clusters that have rows in the same strata, so that they may exchange memberships."""

    kinds: Integers
    """Number of the membership that each cluster holds, shape `(n_clusters,)`."""
    shares: Floats
    """Sum and count of the rows that each membership puts in the group, for each cluster, shape
    `(n_kinds, n_clusters, 2)`."""


def cluster_blocks(
    values: Floats, in_group: Flags, strata: Integers, clusters: Integers
) -> list[ClusterBlock]:
    """Return the blocks of clusters; rows of one cluster and stratum must share membership."""
    shape = (int(clusters.max()) + 1, int(strata.max()) + 1)
    cells, n_cells = clusters * shape[1] + strata, shape[0] * shape[1]
    counts = np.bincount(cells, minlength=n_cells).reshape(shape)
    sums = np.bincount(cells, weights=values, minlength=n_cells).reshape(shape)
    members = np.bincount(cells, weights=in_group, minlength=n_cells).reshape(shape) > 0
    _, blocks = np.unique(counts > 0, axis=0, return_inverse=True)
    found = []
    for block in range(int(blocks.max()) + 1):
        where = np.flatnonzero(blocks.ravel() == block)
        patterns, kinds = np.unique(members[where], axis=0, return_inverse=True)
        weights = patterns.astype(np.float64)
        shares = np.stack([weights @ sums[where].T, weights @ counts[where].T], axis=-1)
        found.append(ClusterBlock(kinds=kinds.ravel().astype(np.int64), shares=shares))
    return found


def n_arrangements(blocks: list[ClusterBlock]) -> int:
    """Return in how many ways clusters can hold the memberships of their block."""
    ways = 1
    for block in blocks:
        left = block.kinds.size
        for size in np.bincount(block.kinds).tolist():
            ways *= math.comb(left, size)
            left -= size
    return ways


def permuted_clusters(
    blocks: list[ClusterBlock], n_permutations: int, rng: np.random.Generator
) -> tuple[Floats, bool]:
    """Return sum and size of the group, shape `(n, 2)`, and whether all arrangements are there.

    All arrangements are listed where they are no more than `n_permutations`.
    """
    if n_arrangements(blocks) <= n_permutations:
        totals = np.zeros((1, 2))
        for block in blocks:
            totals = (totals[:, None] + _listed(block)[None]).reshape(-1, 2)
        return totals, True
    totals = np.zeros((n_permutations, 2))
    for block in blocks:
        totals += _drawn(block, n_permutations, rng)
    return totals, False


def _listed(block: ClusterBlock) -> Floats:
    """Return the totals of a block for every arrangement."""
    places = np.arange(block.kinds.size)
    return np.array(
        [
            block.shares[list(kinds), places].sum(axis=0)
            for kinds in _assignments(np.bincount(block.kinds).tolist())
        ]
    )


def _assignments(sizes: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield every way to give each place a kind, kind k at `sizes[k]` places."""
    n = sum(sizes)

    def filled(kind: int, free: tuple[int, ...], kinds: list[int]) -> Iterator[tuple[int, ...]]:
        """Place this kind and those after it at the free places."""
        if kind == len(sizes):
            yield tuple(kinds)
            return
        for chosen in itertools.combinations(free, sizes[kind]):
            for place in chosen:
                kinds[place] = kind
            rest = tuple(sorted(set(free) - set(chosen)))
            yield from filled(kind + 1, rest, kinds)

    yield from filled(0, tuple(range(n)), [0] * n)


def _drawn(block: ClusterBlock, n_permutations: int, rng: np.random.Generator) -> Floats:
    """Return the totals of a block for random arrangements, in chunks of bounded size."""
    places = np.arange(block.kinds.size)
    totals = np.empty((n_permutations, 2))
    size = max(1, _CHUNK_CELLS // block.kinds.size)
    for start in range(0, n_permutations, size):
        rows = min(size, n_permutations - start)
        kinds = rng.permuted(np.broadcast_to(block.kinds, (rows, places.size)), axis=1)
        totals[start : start + rows] = block.shares[kinds, places].sum(axis=1)
    return totals
