"""Agreement of short and long answers to the same sub-questions, as in SLAQ."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics import _inputs
from surface_consistency.metrics._groups import (
    bound_columns,
    check_frame,
    cluster_codes,
    counted_cells,
    group_frame,
    group_positions,
    grouping_columns,
)
from surface_consistency.metrics.paired.paired_tables import CountRatio
from surface_consistency.metrics.uncertainty.bootstrap import cluster_sums
from surface_consistency.metrics.uncertainty.cluster_bounds import cluster_ts
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals

_TWO_AXES = "(n_topics, n_slots)"
_THREE_AXES = "(n_topics, n_permutations, n_slots)"


def response_codes(
    values: npt.ArrayLike, name: str, *, missing: _inputs.MissingPolicy
) -> _inputs.Codes:
    """Read labels of long responses; one response per topic counts as one permutation."""
    codes = _codes(values, name, {2: _TWO_AXES, 3: _THREE_AXES}, missing)
    return codes[:, None, :] if codes.ndim == 2 else codes


def _codes(
    values: npt.ArrayLike, name: str, shapes: dict[int, str], missing: _inputs.MissingPolicy
) -> _inputs.Codes:
    """Map labels to codes; errors name topic and slot of an invalid or missing value."""
    _inputs.check_missing(missing)
    array = _array(values, name, shapes)
    rows = array.reshape(-1, array.shape[-1])
    places = (", ".join(map(str, place)) for place in np.ndindex(array.shape[:-1]))
    codes = np.array(
        [
            _inputs.verdict_codes(row, f"{name}[{place}]")
            for row, place in zip(rows, places, strict=True)
        ]
        if array.dtype.kind == "O" or ((array != 0) & (array != 1) & (array == array)).any()
        else np.where(array != array, _inputs.MISSING, array == 1),
        dtype=np.int8,
    ).reshape(array.shape)
    absent = codes == _inputs.MISSING
    if missing == "raise" and absent.any():
        label = ", ".join(str(int(index)) for index in np.argwhere(absent)[0])
        raise ValueError(
            f"{name}[{label}] has no label ({int(absent.sum())} of {codes.size} are "
            "missing): score the answers, or pass missing='drop' to exclude them"
        )
    return codes


def _array(values: npt.ArrayLike, name: str, shapes: dict[int, str]) -> npt.NDArray[np.generic]:
    """Return an array of numbers, or of objects if the input has mixed types."""
    expected = " or ".join(shapes.values())
    values = _inputs.plain(values)
    if isinstance(values, np.ma.MaskedArray):
        # `tolist` returns None for masked entries; `asarray` would return the values below them.
        values = values.tolist()
    array: npt.NDArray[np.generic]
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"{name} must have the same number of slots in every row, shape {expected}"
        ) from error
    if array.dtype.kind not in "biuf":
        # Rebuilt from the input, because `asarray` converts a list of mixed types to strings.
        array = np.asarray(values, dtype=object)
    if array.ndim not in shapes:
        raise ValueError(f"{name} must have shape {expected}; got {array.shape}")
    if 0 in array.shape:
        raise ValueError(f"{name} is empty, shape {array.shape}: it needs at least one label")
    return array


def topic_counts(
    short: npt.ArrayLike, long: npt.ArrayLike, *, missing: _inputs.MissingPolicy
) -> npt.NDArray[np.int64]:
    """Count the pairs of a short and a long answer in each topic, shape `(n_topics, 4)`.

    The columns are both correct, short only, long only, neither. `short` has shape
    `(n_topics, n_slots)`, `long` that or `(n_topics, n_permutations, n_slots)`, with sub-question k
    in column k.
    """
    short_verdicts = _codes(short, "short", {2: _TWO_AXES}, missing)
    long_verdicts = response_codes(long, "long", missing=missing)
    n_topics, _, n_slots = long_verdicts.shape
    if short_verdicts.shape != (n_topics, n_slots):
        raise ValueError(
            "short and long must have the same topics and sub-questions: got "
            "{} topics of {} slots".format(*short_verdicts.shape)
            + f" and {n_topics} topics of {n_slots} slots"
        )
    paired = np.broadcast_to(short_verdicts[:, None, :], long_verdicts.shape)
    scored = (paired != _inputs.MISSING) & (long_verdicts != _inputs.MISSING)
    right = (paired == 1, long_verdicts == 1)
    cells = (right[0] & right[1], right[0] & ~right[1], ~right[0] & right[1], ~right[0] & ~right[1])
    counts = np.column_stack([(cell & scored).sum(axis=(1, 2)) for cell in cells]).astype(np.int64)
    _inputs.warn_unscored(int(scored.size - counts.sum()), scored.size, stacklevel=3)
    return counts


SCORES: Mapping[str, CountRatio] = MappingProxyType(
    {
        "short_accuracy": CountRatio(numerator=(1, 1, 0, 0), denominator=(1, 1, 1, 1)),
        "long_accuracy": CountRatio(numerator=(1, 0, 1, 0), denominator=(1, 1, 1, 1)),
        "accuracy_difference": CountRatio(numerator=(0, -1, 1, 0), denominator=(1, 1, 1, 1)),
        "alignment": CountRatio(numerator=(1, 0, 0, 1), denominator=(1, 1, 1, 1)),
        "signed_alignment": CountRatio(numerator=(1, 0, 0, -1), denominator=(1, 1, 1, 1)),
    }
)
"""The five scores by name, from the proportions of the four cells per topic, summed over topics."""


_NO_PAIR = "no pair of a short and a long answer has both correctness labels"


def topic_shares(counts: npt.NDArray[np.int64]) -> _inputs.Floats:
    """Return the proportions of the four cells in each topic with a pair."""
    n_pairs = counts.sum(axis=1)
    if not n_pairs.any():
        raise ValueError(_NO_PAIR)
    return np.asarray(counts[n_pairs > 0] / n_pairs[n_pairs > 0, None])


def alignment(
    short: npt.ArrayLike,
    long: npt.ArrayLike,
    topics: Iterable[Hashable] | None = None,
    *,
    missing: _inputs.MissingPolicy = "raise",
) -> float:
    """Return Align, the proportion of equal labels of short and long answers, a mean over topics.

    Args:
        short: Correctness labels of the short answers, shape `(n_pairs,)`, one per sub-question and
            order of the long query.
        long: Labels of the same sub-questions in the long answers.
        topics: Topic of each pair, for the mean over topics of the paper; None pools all pairs as
            one topic.
        missing: "raise" raises an error if a label is missing; "drop" excludes such pairs, with an
            `UnscoredWarning`.

    Returns:
        The mean over topics of the proportion of pairs with equal labels, in [0, 1].

    Raises:
        ValueError: If lengths differ, a value is not a correctness label, or a topic is missing.

    Notes:
        The result is NaN, with an `UndefinedMetricWarning`, if no pair has both labels.
        The scored pairs of a topic have equal weights. The pooled proportion differs from the mean
        over topics if topics have different numbers of scored pairs. The order of the pairs does
        not matter. For intervals and groups use `alignment_by`.

    References:
        SLAQ, arXiv 2510.11218, eq. 3 and figure 2 ("average over topics").

    Examples:
        >>> alignment([1, 1, 0, 0, 1], [1, 0, 0, 0, 1])
        0.8
    """
    return _mean_score("alignment", short, long, topics, missing)


def signed_alignment(
    short: npt.ArrayLike,
    long: npt.ArrayLike,
    topics: Iterable[Hashable] | None = None,
    *,
    missing: _inputs.MissingPolicy = "raise",
) -> float:
    """Return signed Align, proportion both correct minus both incorrect, averaged over topics.

    Args:
        short: As in `alignment`.
        long: As in `alignment`.
        topics: As in `alignment`.
        missing: As in `alignment`.

    Returns:
        The mean over topics of the mean of A_k, which is 1 if both answers are correct, -1 if both
        are incorrect and 0 if they differ; in [-1, 1]. It equals F_S + F_L - 1.

    Raises:
        ValueError: As in `alignment`.

    Notes:
        As in `alignment`: without `topics`, the pooled score differs from the paper's mean over
        topics if topics have different numbers of scored pairs.

    References:
        SLAQ, arXiv 2510.11218, eq. 4 and figure 2c ("average over topics").

    Examples:
        >>> signed_alignment([1, 1, 0, 0, 1], [1, 0, 0, 0, 1])
        0.0
    """
    return _mean_score("signed_alignment", short, long, topics, missing)


def _mean_score(
    name: str,
    short: npt.ArrayLike,
    long: npt.ArrayLike,
    topics: Iterable[Hashable] | None,
    missing: _inputs.MissingPolicy,
) -> float:
    """Return the mean over topics of a score."""
    cells = _inputs.outcome_cells(short, long, missing=missing, names=("short", "long"))
    labels = np.zeros(cells.size, dtype=np.int64)
    if topics is not None:
        labels = _inputs.label_codes(topics, cells.size, "topics", row="pair")
    scored = cells != _inputs.MISSING
    _inputs.warn_unscored(int((~scored).sum()), cells.size, stacklevel=3)
    sums = cluster_sums(np.eye(4)[cells[scored]], labels[scored])
    if not len(sums):
        _inputs.warn_undefined(f"the score is undefined (NaN): {_NO_PAIR}", stacklevel=3)
        return math.nan
    return float(SCORES[name](sums).mean())


_COLUMNS: Final = (
    *("n_topics", "n", "n_clusters", "few_clusters", "n_missing", "n_undefined", "not_inferred"),
    *(*bound_columns(SCORES), "accuracy_difference_p_value"),
)


def _means(
    units: _inputs.Integers, rows: _inputs.Floats
) -> tuple[_inputs.Integers, _inputs.Floats]:
    """Return the distinct units in order, and the mean row of each."""
    distinct, codes = np.unique(units, return_inverse=True)
    return distinct, cluster_sums(rows, codes) / np.bincount(codes)[:, None]


def alignment_by(
    frame: pd.DataFrame,
    *,
    by: str | Sequence[str] = (),
    short: str = "first_correct",
    long: str = "second_correct",
    topic: str = "topic_id",
    permutation: str | None = None,
    cluster: str | None = None,
    intervals: Intervals = DEFAULT_INTERVALS,
    missing: _inputs.MissingPolicy = "drop",
) -> pd.DataFrame:
    """Return F_S, F_L, Align and signed Align of each group, means over topics, with intervals.

    With S_k and L_k the correctness labels of sub-question k of N in a topic: F_S = mean of S_k,
    F_L = mean of L_k, Align = proportion of k with S_k = L_k, and signed Align = mean of A_k, which
    is 1 if both are correct, -1 if both are incorrect and 0 if they differ.

    Args:
        frame: One row per sub-question and order of the long query, with the columns named below.
        by: Columns of the groups, such as the model; an empty tuple gives one row.
        short: Column of correctness labels of the short answers: True or False, 1 or 0, None or
            NaN.
        long: Column of labels of the same sub-questions in the long answers.
        topic: Column of topics, over which scores are averaged.
        permutation: Column of the order of the long query. Each order then has equal weight within
            its topic; None gives pairs equal weight, which makes a difference only if pairs are
            missing.
        cluster: Column of dependent topics, the same in all rows of a topic; None for the topic.
        intervals: Options of the intervals; each group derives its own seed.
        missing: "drop" excludes pairs without a label, with a count in `n_missing` and an
            `UnscoredWarning`; "raise" raises an error.

    Returns:
        One row per group, sorted by label, with the columns `by`; n_topics (with a scored pair), n
        (scored pairs), n_clusters, few_clusters, n_missing, n_undefined and not_inferred;
        `<score>`, `<score>_low` and `<score>_high` for short_accuracy (F_S), long_accuracy (F_L),
        accuracy_difference (F_L - F_S), alignment and signed_alignment; and
        accuracy_difference_p_value, from the same t as the interval (NaN with resamples).

    Raises:
        ColumnNotFoundError: If a named column is not in the frame; the message lists its columns.
        TypeError: If `frame` is not a DataFrame.
        ValueError: If the frame is empty, a label is not binary or (under "raise") missing, a topic
            is missing, or an option is out of range.

    Notes:
        Scores are averaged over the orders of a long query within a topic, then over topics. The
        scored pairs of a topic have equal weights. signed Align = F_S + F_L - 1. Undefined results,
        as for fewer than four topics, are NaN; one `UndefinedMetricWarning` lists them all.

    References:
        SLAQ, arXiv 2510.11218, eqs. 1 to 4 and figure 2.

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"topic_id": [0] * 5 + [1] * 5,
        ...     "first_correct": [1, 1, 0, 0, 1] + [0, 0, 0, 1, 0],
        ...     "second_correct": [1, 0, 0, 0, 1] + [0, 0, 0, 0, 0]})
        >>> rows = alignment_by(pd.concat([frame.assign(topic_id=frame["topic_id"] + 2 * k)
        ...                                for k in range(50)]))
        >>> rows[["alignment", "signed_alignment"]].round(2).values.tolist()
        [[0.8, -0.4]]
    """
    keys = grouping_columns(by, _COLUMNS)
    needed = [*keys, short, long, topic, *filter(None, (permutation, cluster))]
    check_frame(frame, needed, options="by, short, long, topic, permutation or cluster")
    cells = _inputs.outcome_cells(
        frame[short].array, frame[long].array, missing=missing, names=(short, long)
    )
    topics, clusters = cluster_codes(frame, topic), cluster_codes(frame, cluster or topic)
    orders = None if permutation is None else cluster_codes(frame, permutation)
    if pd.Series(clusters).groupby(topics).nunique().gt(1).any():
        raise ValueError(f"a topic belongs to more than one cluster of column {cluster!r}")
    _inputs.warn_unscored(int((cells == _inputs.MISSING).sum()), cells.size, stacklevel=2)

    def summed(places: npt.NDArray[np.intp]) -> tuple[dict[str, object], _inputs.Floats]:
        """Return the counts of a group, and the proportions of the cells in each topic."""
        row, _ = counted_cells(cells[places], topics[places], ("",) * 4)
        scored = places[cells[places] != _inputs.MISSING]
        units, shares = topics[scored], np.eye(4)[cells[scored]]
        if orders is not None:
            units, shares = _means(topics[scored] * len(frame) + orders[scored], shares)
            units //= len(frame)
        units, shares = _means(units, shares)
        n_topics = len(shares)
        first = np.unique(topics[scored], return_index=True)[1]
        shares = cluster_sums(shares, clusters[scored][first])
        t = cluster_ts(SCORES, shares).get("accuracy_difference") if len(shares) else None
        p_value = float(t.p_value()) if t is not None and intervals.method == "auto" else math.nan
        row |= {"n_topics": n_topics, "n_clusters": len(shares)}
        return row | {"accuracy_difference_p_value": p_value}, shares

    return group_frame(
        group_positions(frame, keys), keys, SCORES, summed, columns=_COLUMNS, intervals=intervals
    )
