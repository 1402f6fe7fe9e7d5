"""Comparison of two correlations that have a common variable, on the same rows."""

import math
from statistics import NormalDist

from surface_consistency.metrics._inputs import check_confidence_level, check_count, warn_undefined

# Published correlations are rounded; a determinant this close to zero is rounding error.
_ROUNDING = 1e-8
_LEAST_ROWS = 4


def steiger_test(r_jk: float, r_jh: float, *, r_kh: float, n: int) -> tuple[float, float]:
    """Test whether one variable has equal correlations with two others, for independent rows.

    With Z = atanh(r), z = (Z_jk - Z_jh) sqrt(n - 3) / sqrt(2 - 2 c), where c is the covariance of
    the two Z at the mean of r_jk and r_jh. It is the test of RedirectQA.

    Args:
        r_jk: Correlation of the shared variable j with k, such as accuracy with entity frequency.
        r_jh: Correlation of the shared variable j with h, such as accuracy with surface frequency.
        r_kh: Correlation of k and h with each other.
        n: Number of rows of all three correlations.

    Returns:
        z, which is standard normal under equal correlations and positive if r_jk is larger, and its
        two-sided p-value, in [0, 1].

    Raises:
        TypeError: If `n` is not an integer.
        ValueError: If a correlation is not in [-1, 1], no data can have all three, or `n` is less
            than 4.

    Notes:
        Swapping r_jk and r_jh changes the sign of z. Both values are NaN, with an
        `UndefinedMetricWarning`, if r_jk or r_jh is 1 or -1, or r_kh is 1. For clustered rows, see
        the rows "entity_minus_surface" of `frequency_analysis`.

    References:
        Steiger, Psychological Bulletin 87, 1980, equation 14; appendix B.3 of arXiv 2604.21882.

    Examples:
        >>> z, p_value = steiger_test(0.2, 0.5, r_kh=0.1, n=315)
        >>> round(z, 4), round(p_value, 6)
        (-4.4152, 1e-05)
    """
    if not _is_defined(r_jk, r_jh, r_kh, n):
        return math.nan, math.nan
    square = ((r_jk + r_jh) / 2.0) ** 2
    covariance = r_kh * (1.0 - 2.0 * square) - square * (1.0 - 2.0 * square - r_kh**2) / 2.0
    spread = 2.0 - 2.0 * covariance / (1.0 - square) ** 2
    z = (math.atanh(r_jk) - math.atanh(r_jh)) * math.sqrt((n - 3) / spread)
    return z, math.erfc(abs(z) / math.sqrt(2.0))


def zou_interval(
    r_jk: float, r_jh: float, *, r_kh: float, n: int, confidence: float = 0.95
) -> tuple[float, float, float]:
    """Return Zou's interval of the difference of two correlations, with its p-value.

    The Fisher intervals of the two correlations are combined into one of r_jk - r_jh. The p-value
    is 1 minus the confidence level at which an end of that interval is 0.

    Args:
        r_jk: As in `steiger_test`.
        r_jh: As in `steiger_test`.
        r_kh: As in `steiger_test`.
        n: Number of rows of all three correlations.
        confidence: Nominal coverage of the interval, in (0, 1).

    Returns:
        Lower bound, upper bound and p-value. The interval excludes 0 exactly if the p-value is
        below 1 minus the confidence level.

    Raises:
        TypeError: If `n` is not an integer.
        ValueError: As in `steiger_test`, and if `confidence` is out of range.

    Notes:
        Swapping r_jk and r_jh changes the signs of the bounds. All values are NaN, with an
        `UndefinedMetricWarning`, if r_jk or r_jh is 1 or -1, or r_kh is 1.

    References:
        Zou, Psychological Methods 12, 2007.

    Examples:
        >>> low, high, p_value = zou_interval(0.2, 0.5, r_kh=0.1, n=315)
        >>> round(low, 3), round(high, 3), p_value < 1e-4
        (-0.431, -0.167, True)
    """
    check_confidence_level(confidence)
    if not _is_defined(r_jk, r_jh, r_kh, n):
        return math.nan, math.nan, math.nan
    quantile = NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    low = _zou_bound(r_jk, r_jh, r_kh, n, quantile)
    high = -_zou_bound(r_jh, r_jk, r_kh, n, quantile)
    return low, high, math.erfc(_first_at_0(r_jk, r_jh, r_kh, n) / math.sqrt(2.0))


def _is_defined(r_jk: float, r_jh: float, r_kh: float, n: int) -> bool:
    """Check the correlations, and return whether they can be compared; if not, warn."""
    for name, value in (("r_jk", r_jk), ("r_jh", r_jh), ("r_kh", r_kh)):
        if not -1.0 <= value <= 1.0:
            raise ValueError(f"{name} must be in [-1, 1]; got {value!r}")
    if 1.0 - r_jk**2 - r_jh**2 - r_kh**2 + 2.0 * r_jk * r_jh * r_kh < -_ROUNDING:
        raise ValueError(
            f"no data have the correlations r_jk={r_jk}, r_jh={r_jh} and r_kh={r_kh}: their matrix "
            "is not positive semidefinite; compute all three from the same rows"
        )
    if check_count(n, "n") < _LEAST_ROWS:
        raise ValueError(f"n must be at least {_LEAST_ROWS} to compare correlations; got {n}")
    if max(abs(r_jk), abs(r_jh), r_kh) < 1.0:
        return True
    warn_undefined(
        "the comparison is undefined (NaN): a correlation is perfect in "
        f"r_jk={r_jk}, r_jh={r_jh}, r_kh={r_kh}",
        stacklevel=3,
    )
    return False


def _first_at_0(r_jk: float, r_jh: float, r_kh: float, n: int) -> float:
    """Return the normal quantile at which the interval of the difference first reaches 0."""
    most, least = max(r_jk, r_jh), min(r_jk, r_jh)
    # For larger quantiles the p-value rounds to 0.
    end = 38.0
    if most == least or _zou_bound(most, least, r_kh, n, end) >= 0.0:
        return 0.0 if most == least else end
    from scipy.optimize import brentq

    return float(brentq(lambda quantile: _zou_bound(most, least, r_kh, n, quantile), 0.0, end))


def _zou_bound(r_jk: float, r_jh: float, r_kh: float, n: int, quantile: float) -> float:
    """Return the lower bound of r_jk - r_jh, from Fisher's bounds and the correlation of the r."""
    half = quantile / math.sqrt(n - 3)
    below = r_jk - math.tanh(math.atanh(r_jk) - half)
    above = math.tanh(math.atanh(r_jh) + half) - r_jh
    shared = (r_kh - r_jk * r_jh / 2.0) * (1.0 - r_jk**2 - r_jh**2 - r_kh**2) + r_kh**3
    shared /= (1.0 - r_jk**2) * (1.0 - r_jh**2)
    variance = below**2 + above**2 - 2.0 * shared * below * above
    return r_jk - r_jh - math.sqrt(max(0.0, variance))
