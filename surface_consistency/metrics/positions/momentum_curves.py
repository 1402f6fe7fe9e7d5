"""Momentum in long answers: accuracy after runs of correct or incorrect slots, with a null band.

Topics differ in difficulty, so correct slots follow correct slots even if no slot affects the next.
The null band contains the curves that are expected from this alone.
"""

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.errors import SurfaceConsistencyWarning
from surface_consistency.metrics._inputs import (
    MISSING,
    Codes,
    Floats,
    Integers,
    MissingPolicy,
    check_choice,
    check_n_resamples,
    warn_undefined,
    warn_unscored,
)
from surface_consistency.metrics.paired.paired_tables import CountRatio
from surface_consistency.metrics.positions._momentum_null import (
    MAX_PATTERN_SLOTS,
    STREAKS,
    null_by_moving,
    null_by_pattern,
    slopes,
    streak_counts,
)
from surface_consistency.metrics.positions.alignment import response_codes
from surface_consistency.metrics.positions.topic_layout import checked_orders
from surface_consistency.metrics.uncertainty.bootstrap import GroupValue, Statistic, group_values
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals

MomentumNull = Literal["topic", "topic-and-slot"]
"""Preserved by the null: number of correct slots per response, or also accuracy per slot."""


DEFAULT_N_NULL: Final = 2_499
"""Default number of draws, with which the smallest p-value of the band is 1 / 2,500."""


def _extreme_ranks(curves: Floats) -> Integers:
    """Rank curves by extreme rank length, the most extreme first; equal curves have the last rank.

    Curves have shape `(n_curves, n_points)`. The depth of a value is the smaller proportion of the
    curves that have a value at that point, itself included, that are at or beyond it on one side;
    it is 1 if the curve has no value there. Curves are compared by their smallest depths, then by
    the next ones.
    """
    depths = np.sort(np.stack([_depths(column) for column in curves.T], axis=1), axis=1)
    _, places, counts = np.unique(depths, axis=0, return_inverse=True, return_counts=True)
    return np.asarray(np.cumsum(counts)[places.ravel()])


def _depths(values: Floats) -> Floats:
    """Return the smaller proportion of values at or beyond each value; 1 for NaN."""
    ordered = np.sort(values[~np.isnan(values)])
    # Equal proportions may differ in the last bits.
    margin = 1e-12
    below = np.searchsorted(ordered, values + margin, side="right")
    above = ordered.size - np.searchsorted(ordered, values - margin, side="left")
    return np.where(np.isnan(values), 1.0, np.minimum(below, above) / max(ordered.size, 1))


def _envelope(observed: Floats, without: Floats, confidence: float) -> tuple[Floats, float]:
    """Return the band of the curves that are not significantly extreme, and the p-value of a curve.

    Args:
        observed: The curve, shape `(n_points,)`.
        without: Curves without momentum, shape `(n_null, n_points)`.
        confidence: Level of the band.

    Returns:
        Bounds of shape `(2, n_points)`, and the proportion of curves, the observed one among them,
        that are at least as extreme as it; NaN if it shares no point with another curve.
    """
    curves = np.vstack((observed, without))
    ranks = _extreme_ranks(curves)
    is_known = ~np.isnan(without).all(axis=0)
    central = curves[ranks >= (1.0 - confidence) * len(curves) - 1e-9]
    bounds = np.full((2, observed.size), np.nan)
    known = is_known & ~np.isnan(central).all(axis=0)
    bounds[:, known] = np.nanmin(central[:, known], axis=0), np.nanmax(central[:, known], axis=0)
    is_tested = (is_known & ~np.isnan(observed)).any()
    return bounds, float(ranks[0]) / len(curves) if is_tested else math.nan


def _points(
    streak: int, counts: Integers, rates: list[GroupValue], without: Floats, band: Floats
) -> pd.DataFrame:
    """Return the points of the curve after one kind of run, one row per length.

    `counts` has shape `(n_lengths, 2)`; null draws come before those axes.
    """
    null_shares = _shares(without)
    return pd.DataFrame(
        {
            "streak": streak,
            "length": np.arange(len(counts)),
            "n": counts[:, 0],
            "n_correct": counts[:, 1],
            "probability": _shares(counts.astype(np.float64)),
            "probability_low": [rate.low for rate in rates],
            "probability_high": [rate.high for rate in rates],
            "null_probability": [_mean(column) for column in null_shares.T],
            "null_probability_low": band[0],
            "null_probability_high": band[1],
        }
    )


def _slope_row(
    streak: int, counts: Integers, rate: GroupValue, without: Floats, confidence: float
) -> dict[str, object]:
    """Return the slope of the curve after one kind of run, and those without momentum."""
    slope, null_slopes = float(slopes(counts.astype(np.float64))), slopes(without)
    null_slope, (low, high) = _mean(null_slopes), _accepted(null_slopes, confidence)
    return {
        "streak": streak,
        "slope": slope,
        "slope_low": rate.low,
        "slope_high": rate.high,
        "null_slope": null_slope,
        "null_slope_low": low,
        "null_slope_high": high,
        "excess_slope": slope - null_slope,
        "excess_slope_low": slope - high,
        "excess_slope_high": slope - low,
        "p_value": _p_value(slope, null_slopes),
        "p_value_smallest": min(1.0, 2.0 / (1 + np.count_nonzero(~np.isnan(null_slopes)))),
    }


def _undefined_parts(points: pd.DataFrame, slope: Mapping[str, object]) -> list[str]:
    """Return the names of undefined (NaN) parts of a curve."""
    lengths, streak = points.loc[points["n"] == 0, "length"], slope["streak"]
    parts = [f"P(correct) after runs of {streak}s of length {', '.join(map(str, lengths))}"]
    if slope["slope"] != slope["slope"]:
        parts.append(f"the slope after runs of {streak}s")
    return parts if len(lengths) else parts[1:]


def _shares(counts: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(counts[..., 1] / counts[..., 0])


def _mean(values: Floats) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else math.nan


def _p_value(slope: float, null_slopes: Floats) -> float:
    """Return twice the smaller tail proportion of the null slopes, including the observed one."""
    defined = null_slopes[~np.isnan(null_slopes)]
    if math.isnan(slope) or not defined.size:
        return math.nan
    # Equal slopes may differ in the last bits.
    margin = 1e-12 * max(1.0, abs(slope))
    above = int(np.count_nonzero(defined >= slope - margin))
    below = int(np.count_nonzero(defined <= slope + margin))
    return min(1.0, 2 * (1 + min(above, below)) / (1 + defined.size))


def _accepted(null_slopes: Floats, confidence: float) -> tuple[float, float]:
    """Return the smallest and the largest slope whose `_p_value` is at least 1 - confidence."""
    ordered = np.sort(null_slopes[~np.isnan(null_slopes)])
    if not ordered.size:
        return math.nan, math.nan
    # Maximum number of draws at or beyond a slope for which its p-value is below 1 - confidence.
    most = math.ceil((1.0 - confidence) * (1 + ordered.size) / 2.0 - 1.0 - 1e-9) - 1
    return (-1.0, 1.0) if most < 0 else (float(ordered[most]), float(ordered[-1 - most]))


# With five random orders of five sub-questions, one topic in twelve has two equal orders.
_MANY_REPEATED = 0.1


def momentum(
    slots: npt.ArrayLike,
    *,
    orders: npt.ArrayLike | None = None,
    null: MomentumNull | None = None,
    missing: MissingPolicy = "raise",
    intervals: Intervals = DEFAULT_INTERVALS,
    n_null: int = DEFAULT_N_NULL,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return P(correct) of a slot given the run of correct, or incorrect, slots before it.

    The run before slot j is the longest sequence of slots that ends at j - 1 and has equal labels;
    its length is 0 if slot j - 1 has the other label. Slots from the second on are pooled over
    topics, permutations and positions.

    Args:
        slots: Correctness labels of the long answers in slot order, shape `(n_topics, n_slots)` or
            `(n_topics, n_permutations, n_slots)`: column j is slot j, see `reorder_to_slots`.
        orders: The sub-question in each slot, with the shape of `slots`; needed if a topic has
            several permutations. The null then permutes the sub-questions of a topic, in the same
            way in all of its responses, which preserves their dependence. None, for one response
            per topic, shuffles each response separately.
        null: "topic" preserves the number of correct slots of each response and shuffles their
            positions. "topic-and-slot" also preserves the accuracy of each slot, so that a decline
            of accuracy towards the end does not count as momentum; it assumes independent
            responses, so use it only if the orders of a topic differ. None means "topic" with more
            than 12 slots, or if a tenth of the responses repeat an order of their topic, otherwise
            "topic-and-slot". The result contains the choice.
        missing: "raise" raises an error if a label is missing; "drop" excludes responses with a
            missing label, with an `UnscoredWarning`.
        intervals: Options of the intervals; topics are the clusters. The null band has the same
            level, and its draws the same seed.
        n_null: Number of draws without momentum. A p-value is at least its `<p-value>_smallest`, so
            corrections for many tests need more draws.

    Returns:
        Two frames, the points of both curves and their slopes. The points have one row per kind and
        length of run: streak (1 for runs of correct slots, 0 for runs of incorrect ones), length (0
        if the slot before has the other label), n (slots after such a run), n_correct, probability
        with its bounds, null_probability (its mean without momentum) and the null band
        null_probability_low to null_probability_high. The band is simultaneous: without momentum,
        the probability that both curves are within it at all points equals the confidence level.
        The slopes have one row per kind: streak; slope, the change of P(correct) per further slot
        in the run, by least squares over all slots, with its bounds; null_slope, its mean without
        momentum, with the bounds of the slopes that are not significant ([-1, 1] with fewer than
        about 2 / (1 - confidence) draws); excess_slope (slope - null_slope; with momentum, positive
        after correct slots and negative after incorrect ones) with its bounds, which exclude 0
        exactly if p_value (two-sided, of excess_slope) is below 1 minus the confidence level. Both
        rows have null, n_topics, n_responses, n_missing (excluded responses), n_null, and
        band_p_value, the proportion of draws, including the data, that are at least as extreme as
        the data over all points of both curves (below 1 minus the confidence level if a point is
        outside the band; NaN if no run has a length that occurs in the draws). p_value_smallest and
        band_p_value_smallest are the smallest possible values for this number of draws: 2 / (1 +
        n), with n the draws whose slope is defined, and 1 / (1 + n_null).

    Raises:
        ValueError: If the shape is another, there are fewer than two slots, rows have unequal
            numbers of slots, a value is not a correctness label or (under "raise") missing, a row
            of `orders` does not contain each sub-question once, `orders` is None with several
            permutations, an option is out of range, or under "topic-and-slot" there are more than
            12 slots.
        TypeError: If `orders` or `n_null` are not integers.

    Notes:
        The probability is NaN for a length after which no slot follows, the slope if all runs have
        the same length, bounds if there is a single topic, and all of these if no response is
        complete; one `UndefinedMetricWarning` reports them. The order of topics and permutations
        does not matter, except for the random draws. Swapping correct and incorrect swaps the
        curves and changes each probability p to 1 - p.
        Without momentum, some point is outside the band with probability 1 - confidence; with
        pointwise bands it would be about a third. A curve within the band is not evidence of
        momentum, however steep it is. Draws are ordered by extreme rank length: by the proportion
        of draws at or beyond their most extreme point, on the smaller side; ties by their next
        point, and so on. If a length does not occur in some draws, only the other draws are
        compared at it, and a draw without it is not extreme there. Both nulls preserve effects on a
        complete response (all slots incorrect together), which therefore do not count as momentum.

        Responses to one topic in the same order tend to be correct in the same slots, whatever the
        model. "topic" with `orders` allows for this dependence. "topic-and-slot" does not: its band
        is then too narrow, and with five responses in one fixed order up to a fifth of the p-values
        is below 0.05. If a tenth of the responses or more repeat an order of their topic, a
        `SurfaceConsistencyWarning` reports it.

    References:
        SLAQ, arXiv 2510.11218, figure 3 and section 4.2. Miller and Sanjurjo, Econometrica 86,
        2018 (why runs of finite length need a permutation null). Myllymaki, Mrkvicka, Grabarnik,
        Seijo and Hahn, Journal of the Royal Statistical Society B 79, 2017 (rank envelopes). Rasch,
        Probabilistic Models, 1960 (the null of "topic-and-slot", given each response's number of
        correct slots).

    Examples:
        >>> slots = [[1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [1, 1, 1, 1, 0], [0, 0, 0, 0, 1]] * 25
        >>> points, slopes = momentum(slots)
        >>> points.loc[points["streak"] == 1, ["n", "probability"]].round(3).values.tolist()[:3]
        [[175.0, 0.286], [75.0, 1.0], [75.0, 1.0]]
        >>> (slopes["slope"] > slopes["null_slope_high"]).tolist()[0]
        True
    """
    n_null = check_n_resamples(n_null, "n_null")
    generator = intervals.generator()
    codes = response_codes(slots, "slots", missing=missing)
    places = None if orders is None else checked_orders(orders, slots=np.shape(slots))
    null = _chosen_null(null, places, codes.shape[2])
    if places is None and codes.shape[1] > 1:
        raise ValueError(
            f"orders must give the sub-question in each slot, because a topic has {codes.shape[1]} "
            "permutations, which share sub-questions: pass orders, with the shape of slots "
            "(`topic_arrays` returns both), or one response per topic"
        )
    complete = (codes != MISSING).all(axis=2)
    verdicts = codes[complete]
    n_complete = len(verdicts)
    warn_unscored(complete.size - n_complete, complete.size, what="responses", stacklevel=2)
    _, topics = np.unique(np.nonzero(complete)[0], return_inverse=True)
    by_topic = streak_counts(verdicts, topics, int(topics.max(initial=-1)) + 1)
    rates = group_values(
        by_topic.reshape(len(by_topic), math.prod(by_topic.shape[1:])).astype(np.float64),
        run_statistics(codes.shape[2]),
        replace(intervals, seed=generator),
    )
    complete_orders = None if places is None else places[complete]
    without = _null_counts(verdicts, topics, complete_orders, null, n_null, generator)
    counts = by_topic.sum(axis=0)
    bands, band_p_value = _envelope(
        _shares(counts.astype(np.float64)).ravel(),
        _shares(without).reshape(n_null, -1),
        intervals.confidence,
    )
    bands = bands.reshape(2, len(STREAKS), -1)
    points, rows, parts = [], [], []
    for kind, streak in enumerate(STREAKS):
        of_lengths = [rates[f"{kind} {length}"] for length in range(counts.shape[1])]
        drawn = without[:, kind]
        points.append(_points(streak, counts[kind], of_lengths, drawn, bands[:, kind]))
        rows.append(
            _slope_row(streak, counts[kind], rates[f"{kind} slope"], drawn, intervals.confidence)
        )
        parts += _undefined_parts(points[-1], rows[-1])
    if len(by_topic) == 1:
        parts.append("all intervals (one topic)")
    elif not len(by_topic):
        parts = ["all values (no response has a correctness label in every slot)"]
    if parts:
        warn_undefined(f"undefined (NaN): {'; '.join(parts)}", stacklevel=2)
    return pd.concat(points, ignore_index=True), pd.DataFrame(rows).assign(
        null=null,
        n_topics=len(by_topic),
        n_responses=len(verdicts),
        n_missing=complete.size - len(verdicts),
        band_p_value=band_p_value,
        band_p_value_smallest=1.0 / (1 + n_null),
        n_null=n_null,
    )


def _chosen_null(null: MomentumNull | None, orders: Integers | None, n_slots: int) -> MomentumNull:
    """Choose the null; raise an error if it is unknown or not possible, and warn if unsuitable."""
    if n_slots < 2:
        raise ValueError("slots must have at least two slots per response")
    check_choice(null or "topic", ("topic", "topic-and-slot"), "null")
    if null == "topic-and-slot" and n_slots > MAX_PATTERN_SLOTS:
        raise ValueError(
            f"null='topic-and-slot' supports at most {MAX_PATTERN_SLOTS} slots, got {n_slots}: "
            "use null='topic'"
        )
    n_responses = 1 if orders is None else orders.shape[0] * orders.shape[1]
    # Responses with the same order as another of their topic are dependent.
    n_repeated = (
        0 if orders is None else n_responses - sum(len(np.unique(o, axis=0)) for o in orders)
    )
    is_repeated = n_repeated >= _MANY_REPEATED * n_responses
    if null is None:
        return "topic" if is_repeated or n_slots > MAX_PATTERN_SLOTS else "topic-and-slot"
    if null == "topic-and-slot" and is_repeated:
        warnings.warn(
            f"{n_repeated} of {n_responses} responses repeat an order of their topic, "
            "but null='topic-and-slot' assumes independent responses, so that its band is too "
            "narrow: use null='topic'",
            SurfaceConsistencyWarning,
            stacklevel=3,
        )
    return null


def run_statistics(n_lengths: int) -> dict[str, Statistic]:
    """Return P(correct) by kind of run and length, and the slopes, from flattened run counts."""
    shape = (len(STREAKS), n_lengths, 2)
    unit = np.eye(math.prod(shape), dtype=np.int64).reshape(*shape, -1)
    statistics: dict[str, Statistic] = {}
    for kind in range(len(STREAKS)):
        for length in range(n_lengths):
            n, n_correct = (tuple(row.tolist()) for row in unit[kind, length])
            statistics[f"{kind} {length}"] = CountRatio(numerator=n_correct, denominator=n)
        statistics[f"{kind} slope"] = partial(_slope_of, kind, shape)
    return statistics


def _slope_of(kind: int, shape: tuple[int, ...], sums: Floats) -> Floats:
    """Return the slope of one kind of run from flattened run counts."""
    return slopes(np.reshape(sums, (*np.shape(sums)[:-1], *shape))[..., kind, :, :])


def _null_counts(
    verdicts: Codes,
    topics: Integers,
    orders: Integers | None,
    null: MomentumNull,
    n_null: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the run counts of draws without momentum."""
    if not len(verdicts):
        return np.zeros((n_null, len(STREAKS), verdicts.shape[1], 2))
    if null == "topic-and-slot":
        return null_by_pattern(verdicts, n_null, rng, keep_slots=True)
    if orders is not None:
        return null_by_moving(verdicts, topics, orders, n_null, rng)
    n_responses, n_slots = verdicts.shape
    if n_slots <= MAX_PATTERN_SLOTS:
        return null_by_pattern(verdicts, n_null, rng, keep_slots=False)
    own_topics = np.arange(n_responses)
    in_order = np.broadcast_to(np.arange(n_slots), verdicts.shape)
    return null_by_moving(verdicts, own_topics, in_order, n_null, rng)
