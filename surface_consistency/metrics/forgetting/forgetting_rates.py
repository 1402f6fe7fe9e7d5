"""The rates of an audit of forgetting, as functions of summed counts.

Each rate maps an array whose last axis holds ten counts to an array without that axis: a, b, c, d
and the artifacts of all facts, then the same five of the facts right under FULL. So one function
serves one table, ten thousand resampled ones, and `cluster_bootstrap`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from surface_consistency.metrics.paired.rates import CountRatio

__all__ = ["DELETION_RATES", "FULL_RATES", "FULL_TRACE_RATES", "TRACE_RATES"]

_NONE = (0, 0, 0, 0, 0)
_FACTS = (1, 1, 1, 1, 0)


def _of_all(*weights: int) -> CountRatio:
    """Weigh the five counts of all facts, over all facts."""
    return CountRatio(numerator=(*weights, *_NONE), denominator=(*_FACTS, *_NONE))


def _given_full(*weights: int) -> CountRatio:
    """Weigh the five counts of the facts right under FULL, over these facts."""
    return CountRatio(numerator=(*_NONE, *weights), denominator=(*_NONE, *_FACTS))


DELETION_RATES: Mapping[str, CountRatio] = MappingProxyType(
    {
        "leakage": _of_all(1, 0, 1, 0, 0),
        "retrieval_mediated": _of_all(0, 1, 0, 0, 0),
        "interference": _of_all(0, 0, 1, 0, 0),
        "del_on_accuracy": _of_all(1, 1, 0, 0, 0),
    }
)
"""L, R, I and p(DEL-ON), which two states are enough for; `ForgettingCounts` documents each."""

TRACE_RATES: Mapping[str, CountRatio] = MappingProxyType({"artifact_rate": _of_all(0, 0, 0, 0, 1)})
"""A, which needs retrieval traces."""

FULL_RATES: Mapping[str, CountRatio] = MappingProxyType(
    {
        "full_accuracy": CountRatio(numerator=(*_NONE, *_FACTS), denominator=(*_FACTS, *_NONE)),
        "survival_given_full": _given_full(1, 1, 0, 0, 0),
        "leakage_given_full": _given_full(1, 0, 1, 0, 0),
        "retrieval_mediated_given_full": _given_full(0, 1, 0, 0, 0),
        "interference_given_full": _given_full(0, 0, 1, 0, 0),
    }
)
"""FULL accuracy and the rates given FULL, which need the third state."""

FULL_TRACE_RATES: Mapping[str, CountRatio] = MappingProxyType(
    {"artifact_rate_given_full": _given_full(0, 0, 0, 0, 1)}
)
"""A given FULL, which needs both."""
