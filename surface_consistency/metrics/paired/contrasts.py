"""Differences of a rate between groups of pairs, with clusters that the groups share.

Overlapping confidence intervals do not show whether a difference is significant, because groups
with common facts have correlated results. A contrast estimates the difference of two rates over the
same clusters. It tests whether the difference is 0 and, with a margin, whether the rates are
equivalent.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.clusters import FEW_CLUSTERS, LEAST_CLUSTERS
from surface_consistency.metrics import _groups, _inputs
from surface_consistency.metrics.paired.multiplicity import adjust_p_values
from surface_consistency.metrics.paired.paired_tables import PAIRED_RATES, count_matrix
from surface_consistency.metrics.uncertainty import cluster_bounds
from surface_consistency.metrics.uncertainty.bootstrap import Statistic
from surface_consistency.metrics.uncertainty.intervals import too_few_clusters
from surface_consistency.reading import shown


def contrast(
    counts_a: npt.ArrayLike,
    counts_b: npt.ArrayLike,
    *,
    rate: str | Statistic = "flip_rate",
    margin: float | None = None,
    confidence: float = 0.95,
) -> dict[str, object]:
    """Return the difference of a rate between two groups of pairs, over the same clusters.

    The difference of two proportions has a t interval over clusters with a variance term for few
    events, which is pooled over both groups if one has few events. A statistic that is not a
    proportion, such as kappa, has a jackknife t interval. The p-value comes from the same t. The
    p-value of equivalence is the larger one of the two one-sided tests, at the margin and at minus
    the margin.

    Args:
        counts_a: Counts of the first group by cluster, shape `(n_clusters, 4)`, columns both, first
            only, second only, neither; a row of zeros if the cluster has no pair in the group.
        counts_b: Counts of the second group, with the same clusters in the same rows.
        rate: Name in `PAIRED_RATES`, or a statistic of summed counts.
        margin: Equivalence margin, a fraction above 0; None omits the test of equivalence.
        confidence: Nominal coverage of the interval, in (0, 1).

    Returns:
        A dictionary with the columns of `contrasts_by` except labels and Holm's p-value: value_a,
        value_b, difference, difference_low, difference_high, p_value, margin and p_equivalent (NaN
        without a margin), n_a, n_b, n_clusters and not_inferred.

    Raises:
        TypeError: If counts are not numeric.
        ValueError: If the shapes differ or are not `(n_clusters, 4)`, a count is negative or not
            finite, the name is unknown, or an option is out of range.

    Notes:
        A cluster with pairs of both groups counts in both, so that shared variation cancels; a pair
        may be in both groups. If neither group has a flip, the interval still has a width, because
        a few clusters without a flip are not evidence that there are no flips. The result is NaN,
        with an `UndefinedMetricWarning`, if a rate is undefined, or a group has fewer than four
        clusters or an effective number below four. With the jackknife it is also NaN if omitting
        clusters does not change the difference. Swapping the groups changes the sign.

    References:
        B. Efron, The Jackknife, the Bootstrap and Other Resampling Plans, SIAM 1982, chapter 3; E.
        B. Wilson, Journal of the American Statistical Association 22, 1927; D. J. Schuirmann,
        Journal of Pharmacokinetics and Biopharmaceutics 15, 1987 (two one-sided tests).

    Examples:
        >>> changed = [[3, 1, 0, 0], [2, 2, 0, 0], [1, 1, 0, 2], [2, 1, 1, 0]] * 5
        >>> repeated = [[2, 0, 0, 0], [1, 0, 0, 1], [1, 1, 0, 0], [2, 0, 0, 0]] * 5
        >>> row = contrast(changed, repeated)
        >>> [round(row[name], 3) for name in ("difference", "difference_low", "difference_high")]
        [0.25, 0.097, 0.413]
    """
    _inputs.check_confidence_level(confidence)
    if margin is not None and not 0.0 < margin < math.inf:
        raise ValueError(f"margin must be above 0 and finite; got {shown(margin)}")
    a, b = count_matrix(counts_a, "counts_a"), count_matrix(counts_b, "counts_b")
    if a.shape != b.shape:
        raise ValueError(
            "counts_a and counts_b must have the same clusters in the same rows; got shapes "
            f"{a.shape} and {b.shape}"
        )
    statistic = _statistic(rate)
    counts = _Counts(a, b, np.concatenate([a, b], axis=1))
    result = _compared(counts, _unpaired(statistic), statistic, margin, confidence)
    if result["not_inferred"]:
        _inputs.warn_undefined(f"the contrast is undefined (NaN): {result['not_inferred']}")
    return result


def _statistic(rate: str | Statistic) -> Statistic:
    """Return the statistic of a name."""
    if not isinstance(rate, str):
        return rate
    if rate not in PAIRED_RATES:
        raise ValueError(f"rate must be among {', '.join(PAIRED_RATES)}; got {shown(rate)}")
    return PAIRED_RATES[rate]


def _means(rate: Statistic) -> tuple[cluster_bounds.Part, ...]:
    """Return the means of which a rate is the sum; empty for other statistics."""
    return () if getattr(rate, "link", None) is not None else cluster_bounds.parts_of(rate)


def _unpaired(rate: Statistic) -> tuple[cluster_bounds.Part, ...]:
    """Return the means of a difference, from four counts of one group and four of the other."""
    none = (0.0,) * 4
    return tuple(
        joint
        for part in _means(rate)
        for joint in (
            part._replace(above=(*part.above, *none), below=(*part.below, *none)),
            part._replace(
                weight=-part.weight, above=(*none, *part.above), below=(*none, *part.below)
            ),
        )
    )


def matched_difference(rate: Statistic) -> tuple[cluster_bounds.Part, ...]:
    """Return the means of a difference, from the 16 counts of pairs by their cells in two groups.

    Column 4 i + j counts the pairs in cell i of the first group and cell j of the second.
    """
    parts = _means(rate)
    if parts and all(set(part.below) == {1} for part in parts):
        # For the same pairs, only the change in each pair's contribution to the rate matters.
        weights = np.sum([part.weight * np.asarray(part.above) for part in parts], axis=0)
        change = np.subtract.outer(weights, weights).ravel()
        largest = float(np.abs(change).max())
        return (cluster_bounds.Part(1.0, tuple(change.tolist()), (1.0,) * 16, -largest, largest),)
    joint = []
    for part in parts:
        for weight, spread in ((part.weight, np.repeat), (-part.weight, np.tile)):
            above, below = (tuple(spread(side, 4).tolist()) for side in (part.above, part.below))
            joint.append(part._replace(weight=weight, above=above, below=below))
    return tuple(joint)


class _Counts(NamedTuple):
    """Counts by cluster of two groups, and the sums from which the difference is inferred."""

    a: _inputs.Floats
    b: _inputs.Floats
    sums: _inputs.Floats


def _compared(
    counts: _Counts,
    parts: tuple[cluster_bounds.Part, ...],
    statistic: Statistic,
    margin: float | None,
    confidence: float,
) -> dict[str, object]:
    """Compare a rate between two groups; `parts` are means of `counts.sums`."""
    a, b, sums = (part[counts.sums.any(axis=1)] for part in counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        value_a, value_b = (float(np.asarray(statistic(side.sum(axis=0)))) for side in (a, b))
    difference = value_a - value_b
    inferred: cluster_bounds.ClusterT | cluster_bounds.StudentBounds | None = (
        cluster_bounds.cluster_t(parts, sums) if parts else None
    )
    if isinstance(inferred, cluster_bounds.ClusterT):
        not_inferred = inferred.not_inferred
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            without = [np.asarray(statistic(side.sum(axis=0) - side)) for side in (a, b)]
            sizes = np.sum([(side.sum(axis=1) / side.sum()) ** 2 for side in (a, b)], axis=0)
        inferred = cluster_bounds.jackknife(difference, without[0] - without[1], sizes=sizes)
        fewest = min(int(np.count_nonzero(side.any(axis=1))) for side in (a, b))
        not_inferred = too_few_clusters(fewest) if fewest < LEAST_CLUSTERS else ""
        if not not_inferred and np.isnan(inferred.error):
            not_inferred = "omitting a cluster makes a rate undefined, or changes nothing"
    if not math.isfinite(difference):
        not_inferred = "a group has no pair in the denominator of the rate"
    low = high = p_value = p_equivalent = math.nan
    if not not_inferred:
        low, high = map(float, inferred.bounds(confidence))
        p_value = float(inferred.p_value())
        if margin is not None:
            tails = [float(inferred.p_value(null)) / 2.0 for null in (-margin, margin)]
            sides = (inferred.value > -margin, inferred.value < margin)
            p_equivalent = max(
                tail if side else 1.0 - tail for side, tail in zip(sides, tails, strict=True)
            )
    return {
        "value_a": value_a,
        "value_b": value_b,
        "difference": difference,
        # An undefined bound remains NaN.
        "difference_low": float(np.minimum(low, difference)),
        "difference_high": float(np.maximum(high, difference)),
        "p_value": p_value,
        "margin": math.nan if margin is None else margin,
        "p_equivalent": p_equivalent,
        "n_a": int(a.sum()),
        "n_b": int(b.sum()),
        "n_clusters": len(a),
        "not_inferred": not_inferred,
    }


_COLUMNS: Final = (
    *("rate", "a", "b", "value_a", "value_b"),
    *("difference", "difference_low", "difference_high", "p_value", "p_value_holm"),
    *("margin", "p_equivalent", "n_a", "n_b", "n_clusters", "few_clusters", "not_inferred"),
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
    cluster: str | None = "item",
    pair: str | None = None,
    margin: float | None = None,
    confidence: float = 0.95,
    missing: _inputs.MissingPolicy = "drop",
) -> pd.DataFrame:
    """Return differences of a rate between every two groups, such as types of redirects or models.

    Args:
        frame: One row per pair (and model), with the columns named below.
        between: Column of the groups that are compared. If a cell contains a list (the types of a
            pair), the pair is in each of its groups.
        within: Columns of outer groups, such as the model; groups of `between` are compared within
            each of them. An empty tuple compares over all rows.
        reference: Group with which all others are compared, as `b`; None compares every two groups.
        rate: Names in `PAIRED_RATES`, or statistics of summed counts by name.
        first: Column of correctness labels under the first condition.
        second: Column of correctness labels under the second condition.
        cluster: Column of dependent rows, such as the fact, also across groups; None makes each row
            a separate cluster.
        pair: Column of pair ids. Only pairs with labels in both groups are then used, as for two
            models on the same questions, and the interval is based on the change of each pair from
            one group to the other. A third model with few answers does not affect the rows of other
            models. None uses all pairs of each group; a `DataWarning` reports rows that repeat
            others, as in `paired_by`.
        margin: As for `contrast`.
        confidence: Nominal coverage of the intervals, in (0, 1).
        missing: "drop" excludes pairs without a label, with an `UnscoredWarning`; "raise" raises an
            error.

    Returns:
        One row per rate, group of `within` and two groups: the columns of `within`, rate, a, b,
        value_a, value_b, difference (value_a - value_b), difference_low and difference_high,
        p_value, p_value_holm (Holm's correction over all rows of the rate), margin, p_equivalent,
        n_a, n_b, n_clusters, few_clusters (fewer than 20) and not_inferred (why interval and
        p-values are NaN; else empty). Groups are sorted by label, as in `paired_by`. With `pair`,
        two groups without a common pair have no row; an `UndefinedMetricWarning` reports their
        number. Other groups and their order do not affect a row, except for Holm's correction.

    Raises:
        ColumnNotFoundError: If a named column is not in the frame; the message lists its columns.
        TypeError: If `frame` is not a DataFrame.
        ValueError: If the frame is empty, a label is not binary or (under "raise") missing, a
            cluster id is missing, the reference is not a group, a rate is unknown, a pair occurs
            twice in a group or belongs to two clusters, or an option is out of range.

    Notes:
        See `contrast`. Undefined values are NaN without a warning, with the reason in
        `not_inferred`, because in a table of many groups some usually have few clusters.

    References:
        S. Holm, Scandinavian Journal of Statistics 6, 1979; see `contrast` for the others.

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame(
        ...     {"item": [*range(20)] * 2, "type": ["alias"] * 20 + ["misspelling"] * 20,
        ...      "first_correct": [1] * 40, "second_correct": [1, 1, 1, 0] * 5 + [0, 1] * 10})
        >>> rows = contrasts_by(frame, between="type")
        >>> rows[["a", "b", "difference", "n_clusters"]].values.tolist()
        [['alias', 'misspelling', -0.25, 20]]
    """
    _inputs.check_confidence_level(confidence)
    if margin is not None and not 0.0 < margin < math.inf:
        raise ValueError(f"margin must be above 0 and finite; got {shown(margin)}")
    keys = _groups.grouping_columns([*_groups.column_names(within), between], _COLUMNS)
    needed = [*keys, first, second, *filter(None, (cluster, pair))]
    _groups.check_frame(frame, needed, options="between, within, first, second, cluster or pair")
    rates = _named_rates(rate)
    cells = _inputs.outcome_cells(
        frame[first].array, frame[second].array, missing=missing, names=(first, second)
    )
    _inputs.warn_unscored(int(np.count_nonzero(cells == _inputs.MISSING)), cells.size, stacklevel=2)
    clusters = _groups.cluster_codes(frame, cluster)
    if pair is None:
        _groups.warn_repeated_rows(
            frame, [first, second], [*keys, *filter(None, (cluster,))], stacklevel=2
        )
    ids = None if pair is None else pd.factorize(frame[pair])[0].astype(np.int64)
    difference_of = _unpaired if ids is None else matched_difference
    parts = {name: difference_of(statistic) for name, statistic in rates.items()}
    rows: dict[str, list[dict[str, object]]] = {name: [] for name in rates}
    n_without = 0
    for inside, groups in _nested(_groups.group_positions(frame, keys)).items():
        chosen = _couples(groups, reference)
        scored = {name: one[cells[one] != _inputs.MISSING] for name, one in groups.items()}
        if ids is None:
            counted = _by_cluster(scored, chosen, cells, clusters)
        else:
            counted = _by_pair(scored, chosen, cells, clusters, ids)
        for (a, b), counts in zip(chosen, counted, strict=True):
            if ids is not None and not len(counts.a):
                n_without += 1
                continue
            labels = dict(zip(keys, inside, strict=False)) | {"a": a, "b": b}
            for name, statistic in rates.items():
                row = _compared(counts, parts[name], statistic, margin, confidence)
                rows[name].append(labels | {"rate": name} | row)
    if n_without:
        _inputs.warn_undefined(
            f"{n_without} couples of groups have no pair with labels in both, and no row: ids of "
            f"column {shown(pair)} must identify the same pair in each group; without pair "
            "each group uses all of its pairs"
        )
    table = pd.DataFrame([*itertools.chain(*rows.values())], columns=[*keys[:-1], *_COLUMNS])
    table["few_clusters"] = table["n_clusters"] < FEW_CLUSTERS
    table["p_value_holm"] = table.groupby("rate", sort=False)["p_value"].transform(
        lambda part: adjust_p_values(part.to_numpy(dtype=np.float64))
    )
    return table


def _named_rates(rate: str | Sequence[str] | Mapping[str, Statistic]) -> Mapping[str, Statistic]:
    """Return the statistics by name."""
    if isinstance(rate, Mapping):
        return rate
    return {name: _statistic(name) for name in _groups.column_names(rate)}


def _nested(
    positions: Mapping[_groups.GroupKey, npt.NDArray[np.intp]],
) -> dict[_groups.GroupKey, dict[object, npt.NDArray[np.intp]]]:
    """Collect the groups to compare within each outer group."""
    nested: dict[_groups.GroupKey, dict[object, npt.NDArray[np.intp]]] = {}
    for key, rows in positions.items():
        nested.setdefault(key[:-1], {})[key[-1]] = rows
    return nested


def _couples(groups: Mapping[object, object], reference: object) -> list[tuple[object, object]]:
    """Return the pairs of groups to compare."""
    if reference is None:
        return list(itertools.combinations(groups, 2))
    if reference not in groups:
        raise ValueError(
            f"reference must be one of the groups {list(groups)}; got {shown(reference)}"
        )
    return [(group, reference) for group in groups if group != reference]


_Rows: TypeAlias = Mapping[object, npt.NDArray[np.intp]]
_Couples: TypeAlias = Sequence[tuple[object, object]]


def _by_cluster(
    groups: _Rows, couples: _Couples, cells: _inputs.Codes, clusters: _inputs.Integers
) -> Iterator[_Counts]:
    """Yield the counts of each two compared groups over the same clusters."""
    distinct = np.unique(np.concatenate([clusters[rows] for rows in groups.values()]))
    counts = {}
    for name, rows in groups.items():
        codes = 4 * np.searchsorted(distinct, clusters[rows]) + cells[rows]
        counted = np.bincount(codes, minlength=4 * distinct.size)
        counts[name] = counted.reshape(-1, 4).astype(np.float64)
    for a, b in couples:
        yield _Counts(counts[a], counts[b], np.concatenate([counts[a], counts[b]], axis=1))


def _by_pair(
    groups: _Rows,
    couples: _Couples,
    cells: _inputs.Codes,
    clusters: _inputs.Integers,
    ids: _inputs.Integers,
) -> Iterator[_Counts]:
    """Yield the counts of the pairs that both compared groups have, by their two cells."""
    pairs = np.unique(np.concatenate([ids[rows] for rows in groups.values()]))
    cell_of, cluster_of = {}, np.full(pairs.size, -1, dtype=np.int64)
    for name, rows in groups.items():
        places = np.searchsorted(pairs, ids[rows])
        if np.unique(places).size < places.size:
            raise ValueError(
                f"a pair occurs more than once in group {shown(name)}: drop the duplicates"
            )
        differs = (cluster_of[places] >= 0) & (cluster_of[places] != clusters[rows])
        if differs.any():
            raise ValueError(
                f"{int(differs.sum())} pairs belong to different clusters in two groups: give each "
                "pair the same cluster in all groups"
            )
        cluster_of[places] = clusters[rows]
        cell_of[name] = np.full(pairs.size, _inputs.MISSING, dtype=np.int64)
        cell_of[name][places] = cells[rows]
    distinct, cluster_of = np.unique(cluster_of, return_inverse=True)
    for a, b in couples:
        shared = (cell_of[a] != _inputs.MISSING) & (cell_of[b] != _inputs.MISSING)
        codes = 16 * cluster_of[shared] + 4 * cell_of[a][shared] + cell_of[b][shared]
        counted = np.bincount(codes, minlength=16 * distinct.size).reshape(-1, 16)
        sums = counted[counted.any(axis=1)].astype(np.float64)
        square = sums.reshape(-1, 4, 4)
        yield _Counts(square.sum(axis=2), square.sum(axis=1), sums)
