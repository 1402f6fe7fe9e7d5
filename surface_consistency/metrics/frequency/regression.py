"""Logistic regression of correctness: on frequencies, or on any scores."""

import warnings
from collections.abc import Hashable, Iterable, Sequence
from importlib import import_module
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.errors import MissingDependencyError
from surface_consistency.metrics._groups import (
    check_frame,
    cluster_codes,
    column_names,
    group_name,
    group_positions,
    grouping_columns,
)
from surface_consistency.metrics._inputs import (
    Floats,
    Integers,
    MissingPolicy,
    check_confidence_level,
    check_missing,
    label_codes,
    refuse_missing,
    scores_and_verdicts,
    warn_undefined,
    warn_unscored,
)
from surface_consistency.metrics.frequency.frequency_rows import number_column
from surface_consistency.metrics.uncertainty.intervals import (
    are_enough,
    t_p_value,
    t_quantile,
    too_few_clusters,
    worth_of_clusters,
)

_RESULT = (
    *("term", "estimate", "standard_error", "estimate_low", "estimate_high"),
    *("z", "p_value", "odds_ratio"),
    *("n", "n_clusters", "n_zero", "n_missing"),
)
_FREQUENCIES = ("entity", "surface")
# Log odds of 15 are a chance of 3 in 10 million: only separated data are fitted so.
_SEPARATED_LOG_ODDS = 15.0


class _Fit(NamedTuple):
    """Coefficients and their standard errors, or why they are NaN."""

    estimates: Floats
    standard_errors: Floats
    reason: str | None = None


def frequency_regression(
    frame: pd.DataFrame,
    *,
    correct: str = "is_correct",
    entity_frequency: str = "entity_frequency",
    surface_frequency: str = "surface_frequency",
    covariates: Sequence[str] = (),
    by: str | Sequence[str] = (),
    cluster: str | None = "fact_id",
    confidence_level: float = 0.95,
    missing: MissingPolicy = "drop",
) -> pd.DataFrame:
    """Regress correctness on log2 entity and log2 surface frequency, errors robust to clusters.

    logit P(correct) = b_0 + b_E log2(entity) + b_S log2(surface) + covariates, by maximum
    likelihood; the covariance is the sandwich of scores summed by cluster.

    Args:
        frame: One row a question or a surface instance, with the columns named below.
        correct: Column of verdicts, or of accuracies in [0, 1], which make a fractional logit.
        entity_frequency: Column of how often the entity is mentioned under any surface.
        surface_frequency: Column of how often it is mentioned under this surface.
        covariates: Further columns of numbers or booleans to hold constant, such as `is_canonical`.
        by: Columns whose groups are fitted apart, such as the model.
        cluster: Column of what is dependent, the fact or the subject; None takes each row for its
            own, for errors robust to misspecification alone.
        confidence_level: Nominal coverage of the intervals, in (0, 1).
        missing: "drop" leaves out rows that lack a value, with a count in `n_missing` and an
            `UnscoredWarning`; "raise" refuses them.

    Returns:
        One row for each group and term ("intercept", "entity", "surface", then the covariates) with
        the columns `by`; term; estimate (the change of the log odds with a doubling of the
        frequency, or a unit of the covariate; positive where more frequent is more often right);
        standard_error, estimate_low, estimate_high, z and p_value (two-sided; all by one t with a
        degree less than the clusters of equal size that they are worth, by Kish); odds_ratio, which
        is exp(estimate); n, n_clusters, and the rows dropped for a zero frequency (n_zero) or a gap
        (n_missing).

    Raises:
        ColumnNotFoundError: When a named column is not in the frame.
        MissingDependencyError: When statsmodels is not installed.
        TypeError: When `frame` is no DataFrame or a value no number.
        ValueError: When the frame is empty, a frequency is negative, a verdict outside [0, 1], a
            value (under "raise") or a cluster id missing, a column named twice or as one of the
            result or a term, or an option out of range.

    Notes:
        Where correlations are bounded by how many answers are right, the odds ratio is not. The
        numbers of a group are NaN, with an `UndefinedMetricWarning`, where all answers are equal,
        the terms are collinear or constant, they separate right from wrong answers, there are no
        more clusters than terms, or these are worth less than four. Intervals held in
        0.94 of simulated data sets or more, with 5 to 200 clusters.

    References:
        Liang and Zeger, Biometrika 73, 1986 (clusters); Papke and Wooldridge, Journal of Applied
        Econometrics 11, 1996 (fractions).

    Examples:
        >>> import pandas as pd, pytest
        >>> _ = pytest.importorskip("statsmodels")
        >>> rng = np.random.default_rng(0)
        >>> entity = 2.0 ** rng.integers(3, 12, 2000)
        >>> surface = np.ceil(entity * rng.random(2000))
        >>> chance = 1 / (1 + np.exp(3 - 0.4 * np.log2(entity)))
        >>> frame = pd.DataFrame(
        ...     {"fact_id": np.arange(2000) // 2, "is_correct": rng.random(2000) < chance,
        ...      "entity_frequency": entity, "surface_frequency": surface})
        >>> rows = frequency_regression(frame).set_index("term")
        >>> round(float(rows["estimate"]["entity"]), 1), bool(rows["p_value"]["surface"] > 0.05)
        (0.4, True)
    """
    check_confidence_level(confidence_level)
    check_missing(missing)
    terms = [*_FREQUENCIES, *column_names(covariates)]
    if len({"intercept", *terms}) != len(terms) + 1:
        raise ValueError(f"a term of the model is named twice: {['intercept', *terms]}")
    keys = grouping_columns(by, _RESULT)
    frequencies = [entity_frequency, surface_frequency]
    columns = [correct, *frequencies, *terms[2:]]
    needed = [*keys, *columns, *([cluster] if cluster is not None else [])]
    check_frame(
        frame,
        needed,
        options="correct, entity_frequency, surface_frequency, covariates, by or cluster",
        row="question",
    )
    data = _read(frame, correct, frequencies, terms[2:], missing)
    clusters = cluster_codes(frame, cluster)
    rows, reasons = [], []
    for key, positions in group_positions(frame, keys).items():
        labels = dict(zip(keys, key, strict=True))
        estimates, reason = _group_rows(
            data[positions], clusters[positions], terms, confidence_level
        )
        rows += [{**labels, **row} for row in estimates]
        reasons += [f"{group_name(keys, key)}: {reason}"] if reason else []
    n_missing = int(np.isnan(data).any(axis=1).sum())
    warn_unscored(n_missing, len(frame), what="rows", lack="a value of the model", stacklevel=2)
    if reasons:
        warn_undefined(
            f"the regression is undefined (NaN) in {len(reasons)} groups, such as {reasons[0]}",
            stacklevel=2,
        )
    return pd.DataFrame(rows, columns=[*keys, *_RESULT])


def correctness_regression(
    scores: npt.ArrayLike,
    correct: npt.ArrayLike,
    *,
    names: Sequence[str] = (),
    clusters: Iterable[Hashable] | None = None,
    confidence_level: float = 0.95,
) -> pd.DataFrame:
    """Regress correctness on scores: by how much do the log odds of a right answer rise?

    Args:
        scores: Scores of each instance, shape `(n_instances, n_scores)` or `(n_instances,)`, as
            they are: a coefficient is that of one unit of the score.
        correct: Verdicts of the same instances, none missing.
        names: Name of each score; none for score_1 and so on.
        clusters: What belongs together, such as the fact; None takes each instance for itself.
        confidence_level: Nominal coverage of the intervals, in (0, 1).

    Returns:
        One row a term, the intercept first: term, estimate, standard_error (robust to clusters),
        estimate_low, estimate_high, z, p_value, odds_ratio, n, n_clusters.

    Raises:
        MissingDependencyError: When statsmodels, of the extra `analysis`, is not installed.
        ValueError: When lengths differ, a score is not finite, a verdict is missing or not binary,
            or the names are not one a score.

    Notes:
        Where all answers are equal, a score is constant or a linear function of the others, or the
        scores separate right from wrong answers, the estimates are NaN, with an
        `UndefinedMetricWarning` that says why.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, tables E to H, which take errors for
        those of independent, homoscedastic rows.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> loss = rng.normal(size=4000)
        >>> right = rng.random(4000) < 1 / (1 + np.exp(0.5 * loss))
        >>> rows = correctness_regression(loss, right, names=["loss"]).set_index("term")
        >>> round(float(rows["estimate"]["loss"]), 1), bool(rows["p_value"]["loss"] < 0.01)
        (-0.5, True)
    """
    check_confidence_level(confidence_level)
    features, verdicts = scores_and_verdicts(scores, correct)
    terms = list(names) or [f"score_{number + 1}" for number in range(features.shape[1])]
    if len(terms) != features.shape[1]:
        raise ValueError(f"names must name {features.shape[1]} scores; got {len(terms)}")
    design = np.column_stack([np.ones(len(features)), features])
    labels = label_codes(clusters, verdicts.size, "clusters", row="instance")
    _, owners = np.unique(labels, return_inverse=True)
    fit = _fit(verdicts.astype(np.float64), design, owners)
    rows = _term_rows(fit, terms, owners, confidence_level)
    if fit.reason is not None:
        warn_undefined(f"the regression is undefined (NaN): {fit.reason}", stacklevel=2)
    return pd.DataFrame(rows)


def _read(
    frame: pd.DataFrame,
    correct: str,
    frequencies: list[str],
    covariates: list[str],
    missing: MissingPolicy,
) -> Floats:
    """Return correctness, the two frequencies and the covariates as columns."""
    columns = {correct: number_column(frame, correct)}
    columns |= {name: number_column(frame, name, most=np.inf) for name in frequencies}
    columns |= {name: number_column(frame, name, least=-np.inf, most=np.inf) for name in covariates}
    for name, column in columns.items():
        refuse_missing(np.isnan(column), name, missing)
    return np.column_stack([columns[name] for name in (correct, *frequencies, *covariates)])


def _group_rows(
    data: Floats, clusters: Integers, terms: list[str], level: float
) -> tuple[list[dict[str, object]], str | None]:
    """Return the rows of the result for one group, and why they are NaN if they are."""
    absent = np.isnan(data).any(axis=1)
    zero = ~absent & (data[:, 1:3] == 0.0).any(axis=1)
    complete = data[~absent & ~zero]
    design = np.column_stack([np.ones(len(complete)), np.log2(complete[:, 1:3]), complete[:, 3:]])
    _, codes = np.unique(clusters[~absent & ~zero], return_inverse=True)
    fit = _fit(complete[:, 0], design, codes)
    counts = {
        "n_zero": int(np.count_nonzero(zero)),
        "n_missing": int(np.count_nonzero(absent)),
    }
    return [{**row, **counts} for row in _term_rows(fit, terms, codes, level)], fit.reason


def _term_rows(
    fit: _Fit, terms: Sequence[str], codes: npt.NDArray[np.intp], level: float
) -> list[dict[str, object]]:
    """Return the rows of a fit, with intervals and tests by the number of clusters."""
    df = worth_of_clusters(np.bincount(codes).astype(np.float64)) - 1.0
    half = float(t_quantile(df, level)) * fit.standard_errors
    z = fit.estimates / fit.standard_errors
    p_values = t_p_value(z, df)
    with np.errstate(over="ignore"):
        odds_ratios = np.exp(fit.estimates)
    return [
        {
            "term": term,
            "estimate": float(fit.estimates[k]),
            "standard_error": float(fit.standard_errors[k]),
            "estimate_low": float(fit.estimates[k] - half[k]),
            "estimate_high": float(fit.estimates[k] + half[k]),
            "z": float(z[k]),
            "p_value": float(p_values[k]),
            "odds_ratio": float(odds_ratios[k]),
            "n": len(codes),
            "n_clusters": int(codes.max(initial=-1)) + 1,
        }
        for k, term in enumerate(("intercept", *terms))
    ]


def _fit(correct: Floats, design: Floats, codes: npt.NDArray[np.intp]) -> _Fit:
    """Fit one group, or say why it cannot be."""
    n_terms = design.shape[1]
    sizes = np.bincount(codes).astype(np.float64)
    reason, result = None, None
    if sizes.size <= n_terms:
        reason = f"{sizes.size} clusters for {n_terms} terms"
    elif not are_enough(worth := worth_of_clusters(sizes)):
        reason = f"its rows are {too_few_clusters(float(worth))}"
    elif (correct == correct[0]).all():
        reason = "all answers are equal"
    elif np.linalg.matrix_rank(design) < n_terms:
        reason = "a term is constant or a linear function of the others"
    else:
        result = _statsmodels_fit(correct, design, codes)
        reason = None if result else "the terms separate right from wrong answers"
    nothing = np.full(n_terms, np.nan)
    return result or _Fit(nothing, nothing, reason)


def _statsmodels_fit(correct: Floats, design: Floats, codes: npt.NDArray[np.intp]) -> _Fit | None:
    """Return the fit of statsmodels; None where the likelihood has no maximum."""
    try:
        linear = import_module("statsmodels.genmod.generalized_linear_model")
        families = import_module("statsmodels.genmod.families")
    except ImportError as error:
        raise MissingDependencyError("frequency_regression", "statsmodels", "analysis") from error
    model = linear.GLM(correct, design, family=families.Binomial())
    # The likelihood of separated data has no maximum; its warnings are told apart by the fit.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result = model.fit(cov_type="cluster", cov_kwds={"groups": codes})
        except np.linalg.LinAlgError:
            return None
    log_odds = np.abs(design @ result.params)
    if not result.converged or not (log_odds < _SEPARATED_LOG_ODDS).all():
        return None
    return _Fit(np.asarray(result.params), np.asarray(result.bse))
