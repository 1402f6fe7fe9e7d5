"""More than two forms of a fact: how often do they agree, and how much does the form matter?"""

import math
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from surface_consistency.clusters import LEAST_CLUSTERS
from surface_consistency.errors import UnscoredWarning
from surface_consistency.metrics._inputs import (
    MISSING,
    Floats,
    Integers,
    MissingPolicy,
    check_choice,
    check_missing,
    label_codes,
    refuse_missing,
    verdict_codes,
    warn_undefined,
)
from surface_consistency.metrics.uncertainty.bootstrap import (
    GroupValue,
    cluster_sums,
    group_values,
    values_and_intervals,
)
from surface_consistency.metrics.uncertainty.cluster_bounds import (
    Part,
    ShareStatistic,
    of_shares,
)
from surface_consistency.metrics.uncertainty.intervals import (
    DEFAULT_INTERVALS,
    Interval,
    Intervals,
    too_few_clusters,
)

FormEstimator: TypeAlias = Literal["unbiased", "plug-in"]
"""Whether a form is compared with other forms only, or with itself too, as the paper does."""

_Rates = Mapping[str, Callable[[Floats], Floats]]

# Columns of the sums, each over facts with m forms of which k are right.
_FACTS, _FORMS, _RIGHT, _SHARE, _SHARE_SQUARED = range(5)
_RIGHT_SQUARED_PER_FORM, _FORMS_SQUARED, _AGREE = range(5, 8)


def fact_sums(n_forms: Integers, n_right: Integers, of: int | None = None) -> Floats:
    """Return the summands of each fact with two forms or more, shape `(n_facts, 12)`.

    `of` is how many forms all_right_of draws; the forms of each fact by default.
    """
    m, k = n_forms.astype(np.float64), n_right.astype(np.float64)
    agree = (k * (k - 1.0) + (m - k) * (m - k - 1.0)) / (m * (m - 1.0))
    share, drawn = k / m, m if of is None else float(of)
    has_so_many = m >= drawn
    return np.column_stack(
        [
            *(np.ones_like(m), m, k, share, share**2, k * share, m**2, agree, k == m, k == 0.0),
            *(has_so_many, np.where(has_so_many, _all_drawn_right(m, k, drawn), 0.0)),
        ]
    )


def _all_drawn_right(m: Floats, k: Floats, drawn: Floats | float) -> Floats:
    """Return the probability C(k, drawn) / C(m, drawn) that forms drawn without return are right.

    C is the binomial coefficient; 0 where fewer are right than are drawn.
    """
    from scipy.special import gammaln

    right, missing = np.maximum(k - drawn, 0.0), np.maximum(m - drawn, 0.0)
    logarithm = gammaln(k + 1.0) - gammaln(right + 1.0) - gammaln(m + 1.0) + gammaln(missing + 1.0)
    return np.asarray(np.where(k >= drawn, np.exp(np.minimum(logarithm, 0.0)), 0.0))


def _weights(**columns: float) -> tuple[float, ...]:
    """Return the weight of each column of the sums, by the names of the columns."""
    weights = [0.0] * _N_COLUMNS
    for name, weight in columns.items():
        weights[_COLUMNS.index(name)] = weight
    return tuple(weights)


_COLUMNS = (
    *("facts", "forms", "right", "share", "share_squared"),
    *("right_squared_per_form", "forms_squared", "agree", "all_right", "all_wrong"),
    *("facts_of", "all_right_of"),
)
_N_COLUMNS = len(_COLUMNS)
_OF_FACTS = _weights(facts=1.0)
_AGREEING = Part(1.0, _weights(agree=1.0), _OF_FACTS)
# Two draws from the forms of a fact, which may be the same form, differ.
_DIFFERING = Part(1.0, _weights(share=2.0, share_squared=-2.0), _OF_FACTS)


def _per_fact(below: str = "facts", **columns: float) -> ShareStatistic:
    """Return the mean over facts of the sum of some columns."""
    part = Part(1.0, _weights(**columns), _weights(**{below: 1.0}))
    weights, n_facts = np.asarray(part.above), _COLUMNS.index(below)

    def mean(sums: Floats) -> Floats:
        """Divide summed columns by the number of facts."""
        return np.asarray(sums @ weights / sums[..., n_facts])

    return of_shares(part)(mean)


def _within(sums: Floats) -> Floats:
    """Return the mean over facts of share (1 - share)."""
    return np.asarray((sums[..., _SHARE] - sums[..., _SHARE_SQUARED]) / sums[..., _FACTS])


def _total_variance(sums: Floats) -> Floats:
    accuracy = sums[..., _SHARE] / sums[..., _FACTS]
    return np.asarray(accuracy * (1.0 - accuracy))


@of_shares(_DIFFERING, link=lambda differing, _: 1.0 - differing)
def _plug_in_consistency(sums: Floats) -> Floats:
    """Return 1 - 2 E[share (1 - share)]."""
    return np.asarray(1.0 - 2.0 * _within(sums))


def _share_of_differing(differing: Floats, sums: Floats) -> Floats:
    """Return the share of the form where forms differ so often, the accuracy being what it is."""
    return np.asarray(np.minimum(differing / 2.0 / _total_variance(sums), 2.0))


@of_shares(_AGREEING, link=lambda agreeing, sums: _share_of_differing(1.0 - agreeing, sums))
def _unbiased_form_share(sums: Floats) -> Floats:
    """Return the variance within facts, from pairs of distinct forms, over the total."""
    consistency = sums[..., _AGREE] / sums[..., _FACTS]
    return np.asarray((1.0 - consistency) / 2.0 / _total_variance(sums))


@of_shares(_DIFFERING, link=_share_of_differing)
def _plug_in_form_share(sums: Floats) -> Floats:
    """Return the variance within facts, of the forms at hand, over the total."""
    return np.asarray(_within(sums) / _total_variance(sums))


def _correlation_of_agreeing(agreeing: Floats, sums: Floats) -> Floats:
    """Return the intraclass correlation at another agreement, in proportion to disagreement."""
    observed = 1.0 - sums[..., _AGREE] / sums[..., _FACTS]
    slope = np.where(
        observed > 0.0,
        (1.0 - _intraclass_correlation(sums)) / observed,
        1.0 / (2.0 * _total_variance(sums)),
    )
    return np.asarray(np.maximum(1.0 - (1.0 - agreeing) * slope, -1.0))


@of_shares(_AGREEING, link=_correlation_of_agreeing)
def _intraclass_correlation(sums: Floats) -> Floats:
    """Return the one-way analysis-of-variance estimate."""
    facts, forms, right = sums[..., _FACTS], sums[..., _FORMS], sums[..., _RIGHT]
    between = sums[..., _RIGHT_SQUARED_PER_FORM] - right**2 / forms
    within = right - sums[..., _RIGHT_SQUARED_PER_FORM]
    mean_between, mean_within = between / (facts - 1.0), within / (forms - facts)
    size = (forms - sums[..., _FORMS_SQUARED] / forms) / (facts - 1.0)
    return np.asarray((mean_between - mean_within) / (mean_between + (size - 1.0) * mean_within))


_SHARED: _Rates = {
    "accuracy": _per_fact(share=1.0),
    "all_right": _per_fact(all_right=1.0),
    "all_wrong": _per_fact(all_wrong=1.0),
    "all_agree": _per_fact(all_right=1.0, all_wrong=1.0),
}

_UNBIASED_RATES: _Rates = MappingProxyType(
    {
        **_SHARED,
        "consistency": _per_fact(agree=1.0),
        "form_share": _unbiased_form_share,
        "intraclass_correlation": _intraclass_correlation,
    }
)
"""Every metric by name, agreement being that of two distinct forms."""

_PLUG_IN_RATES: _Rates = MappingProxyType(
    {
        **_SHARED,
        "consistency": _plug_in_consistency,
        "form_share": _plug_in_form_share,
        "intraclass_correlation": _intraclass_correlation,
    }
)
"""Every metric by name, agreement being that of two draws that may be the same form."""


_ALL_RIGHT_OF: _Rates = {"all_right_of": _per_fact("facts_of", all_right_of=1.0)}


def form_rates(estimator: FormEstimator, of: int | None = None) -> _Rates:
    """Return the metrics of many forms as statistics of summed columns."""
    check_choice(estimator, ("unbiased", "plug-in"), "estimator")
    rates = _UNBIASED_RATES if estimator == "unbiased" else _PLUG_IN_RATES
    return rates if of is None else {**rates, **_ALL_RIGHT_OF}


@dataclass(frozen=True, slots=True, kw_only=True)
class FormConsistencyResult:
    """Result of `form_consistency`; facts weigh alike, however many forms they have."""

    consistency: float
    """Probability that two random forms of a fact are both right or both wrong, in [0, 1]."""
    all_right: float
    """Share of facts that are right in all forms, in [0, 1]; falls with the number of forms."""
    all_wrong: float
    """Share of facts that are wrong in all forms, in [0, 1]."""
    all_agree: float
    """Share of facts whose forms are all right or all wrong, in [0, 1]."""
    accuracy: float
    """Mean over facts of the share of right forms, in [0, 1]."""
    form_share: float
    """Share of the variance of correctness that lies between the forms of a fact, in [0, 2]; lower
    means that the form matters less. Above 1: forms of a fact agree less than those of different
    facts. NaN where all verdicts are right or all wrong."""
    intraclass_correlation: float
    """Correlation of two forms of a fact by one-way analysis of variance, in [-1, 1], in which
    facts with more forms weigh more; with many facts of equally many forms it is 1 - form_share.
    NaN where all verdicts are right or all wrong, and for a single fact, which has no variance
    between facts."""
    consistency_interval: Interval
    """Interval of `consistency`; NaN bounds for one cluster, here and below."""
    all_right_interval: Interval
    """Interval of `all_right`."""
    all_wrong_interval: Interval
    """Interval of `all_wrong`."""
    all_agree_interval: Interval
    """Interval of `all_agree`."""
    accuracy_interval: Interval
    """Interval of `accuracy`."""
    form_share_interval: Interval
    """Interval of `form_share`."""
    intraclass_correlation_interval: Interval
    """Interval of `intraclass_correlation`."""
    n_facts: int
    """Facts with two scored forms or more: those that the numbers are about."""
    n_forms: int
    """Scored forms of these facts."""
    n_single: int
    """Facts with fewer than two scored forms; they are left out."""
    n_missing: int
    """Forms without a verdict; they are left out."""
    n_clusters: int
    """Clusters of the facts that the numbers are about."""


def form_consistency(
    correct: Sequence[npt.ArrayLike],
    *,
    clusters: Iterable[Hashable] | None = None,
    estimator: FormEstimator = "unbiased",
    missing: MissingPolicy = "raise",
    intervals: Intervals = DEFAULT_INTERVALS,
) -> FormConsistencyResult:
    """Measure how alike the forms of a fact are answered.

    Of the m forms of a fact let k be right. The probability that two distinct forms agree is
    (k (k - 1) + (m - k)(m - k - 1)) / (m (m - 1)), averaged over facts; "plug-in" takes
    1 - 2 (k / m)(1 - k / m) instead, which counts each form as agreeing with itself. The share of
    the form is E[Var(correct | fact)] / Var(correct) = (1 - consistency) / (2 p (1 - p)), p being
    the accuracy.

    Args:
        correct: Verdicts of the forms of each fact: one sequence a fact, of any length, or an array
            of shape `(n_facts, n_forms)`.
        clusters: The cluster of each fact, such as its subject; None takes facts for independent.
        estimator: "unbiased", which facts with few and with many forms share, or "plug-in", the
            definition of Srikanth et al., which few forms push up.
        missing: "raise" refuses missing verdicts; "drop" leaves out such forms, with an
            `UnscoredWarning` that says how many.
        intervals: How intervals are made; resamples are shared by all metrics.

    Returns:
        The metrics, their intervals and the counts.

    Raises:
        ValueError: When no fact has two scored forms, a verdict is not binary or (under "raise")
            missing, the number of clusters is not that of facts, or `estimator` is unknown.

    Notes:
        With two forms a fact, `consistency` is that of the paired table. The order of facts and of
        forms does not matter. Undefined values and the bounds with a single cluster are NaN, with
        an `UndefinedMetricWarning`; a single fact has no intraclass correlation. `all_right` and
        `all_agree` fall as forms are added, so compare them between sets of equally many forms
        only; `consistency` may be compared in any case.

    References:
        Srikanth, Carpuat and Rudinger, TACL 2024, arXiv 2404.11717 (P_C, PVAP); P. E. Shrout and
        J. L. Fleiss, Psychological Bulletin 86, 1979, ICC(1,1).

    Examples:
        >>> result = form_consistency([[1, 1, 1], [0, 0], [1, 0, 0, 1], [1, 1]] * 10)
        >>> round(result.consistency, 3), result.all_right, result.all_agree
        (0.833, 0.5, 0.75)
        >>> round(result.form_share, 3), round(result.intraclass_correlation, 3)
        (0.356, 0.393)
    """
    rates = form_rates(estimator)
    n_forms, n_right, n_missing = _count_forms(correct, missing)
    usable = n_forms > 1
    if not usable.any():
        raise ValueError("no fact has two scored forms, so there is nothing to compare")
    codes = label_codes(clusters, len(n_forms), "clusters", row="fact")[usable]
    summed = cluster_sums(fact_sums(n_forms[usable], n_right[usable]), codes)
    values = group_values(summed, rates, intervals)
    if n_missing:
        warnings.warn(
            f"{n_missing} forms lack a verdict and were left out", UnscoredWarning, stacklevel=2
        )
    _warn_undefined(values, len(summed))
    return FormConsistencyResult(
        **values_and_intervals(values),
        n_facts=int(usable.sum()),
        n_forms=int(n_forms[usable].sum()),
        n_single=int((~usable).sum()),
        n_missing=n_missing,
        n_clusters=len(summed),
    )


def _count_forms(
    correct: Sequence[npt.ArrayLike], missing: MissingPolicy
) -> tuple[Integers, Integers, int]:
    """Count the scored and the right forms of each fact, and those without a verdict."""
    check_missing(missing)
    if _is_full_array(correct):
        array = np.asarray(correct)
        sizes = np.full(len(array), array.shape[1], dtype=np.int64)
        return sizes, np.count_nonzero(array, axis=1), 0
    n_forms, n_right, n_missing = [], [], 0
    for index, verdicts in enumerate(correct):
        codes = verdict_codes(verdicts, f"correct[{index}]")
        absent = codes == MISSING
        refuse_missing(absent, f"correct[{index}]", missing, rows="forms", is_verdict=True)
        n_missing += int(absent.sum())
        n_forms.append(codes.size - int(absent.sum()))
        n_right.append(int((codes == 1).sum()))
    return np.asarray(n_forms, dtype=np.int64), np.asarray(n_right, dtype=np.int64), n_missing


def _is_full_array(correct: object) -> bool:
    """Tell a matrix of zeros and ones, which needs no look at single facts."""
    if not isinstance(correct, np.ndarray) or correct.ndim != 2 or correct.dtype.kind not in "biuf":
        return False
    return bool(((correct == 0) | (correct == 1)).all())


def _warn_undefined(values: Mapping[str, GroupValue], n_clusters: int) -> None:
    names = [name for name, group in values.items() if math.isnan(group.value)]
    if n_clusters < LEAST_CLUSTERS:
        names.append(f"all intervals ({too_few_clusters(n_clusters)})")
    else:
        names += [
            f"interval of {name}"
            for name, group in values.items()
            if math.isnan(group.interval.low) and not math.isnan(group.value)
        ]
    if names:
        warn_undefined(f"undefined (NaN): {', '.join(names)}", stacklevel=3)
