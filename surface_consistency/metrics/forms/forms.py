"""Agreement of the forms of a fact, and the effect of the form, as functions of sums over facts."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from surface_consistency.metrics._inputs import Floats, Integers
from surface_consistency.metrics.paired.paired_tables import CountRatio
from surface_consistency.metrics.uncertainty.cluster_bounds import of_shares

_Rates = Mapping[str, Callable[[Floats], Floats]]

_COLUMNS = (
    *("facts", "forms", "right", "share"),
    *("right_squared_per_form", "forms_squared", "agree", "all_correct", "all_incorrect"),
    *("facts_of", "all_correct_of"),
)
"""Columns of the sums, over facts with m forms of which k are correct."""
_FACTS, _FORMS, _RIGHT, _SHARE, _RIGHT_SQUARED_PER_FORM, _FORMS_SQUARED = range(6)


class RepeatSums(NamedTuple):
    """Sums over the forms of a fact with repeats; p is the mean of the repeats of a form."""

    squares: Floats
    """Sum of p^2 over forms."""
    all_correct: Floats
    """Product of p over forms."""
    all_incorrect: Floats
    """Product of 1 - p over forms."""


def fact_sums(
    n_forms: Integers,
    n_right: Integers | Floats,
    of: int | None = None,
    repeats: RepeatSums | None = None,
) -> Floats:
    """Return the summands of each fact with two or more forms, shape `(n_items, 11)`.

    `of` is the number of forms drawn for all_correct_of; None draws all forms of each fact. With
    `repeats`, `n_right` is the sum of the means of the forms, and the sums are expected values for
    one repeat per form, drawn independently.
    """
    m, k = n_forms.astype(np.float64), n_right.astype(np.float64)
    squares = k if repeats is None else repeats.squares
    agree = (k**2 - squares + (m - k) ** 2 - (m - 2.0 * k + squares)) / (m * (m - 1.0))
    all_correct, all_incorrect = (k == m, k == 0.0) if repeats is None else repeats[1:]
    share, drawn = k / m, m if of is None else float(of)
    is_drawn = m >= drawn
    return np.column_stack(
        [
            *(np.ones_like(m), m, k, share),
            *(k * share if repeats is None else (k**2 - squares + k) / m, m**2, agree),
            *(all_correct, all_incorrect),
            *(is_drawn, np.where(is_drawn, _all_drawn_right(m, k, drawn), 0.0)),
        ]
    )


def _all_drawn_right(m: Floats, k: Floats, drawn: Floats | float) -> Floats:
    """Return C(k, drawn) / C(m, drawn), the probability that all forms drawn are correct.

    Forms are drawn without replacement; C is the binomial coefficient. 0 if k is below `drawn`.
    """
    from scipy.special import gammaln

    right, missing = np.maximum(k - drawn, 0.0), np.maximum(m - drawn, 0.0)
    logarithm = gammaln(k + 1.0) - gammaln(right + 1.0) - gammaln(m + 1.0) + gammaln(missing + 1.0)
    return np.asarray(np.where(k >= drawn, np.exp(np.minimum(logarithm, 0.0)), 0.0))


def _per_fact(*above: str, below: str = "facts") -> CountRatio:
    """Return the mean over facts of the sum of some columns."""
    return CountRatio(
        numerator=tuple(int(name in above) for name in _COLUMNS),
        denominator=tuple(int(name == below) for name in _COLUMNS),
    )


_CONSISTENCY = _per_fact("agree")


def _total_variance(sums: Floats) -> Floats:
    accuracy = sums[..., _SHARE] / sums[..., _FACTS]
    return np.asarray(accuracy * (1.0 - accuracy))


def _within_item_share_of_agreeing(agreeing: Floats, sums: Floats) -> Floats:
    """Return the within-item proportion at another agreement, with the accuracy fixed."""
    return np.asarray(np.minimum((1.0 - agreeing) / 2.0 / _total_variance(sums), 2.0))


@of_shares(*_CONSISTENCY.parts, link=_within_item_share_of_agreeing)
def _within_item_share(sums: Floats) -> Floats:
    """Return the variance within facts, from pairs of distinct forms, divided by the total."""
    return np.asarray((1.0 - _CONSISTENCY(sums)) / 2.0 / _total_variance(sums))


def _correlation_of_agreeing(agreeing: Floats, sums: Floats) -> Floats:
    """Return the intraclass correlation at another agreement, linear in the disagreement."""
    observed = 1.0 - _CONSISTENCY(sums)
    slope = np.where(
        observed > 0.0,
        (1.0 - _intraclass_correlation(sums)) / observed,
        1.0 / (2.0 * _total_variance(sums)),
    )
    return np.asarray(np.maximum(1.0 - (1.0 - agreeing) * slope, -1.0))


@of_shares(*_CONSISTENCY.parts, link=_correlation_of_agreeing)
def _intraclass_correlation(sums: Floats) -> Floats:
    """Return the one-way analysis-of-variance estimate."""
    facts, forms, right = sums[..., _FACTS], sums[..., _FORMS], sums[..., _RIGHT]
    between = sums[..., _RIGHT_SQUARED_PER_FORM] - right**2 / forms
    within = right - sums[..., _RIGHT_SQUARED_PER_FORM]
    mean_between, mean_within = between / (facts - 1.0), within / (forms - facts)
    size = (forms - sums[..., _FORMS_SQUARED] / forms) / (facts - 1.0)
    return np.asarray((mean_between - mean_within) / (mean_between + (size - 1.0) * mean_within))


_RATES: _Rates = {
    "accuracy": _per_fact("share"),
    "all_correct": _per_fact("all_correct"),
    "all_incorrect": _per_fact("all_incorrect"),
    "all_agree": _per_fact("all_correct", "all_incorrect"),
    "consistency": _CONSISTENCY,
    "within_item_share": _within_item_share,
    "intraclass_correlation": _intraclass_correlation,
}


def form_rates(of: int | None = None) -> _Rates:
    """Return the metrics of many forms as statistics of summed columns."""
    if of is None:
        return _RATES
    return {**_RATES, "all_correct_of": _per_fact("all_correct_of", below="facts_of")}
