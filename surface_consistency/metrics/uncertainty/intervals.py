"""Intervals: their form, how they are asked for, and those of single shares and resamples."""

import math
import operator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from surface_consistency.clusters import FEW_CLUSTERS as FEW_CLUSTERS, LEAST_CLUSTERS
from surface_consistency.metrics import _inputs


def worth_of_clusters(sizes: _inputs.Floats, times: _inputs.Floats | float = 1.0) -> _inputs.Floats:
    """Return how many clusters of equal size those on the last axis, held so often, are worth.

    By Kish, (sum)^2 / sum of squares; 0 for none.
    """
    total, squares = (sizes * times).sum(axis=-1), (sizes**2 * times).sum(axis=-1)
    return np.asarray(total**2 / np.where(squares > 0.0, squares, 1.0))


def are_enough(worth: npt.ArrayLike) -> _inputs.Flags:
    """Tell whether something can be inferred from clusters that are worth so many."""
    # Rounding must not cost the last of four equal clusters.
    return np.asarray(np.asarray(worth) > LEAST_CLUSTERS * (1.0 - 1e-9))


def too_few_clusters(worth: float, least: int = LEAST_CLUSTERS) -> str:
    """Return the effective number of clusters, which is too small to infer anything from."""
    return f"effective number of clusters {worth:.3g}, minimum {least}"


def quantiles(values: _inputs.Floats, levels: tuple[float, ...]) -> tuple[float, ...]:
    """Return the linearly interpolated quantiles of the values that are not NaN."""
    n_defined = int(np.count_nonzero(~np.isnan(values)))
    if n_defined == 0:
        return tuple(math.nan for _ in levels)
    positions = [confidence * (n_defined - 1) for confidence in levels]
    below = [math.floor(position) for position in positions]
    above = [min(index + 1, n_defined - 1) for index in below]
    # NaN goes to the end, so that the order statistics of the rest keep their places.
    ordered = np.partition(values, sorted({*below, *above}))
    return tuple(
        _between(float(ordered[low]), float(ordered[high]), position - low)
        for low, high, position in zip(below, above, positions, strict=True)
    )


def _between(low: float, high: float, share: float) -> float:
    """Interpolate without turning two equal infinities, or a share of 0, into NaN."""
    if low == high or share == 0.0:
        return low
    return low + (high - low) * share


IntervalMethod: TypeAlias = Literal["auto", "percentile"]
"""What holds near 0 and 1 and with few clusters, or how it is read from resamples."""

_METHODS = ("auto", "percentile")


def check_seed(seed: object) -> np.random.Generator | int | None:
    """Return what random numbers are drawn from: a seed, a generator, or None for a fresh one."""
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
    """How confidence intervals are made: one option of every function that takes clusters whole.

    Args:
        confidence: Nominal coverage, in (0, 1).
        method: "auto" takes no draws: a t interval over clusters of a share, a difference of
            shares or another sum of them, with the variance that few events cannot show; its image
            for kappa and odds; a jackknife t interval of any other function. It is of the same t as
            the p-value beside it. "percentile" takes the quantiles of resamples.
        resamples: Number of resamples, at least 1; 1,000 or more to be of use. "auto" takes none.
        seed: Seed of the resamples, at least 0, which gives the same numbers again; a generator; or
            None for fresh entropy.

    Raises:
        TypeError: When `resamples` is no integer or `seed` no seed, generator or None.
        ValueError: When `confidence` is not in (0, 1), `method` is unknown, `resamples` is less
            than 1 or `seed` less than 0.

    Notes:
        Functions of frames derive a seed for each group from `seed` and the group's labels, so that
        its numbers do not depend on other groups.

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
    """What holds near 0 and 1 and with few clusters, or how it is read from resamples."""
    resamples: int = 10_000
    """Number of resamples; "auto" takes none."""
    seed: np.random.Generator | int | None = 0
    """Seed or generator of all that is drawn; None for fresh entropy."""

    def __post_init__(self) -> None:
        _inputs.check_confidence_level(self.confidence, "confidence")
        _inputs.check_choice(self.method, _METHODS, "method")
        object.__setattr__(self, "resamples", _inputs.check_n_resamples(self.resamples))
        object.__setattr__(self, "seed", check_seed(self.seed))

    def generator(self) -> np.random.Generator:
        """Return the generator to draw from."""
        return np.random.default_rng(self.seed)


DEFAULT_INTERVALS = Intervals()
"""Of level 0.95, by "auto"."""


def wilson_interval(successes: int, n: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval of a proportion of independent trials.

    Args:
        successes: Number of successes, at most `n`.
        n: Number of independent trials.
        confidence: Nominal coverage, in (0, 1).

    Returns:
        The interval, within [0, 1]; NaN bounds, with an `UndefinedMetricWarning`, when `n` is 0.

    Raises:
        TypeError: When a count is not an integer.
        ValueError: When a count is negative, `successes` exceeds `n`, or `confidence` is not
            in (0, 1).

    Notes:
        No success gives a lower bound of exactly 0 and no failure an upper bound of exactly 1, and
        neither interval is a point. This is the published formula: where one event is expected in
        six samples it holds in 0.84 of them, however large they are. `paired_by` and
        `cluster_bootstrap`, with each row a cluster too, have wider limits for few events, which
        hold in 0.93 at every rate; for pairs that share a fact they are the ones to use.

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
