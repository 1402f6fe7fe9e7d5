"""Effects of a lexical perturbation: relative change of a score, and shift of popularity."""

import math

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics import _inputs
from surface_consistency.metrics.correlation._correlations import average_ranks

_EXACT_UP_TO = 50


def relative_change(original: float, perturbed: float) -> float:
    """Return the relative change of a score after a perturbation.

    Args:
        original: Accuracy, perplexity or another score on the original test set.
        perturbed: The same score on the perturbed test set.

    Returns:
        (perturbed - original) / original, a fraction: -0.26 for a decrease of 26 %. A decrease is
        worse for accuracy and better for perplexity.

    Raises:
        TypeError: If a score is not a number.
        ValueError: If a score is not finite.

    Notes:
        If the original score is 0, the result is NaN, with an `UndefinedMetricWarning`. For
        negative scores, such as log-likelihoods, the sign is reversed: the change is positive if
        the perturbed score is farther from 0, and therefore lower. If the scores have different
        signs, the result has no meaning; use the plain difference.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, tables 1 and 2.

    Examples:
        >>> round(100 * relative_change(61.03, 45.06), 2)
        -26.17
    """
    values: dict[str, object] = {"original": original, "perturbed": perturbed}
    for name, value in values.items():
        if not hasattr(value, "__float__"):
            raise TypeError(f"{name} must be a number; got {value!r}")
        if not math.isfinite(float(value)):
            raise ValueError(f"{name} must be finite; got {value!r}")
    if original == 0.0:
        _inputs.warn_undefined("the change relative to an original score of 0 is undefined (NaN)")
        return math.nan
    return float((perturbed - original) / original)


def popularity_shift(
    original: npt.ArrayLike, perturbed: npt.ArrayLike, *, missing: _inputs.MissingPolicy = "raise"
) -> dict[str, float]:
    """Test by Wilcoxon's signed-rank test whether a perturbation changes popularity.

    Args:
        original: Score of each original instance, shape `(n_instances,)`.
        perturbed: Score of its perturbed version, in the same order.
        missing: "raise" raises an error for NaN; "drop" excludes instances without a score and
            reports their number in an `UnscoredWarning`.

    Returns:
        statistic (the smaller rank sum), p_value (two-sided), original_mean, perturbed_mean,
        rank_biserial (in [-1, 1]; -1 if all changes are decreases), n, n_unchanged and n_missing.

    Raises:
        ValueError: If lengths differ, the inputs are not one-dimensional, a score is missing under
            "raise" or infinite, no instance has both scores, or an option is unknown.

    Notes:
        Unchanged instances are excluded from the ranks (Wilcoxon's method). For up to 50 changed
        instances p is exact, also with ties in the size of the change: it is the proportion of the
        2^n assignments of signs with a rank sum at least as extreme. For more instances it is a
        normal approximation with the variance corrected for ties and without continuity correction.
        If no instance changed, p is 1 and the effect size NaN, with an `UndefinedMetricWarning`.
        Score both versions on the same scale.

    References:
        F. Wilcoxon, Biometrics Bulletin 1, 1945; D. S. Kerby, Comprehensive Psychology 3, 2014
        (rank-biserial correlation); Ruzzetti, Zanzotto and Caselli, Lexical Popularity, table 3.

    Examples:
        >>> row = popularity_shift([5.0, 8.0, 3.5, 9.0, 2.0], [3.0, 2.5, 3.0, 8.0, 2.25])
        >>> row["statistic"], row["p_value"], round(row["rank_biserial"], 3)
        (1.0, 0.125, -0.867)
    """
    _inputs.check_same_index(original=original, perturbed=perturbed)
    columns = {
        "original": _inputs.numeric_vector(original, "original"),
        "perturbed": _inputs.numeric_vector(perturbed, "perturbed"),
    }
    complete, n_missing = _inputs.complete_rows(columns, missing=missing)
    first, second = complete.values()
    if first.size == 0:
        raise ValueError("no instance has both scores; score the instances in both wordings")
    _inputs.warn_unscored(
        n_missing, n_missing + first.size, what="instances", lack="a score", stacklevel=2
    )
    change = second - first
    changed = change[change != 0.0]
    ranks = average_ranks(np.abs(changed))
    rising, falling = float(ranks[changed > 0.0].sum()), float(ranks[changed < 0.0].sum())
    p_value, effect = 1.0, math.nan
    if changed.size:
        p_value = _p_value(ranks, changed > 0.0)
        effect = (rising - falling) / (rising + falling)
    else:
        _inputs.warn_undefined("no instance changed, so the effect size is undefined (NaN)")
    return {
        "statistic": min(rising, falling),
        "p_value": p_value,
        "original_mean": float(first.mean()),
        "perturbed_mean": float(second.mean()),
        "rank_biserial": effect,
        "n": first.size,
        "n_unchanged": first.size - changed.size,
        "n_missing": n_missing,
    }


def _p_value(ranks: _inputs.Floats, rises: _inputs.Flags) -> float:
    """Return the two-sided p-value of the signed-rank test of changes that are not 0."""
    n = ranks.size
    if n > _EXACT_UP_TO:
        _, ties = np.unique(ranks, return_counts=True)
        variance = n * (n + 1) * (2 * n + 1) / 24.0 - float((ties**3 - ties).sum()) / 48.0
        z = (float(ranks[rises].sum()) - n * (n + 1) / 4.0) / math.sqrt(variance)
        return math.erfc(abs(z) / math.sqrt(2.0))
    # The proportion of all assignments of signs with a rank sum at least as extreme. Ranks of ties
    # are multiples of 1/2, so that doubled ranks are integers.
    doubled = np.rint(2.0 * ranks).astype(np.int64)
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1.0
    for rank in doubled:
        ways[rank:] = ways[rank:] + ways[: ways.size - rank]
    rising = int(doubled[rises].sum())
    tail = min(float(ways[: rising + 1].sum()), float(ways[rising:].sum()))
    return min(1.0, 2.0 * tail / 2.0**n)
