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
)

DependentCorrelationsMethod = Literal["zou", "steiger", "dunn_clark", "williams", "meng", "hittner"]
"""Form of the comparison: Zou's interval with its p-value, or a test alone."""

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
    the sign of `difference`; under "zou" the normal quantile at which the interval first reaches
    0. NaN where undefined."""
    p_value: float
    """Two-sided p-value, in [0, 1]; NaN where `statistic` is."""
    difference_interval: Interval
    """Interval of `difference` under "zou", which leaves out 0 where the p-value is below 1 less
    its level, and only there; NaN under the other methods, whose tests have none."""
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
    method: DependentCorrelationsMethod = "zou",
    confidence_level: float = 0.95,
) -> DependentCorrelationsResult:
    """Test whether one variable correlates equally with two others, the rows taken for independent.

    "zou" joins the Fisher intervals of the two correlations to one of their difference; its
    p-value is 1 less the level at which that first reaches 0. The others are tests without an
    interval. With Z = atanh(r), "steiger", "dunn_clark" and "hittner" are
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
        method: "zou", or for a test alone "steiger" (Steiger 1980, equation 14; the one of
            RedirectQA), "dunn_clark", "williams", "meng" or "hittner" (back-transformed mean).
        confidence_level: Nominal coverage of Zou's interval, in (0, 1).

    Returns:
        The difference, its statistic, two-sided p-value and, under "zou", interval.

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
        >>> round(result.difference_interval.low, 3), round(result.difference_interval.high, 3)
        (-0.431, -0.167)
        >>> round(result.statistic, 2), result.p_value < 1e-4
        (-4.43, True)
        >>> test = compare_dependent_correlations(0.2, 0.5, r_kh=0.1, n=315, method="steiger")
        >>> round(test.statistic, 4), round(test.p_value, 6)
        (-4.4152, 1e-05)
    """
    check_confidence_level(confidence_level)
    check_choice(method, tuple(_STATISTICS), "method")
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
    low, high = math.nan, math.nan
    reason = f"a correlation is perfect in r_jk={r_jk}, r_jh={r_jh}, r_kh={r_kh}"
    if max(abs(r_jk), abs(r_jh), r_kh) < 1.0:
        reason = "the correlations are too far apart to be pooled; method='williams' does not"
        statistic = _STATISTICS[method](r_jk, r_jh, r_kh, n)
        p_value = math.erfc(abs(statistic) / math.sqrt(2.0))
    if math.isnan(statistic):
        warn_undefined(f"the comparison is undefined (NaN): {reason}")
    elif method == "williams":
        p_value = float(t_p_value(statistic, n - 3))
    elif method == "zou":
        quantile = NormalDist().inv_cdf((1.0 + confidence_level) / 2.0)
        low = _zou_bound(r_jk, r_jh, r_kh, n, quantile)
        high = -_zou_bound(r_jh, r_jk, r_kh, n, quantile)
    return DependentCorrelationsResult(
        difference=r_jk - r_jh,
        statistic=statistic,
        p_value=p_value,
        difference_interval=Interval(
            low=low, high=high, confidence_level=confidence_level, method="zou"
        ),
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


def _zou(r_jk: float, r_jh: float, r_kh: float, n: int) -> float:
    """Zou 2007: the quantile at which the interval of the difference first reaches 0."""
    if r_jk == r_jh:
        return 0.0
    most, least = max(r_jk, r_jh), min(r_jk, r_jh)
    # Beyond it the p-value rounds to 0.
    end = 38.0
    if _zou_bound(most, least, r_kh, n, end) < 0.0:
        from scipy.optimize import brentq

        end = brentq(lambda quantile: _zou_bound(most, least, r_kh, n, quantile), 0.0, end)
    return math.copysign(end, r_jk - r_jh)


def _zou_bound(r_jk: float, r_jh: float, r_kh: float, n: int, quantile: float) -> float:
    """Return the lower bound of r_jk - r_jh, from Fisher's bounds and the correlation of the r."""
    half = quantile / math.sqrt(n - 3)
    below = r_jk - math.tanh(math.atanh(r_jk) - half)
    above = math.tanh(math.atanh(r_jh) + half) - r_jh
    shared = (r_kh - r_jk * r_jh / 2.0) * (1.0 - r_jk**2 - r_jh**2 - r_kh**2) + r_kh**3
    shared /= (1.0 - r_jk**2) * (1.0 - r_jh**2)
    variance = below**2 + above**2 - 2.0 * shared * below * above
    return r_jk - r_jh - math.sqrt(max(0.0, variance))


_STATISTICS: dict[str, Callable[[float, float, float, int], float]] = {
    "zou": _zou,
    "steiger": _steiger,
    "dunn_clark": _dunn_clark,
    "williams": _williams,
    "meng": _meng,
    "hittner": _hittner,
}
