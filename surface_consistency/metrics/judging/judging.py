"""Agreement of an LLM judge with human labels, and its error rates."""

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
    Intervals,
    wilson_interval,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeError:
    """Error counts of an LLM judge on correct and on incorrect answers with human labels.

    Args:
        true_positives: Number of correct answers that it labels correct.
        false_negatives: Number of correct answers that it labels incorrect.
        false_positives: Number of incorrect answers that it labels correct.
        true_negatives: Number of incorrect answers that it labels incorrect.

    Raises:
        TypeError: If a count is not an integer.
        ValueError: If a count is negative, or there is no correct or no incorrect answer, so that
            one of the rates is unknown.

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
    """Number of correct answers that the LLM judge labels correct."""
    false_negatives: int
    """Number of correct answers that the LLM judge labels incorrect."""
    false_positives: int
    """Number of incorrect answers that the LLM judge labels correct."""
    true_negatives: int
    """Number of incorrect answers that the LLM judge labels incorrect."""

    def __post_init__(self) -> None:
        for name in ("true_positives", "false_negatives", "false_positives", "true_negatives"):
            check_count(getattr(self, name), name)
        if self.true_positives + self.false_negatives == 0:
            raise ValueError("no labelled answer is correct, so sensitivity is unknown; label more")
        if self.false_positives + self.true_negatives == 0:
            raise ValueError(
                "no labelled answer is incorrect, so specificity is unknown; label more"
            )

    @property
    def sensitivity(self) -> float:
        """Proportion of correct answers that the LLM judge labels correct, in [0, 1]."""
        return self.true_positives / (self.true_positives + self.false_negatives)

    @property
    def specificity(self) -> float:
        """Proportion of incorrect answers that the LLM judge labels incorrect, in [0, 1]."""
        return self.true_negatives / (self.true_negatives + self.false_positives)

    def draws(
        self, n: int, rng: np.random.Generator
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Draw sensitivity and specificity from their distributions given the counts.

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


def judge_agreement(
    human: npt.ArrayLike,
    judge: npt.ArrayLike,
    *,
    missing: MissingPolicy = "raise",
    intervals: Intervals = DEFAULT_INTERVALS,
) -> dict[str, object]:
    """Return the agreement of an LLM judge with human labels of the same answers.

    Args:
        human: Human labels, shape `(n_answers,)`: True or False, 1 or 0; None or NaN if missing.
        judge: Labels of the LLM judge in the same order; None or NaN if it returned no label.
        missing: "raise" raises an error if a label is missing; "drop" excludes such answers, with
            an `UnscoredWarning`.
        intervals: Options of the interval of kappa, which resamples answers; the other intervals
            are Wilson's, at the same level.

    Returns:
        n (answers with both labels), n_missing; true_positives, false_negatives, false_positives
        and true_negatives, with the human label as the truth; and accuracy, kappa, sensitivity and
        specificity, each with `_low` and `_high`. Sensitivity is the proportion of the correct
        answers (by the human labels) that the LLM judge labels correct; specificity is the
        proportion of the incorrect ones that it labels incorrect.

    Raises:
        ValueError: If lengths differ, a value is not a correctness label, a label is missing under
            "raise", or no answer has both labels.

    Notes:
        Without a correct answer, sensitivity is NaN; without an incorrect one, specificity; and
        kappa if the labels do not vary; each with an `UndefinedMetricWarning`. Answers are assumed
        to be independent, so label a random sample. Swapping correct and incorrect swaps
        sensitivity and specificity.

    References:
        SLAQ, arXiv 2510.11218, appendix A.2 (accuracy of its judge: 92 % short, 94 % long);
        J. Cohen, Educational and Psychological Measurement 20, 1960.

    Examples:
        >>> human = [1] * 60 + [0] * 40
        >>> judge = [1] * 57 + [0] * 3 + [0] * 36 + [1] * 4
        >>> row = judge_agreement(human, judge)
        >>> [round(row[name], 3) for name in ("accuracy", "kappa", "sensitivity", "specificity")]
        [0.93, 0.854, 0.95, 0.9]
    """
    check_same_index(human=human, judge=judge)
    human_values, judge_values = np.asarray(human, dtype=object), np.asarray(judge, dtype=object)
    table = paired_table(human_values, judge_values, missing=missing)
    if table.n == 0:
        raise ValueError("no answer has both a human label and one of the LLM judge; label more")
    n_right, n_wrong = table.both + table.first_only, table.second_only + table.neither
    kinds = ((n_right, "sensitivity", "correct"), (n_wrong, "specificity", "incorrect"))
    for n, name, kind in kinds:
        if n == 0:
            warn_undefined(f"{name} is undefined (NaN): no answer is {kind} by the human labels")
    kappa, low, high = _kappa(table, intervals)
    row: dict[str, object] = {"n": table.n, "n_missing": len(human_values) - table.n}
    row |= {
        "true_positives": table.both,
        "false_negatives": table.first_only,
        "false_positives": table.second_only,
        "true_negatives": table.neither,
    }
    row |= _share("accuracy", table.both + table.neither, table.n, intervals.confidence)
    row |= {"kappa": kappa, "kappa_low": low, "kappa_high": high}
    row |= _share("sensitivity", table.both, n_right, intervals.confidence)
    return row | _share("specificity", table.neither, n_wrong, intervals.confidence)


def _share(name: str, successes: int, n: int, confidence: float) -> dict[str, float]:
    """Return a proportion and its Wilson interval by column, NaN without a trial."""
    bounds, share = (math.nan, math.nan), math.nan
    if n:
        bounds, share = wilson_interval(successes, n, confidence=confidence), successes / n
    return dict(zip((name, f"{name}_low", f"{name}_high"), (share, *bounds), strict=True))


def _kappa(table: PairedTable, intervals: Intervals) -> tuple[float, float, float]:
    """Return kappa and its bounds, and warn if they are undefined."""
    answers = np.repeat(np.eye(4), table.counts, axis=0)
    kappa = group_values(answers, {"kappa": kappa_of_counts}, intervals)["kappa"]
    if math.isnan(kappa.value):
        warn_undefined(f"kappa is undefined (NaN): the labels in {table} do not vary", stacklevel=3)
    elif math.isnan(kappa.low):
        warn_undefined(
            "the interval of kappa is undefined (NaN): there is only one answer", stacklevel=3
        )
    return kappa.value, kappa.low, kappa.high
