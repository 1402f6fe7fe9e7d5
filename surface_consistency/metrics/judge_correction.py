"""Alignment of short and long answers with the errors of their judge taken out."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import (
    Floats,
    MissingPolicy,
    check_confidence_level,
    check_n_resamples,
    warn_undefined,
)
from surface_consistency.metrics.alignment import score_fields, topic_alignment
from surface_consistency.metrics.bootstrap import resample_counts
from surface_consistency.metrics.intervals import Interval
from surface_consistency.metrics.judging import JudgeError

__all__ = ["CorrectedAlignmentResult", "corrected_alignment"]

_EM_STEPS = 300
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedAlignmentResult:
    """Result of `corrected_alignment`: what the verdicts of a judge without error would give."""

    short_accuracy: float
    """F_S, in [0, 1]; higher is better. NaN, like all below, where the judge is no better than
    chance."""
    long_accuracy: float
    """F_L, in [0, 1]; higher is better."""
    accuracy_difference: float
    """F_L - F_S, in [-1, 1]; negative: the long query does worse."""
    alignment: float
    """Share of pairs with equal verdicts, in [0, 1]; higher is more consistent."""
    signed_alignment: float
    """Both right less both wrong, in [-1, 1]."""
    short_accuracy_interval: Interval
    """Interval of `short_accuracy`: topics and the judge's errors both resampled, as below."""
    long_accuracy_interval: Interval
    """Interval of `long_accuracy`."""
    accuracy_difference_interval: Interval
    """Interval of `accuracy_difference`."""
    alignment_interval: Interval
    """Interval of `alignment`."""
    signed_alignment_interval: Interval
    """Interval of `signed_alignment`."""
    is_cut: bool
    """Whether the correction asks for a negative cell, so that the closest possible one, 0, was
    taken: the errors do not fit the verdicts, if only by chance."""
    n_topics: int
    """Topics with a scored pair."""
    n_missing: int
    """Pairs that lacked a verdict and were left out."""


def corrected_alignment(
    short: npt.ArrayLike,
    long: npt.ArrayLike,
    *,
    short_error: JudgeError,
    long_error: JudgeError,
    missing: MissingPolicy = "raise",
    confidence_level: float = 0.95,
    n_resamples: int = 10_000,
    rng: np.random.Generator | int | None = 0,
) -> CorrectedAlignmentResult:
    """Estimate F_S, F_L and alignment as a judge without error would see them.

    The four observed shares (both right, short only, long only, neither) are the true ones sent
    through the judge's errors on short and on long answers. That map is inverted: Rogan and
    Gladen's correction on both sides of the table at once.

    Args:
        short: Verdicts on the short answers, shape `(n_topics, n_slots)`, as for
            `alignment_scores`.
        long: Verdicts on the long answers, `(n_topics, n_slots)` or
            `(n_topics, n_permutations, n_slots)`.
        short_error: Errors of the judge of short answers, from `judge_agreement` on labelled ones.
        long_error: Errors of the judge of long answers.
        missing: "raise" refuses missing verdicts; "drop" leaves such pairs out, with an
            `UnscoredWarning`.
        confidence_level: Nominal coverage of the intervals, in (0, 1).
        n_resamples: Number of resamples of topics, each with a draw of the judge's error rates.
        rng: Seed, random generator, or None for fresh entropy.

    Returns:
        The corrected scores with intervals.

    Raises:
        ValueError: For what `topic_alignment` refuses, when no pair has both verdicts, or when an
            option is out of range.
        TypeError: When `n_resamples` is no integer.

    Notes:
        Assumes that, given the truth, the judge errs on a short answer independently of the long
        one; a judge who errs on the same facts both times makes verdicts agree more often than
        this correction removes. Errors must come from answers like those judged. Where the inverse
        has a cell below 0, the most likely table without one is taken (`is_cut`), by expectation
        maximisation; resamples alike. Two perfect judges
        change nothing. One topic gives NaN bounds; a judge no better than chance makes all NaN;
        each with an `UndefinedMetricWarning`.

    References:
        W. J. Rogan and B. Gladen, American Journal of Epidemiology 107, 1978; SLAQ, arXiv
        2510.11218, eqs. 2 to 4 and appendix A.2.

    Examples:
        >>> error = JudgeError(
        ...     true_positives=190, false_negatives=10, false_positives=10, true_negatives=190
        ... )
        >>> short = [[1, 1, 0, 0, 1], [1, 0, 1, 1, 0]] * 50
        >>> long = [[1, 0, 0, 1, 1], [1, 0, 1, 0, 0]] * 50
        >>> scores = corrected_alignment(short, long, short_error=error, long_error=error)
        >>> round(scores.short_accuracy, 3), round(scores.alignment, 3)
        (0.611, 0.747)
    """
    check_confidence_level(confidence_level)
    n_resamples = check_n_resamples(n_resamples)
    topics = topic_alignment(short, long, missing=missing)
    kept = topics.n_pairs > 0
    if not kept.any():
        raise ValueError("no pair of a short and a long answer has both verdicts: nothing to score")
    if min(_better(short_error), _better(long_error)) <= 0.0:
        _warn("a judge is no better than chance (sensitivity + specificity at most 1)")
    alignment = topics.alignment[kept]
    signed = topics.signed_alignment[kept]
    both, neither = (alignment + signed) / 2, (alignment - signed) / 2
    cells = np.column_stack(
        (both, topics.short_accuracy[kept] - both, topics.long_accuracy[kept] - both, neither)
    )
    exact = _error_matrix(
        *(np.array([rate]) for error in (short_error, long_error) for rate in _rates(error))
    )
    observed = cells.mean(axis=0, keepdims=True)
    means = _scores(_true_cells(observed, exact))[0]
    generator = np.random.default_rng(rng)
    if len(cells) > 1:
        drawn = resample_counts(cells, n_resamples=n_resamples, rng=generator) / len(cells)
        rates = [
            *short_error.draws(n_resamples, generator),
            *long_error.draws(n_resamples, generator),
        ]
        values = _scores(_true_cells(drawn, _error_matrix(*rates)))
    else:
        _warn("one topic says nothing of the spread between topics; bounds")
        values = np.full((1, 5), math.nan)
    return CorrectedAlignmentResult(
        **score_fields(means, values, confidence_level),
        is_cut=_is_cut(observed[0], exact[0]),
        n_topics=len(cells),
        n_missing=topics.n_missing,
    )


def _better(error: JudgeError) -> float:
    """Return how far a judge is above chance."""
    return error.sensitivity + error.specificity - 1.0


def _rates(error: JudgeError) -> tuple[float, float]:
    return error.sensitivity, error.specificity


def _true_cells(observed: Floats, errors: Floats) -> Floats:
    """Undo the errors, `(..., 4, 4)` from true to observed cells; NaN where they cannot be undone.

    Rows with a negative cell get the most likely table instead.
    """
    rows = np.full(observed.shape, np.nan)
    usable = np.broadcast_to(np.isfinite(errors).all(axis=(1, 2)), len(observed))
    errors = np.broadcast_to(errors, (len(observed), 4, 4))
    rows[usable] = np.linalg.solve(errors[usable], observed[usable][..., None])[..., 0]
    cut = (rows < -_ROUNDING).any(axis=1)
    rows[cut] = _most_likely(observed[cut], errors[cut])
    return np.where(np.abs(rows) < _ROUNDING, 0.0, rows)


def _error_matrix(
    short_sensitivity: Floats,
    short_specificity: Floats,
    long_sensitivity: Floats,
    long_specificity: Floats,
) -> Floats:
    """Return the chance of each observed cell (row) given each true one (column), `(n, 4, 4)`.

    NaN where a judge is no better than chance.
    """
    short = _one_judge(short_sensitivity, short_specificity)
    long = _one_judge(long_sensitivity, long_specificity)
    return np.asarray(np.einsum("nij,nkl->nikjl", short, long).reshape(-1, 4, 4))


def _one_judge(sensitivity: Floats, specificity: Floats) -> Floats:
    """Return [[se, 1 - sp], [1 - se, sp]] of each draw."""
    matrix = np.array([[sensitivity, 1.0 - specificity], [1.0 - sensitivity, specificity]])
    return np.asarray(np.moveaxis(np.where(sensitivity + specificity > 1.0, matrix, np.nan), -1, 0))


def _most_likely(observed: Floats, errors: Floats) -> Floats:
    """Fit the true cells of each row within [0, 1] by expectation maximisation."""
    cells = np.full(observed.shape, 0.25)
    for _ in range(_EM_STEPS):
        expected = np.einsum("nij,nj->ni", errors, cells)
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = np.where(expected > 0.0, observed / expected, 0.0)
        cells = cells * np.einsum("nij,ni->nj", errors, weight)
    return cells


def _is_cut(observed: Floats, errors: Floats) -> bool:
    """Tell whether undoing the errors asks for a negative cell."""
    if not np.isfinite(errors).all():
        return False
    return bool((np.linalg.solve(errors, observed) < -_ROUNDING).any())


def _scores(cells: Floats) -> Floats:
    """Return F_S, F_L, their difference, alignment and signed alignment of each row of shares."""
    both, short_only, long_only, neither = cells.T
    return np.column_stack(
        (
            both + short_only,
            both + long_only,
            long_only - short_only,
            both + neither,
            both - neither,
        )
    )


def _warn(reason: str) -> None:
    warn_undefined(f"the corrected scores are undefined (NaN): {reason}", stacklevel=3)
