"""Agreement beyond chance, and which way and how strongly flips lean."""

import math

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from surface_consistency.metrics._inputs import Floats, check_confidence_level, warn_undefined
from surface_consistency.metrics.paired.paired_tables import CountRatio, PairedTable, check_table
from surface_consistency.metrics.uncertainty.cluster_bounds import Part, of_shares


def cohen_kappa(table: PairedTable) -> float:
    """Return Cohen's kappa of the verdicts under two conditions.

    With p_o = (a + d) / n and p_e the agreement of two independent conditions of the same
    accuracies, kappa = (p_o - p_e) / (1 - p_e). A model that is nearly always wrong is consistent
    by that alone; kappa takes that part away.

    Args:
        table: Counts of paired verdicts, as from `paired_table`.

    Returns:
        Kappa, in [-1, 1]: 1 where the verdicts always agree, 0 where they agree as often as
        independent ones would, negative below that; higher is more consistent.

    Raises:
        TypeError: When `table` is no `PairedTable`.

    Notes:
        NaN, with an `UndefinedMetricWarning`, where all verdicts are right, all are wrong, or there
        is no pair. Swapping the conditions, or right and wrong, changes nothing. Kappa depends on
        the accuracies: read it beside them. For an interval pass `kappa_of_counts` to
        `cluster_bootstrap`.

    References:
        J. Cohen, Educational and Psychological Measurement 20, 1960.

    Examples:
        >>> table = PairedTable(both=4285, first_only=2821, second_only=608, neither=6775)
        >>> round(cohen_kappa(table), 3)
        0.524
    """
    value = float(kappa_of_counts(check_table(table).counts))
    if value != value:
        warn_undefined(f"kappa is undefined (NaN): the verdicts in {table} do not vary")
    return value


def _kappa_of_disagreement(disagreement: Floats, totals: Floats) -> Floats:
    """Return kappa at another share of unequal verdicts, the margins being what they are."""
    both, first_only, second_only, neither = np.moveaxis(totals, -1, 0)
    n = totals.sum(axis=-1)
    expected = (both + first_only) * (first_only + neither) + (both + second_only) * (
        second_only + neither
    )
    return np.asarray(np.maximum(1.0 - disagreement * n * n / expected, -1.0))


@of_shares(Part(1.0, (0, 1, 1, 0), (1, 1, 1, 1)), link=_kappa_of_disagreement)
def kappa_of_counts(counts: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return Cohen's kappa of each row of counts; a statistic for `cluster_bootstrap`.

    Args:
        counts: Counts both, first only, second only, neither along the last axis, shape `(..., 4)`.

    Returns:
        Kappa of each, in [-1, 1], shape `(...)`; NaN where the verdicts do not vary.

    Raises:
        ValueError: When the last axis does not hold four counts.

    Notes:
        Does not warn, so that it serves thousands of resamples at once. With p_d the share of
        unequal verdicts, kappa is 1 - p_d / (1 - p_e); its interval is that at Wilson's limits of
        p_d, the accuracies held as they are.

    References:
        J. Cohen, Educational and Psychological Measurement 20, 1960.

    Examples:
        >>> kappa_of_counts([[20, 5, 10, 15], [1, 0, 0, 1], [3, 0, 0, 0]]).round(3).tolist()
        [0.4, 1.0, nan]
    """
    cells = np.asarray(counts, dtype=np.float64)
    if cells.ndim == 0 or cells.shape[-1] != 4:
        raise ValueError(f"counts must hold four cells along the last axis; got {cells.shape}")
    both, first_only, second_only, neither = np.moveaxis(cells, -1, 0)
    # (p_o - p_e) / (1 - p_e), both sides multiplied by n^2 so that counts stay whole.
    above = 2.0 * (both * neither - first_only * second_only)
    below = (both + first_only) * (first_only + neither) + (both + second_only) * (
        second_only + neither
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.divide(above, below))


DISCORDANT_ODDS = CountRatio(numerator=(0, 1, 0, 0), denominator=(0, 0, 1, 0), is_odds=True)
"""The odds ratio b / c as a statistic of summed counts, for `cluster_bootstrap`."""


def discordant_odds_ratio(
    table: PairedTable, *, confidence: float = 0.95
) -> tuple[float, float, float]:
    """Estimate the odds that a flip goes from right to wrong rather than from wrong to right.

    The estimate is b / c, the conditional maximum likelihood estimate for matched pairs. The bounds
    are p / (1 - p) at Clopper and Pearson's bounds p of the share b / (b + c), which cover at least
    nominally.

    Args:
        table: The paired verdicts; only the discordant counts matter.
        confidence: Nominal coverage, in (0, 1).

    Returns:
        Odds ratio, lower and upper bound, each in [0, inf].

    Raises:
        TypeError: When `table` is no `PairedTable`.
        ValueError: When `confidence` is not in (0, 1).

    Notes:
        c = 0 gives infinity and b = 0 gives 0, each with one finite bound above 0. With no
        discordant pair all is NaN, with an `UndefinedMetricWarning`. Swapping the conditions gives
        the reciprocal. The interval excludes 1 exactly when the exact McNemar test is
        significant. Pairs are taken for independent: where they share a fact, pass
        `DISCORDANT_ODDS` to `cluster_bootstrap`.

    References:
        F. D. K. Liddell, Journal of Epidemiology and Community Health 37, 1983.

    Examples:
        >>> table = PairedTable(both=4285, first_only=2821, second_only=608, neither=6775)
        >>> [round(x, 2) for x in discordant_odds_ratio(table)]
        [4.64, 4.25, 5.07]
    """
    check_confidence_level(confidence)
    b, c = check_table(table).first_only, table.second_only
    if b + c == 0:
        warn_undefined("the odds ratio is undefined (NaN): no pair is discordant")
        return math.nan, math.nan, math.nan
    tail = (1.0 - confidence) / 2.0
    low = float(betaincinv(b, c + 1, tail)) if b else 0.0
    # The complement of the upper bound, which keeps its digits where the bound is close to 1.
    rest = float(betaincinv(c, b + 1, tail)) if c else 0.0
    high = (1.0 - rest) / rest if rest else math.inf
    return b / c if c else math.inf, low / (1.0 - low) if low < 1.0 else math.inf, high
