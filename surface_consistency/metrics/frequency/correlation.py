"""Correlation of two vectors, with its p-value and interval."""

import numpy.typing as npt

from surface_consistency.metrics._shared.checks import check_confidence
from surface_consistency.metrics._shared.vectors import complete_rows, numeric_vector
from surface_consistency.metrics._shared.verdicts import MissingPolicy
from surface_consistency.metrics.frequency._correlate import check_correlation_method, correlate
from surface_consistency.metrics.frequency.correlation_result import (
    CorrelationMethod,
    CorrelationResult,
)

__all__ = ["correlation"]


def correlation(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    method: CorrelationMethod = "pearson",
    confidence: float = 0.95,
    missing: MissingPolicy = "raise",
) -> CorrelationResult:
    """Correlate two vectors.

    The p-value is that of t = r sqrt((n - 2) / (1 - r^2)) on n - 2 degrees of freedom. The interval
    is tanh(atanh(r) ± z / sqrt(n - 3)), for ranks with the variance times 1 + r^2 / 2.

    Args:
        x: Numbers of shape `(n_rows,)`, such as log frequencies.
        y: Numbers of the same rows, such as accuracies.
        method: "pearson", or "spearman" for the correlation of average ranks.
        confidence: Nominal coverage of the interval, in (0, 1).
        missing: What to do with rows in which a value is None, NaN or `pandas.NA`: "raise" refuses
            them, "drop" leaves them out and counts them in `n_dropped`.

    Returns:
        Coefficient, in [-1, 1] and positive where both rise together, p-value, interval and counts.

    Raises:
        TypeError: When a value is no number.
        ValueError: When the lengths differ, an input is not one-dimensional, a value is infinite
            or (under "raise") missing, or an option is out of range.

    Notes:
        Everything is NaN, with an `UndefinedMetricWarning`, where a vector is constant (up to
        rounding) or fewer than three rows are left; with three rows only the interval is. A
        perfect correlation has p 0 and an interval of no width. The order of the rows and the scale
        of the values do not matter; swapping `x` and `y` changes nothing. The p-value and the
        interval take rows for independent: where they share facts, see `correlation_bootstrap`.

    References:
        R. A. Fisher, Biometrika 10, 1915; D. G. Bonett and T. A. Wright, Psychometrika 65, 2000
        (ranks); table 5 of arXiv 2604.21882.

    Examples:
        >>> result = correlation([0.0, 0.7, 1.1, 1.4, 1.6], [0.0, 0.5, 0.5, 0.5, 1.0])
        >>> round(result.coefficient, 4), round(result.p_value, 4), result.n
        (0.8911, 0.0424, 5)
    """
    check_confidence(confidence)
    check_correlation_method(method)
    vectors = {"x": numeric_vector(x, "x"), "y": numeric_vector(y, "y")}
    vectors, n_dropped = complete_rows(vectors, missing=missing)
    return correlate(
        vectors, method=method, confidence=confidence, n_dropped=n_dropped, stacklevel=2
    )
