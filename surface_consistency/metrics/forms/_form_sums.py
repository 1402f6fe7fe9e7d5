"""Sums over facts from which every metric of many forms follows, and those metrics."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["FormEstimator", "fact_sums", "form_rates", "sum_by_cluster"]

FormEstimator: TypeAlias = Literal["unbiased", "plug-in"]
"""Whether a form is compared with other forms only, or with itself too, as the paper does."""

_Floats = npt.NDArray[np.float64]
_Rates = Mapping[str, Callable[[_Floats], _Floats]]

# Columns of the sums, each over facts with m forms of which k are right.
_FACTS, _FORMS, _RIGHT, _SHARE, _SHARE_SQUARED = range(5)
_RIGHT_SQUARED_PER_FORM, _FORMS_SQUARED, _AGREE, _ALL_RIGHT, _ALL_WRONG = range(5, 10)


def fact_sums(n_forms: npt.NDArray[np.int64], n_right: npt.NDArray[np.int64]) -> _Floats:
    """Return the summands of each fact with two forms or more, shape `(n_facts, 10)`."""
    m, k = n_forms.astype(np.float64), n_right.astype(np.float64)
    agree = (k * (k - 1.0) + (m - k) * (m - k - 1.0)) / (m * (m - 1.0))
    share = k / m
    return np.column_stack(
        [np.ones_like(m), m, k, share, share**2, k * share, m**2, agree, k == m, k == 0.0]
    )


def sum_by_cluster(rows: _Floats, clusters: npt.NDArray[np.int64]) -> _Floats:
    """Sum the rows of each cluster."""
    distinct, numbers = np.unique(clusters, return_inverse=True)
    sums = np.zeros((distinct.size, rows.shape[1]))
    np.add.at(sums, numbers, rows)
    return sums


def _per_fact(*columns: int) -> Callable[[_Floats], _Floats]:
    """Return the mean over facts of the sum of some columns."""

    def mean(sums: _Floats) -> _Floats:
        """Divide summed columns by the number of facts."""
        return np.asarray(sums[..., list(columns)].sum(axis=-1) / sums[..., _FACTS])

    return mean


def _plug_in_consistency(sums: _Floats) -> _Floats:
    """Return 1 - 2 E[share (1 - share)]."""
    return np.asarray(1.0 - 2.0 * _within(sums))


def _within(sums: _Floats) -> _Floats:
    """Return the mean over facts of share (1 - share)."""
    return np.asarray((sums[..., _SHARE] - sums[..., _SHARE_SQUARED]) / sums[..., _FACTS])


def _total_variance(sums: _Floats) -> _Floats:
    """Return the variance of the correctness of a random form of a random fact."""
    accuracy = sums[..., _SHARE] / sums[..., _FACTS]
    return np.asarray(accuracy * (1.0 - accuracy))


def _unbiased_form_share(sums: _Floats) -> _Floats:
    """Return the variance within facts, from pairs of distinct forms, over the total."""
    consistency = sums[..., _AGREE] / sums[..., _FACTS]
    return np.asarray((1.0 - consistency) / 2.0 / _total_variance(sums))


def _plug_in_form_share(sums: _Floats) -> _Floats:
    """Return the variance within facts, of the forms at hand, over the total."""
    return np.asarray(_within(sums) / _total_variance(sums))


def _intraclass_correlation(sums: _Floats) -> _Floats:
    """Return the one-way analysis-of-variance estimate."""
    facts, forms, right = sums[..., _FACTS], sums[..., _FORMS], sums[..., _RIGHT]
    between = sums[..., _RIGHT_SQUARED_PER_FORM] - right**2 / forms
    within = right - sums[..., _RIGHT_SQUARED_PER_FORM]
    mean_between, mean_within = between / (facts - 1.0), within / (forms - facts)
    size = (forms - sums[..., _FORMS_SQUARED] / forms) / (facts - 1.0)
    return np.asarray((mean_between - mean_within) / (mean_between + (size - 1.0) * mean_within))


_SHARED: _Rates = {
    "accuracy": _per_fact(_SHARE),
    "all_right": _per_fact(_ALL_RIGHT),
    "all_wrong": _per_fact(_ALL_WRONG),
    "all_agree": _per_fact(_ALL_RIGHT, _ALL_WRONG),
}

_UNBIASED_RATES: _Rates = MappingProxyType(
    {
        **_SHARED,
        "consistency": _per_fact(_AGREE),
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


def form_rates(estimator: FormEstimator) -> _Rates:
    """Return the metrics of many forms as statistics of summed columns."""
    if estimator == "unbiased":
        return _UNBIASED_RATES
    if estimator == "plug-in":
        return _PLUG_IN_RATES
    raise ValueError(f"estimator must be 'unbiased' or 'plug-in'; got {estimator!r}")
