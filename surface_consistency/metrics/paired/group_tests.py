"""Difference of the means of two groups of rows, with its t interval over clusters."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from surface_consistency.metrics._groups import (
    check_frame,
    cluster_codes,
    group_positions,
    grouping_columns,
)
from surface_consistency.metrics._inputs import (
    MISSING,
    Flags,
    Floats,
    Integers,
    check_confidence_level,
    numeric_vector,
    verdict_codes,
)
from surface_consistency.metrics.uncertainty.cluster_bounds import ClusterT, Part, cluster_t

_COLUMNS: Final = (
    *("group_mean", "other_mean", "difference", "difference_low", "difference_high"),
    *("relative_difference", "p_value", "n_group", "n_other", "n_clusters", "not_inferred"),
)


def group_difference_by(
    frame: pd.DataFrame,
    *,
    value: str,
    group: str,
    by: str | Sequence[str] = (),
    strata: str | None = None,
    cluster: str | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Return the mean of the rows in a group minus the mean of the other rows, with its interval.

    The difference has a t interval over clusters, and the p-value comes from the same t.

    Args:
        frame: One row per unit, such as a pair of answers, with the columns named below.
        value: Column of numbers, such as the mechanistic similarity of a pair.
        group: Column that is True or 1 for rows in the group, such as aligned facts, and False or 0
            for the others.
        by: Columns of the groups; an empty tuple gives one row.
        strata: Column such as the model: rows are compared only with rows of the same value, so
            that differences in level between strata do not matter. None compares all rows.
        cluster: Column of dependent rows, such as the topic; None makes each row a separate
            cluster.
        confidence: Nominal coverage of the interval, in (0, 1).

    Returns:
        One row per group of `by`, sorted by label: the columns `by`, group_mean and other_mean,
        difference (group_mean - other_mean, or with strata the mean of the differences within
        them), difference_low and difference_high, relative_difference (the difference divided by
        the absolute other_mean), p_value (two-sided), n_group, n_other, n_clusters and not_inferred
        (why interval and p-value are NaN; otherwise empty).

    Raises:
        ColumnNotFoundError: If a named column is not in the frame; the message lists its columns.
        TypeError: If `frame` is not a DataFrame or a value is not a number.
        ValueError: If the frame is empty, a value, membership or label is missing, a value is
            infinite, a membership is not binary, or an option is out of range.

    Notes:
        With strata the difference is the mean of the differences within the strata that contain
        both kinds of rows, each weighted by n_group n_other / n of its stratum. This is the
        coefficient of the group in a least-squares regression with one intercept per stratum. Its
        interval treats these weights as fixed. Interval and p-value are NaN if the effective number
        of clusters of the group or of the other rows is below four, and if the values differ only
        between the groups, so that their spread is unknown. An other_mean of 0 gives a
        relative_difference of NaN. The order of the rows does not matter. Swapping the groups
        changes the sign of the difference. The paper reports p < 0.001 without the name of the
        test.

    References:
        SLAQ, arXiv 2510.11218, eq. 5 and figure 4.

    Examples:
        >>> import pandas as pd
        >>> values = [0.9, 0.8, 0.7, 0.6, 0.3, 0.2, 0.1, 0.0]
        >>> frame = pd.DataFrame({"similarity": values, "is_aligned": [1] * 4 + [0] * 4})
        >>> rows = group_difference_by(frame, value="similarity", group="is_aligned")
        >>> rows[["difference", "p_value"]].round(4).values.tolist()
        [[0.6, 0.0005]]
    """
    check_confidence_level(confidence)
    keys = grouping_columns(by, _COLUMNS)
    needed = [*keys, value, group, *filter(None, (strata, cluster))]
    check_frame(frame, needed, options="by, value, group, strata or cluster", row="row")
    numbers, codes = numeric_vector(frame[value].array, value), verdict_codes(frame[group], group)
    for name, absent in ((value, np.isnan(numbers)), (group, codes == MISSING)):
        if absent.any():
            raise ValueError(f"{name}[{int(np.argmax(absent))}] is missing: drop the row")
    clusters = cluster_codes(frame, cluster)
    of_stratum = np.zeros_like(clusters) if strata is None else cluster_codes(frame, strata)
    rows = [
        dict(zip(keys, key, strict=True))
        | _compared(
            numbers[places], codes[places] == 1, clusters[places], of_stratum[places], confidence
        )
        for key, places in group_positions(frame, keys).items()
    ]
    return pd.DataFrame(rows, columns=[*keys, *_COLUMNS])


def _compared(
    numbers: Floats, members: Flags, clusters: Integers, strata: Integers, confidence: float
) -> dict[str, object]:
    """Return the row of one group of `by`."""
    group_mean, other_mean = (
        float(numbers[side].mean()) if side.any() else math.nan for side in (members, ~members)
    )
    row: dict[str, object] = {
        "group_mean": group_mean,
        "other_mean": other_mean,
        "n_group": int(members.sum()),
        "n_other": int((~members).sum()),
        "n_clusters": np.unique(clusters).size,
    }
    clusters = np.unique(clusters, return_inverse=True)[1]
    sums = _cluster_sums(numbers, members, clusters, strata)
    if not sums.size:
        return row | {"not_inferred": "no stratum contains both kinds of rows"}
    inferred = mean_difference(sums)
    difference = float(inferred.value)
    low, high = map(float, inferred.bounds(confidence))
    return row | {
        "difference": difference,
        "difference_low": low,
        "difference_high": high,
        "relative_difference": difference / abs(other_mean) if other_mean else math.nan,
        "p_value": float(inferred.p_value()),
        "not_inferred": inferred.not_inferred,
    }


def _cluster_sums(numbers: Floats, members: Flags, clusters: Integers, strata: Integers) -> Floats:
    """Return sum and size of the group, and of the other rows, in each cluster, by stratum.

    The four columns of a stratum are adjacent; strata with only one kind of rows are omitted.
    """
    columns = []
    for stratum in range(int(strata.max()) + 1):
        group, other = (strata == stratum) & members, (strata == stratum) & ~members
        if group.any() and other.any():
            columns += [group * numbers, group, other * numbers, other]
    if not columns:
        return np.empty((0, 0))
    return np.column_stack([np.bincount(clusters, weights=column) for column in columns])


def mean_difference(sums: Floats) -> ClusterT:
    """Infer the mean of the group minus the mean of the other rows, within strata."""
    n_strata = sums.shape[-1] // 4
    # If there are several data sets, all have the weights of their pooled sizes.
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
