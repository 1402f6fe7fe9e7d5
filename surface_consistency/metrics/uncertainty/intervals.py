"""Options of intervals, Wilson's interval, and quantiles of t and of resamples."""

import math
import operator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from surface_consistency.clusters import FEW_CLUSTERS as FEW_CLUSTERS, LEAST_CLUSTERS
from surface_consistency.metrics import _inputs


def effective_number(sizes: _inputs.Floats, times: _inputs.Floats | float = 1.0) -> _inputs.Floats:
    """Return the effective number of clusters (Kish) for sizes along the last axis.

    `times` is the number of clusters of each size. The result is (sum of sizes)^2 / sum of their
    squares; 0 without clusters.
    """
    total, squares = (sizes * times).sum(axis=-1), (sizes**2 * times).sum(axis=-1)
    return np.asarray(total**2 / np.where(squares > 0.0, squares, 1.0))


def enough_clusters(n_effective: npt.ArrayLike) -> _inputs.Flags:
    """Return whether an effective number of clusters is large enough for inference."""
    # A tolerance, so that rounding does not reject four equal clusters.
    return np.asarray(np.asarray(n_effective) > LEAST_CLUSTERS * (1.0 - 1e-9))


def too_few_clusters(n_effective: float, least: int = LEAST_CLUSTERS) -> str:
    """Return the message for an effective number of clusters that is too small."""
    return f"effective number of clusters {n_effective:.3g}, minimum {least}"


def quantiles(values: _inputs.Floats, levels: tuple[float, ...]) -> tuple[float, ...]:
    """Return the linearly interpolated quantiles of the values that are not NaN."""
    n_defined = int(np.count_nonzero(~np.isnan(values)))
    if n_defined == 0:
        return tuple(math.nan for _ in levels)
    positions = [confidence * (n_defined - 1) for confidence in levels]
    below = [math.floor(position) for position in positions]
    above = [min(index + 1, n_defined - 1) for index in below]
    # NaN sorts to the end, so the order statistics of the other values are correct.
    ordered = np.partition(values, sorted({*below, *above}))
    return tuple(
        _between(float(ordered[low]), float(ordered[high]), position - low)
        for low, high, position in zip(below, above, positions, strict=True)
    )


def _between(low: float, high: float, share: float) -> float:
    """Interpolate; two equal infinities, or a fraction of 0, do not give NaN."""
    if low == high or share == 0.0:
        return low
    return low + (high - low) * share


IntervalMethod: TypeAlias = Literal["auto", "percentile"]
"""Method of intervals: t with a variance term for few events ("auto"), or quantiles of
resamples."""

_METHODS = ("auto", "percentile")


def check_seed(seed: object) -> np.random.Generator | int | None:
    """Return a checked seed, generator, or None for fresh entropy."""
    if seed is None or isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise TypeError(f"seed must be an integer seed, a numpy Generator or None; got {seed!r}")
    number = operator.index(seed)
    if number < 0:
        raise ValueError(f"seed must be a seed of at least 0; got {number}")
    return number


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """Options of confidence intervals, shared by all functions with clustered intervals.

    Args:
        confidence: Nominal coverage, in (0, 1).
        method: "auto" uses no resamples. For a proportion, a difference of proportions or another
            weighted sum of them, it is a t interval over clusters with a variance term for few
            events; for kappa and odds, such an interval after transformation; for any other
            function, a jackknife t interval. The p-value comes from the same t. "percentile" uses
            the quantiles of resamples.
        resamples: Number of resamples, at least 1; use 1,000 or more. "auto" ignores it.
        seed: Seed of the resamples, at least 0, for reproducible numbers; a generator; or None for
            fresh entropy.

    Raises:
        TypeError: If `resamples` is not an integer, or `seed` not a seed, a generator or None.
        ValueError: If `confidence` is not in (0, 1), `method` is unknown, `resamples` is less than
            1 or `seed` less than 0.

    Notes:
        Functions of frames derive a seed for each group from `seed` and the labels of the group, so
        that its numbers do not depend on other groups.

    References:
        B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap, 1993, chapters 12 to 14.

    Examples:
        >>> Intervals(confidence=0.9).resamples
        10000
        >>> Intervals(method="percentile", resamples=2_000, seed=7)
        Intervals(confidence=0.95, method='percentile', resamples=2000, seed=7)
    """

    confidence: float = 0.95
    """Nominal coverage, in (0, 1)."""
    method: IntervalMethod = "auto"
    """Method of the interval: "auto" or "percentile"."""
    resamples: int = 10_000
    """Number of resamples; "auto" ignores it."""
    seed: np.random.Generator | int | None = 0
    """Seed or generator of the resamples; None for fresh entropy."""

    def __post_init__(self) -> None:
        _inputs.check_confidence_level(self.confidence, "confidence")
        _inputs.check_choice(self.method, _METHODS, "method")
        object.__setattr__(self, "resamples", _inputs.check_n_resamples(self.resamples))
        object.__setattr__(self, "seed", check_seed(self.seed))

    def generator(self) -> np.random.Generator:
        """Return the random generator."""
        return np.random.default_rng(self.seed)


DEFAULT_INTERVALS = Intervals()
"""Level 0.95, method "auto"."""


def wilson_interval(successes: int, n: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval of a proportion of independent trials.

    Args:
        successes: Number of successes, at most `n`.
        n: Number of independent trials.
        confidence: Nominal coverage, in (0, 1).

    Returns:
        The bounds, within [0, 1]; NaN, with an `UndefinedMetricWarning`, if `n` is 0.

    Raises:
        TypeError: If a count is not an integer.
        ValueError: If a count is negative, `successes` exceeds `n`, or `confidence` is not in
            (0, 1).

    Notes:
        Without a success the lower bound is exactly 0, and without a failure the upper bound is
        exactly 1; neither interval has width 0. This is the published formula. Its coverage is 0.84
        if one event is expected in six samples, for any sample size. `paired_by` and
        `cluster_bootstrap`, also with each row as a cluster, have wider limits for few events, with
        a coverage of 0.93 at every rate; use them for pairs with common facts.

    References:
        E. B. Wilson, Journal of the American Statistical Association 22, 1927.

    Examples:
        >>> low, high = wilson_interval(3433, 3433 + 870)
        >>> round(low, 4), round(high, 4)
        (0.7856, 0.8095)
    """
    _inputs.check_confidence_level(confidence)
    successes, n = _inputs.check_count(successes, "successes"), _inputs.check_count(n, "n")
    if successes > n:
        raise ValueError(f"successes must not exceed n; got {successes} of {n}")
    if n == 0:
        _inputs.warn_undefined("the Wilson interval of 0 trials is undefined (NaN)")
        return math.nan, math.nan
    z = NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    share, shrink = successes / n, 1.0 + z * z / n
    centre = (share + z * z / (2 * n)) / shrink
    half = z * math.sqrt(share * (1.0 - share) / n + z * z / (4 * n * n)) / shrink
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return low, high


def t_quantile(df: npt.ArrayLike, confidence: npt.ArrayLike) -> _inputs.Floats:
    """Return the two-sided quantiles of Student's t; NaN without a degree of freedom."""
    from scipy.special import stdtrit

    degrees = np.asarray(df, dtype=np.float64)
    usable = degrees > 0.0
    quantile = stdtrit(np.where(usable, degrees, 1.0), (1.0 + np.asarray(confidence)) / 2.0)
    return np.where(usable, quantile, np.nan)


def t_p_value(statistic: npt.ArrayLike, df: npt.ArrayLike) -> _inputs.Floats:
    """Return the two-sided p-values of Student's t; NaN without a degree of freedom."""
    from scipy.special import stdtr

    degrees = np.asarray(df, dtype=np.float64)
    usable = degrees > 0.0
    return np.where(usable, 2.0 * stdtr(np.where(usable, degrees, 1.0), -np.abs(statistic)), np.nan)
