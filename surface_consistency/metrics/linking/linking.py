"""The linking probe: does a model know that two surface forms name the same entity?

Yes/no questions: canonical-redirect pairs are positive examples, and two kinds of negative ones,
a surface with a character replaced and the surface of a similar entity, make one class.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics._shared.checks import check_count
from surface_consistency.metrics._shared.verdicts import MISSING, MissingPolicy
from surface_consistency.metrics.linking._linking_cells import (
    LINKING_KINDS,
    linking_cells,
    warn_unanswered,
)
from surface_consistency.metrics.paired.rates import CountRatio

__all__ = ["LINKING_KINDS", "LINKING_RATES", "LinkingTable", "linking_table"]

_POSITIVE = CountRatio(numerator=(1, 0, 0, 0), denominator=(1, 1, 0, 0))
_NEGATIVE = CountRatio(numerator=(0, 0, 1, 0), denominator=(0, 0, 1, 1))


def _balanced(counts: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the mean of the accuracies on positive and on negative examples."""
    return (_POSITIVE(counts) + _NEGATIVE(counts)) / 2.0


LINKING_RATES: Mapping[str, Callable[[npt.ArrayLike], npt.NDArray[np.float64]]] = MappingProxyType(
    {
        "raw_accuracy": CountRatio(numerator=(1, 0, 1, 0), denominator=(1, 1, 1, 1)),
        "balanced_accuracy": _balanced,
        "positive_accuracy": _POSITIVE,
        "negative_accuracy": _NEGATIVE,
        "yes_rate": CountRatio(numerator=(1, 0, 0, 1), denominator=(1, 1, 1, 1)),
    }
)
"""Every rate of a linking table by name; `LinkingTable` documents each as a property.

Each maps counts whose last axis holds positives right and wrong, then negatives right and wrong.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkingTable:
    """Counts of right and wrong answers to positive and negative linking questions.

    Tables of disjoint sets of examples add up: `table + other` is the table of all.

    Args:
        positive_right: True pairs that the model affirms.
        positive_wrong: True pairs that it denies.
        negative_right: False pairs of either kind that it denies.
        negative_wrong: False pairs of either kind that it affirms.

    Raises:
        TypeError: When a count is not an integer.
        ValueError: When a count is negative.

    Notes:
        A rate whose denominator is zero is NaN, with an `UndefinedMetricWarning`. With w negatives
        a positive, raw accuracy is (positive + w negative accuracy) / (1 + w), so it rises with a
        habit of saying no; balanced accuracy is 0.5 for whoever answers without regard to the
        pair.

    References:
        Appendix B.5 and table 7 of arXiv 2604.21882; Brodersen et al., ICPR 2010 (balanced
        accuracy).

    Examples:
        >>> table = LinkingTable(
        ...     positive_right=334, positive_wrong=666, negative_right=1422, negative_wrong=578)
        >>> round(table.raw_accuracy, 3), round(table.balanced_accuracy, 4)
        (0.585, 0.5225)
    """

    positive_right: int
    """True pairs that the model affirms."""
    positive_wrong: int
    """True pairs that it denies."""
    negative_right: int
    """False pairs of either kind that it denies."""
    negative_wrong: int
    """False pairs of either kind that it affirms."""

    def __post_init__(self) -> None:
        for name in ("positive_right", "positive_wrong", "negative_right", "negative_wrong"):
            object.__setattr__(self, name, check_count(getattr(self, name), name))

    def __add__(self, other: object) -> "LinkingTable":
        if not isinstance(other, LinkingTable):
            return NotImplemented
        return LinkingTable(
            positive_right=self.positive_right + other.positive_right,
            positive_wrong=self.positive_wrong + other.positive_wrong,
            negative_right=self.negative_right + other.negative_right,
            negative_wrong=self.negative_wrong + other.negative_wrong,
        )

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Positives right and wrong, then negatives right and wrong."""
        return (self.positive_right, self.positive_wrong, self.negative_right, self.negative_wrong)

    @property
    def n(self) -> int:
        """Number of examples."""
        return sum(self.counts)

    @property
    def raw_accuracy(self) -> float:
        """Share of examples answered right, in [0, 1]; higher is better."""
        return self._rate("raw_accuracy")

    @property
    def balanced_accuracy(self) -> float:
        """Mean of positive and negative accuracy, in [0, 1]; 0.5 is chance, higher is better."""
        return self._rate("balanced_accuracy")

    @property
    def positive_accuracy(self) -> float:
        """Share of true pairs affirmed, in [0, 1]; higher is better."""
        return self._rate("positive_accuracy")

    @property
    def negative_accuracy(self) -> float:
        """Share of false pairs denied, both kinds as one class, in [0, 1]; higher is better."""
        return self._rate("negative_accuracy")

    @property
    def yes_rate(self) -> float:
        """Share of examples answered yes, in [0, 1]: the habit that raw accuracy mixes in."""
        return self._rate("yes_rate")

    def _rate(self, name: str) -> float:
        """Return the named rate, with a warning where it is undefined."""
        value = float(LINKING_RATES[name](self.counts))
        if value != value:
            warnings.warn(
                f"{name} is undefined (NaN): no example enters its denominator in {self}",
                UndefinedMetricWarning,
                stacklevel=3,
            )
        return value


def linking_table(
    correct: npt.ArrayLike, kinds: Sequence[str], *, missing: MissingPolicy = "raise"
) -> LinkingTable:
    """Count right and wrong answers to linking questions.

    Args:
        correct: Verdicts of shape `(n_examples,)`: True or False, 1 or 0, and None, NaN or
            `pandas.NA` where the answer was neither yes nor no.
        kinds: Kind of each example, one of `LINKING_KINDS`; the two negative kinds count as one
            class.
        missing: "raise" refuses missing verdicts; "drop" leaves such examples out and says how many
            in an `UnscoredWarning`.

    Returns:
        The table of the scored examples.

    Raises:
        ValueError: When the lengths differ, a value is no verdict or (under "raise") missing, or a
            kind is not one of `LINKING_KINDS`.

    Notes:
        No examples give a table of zeros, whose rates are NaN with a warning. To count answers that
        are neither yes nor no as wrong, give False for them. The order of the examples does not
        matter.

    References:
        Appendix B.5 of arXiv 2604.21882.

    Examples:
        >>> kinds = ["positive", "surface_negative", "semantic_negative"] * 2
        >>> linking_table([1, 1, 0, 0, 1, 1], kinds).counts
        (1, 1, 3, 1)
    """
    cells = linking_cells(correct, kinds, missing=missing)
    scored = cells[cells != MISSING]
    warn_unanswered(cells, stacklevel=2)
    counts = np.bincount(scored, minlength=4)
    return LinkingTable(
        positive_right=int(counts[0]),
        positive_wrong=int(counts[1]),
        negative_right=int(counts[2]),
        negative_wrong=int(counts[3]),
    )
