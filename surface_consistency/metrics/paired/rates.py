"""The rates of a paired table, as functions of its four counts.

Each rate maps an array whose last axis holds the counts (both, first only, second only, neither)
to an array without that axis. So the same function serves one table, ten thousand resampled
tables, and `cluster_bootstrap`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

__all__ = ["PAIRED_RATES", "CountRatio"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRatio:
    """A rate that divides one weighted sum of counts by another.

    Args:
        numerator: Weight of each count above the line.
        denominator: Weight of each count below the line, one for each in `numerator`.

    Raises:
        ValueError: When the two hold different numbers of weights.

    Notes:
        0 / 0 is NaN, and any other number over 0 is infinite; neither warns here.

    References:
        W. G. Cochran, Sampling Techniques, 3rd ed., Wiley 1977, chapter 6 (ratio estimators).

    Examples:
        >>> consistency = CountRatio(numerator=(1, 0, 0, 1), denominator=(1, 1, 1, 1))
        >>> consistency([[4285, 2821, 608, 6775], [3, 1, 0, 0]]).round(4).tolist()
        [0.7633, 0.75]
    """

    numerator: tuple[int, ...]
    """Weight of each count above the line."""
    denominator: tuple[int, ...]
    """Weight of each count below the line."""

    def __post_init__(self) -> None:
        if len(self.numerator) != len(self.denominator):
            raise ValueError(
                "numerator and denominator must weigh the same counts; "
                f"got {len(self.numerator)} and {len(self.denominator)} weights"
            )

    def __call__(self, counts: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the rate of each row of counts, of shape `(...)` for counts `(..., k)`."""
        cells = np.asarray(counts, dtype=np.float64)
        above = cells @ np.asarray(self.numerator, dtype=np.float64)
        below = cells @ np.asarray(self.denominator, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.divide(above, below))


_PAIRS = (1, 1, 1, 1)

PAIRED_RATES: Mapping[str, Callable[[npt.ArrayLike], npt.NDArray[np.float64]]] = MappingProxyType(
    {
        "consistency": CountRatio(numerator=(1, 0, 0, 1), denominator=_PAIRS),
        "flip_rate": CountRatio(numerator=(0, 1, 1, 0), denominator=_PAIRS),
        "negative_flip_rate": CountRatio(numerator=(0, 1, 0, 0), denominator=_PAIRS),
        "positive_flip_rate": CountRatio(numerator=(0, 0, 1, 0), denominator=_PAIRS),
        "first_accuracy": CountRatio(numerator=(1, 1, 0, 0), denominator=_PAIRS),
        "second_accuracy": CountRatio(numerator=(1, 0, 1, 0), denominator=_PAIRS),
        "accuracy_difference": CountRatio(numerator=(0, -1, 1, 0), denominator=_PAIRS),
        "consistency_given_first_correct": CountRatio(
            numerator=(1, 0, 0, 0), denominator=(1, 1, 0, 0)
        ),
        "consistency_given_first_incorrect": CountRatio(
            numerator=(0, 0, 0, 1), denominator=(0, 0, 1, 1)
        ),
        "signed_alignment": CountRatio(numerator=(1, 0, 0, -1), denominator=_PAIRS),
    }
)
"""Every rate of a paired table by name; `PairedTable` documents each as a property.

The order is the order of the columns that `paired_by` returns.
"""
