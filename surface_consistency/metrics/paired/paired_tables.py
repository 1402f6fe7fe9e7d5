"""Paired tables: counts of correctness labels under two conditions, overall and per cluster."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics import _inputs
from surface_consistency.metrics.uncertainty.cluster_bounds import Link, Part
from surface_consistency.truth import NoTruthValue


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRatio:
    """A rate that is a weighted sum of counts divided by another weighted sum.

    Args:
        numerator: Weight of each count in the numerator.
        denominator: Weight of each count in the denominator, one for each in `numerator`.
        is_odds: Whether the two sums count different things, so that the rate is an odds, which can
            be any number from 0.

    Raises:
        ValueError: If the numbers of weights differ.

    Notes:
        0 / 0 is NaN, and any other number divided by 0 is infinite; neither gives a warning here.

    References:
        W. G. Cochran, Sampling Techniques, 3rd ed., Wiley 1977, chapter 6 (ratio estimators).

    Examples:
        >>> consistency = CountRatio(numerator=(1, 0, 0, 1), denominator=(1, 1, 1, 1))
        >>> consistency([[4285, 2821, 608, 6775], [3, 1, 0, 0]]).round(4).tolist()
        [0.7633, 0.75]
    """

    numerator: tuple[int, ...]
    """Weight of each count in the numerator."""
    denominator: tuple[int, ...]
    """Weight of each count in the denominator."""
    is_odds: bool = False
    """Whether the rate is the odds of one kind of count against another."""

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

    @property
    def parts(self) -> tuple[Part, ...]:
        """The mean that equals the rate, or the proportion of which the rate is the odds."""
        above, below = self.numerator, self.denominator
        if self.is_odds:
            below = tuple(a + b for a, b in zip(above, below, strict=True))
        return (Part(1.0, above, below, min(0, *above), max(0, *above)),)

    @property
    def link(self) -> Link | None:
        """Function from the proportion to the rate; None if the rate is the proportion."""
        return (lambda share, _: share / (1.0 - share)) if self.is_odds else None


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
"""Every rate of a paired table by name; `PairedTable` documents each as a property. They are in the
order of the columns that `paired_by` returns.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedTable(NoTruthValue):
    """Counts of paired correctness labels, with the rates computed from them.

    Rates are fractions in [0, 1], or in [-1, 1] if their docstring says so.

    Args:
        both: Number of pairs correct under both conditions (a).
        first_only: Number of pairs correct under the first condition only (b).
        second_only: Number of pairs correct under the second condition only (c).
        neither: Number of pairs incorrect under both conditions (d).

    Raises:
        TypeError: If a count is not an integer.
        ValueError: If a count is negative.

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

    truth = "a rate or a count, such as table.n or table.flip_rate"

    both: int
    """Number of pairs correct under both conditions (a)."""
    first_only: int
    """Number of pairs correct under the first condition and incorrect under the second (b)."""
    second_only: int
    """Number of pairs incorrect under the first condition and correct under the second (c)."""
    neither: int
    """Number of pairs incorrect under both conditions (d)."""

    def __post_init__(self) -> None:
        for name in ("both", "first_only", "second_only", "neither"):
            object.__setattr__(self, name, _inputs.check_count(getattr(self, name), name))

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """The cells in the order both, first_only, second_only, neither."""
        return (self.both, self.first_only, self.second_only, self.neither)

    def to_dict(self) -> dict[str, int]:
        """Return the cells by name."""
        return asdict(self)

    @property
    def n(self) -> int:
        """Number of pairs, a + b + c + d."""
        return sum(self.counts)

    @property
    def consistency(self) -> float:
        """Proportion of pairs with equal labels, (a + d) / n, in [0, 1]; higher is more consistent.

        Two incorrect answers count as consistent even if they differ. SLAQ calls this alignment.
        """
        return self._rate("consistency")

    @property
    def flip_rate(self) -> float:
        """Proportion of pairs with different labels, (b + c) / n = 1 - consistency, in [0, 1]."""
        return self._rate("flip_rate")

    @property
    def negative_flip_rate(self) -> float:
        """Proportion of pairs that change from correct to incorrect, b / n, in [0, 1].

        The name is that of model-update regression (Yan et al. 2021, arXiv 2011.09161).
        """
        return self._rate("negative_flip_rate")

    @property
    def positive_flip_rate(self) -> float:
        """Proportion of pairs that change from incorrect to correct, c / n, in [0, 1]."""
        return self._rate("positive_flip_rate")

    @property
    def signed_alignment(self) -> float:
        """Proportion both correct minus both incorrect, (a - d) / n (arXiv 2510.11218, eq. 4).

        In [-1, 1]; positive if more pairs are both correct than both incorrect (SLAQ).
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
        """Second minus first accuracy, (c - b) / n, in [-1, 1]; negative if the second is lower."""
        return self._rate("accuracy_difference")

    @property
    def consistency_given_first_correct(self) -> float:
        """Proportion still correct of the pairs correct at first, a / (a + b), in [0, 1].

        Figure 2 of RedirectQA (arXiv 2604.21882) shows it as left bars, with the canonical form
        first.
        """
        return self._rate("consistency_given_first_correct")

    @property
    def consistency_given_first_incorrect(self) -> float:
        """Proportion still incorrect of the pairs incorrect at first, d / (c + d), in [0, 1].

        High values mean consistent failure; the other facts are correct under the second form only.
        """
        return self._rate("consistency_given_first_incorrect")

    def _rate(self, name: str) -> float:
        value = float(PAIRED_RATES[name](self.counts))
        if value != value:
            _inputs.warn_undefined(
                f"{name} is undefined (NaN): no pair enters its denominator in {self}", stacklevel=3
            )
        return value


def paired_table(
    first: npt.ArrayLike, second: npt.ArrayLike, *, missing: _inputs.MissingPolicy = "raise"
) -> PairedTable:
    """Count the paired correctness labels of two conditions.

    Args:
        first: Correctness labels under the first condition, shape `(n_pairs,)`: True or False, 1 or
            0, and None, NaN or `pandas.NA` if an answer was not scored.
        second: Labels of the same pairs, in the same order, under the second condition.
        missing: "raise" raises an error if a label is missing; "drop" excludes each pair without
            both labels and reports their number in an `UnscoredWarning`.

    Returns:
        The table of the scored pairs.

    Raises:
        ValueError: If the lengths differ, an input is not one-dimensional, a value is not a
            correctness label, or a label is missing under "raise". The message has index and value.

    Notes:
        Without a pair the table has only zeros, and its rates are NaN with a warning. The order of
        the pairs does not matter. Swapping the inputs swaps `first_only` and `second_only`.

    References:
        Q. McNemar, Psychometrika 12, 1947, for the table.

    Examples:
        >>> canonical = [True, True, True, False, False]
        >>> redirect = [True, False, False, True, False]
        >>> paired_table(canonical, redirect)
        PairedTable(both=1, first_only=2, second_only=1, neither=1)
    """
    cells = _inputs.outcome_cells(first, second, missing=missing)
    scored = cells[cells != _inputs.MISSING]
    _inputs.warn_unscored(cells.size - scored.size, cells.size, stacklevel=2)
    return table_of(np.bincount(scored, minlength=4))


def consistency(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *more: npt.ArrayLike,
    missing: _inputs.MissingPolicy = "raise",
) -> float:
    """Return the proportion of pairs with equal correctness labels.

    Args:
        first: Correctness labels under the first condition, as in `paired_table`.
        second: Labels of the same pairs under the second condition.
        more: Not accepted, because more than two forms of an item require a frame.
        missing: "raise" raises an error if a label is missing; "drop" excludes such pairs.

    Returns:
        The consistency, in [0, 1], which is 1 minus `flip_rate`; higher is more consistent.

    Raises:
        TypeError: If there are more than two arrays.
        ValueError: If `paired_table` rejects the labels.

    Notes:
        Two incorrect answers count as consistent even if they differ. Without a pair the result is
        NaN, with an `UndefinedMetricWarning`. For k forms of a fact use `forms_by`; for intervals
        and groups use `paired_by`.

    References:
        Nishida et al. 2026, arXiv 2604.21882, section 3.2.

    Examples:
        >>> consistency([1, 1, 0, 0], [1, 0, 0, 0])
        0.75
    """
    _check_two_conditions(more)
    return proportion_of_cells((0, 3), first, second, missing=missing)


def flip_rate(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *more: npt.ArrayLike,
    missing: _inputs.MissingPolicy = "raise",
) -> float:
    """Return the proportion of pairs with different correctness labels, 1 minus `consistency`.

    Args:
        first: Correctness labels under the first condition, as in `paired_table`.
        second: Labels of the same pairs under the second condition.
        more: As in `consistency`.
        missing: As in `consistency`.

    Returns:
        The flip rate, in [0, 1]; lower is more consistent.

    Raises:
        TypeError: If there are more than two arrays.
        ValueError: If `paired_table` rejects the labels.

    Notes:
        NaN, with an `UndefinedMetricWarning`, without a pair.

    References:
        Nishida et al. 2026, arXiv 2604.21882, table 4.

    Examples:
        >>> flip_rate([1, 1, 0, 0], [1, 0, 0, 0])
        0.25
    """
    _check_two_conditions(more)
    return proportion_of_cells((1, 2), first, second, missing=missing)


def consistency_given(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    first_correct: bool,
    missing: _inputs.MissingPolicy = "raise",
) -> float:
    """Return the consistency of pairs that are correct (or incorrect) under the first condition.

    Args:
        first: Correctness labels under the first condition, as in `paired_table`.
        second: Labels of the same pairs under the second condition.
        first_correct: Whether to use the pairs that are correct under the first condition (True) or
            incorrect (False).
        missing: As in `consistency`.

    Returns:
        The proportion of these pairs with equal labels, in [0, 1].

    Raises:
        ValueError: If `paired_table` rejects the labels.

    Notes:
        NaN, with an `UndefinedMetricWarning`, without such a pair.

    References:
        Nishida et al. 2026, arXiv 2604.21882, figure 2.

    Examples:
        >>> consistency_given([1, 1, 0, 0], [1, 0, 0, 0], first_correct=True)
        0.5
    """
    among = (0, 1) if first_correct else (2, 3)
    return proportion_of_cells((0, 3), first, second, among=among, missing=missing)


def _check_two_conditions(more: tuple[npt.ArrayLike, ...]) -> None:
    """Raise an error if there are more than two conditions."""
    if more:
        raise TypeError(
            f"got {2 + len(more)} arrays, but the rate is one of two conditions; for more forms of "
            "an item use surface_consistency.consistency(df) with the columns item, form and score"
        )


def proportion_of_cells(
    wanted: tuple[int, ...],
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    missing: _inputs.MissingPolicy,
    among: tuple[int, ...] = (0, 1, 2, 3),
    names: tuple[str, str] = ("first", "second"),
) -> float:
    """Return the proportion of scored pairs in some cells (0 both, 1 first only, ...)."""
    cells = _inputs.outcome_cells(first, second, missing=missing, names=names)
    n_missing, unit = int((cells == _inputs.MISSING).sum()), _inputs.row_unit(names)
    _inputs.warn_unscored(n_missing, cells.size, what=unit, stacklevel=3)
    counts = np.bincount(cells[cells != _inputs.MISSING], minlength=4)
    n = int(counts[list(among)].sum())
    if n == 0:
        _inputs.warn_undefined(
            f"the rate is undefined (NaN): no {unit[:-1]} enters its denominator", stacklevel=3
        )
        return math.nan
    return int(counts[[cell for cell in wanted if cell in among]].sum()) / n


def table_of(counts: Iterable[int]) -> PairedTable:
    """Return a table of four counts in the order of `PairedTable.counts`."""
    both, first_only, second_only, neither = map(int, counts)
    return PairedTable(both=both, first_only=first_only, second_only=second_only, neither=neither)


def check_table(table: object) -> PairedTable:
    """Return the table; counts of shape `(2, 2)` are converted to a table."""
    if isinstance(table, PairedTable):
        return table
    cells = np.asarray(table)
    if cells.shape != (2, 2):
        raise TypeError(
            f"table must be a PairedTable or counts of the shape (2, 2); got {type(table).__name__}"
            f" of the shape {cells.shape}; count correctness labels with paired_table"
        )
    return table_of(pair_counts(cells.reshape(1, 4))[0])


def cluster_counts(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    clusters: Iterable[Hashable],
    missing: _inputs.MissingPolicy = "raise",
) -> npt.NDArray[np.int64]:
    """Count the paired correctness labels within each cluster.

    Args:
        first: Correctness labels under the first condition, shape `(n_pairs,)`, as in
            `paired_table`.
        second: Labels of the same pairs under the second condition.
        clusters: Cluster of each pair, such as its fact or subject. The pairs of a cluster have a
            common answer and are not independent.
        missing: "raise" raises an error if a label is missing; "drop" excludes such pairs and
            reports their number in an `UnscoredWarning`.

    Returns:
        Counts of shape `(n_clusters, 4)`, columns both, first only, second only, neither; one row
        per cluster with a scored pair, in order of first appearance.

    Raises:
        ValueError: If `paired_table` rejects the labels, the number of cluster labels is not the
            number of pairs, or a cluster label is missing.

    Notes:
        The column sums are the cells of `paired_table`. Without a pair the shape is `(0, 4)`.

    References:
        A. C. Davison and D. V. Hinkley, Bootstrap Methods and their Application, Cambridge 1997,
        section 3.8 (resampling of clusters).

    Examples:
        >>> cluster_counts([1, 1, 0], [1, 0, 0], clusters=["Q42", "Q42", "Q213531"]).tolist()
        [[1, 1, 0, 0], [0, 0, 0, 1]]
    """
    _inputs.check_same_index(first=first, second=second, clusters=clusters)
    cells = _inputs.outcome_cells(first, second, missing=missing)
    labels = _inputs.label_codes(clusters, cells.size, "clusters", row="pair")
    scored = np.flatnonzero(cells != _inputs.MISSING)
    _inputs.warn_unscored(cells.size - scored.size, cells.size, stacklevel=2)
    # Renumbered, because a cluster without a scored pair has no row.
    codes = _inputs.label_codes(labels[scored].tolist(), scored.size, "clusters")
    n_cells = 4 * (int(codes.max(initial=-1)) + 1)
    counts = np.bincount(4 * codes + cells[scored], minlength=n_cells)
    return counts.astype(np.int64).reshape(-1, 4)


def count_matrix(counts: npt.ArrayLike, name: str, *, is_whole: bool = False) -> _inputs.Floats:
    """Return checked counts of paired labels by cluster as floats, shape `(n_clusters, 4)`."""
    array, kind = np.asarray(counts), "whole numbers" if is_whole else "numbers"
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must contain {kind}; got dtype {array.dtype}")
    if array.ndim != 2 or array.shape[1] != 4:
        raise ValueError(
            f"{name} must have shape (n_clusters, 4), columns both, first only, second only, "
            f"neither, as from cluster_counts; got {array.shape}"
        )
    cells: _inputs.Floats = array.astype(np.float64)
    usable = np.isfinite(cells) & (cells >= 0) & ((cells == np.floor(cells)) | (not is_whole))
    if not usable.all():
        row = int(np.argmin(usable.all(axis=1)))
        kind = kind if is_whole else "counts"
        raise ValueError(f"{name} must be {kind} of at least 0; row {row} is {array[row].tolist()}")
    return cells


def pair_counts(counts: npt.ArrayLike) -> _inputs.Floats:
    """Return the counts of the clusters with a pair, shape `(n_clusters, 4)`, as floats."""
    cells = count_matrix(counts, "counts", is_whole=True)
    cells = np.asarray(cells[cells.sum(axis=1) > 0])
    if len(cells) == 0:
        raise ValueError("counts contain no pair; pass at least one")
    return cells
