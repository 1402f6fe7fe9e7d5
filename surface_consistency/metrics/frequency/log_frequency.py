"""Logarithms of frequencies, with an account of the rows that have none."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.vectors import Floats, check_missing, numeric_vector
from surface_consistency.metrics._shared.verdicts import MissingPolicy

__all__ = ["LogFrequencyResult", "log_frequency"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogFrequencyResult:
    """Result of `log_frequency`; the four counts add up to the rows."""

    values: Floats
    """Natural logarithms, shape `(n_rows,)`; NaN in the rows that were left out."""
    kept: npt.NDArray[np.bool_]
    """Which rows have a value, shape `(n_rows,)`."""
    n_kept: int
    """Rows with a value."""
    n_zero: int
    """Rows left out because the frequency is zero: unseen, or never linked."""
    n_below: int
    """Rows left out because the frequency is above zero and at most `above`."""
    n_missing: int
    """Rows left out because the frequency is missing."""


def log_frequency(
    frequencies: npt.ArrayLike, *, above: float = 0.0, missing: MissingPolicy = "raise"
) -> LogFrequencyResult:
    """Take logarithms of frequencies, leaving out zeros and those at or below a threshold.

    Args:
        frequencies: Counts of shape `(n_rows,)`, at least 0; they may be scaled and need not be
            whole.
        above: Frequencies must exceed this; 0 leaves out zeros alone, and 10 gives the
            high-frequency subset of RedirectQA.
        missing: "raise" refuses missing frequencies; "drop" leaves them out with a count.

    Returns:
        Natural logarithms, which rows have one, and how many were left out for which reason.

    Raises:
        TypeError: When a value is no number.
        ValueError: When a frequency is negative, infinite or (under "raise") missing, the input is
            not one-dimensional, or `above` is negative.

    Notes:
        No rows give empty arrays. A zero is left out, not replaced by a small number: it may stand
        for a failure of the entity linker. Correlations do not depend on the base of the logarithm.

    References:
        Section 4.1 and appendix B.4 of arXiv 2604.21882.

    Examples:
        >>> result = log_frequency([0, 1, 10, 100], above=10)
        >>> result.n_kept, result.n_zero, result.n_below, result.values.round(3).tolist()
        (1, 1, 2, [nan, nan, nan, 4.605])
    """
    check_missing(missing)
    if not above >= 0.0:
        raise ValueError(f"above must be at least 0; got {above!r}")
    vector = numeric_vector(frequencies, "frequencies")
    absent = np.isnan(vector)
    if missing == "raise" and absent.any():
        raise ValueError(
            f"frequencies[{int(np.argmax(absent))}] is missing (in all {int(absent.sum())} of "
            f"{vector.size}): fill it in, or pass missing='drop' to leave such rows out"
        )
    negative = vector < 0.0
    if negative.any():
        row = int(np.argmax(negative))
        raise ValueError(f"frequencies[{row}] must be at least 0; got {vector[row]:g}")
    kept = vector > above
    values = np.full(vector.size, np.nan)
    np.log(vector, out=values, where=kept)
    n_zero = int(np.count_nonzero(vector == 0.0))
    n_kept, n_missing = int(np.count_nonzero(kept)), int(np.count_nonzero(absent))
    return LogFrequencyResult(
        values=values,
        kept=kept,
        n_kept=n_kept,
        n_zero=n_zero,
        n_below=vector.size - n_kept - n_zero - n_missing,
        n_missing=n_missing,
    )
