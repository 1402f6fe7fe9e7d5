"""Differences between groups of pairs, with clusters that both of them share drawn together.

Two intervals that overlap say nothing of a difference: groups that share facts are right and wrong
together. A contrast takes the difference of two rates within the same clusters, and tests both that
it is none and, with a margin, that it is small.
"""

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from surface_consistency.metrics.paired.paired_tables import PAIRED_RATES
from surface_consistency.metrics.uncertainty.bootstrap import Statistic
from surface_consistency.metrics.uncertainty.cluster_bounds import (
    Part,
    jackknife_bounds,
    jackknife_p_value,
    share_sums,
)
from surface_consistency.metrics.uncertainty.intervals import (
    FEW_CLUSTERS,
    Interval,
    undefined_interval,
)
from surface_consistency.metrics.uncertainty.multiplicity import adjust_p_values

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
    a, b = _matrix(counts_a, "counts_a"), _matrix(counts_b, "counts_b")
    if a.shape != b.shape:
        raise ValueError(
            "counts_a and counts_b must hold the same clusters row by row; got shapes "
            f"{a.shape} and {b.shape}"
        )
    statistic = _statistic(rate)
    sums = np.concatenate([a, b], axis=1)
    result = _contrast(a, b, sums, _apart(statistic), statistic, margin, confidence_level)
    if math.isnan(result.p_value):
        warn_undefined(
            "the contrast is undefined (NaN): each group needs two clusters and a rate that is "
            "defined without any one of them, and a function of one's own must vary between them"
        )
    return result


def _matrix(counts: npt.ArrayLike, name: str) -> Floats:
    """Return checked counts as floats."""
    array = np.asarray(counts)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must hold numbers; got dtype {array.dtype}")
    if array.ndim != 2 or array.shape[1] != 4:
        raise ValueError(
            f"{name} must have shape (n_clusters, 4), columns both, first only, second only, "
            f"neither; got {array.shape}"
        )
    wrong = ~(np.isfinite(array) & (array >= 0)).all(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{name} must be counts of at least 0; row {row} is {array[row].tolist()}")
    return array.astype(np.float64)


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


def _contrast(
    a: Floats,
    b: Floats,
    sums: Floats,
    parts: tuple[Part, ...],
    statistic: Statistic,
    margin: float | None,
    level: float,
) -> ContrastResult:
    """Compute the contrast of checked counts, whose difference is of so many shares of `sums`."""
    held = (a.sum(axis=1) > 0) | (b.sum(axis=1) > 0)
    sides = [part[held] for part in (a, b)]
    with np.errstate(divide="ignore", invalid="ignore"):
        values = [float(np.asarray(statistic(part.sum(axis=0)))) for part in sides]
        without = [np.asarray(statistic(part.sum(axis=0) - part)) for part in sides]
    difference, moved = values[0] - values[1], without[0] - without[1]
    n_clusters = int(held.sum())
    added = share_sums(parts, sums[held]) if parts else None
    bounds = undefined_interval(level, "jackknife" if added is None else "mover")
    p_value = p_equivalent = math.nan
    if n_clusters > 1 and math.isfinite(difference) and np.isfinite(moved).all():
        sizes = np.sum([(part.sum(axis=1) / part.sum()) ** 2 for part in sides], axis=0)
        if added is None:
            low, high = map(float, jackknife_bounds(difference, moved, level, sizes=sizes))
        else:
            low, high = map(float, added.bounds(level))
        if not math.isnan(low):
            bounds = replace(bounds, low=min(low, difference), high=max(high, difference))

        def p_of(null: float) -> float:
            """Return the two-sided p-value of a difference of `null`."""
            if added is None:
                return jackknife_p_value(difference - null, moved, sizes=sizes)
            return added.p_value(null)

        p_value = p_of(0.0)
        if margin is not None:
            p_equivalent = max(
                p_of(sign * margin) / 2.0
                if sign * difference < margin
                else 1.0 - p_of(sign * margin) / 2.0
                for sign in (-1.0, 1.0)
            )
    return ContrastResult(
        value_a=values[0],
        value_b=values[1],
        difference=difference,
        difference_interval=bounds,
        p_value=p_value,
        margin=margin,
        p_equivalent=p_equivalent,
        n_a=int(sides[0].sum()),
        n_b=int(sides[1].sum()),
        n_clusters=n_clusters,
    )


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
    rows = []
    for inside, groups in _nested(group_positions(frame, keys)).items():
        scored = {name: one[cells[one] != MISSING] for name, one in groups.items()}
        if ids is not None:
            scored = _by_pair(scored, ids, is_common=pairs == "common")
        for a, b in _couples(groups, reference):
            counts = _aligned((scored[a], scored[b]), cells, clusters, ids)
            if ids is not None and not len(counts.a):
                continue
            for name, statistic in rates.items():
                parts = _apart(statistic) if ids is None else matched_difference(statistic)
                found = _contrast(*counts, parts, statistic, margin, confidence_level)
                rows.append(_row(dict(zip(keys, inside, strict=False)), name, a, b, found))
    table = pd.DataFrame(rows, columns=[*keys[:-1], *_COLUMNS])
    table["p_value_holm"] = table.groupby("rate", sort=False)["p_value"].transform(
        lambda part: adjust_p_values(part.to_numpy(dtype=np.float64))
    )
    order = {name: place for place, name in enumerate(rates)}
    return table.sort_values("rate", key=lambda names: names.map(order), kind="stable").reset_index(
        drop=True
    )


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


class _Counts(NamedTuple):
    """Cells of two groups by cluster: of each, shape `(n_clusters, 4)`, and what parts weigh."""

    a: Floats
    b: Floats
    sums: Floats


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


def _row(
    labels: dict[str, object], name: str, a: object, b: object, found: ContrastResult
) -> dict[str, object]:
    """Return a contrast as a row of the table."""
    interval = found.difference_interval
    return labels | {
        "rate": name,
        "a": a,
        "b": b,
        "value_a": found.value_a,
        "value_b": found.value_b,
        "difference": found.difference,
        "difference_low": interval.low,
        "difference_high": interval.high,
        "p_value": found.p_value,
        "margin": math.nan if found.margin is None else found.margin,
        "p_equivalent": found.p_equivalent,
        "n_a": found.n_a,
        "n_b": found.n_b,
        "n_clusters": found.n_clusters,
        "few_clusters": found.n_clusters < FEW_CLUSTERS,
    }
