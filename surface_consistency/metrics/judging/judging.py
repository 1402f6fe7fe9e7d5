"""How good a judge is by human labels, and the rate that stands behind an observed one."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import (
    MissingPolicy,
    check_count,
    check_same_index,
    warn_undefined,
)
from surface_consistency.metrics.paired.effect_sizes import kappa_of_counts
from surface_consistency.metrics.paired.paired_tables import PairedTable, paired_table
from surface_consistency.metrics.uncertainty.bootstrap import group_values
from surface_consistency.metrics.uncertainty.intervals import (
    DEFAULT_INTERVALS,
    Interval,
    Intervals,
    undefined_interval,
    wilson_interval,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeError:
    """How often a judge errs on right and on wrong answers, as counted on labelled ones.

    Args:
        true_positives: Right answers that it calls right.
        false_negatives: Right answers that it calls wrong.
        false_positives: Wrong answers that it calls right.
        true_negatives: Wrong answers that it calls wrong.

    Raises:
        TypeError: When a count is not an integer.
        ValueError: When a count is negative, or there is no right or no wrong answer, so that one
            of the rates is unknown.

    References:
        W. J. Rogan and B. Gladen, American Journal of Epidemiology 107, 1978.

    Examples:
        >>> error = JudgeError(
        ...     true_positives=57, false_negatives=3, false_positives=4, true_negatives=36
        ... )
        >>> error.sensitivity, error.specificity
        (0.95, 0.9)
    """

    true_positives: int
    """Right answers that the judge calls right."""
    false_negatives: int
    """Right answers that the judge calls wrong."""
    false_positives: int
    """Wrong answers that the judge calls right."""
    true_negatives: int
    """Wrong answers that the judge calls wrong."""

    def __post_init__(self) -> None:
        for name in ("true_positives", "false_negatives", "false_positives", "true_negatives"):
            check_count(getattr(self, name), name)
        if self.true_positives + self.false_negatives == 0:
            raise ValueError("no labelled answer is right: the judge's sensitivity is unknown")
        if self.false_positives + self.true_negatives == 0:
            raise ValueError("no labelled answer is wrong: the judge's specificity is unknown")

    @classmethod
    def of_table(cls, table: PairedTable) -> "JudgeError":
        """Read the confusion of `judge_agreement`, the human first.

        Args:
            table: Its `table`.

        Returns:
            The counts under the names of this class.

        Raises:
            ValueError: When there is no right or no wrong answer.
        """
        return cls(
            true_positives=table.both,
            false_negatives=table.first_only,
            false_positives=table.second_only,
            true_negatives=table.neither,
        )

    @property
    def sensitivity(self) -> float:
        """Share of right answers that the judge calls right, in [0, 1]."""
        return self.true_positives / (self.true_positives + self.false_negatives)

    @property
    def specificity(self) -> float:
        """Share of wrong answers that the judge calls wrong, in [0, 1]."""
        return self.true_negatives / (self.true_negatives + self.false_positives)

    def draws(
        self, n: int, rng: np.random.Generator
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Draw the two rates as uncertain as the counts leave them.

        Args:
            n: Number of draws.
            rng: Random generator.

        Returns:
            Sensitivities and specificities, each of shape `(n,)`: Beta posteriors under Jeffreys'
            prior, independent of each other.
        """
        return (
            rng.beta(self.true_positives + 0.5, self.false_negatives + 0.5, n),
            rng.beta(self.true_negatives + 0.5, self.false_positives + 0.5, n),
        )


def corrected_rate(observed: float, error: JudgeError) -> float:
    """Return the share of right answers behind the share that an erring judge calls right.

    With observed = r * sensitivity + (1 - r) * (1 - specificity), the true rate r is
    (observed + specificity - 1) / (sensitivity + specificity - 1).

    Args:
        observed: Share of answers that the judge calls right, in [0, 1].
        error: The judge's errors.

    Returns:
        The true share, cut to [0, 1]; higher is better.

    Raises:
        ValueError: When `observed` is not in [0, 1].

    Notes:
        NaN, with an `UndefinedMetricWarning`, for a judge no better than chance (sensitivity +
        specificity at most 1), from whose verdicts nothing follows. A perfect judge changes
        nothing.

    References:
        W. J. Rogan and B. Gladen, American Journal of Epidemiology 107, 1978.

    Examples:
        >>> error = JudgeError(
        ...     true_positives=90, false_negatives=10, false_positives=20, true_negatives=80
        ... )
        >>> round(corrected_rate(0.55, error), 6)
        0.5
    """
    if not 0.0 <= observed <= 1.0:
        raise ValueError(f"observed is a share in [0, 1]; got {observed}")
    better = error.sensitivity + error.specificity - 1.0
    if better <= 0.0:
        warn_undefined(
            "the corrected rate is undefined (NaN): the judge is no better than chance "
            f"(sensitivity {error.sensitivity:.3f}, specificity {error.specificity:.3f})"
        )
        return math.nan
    return min(1.0, max(0.0, (observed + error.specificity - 1.0) / better))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAgreementResult:
    """Result of `judge_agreement`; NaN where nothing defines a value."""

    accuracy: float
    """Share of labels that the judge agrees with, in [0, 1]; higher is better."""
    accuracy_interval: Interval
    """Wilson interval of `accuracy`."""
    kappa: float
    """Cohen's kappa of judge and human, in [-1, 1]; higher is better."""
    kappa_interval: Interval
    """Interval of `kappa`, with a width even where judge and human never differ."""
    sensitivity: float
    """Share of the answers that are right by the human which the judge calls right, in [0, 1]."""
    sensitivity_interval: Interval
    """Wilson interval of `sensitivity`."""
    specificity: float
    """Share of the answers that are wrong by the human which the judge calls wrong, in [0, 1]."""
    specificity_interval: Interval
    """Wilson interval of `specificity`."""
    table: PairedTable
    """The confusion, the human first: `both` true positives, `first_only` false negatives,
    `second_only` false positives, `neither` true negatives."""
    n_missing: int
    """Answers that lack a label or a judgement and were left out."""


def judge_agreement(
    human: npt.ArrayLike,
    judge: npt.ArrayLike,
    *,
    missing: MissingPolicy = "raise",
    intervals: Intervals = DEFAULT_INTERVALS,
) -> JudgeAgreementResult:
    """Compare a judge's verdicts with human labels of the same answers.

    Args:
        human: Labels, shape `(n_answers,)`: True or False, 1 or 0, None or NaN where there is none.
        judge: Verdicts of the judge in the same order; None or NaN where it could not judge.
        missing: "raise" refuses missing values; "drop" leaves such answers out, with an
            `UnscoredWarning`.
        intervals: How that of kappa is made, whose resamples are of answers; the others are
            Wilson's, of the same level.

    Returns:
        Accuracy, kappa, sensitivity and specificity with intervals, and the confusion table.

    Raises:
        ValueError: When lengths differ, a value is no verdict, a verdict is missing under "raise",
            or no answer has both.

    Notes:
        Without an answer that is right (wrong) by the human, sensitivity (specificity) is NaN;
        kappa is NaN where the verdicts do not vary; each with an `UndefinedMetricWarning`. Answers
        are taken for independent; judge a sample that was drawn at random. Swapping right and
        wrong swaps sensitivity and specificity.

    References:
        SLAQ, arXiv 2510.11218, appendix A.2 (accuracy of its judge: 92 % short, 94 % long);
        J. Cohen, Educational and Psychological Measurement 20, 1960.

    Examples:
        >>> human = [1] * 60 + [0] * 40
        >>> judge = [1] * 57 + [0] * 3 + [0] * 36 + [1] * 4
        >>> result = judge_agreement(human, judge)
        >>> result.accuracy, round(result.kappa, 3), result.sensitivity, result.specificity
        (0.93, 0.854, 0.95, 0.9)
    """
    check_same_index(human=human, judge=judge)
    human_values, judge_values = np.asarray(human, dtype=object), np.asarray(judge, dtype=object)
    table = paired_table(human_values, judge_values, missing=missing)
    if table.n == 0:
        raise ValueError("no answer has both a label and a judgement: nothing to compare")
    n_right, n_wrong = table.both + table.first_only, table.second_only + table.neither
    for n, name, kind in ((n_right, "sensitivity", "right"), (n_wrong, "specificity", "wrong")):
        if n == 0:
            warn_undefined(f"{name} is undefined (NaN): no answer is {kind} by the human labels")
    return JudgeAgreementResult(
        accuracy=(table.both + table.neither) / table.n,
        accuracy_interval=_share(table.both + table.neither, table.n, intervals.level),
        kappa=float(kappa_of_counts(table.counts)),
        kappa_interval=_kappa_interval(table, intervals),
        sensitivity=table.both / n_right if n_right else math.nan,
        sensitivity_interval=_share(table.both, n_right, intervals.level),
        specificity=table.neither / n_wrong if n_wrong else math.nan,
        specificity_interval=_share(table.neither, n_wrong, intervals.level),
        table=table,
        n_missing=len(human_values) - table.n,
    )


def _share(successes: int, n: int, level: float) -> Interval:
    """Return the Wilson interval of a share, quietly NaN for no trial."""
    if n == 0:
        return undefined_interval(level, "wilson")
    return wilson_interval(successes, n, confidence_level=level)


def _kappa_interval(table: PairedTable, intervals: Intervals) -> Interval:
    if math.isnan(float(kappa_of_counts(table.counts))):
        warn_undefined(
            f"kappa is undefined (NaN): the verdicts in {table} do not vary", stacklevel=3
        )
        return undefined_interval(intervals.level, intervals.method)
    answers = np.repeat(np.eye(4), table.counts, axis=0)
    bounds = group_values(answers, {"kappa": kappa_of_counts}, intervals)["kappa"].interval
    if math.isnan(bounds.low):
        warn_undefined(
            "the interval of kappa is undefined (NaN): there is one answer", stacklevel=3
        )
    return bounds
