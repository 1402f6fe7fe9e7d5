"""Differences between groups of pairs, with clusters that both of them share drawn together.

Two intervals that overlap say nothing of a difference: groups that share facts are right and wrong
together. A contrast takes the difference of two rates within the same clusters, and tests both that
it is none and, with a margin, that it is small.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

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
    check_confidence_level,
    outcome_cells,
    warn_undefined,
    warn_unscored,
)
from surface_consistency.metrics.bootstrap import Statistic
from surface_consistency.metrics.intervals import (
    Interval,
    t_p_value,
    t_quantile,
    t_tail,
    unseen_bound,
)
from surface_consistency.metrics.multiplicity import adjust_p_values
from surface_consistency.metrics.paired_tables import PAIRED_RATES

__all__ = ["ContrastResult", "contrast", "contrasts_by"]

_STILL: Final = 1e-12
"""Below this a rate does not move when a cluster is left out."""

_WIDEST: Final = {"accuracy_difference": 2.0, "signed_alignment": 2.0}
"""Largest difference of rates that lie in [-1, 1]; that of the others is 1."""


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
    """Interval of `difference`, by the jackknife over clusters and Student's t."""
    standard_error: float
    """Standard error of `difference`, above 0; NaN where undefined."""
    degrees_of_freedom: float
    """Those of Student's t, at least 1: the effective number of clusters less 1."""
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

    With d the difference of the rates of all K clusters and d_k that without cluster k, from both
    groups at once, the standard error is the root of (K - 1) / K sum_k (d_k - d)^2. The interval
    and the test take d over it as Student's t with G - 1 degrees of freedom, where
    G = (sum w_k)^2 / sum w_k^2 is the effective number of clusters and w_k = (n_ak / n_a)^2 +
    (n_bk / n_b)^2: K where all clusters weigh alike, fewer where some weigh more or one group
    stands in a few of them.

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
        a pair may stand in both groups. A group whose rate no cluster moves (none flips) adds
        the squared standard error t / (G + t^2), the half-width over t of Wilson's interval at 0
        of its G clusters, since few clusters without a flip do not show that there is none.
        A single cluster, a group that stands in one cluster alone and an undefined rate give NaN,
        with an `UndefinedMetricWarning`. Swapping the groups turns the sign. The test keeps its
        level from 10 clusters on, and rejects less than that where flips are rare or a few
        clusters hold most of the pairs (`benchmarks/bench_tests.py`).

    References:
        B. Efron, The Jackknife, the Bootstrap and Other Resampling Plans, SIAM 1982, chapter 3;
        J. G. MacKinnon, M. O. Nielsen and M. D. Webb, Journal of Applied Econometrics 38, 2023
        (cluster jackknife); A. V. Carter, K. T. Schnepel and D. G. Steigerwald, Review of Economics
        and Statistics 99, 2017 (effective number of clusters); D. J. Schuirmann, Journal of
        Pharmacokinetics and Biopharmaceutics 15, 1987 (two one-sided tests).

    Examples:
        >>> changed = [[3, 1, 0, 0], [2, 2, 0, 0], [1, 1, 0, 2], [2, 1, 1, 0]] * 5
        >>> repeated = [[2, 0, 0, 0], [1, 0, 0, 1], [1, 1, 0, 0], [2, 0, 0, 0]] * 5
        >>> result = contrast(changed, repeated)
        >>> bounds = result.difference_interval
        >>> [round(x, 3) for x in (result.difference, bounds.low, bounds.high)]
        [0.25, 0.103, 0.397]
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
    result = _contrast(a, b, rate, margin, confidence_level)
    if math.isnan(result.p_value):
        warn_undefined(
            "the contrast is undefined (NaN): each group needs two clusters and a rate that is "
            "defined without any one of them"
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


def _statistic(rate: str | Statistic) -> tuple[Statistic, float]:
    """Return the statistic and the largest difference that it can show."""
    if not isinstance(rate, str):
        return rate, math.inf
    if rate not in PAIRED_RATES:
        raise ValueError(f"rate must be among {', '.join(PAIRED_RATES)}; got {rate!r}")
    return PAIRED_RATES[rate], _WIDEST.get(rate, 1.0)


def _contrast(
    a: Floats, b: Floats, rate: str | Statistic, margin: float | None, level: float
) -> ContrastResult:
    """Compute the contrast of checked counts."""
    statistic, widest = _statistic(rate)
    held = (a.sum(axis=1) > 0) | (b.sum(axis=1) > 0)
    sides = [part[held] for part in (a, b)]
    with np.errstate(divide="ignore", invalid="ignore"):
        values = [float(np.asarray(statistic(part.sum(axis=0)))) for part in sides]
        without = [np.asarray(statistic(part.sum(axis=0) - part)) for part in sides]
    difference, moved = values[0] - values[1], without[0] - without[1]
    n_clusters = int(held.sum())
    error = freedom = math.nan
    if n_clusters > 1 and math.isfinite(difference) and np.isfinite(moved).all():
        scale = (n_clusters - 1) / n_clusters
        variance = scale * float(((moved - difference) ** 2).sum())
        still = [
            part
            for part, value, others in zip(sides, values, without, strict=True)
            if np.abs(others - value).max() < _STILL
        ]
        variance += sum(_unseen_error([part], level) ** 2 for part in still)
        error = math.sqrt(variance) if variance > _STILL**2 else _unseen_error(sides, level)
        freedom = max(1.0, _effective_clusters(sides) - 1.0)
    low = high = p_value = p_equivalent = math.nan
    if not math.isnan(error):
        reach = float(t_quantile(freedom, level)) * error
        low, high = max(-widest, difference - reach), min(widest, difference + reach)
        p_value = t_p_value(difference / error, freedom)
        if margin is not None:
            p_equivalent = t_tail((margin - abs(difference)) / error, freedom)
    return ContrastResult(
        value_a=values[0],
        value_b=values[1],
        difference=difference,
        difference_interval=Interval(
            low=low, high=high, confidence_level=level, method="jackknife-t"
        ),
        standard_error=error,
        degrees_of_freedom=freedom,
        p_value=p_value,
        margin=margin,
        p_equivalent=p_equivalent,
        n_a=int(sides[0].sum()),
        n_b=int(sides[1].sum()),
        n_clusters=n_clusters,
    )


def _effective_clusters(sides: Sequence[Floats]) -> float:
    """Return the number of clusters of equal weight that these are worth."""
    weights = np.sum([(part.sum(axis=1) / part.sum()) ** 2 for part in sides], axis=0)
    return float(weights.sum() ** 2 / (weights @ weights))


def _unseen_error(sides: Sequence[Floats], level: float) -> float:
    """Return the standard error of what no cluster shows, by Wilson's interval at 0."""
    effective = _effective_clusters(sides)
    freedom = max(1.0, effective - 1.0)
    return unseen_bound(effective, freedom, level) / float(t_quantile(freedom, level))


_COLUMNS: Final = (
    *("rate", "a", "b", "value_a", "value_b"),
    *("difference", "difference_low", "difference_high", "standard_error", "degrees_of_freedom"),
    *("p_value", "p_value_holm", "margin", "p_equivalent", "n_a", "n_b", "n_clusters"),
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
            models that should be compared on the same questions. None takes all pairs of each.
        margin: As for `contrast`.
        confidence_level: Nominal coverage of the intervals, in (0, 1).
        missing: "drop" leaves out pairs that lack a verdict, with an `UnscoredWarning`; "raise"
            refuses them.

    Returns:
        One row for each rate, group of `within` and two groups: the columns of `within`, rate, a,
        b, value_a, value_b, difference (value_a - value_b), difference_low and difference_high,
        standard_error, degrees_of_freedom, p_value, p_value_holm (Holm's over all rows of the
        rate), margin, p_equivalent, n_a, n_b and n_clusters. Groups are sorted by label, as those
        of `paired_by`; two groups without a common pair, where `pair_id` asks for some, have none.

    Raises:
        ColumnNotFoundError: When a named column is not in the frame; the message lists those seen.
        TypeError: When `frame` is no DataFrame.
        ValueError: When the frame is empty, a verdict is not binary or (under "raise") missing, a
            cluster id is missing, the reference is no group, a rate is unknown, a pair stands twice
            in a group, or an option is out of range.

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
    rates = _named_rates(rate)
    cells = outcome_cells(
        frame[first].array, frame[second].array, missing=missing, names=(first, second)
    )
    warn_unscored(int(np.count_nonzero(cells == MISSING)), cells.size, stacklevel=2)
    clusters = cluster_codes(frame, cluster)
    pairs = None if pair_id is None else pd.factorize(frame[pair_id])[0].astype(np.int64)
    rows = []
    for inside, groups in _nested(group_positions(frame, keys)).items():
        for a, b in _couples(groups, reference):
            sides = [one[cells[one] != MISSING] for one in (groups[a], groups[b])]
            if pairs is not None:
                sides = _shared(sides, pairs, (a, b))
                if not len(sides[0]):
                    continue
            counts = _aligned(sides, cells, clusters)
            for name, statistic in rates.items():
                told = name if PAIRED_RATES.get(name) is statistic else statistic
                found = _contrast(counts[0], counts[1], told, margin, confidence_level)
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
    return {name: _statistic(name)[0] for name in column_names(rate)}


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


def _shared(
    sides: Sequence[npt.NDArray[np.intp]], pairs: Integers, names: tuple[object, object]
) -> list[npt.NDArray[np.intp]]:
    """Keep the rows of the pairs that both groups hold."""
    for side, name in zip(sides, names, strict=True):
        if np.unique(pairs[side]).size < side.size:
            raise ValueError(f"a pair stands more than once in group {name!r}: drop the duplicates")
    both = np.intersect1d(pairs[sides[0]], pairs[sides[1]])
    return [side[np.isin(pairs[side], both)] for side in sides]


def _aligned(
    sides: Sequence[npt.NDArray[np.intp]], cells: Codes, clusters: Integers
) -> list[Floats]:
    """Count the cells of both groups over the clusters of either."""
    distinct, codes = np.unique(clusters[np.concatenate(sides)], return_inverse=True)
    split = (codes[: len(sides[0])], codes[len(sides[0]) :])
    return [
        np.bincount(4 * of + cells[side], minlength=4 * distinct.size)
        .astype(np.float64)
        .reshape(-1, 4)
        for of, side in zip(split, sides, strict=True)
    ]


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
        "standard_error": found.standard_error,
        "degrees_of_freedom": found.degrees_of_freedom,
        "p_value": found.p_value,
        "margin": math.nan if found.margin is None else found.margin,
        "p_equivalent": found.p_equivalent,
        "n_a": found.n_a,
        "n_b": found.n_b,
        "n_clusters": found.n_clusters,
    }
