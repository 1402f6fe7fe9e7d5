"""Omnibus test that several models have equal means, before pairs of them are compared."""

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import Floats, warn_undefined
from surface_consistency.metrics.uncertainty.intervals import (
    effective_number,
    enough_clusters,
    too_few_clusters,
)

_LEAST_PER_CONTRAST: Final = 20
"""The F test needs this number of clusters on which models differ, per contrast, unless models
differ on all clusters. With fewer, it rejects true hypotheses in up to 0.13 of data sets."""


def equality_test(
    totals: npt.ArrayLike, *, sizes: npt.ArrayLike | None = None, is_exchangeable: bool = False
) -> dict[str, Any]:
    """Test whether several models have equal mean scores on the same items, cluster-robust.

    This is Cochran's Q for clusters and for graded scores. Let u_k be the totals of cluster k minus
    their mean over the m models, and S the covariance of u over the K clusters. With
    T^2 = K mean(u)' S^- mean(u), the statistic is F = (K - m + 1) / ((K - 1)(m - 1)) T^2, compared
    with the F distribution of m - 1 and K - m + 1 degrees of freedom. If models are exchangeable,
    or differ on only some clusters and on fewer than 20 per contrast, it is
    Q = (m - 1) |sum u|^2 / sum |u_k|^2, compared with chi-square of (m - 1) epsilon degrees of
    freedom. Epsilon is 1 if all pairs of models have the same covariance, and smaller if some
    models are nearly copies of others.

    Args:
        totals: Sum of the scores of each cluster and model, shape `(n_clusters, n_models)`; all
            models answered the same items.
        sizes: Number of items of each cluster, shape `(n_clusters,)`; None for equal sizes.
        is_exchangeable: Whether, under equal means, all models (or forms) have the same variance
            and all pairs the same covariance, as forms without an effect have. Q is then used,
            which needs no minimum number of clusters per model.

    Returns:
        statistic (Hotelling's F, or Cochran's Q; NaN if undefined); p_value, in [0, 1], which is 1
        if all models have equal scores on every cluster; df, the two degrees of freedom: the number
        of linearly independent contrasts (for Q times epsilon), and the number of clusters minus
        that number (infinite for Q, which is compared with chi-square); n_clusters, the number of
        clusters with a score; and not_inferred, why statistic and p-value are NaN (otherwise
        empty).

    Raises:
        ValueError: If `totals` has another shape, fewer than two models, or is not finite.

    Notes:
        For models that never differ, the statistic is 0 and the p-value 1. A model with the same
        scores as another adds no degree of freedom to F. The result is NaN, with an
        `UndefinedMetricWarning`, if the effective number of clusters is below four, or models
        differ by the same amount on all clusters, so that the spread is unknown. For correctness
        labels with one item per cluster, F and Q test the same hypothesis, but F does not assume
        equal covariances. Both compare only means, so flips in opposite directions cancel.

    References:
        W. G. Cochran, Biometrika 37, 1950 (Q); H. Hotelling, Annals of Mathematical Statistics 2,
        1931 (T^2); V. P. Bhapkar, Journal of the American Statistical Association 61, 1966 (the
        same quadratic form for matched binary labels); H. Huynh and L. S. Feldt, Journal of
        Educational Statistics 1, 1976 (epsilon).

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
            "totals must be finite, one row per cluster and one column per model, at least two; "
            f"got shape {scores.shape}"
        )
    n_clusters = len(scores)
    n_items = np.ones(n_clusters) if sizes is None else np.asarray(sizes, dtype=np.float64)
    around = scores - scores.mean(axis=1, keepdims=True)
    n_effective = float(effective_number(n_items))
    result = _tested(0.0, 1.0, (0, n_clusters))
    if around.any() and not enough_clusters(n_effective):
        result = _tested(math.nan, math.nan, (0, n_clusters), too_few_clusters(n_effective))
    elif around.any():
        result = _cochran(around) if is_exchangeable else _hotelling(around)
    if result["not_inferred"]:
        warn_undefined(f"the test of equal means is undefined (NaN): {result['not_inferred']}")
    return result | {"n_clusters": n_clusters}


def _tested(
    statistic: float, p_value: float, df: tuple[float, float], not_inferred: str = ""
) -> dict[str, Any]:
    """Return a statistic with its p-value, its degrees of freedom and the reason if undefined."""
    return {"statistic": statistic, "p_value": p_value, "df": df, "not_inferred": not_inferred}


def _cochran(around: Floats) -> dict[str, Any]:
    """Compute Cochran's Q of totals minus their mean over the models."""
    from scipy.special import chdtrc

    n_clusters, df = len(around), around.shape[1] - 1
    q = df * float((around.sum(axis=0) ** 2).sum() / (around**2).sum())
    spread = np.cov(around, rowvar=False)
    # 1 if all pairs of models covary equally; 1 / (m - 1) for a single contrast.
    alike = float(np.trace(spread) ** 2 / (spread**2).sum()) if spread.any() else float(df)
    unbiased = (n_clusters * alike - 2.0) / max(n_clusters - 1.0 - alike, 1.0)
    degrees = min(max(unbiased, 1.0), float(df))
    return _tested(q, float(chdtrc(degrees, q * degrees / df)), (degrees, math.inf))


def _hotelling(around: Floats) -> dict[str, Any]:
    """Compute Hotelling's F of totals minus their mean over models, or Q if few clusters differ."""
    from scipy.stats import f as f_distribution

    n_clusters, contrasts = len(around), around[:, 1:]
    mean, spread = contrasts.mean(axis=0), np.atleast_2d(np.cov(contrasts, rowvar=False))
    # Set rounding error of a spread of 0 to 0.
    spread = np.where(np.abs(spread) > 1e-13 * np.abs(contrasts).max() ** 2, spread, 0.0)
    rank = int(np.linalg.matrix_rank(spread, hermitian=True))
    df = (rank, n_clusters - rank)
    inverse = np.linalg.pinv(spread, hermitian=True)
    if not np.allclose(spread @ inverse @ mean, mean, atol=1e-9 * np.abs(contrasts).max()):
        return _tested(math.nan, math.nan, df, "models differ by the same amount on all clusters")
    n_unlike = np.count_nonzero(around.any(axis=1))
    if n_unlike < min(_LEAST_PER_CONTRAST * rank, n_clusters) or df[1] < 1:
        return _cochran(around)
    square = n_clusters * float(mean @ inverse @ mean)
    statistic = df[1] / ((n_clusters - 1) * rank) * square
    return _tested(statistic, float(f_distribution.sf(statistic, *df)), df)
