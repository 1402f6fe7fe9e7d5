"""More than two forms of a fact: how often do they agree, and how much does the form matter?"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from surface_consistency.metrics._inputs import Floats, Integers, check_choice
from surface_consistency.metrics.uncertainty.cluster_bounds import (
    Part,
    ShareStatistic,
    of_shares,
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
