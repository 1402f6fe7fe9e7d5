"""One test of whether several models are alike, before any pair of them is looked at."""

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import Floats, warn_undefined
from surface_consistency.metrics.uncertainty.intervals import (
    are_enough,
    too_few_clusters,
    worth_of_clusters,
)

_LEAST_PER_CONTRAST: Final = 20
"""Clusters on which models differ, per contrast, that F needs if there are others: with fewer it
rejects true hypotheses in up to 0.13 of the sets."""


def equality_test(
    totals: npt.ArrayLike, *, sizes: npt.ArrayLike | None = None, is_exchangeable: bool = False
) -> dict[str, Any]:
    """Test whether several models score alike on the same items, taking clusters whole.

    Cochran's Q for clusters and for scores: with u_k the totals of cluster k, each less their mean
    over the models, and S the covariance of u over the K clusters, T^2 = K mean(u)' S^- mean(u) of
    the m - 1 contrasts, and F = (K - m + 1) / ((K - 1)(m - 1)) T^2 against F of m - 1 and K - m + 1
    degrees of freedom. Where models are exchangeable, or differ on some clusters alone and on
    fewer than 20 per contrast, Q = (m - 1) |sum u|^2 / sum |u_k|^2 itself, against chi-square of
    m - 1 times epsilon degrees of freedom: 1 for models of which any two go together alike, and
    less for near copies.

    Args:
        totals: Sum of the scores of each cluster and model, shape `(n_clusters, n_models)`, all
            models having answered the same items.
        sizes: Items of each cluster, shape `(n_clusters,)`; None for as many in each.
        is_exchangeable: Whether any two models, or forms, vary alike and go together alike where
            all score alike, as forms without an effect do. It needs no more clusters than models.

    Returns:
        statistic (Hotelling's F, or Cochran's Q; NaN if undefined); p_value, in [0, 1], which is 1
        if all models have equal scores on every cluster; df, the degrees of freedom: contrasts of
        models that vary on their own (for Q times epsilon), and clusters minus these contrasts,
        infinitely many for Q, which is compared with chi-square; n_clusters, clusters that contain
        a score; and not_inferred, why statistic and p-value are NaN (empty if they are not).

    Raises:
        ValueError: When `totals` has another shape, fewer than two models, or is not finite.

    Notes:
        Models that never differ give 0 and 1. A model whose scores are those of another adds no
        degree of freedom to F. NaN, with an `UndefinedMetricWarning`, where clusters are worth
        fewer than four, or models differ by the same on all of them, so that the
        spread is unknown. With one item a cluster and verdicts F asks what Q asks,
        without the assumption that all models go together alike. Both see means alone: verdicts
        that flip both ways cancel.

    References:
        W. G. Cochran, Biometrika 37, 1950 (Q); H. Hotelling, Annals of Mathematical Statistics 2,
        1931 (T^2); V. P. Bhapkar, Journal of the American Statistical Association 61, 1966 (the
        same quadratic form for matched verdicts); H. Huynh and L. S. Feldt, Journal of Educational
        Statistics 1, 1976 (epsilon).

    Examples:
        >>> totals = [[1, 1, 0], [1, 0, 0], [1, 1, 1], [1, 1, 0], [0, 1, 0], [1, 0, 0]] * 12
        >>> result = equality_test(totals)
        >>> round(result["statistic"], 2), result["df"]
        (105.0, (2, 70))
        >>> round(equality_test(totals, is_exchangeable=True)["statistic"], 2)
        62.4
    """
    scores = np.asarray(totals, dtype=np.float64)
    if scores.ndim != 2 or scores.shape[1] < 2 or not np.isfinite(scores).all():
        raise ValueError(
            "totals must be finite, a row a cluster and a column a model, of two models or more; "
            f"got shape {scores.shape}"
        )
    n_clusters = len(scores)
    held = np.ones(n_clusters) if sizes is None else np.asarray(sizes, dtype=np.float64)
    around = scores - scores.mean(axis=1, keepdims=True)
    worth = float(worth_of_clusters(held))
    result = _tested(0.0, 1.0, (0, n_clusters))
    if around.any() and not are_enough(worth):
        result = _tested(math.nan, math.nan, (0, n_clusters), too_few_clusters(worth))
    elif around.any():
        result = _cochran(around) if is_exchangeable else _hotelling(around)
    if result["not_inferred"]:
        warn_undefined(f"the test of equal means is undefined (NaN): {result['not_inferred']}")
    return result | {"n_clusters": n_clusters}


def _tested(
    statistic: float, p_value: float, df: tuple[float, float], not_inferred: str = ""
) -> dict[str, Any]:
    """Return a statistic with its p-value, its degrees of freedom and why it is undefined."""
    return {"statistic": statistic, "p_value": p_value, "df": df, "not_inferred": not_inferred}


def _cochran(around: Floats) -> dict[str, Any]:
    """Compute Cochran's Q of totals around their mean over the models."""
    from scipy.special import chdtrc

    n_clusters, df = len(around), around.shape[1] - 1
    q = df * float((around.sum(axis=0) ** 2).sum() / (around**2).sum())
    spread = np.cov(around, rowvar=False)
    # 1 for models that all go together alike; 1 / (m - 1) for a single contrast.
    alike = float(np.trace(spread) ** 2 / (spread**2).sum()) if spread.any() else float(df)
    unbiased = (n_clusters * alike - 2.0) / max(n_clusters - 1.0 - alike, 1.0)
    degrees = min(max(unbiased, 1.0), float(df))
    return _tested(q, float(chdtrc(degrees, q * degrees / df)), (degrees, math.inf))


def _hotelling(around: Floats) -> dict[str, Any]:
    """Compute Hotelling's F of totals around their mean over the models, or Q if it has little."""
    from scipy.stats import f as f_distribution

    n_clusters, contrasts = len(around), around[:, 1:]
    mean, spread = contrasts.mean(axis=0), np.atleast_2d(np.cov(contrasts, rowvar=False))
    # What rounding leaves of a spread of 0.
    spread = np.where(np.abs(spread) > 1e-13 * np.abs(contrasts).max() ** 2, spread, 0.0)
    rank = int(np.linalg.matrix_rank(spread, hermitian=True))
    df = (rank, n_clusters - rank)
    inverse = np.linalg.pinv(spread, hermitian=True)
    if not np.allclose(spread @ inverse @ mean, mean, atol=1e-9 * np.abs(contrasts).max()):
        return _tested(math.nan, math.nan, df, "models differ by the same on all clusters")
    n_unlike = np.count_nonzero(around.any(axis=1))
    if n_unlike < min(_LEAST_PER_CONTRAST * rank, n_clusters) or df[1] < 1:
        return _cochran(around)
    square = n_clusters * float(mean @ inverse @ mean)
    statistic = df[1] / ((n_clusters - 1) * rank) * square
    return _tested(statistic, float(f_distribution.sf(statistic, *df)), df)
