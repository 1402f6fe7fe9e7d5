"""The two error rates of a judge, and the rate that stands behind an observed one."""

import math
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics._shared.checks import check_count
from surface_consistency.metrics.paired.table import PairedTable

__all__ = ["JudgeError", "corrected_rate"]


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
        warnings.warn(
            "the corrected rate is undefined (NaN): the judge is no better than chance "
            f"(sensitivity {error.sensitivity:.3f}, specificity {error.specificity:.3f})",
            UndefinedMetricWarning,
            stacklevel=2,
        )
        return math.nan
    return min(1.0, max(0.0, (observed + error.specificity - 1.0) / better))
