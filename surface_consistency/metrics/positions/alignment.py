"""Alignment of short and long answers: the four scores of SLAQ, by topic and over topics."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import (
    MISSING,
    Codes,
    Floats,
    MissingPolicy,
    check_missing,
    verdict_codes,
    warn_undefined,
    warn_unscored,
)
from surface_consistency.metrics.paired.paired_tables import CountRatio, PairedTable, table_of
from surface_consistency.metrics.uncertainty.bootstrap import group_values, values_and_intervals
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Interval, Intervals

_TWO_AXES = "(n_topics, n_slots)"
_THREE_AXES = "(n_topics, n_permutations, n_slots)"


def response_codes(values: npt.ArrayLike, name: str, *, missing: MissingPolicy) -> Codes:
    """Read verdicts of long responses; one response a topic counts as one permutation."""
    codes = _codes(values, name, {2: _TWO_AXES, 3: _THREE_AXES}, missing)
    return codes[:, None, :] if codes.ndim == 2 else codes


def _codes(
    values: npt.ArrayLike, name: str, shapes: dict[int, str], missing: MissingPolicy
) -> Codes:
    """Map verdicts to codes, naming topic and slot of what is no verdict, or is not there."""
    check_missing(missing)
    array = _array(values, name, shapes)
    rows = array.reshape(-1, array.shape[-1])
    places = (", ".join(map(str, place)) for place in np.ndindex(array.shape[:-1]))
    codes = np.array(
        [verdict_codes(row, f"{name}[{place}]") for row, place in zip(rows, places, strict=True)]
        if array.dtype.kind == "O" or ((array != 0) & (array != 1) & (array == array)).any()
        else np.where(array != array, MISSING, array == 1),
        dtype=np.int8,
    ).reshape(array.shape)
    absent = codes == MISSING
    if missing == "raise" and absent.any():
        label = ", ".join(str(int(index)) for index in np.argwhere(absent)[0])
        raise ValueError(
            f"{name}[{label}] has no verdict (in all {int(absent.sum())} of {codes.size} are "
            "missing): judge them, or pass missing='drop' to leave them out"
        )
    return codes


def _array(values: npt.ArrayLike, name: str, shapes: dict[int, str]) -> npt.NDArray[np.generic]:
    """Return an array of numbers, or of objects where the input is not of one kind."""
    expected = " or ".join(shapes.values())
    if isinstance(values, np.ma.MaskedArray):
        # `tolist` turns masked entries into None, where `asarray` would lay them bare.
        values = values.tolist()
    array: npt.NDArray[np.generic]
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"{name} must have the same number of slots in every row, shape {expected}"
        ) from error
    if array.dtype.kind not in "biuf":
        # Built anew from the input: a list that mixes types has become all strings by now.
        array = np.asarray(values, dtype=object)
    if array.ndim not in shapes:
        raise ValueError(f"{name} must have shape {expected}; got {array.shape}")
    if 0 in array.shape:
        raise ValueError(f"{name} is empty, shape {array.shape}: there is nothing to score")
    return array


# What both, short only, long only and neither add to F_S, F_L, Align and signed Align.
_SCORES = np.array([[1, 1, 1, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, -1]])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TopicAlignmentResult:
    """Result of `topic_alignment`: one value a topic, in the order of the topics."""

    short_accuracy: npt.NDArray[np.float64]
    """F_S, in [0, 1]; NaN for a topic without a scored pair."""
    long_accuracy: npt.NDArray[np.float64]
    """F_L, averaged over permutations, in [0, 1]."""
    alignment: npt.NDArray[np.float64]
    """Share of pairs with equal verdicts, in [0, 1]."""
    signed_alignment: npt.NDArray[np.float64]
    """Both right less both wrong, in [-1, 1]."""
    n_pairs: npt.NDArray[np.int64]
    """Scored pairs of a short and a long answer; `n_slots` times `n_permutations` at most."""
    table: PairedTable
    """All scored pairs, the short answer first."""
    n_missing: int
    """Pairs that lacked a verdict and were left out."""


def topic_alignment(
    short: npt.ArrayLike, long: npt.ArrayLike, *, missing: MissingPolicy = "raise"
) -> TopicAlignmentResult:
    """Score short against long answers within each topic.

    With S_k and L_k the verdicts on sub-question k of N: F_S = mean of S_k, F_L = mean of L_k,
    Align = share of k with S_k = L_k, and signed Align = mean of A_k, which is 1 when both are
    right, -1 when both are wrong and 0 when they differ.

    Args:
        short: Verdicts on the short answers, shape `(n_topics, n_slots)`, column k being
            sub-question k: True or False, 1 or 0, and None or NaN where an answer was not judged.
        long: Verdicts on the same sub-questions in the long answers, shape `(n_topics, n_slots)`,
            or `(n_topics, n_permutations, n_slots)` where the long query was asked with its
            sub-questions in several orders. Column k is sub-question k, whatever slot it stood in:
            see `reorder_to_questions` for verdicts in slot order.
        missing: "raise" refuses missing verdicts; "drop" leaves out each pair of a short and a long
            answer that lacks one, with an `UnscoredWarning`.

    Returns:
        The four scores of each topic, averaged over its permutations, and the table of all pairs.

    Raises:
        ValueError: When shapes do not fit each other, rows have unequal numbers of slots, an input
            is empty, a value is no verdict, or a verdict is missing under "raise".

    Notes:
        A topic without a scored pair scores NaN. With all verdicts there, averaging over
        permutations first or last is the same; under "drop" each scored pair of a topic has equal
        weight, and F_S is over the pairs that F_L is over. The order of topics, permutations and
        sub-questions does not matter. Signed Align = F_S + F_L - 1 always. Swapping the inputs
        swaps F_S and F_L and changes nothing else, where both have one answer a sub-question.

    References:
        SLAQ, arXiv 2510.11218: alignment eq. 1, F_S and F_L eq. 2, Align eq. 3, signed Align eq. 4.

    Examples:
        >>> scores = topic_alignment([[1, 1, 0, 0, 1]], [[1, 0, 0, 0, 1]])
        >>> float(scores.alignment[0]), float(scores.signed_alignment[0])
        (0.8, 0.0)
    """
    short_verdicts = _codes(short, "short", {2: _TWO_AXES}, missing)
    long_verdicts = response_codes(long, "long", missing=missing)
    n_topics, _, n_slots = long_verdicts.shape
    if short_verdicts.shape != (n_topics, n_slots):
        raise ValueError(
            "short and long must be about the same topics and sub-questions: got "
            "{} topics of {} slots".format(*short_verdicts.shape)
            + f" and {n_topics} topics of {n_slots} slots"
        )
    paired = np.broadcast_to(short_verdicts[:, None, :], long_verdicts.shape)
    scored = (paired != MISSING) & (long_verdicts != MISSING)
    right = (paired == 1, long_verdicts == 1)
    cells = (right[0] & right[1], right[0] & ~right[1], ~right[0] & right[1], ~right[0] & ~right[1])
    counts = np.column_stack([(cell & scored).sum(axis=(1, 2)) for cell in cells]).astype(np.int64)
    n_pairs, totals = counts.sum(axis=1), counts.sum(axis=0)
    n_missing = int(scored.size - n_pairs.sum())
    warn_unscored(n_missing, scored.size, stacklevel=2)
    with np.errstate(invalid="ignore"):
        scores = counts @ _SCORES / n_pairs[:, None]
    return TopicAlignmentResult(
        short_accuracy=scores[:, 0],
        long_accuracy=scores[:, 1],
        alignment=scores[:, 2],
        signed_alignment=scores[:, 3],
        n_pairs=n_pairs,
        table=table_of(totals),
        n_missing=n_missing,
    )


SCORES: Mapping[str, CountRatio] = MappingProxyType(
    {
        "short_accuracy": CountRatio(numerator=(1, 1, 0, 0), denominator=(1, 1, 1, 1)),
        "long_accuracy": CountRatio(numerator=(1, 0, 1, 0), denominator=(1, 1, 1, 1)),
        "accuracy_difference": CountRatio(numerator=(0, -1, 1, 0), denominator=(1, 1, 1, 1)),
        "alignment": CountRatio(numerator=(1, 0, 0, 1), denominator=(1, 1, 1, 1)),
        "signed_alignment": CountRatio(numerator=(1, 0, 0, -1), denominator=(1, 1, 1, 1)),
    }
)
"""The five scores by field, of the shares of the four cells in each topic, summed over topics."""


def topic_cells(topics: TopicAlignmentResult) -> Floats:
    """Return the shares of both, short only, long only and neither in each topic with a pair."""
    scored = topics.n_pairs > 0
    if not scored.any():
        raise ValueError("no pair of a short and a long answer has both verdicts: nothing to score")
    alignment, signed = topics.alignment[scored], topics.signed_alignment[scored]
    both, neither = (alignment + signed) / 2, (alignment - signed) / 2
    return np.column_stack(
        (both, topics.short_accuracy[scored] - both, topics.long_accuracy[scored] - both, neither)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentResult:
    """Result of `alignment_scores`: means over topics, with intervals that take topics whole."""

    short_accuracy: float
    """F_S, accuracy of the short answers, in [0, 1]; higher is better."""
    long_accuracy: float
    """F_L, accuracy of the long answers, in [0, 1]; higher is better."""
    accuracy_difference: float
    """F_L - F_S, in [-1, 1]; negative: the long query does worse."""
    alignment: float
    """Align, share of pairs with equal verdicts, in [0, 1]; higher is more consistent."""
    signed_alignment: float
    """Align with sign, both right less both wrong, in [-1, 1]; equals F_S + F_L - 1."""
    short_accuracy_interval: Interval
    """Interval of `short_accuracy`; NaN bounds for a single topic, here and below."""
    long_accuracy_interval: Interval
    """Interval of `long_accuracy`."""
    accuracy_difference_interval: Interval
    """Interval of `accuracy_difference`."""
    accuracy_difference_p_value: float
    """Two-sided p-value of no difference, of the same statistic: below 1 less the level where the
    interval leaves out 0, and only there. NaN for a single topic, and where topics are resampled.
    """
    alignment_interval: Interval
    """Interval of `alignment`."""
    signed_alignment_interval: Interval
    """Interval of `signed_alignment`."""
    table: PairedTable
    """All scored pairs, the short answer first."""
    n_topics: int
    """Topics with a scored pair; the means are over them."""
    n_missing: int
    """Pairs that lacked a verdict and were left out."""
    n_resamples: int | None
    """Number of resamples of topics; None where none were drawn."""


def alignment_scores(
    short: npt.ArrayLike,
    long: npt.ArrayLike,
    *,
    missing: MissingPolicy = "raise",
    intervals: Intervals = DEFAULT_INTERVALS,
) -> AlignmentResult:
    """Score short against long answers: the mean over topics of `topic_alignment`.

    Args:
        short: Verdicts on the short answers, shape `(n_topics, n_slots)`, as in `topic_alignment`.
        long: Verdicts on the long answers by sub-question, shape `(n_topics, n_slots)` or
            `(n_topics, n_permutations, n_slots)`.
        missing: "raise" refuses missing verdicts; "drop" leaves such pairs out, with an
            `UnscoredWarning`.
        intervals: How intervals are made; resamples of topics are shared by all scores.

    Returns:
        The scores with their intervals, the table of all pairs, and the counts.

    Raises:
        ValueError: For what `topic_alignment` refuses, or when no pair has both verdicts.

    Notes:
        Intervals take topics whole, since the facts of a topic, and the permutations of one query,
        are not independent. Fewer than four topics give NaN bounds (a single one, of resamples),
        with an `UndefinedMetricWarning`. Topics without a scored pair are left out of the means and
        of `n_topics`. Equal numbers of pairs in all topics make each score the rate of `table`
        under the same name.

    References:
        SLAQ, arXiv 2510.11218, eqs. 2 to 4 and figure 2 ("average over topics").

    Examples:
        >>> short = [[1, 1, 0, 0, 1], [0, 0, 0, 1, 0]] * 50
        >>> long = [[[1, 0, 0, 0, 1], [1, 1, 0, 0, 1]], [[0, 0, 0, 0, 0], [0, 0, 0, 1, 0]]] * 50
        >>> scores = alignment_scores(short, long)
        >>> round(scores.alignment, 2), round(scores.signed_alignment, 2)
        (0.9, -0.3)
    """
    topics = topic_alignment(short, long, missing=missing)
    cells = topic_cells(topics)
    means = cells @ np.array([score.numerator for score in SCORES.values()]).T
    scores = group_values(cells, SCORES, intervals)
    if reason := scores["accuracy_difference"].not_inferred:
        warn_undefined(f"the intervals are undefined (NaN): {reason}")
    fields = values_and_intervals(scores)
    fields |= dict(zip(SCORES, means.mean(axis=0).tolist(), strict=True))
    return AlignmentResult(
        **fields,
        accuracy_difference_p_value=scores["accuracy_difference"].p_value,
        table=topics.table,
        n_topics=len(cells),
        n_missing=topics.n_missing,
        n_resamples=n_drawn(intervals),
    )


def n_drawn(intervals: Intervals) -> int | None:
    """Return the number of resamples that intervals take; None for none."""
    return None if intervals.method == "auto" else intervals.n_resamples
