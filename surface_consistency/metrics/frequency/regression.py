"""Logistic regression of correctness on scores."""

import warnings
from collections.abc import Hashable, Iterable, Sequence
from importlib import import_module

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.errors import MissingDependencyError
from surface_consistency.metrics import _inputs
from surface_consistency.metrics.uncertainty import intervals

# Log odds of 15 are a probability of 1 - 3e-7, which occurs only if scores separate the labels.
_SEPARATED_LOG_ODDS = 15.0


def correctness_regression(
    scores: npt.ArrayLike,
    correct: npt.ArrayLike,
    *,
    names: Sequence[str] = (),
    clusters: Iterable[Hashable] | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Return the change in log odds of correctness per unit of each score, by logistic regression.

    Args:
        scores: Scores of each instance, shape `(n_instances, n_scores)` or `(n_instances,)`, not
            standardised: a coefficient is for one unit of the score.
        correct: Correctness labels of the same instances, without missing values.
        names: Name of each score; if empty, score_1 and so on.
        clusters: Cluster of each instance, such as the fact; None for independent instances.
        confidence: Nominal coverage of the intervals, in (0, 1).

    Returns:
        One row per term, the intercept first: term, estimate, standard_error (cluster-robust),
        estimate_low, estimate_high, z, p_value, odds_ratio, n, n_clusters.

    Raises:
        MissingDependencyError: If statsmodels, from the extra `analysis`, is not installed.
        ValueError: If lengths differ, a score is not finite, a label is missing or not binary, or
            the number of names is not that of scores.

    Notes:
        If all labels are equal, a score is constant or a linear function of the others, or the
        scores separate correct from incorrect answers, the estimates are NaN, with an
        `UndefinedMetricWarning` that gives the reason.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, tables E to H, whose standard errors
        assume independent, homoscedastic rows.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> loss = rng.normal(size=4000)
        >>> right = rng.random(4000) < 1 / (1 + np.exp(0.5 * loss))
        >>> rows = correctness_regression(loss, right, names=["loss"]).set_index("term")
        >>> round(float(rows["estimate"]["loss"]), 1), bool(rows["p_value"]["loss"] < 0.01)
        (-0.5, True)
    """
    _inputs.check_confidence_level(confidence)
    features, verdicts = _inputs.scores_and_verdicts(scores, correct)
    terms = list(names) or [f"score_{number + 1}" for number in range(features.shape[1])]
    if len(terms) != features.shape[1]:
        raise ValueError(f"names must have {features.shape[1]} entries; got {len(terms)}")
    design = np.column_stack([np.ones(len(features)), features])
    owners = _inputs.label_codes(clusters, verdicts.size, "clusters", row="instance")
    sizes = np.bincount(owners).astype(np.float64)
    fit = _fit(verdicts.astype(np.float64), design, owners, sizes)
    if isinstance(fit, str):
        _inputs.warn_undefined(f"the regression is undefined (NaN): {fit}", stacklevel=2)
        fit = np.full((2, design.shape[1]), np.nan)
    estimates, standard_errors = fit
    df = intervals.effective_number(sizes) - 1.0
    half = float(intervals.t_quantile(df, confidence)) * standard_errors
    z = estimates / standard_errors
    with np.errstate(over="ignore"):
        odds_ratios = np.exp(estimates)
    return pd.DataFrame(
        {
            "term": ["intercept", *terms],
            "estimate": estimates,
            "standard_error": standard_errors,
            "estimate_low": estimates - half,
            "estimate_high": estimates + half,
            "z": z,
            "p_value": intervals.t_p_value(z, df),
            "odds_ratio": odds_ratios,
            "n": owners.size,
            "n_clusters": sizes.size,
        }
    )


def _fit(
    correct: _inputs.Floats, design: _inputs.Floats, owners: _inputs.Integers, sizes: _inputs.Floats
) -> _inputs.Floats | str:
    """Return coefficients and standard errors, shape `(2, n_terms)`, or why they are undefined."""
    n_terms = design.shape[1]
    if sizes.size <= n_terms:
        return f"{sizes.size} clusters for {n_terms} terms"
    if not intervals.enough_clusters(n_effective := intervals.effective_number(sizes)):
        return intervals.too_few_clusters(float(n_effective))
    if (correct == correct[0]).all():
        return "all answers are equal"
    if np.linalg.matrix_rank(design) < n_terms:
        return "a term is constant or a linear function of the others"
    try:
        linear = import_module("statsmodels.genmod.generalized_linear_model")
        families = import_module("statsmodels.genmod.families")
    except ImportError as error:
        raise MissingDependencyError("correctness_regression", "statsmodels", "analysis") from error
    model = linear.GLM(correct, design, family=families.Binomial())
    separated = "the terms separate correct from incorrect answers"
    # The likelihood of separated data has no maximum; this is detected without the warnings.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result = model.fit(cov_type="cluster", cov_kwds={"groups": owners})
        except np.linalg.LinAlgError:
            return separated
    log_odds = np.abs(design @ result.params)
    if not result.converged or not (log_odds < _SEPARATED_LOG_ODDS).all():
        return separated
    return np.stack([result.params, result.bse])
