"""McNemar's test: do two paired conditions differ in accuracy?"""

import math
from dataclasses import dataclass
from typing import Literal

from surface_consistency.metrics.paired._table_check import check_table
from surface_consistency.metrics.paired.table import PairedTable

__all__ = ["EXACT_UP_TO", "McNemarMethod", "McNemarResult", "mcnemar"]

McNemarMethod = Literal["auto", "exact", "corrected", "uncorrected", "mid-p"]
"""Form of the test; "auto" chooses between "exact" and "corrected"."""

EXACT_UP_TO = 25
"""Largest number of discordant pairs for which "auto" is exact (arXiv 2607.00605, D.1)."""

_METHODS = ("exact", "corrected", "uncorrected", "mid-p")


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemarResult:
    """Result of `mcnemar`."""

    statistic: float
    """Chi-square with one degree of freedom ("corrected", "uncorrected"), or the smaller count of
    discordant pairs ("exact", "mid-p"); at least 0, and 0 with no discordant pair."""
    p_value: float
    """Two-sided p-value, in [0, 1]; 1.0 with no discordant pair."""
    method: Literal["exact", "corrected", "uncorrected", "mid-p"]
    """Form of the test that was used; never "auto"."""
    first_only: int
    """Pairs right under the first condition only."""
    second_only: int
    """Pairs right under the second condition only."""


def mcnemar(table: PairedTable, *, method: McNemarMethod = "auto") -> McNemarResult:
    """Test whether the two conditions of a paired table have equal accuracy.

    With b pairs right at first only and c at second only, "corrected" is
    (|b - c| - 1)^2 / (b + c), "uncorrected" (b - c)^2 / (b + c), both against chi-square with one
    degree of freedom; "exact" is the two-sided binomial test of min(b, c) in b + c at 1/2, and
    "mid-p" that test less the probability of the observed count.

    Args:
        table: The paired verdicts; only the discordant counts matter.
        method: Form of the test. "auto" is "exact" for 25 or fewer discordant pairs and
            "corrected" for more, the rule of the audit of forgetting.

    Returns:
        Statistic, p-value, the form that was used, and the discordant counts.

    Raises:
        TypeError: When `table` is no `PairedTable`.
        ValueError: When `method` is not one of the names above.

    Notes:
        With no discordant pair the statistic is 0 and p is 1. With b = c > 0 the corrected
        statistic is 0, as in R (statsmodels gives 1 / (b + c)). Swapping the conditions changes
        nothing. The test takes pairs for independent: where many pairs share a fact, p is too
        small, and a cluster-bootstrap interval of `accuracy_difference` is the safer answer.

    References:
        McNemar, Psychometrika 12, 1947; Edwards, Psychometrika 13, 1948 (correction); Fagerland,
        Lydersen and Laake, BMC Medical Research Methodology 13:91, 2013 (mid-p).

    Examples:
        >>> result = mcnemar(PairedTable(both=3, first_only=921, second_only=11, neither=11293))
        >>> result.method, round(result.statistic, 2)
        ('corrected', 886.57)
        >>> mcnemar(PairedTable(both=0, first_only=4, second_only=0, neither=596)).p_value
        0.125
    """
    b, c = check_table(table).first_only, table.second_only
    if method == "auto":
        method = "exact" if b + c <= EXACT_UP_TO else "corrected"
    if method not in _METHODS:
        raise ValueError(f"method must be one of auto, {', '.join(_METHODS)}; got {method!r}")
    if b + c == 0:
        statistic, p_value = 0.0, 1.0
    elif method == "exact" or method == "mid-p":
        statistic, p_value = float(min(b, c)), _binomial_p(b, c, mid=method == "mid-p")
    else:
        distance = max(abs(b - c) - 1, 0) if method == "corrected" else abs(b - c)
        statistic = distance * distance / (b + c)
        # The survival function of chi-square with one degree of freedom, exact in the far tail.
        p_value = math.erfc(math.sqrt(statistic / 2.0))
    return McNemarResult(
        statistic=statistic, p_value=p_value, method=method, first_only=b, second_only=c
    )


def _binomial_p(b: int, c: int, *, mid: bool) -> float:
    """Return the two-sided binomial p-value, or its mid-p form, of b against c."""
    from scipy.special import bdtr

    fewer, total = min(b, c), b + c
    at_most = float(bdtr(fewer, total, 0.5))
    if not mid:
        return min(1.0, 2.0 * at_most)
    return at_most + (float(bdtr(fewer - 1, total, 0.5)) if fewer else 0.0)
