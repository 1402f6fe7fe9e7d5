"""Difference of the means of two groups, with the t of its interval or a permutation test."""

import itertools
import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import (
    MISSING,
    Flags,
    Floats,
    Integers,
    check_choice,
    check_equal_lengths,
    check_n_resamples,
    check_same_index,
    label_codes,
    numeric_vector,
    verdict_codes,
    warn_undefined,
)
from surface_consistency.metrics.uncertainty.cluster_bounds import ClusterT, Part, cluster_t
from surface_consistency.metrics.uncertainty.intervals import (
    DEFAULT_INTERVALS,
    Interval,
    Intervals,
)

# Bounds a chunk of shuffled values to some tens of MB.
_CHUNK_ROWS = 2**21


def _permuted_sums(
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
            chosen = [
                float(part[list(members)].sum())
                for members in itertools.combinations(range(part.size), size)
            ]
            sums = np.add.outer(sums, chosen).ravel()
        return sums, True
    sums = np.zeros(n_permutations)
    for part, size in parts:
        sums += _drawn_sums(part, size, n_permutations, rng)
    return sums, False


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
class _ClusterBlock:
    """Clusters that have rows in the same strata, so that they may exchange memberships."""

    kinds: Integers
    """Number of the membership that each cluster holds, shape `(n_clusters,)`."""
    shares: Floats
    """Sum and count of the rows that each membership puts in the group, for each cluster, shape
    `(n_kinds, n_clusters, 2)`."""
    leans: Floats
    """What the rows of the group have over those beside them in their cluster and stratum, for the
    clusters where membership varies inside; shape `(n_mixed,)`."""


def _cluster_blocks(
    values: Floats, in_group: Flags, strata: Integers, clusters: Integers
) -> list[_ClusterBlock]:
    """Return the blocks of clusters; a membership is the share of the group in each stratum."""
    shape = (int(clusters.max()) + 1, int(strata.max()) + 1)
    cells, n_cells = clusters * shape[1] + strata, shape[0] * shape[1]
    counts = np.bincount(cells, minlength=n_cells).reshape(shape)
    sums = np.bincount(cells, weights=values, minlength=n_cells).reshape(shape)
    inside = np.bincount(cells, weights=in_group, minlength=n_cells).reshape(shape)
    held = np.bincount(cells, weights=values * in_group, minlength=n_cells).reshape(shape)
    # Division is rounded correctly, so that equal shares of clusters of unequal size are one kind.
    shared = inside / np.maximum(counts, 1)
    parted: Flags = (inside > 0) & (inside < counts)
    leans = np.where(parted, held - shared * sums, 0.0).sum(axis=1)
    is_mixed: Flags = np.asarray(parted.any(axis=1))
    _, blocks = np.unique(counts > 0, axis=0, return_inverse=True)
    cluster_blocks = []
    for block in range(int(blocks.max()) + 1):
        where = np.flatnonzero(blocks.ravel() == block)
        weights, kinds = np.unique(shared[where], axis=0, return_inverse=True)
        cluster_blocks.append(
            _ClusterBlock(
                kinds=kinds.ravel().astype(np.int64),
                shares=np.stack([weights @ sums[where].T, weights @ counts[where].T], axis=-1),
                leans=leans[where][is_mixed[where]],
            )
        )
    return cluster_blocks


def _n_arrangements(blocks: list[_ClusterBlock]) -> int:
    """Return in how many ways clusters can hold the memberships of their block, and lean."""
    ways = 1
    for block in blocks:
        left = block.kinds.size
        ways *= 2**block.leans.size
        for size in np.bincount(block.kinds).tolist():
            ways *= math.comb(left, size)
            left -= size
    return ways


def _permuted_clusters(
    blocks: list[_ClusterBlock], n_permutations: int, rng: np.random.Generator
) -> tuple[Floats, bool]:
    """Return sum and size of the group, shape `(n, 2)`, and whether all arrangements are there.

    All arrangements are listed where they are no more than `n_permutations`.
    """
    if _n_arrangements(blocks) <= n_permutations:
        totals = np.zeros((1, 2))
        for block in blocks:
            totals = (totals[:, None] + _listed(block)[None]).reshape(-1, 2)
        return totals, True
    totals = np.zeros((n_permutations, 2))
    for block in blocks:
        totals += _drawn(block, n_permutations, rng)
    return totals, False


def _listed(block: _ClusterBlock) -> Floats:
    """Return the totals of a block for every arrangement."""
    places = np.arange(block.kinds.size)
    totals = np.array(
        [
            block.shares[list(kinds), places].sum(axis=0)
            for kinds in _assignments(np.bincount(block.kinds).tolist())
        ]
    )
    for lean in block.leans:
        turned = np.array([lean, 0.0])
        totals = np.concatenate([totals + turned, totals - turned])
    return totals


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


def _drawn(block: _ClusterBlock, n_permutations: int, rng: np.random.Generator) -> Floats:
    """Return the totals of a block for random arrangements, in chunks of bounded size."""
    places = np.arange(block.kinds.size)
    totals = np.empty((n_permutations, 2))
    size = max(1, _CHUNK_CELLS // block.kinds.size)
    for start in range(0, n_permutations, size):
        rows = min(size, n_permutations - start)
        kinds = rng.permuted(np.broadcast_to(block.kinds, (rows, places.size)), axis=1)
        totals[start : start + rows] = block.shares[kinds, places].sum(axis=1)
        if block.leans.size:
            signs = rng.integers(0, 2, size=(rows, block.leans.size)) * 2 - 1
            totals[start : start + rows, 0] += signs @ block.leans
    return totals


GroupTest: TypeAlias = Literal["t", "permutation"]
"""The t of the interval, over clusters; or how often shuffled members differ as much."""

Alternative: TypeAlias = Literal["two-sided", "greater", "less"]
"""Which difference speaks against the groups' being alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDifferenceResult:
    """Result of `group_difference`."""

    group_mean: float
    """Mean of the rows in the group, such as the aligned facts."""
    other_mean: float
    """Mean of the other rows."""
    difference: float
    """`group_mean` less `other_mean`, or for t under strata the mean of the differences within
    them; positive: the group has the larger values."""
    relative_difference: float
    """`difference` over the magnitude of `other_mean`; NaN where that is 0."""
    difference_interval: Interval
    """Interval of `difference` that takes clusters whole; NaN bounds for a group worth fewer than
    four, and beside the permutation test, which is of no interval."""
    p_value: float
    """p-value of the test, in [0, 1]; NaN where the clusters are too few for t."""
    is_exact: bool
    """Whether all arrangements were listed by the permutation test, rather than some drawn; False
    for t."""
    n_group: int
    """Rows in the group."""
    n_other: int
    """Other rows."""


def group_difference(
    values: npt.ArrayLike,
    in_group: npt.ArrayLike,
    *,
    strata: Iterable[Hashable] | None = None,
    clusters: Iterable[Hashable] | None = None,
    alternative: Alternative = "two-sided",
    test: GroupTest = "t",
    n_permutations: int = 10_000,
    intervals: Intervals = DEFAULT_INTERVALS,
) -> GroupDifferenceResult:
    """Compare the mean of a group with the mean of the other rows.

    The difference has a t interval over clusters, of which p is; "permutation" asks how often a
    difference as large comes about when group membership is shuffled within strata.

    Args:
        values: One number a row, such as the mechanistic similarity of a fact, shape `(n_rows,)`.
        in_group: Whether the row belongs to the group: True or False, 1 or 0.
        strata: Within which rows are compared, such as the model, whose level then makes no
            difference; None for all rows.
        clusters: What is taken as a whole, such as the topic: left out one at a time for the
            interval, moved across strata together by a permutation, which turns the sign of what
            lies inside a mixed one; None takes rows for independent of each other.
        alternative: "two-sided", "greater" (the group has the larger mean) or "less".
        test: "t", which takes clusters for a sample, or "permutation", which takes memberships for
            exchangeable between clusters and has no interval.
        n_permutations: Arrangements that are drawn; where there are no more, all are listed.
        intervals: Level of the interval, and seed of the arrangements; its method is "auto".

    Returns:
        Both means, their difference with interval, and the p-value.

    Raises:
        TypeError: When a value is no number, or a count is no integer.
        ValueError: When strata are given without "permutation", lengths differ, a value is missing
            or infinite, membership is not binary or
            missing, a group is empty, a label is missing, strata and clusters leave nothing to
            shuffle, or an option is out of range.

    Notes:
        For t under strata the difference is the mean of those within the strata that hold both
        kinds of rows, each weighted by n_group n_other / n of its stratum: the coefficient of the
        group in a least-squares regression with an intercept a stratum. Its interval takes these
        weights as they are. "permutation" orders arrangements by the difference of all rows.

        With clusters, rows that belong together are no independent evidence, and a permutation
        respects that, across strata too: the facts of a topic recur in every model, so a topic
        moves as one. The sum over the group parts into what lies between clusters, share of the
        group times sum of the values, and what lies inside them, the values of the group less their
        cluster's mean
        (both by stratum). Clusters with rows in the same strata exchange their shares, for all
        strata together, and each cluster turns the sign of what lies inside it; so a cluster that
        is in the group as a whole has nothing to turn, and one with both kinds of rows among many
        whole ones changes p by little. The group may differ in size between arrangements. Few
        clusters have few arrangements, which bound p from below.

        p counts the observed arrangement in, (1 + k) / (1 + n_permutations), so it is never 0; the
        two-sided p is twice the smaller tail. Values that are all equal give p 1 under
        "permutation". t and its interval are NaN for a group that is worth fewer than four
        clusters, and where values differ by group alone, which tells nothing of their spread; an
        `other_mean` of 0 gives a NaN `relative_difference`; an `UndefinedMetricWarning` says so.
        The order of the rows does not matter, but for the random draws. Swapping the groups changes
        the sign of the difference. The paper gives p < 0.001 and no name of a test.

    References:
        SLAQ, arXiv 2510.11218, eq. 5 and figure 4; P. Kline and A. Santos, Journal of Econometric
        Methods 1, 2012 (signs turned by cluster); Phipson and Smyth, Statistical Applications in
        Genetics and Molecular Biology 9, 2010 (why p is never 0).

    Examples:
        >>> result = group_difference([0.9, 0.8, 0.7, 0.6, 0.3, 0.2, 0.1, 0.0], [1] * 4 + [0] * 4)
        >>> round(result.difference, 2), round(result.p_value, 4)
        (0.6, 0.0005)
    """
    check_choice(alternative, ("two-sided", "greater", "less"), "alternative")
    check_choice(test, ("t", "permutation"), "test")
    check_choice(intervals.method, ("auto",), "intervals.method")
    n_permutations = check_n_resamples(n_permutations, "n_permutations")
    check_same_index(values=values, in_group=in_group, strata=strata, clusters=clusters)
    numbers, members = _checked(values, in_group)
    of_cluster = label_codes(clusters, numbers.size, "clusters")
    n_group, n_other = int(members.sum()), int((~members).sum())
    group_sum = float(numbers[members].sum())
    total = group_sum + float(numbers[~members].sum())
    group_mean, other_mean = group_sum / n_group, (total - group_sum) / n_other
    of_stratum = _stratum_codes(strata, numbers.size)
    difference = group_mean - other_mean
    reasons, is_exact = [], False
    low = high = math.nan
    if test == "permutation":
        sums, sizes, is_exact = _shuffled(
            numbers, members, of_stratum, of_cluster, n_permutations, intervals.generator()
        )
        shuffled = sums / sizes - (total - sums) / (numbers.size - sizes)
        margin = 1e-12 * float(np.abs(numbers).max())
        p_value = _p_value(difference, shuffled, alternative, is_exact, margin)
    else:
        inferred = mean_difference(_cluster_sums(numbers, members, of_cluster, of_stratum))
        difference = float(inferred.value)
        low, high = map(float, inferred.bounds(intervals.level))
        p_value = _t_p_value(inferred, alternative)
        reasons += [f"interval and p, {why}"] if (why := inferred.not_inferred) else []
    reasons += ["the relative difference, since the other mean is 0"] if (other_mean == 0.0) else []
    if reasons:
        warn_undefined(f"undefined (NaN): {'; '.join(reasons)}", stacklevel=2)
    return GroupDifferenceResult(
        group_mean=group_mean,
        other_mean=other_mean,
        difference=difference,
        relative_difference=difference / abs(other_mean) if other_mean else math.nan,
        difference_interval=Interval(
            low=low, high=high, confidence_level=intervals.level, method="t"
        ),
        p_value=p_value,
        is_exact=is_exact,
        n_group=n_group,
        n_other=n_other,
    )


def _checked(values: npt.ArrayLike, in_group: npt.ArrayLike) -> tuple[Floats, Flags]:
    """Return the values, and which of them are in the group."""
    numbers, codes = numeric_vector(values, "values"), verdict_codes(in_group, "in_group")
    check_equal_lengths(values=numbers.size, in_group=codes.size)
    for name, absent in (("values", np.isnan(numbers)), ("in_group", codes == MISSING)):
        if absent.any():
            raise ValueError(f"{name}[{int(np.argmax(absent))}] is missing: leave the row out")
    if not 0 < codes.sum() < codes.size:
        raise ValueError(
            f"in_group must hold both kinds of rows; got {int(codes.sum())} of {codes.size} in it"
        )
    return numbers, codes == 1


def _stratum_codes(strata: Iterable[Hashable] | None, n_rows: int) -> Integers:
    """Number the strata of the rows; all rows are one stratum without any."""
    if strata is None:
        return np.zeros(n_rows, dtype=np.int64)
    return label_codes(strata, n_rows, "strata")


def _shuffled(
    numbers: Floats,
    members: Flags,
    strata: Integers,
    clusters: Integers,
    n_permutations: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, bool]:
    """Return sums and sizes of the group in each arrangement, and whether all are there."""
    if int(clusters.max()) + 1 == numbers.size:
        _check_strata(members, strata)
        sums, is_exact = _permuted_sums(numbers, members, strata, n_permutations, rng)
        return sums, np.full(1, float(members.sum())), is_exact
    blocks = _cluster_blocks(numbers, members, strata, clusters)
    if _n_arrangements(blocks) == 1:
        raise ValueError(
            "strata and clusters must leave something to shuffle: no two clusters with rows in the "
            "same strata differ in membership; take wider strata or smaller clusters"
        )
    totals, is_exact = _permuted_clusters(blocks, n_permutations, rng)
    return totals[:, 0], totals[:, 1], is_exact


def _check_strata(members: Flags, strata: Integers) -> None:
    """Refuse strata among which nothing can be shuffled."""
    sizes, inside = np.bincount(strata), np.bincount(strata, weights=members)
    if not ((inside > 0) & (inside < sizes)).any():
        raise ValueError("strata must leave something to shuffle: none holds both kinds of rows")


def _cluster_sums(numbers: Floats, members: Flags, clusters: Integers, strata: Integers) -> Floats:
    """Return sum and size of the group, and of the other rows, in each cluster, by stratum.

    The four columns of a stratum stand together; strata with one kind of rows are left out.
    """
    columns = []
    for stratum in range(int(strata.max()) + 1):
        group, other = (strata == stratum) & members, (strata == stratum) & ~members
        if group.any() and other.any():
            columns += [group * numbers, group, other * numbers, other]
    if not columns:
        raise ValueError("strata must leave something to compare: none holds both kinds of rows")
    return np.column_stack([np.bincount(clusters, weights=column) for column in columns])


def mean_difference(sums: Floats) -> ClusterT:
    """Return the inference of the mean of the group less that of the other rows, within strata."""
    n_strata = sums.shape[-1] // 4
    # All data sets, where they are several, have the weights of their sizes together.
    n_group, n_other = sums.reshape(-1, n_strata, 4).sum(axis=0)[:, [1, 3]].T
    weights = n_group * n_other / (n_group + n_other)
    columns = np.eye(4 * n_strata)
    parts = [
        Part(sign * weight, tuple(columns[place]), tuple(columns[place + 1]), -math.inf, math.inf)
        for stratum, weight in enumerate(weights / weights.sum())
        for sign, place in ((1.0, 4 * stratum), (-1.0, 4 * stratum + 2))
    ]
    inferred = cluster_t(parts, sums)
    if inferred is None:
        raise ValueError("values must be finite")
    return inferred


def _t_p_value(inferred: ClusterT, alternative: Alternative) -> float:
    """Return the p-value of t on the side or sides that are asked for."""
    p_value = float(inferred.p_value())
    if alternative == "two-sided":
        return p_value
    is_ahead = float(inferred.t()) > 0.0 if alternative == "greater" else float(inferred.t()) < 0.0
    return p_value / 2.0 if is_ahead else 1.0 - p_value / 2.0


def _p_value(
    difference: float, shuffled: Floats, alternative: Alternative, is_exact: bool, margin: float
) -> float:
    """Return the share of arrangements at least as extreme as the observed one."""
    extra = 0 if is_exact else 1
    tails = {
        "greater": int(np.count_nonzero(shuffled >= difference - margin)),
        "less": int(np.count_nonzero(shuffled <= difference + margin)),
    }
    shares = {name: (k + extra) / (shuffled.size + extra) for name, k in tails.items()}
    if alternative == "two-sided":
        return min(1.0, 2.0 * min(shares.values()))
    return shares[alternative]
