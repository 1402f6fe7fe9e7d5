"""One test of whether several models are alike, before any pair of them is looked at."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import warn_undefined


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualityResult:
    """Result of `equality_test`."""

    statistic: float
    """Hotelling's F; NaN where undefined."""
    p_value: float
    """In [0, 1]; 1.0 where all models have equal scores on every cluster."""
    df: tuple[int, int]
    """Degrees of freedom: contrasts of models that vary on their own, and clusters less these."""
    n_clusters: int
    """Clusters that hold a score."""


def equality_test(totals: npt.ArrayLike) -> EqualityResult:
    """Test whether several models score alike on the same items, taking clusters whole.

    Cochran's Q for clusters and for scores: with u_k the totals of cluster k, each less their mean
    over the models, and S the covariance of u over the K clusters, T^2 = K mean(u)' S^- mean(u) of
    the m - 1 contrasts, and F = (K - m + 1) / ((K - 1)(m - 1)) T^2 against F of m - 1 and K - m + 1
    degrees of freedom.

    Args:
        totals: Sum of the scores of each cluster and model, shape `(n_clusters, n_models)`, all
            models having answered the same items.

    Returns:
        Statistic, p-value, degrees of freedom and the number of clusters.

    Raises:
        ValueError: When `totals` has another shape, fewer than two models, or is not finite.

    Notes:
        Models that never differ give 0 and 1. A model whose scores are those of another adds no
        degree of freedom. NaN, with an `UndefinedMetricWarning`, where clusters are no more than
        these, or models differ by the same on all of them, which tells nothing of the spread. With
        one item a cluster and verdicts it asks what Cochran's Q asks, without Q's assumption that
        all models go together alike. It sees means alone: verdicts that flip both ways cancel.

    References:
        W. G. Cochran, Biometrika 37, 1950 (Q); H. Hotelling, Annals of Mathematical Statistics 2,
        1931 (T^2); V. P. Bhapkar, Journal of the American Statistical Association 61, 1966 (the
        same quadratic form for matched verdicts).

    Examples:
        >>> totals = [[1, 1, 0], [1, 0, 0], [1, 1, 1], [1, 1, 0], [0, 1, 0], [1, 0, 0]] * 4
        >>> result = equality_test(totals)
        >>> round(result.statistic, 2), result.df
        (33.0, (2, 22))
    """
    from scipy.stats import f as f_distribution

    scores = np.asarray(totals, dtype=np.float64)
    if scores.ndim != 2 or scores.shape[1] < 2 or not np.isfinite(scores).all():
        raise ValueError(
            "totals must be finite, a row a cluster and a column a model, of two models or more; "
            f"got shape {scores.shape}"
        )
    n_clusters, contrasts = len(scores), (scores - scores.mean(axis=1, keepdims=True))[:, 1:]
    if not contrasts.any():
        df = (0, n_clusters)
        return EqualityResult(statistic=0.0, p_value=1.0, df=df, n_clusters=n_clusters)
    mean = contrasts.mean(axis=0)
    spread = np.atleast_2d(np.cov(contrasts, rowvar=False)) if n_clusters > 1 else np.zeros((1, 1))
    rank = int(np.linalg.matrix_rank(spread, hermitian=True))
    df = (rank, n_clusters - rank)
    statistic = p_value = math.nan
    if df[1] < 1 or rank == 0:
        warn_undefined(
            f"the test of equal means is undefined (NaN): {n_clusters} clusters tell too little of "
            f"the spread of {scores.shape[1]} models"
        )
        return EqualityResult(statistic=statistic, p_value=p_value, df=df, n_clusters=n_clusters)
    inverse = np.linalg.pinv(spread, hermitian=True)
    if not np.allclose(spread @ inverse @ mean, mean, atol=1e-9 * np.abs(contrasts).max()):
        warn_undefined(
            "the test of equal means is undefined (NaN): models differ by the same on all clusters"
        )
        return EqualityResult(statistic=statistic, p_value=p_value, df=df, n_clusters=n_clusters)
    square = n_clusters * float(mean @ inverse @ mean)
    statistic = df[1] / ((n_clusters - 1) * rank) * square
    p_value = float(f_distribution.sf(statistic, *df))
    return EqualityResult(statistic=statistic, p_value=p_value, df=df, n_clusters=n_clusters)
