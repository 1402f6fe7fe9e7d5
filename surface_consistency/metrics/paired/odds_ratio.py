"""The odds ratio of the discordant pairs: which way, and how strongly, do flips lean?"""

import math
import warnings
from dataclasses import dataclass
from typing import Literal

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics._shared.checks import check_confidence
from surface_consistency.metrics.paired._table_check import check_table
from surface_consistency.metrics.paired.rates import CountRatio
from surface_consistency.metrics.paired.table import PairedTable
from surface_consistency.metrics.uncertainty.interval import Interval, wilson_interval

__all__ = ["DISCORDANT_ODDS", "DiscordantOddsResult", "discordant_odds_ratio"]

DISCORDANT_ODDS = CountRatio(numerator=(0, 1, 0, 0), denominator=(0, 0, 1, 0))
"""The odds ratio b / c as a statistic of summed counts, for `cluster_bootstrap`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordantOddsResult:
    """Result of `discordant_odds_ratio`."""

    odds_ratio: float
    """b / c, in [0, inf]; above 1 where the first condition does better; NaN with no flip."""
    interval: Interval
    """Confidence interval of the odds ratio; NaN bounds with no flip."""
    first_only: int
    """Pairs right under the first condition only (b)."""
    second_only: int
    """Pairs right under the second condition only (c)."""


def discordant_odds_ratio(
    table: PairedTable,
    *,
    confidence: float = 0.95,
    method: Literal["exact", "wilson"] = "exact",
) -> DiscordantOddsResult:
    """Estimate the odds that a flip goes from right to wrong rather than from wrong to right.

    The estimate is b / c, the conditional maximum likelihood estimate for matched pairs. The bounds
    are p / (1 - p) at the bounds p of the share b / (b + c): Clopper and Pearson's for "exact",
    Wilson's for "wilson".

    Args:
        table: The paired verdicts; only the discordant counts matter.
        confidence: Nominal coverage, in (0, 1).
        method: "exact" covers at least nominally; "wilson" about nominally, and is shorter.

    Returns:
        Odds ratio, interval and the discordant counts.

    Raises:
        TypeError: When `table` is no `PairedTable`.
        ValueError: When `confidence` is not in (0, 1) or `method` is unknown.

    Notes:
        c = 0 gives infinity and b = 0 gives 0, each with one finite bound above 0. With no
        discordant pair all is NaN, with an `UndefinedMetricWarning`. Swapping the conditions gives
        the reciprocal. An "exact" interval excludes 1 exactly when the exact McNemar test is
        significant. Pairs are taken for independent: where they share a fact, pass
        `DISCORDANT_ODDS` to `cluster_bootstrap`.

    References:
        F. D. K. Liddell, Journal of Epidemiology and Community Health 37, 1983 (exact); Fagerland,
        Lydersen and Laake, Statistics in Medicine 33, 2014 (Wilson).

    Examples:
        >>> table = PairedTable(both=4285, first_only=2821, second_only=608, neither=6775)
        >>> result = discordant_odds_ratio(table)
        >>> [round(x, 2) for x in (result.odds_ratio, result.interval.low, result.interval.high)]
        [4.64, 4.25, 5.07]
    """
    check_confidence(confidence)
    if method not in ("exact", "wilson"):
        raise ValueError(f"method must be 'exact' or 'wilson'; got {method!r}")
    b, c = check_table(table).first_only, table.second_only
    if b + c == 0:
        warnings.warn(
            "the odds ratio is undefined (NaN): no pair is discordant",
            UndefinedMetricWarning,
            stacklevel=2,
        )
        low = high = estimate = math.nan
    else:
        estimate = _odds(b, c)
        low, high = _exact(b, c, confidence) if method == "exact" else _wilson(b, c, confidence)
    return DiscordantOddsResult(
        odds_ratio=estimate,
        interval=Interval(low=low, high=high, confidence=confidence, method=method),
        first_only=b,
        second_only=c,
    )


def _odds(part: float, rest: float) -> float:
    """Divide, with infinity for a rest of 0."""
    return part / rest if rest else math.inf


def _exact(b: int, c: int, confidence: float) -> tuple[float, float]:
    """Return the odds at Clopper and Pearson's bounds."""
    from scipy.special import betaincinv

    tail = (1.0 - confidence) / 2.0
    low = float(betaincinv(b, c + 1, tail)) if b else 0.0
    if c == 0:
        return _odds(low, 1.0 - low), math.inf
    # The complement of the upper bound, which keeps its digits where the bound is close to 1.
    rest = float(betaincinv(c, b + 1, tail))
    return _odds(low, 1.0 - low), _odds(1.0 - rest, rest)


def _wilson(b: int, c: int, confidence: float) -> tuple[float, float]:
    """Return the odds at Wilson's bounds."""
    share = wilson_interval(b, b + c, confidence=confidence)
    return _odds(share.low, 1.0 - share.low), _odds(share.high, 1.0 - share.high)
