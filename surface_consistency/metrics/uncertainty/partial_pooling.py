"""Rates of many small groups, each drawn towards what the groups have in common."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import (
    Floats,
    check_confidence_level,
    check_equal_lengths,
    numeric_vector,
    warn_undefined,
)

_LEAST_CONCENTRATION = 1e-2
_MOST_CONCENTRATION = 1e6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PooledRatesResult:
    """Result of `pooled_rates`."""

    rates: npt.NDArray[np.float64]
    """Pooled rate of each group, in [0, 1], shape `(n_groups,)`."""
    low: npt.NDArray[np.float64]
    """Lower bound of each rate."""
    high: npt.NDArray[np.float64]
    """Upper bound of each rate."""
    mean: float
    """Mean of the fitted beta distribution: the rate of a group of which nothing is known."""
    concentration: float
    """Number of trials that the distribution weighs as much as; infinite where groups do not
    differ by more than chance, and then all rates are the mean."""


def pooled_rates(
    events: npt.ArrayLike, trials: npt.ArrayLike, *, confidence_level: float = 0.95
) -> PooledRatesResult:
    """Estimate the rates of groups by empirical Bayes: beta-binomial partial pooling.

    Group j with x_j events in n_j trials has a rate drawn from a beta distribution of mean m and
    concentration s, both fitted by maximum likelihood of the beta-binomial over all groups. Its
    pooled rate is (x_j + s m) / (n_j + s): a small group moves far towards the mean, a large one
    hardly.

    Args:
        events: Events of each group, such as flips, at least 0, shape `(n_groups,)`. Numbers that
            are not whole are taken as they are: divide both by the design effect where the trials
            of a group are not independent.
        trials: Trials of each group, such as pairs, at least its events. A group without trials
            gets the mean.
        confidence_level: Posterior probability of each interval, in (0, 1).

    Returns:
        Pooled rates with the central posterior interval of each, and the fitted distribution. Where
        a posterior is so skew that its mean lies outside, the interval is widened to hold it.

    Raises:
        ValueError: When the lengths differ, a number is missing, infinite or negative, a group has
            more events than trials, there are fewer than two groups with trials, or an option is
            out of range.
        TypeError: When a value is no number.

    Notes:
        The intervals take the fitted distribution as known, so that they are somewhat short with
        few groups; from about ten on they hold for the groups on average, not for each one: a
        group that is truly far out is drawn in. Where all groups have no event, or all have
        nothing else, nothing can be fitted: all is NaN, with an `UndefinedMetricWarning`.

    References:
        J. C. Kleinman, Journal of the American Statistical Association 68, 1973; G. Casella, The
        American Statistician 39, 1985; B. Efron and C. Morris, Scientific American 236, 1977.

    Examples:
        >>> result = pooled_rates([9, 1, 20, 60, 45, 5], [12, 25, 80, 150, 300, 23])
        >>> result.rates.round(2).tolist()
        [0.61, 0.09, 0.25, 0.4, 0.15, 0.23]
    """
    check_confidence_level(confidence_level)
    x, n = numeric_vector(events, "events"), numeric_vector(trials, "trials")
    check_equal_lengths(events=x.size, trials=n.size)
    for name, is_wrong in (
        ("events must be at least 0", ~(x >= 0)),
        ("trials must be at least the events", ~(n >= x)),
    ):
        if is_wrong.any():
            place = int(np.argmax(is_wrong))
            raise ValueError(f"{name}; group {place} has {x[place]} events in {n[place]} trials")
    if np.count_nonzero(n) < 2:
        raise ValueError("there must be two groups with trials, or nothing can be pooled")
    if x.sum() == 0.0 or x.sum() == n.sum():
        warn_undefined("pooled rates are undefined (NaN): no group has an event, or all have only")
        nothing = np.full(x.size, np.nan)
        return PooledRatesResult(
            rates=nothing, low=nothing, high=nothing, mean=math.nan, concentration=math.nan
        )
    mean, concentration = _fitted(x[n > 0], n[n > 0])
    if math.isinf(concentration):
        same = np.full(x.size, mean)
        low, high = _beta_bounds(
            np.array([x.sum()]) + 0.5, np.array([(n - x).sum()]) + 0.5, confidence_level
        )
        return PooledRatesResult(
            rates=same,
            low=np.full(x.size, low[0]),
            high=np.full(x.size, high[0]),
            mean=mean,
            concentration=concentration,
        )
    right, wrong = x + concentration * mean, n - x + concentration * (1.0 - mean)
    rates = right / (right + wrong)
    low, high = _beta_bounds(right, wrong, confidence_level)
    return PooledRatesResult(
        rates=rates,
        low=np.minimum(low, rates),
        high=np.maximum(high, rates),
        mean=mean,
        concentration=concentration,
    )


def _fitted(x: Floats, n: Floats) -> tuple[float, float]:
    """Return mean and concentration of greatest beta-binomial likelihood."""
    from scipy.optimize import minimize
    from scipy.special import betaln, expit

    def loss(parameters: Floats) -> float:
        """Return the negative log-likelihood, up to a constant."""
        mean, size = float(expit(parameters[0])), math.exp(parameters[1])
        a, b = size * mean, size * (1.0 - mean)
        return -float((betaln(x + a, n - x + b) - betaln(a, b)).sum())

    overall = float((x.sum() + 0.5) / (n.sum() + 1.0))
    limits = [
        (-12.0, 12.0),
        (math.log(_LEAST_CONCENTRATION), math.log(_MOST_CONCENTRATION)),
    ]
    starts = [(math.log(overall / (1.0 - overall)), math.log(size)) for size in (2.0, 30.0, 1000.0)]
    optimum = min(
        (minimize(loss, start, method="L-BFGS-B", bounds=limits) for start in starts),
        key=lambda result: float(result.fun),
    )
    mean, size = float(expit(optimum.x[0])), math.exp(optimum.x[1])
    # Without more spread than chance the likelihood rises towards an infinite concentration.
    pooled = float(x.sum() / n.sum())
    alike = -float((x * np.log(pooled) + (n - x) * np.log1p(-pooled)).sum())
    if size > _MOST_CONCENTRATION / 2 or alike <= float(optimum.fun) + 1e-6:
        return pooled, math.inf
    return mean, size


def _beta_bounds(right: Floats, wrong: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the central interval of beta distributions."""
    from scipy.special import betaincinv

    tail = (1.0 - level) / 2.0
    low, high = (betaincinv(right, wrong, level) for level in (tail, 1.0 - tail))
    return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
