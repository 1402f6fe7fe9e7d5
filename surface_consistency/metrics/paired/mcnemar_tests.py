"""Tests of equal accuracy of two conditions: the clustered t test and forms of McNemar's test."""

import math
from typing import Literal, NamedTuple, TypeAlias

import numpy.typing as npt

from surface_consistency.metrics._inputs import Floats, check_choice, warn_undefined
from surface_consistency.metrics.paired.paired_tables import (
    PAIRED_RATES,
    PairedTable,
    check_table,
    pair_counts,
    table_of,
)
from surface_consistency.metrics.uncertainty.cluster_bounds import cluster_t, parts_of
from surface_consistency.metrics.uncertainty.intervals import Intervals

McNemarMethod = Literal["auto", "exact", "corrected", "uncorrected", "mid-p"]
"""Form of McNemar's test; "auto" chooses between "exact" and "corrected"."""

_METHODS = ("exact", "corrected", "uncorrected", "mid-p")
_Form: TypeAlias = Literal["exact", "corrected", "uncorrected", "mid-p"]


class PairedTestResult(NamedTuple):
    """Result of a test of equal accuracy."""

    statistic: float
    """The statistic of the test."""

    p_value: float
    """The two-sided p-value, in [0, 1]."""


def mcnemar(
    table: PairedTable | npt.ArrayLike, *, method: McNemarMethod = "auto"
) -> PairedTestResult:
    """Test whether two conditions have equal accuracy by McNemar's test, for independent pairs.

    With b pairs correct only under the first condition and c only under the second, "corrected" is
    (|b - c| - 1)^2 / (b + c) and "uncorrected" (b - c)^2 / (b + c), both compared with chi-square
    of one degree of freedom. "exact" is the two-sided binomial test of min(b, c) of b + c at 1/2.
    "mid-p" is that p-value minus the probability of the observed count.

    Args:
        table: The paired correctness labels, or their counts in the shape `(2, 2)`, with rows for
            the first condition and columns for the second, correct before incorrect. Only the
            discordant counts matter.
        method: Form of the test. "auto" is "exact" for 25 or fewer discordant pairs and
            "corrected" for more, the rule of the audit of forgetting.

    Returns:
        The statistic, which is chi-square with one degree of freedom ("corrected", "uncorrected")
        or the smaller count of discordant pairs ("exact", "mid-p"), and the two-sided p-value, in
        [0, 1].

    Raises:
        TypeError: If `table` is not a `PairedTable` and does not have the shape `(2, 2)`.
        ValueError: If `method` is not one of the names above.

    Notes:
        Without a discordant pair the statistic is 0 and p is 1. With b = c > 0 the corrected
        statistic is 0, as in R (statsmodels gives 1 / (b + c)). Swapping the conditions does not
        change the result. If many pairs share a fact, p is too small: use `paired_by` or
        `clustered_mcnemar`, which are cluster-robust.

    References:
        McNemar, Psychometrika 12, 1947; Edwards, Psychometrika 13, 1948 (correction); Fagerland,
        Lydersen and Laake, BMC Medical Research Methodology 13:91, 2013 (mid-p).

    Examples:
        >>> table = PairedTable(both=3, first_only=921, second_only=11, neither=11293)
        >>> statistic, p_value = mcnemar(table)
        >>> round(statistic, 2), p_value < 0.001
        (886.57, True)
        >>> mcnemar(PairedTable(both=0, first_only=4, second_only=0, neither=596))
        PairedTestResult(statistic=0.0, p_value=0.125)
    """
    _, b, c, _ = check_table(table).counts
    check_choice(method, ("auto", *_METHODS), "method")
    form = _form(b + c, method)
    if b + c == 0:
        return PairedTestResult(0.0, 1.0)
    if form == "exact" or form == "mid-p":
        return PairedTestResult(float(min(b, c)), _binomial_p(b, c, mid=form == "mid-p"))
    distance = max(abs(b - c) - 1, 0) if form == "corrected" else abs(b - c)
    statistic = distance * distance / (b + c)
    # The survival function of chi-square with one degree of freedom, accurate in the far tail.
    return PairedTestResult(statistic, math.erfc(math.sqrt(statistic / 2.0)))


def _form(n_discordant: int, method: McNemarMethod) -> _Form:
    """Return the form of the test that "auto" chooses (arXiv 2607.00605, D.1)."""
    if method != "auto":
        return method
    return "exact" if n_discordant <= 25 else "corrected"


def _binomial_p(b: int, c: int, *, mid: bool) -> float:
    """Return the two-sided binomial p-value, or its mid-p form, of b against c."""
    # scipy.special.bdtr has 32-bit counts and overflows without an error.
    from scipy.special import betainc

    fewer, total = min(b, c), b + c
    at_most, below = (
        float(betainc(float(total - k), float(k + 1), 0.5)) if k >= 0 else 0.0
        for k in (fewer, fewer - 1)
    )
    return at_most + below if mid else min(1.0, 2.0 * at_most)


ClusteredMcNemarMethod = Literal["obuchowski", "durkalski"]
"""Form of the clustered test: with equal weight of pairs ("obuchowski") or clusters
("durkalski")."""

_CLUSTERED_METHODS: tuple[ClusteredMcNemarMethod, ...] = ("obuchowski", "durkalski")
"""Names of the forms."""

PairedTest: TypeAlias = McNemarMethod | Literal["independent", "obuchowski", "durkalski"]
"""Test of a group: "auto", the cluster-robust t test that matches the interval of the accuracy
difference; a form of `clustered_mcnemar`; or, for independent pairs, a form of `mcnemar`, whose
"auto" is called "independent" here.
"""

_TESTS: tuple[PairedTest, ...] = (
    *("auto", "independent", "exact", "corrected", "uncorrected", "mid-p"),
    *_CLUSTERED_METHODS,
)
"""Names of the tests of a group."""

TEST_COLUMNS = ("statistic", "p_value", "test")
"""Columns from `run_test` in tables of groups."""

_DIFFERENCE = PAIRED_RATES["accuracy_difference"]


def check_test(test: str) -> None:
    """Raise an error if the name of the test is unknown."""
    check_choice(test, _TESTS, "test")


def run_test(counts: Floats, test: PairedTest, intervals: Intervals) -> dict[str, object]:
    """Return statistic, p-value and form of the test by column; NaN without a pair.

    Each row of `counts` is a cluster with a pair. For a named test, the result also has bounds: the
    accuracy differences that the test does not reject, or NaN if the test has no bounds. "auto" is
    the t test that matches an interval by "auto"; with resampled intervals there is no test, and
    its name is empty.
    """
    cells = [int(count) for count in counts.sum(axis=0)]
    if test == "auto" and intervals.method != "auto":
        return dict(zip(TEST_COLUMNS, (math.nan, math.nan, ""), strict=True))
    if test == "auto":
        statistic = p_value = math.nan
        inferred = cluster_t(parts_of(_DIFFERENCE), counts) if sum(cells) else None
        if inferred is not None:
            statistic, p_value = float(inferred.t()), float(inferred.p_value())
        return dict(zip(TEST_COLUMNS, (statistic, p_value, "t"), strict=True))
    low = high = math.nan
    if sum(cells) == 0:
        row = (math.nan, math.nan, "exact" if test == "independent" else test)
    elif test == "obuchowski" or test == "durkalski":
        row = (*_clustered_statistic(counts, test), test)
    else:
        form = _form(cells[1] + cells[2], "auto" if test == "independent" else test)
        row = (*mcnemar(table_of(cells), method=form), form)
        if form == "exact":
            low, high = _conditional_bounds(cells[1], cells[2], sum(cells), intervals.confidence)
    bounds = {"accuracy_difference_low": low, "accuracy_difference_high": high}
    return {**dict(zip(TEST_COLUMNS, row, strict=True)), **bounds}


def tested_columns(test: PairedTest, intervals: Intervals) -> dict[str, str]:
    """Return the column of the p-value and its name in warnings; empty if there is no test."""
    if test == "auto" and intervals.method != "auto":
        return {}
    return {"p_value": f"{test} test"}


def _conditional_bounds(b: int, c: int, n: int, confidence: float) -> tuple[float, float]:
    """Return Clopper and Pearson's limits of c / (b + c), as differences for that many flips."""
    from scipy.special import betaincinv

    tail, flips = (1.0 - confidence) / 2.0, b + c
    low = float(betaincinv(c, b + 1, tail)) if c else 0.0
    high = 1.0 - float(betaincinv(b, c + 1, tail)) if b else 1.0
    return (2.0 * low - 1.0) * flips / n, (2.0 * high - 1.0) * flips / n


def _clustered_statistic(cells: Floats, method: ClusteredMcNemarMethod) -> PairedTestResult:
    """Return statistic and p-value from checked counts without empty clusters."""
    n_clusters = len(cells)
    if n_clusters < 2:
        return PairedTestResult(math.nan, math.nan)
    difference = cells[:, 1] - cells[:, 2]
    scale = 1.0
    if method == "durkalski":
        difference = difference / cells.sum(axis=1)
    else:
        scale = (n_clusters - 1) / n_clusters
    spread = float(difference @ difference)
    if spread == 0.0:
        return PairedTestResult(0.0, 1.0)
    statistic = scale * float(difference.sum()) ** 2 / spread
    return PairedTestResult(statistic, math.erfc(math.sqrt(statistic / 2.0)))


def clustered_mcnemar(
    counts: npt.ArrayLike, *, method: ClusteredMcNemarMethod = "obuchowski"
) -> PairedTestResult:
    """Test whether two conditions have equal accuracy by a clustered McNemar test.

    Let cluster k of K have n_k pairs, b_k of them correct only under the first condition and c_k
    only under the second, and let d_k = b_k - c_k. "obuchowski" is (K - 1) / K (sum d_k)^2 / sum
    d_k^2, and "durkalski" (sum d_k / n_k)^2 / sum (d_k / n_k)^2, both compared with chi-square of
    one degree of freedom. The first tests the mean difference over pairs. The second tests the mean
    over clusters of their mean difference, so that a fact with many redirects has the same weight
    as a fact with one.

    Args:
        counts: Counts of each cluster, shape `(n_clusters, 4)`, columns both, first only, second
            only, neither, as from `cluster_counts`.
        method: Form of the test.

    Returns:
        The statistic, chi-square with one degree of freedom, and the two-sided p-value, in [0, 1].

    Raises:
        TypeError: If `counts` is not numeric.
        ValueError: If `counts` has another shape, a count is negative or not an integer, there is
            no pair at all, or `method` is unknown.

    Notes:
        Clusters without a pair are excluded. With one cluster the result is NaN, with an
        `UndefinedMetricWarning`. If the difference of every cluster is 0, the statistic is 0 and p
        is 1. With one pair per cluster "durkalski" is the uncorrected McNemar test, and
        "obuchowski" is (K - 1) / K of it. The order of the conditions and of the clusters does not
        matter. Both tests are asymptotic in the number of clusters: below about 25, use an exact
        test on one pair per cluster.

    References:
        N. A. Obuchowski, Statistics in Medicine 17, 1998, eq. 6 (as simplified by Yang, Sun and
        Hardin, Biometrical Journal 52, 2010); V. L. Durkalski et al., Statistics in Medicine 22,
        2003.

    Examples:
        >>> counts = [[2, 2, 0, 0], [1, 3, 0, 0], [0, 1, 1, 2], [4, 0, 0, 0], [0, 1, 0, 1]] * 6
        >>> statistic, p_value = clustered_mcnemar(counts)
        >>> round(statistic, 2), round(p_value, 4)
        (14.91, 0.0001)
    """
    check_choice(method, _CLUSTERED_METHODS, "method")
    cells = pair_counts(counts)
    if len(cells) == 1:
        warn_undefined(
            "the clustered McNemar test is undefined (NaN): one cluster does not determine the "
            "spread between clusters"
        )
    return _clustered_statistic(cells, method)
