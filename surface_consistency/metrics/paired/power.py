"""Power of McNemar's test: required pairs, detectable differences and the design effect."""

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import Floats, check_count, warn_undefined
from surface_consistency.metrics.paired.paired_tables import PAIRED_RATES, CountRatio, pair_counts


def required_pairs(
    difference: float,
    *,
    discordant_rate: float,
    power: float = 0.8,
    significance: float = 0.05,
    design_effect: float = 1.0,
) -> int:
    """Return the number of pairs that McNemar's test needs to detect a difference in accuracy.

    With p the proportion of discordant pairs and d the difference in accuracy,
    n = (z_a sqrt(p) + z_b sqrt(p - d^2))^2 / d^2, where z_a and z_b are the normal quantiles of
    1 - significance / 2 and of the power, times the design effect, rounded up.

    Args:
        difference: Difference in accuracy to detect, a fraction; its sign does not matter.
        discordant_rate: Proportion of pairs whose labels differ (the flip rate), in (0, 1].
        power: Probability of detecting it, in (significance / 2, 1).
        significance: Level of the two-sided test, in (0, 1).
        design_effect: Variance under clustering divided by that of independent pairs, as from
            `design_effect`; above 0.

    Returns:
        Number of pairs, at least 1.

    Raises:
        ValueError: If a probability is out of its range, `difference` is 0 or exceeds
            `discordant_rate`, which is impossible, or `design_effect` is not above 0.

    Notes:
        This is for the test without continuity correction; the exact and corrected forms need a few
        more. More pairs are needed for a higher discordant rate at an equal difference, and fewer
        for a larger difference; for a power below 1/2 and a difference near 1 the approximation may
        violate this.

    References:
        R. J. Connor, Biometrics 43, 1987; S. W. Duffy, Biometrics 40, 1984 (normal approximation).

    Examples:
        >>> required_pairs(0.02, discordant_rate=0.237)
        4649
    """
    z_test, z_power = _quantiles(power, significance, discordant_rate, design_effect)
    size = abs(difference)
    if not 0.0 < size <= discordant_rate:
        raise ValueError(
            "difference must be between 0 and discordant_rate, which bounds it; got "
            f"{difference!r} with discordant_rate={discordant_rate!r}"
        )
    spread = z_test * math.sqrt(discordant_rate) + z_power * math.sqrt(discordant_rate - size**2)
    pairs = design_effect * (max(spread, 0.0) / size) ** 2
    # A relative tolerance keeps rounding error from adding a pair to an exact result.
    return max(1, math.ceil(pairs * (1.0 - 1e-12)))


def minimum_detectable_difference(
    n_pairs: int,
    *,
    discordant_rate: float,
    power: float = 0.8,
    significance: float = 0.05,
    design_effect: float = 1.0,
) -> float:
    """Return the minimum detectable difference in accuracy of McNemar's test.

    The inverse of `required_pairs`: with n = n_pairs / design_effect, sqrt(p) (z_a sqrt(n) +
    z_b sqrt(n - z_a^2 + z_b^2)) / (n + z_b^2).

    Args:
        n_pairs: Number of pairs.
        discordant_rate: Proportion of pairs whose labels differ (the flip rate), in (0, 1].
        power: Probability of detecting the difference, in (significance / 2, 1).
        significance: Level of the two-sided test, in (0, 1).
        design_effect: Variance under clustering divided by that of independent pairs; above 0.

    Returns:
        The difference, a fraction in (0, discordant_rate]; smaller is better. NaN if even a
        difference as large as the discordant rate is not detected with this power.

    Raises:
        TypeError: If `n_pairs` is not an integer.
        ValueError: If a probability is out of its range, `n_pairs` is negative or `design_effect`
            is not above 0.

    Notes:
        If the result is NaN, there is an `UndefinedMetricWarning`. For many pairs the result is
        proportional to 1 / sqrt(n_pairs). An observed difference below the result is inconclusive
        in either direction.

    References:
        R. J. Connor, Biometrics 43, 1987.

    Examples:
        >>> round(minimum_detectable_difference(35, discordant_rate=0.237), 3)
        0.223
    """
    n = check_count(n_pairs, "n_pairs") / design_effect if design_effect > 0 else math.nan
    z_test, z_power = _quantiles(power, significance, discordant_rate, design_effect)
    inner = n - z_test**2 + z_power**2
    difference = math.inf
    if inner >= 0.0 and n > 0.0:
        difference = math.sqrt(discordant_rate) * (
            z_test * math.sqrt(n) + z_power * math.sqrt(inner)
        )
        difference /= n + z_power**2
        # If there are too few pairs, squaring the equation adds roots that do not solve it.
        reached = z_power * math.sqrt(max(discordant_rate - difference**2, 0.0))
        needed = difference * math.sqrt(n) - z_test * math.sqrt(discordant_rate)
        if abs(reached - needed) > 1e-9 * math.sqrt(discordant_rate * n):
            difference = math.inf
    if difference > discordant_rate:
        warn_undefined(
            f"no difference can be detected (NaN): {n_pairs} pairs with a discordant rate of "
            f"{discordant_rate} are too few for a power of {power}"
        )
        return math.nan
    return difference


def _quantiles(
    power: float, significance: float, discordant_rate: float, design_effect: float
) -> tuple[float, float]:
    """Check the probabilities, and return the normal quantiles of test and power."""
    for name, value in (("power", power), ("significance", significance)):
        if not 0.0 < value < 1.0:
            raise ValueError(f"{name} must be strictly between 0 and 1; got {value!r}")
    if power <= significance / 2.0:
        raise ValueError(
            "power must exceed significance / 2, the probability of a false finding in either "
            f"direction; got power={power!r} and significance={significance!r}"
        )
    if not 0.0 < discordant_rate <= 1.0:
        raise ValueError(f"discordant_rate must be in (0, 1]; got {discordant_rate!r}")
    if not 0.0 < design_effect < math.inf:
        raise ValueError(f"design_effect must be above 0 and finite; got {design_effect!r}")
    normal = NormalDist()
    return normal.inv_cdf(1.0 - significance / 2.0), normal.inv_cdf(power)


def design_effect(
    counts: npt.ArrayLike, *, rate: str | CountRatio = "accuracy_difference"
) -> float:
    """Return the variance of a rate under clustering divided by that for independent pairs.

    Both variances are those of the linearised ratio: a pair in cell j contributes
    u_j = numerator_j - rate * denominator_j. The clustered variance sums u within clusters first,
    K / (K - 1) sum_k (sum u)^2; the other squares u of each pair, n / (n - 1) sum u^2.

    Args:
        counts: Counts of each cluster, shape `(n_clusters, 4)`, as from `cluster_counts`.
        rate: Name in `PAIRED_RATES`, or a custom `CountRatio`.

    Returns:
        The design effect, at least 0: about 1 for independent pairs, and close to m if each of many
        clusters consists of m copies of one pair.

    Raises:
        TypeError: If `counts` is not numeric or `rate` is neither a name nor a ratio.
        ValueError: If `counts` has another shape, a count is negative or not an integer, there is
            no pair, or the name is unknown.

    Notes:
        With one pair per cluster the result is exactly 1. Values below 1 mean that pairs of a
        cluster are negatively correlated. The result is NaN, with an `UndefinedMetricWarning`, for
        a single cluster and for a rate that is undefined or does not vary. The number of pairs
        divided by the design effect is the effective number of independent pairs.

    References:
        L. Kish, Survey Sampling, Wiley 1965, section 5.4; Cochran, Sampling Techniques, 1977,
        section 9A.

    Examples:
        >>> counts = [[0, 2, 0, 0], [2, 0, 0, 0], [0, 0, 2, 0], [0, 2, 0, 0]] * 50
        >>> round(design_effect(counts), 2)
        2.01
    """
    effect = design_effect_of(pair_counts(counts), _ratio(rate))
    if math.isnan(effect):
        warn_undefined(
            "the design effect is undefined (NaN): it needs two clusters and a rate that varies"
        )
    return effect


def design_effect_of(cells: Floats, ratio: CountRatio) -> float:
    """Return the design effect of checked counts; NaN if undefined."""
    totals = cells.sum(axis=0)
    value = float(ratio(totals))
    if len(cells) < 2 or not math.isfinite(value):
        return math.nan
    weights = np.asarray(ratio.numerator) - value * np.asarray(ratio.denominator)
    n_clusters, n_pairs = len(cells), float(totals.sum())
    within = float(totals @ weights**2) * n_pairs / (n_pairs - 1.0)
    between = float(((cells @ weights) ** 2).sum()) * n_clusters / (n_clusters - 1.0)
    return between / within if within > 0.0 else math.nan


def _ratio(rate: object) -> CountRatio:
    """Return the ratio of counts for a name or a ratio."""
    if isinstance(rate, CountRatio):
        return rate
    if not isinstance(rate, str):
        raise TypeError(f"rate must be a name or a CountRatio; got {type(rate).__name__}")
    ratio = PAIRED_RATES.get(rate)
    if not isinstance(ratio, CountRatio):
        raise ValueError(f"rate must be one of {', '.join(PAIRED_RATES)}; got {rate!r}")
    return ratio
