"""Comparison of two correlations that share a variable and the rows."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from surface_consistency.metrics._inputs import (
    check_choice,
    check_confidence_level,
    check_count,
    warn_undefined,
)
from surface_consistency.metrics.uncertainty.intervals import (
    Interval,
    t_p_value,
    undefined_interval,
)

__all__ = [
    "DependentCorrelationsMethod",
    "DependentCorrelationsResult",
    "compare_dependent_correlations",
]

DependentCorrelationsMethod = Literal["steiger", "dunn_clark", "williams", "meng", "hittner", "zou"]
"""Form of the comparison; "zou" is an interval alone."""

# Published correlations are rounded; a determinant within this of zero is that.
_ROUNDING = 1e-8
_LEAST_ROWS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class DependentCorrelationsResult:
    """Result of `compare_dependent_correlations`."""

    difference: float
    """r_jk - r_jh, in [-2, 2]; positive where k is the closer one to j."""
    statistic: float
    """Standard normal under equal correlations ("williams": t on n - 3 degrees of freedom), with
    the sign of `difference`; NaN where undefined, and under "zou", which is no test."""
    p_value: float
    """Two-sided p-value, in [0, 1]; NaN where `statistic` is."""
    difference_interval: Interval
    """Zou's interval of `difference`, whatever the method; NaN where undefined."""
    n: int
    """Rows behind the correlations."""
    method: DependentCorrelationsMethod
    """Form of the comparison."""


def compare_dependent_correlations(
    r_jk: float,
    r_jh: float,
    *,
    r_kh: float,
    n: int,
    method: DependentCorrelationsMethod = "steiger",
    confidence_level: float = 0.95,
) -> DependentCorrelationsResult:
    """Test whether one variable correlates equally with two others, all of the same rows.

    With Z = atanh(r), "steiger", "dunn_clark" and "hittner" are
    z = (Z_jk - Z_jh) sqrt(n - 3) / sqrt(2 - 2 c), where c is the covariance of the two Z taken at
    the mean of r_jk and r_jh, at the two themselves, and at tanh of the mean Z; "meng" divides by
    another form of it, and "williams" is a t of r_jk - r_jh.

    Args:
        r_jk: Correlation of the shared variable with the first, such as accuracy with entity
            frequency.
        r_jh: Correlation of the shared variable with the second, such as accuracy with surface
            frequency.
        r_kh: Correlation of the two others with each other.
        n: Rows behind all three correlations.
        method: "steiger" (Steiger 1980, equation 14), "dunn_clark", "williams", "meng", "hittner"
            (back-transformed mean), or "zou" for the interval alone.
        confidence_level: Nominal coverage of Zou's interval, in (0, 1).

    Returns:
        The difference, its statistic, two-sided p-value and Zou's interval.

    Raises:
        TypeError: When `n` is no integer.
        ValueError: When a correlation is not in [-1, 1], no data have these three together, `n` is
            less than 4, or an option is unknown or out of range.

    Notes:
        Swapping r_jk and r_jh changes the sign of the difference, the statistic and the interval.
        Statistic, p-value and interval are NaN, with an `UndefinedMetricWarning`, where r_jk or
        r_jh is 1 or -1, or r_kh is 1; so are, rarely, statistic and p-value of "hittner" for
        correlations so far apart that no data have their pooled value twice. The tests are of
        Pearson correlations of independent rows; "williams" keeps its level best in small samples.
        For clustered rows, see the rows "entity_minus_surface" of `frequency_analysis`.

    References:
        Steiger, Psychological Bulletin 87, 1980; Dunn and Clark, JASA 64, 1969; Williams, JRSS B
        21, 1959; Meng, Rosenthal and Rubin, Psychological Bulletin 111, 1992; Hittner, May and
        Silver, Journal of General Psychology 130, 2003; Zou, Psychological Methods 12, 2007;
        appendix B.3 of arXiv 2604.21882.

    Examples:
        >>> result = compare_dependent_correlations(0.2, 0.5, r_kh=0.1, n=315)
        >>> round(result.statistic, 4), round(result.p_value, 6)
        (-4.4152, 1e-05)
        >>> round(result.difference_interval.low, 3), round(result.difference_interval.high, 3)
        (-0.431, -0.167)
    """
    check_confidence_level(confidence_level)
    check_choice(method, (*_STATISTICS, "zou"), "method")
    for name, value in (("r_jk", r_jk), ("r_jh", r_jh), ("r_kh", r_kh)):
        if not -1.0 <= value <= 1.0:
            raise ValueError(f"{name} must lie in [-1, 1]; got {value!r}")
    if _determinant(r_jk, r_jh, r_kh) < -_ROUNDING:
        raise ValueError(
            f"no data have the correlations r_jk={r_jk}, r_jh={r_jh} and r_kh={r_kh}: their matrix "
            "is not positive semidefinite; take all three from the same rows"
        )
    r_jk, r_jh, r_kh = float(r_jk), float(r_jh), float(r_kh)
    n = check_count(n, "n")
    if n < _LEAST_ROWS:
        raise ValueError(f"n must be at least {_LEAST_ROWS} to compare correlations; got {n}")
    statistic = p_value = math.nan
    interval = undefined_interval(confidence_level, "zou")
    reason = f"a correlation is perfect in r_jk={r_jk}, r_jh={r_jh}, r_kh={r_kh}"
    if max(abs(r_jk), abs(r_jh), r_kh) < 1.0:
        interval = _zou_interval(r_jk, r_jh, r_kh, n, confidence_level)
        reason = "the correlations are too far apart to be pooled; method='williams' does not"
        if method != "zou":
            statistic = _STATISTICS[method](r_jk, r_jh, r_kh, n)
            p_value = _two_sided(statistic, n - 3 if method == "williams" else None)
    if math.isnan(statistic) and (method != "zou" or math.isnan(interval.low)):
        message = f"the comparison is undefined (NaN): {reason}"
        warn_undefined(message)
    return DependentCorrelationsResult(
        difference=r_jk - r_jh,
        statistic=statistic,
        p_value=p_value,
        difference_interval=interval,
        n=n,
        method=method,
    )


def _determinant(r_jk: float, r_jh: float, r_kh: float) -> float:
    return 1.0 - r_jk**2 - r_jh**2 - r_kh**2 + 2.0 * r_jk * r_jh * r_kh


def _fisher_z(r_jk: float, r_jh: float, r_kh: float, n: int, at: tuple[float, float]) -> float:
    """Return the z of the difference of the two Z, their covariance taken at two correlations."""
    a, b = at
    covariance = r_kh * (1.0 - a * a - b * b) - a * b * (1.0 - a * a - b * b - r_kh**2) / 2.0
    spread = 2.0 - 2.0 * covariance / ((1.0 - a * a) * (1.0 - b * b))
    if spread <= 0.0:
        return math.nan
    return (math.atanh(r_jk) - math.atanh(r_jh)) * math.sqrt((n - 3) / spread)


def _steiger(r_jk: float, r_jh: float, r_kh: float, n: int) -> float:
    """Steiger 1980, equation 14: the covariance at the mean correlation."""
    mean = (r_jk + r_jh) / 2.0
    return _fisher_z(r_jk, r_jh, r_kh, n, (mean, mean))


def _dunn_clark(r_jk: float, r_jh: float, r_kh: float, n: int) -> float:
    """Dunn and Clark 1969: the covariance at the two correlations."""
    return _fisher_z(r_jk, r_jh, r_kh, n, (r_jk, r_jh))


def _hittner(r_jk: float, r_jh: float, r_kh: float, n: int) -> float:
    """Hittner, May and Silver 2003: the covariance at the back-transformed mean Z."""
    mean = math.tanh((math.atanh(r_jk) + math.atanh(r_jh)) / 2.0)
    return _fisher_z(r_jk, r_jh, r_kh, n, (mean, mean))


def _williams(r_jk: float, r_jh: float, r_kh: float, n: int) -> float:
    """Williams 1959: Hotelling's t with a better standard error."""
    spread = 2.0 * (n - 1) / (n - 3) * max(0.0, _determinant(r_jk, r_jh, r_kh))
    spread += ((r_jk + r_jh) / 2.0) ** 2 * (1.0 - r_kh) ** 3
    if spread == 0.0:
        return math.copysign(math.inf, r_jk - r_jh) if r_jk != r_jh else 0.0
    return (r_jk - r_jh) * math.sqrt((n - 1) * (1.0 + r_kh) / spread)


def _meng(r_jk: float, r_jh: float, r_kh: float, n: int) -> float:
    """Meng, Rosenthal and Rubin 1992, equation 1."""
    mean_square = (r_jk**2 + r_jh**2) / 2.0
    f = min(1.0, (1.0 - r_kh) / (2.0 * (1.0 - mean_square)))
    h = (1.0 - f * mean_square) / (1.0 - mean_square)
    difference = math.atanh(r_jk) - math.atanh(r_jh)
    return difference * math.sqrt((n - 3) / (2.0 * (1.0 - r_kh) * h))


_STATISTICS: dict[str, Callable[[float, float, float, int], float]] = {
    "steiger": _steiger,
    "dunn_clark": _dunn_clark,
    "williams": _williams,
    "meng": _meng,
    "hittner": _hittner,
}


def _two_sided(statistic: float, df: int | None) -> float:
    """Return the two-sided p-value of a z, or of a t on `df` degrees of freedom."""
    return (
        math.erfc(abs(statistic) / math.sqrt(2.0))
        if df is None
        else float(t_p_value(statistic, df))
    )


def _zou_interval(r_jk: float, r_jh: float, r_kh: float, n: int, level: float) -> Interval:
    """Return Zou's 2007 interval: from the two Fisher intervals and the correlation of the r."""
    half = NormalDist().inv_cdf((1.0 + level) / 2.0) / math.sqrt(n - 3)
    low_k, high_k = (math.tanh(math.atanh(r_jk) + sign * half) for sign in (-1.0, 1.0))
    low_h, high_h = (math.tanh(math.atanh(r_jh) + sign * half) for sign in (-1.0, 1.0))
    shared = (r_kh - r_jk * r_jh / 2.0) * (1.0 - r_jk**2 - r_jh**2 - r_kh**2) + r_kh**3
    shared /= (1.0 - r_jk**2) * (1.0 - r_jh**2)

    def width(first: float, second: float) -> float:
        """Return the root of the variance of a difference with these two halves."""
        return math.sqrt(max(0.0, first**2 + second**2 - 2.0 * shared * first * second))

    return Interval(
        low=r_jk - r_jh - width(r_jk - low_k, high_h - r_jh),
        high=r_jk - r_jh + width(high_k - r_jk, r_jh - low_h),
        confidence_level=level,
        method="zou",
    )
