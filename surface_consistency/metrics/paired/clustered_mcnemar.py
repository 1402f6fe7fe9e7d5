"""McNemar's test for pairs that come in clusters: do two conditions differ in accuracy?"""

import warnings
from dataclasses import dataclass

import numpy.typing as npt

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics.paired._clustered_statistic import (
    CLUSTERED_METHODS,
    ClusteredMcNemarMethod,
    clustered_statistic,
)
from surface_consistency.metrics.paired._pair_counts import pair_counts

__all__ = [
    "ClusteredMcNemarMethod",
    "ClusteredMcNemarResult",
    "clustered_mcnemar",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteredMcNemarResult:
    """Result of `clustered_mcnemar`."""

    statistic: float
    """Chi-square with one degree of freedom, at least 0; NaN with a single cluster."""
    p_value: float
    """Two-sided p-value, in [0, 1]; NaN with a single cluster."""
    method: ClusteredMcNemarMethod
    """Form of the test."""
    first_only: int
    """Pairs right under the first condition only."""
    second_only: int
    """Pairs right under the second condition only."""
    n_clusters: int
    """Clusters that hold a pair."""


def clustered_mcnemar(
    counts: npt.ArrayLike, *, method: ClusteredMcNemarMethod = "obuchowski"
) -> ClusteredMcNemarResult:
    """Test whether two conditions have equal accuracy when pairs share a fact or subject.

    Let cluster k of K hold n_k pairs, b_k right at first only and c_k at second only, and let
    d_k = b_k - c_k. "obuchowski" is (K - 1) / K (sum d_k)^2 / sum d_k^2, and "durkalski"
    (sum d_k / n_k)^2 / sum (d_k / n_k)^2, both against chi-square with one degree of freedom. The
    first asks for the difference in accuracy of a random pair; the second for the mean difference
    of a random cluster, so that a fact with many redirects weighs no more than one with a single
    redirect.

    Args:
        counts: Counts of each cluster, shape `(n_clusters, 4)`, columns both, first only, second
            only, neither, as from `cluster_counts`.
        method: Form of the test.

    Returns:
        Statistic, p-value, form, discordant counts and the number of clusters.

    Raises:
        TypeError: When `counts` holds no numbers.
        ValueError: When `counts` has another shape, a count is negative or no whole number, there
            is no pair at all, or `method` is unknown.

    Notes:
        Clusters without a pair are left out. With one cluster the result is NaN, with an
        `UndefinedMetricWarning`. Where every cluster's difference is 0 the statistic is 0 and p is
        1. With one pair a cluster "durkalski" is the uncorrected McNemar test, and "obuchowski"
        (K - 1) / K of it. Swapping the conditions changes nothing, and neither does the order of
        the clusters. Both tests are asymptotic in the number of clusters: below about 25 take an
        exact test on one pair a cluster.

    References:
        N. A. Obuchowski, Statistics in Medicine 17, 1998, eq. 6 (as simplified by Yang, Sun and
        Hardin, Biometrical Journal 52, 2010); V. L. Durkalski et al., Statistics in Medicine 22,
        2003.

    Examples:
        >>> counts = [[2, 2, 0, 0], [1, 3, 0, 0], [0, 1, 1, 2], [4, 0, 0, 0], [0, 1, 0, 1]] * 6
        >>> result = clustered_mcnemar(counts)
        >>> round(result.statistic, 2), round(result.p_value, 4)
        (14.91, 0.0001)
    """
    if method not in CLUSTERED_METHODS:
        raise ValueError(f"method must be one of {', '.join(CLUSTERED_METHODS)}; got {method!r}")
    cells = pair_counts(counts)
    statistic, p_value = clustered_statistic(cells, method)
    if len(cells) == 1:
        warnings.warn(
            "the clustered McNemar test is undefined (NaN): one cluster says nothing of the spread "
            "between clusters",
            UndefinedMetricWarning,
            stacklevel=2,
        )
    return ClusteredMcNemarResult(
        statistic=statistic,
        p_value=p_value,
        method=method,
        first_only=int(cells[:, 1].sum()),
        second_only=int(cells[:, 2].sum()),
        n_clusters=len(cells),
    )
