"""Alignment of short and long answers over topics, with intervals that resample topics."""

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics._shared.checks import check_confidence, check_n_resamples
from surface_consistency.metrics._shared.verdicts import MissingPolicy
from surface_consistency.metrics.alignment.topic_alignment import (
    TopicAlignmentResult,
    topic_alignment,
)
from surface_consistency.metrics.paired.table import PairedTable
from surface_consistency.metrics.uncertainty.bootstrap import resample_counts
from surface_consistency.metrics.uncertainty.interval import Interval, percentile_interval

__all__ = ["AlignmentResult", "alignment_scores"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentResult:
    """Result of `alignment_scores`: means over topics, with intervals that resample topics."""

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
    """Interval of `accuracy_difference`, from the same resamples."""
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
    n_resamples: int
    """Number of resamples of topics."""


def alignment_scores(
    short: npt.ArrayLike,
    long: npt.ArrayLike,
    *,
    missing: MissingPolicy = "raise",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> AlignmentResult:
    """Score short against long answers: the mean over topics of `topic_alignment`.

    Args:
        short: Verdicts on the short answers, shape `(n_topics, n_slots)`, as in `topic_alignment`.
        long: Verdicts on the long answers by sub-question, shape `(n_topics, n_slots)` or
            `(n_topics, n_permutations, n_slots)`.
        missing: "raise" refuses missing verdicts; "drop" leaves such pairs out, with an
            `UnscoredWarning`.
        confidence: Nominal coverage of the intervals, in (0, 1).
        n_resamples: Number of resamples of topics; all scores share them.
        rng: Random generator, or the seed of one.

    Returns:
        The scores with their intervals, the table of all pairs, and the counts.

    Raises:
        ValueError: For what `topic_alignment` refuses, when no pair has both verdicts, or when
            `confidence` or `n_resamples` is out of range.
        TypeError: When `n_resamples` is no integer.

    Notes:
        Topics are resampled whole, since the facts of a topic, and the permutations of one query,
        are not independent. One topic gives NaN bounds with an `UndefinedMetricWarning`. Topics
        without a scored pair are left out of the means and of `n_topics`. Equal numbers of pairs
        in all topics make each score the rate of `table` under the same name.

    References:
        SLAQ, arXiv 2510.11218, eqs. 2 to 4 and figure 2 ("average over topics").

    Examples:
        >>> short = [[1, 1, 0, 0, 1], [0, 0, 0, 1, 0]] * 50
        >>> long = [[[1, 0, 0, 0, 1], [1, 1, 0, 0, 1]], [[0, 0, 0, 0, 0], [0, 0, 0, 1, 0]]] * 50
        >>> scores = alignment_scores(short, long)
        >>> round(scores.alignment, 2), round(scores.signed_alignment, 2)
        (0.9, -0.3)
    """
    check_confidence(confidence)
    n_resamples = check_n_resamples(n_resamples)
    topics = topic_alignment(short, long, missing=missing)
    kept = topics.n_pairs > 0
    if not kept.any():
        raise ValueError("no pair of a short and a long answer has both verdicts: nothing to score")
    values = _columns(topics)[kept]
    drawn = np.full((1, values.shape[1]), np.nan)
    if len(values) > 1:
        drawn = resample_counts(values, n_resamples=n_resamples, rng=rng) / len(values)
    else:
        warnings.warn(
            "the intervals are undefined (NaN): one topic says nothing of the spread between "
            "topics",
            UndefinedMetricWarning,
            stacklevel=2,
        )
    means = values.mean(axis=0).tolist()
    intervals = [percentile_interval(column, confidence=confidence) for column in drawn.T]
    return AlignmentResult(
        short_accuracy=means[0],
        long_accuracy=means[1],
        accuracy_difference=means[2],
        alignment=means[3],
        signed_alignment=means[4],
        short_accuracy_interval=intervals[0],
        long_accuracy_interval=intervals[1],
        accuracy_difference_interval=intervals[2],
        alignment_interval=intervals[3],
        signed_alignment_interval=intervals[4],
        table=topics.table,
        n_topics=len(values),
        n_missing=topics.n_missing,
        n_resamples=n_resamples,
    )


def _columns(topics: TopicAlignmentResult) -> npt.NDArray[np.float64]:
    """Return the scores of each topic in the order of the fields of `AlignmentResult`."""
    return np.column_stack(
        (
            topics.short_accuracy,
            topics.long_accuracy,
            topics.long_accuracy - topics.short_accuracy,
            topics.alignment,
            topics.signed_alignment,
        )
    )
