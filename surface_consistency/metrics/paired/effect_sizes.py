"""Cohen's kappa, and the odds ratio of flips in the two directions."""

import math

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from surface_consistency.metrics._inputs import Floats, check_confidence_level, warn_undefined
from surface_consistency.metrics.paired.paired_tables import CountRatio, PairedTable, check_table
from surface_consistency.metrics.uncertainty.cluster_bounds import Part, of_shares


def cohen_kappa(table: PairedTable) -> float:
    """Return Cohen's kappa of the correctness labels under two conditions.

    With p_o = (a + d) / n and p_e the expected agreement of two independent conditions with the
    same accuracies, kappa = (p_o - p_e) / (1 - p_e). A model that is nearly always incorrect has a
    high consistency by chance; kappa corrects for this.

    Args:
        table: Counts of paired correctness labels, as from `paired_table`.

    Returns:
        Kappa, in [-1, 1]: 1 if the labels always agree, 0 if they agree as often as independent
        ones, negative below that; higher is more consistent.

    Raises:
        TypeError: If `table` is not a `PairedTable`.

    Notes:
        Kappa is NaN, with an `UndefinedMetricWarning`, if all labels are equal or there is no pair.
        Swapping the conditions, or correct and incorrect, does not change it. Kappa depends on the
        accuracies, so report it with them. For an interval pass `kappa_of_counts` to
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
        warn_undefined(f"kappa is undefined (NaN): the correctness labels in {table} do not vary")
    return value


def _kappa_of_disagreement(disagreement: Floats, totals: Floats) -> Floats:
    """Return kappa at another proportion of unequal labels, with the margins of the table fixed."""
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
        Kappa of each, in [-1, 1], shape `(...)`; NaN if the labels do not vary.

    Raises:
        ValueError: If the last axis does not have length four.

    Notes:
        There is no warning, so that the function can be applied to thousands of resamples at once.
        With p_d the proportion of unequal labels, kappa is 1 - p_d / (1 - p_e). Its interval is
        kappa at Wilson's limits of p_d, with the accuracies fixed.

    References:
        J. Cohen, Educational and Psychological Measurement 20, 1960.

    Examples:
        >>> kappa_of_counts([[20, 5, 10, 15], [1, 0, 0, 1], [3, 0, 0, 0]]).round(3).tolist()
        [0.4, 1.0, nan]
    """
    cells = np.asarray(counts, dtype=np.float64)
    if cells.ndim == 0 or cells.shape[-1] != 4:
        raise ValueError(f"counts must have length four along the last axis; got {cells.shape}")
    both, first_only, second_only, neither = np.moveaxis(cells, -1, 0)
    # (p_o - p_e) / (1 - p_e), numerator and denominator times n^2 so that counts stay integers.
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
    """Return the odds of flips from correct to incorrect against flips from incorrect to correct.

    The estimate is b / c, the conditional maximum likelihood estimate for matched pairs. The bounds
    are p / (1 - p) at Clopper and Pearson's bounds p of the proportion b / (b + c), whose coverage
    is at least nominal.

    Args:
        table: The paired correctness labels; only the discordant counts matter.
        confidence: Nominal coverage, in (0, 1).

    Returns:
        Odds ratio, lower and upper bound, each in [0, inf].

    Raises:
        TypeError: If `table` is not a `PairedTable`.
        ValueError: If `confidence` is not in (0, 1).

    Notes:
        The odds ratio is infinite if c = 0 and 0 if b = 0; one of the bounds is then finite and
        above 0. Without a discordant pair all three values are NaN, with an
        `UndefinedMetricWarning`. Swapping the conditions gives the reciprocal. The interval
        excludes 1 exactly if the exact McNemar test is significant. Pairs are assumed to be
        independent: if pairs share a fact, pass `DISCORDANT_ODDS` to `cluster_bootstrap`.

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
    # Complement of the upper bound, which is accurate if the bound is close to 1.
    rest = float(betaincinv(c, b + 1, tail)) if c else 0.0
    high = (1.0 - rest) / rest if rest else math.inf
    return b / c if c else math.inf, low / (1.0 - low) if low < 1.0 else math.inf, high
