"""Accuracy by slot of the long query, for counter-balanced orders only.

With one fixed order, or orders in which some sub-questions occur more often in some slots, the
effect of the slot cannot be separated from the difficulty of the sub-questions in it.
"""

import math

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics import _inputs
from surface_consistency.metrics.paired.paired_tables import CountRatio
from surface_consistency.metrics.positions.alignment import response_codes
from surface_consistency.metrics.positions.topic_layout import checked_orders, slot_counts
from surface_consistency.metrics.uncertainty.bootstrap import group_values
from surface_consistency.metrics.uncertainty.cluster_bounds import Part, ShareStatistic, of_shares
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals


def position_curve(
    slots: npt.ArrayLike,
    orders: npt.ArrayLike,
    *,
    missing: _inputs.MissingPolicy = "raise",
    intervals: Intervals = DEFAULT_INTERVALS,
) -> pd.DataFrame:
    """Return the accuracy of long answers in each slot, and its trend over slots.

    Args:
        slots: Correctness labels in slot order, shape `(n_topics, n_permutations, n_slots)`: see
            `reorder_to_slots`.
        orders: The sub-question (0 to `n_slots` - 1) in each slot, with the shape of `slots`.
            Within a topic each sub-question must be in each slot equally often.
        missing: "raise" raises an error if a label is missing; "drop" excludes each sub-question
            with a missing label from all orders of its topic, so that the orders remain balanced,
            with an `UnscoredWarning`.
        intervals: Options of the intervals; topics are the clusters.

    Returns:
        One row per slot: slot (from 1), n (answers in it), n_correct, accuracy, accuracy_low and
        accuracy_high; and in every row slope (change of accuracy per slot, by least squares) and
        last_difference (accuracy in the last slot minus that in the first), each with `_low`,
        `_high` and `_p_value` (two-sided, from the same statistic; NaN with resamples), n_topics,
        n_missing (excluded sub-questions) and not_inferred (why the slope has no bounds; otherwise
        empty).

    Raises:
        ValueError: If the orders are not counter-balanced (the message names a topic, the
            sub-question and its slots), shapes differ, or a value is not a correctness label or
            (under "raise") missing.
        TypeError: If `orders` are not integers.

    Notes:
        In balanced orders every slot contains the same facts, so slots differ only in position.
        Interval and p-value of slope and difference come from the same t over topics. Accuracy
        decreases significantly over slots if the interval of the slope is below 0, and from the
        first to the last slot if the interval of last_difference is below 0. With fewer than four
        topics (with resamples, one topic) bounds are NaN, with a single slot the slope, and all
        values if no sub-question is complete, with an `UndefinedMetricWarning`. The order of topics
        and permutations does not matter.

    References:
        SLAQ, arXiv 2510.11218, section 4.1: five random orders per topic, which need not be
        balanced; its third version reports no position effect for that reason.

    Examples:
        >>> orders = [[[0, 1], [1, 0]]] * 40
        >>> slots = [[[1, 0], [1, 1]], [[1, 0], [0, 0]]] * 20
        >>> rows = position_curve(slots, orders)
        >>> rows[["slot", "accuracy", "slope"]].values.tolist()
        [[1.0, 0.75, -0.5], [2.0, 0.25, -0.5]]
        >>> (rows["last_difference_high"] < 0).all(), (rows["last_difference_p_value"] < 0.05).all()
        (np.True_, np.True_)
    """
    right, n_answers, n_missing = _by_topic(slots, orders, missing)
    totals = np.column_stack((right, n_answers)).astype(np.float64)
    n_slots = right.shape[1]
    accuracies, slope = slot_statistics(n_slots)
    last = np.eye(n_slots)[-1] - np.eye(n_slots)[0]
    contrasts = {"slope": slope, "last_difference": slot_contrast(last)}
    rates = group_values(
        totals,
        {**{str(slot): rate for slot, rate in enumerate(accuracies)}, **contrasts},
        intervals,
    )
    _warn_undefined(rates["0"].not_inferred, n_slots, len(right))
    whole: dict[str, object] = {"not_inferred": rates["slope"].not_inferred}
    for name in contrasts:
        of_all = rates[name]
        whole |= {name: of_all.value, f"{name}_low": of_all.low, f"{name}_high": of_all.high}
        whole[f"{name}_p_value"] = of_all.p_value
    whole |= {"n_topics": len(right), "n_missing": n_missing}
    points = [rates[str(slot)] for slot in range(n_slots)]
    return pd.DataFrame(
        {
            "slot": np.arange(1, n_slots + 1),
            "n": int(n_answers.sum()),
            "n_correct": right.sum(axis=0),
            "accuracy": [point.value for point in points],
            "accuracy_low": [point.low for point in points],
            "accuracy_high": [point.high for point in points],
            **whole,
        }
    )


def slot_statistics(n_slots: int) -> tuple[list[CountRatio], ShareStatistic]:
    """Return accuracy in each slot, and its slope by least squares, NaN for a single slot.

    Both use the sums of correct answers in each slot and, in the last column, of all answers.
    """
    below = (*[0] * n_slots, 1)
    accuracies = [
        CountRatio(
            numerator=tuple(int(column == slot) for column in range(n_slots + 1)), denominator=below
        )
        for slot in range(n_slots)
    ]
    centred = np.arange(n_slots) - (n_slots - 1) / 2.0
    return accuracies, slot_contrast(np.asarray(centred / (float(centred @ centred) or math.nan)))


def slot_contrast(weights: _inputs.Floats) -> ShareStatistic:
    """Return a statistic: the weighted sum of the accuracies in the slots, from the same sums."""
    ends = (float(weights[weights < 0.0].sum()), float(weights[weights > 0.0].sum()))

    def contrast(sums: _inputs.Floats) -> _inputs.Floats:
        """Compute the weighted sum."""
        return np.asarray(sums[..., :-1] / sums[..., -1:] @ weights)

    # A row has an event in each slot.
    part = Part(1.0, (*weights.tolist(), 0.0), (*[0.0] * len(weights), 1.0), *ends, events=0.0)
    return of_shares(part)(contrast)


def _by_topic(
    slots: npt.ArrayLike, orders: npt.ArrayLike, missing: _inputs.MissingPolicy
) -> tuple[_inputs.Integers, _inputs.Integers, int]:
    """Count correct answers by topic and slot, answers per slot, and excluded sub-questions.

    A sub-question with a missing label in one order is excluded from all of them, so that the rest
    of the topic remains balanced. Topics without any other sub-question are not counted.
    """
    codes = response_codes(slots, "slots", missing=missing)
    places = checked_orders(orders, slots=np.shape(slots))
    counts = slot_counts(places)
    uneven = counts.min(axis=2) != counts.max(axis=2)
    if uneven.any():
        topic, question = (int(index) for index in np.argwhere(uneven)[0])
        times = counts[topic, question]
        raise ValueError(
            f"orders are not counter-balanced: in topic {topic} sub-question {question} is "
            f"{int(times.max())} times in slot {int(times.argmax()) + 1} and {int(times.min())} "
            f"times in slot {int(times.argmin()) + 1} ({int(uneven.any(axis=1).sum())} of "
            f"{len(counts)} topics are uneven), so position and difficulty are confounded: "
            "query each topic in the orders of a Latin square"
        )
    n_topics, n_permutations, n_slots = codes.shape
    gaps = np.zeros((n_topics, n_slots), dtype=bool)
    topics = np.broadcast_to(np.arange(n_topics)[:, None, None], codes.shape)
    absent = codes == _inputs.MISSING
    gaps[topics[absent], places[absent]] = True
    complete = ~np.take_along_axis(gaps[:, None, :], places, axis=2)
    n_answers = (~gaps).sum(axis=1) * (n_permutations // n_slots)
    n_missing = int(gaps.sum())
    _inputs.warn_unscored(n_missing, gaps.size, what="sub-questions", stacklevel=3)
    right = ((codes == 1) & complete).sum(axis=1, dtype=np.int64)
    some = n_answers > 0
    return right[some], n_answers[some].astype(np.int64), n_missing


def _warn_undefined(not_inferred: str, n_slots: int, n_topics: int) -> None:
    what = "the intervals" if n_topics else "all values"
    reasons = [f"{what}, {not_inferred}"] if not_inferred else []
    if n_slots == 1:
        reasons.append("the slope, as there is only one slot")
    if reasons:
        _inputs.warn_undefined(f"undefined (NaN): {'; '.join(reasons)}", stacklevel=3)
