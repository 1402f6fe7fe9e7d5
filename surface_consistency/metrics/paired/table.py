"""The contingency table of paired verdicts, the core of every study.

The same fact is asked under two conditions, and each answer is right or wrong:

=============  ==============  ==============
               second right    second wrong
=============  ==============  ==============
first right    both            first_only
first wrong    second_only     neither
=============  ==============  ==============

Texts on McNemar's test call these cells a, b, c and d in that order.

Noise floor: ask the same prompts twice, with another batch composition or seed, and pair the two
runs. The `flip_rate` of that table is what changes when nothing but the noise does; report it
beside the flip rate between surface forms.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics._shared.checks import check_count
from surface_consistency.metrics._shared.verdicts import (
    MISSING,
    MissingPolicy,
    outcome_cells,
    warn_unscored,
)
from surface_consistency.metrics.paired.rates import PAIRED_RATES

__all__ = ["PairedTable", "paired_table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedTable:
    """Counts of paired verdicts, with the rates that follow from them.

    Rates are fractions in [0, 1], or in [-1, 1] where their docstring says so. Tables of disjoint
    sets of pairs add up: `table + other` is the table of all pairs.

    Args:
        both: Pairs right under both conditions (a).
        first_only: Pairs right under the first condition only (b).
        second_only: Pairs right under the second condition only (c).
        neither: Pairs wrong under both conditions (d).

    Raises:
        TypeError: When a count is not an integer.
        ValueError: When a count is negative.

    Notes:
        A rate whose denominator is zero is NaN, with an `UndefinedMetricWarning`.

    References:
        Nishida et al. 2026, arXiv 2604.21882, table 4 and figure 2.

    Examples:
        >>> table = PairedTable(both=4285, first_only=2821, second_only=608, neither=6775)
        >>> table.n
        14489
        >>> round(table.flip_rate, 3), round(table.consistency_given_first_correct, 3)
        (0.237, 0.603)
        >>> round(table.accuracy_difference, 3)
        -0.153
    """

    both: int
    """Pairs right under both conditions (a)."""
    first_only: int
    """Pairs right under the first condition and wrong under the second (b)."""
    second_only: int
    """Pairs wrong under the first condition and right under the second (c)."""
    neither: int
    """Pairs wrong under both conditions (d)."""

    def __post_init__(self) -> None:
        for name in ("both", "first_only", "second_only", "neither"):
            object.__setattr__(self, name, check_count(getattr(self, name), name))

    def __add__(self, other: object) -> "PairedTable":
        if not isinstance(other, PairedTable):
            return NotImplemented
        return PairedTable(
            both=self.both + other.both,
            first_only=self.first_only + other.first_only,
            second_only=self.second_only + other.second_only,
            neither=self.neither + other.neither,
        )

    def swap(self) -> "PairedTable":
        """Return the table with the two conditions exchanged."""
        return PairedTable(
            both=self.both,
            first_only=self.second_only,
            second_only=self.first_only,
            neither=self.neither,
        )

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """The cells in the order both, first_only, second_only, neither."""
        return (self.both, self.first_only, self.second_only, self.neither)

    @property
    def n(self) -> int:
        """Number of pairs, a + b + c + d."""
        return sum(self.counts)

    @property
    def consistency(self) -> float:
        """Share of pairs with equal verdicts, (a + d) / n, in [0, 1]; higher is more consistent.

        Two wrong answers count as consistent even where they differ. SLAQ calls this alignment.
        """
        return self._rate("consistency")

    @property
    def flip_rate(self) -> float:
        """Share of pairs whose verdicts differ, (b + c) / n = 1 - consistency, in [0, 1]."""
        return self._rate("flip_rate")

    @property
    def negative_flip_rate(self) -> float:
        """Share of pairs that turn from right to wrong, b / n, in [0, 1].

        The name is that of model-update regression (Yan et al. 2021, arXiv 2011.09161).
        """
        return self._rate("negative_flip_rate")

    @property
    def positive_flip_rate(self) -> float:
        """Share of pairs that turn from wrong to right, c / n, in [0, 1]."""
        return self._rate("positive_flip_rate")

    @property
    def signed_alignment(self) -> float:
        """Both right less both wrong, (a - d) / n, in [-1, 1] (SLAQ, arXiv 2510.11218, eq. 4).

        Positive where shared success outweighs shared failure.
        """
        return self._rate("signed_alignment")

    @property
    def first_accuracy(self) -> float:
        """Accuracy under the first condition, (a + b) / n, in [0, 1]; higher is better."""
        return self._rate("first_accuracy")

    @property
    def second_accuracy(self) -> float:
        """Accuracy under the second condition, (a + c) / n, in [0, 1]; higher is better."""
        return self._rate("second_accuracy")

    @property
    def accuracy_difference(self) -> float:
        """Second less first accuracy, (c - b) / n, in [-1, 1]; negative: the second does worse."""
        return self._rate("accuracy_difference")

    @property
    def consistency_given_first_correct(self) -> float:
        """Share still right of those right at first, a / (a + b), in [0, 1].

        The left bars of figure 2 of RedirectQA (arXiv 2604.21882), first being canonical.
        """
        return self._rate("consistency_given_first_correct")

    @property
    def consistency_given_first_incorrect(self) -> float:
        """Share still wrong of those wrong at first, d / (c + d), in [0, 1].

        High values are consistent failure; the rest are facts reached by the second form alone.
        """
        return self._rate("consistency_given_first_incorrect")

    def _rate(self, name: str) -> float:
        """Return the named rate, with a warning where it is undefined."""
        value = float(PAIRED_RATES[name](self.counts))
        if value != value:
            warnings.warn(
                f"{name} is undefined (NaN): no pair enters its denominator in {self}",
                UndefinedMetricWarning,
                stacklevel=3,
            )
        return value


def paired_table(
    first: npt.ArrayLike, second: npt.ArrayLike, *, missing: MissingPolicy = "raise"
) -> PairedTable:
    """Count the paired verdicts of two conditions.

    Args:
        first: Verdicts under the first condition, shape `(n_pairs,)`: True or False, 1 or 0, and
            None, NaN or `pandas.NA` where an answer was not scored.
        second: Verdicts of the same pairs, in the same order, under the second condition.
        missing: "raise" refuses missing verdicts; "drop" leaves out each pair that lacks one and
            says how many in an `UnscoredWarning`.

    Returns:
        The table of the scored pairs.

    Raises:
        ValueError: When the lengths differ, an input is not one-dimensional, a value is no
            verdict, or a verdict is missing under "raise". The message names index and value.

    Notes:
        No pairs at all give a table of zeros, whose rates are NaN with a warning. The order of the
        pairs does not matter. Swapping the inputs swaps `first_only` and `second_only`.

    References:
        Q. McNemar, Psychometrika 12, 1947, for the table.

    Examples:
        >>> canonical = [True, True, True, False, False]
        >>> redirect = [True, False, False, True, False]
        >>> paired_table(canonical, redirect)
        PairedTable(both=1, first_only=2, second_only=1, neither=1)
    """
    cells = outcome_cells(first, second, missing=missing)
    scored = cells[cells != MISSING]
    warn_unscored(cells.size - scored.size, cells.size, stacklevel=2)
    counts = np.bincount(scored, minlength=4)
    return PairedTable(
        both=int(counts[0]),
        first_only=int(counts[1]),
        second_only=int(counts[2]),
        neither=int(counts[3]),
    )
