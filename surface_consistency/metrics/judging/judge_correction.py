"""Alignment of short and long answers, corrected for the errors of the LLM judge."""

import itertools
import math

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import (
    Flags,
    Floats,
    MissingPolicy,
    check_choice,
    warn_undefined,
)
from surface_consistency.metrics.judging.judging import JudgeError
from surface_consistency.metrics.positions.alignment import SCORES, topic_counts, topic_shares
from surface_consistency.metrics.uncertainty.bootstrap import resample_counts
from surface_consistency.metrics.uncertainty.cluster_bounds import Part, cluster_t
from surface_consistency.metrics.uncertainty.intervals import (
    DEFAULT_INTERVALS,
    Intervals,
    quantiles,
)

_EM_STEPS = 300
_ROUNDING = 1e-12


def corrected_alignment(
    short: npt.ArrayLike,
    long: npt.ArrayLike,
    *,
    short_error: JudgeError,
    long_error: JudgeError,
    error_correlation: float = 0.0,
    missing: MissingPolicy = "raise",
    intervals: Intervals = DEFAULT_INTERVALS,
) -> dict[str, object]:
    """Return F_S, F_L and alignment, corrected for the errors of the LLM judge.

    The four observed proportions (both correct, short only, long only, neither) are the true
    proportions multiplied by the matrix of error probabilities of the LLM judge. The inverse of
    this matrix gives the true proportions. This is Rogan and Gladen's correction, applied to short
    and long answers simultaneously.

    Args:
        short: Correctness labels of the short answers, shape `(n_topics, n_slots)`, with
            sub-question k in column k: True or False, 1 or 0, None or NaN.
        long: Labels of the long answers, `(n_topics, n_slots)` or
            `(n_topics, n_permutations, n_slots)`.
        short_error: Error counts of the LLM judge on short answers, from `judge_agreement` with
            human labels.
        long_error: Error counts of the LLM judge on long answers.
        error_correlation: Correlation of the judge's errors on the short and on the long answer to
            one sub-question, given the true labels. 0 assumes independence; errors on the same
            facts in both give a positive correlation. It affects only the alignment. Use several
            values for a sensitivity analysis.
        missing: "raise" raises an error if a label is missing; "drop" excludes such pairs, with an
            `UnscoredWarning`.
        intervals: Options of the intervals. "auto" combines t limits over topics, given the error
            rates, with limits from draws of the error rates. "percentile" resamples both
            simultaneously. `resamples` is the number of draws.

    Returns:
        n_topics (with a scored pair) and n_missing; for each of short_accuracy, long_accuracy,
        accuracy_difference, alignment and signed_alignment the uncorrected `observed_<score>` and
        the corrected `<score>`, `<score>_low` and `<score>_high`; and is_cut, whether the inverse
        has a cell below 0.

    Raises:
        ValueError: If shapes do not match, an input is empty, a value is not a correctness label or
            (under "raise") missing, no pair has both labels, an option is out of range, or the
            error rates do not allow this `error_correlation`.

    Notes:
        With `error_correlation=0` the LLM judge is assumed to make errors on the short and the long
        answer independently, given the truth. If it makes errors on the same facts in both, labels
        agree more often than is corrected, and the alignment is too high. Separate labels of short
        and long answers do not determine the correlation: label both answers to the same questions
        to estimate it. The error rates must come from answers like those that are scored. If the
        inverse has a cell below 0, the most likely table without a negative cell is used
        (`is_cut`), by expectation maximisation, also in resamples. If the judge makes no errors,
        the correction has no effect. With one topic bounds are NaN, and if the LLM judge is not
        better than chance, all results are NaN; each with an `UndefinedMetricWarning`.

    References:
        W. J. Rogan and B. Gladen, American Journal of Epidemiology 107, 1978; SLAQ, arXiv
        2510.11218, eqs. 2 to 4 and appendix A.2.

    Examples:
        >>> error = JudgeError(
        ...     true_positives=190, false_negatives=10, false_positives=10, true_negatives=190
        ... )
        >>> short = [[1, 1, 0, 0, 1], [1, 0, 1, 1, 0]] * 50
        >>> long = [[1, 0, 0, 1, 1], [1, 0, 1, 0, 0]] * 50
        >>> row = corrected_alignment(short, long, short_error=error, long_error=error)
        >>> round(row["short_accuracy"], 3), round(row["alignment"], 3)
        (0.611, 0.747)
    """
    check_choice(intervals.method, ("auto", "percentile"), "intervals.method")
    counts = topic_counts(short, long, missing=missing)
    cells = topic_shares(counts)
    if min(_better(short_error), _better(long_error)) <= 0.0:
        _warn("an LLM judge is not better than chance (sensitivity + specificity at most 1)")
    _check_correlation(error_correlation, short_error, long_error)
    exact = _error_matrix(_point(short_error), _point(long_error), error_correlation)
    observed = cells.mean(axis=0, keepdims=True)
    true_cells, is_cut = _true_cells(observed, exact)
    means = _scores(true_cells)[0]
    generator, n_draws = intervals.generator(), intervals.resamples
    bounds = np.full((2, len(SCORES)), math.nan)
    if len(cells) > 1:
        seen = np.broadcast_to(observed, (n_draws, 4))
        if intervals.method == "percentile":
            seen = resample_counts(cells, resamples=n_draws, seed=generator) / len(cells)
        short_rates = short_error.draws(n_draws, generator)
        long_rates = long_error.draws(n_draws, generator)
        errors = _error_matrix(short_rates, long_rates, error_correlation)
        drawn = _scores(_true_cells(seen, errors)[0])
        tails = ((1.0 - intervals.confidence) / 2.0, (1.0 + intervals.confidence) / 2.0)
        bounds = np.array([quantiles(column, tails) for column in drawn.T]).T
        if intervals.method == "auto":
            over_topics = _topic_bounds(
                cells, exact[0], short_error, long_error, intervals.confidence
            )
            bounds = _joined(means, over_topics, bounds)
    else:
        _warn("one topic does not determine the spread between topics; bounds")
    row: dict[str, object] = {
        "n_topics": len(cells),
        "n_missing": int(np.asarray(long).size - counts.sum()),
    }
    seen_means = _scores(observed)[0]
    for place, name in enumerate(SCORES):
        row[f"observed_{name}"], row[name] = float(seen_means[place]), float(means[place])
        row |= {f"{name}_low": float(bounds[0, place]), f"{name}_high": float(bounds[1, place])}
    return row | {"is_cut": bool(is_cut[0])}


_RANGES = np.array([[0.0, 0.0, -1.0, 0.0, -1.0], [1.0, 1.0, 1.0, 1.0, 1.0]])
"""Range of the scores, in the order of `SCORES`."""


def _topic_bounds(
    cells: Floats, errors: Floats, short: JudgeError, long: JudgeError, confidence: float
) -> Floats:
    """Return the limits of the scores over topics, given the error rates, shape `(2, 5)`.

    All are shifted weighted means of the cells: corrected accuracies are linear in proportions.
    """
    if not np.isfinite(errors).all():
        return np.full((2, len(SCORES)), math.nan)
    gains = (1.0 / _better(short), 1.0 / _better(long))
    shifts = ((short.specificity - 1.0) * gains[0], (long.specificity - 1.0) * gains[1])
    short_part, long_part = (
        gain * np.asarray(rate.numerator)
        for gain, rate in zip(gains, list(SCORES.values())[:2], strict=True)
    )
    cell_weights = np.linalg.solve(errors.T, np.array([1.0, 0.0, 0.0, 1.0]))
    middle, least = sum(gains) / 2.0, float(cell_weights.min())
    sums = {
        "short_accuracy": (shifts[0], short_part),
        "long_accuracy": (shifts[1], long_part),
        "accuracy_difference": (shifts[1] - shifts[0], long_part - short_part),
        "alignment": (least, cell_weights - least),
        "signed_alignment": (sum(shifts) - 1.0 + middle, short_part + long_part - middle),
    }
    bounds = []
    for name in SCORES:
        shift, weights = sums[name]
        ends = (min(0.0, float(weights.min())), max(0.0, float(weights.max())))
        inferred = cluster_t([Part(1.0, tuple(weights.tolist()), (1.0,) * 4, *ends)], cells)
        limits = (math.nan, math.nan) if inferred is None else inferred.bounds(confidence)
        bounds.append([shift + float(limit) for limit in limits])
    return np.asarray(np.clip(np.array(bounds).T, *_RANGES))


def _joined(means: Floats, *bounds: Floats) -> Floats:
    """Combine limits from independent sources of error: roots of the sums of their squares."""
    steps = [np.maximum([means - low, high - means], 0.0) for low, high in bounds]
    length = np.sqrt(sum(step**2 for step in steps))
    return np.asarray(np.clip([means - length[0], means + length[1]], *_RANGES))


def _check_correlation(correlation: float, short: JudgeError, long: JudgeError) -> None:
    """Raise an error if the error rates do not allow this correlation."""
    if not -1.0 <= correlation <= 1.0:
        raise ValueError(f"error_correlation must be in [-1, 1]; got {correlation!r}")
    errors = ((1.0 - judge.sensitivity, 1.0 - judge.specificity) for judge in (short, long))
    for first, second in itertools.product(*errors):
        spread = math.sqrt(first * (1.0 - first) * second * (1.0 - second))
        least = max(0.0, first + second - 1.0) - first * second
        most = min(first, second) - first * second
        if not least - _ROUNDING <= correlation * spread <= most + _ROUNDING:
            raise ValueError(
                f"error_correlation is {correlation!r}, but errors in {first:.3g} of the short and "
                f"{second:.3g} of the long answers allow only {least / spread:.3g} to "
                f"{most / spread:.3g}"
            )


def _better(error: JudgeError) -> float:
    """Return sensitivity + specificity - 1, which is above 0 if better than chance."""
    return error.sensitivity + error.specificity - 1.0


def _point(error: JudgeError) -> tuple[Floats, Floats]:
    """Return sensitivity and specificity as arrays with one draw."""
    return np.array([error.sensitivity]), np.array([error.specificity])


def _true_cells(observed: Floats, errors: Floats) -> tuple[Floats, Flags]:
    """Return the true cells from observed ones, by error matrices `(..., 4, 4)`; NaN if singular.

    The result for rows with a negative cell is the most likely table; the second array marks them.
    """
    rows = np.full(observed.shape, np.nan)
    usable = np.broadcast_to(np.isfinite(errors).all(axis=(1, 2)), len(observed))
    errors = np.broadcast_to(errors, (len(observed), 4, 4))
    rows[usable] = np.linalg.solve(errors[usable], observed[usable][..., None])[..., 0]
    cut = np.asarray((rows < -_ROUNDING).any(axis=1))
    rows[cut] = _most_likely(observed[cut], errors[cut])
    return np.where(np.abs(rows) < _ROUNDING, 0.0, rows), cut


def _error_matrix(
    short: tuple[Floats, Floats], long: tuple[Floats, Floats], correlation: float
) -> Floats:
    """Return the probability of each observed cell (row) given each true one (column), `(n, 4, 4)`.

    `short` and `long` are sensitivities and specificities. NaN if they are not better than chance.
    Impossible correlations are clipped to the possible range.
    """
    short_errors = (1.0 - short[0], 1.0 - short[1])
    long_errors = (1.0 - long[0], 1.0 - long[1])
    matrix = np.empty((len(short[0]), 4, 4))
    # Cell number: 2 * (short is incorrect) + (long is incorrect); an error changes one of them.
    for true in range(4):
        first, second = short_errors[true // 2], long_errors[true % 2]
        spread = np.sqrt(first * (1.0 - first) * second * (1.0 - second))
        both = first * second + correlation * spread
        both = np.clip(both, np.maximum(0.0, first + second - 1.0), np.minimum(first, second))
        matrix[:, true ^ 3, true] = both
        matrix[:, true ^ 2, true] = first - both
        matrix[:, true ^ 1, true] = second - both
        matrix[:, true, true] = 1.0 - first - second + both
    usable = (short[0] + short[1] > 1.0) & (long[0] + long[1] > 1.0)
    usable &= np.abs(np.linalg.det(matrix)) > _ROUNDING
    return np.where(usable[:, None, None], matrix, np.nan)


def _most_likely(observed: Floats, errors: Floats) -> Floats:
    """Fit the true cells of each row within [0, 1] by expectation maximisation."""
    cells = np.full(observed.shape, 0.25)
    for _ in range(_EM_STEPS):
        expected = np.einsum("nij,nj->ni", errors, cells)
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = np.where(expected > 0.0, observed / expected, 0.0)
        cells = cells * np.einsum("nij,ni->nj", errors, weight)
    return cells


def _scores(cells: Floats) -> Floats:
    """Return F_S, F_L, their difference, alignment and signed alignment of each row."""
    return cells @ np.array([score.numerator for score in SCORES.values()], dtype=np.float64).T


def _warn(reason: str) -> None:
    warn_undefined(f"the corrected scores are undefined (NaN): {reason}", stacklevel=3)
