"""Differences between groups of pairs, with clusters that both of them share drawn together.

Two intervals that overlap say nothing of a difference: groups that share facts are right and wrong
together. A contrast takes the difference of two rates within the same clusters, and tests both that
it is none and, with a margin, that it is small.
"""

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics._groups import (
    GroupKey,
    check_frame,
    cluster_codes,
    column_names,
    group_positions,
    grouping_columns,
)
from surface_consistency.metrics._inputs import (
    MISSING,
    Codes,
    Floats,
    Integers,
    MissingPolicy,
    check_choice,
    check_confidence_level,
    outcome_cells,
    warn_undefined,
    warn_unscored,
)
from surface_consistency.metrics.paired.multiplicity import adjust_p_values
from surface_consistency.metrics.paired.paired_tables import PAIRED_RATES, count_matrix
from surface_consistency.metrics.uncertainty.bootstrap import Statistic
from surface_consistency.metrics.uncertainty.cluster_bounds import (
    Part,
    StudentBounds,
    SumBounds,
    jackknife,
    share_sums,
)
from surface_consistency.metrics.uncertainty.intervals import (
    FEW_CLUSTERS,
    Interval,
)

__all__ = ["ContrastResult", "contrast", "contrasts_by", "matched_difference"]

_Pairs: TypeAlias = Literal["pairwise", "common"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastResult:
    """Result of `contrast`."""

    value_a: float
    """The rate of the first group; NaN where undefined."""
    value_b: float
    """The rate of the second group; NaN where undefined."""
    difference: float
    """`value_a` less `value_b`; positive: the first group has the larger rate."""
    difference_interval: Interval
    """Interval of `difference`, by "mover" or "jackknife"."""
    p_value: float
    """Two-sided p-value of no difference, in (0, 1]; NaN where undefined."""
    margin: float | None
    """Difference that counts as none; None where equivalence is not tested."""
    p_equivalent: float
    """p-value of a difference as large as `margin` or larger, in (0, 1]; small: the groups are
    equivalent. NaN without a margin."""
    n_a: int
    """Pairs of the first group."""
    n_b: int
    """Pairs of the second group."""
    n_clusters: int
    """Clusters with a pair of either group."""


def contrast(
    counts_a: npt.ArrayLike,
    counts_b: npt.ArrayLike,
    *,
    rate: str | Statistic = "flip_rate",
    margin: float | None = None,
    confidence_level: float = 0.95,
) -> ContrastResult:
    """Compare a rate of two groups of pairs whose clusters are the same rows.

    The difference of two shares has the MOVER interval: the distances to the Wilson limits of
    either, with the number of independent pairs that its clusters are worth, joined with the
    correlation of the two between clusters. A statistic that is no sum of shares, such as
    kappa, has a jackknife t interval over clusters. p is 1 less the level at which the interval
    reaches 0, and that of equivalence half of 1 less the level at which it reaches the margin.

    Args:
        counts_a: Counts of the first group by cluster, shape `(n_clusters, 4)`, columns both, first
            only, second only, neither; a row of zeros where the cluster has no pair in the group.
        counts_b: Counts of the second group, row by row of the same clusters.
        rate: Name in `PAIRED_RATES`, or a statistic of summed counts.
        margin: Difference that counts as none, above 0, as a fraction: tests equivalence by two
            one-sided tests. None does not.
        confidence_level: Nominal coverage of the interval, in (0, 1).

    Returns:
        Both rates, their difference with interval, the p-values, and the numbers behind them.

    Raises:
        TypeError: When counts hold no numbers.
        ValueError: When the shapes differ or are no `(n_clusters, 4)`, a count is negative or not
            finite, the name is unknown, or an option is out of range.

    Notes:
        A cluster that holds pairs of both groups counts in both, so that what they share cancels;
        a pair may stand in both groups. Few clusters without a flip do not show that there is none:
        the interval of two groups that never flip is no point. A single cluster, a group that
        stands in one cluster alone and an undefined rate give NaN, with an
        `UndefinedMetricWarning`, and so does the jackknife where no cluster moves the difference.
        Swapping the groups turns the sign. The test rejects less than its level where flips are
        rare or a few clusters hold most of the pairs (`benchmarks/bench_tests.py`).

    References:
        G. Y. Zou and A. Donner, Statistics in Medicine 27, 2008 (MOVER); B. Efron, The Jackknife,
        the Bootstrap and Other Resampling Plans, SIAM 1982, chapter 3; D. J. Schuirmann, Journal of
        Pharmacokinetics and Biopharmaceutics 15, 1987 (two one-sided tests).

    Examples:
        >>> changed = [[3, 1, 0, 0], [2, 2, 0, 0], [1, 1, 0, 2], [2, 1, 1, 0]] * 5
        >>> repeated = [[2, 0, 0, 0], [1, 0, 0, 1], [1, 1, 0, 0], [2, 0, 0, 0]] * 5
        >>> result = contrast(changed, repeated)
        >>> bounds = result.difference_interval
        >>> [round(x, 3) for x in (result.difference, bounds.low, bounds.high)]
        [0.25, 0.015, 0.426]
    """
    check_confidence_level(confidence_level)
    if margin is not None and not 0.0 < margin < math.inf:
        raise ValueError(f"margin must be above 0 and finite; got {margin!r}")
    a, b = count_matrix(counts_a, "counts_a"), count_matrix(counts_b, "counts_b")
    if a.shape != b.shape:
        raise ValueError(
            "counts_a and counts_b must hold the same clusters row by row; got shapes "
            f"{a.shape} and {b.shape}"
        )
    statistic = _statistic(rate)
    counts = _Counts(a, b, np.concatenate([a, b], axis=1))
    compared = _compared(counts, _apart(statistic), statistic)
    result = _contrasts([compared], margin, confidence_level)[0]
    if math.isnan(result.p_value):
        warn_undefined(
            "the contrast is undefined (NaN): each group needs two clusters and a rate that is "
            "defined without any one of them, and a function of one's own must vary between them"
        )
    return result


def _statistic(rate: str | Statistic) -> Statistic:
    """Return the statistic of a name."""
    if not isinstance(rate, str):
        return rate
    if rate not in PAIRED_RATES:
        raise ValueError(f"rate must be among {', '.join(PAIRED_RATES)}; got {rate!r}")
    return PAIRED_RATES[rate]


def _parts(rate: Statistic) -> tuple[Part, ...]:
    """Return the shares of which a rate is the sum; none for other statistics."""
    return () if getattr(rate, "link", None) is not None else getattr(rate, "parts", ())


def _apart(rate: Statistic) -> tuple[Part, ...]:
    """Return the shares of a difference, of four counts of one group and four of the other."""
    none = (0.0,) * 4
    return tuple(
        part
        for weight, above, below in _parts(rate)
        for part in (
            Part(weight, (*above, *none), (*below, *none)),
            Part(-weight, (*none, *above), (*none, *below)),
        )
    )


def matched_difference(rate: Statistic) -> tuple[Part, ...]:
    """Return the shares of a difference, of the 16 counts of pairs by their cells in two groups.

    Column 4 i + j counts pairs that are in cell i of the first group and j of the second.
    """
    parts = _parts(rate)
    if parts and all(set(part.below) == {1} for part in parts):
        # Of the same pairs: what counts is by how much each pair's share in the rate changes.
        weights = np.sum([part.weight * np.asarray(part.above) for part in parts], axis=0)
        change = np.subtract.outer(weights, weights).ravel()
        size = float(np.abs(change).max()) or 1.0
        return tuple(
            Part(sign * size, tuple((np.maximum(sign * change, 0.0) / size).tolist()), (1.0,) * 16)
            for sign in (1.0, -1.0)
        )
    joint = []
    for weight, above, below in parts:
        first = (tuple(np.repeat(side, 4).tolist()) for side in (above, below))
        second = (tuple(np.tile(side, 4).tolist()) for side in (above, below))
        joint += [Part(weight, *first), Part(-weight, *second)]
    return tuple(joint)


class _Counts(NamedTuple):
    """Counts by cluster: of two groups, and the sums that tell how they go together."""

    a: Floats
    b: Floats
    sums: Floats


class _Compared(NamedTuple):
    """Two rates of the same clusters, and what limits their difference at any level."""

    value_a: float
    value_b: float
    limits: SumBounds | StudentBounds
    is_defined: bool
    n_a: int
    n_b: int
    n_clusters: int


def _compared(counts: _Counts, parts: tuple[Part, ...], statistic: Statistic) -> _Compared:
    """Compare two groups in a rate, whose difference is made of these shares of `counts.sums`."""
    a, b, sums = (part[counts.sums.any(axis=1)] for part in counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = [float(np.asarray(statistic(side.sum(axis=0)))) for side in (a, b)]
        without = [np.asarray(statistic(side.sum(axis=0) - side)) for side in (a, b)]
        sizes = np.sum([(side.sum(axis=1) / side.sum()) ** 2 for side in (a, b)], axis=0)
    difference, moved = values[0] - values[1], without[0] - without[1]
    added = share_sums(parts, sums) if parts else None
    return _Compared(
        value_a=values[0],
        value_b=values[1],
        limits=jackknife(difference, moved, sizes=sizes) if added is None else added,
        is_defined=len(a) > 1 and math.isfinite(difference) and bool(np.isfinite(moved).all()),
        n_a=int(a.sum()),
        n_b=int(b.sum()),
        n_clusters=len(a),
    )


def _contrasts(
    compared: Sequence[_Compared], margin: float | None, level: float
) -> list[ContrastResult]:
    """Infer all differences of one rate at once."""
    difference = np.asarray([one.value_a - one.value_b for one in compared])
    low, high, p_value, p_equivalent = np.full((4, len(compared)), np.nan)
    for kind in (SumBounds, StudentBounds):
        places = [
            place
            for place, one in enumerate(compared)
            if one.is_defined and isinstance(one.limits, kind)
        ]
        if not places:
            continue
        fields = zip(*(compared[place].limits for place in places), strict=True)
        limits = kind(*(np.stack(field) for field in fields))
        low[places], high[places] = limits.bounds(level)
        p_value[places] = limits.p_value()
        if margin is not None:
            tails = [limits.p_value(null) / 2.0 for null in (-margin, margin)]
            sides = (-difference[places] < margin, difference[places] < margin)
            tails = [
                np.where(side, tail, 1.0 - tail) for side, tail in zip(sides, tails, strict=True)
            ]
            p_equivalent[places] = np.max(tails, axis=0)
    low, high = np.minimum(low, difference), np.maximum(high, difference)
    return [
        ContrastResult(
            value_a=one.value_a,
            value_b=one.value_b,
            difference=one.value_a - one.value_b,
            difference_interval=Interval(
                low=float(low[place]),
                high=float(high[place]),
                confidence_level=level,
                method="mover" if isinstance(one.limits, SumBounds) else "jackknife",
            ),
            p_value=float(p_value[place]),
            margin=margin,
            p_equivalent=float(p_equivalent[place]),
            n_a=one.n_a,
            n_b=one.n_b,
            n_clusters=one.n_clusters,
        )
        for place, one in enumerate(compared)
    ]


_COLUMNS: Final = (
    *("rate", "a", "b", "value_a", "value_b"),
    *("difference", "difference_low", "difference_high", "p_value", "p_value_holm"),
    *("margin", "p_equivalent", "n_a", "n_b", "n_clusters", "few_clusters"),
)


def contrasts_by(
    frame: pd.DataFrame,
    *,
    between: str,
    within: str | Sequence[str] = (),
    reference: object = None,
    rate: str | Sequence[str] | Mapping[str, Statistic] = "flip_rate",
    first: str = "first_correct",
    second: str = "second_correct",
    cluster: str | None = "fact_id",
    pair_id: str | None = None,
    pairs: _Pairs = "pairwise",
    margin: float | None = None,
    confidence_level: float = 0.95,
    missing: MissingPolicy = "drop",
) -> pd.DataFrame:
    """Compare every two groups of a column, such as two types of redirects or two models.

    Args:
        frame: One row a pair (and model), with the columns named below.
        between: Column of the groups that are compared. Where a cell holds a list (the types of a
            pair), the pair stands in each of its groups.
        within: Columns within whose groups the comparison is made, such as the model, or for two
            models the category; none of them compares over all rows.
        reference: Group that all others are compared with, as `b`; None compares every two.
        rate: Names in `PAIRED_RATES`, or statistics of summed counts by name.
        first: Column of verdicts under the first condition.
        second: Column of verdicts under the second condition.
        cluster: Column of what belongs together, such as the fact, across the groups too; None
            takes each row for a cluster of its own.
        pair_id: Column of pair ids: only pairs with a verdict in both groups count, as for two
            models that should be compared on the same questions, and the interval rests on how
            each pair changes from one to the other. None takes all pairs of each.
        pairs: With `pair_id`, "pairwise" takes the pairs that the two groups at hand share, so that
            a third model which answered few leaves them as they are; "common" those that all groups
            share, so that the rows of a table stand on the same pairs.
        margin: As for `contrast`.
        confidence_level: Nominal coverage of the intervals, in (0, 1).
        missing: "drop" leaves out pairs that lack a verdict, with an `UnscoredWarning`; "raise"
            refuses them.

    Returns:
        One row for each rate, group of `within` and two groups: the columns of `within`, rate, a,
        b, value_a, value_b, difference (value_a - value_b), difference_low and difference_high,
        p_value, p_value_holm (Holm's over all rows of the rate), margin, p_equivalent, n_a, n_b,
        n_clusters and few_clusters (whether they are fewer than 20). Groups are sorted by label, as
        those of `paired_by`; two groups without a common pair, where `pair_id` asks for some, have
        none. Neither other groups nor their order change a row, but for Holm's correction and the
        pairs that "common" leaves.

    Raises:
        ColumnNotFoundError: When a named column is not in the frame; the message lists those seen.
        TypeError: When `frame` is no DataFrame.
        ValueError: When the frame is empty, a verdict is not binary or (under "raise") missing, a
            cluster id is missing, the reference is no group, a rate is unknown, a pair stands twice
            in a group or belongs to two clusters, or an option is out of range.

    Notes:
        See `contrast`. What is undefined is NaN without a warning: in a table of many groups some
        stand in a single cluster.

    References:
        S. Holm, Scandinavian Journal of Statistics 6, 1979; see `contrast` for the others.

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame(
        ...     {"fact_id": [*range(20)] * 2, "type": ["alias"] * 20 + ["misspelling"] * 20,
        ...      "first_correct": [1] * 40, "second_correct": [1, 1, 1, 0] * 5 + [0, 1] * 10})
        >>> rows = contrasts_by(frame, between="type")
        >>> rows[["a", "b", "difference", "n_clusters"]].values.tolist()
        [['alias', 'misspelling', -0.25, 20]]
    """
    check_confidence_level(confidence_level)
    if margin is not None and not 0.0 < margin < math.inf:
        raise ValueError(f"margin must be above 0 and finite; got {margin!r}")
    keys = grouping_columns([*column_names(within), between], _COLUMNS)
    needed = [*keys, first, second, *filter(None, (cluster, pair_id))]
    check_frame(frame, needed, options="between, within, first, second, cluster or pair_id")
    check_choice(pairs, ("pairwise", "common"), "pairs")
    rates = _named_rates(rate)
    cells = outcome_cells(
        frame[first].array, frame[second].array, missing=missing, names=(first, second)
    )
    warn_unscored(int(np.count_nonzero(cells == MISSING)), cells.size, stacklevel=2)
    clusters = cluster_codes(frame, cluster)
    ids = None if pair_id is None else pd.factorize(frame[pair_id])[0].astype(np.int64)
    difference_of = _apart if ids is None else matched_difference
    parts = {name: difference_of(statistic) for name, statistic in rates.items()}
    couples: list[dict[str, object]] = []
    compared: dict[str, list[_Compared]] = {name: [] for name in rates}
    for inside, groups in _nested(group_positions(frame, keys)).items():
        scored = {name: one[cells[one] != MISSING] for name, one in groups.items()}
        if ids is not None:
            scored = _by_pair(scored, ids, is_common=pairs == "common")
        for a, b in _couples(groups, reference):
            counts = _aligned((scored[a], scored[b]), cells, clusters, ids)
            if ids is not None and not len(counts.a):
                continue
            couples.append(dict(zip(keys, inside, strict=False)) | {"a": a, "b": b})
            for name, statistic in rates.items():
                compared[name].append(_compared(counts, parts[name], statistic))
    rows = [
        labels | {"rate": name} | _cells(result)
        for name, of_rate in compared.items()
        for labels, result in zip(
            couples, _contrasts(of_rate, margin, confidence_level), strict=True
        )
    ]
    table = pd.DataFrame(rows, columns=[*keys[:-1], *_COLUMNS])
    table["p_value_holm"] = table.groupby("rate", sort=False)["p_value"].transform(
        lambda part: adjust_p_values(part.to_numpy(dtype=np.float64))
    )
    return table


def _named_rates(rate: str | Sequence[str] | Mapping[str, Statistic]) -> Mapping[str, Statistic]:
    """Return the statistics by name."""
    if isinstance(rate, Mapping):
        return rate
    return {name: _statistic(name) for name in column_names(rate)}


def _nested(
    positions: Mapping[GroupKey, npt.NDArray[np.intp]],
) -> dict[GroupKey, dict[object, npt.NDArray[np.intp]]]:
    """Gather the groups to compare within each outer group."""
    nested: dict[GroupKey, dict[object, npt.NDArray[np.intp]]] = {}
    for key, rows in positions.items():
        nested.setdefault(key[:-1], {})[key[-1]] = rows
    return nested


def _couples(groups: Mapping[object, object], reference: object) -> list[tuple[object, object]]:
    """Return the groups to compare."""
    if reference is None:
        return list(itertools.combinations(groups, 2))
    if reference not in groups:
        raise ValueError(f"reference must be one of the groups {list(groups)}; got {reference!r}")
    return [(group, reference) for group in groups if group != reference]


def _by_pair(
    groups: Mapping[object, npt.NDArray[np.intp]], ids: Integers, *, is_common: bool
) -> dict[object, npt.NDArray[np.intp]]:
    """Order the rows of each group by pair, and keep the pairs of all groups where asked."""
    ordered = {}
    for name, rows in groups.items():
        if np.unique(ids[rows]).size < rows.size:
            raise ValueError(f"a pair stands more than once in group {name!r}: drop the duplicates")
        ordered[name] = rows[np.argsort(ids[rows], kind="stable")]
    if is_common:
        held = functools.reduce(np.intersect1d, (ids[rows] for rows in ordered.values()))
        ordered = {name: rows[np.isin(ids[rows], held)] for name, rows in ordered.items()}
    return ordered


def _aligned(
    sides: Sequence[npt.NDArray[np.intp]], cells: Codes, clusters: Integers, ids: Integers | None
) -> _Counts:
    """Count the cells of both groups over the clusters of either, or those of the pairs of both."""
    first, second = sides
    if ids is not None:
        both = np.intersect1d(ids[first], ids[second])
        first, second = (side[np.isin(ids[side], both)] for side in sides)
        torn = clusters[first] != clusters[second]
        if torn.any():
            raise ValueError(
                f"{int(torn.sum())} pairs belong to another cluster in one group than in the "
                "other: the groups must agree on the cluster of a pair"
            )
        distinct, of = np.unique(clusters[first], return_inverse=True)
        codes = 16 * of + 4 * cells[first].astype(np.int64) + cells[second]
        sums = np.bincount(codes, minlength=16 * distinct.size).reshape(-1, 16).astype(np.float64)
        square = sums.reshape(-1, 4, 4)
        return _Counts(square.sum(axis=2), square.sum(axis=1), sums)
    distinct, of = np.unique(clusters[np.concatenate([first, second])], return_inverse=True)
    a, b = (
        np.bincount(4 * codes + cells[side], minlength=4 * distinct.size)
        .astype(np.float64)
        .reshape(-1, 4)
        for codes, side in ((of[: len(first)], first), (of[len(first) :], second))
    )
    return _Counts(a, b, np.concatenate([a, b], axis=1))


def _cells(result: ContrastResult) -> dict[str, object]:
    """Return a contrast as cells of a table."""
    interval = result.difference_interval
    return {name: getattr(result, name) for name in _COLUMNS if hasattr(result, name)} | {
        "difference_low": interval.low,
        "difference_high": interval.high,
        "margin": math.nan if result.margin is None else result.margin,
        "few_clusters": result.n_clusters < FEW_CLUSTERS,
    }
