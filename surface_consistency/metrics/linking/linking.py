"""The linking probe of every group of a tidy frame."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics._groups import (
    bound_columns,
    check_frame,
    cluster_codes,
    counted_cells,
    group_frame,
    group_positions,
    grouping_columns,
)
from surface_consistency.metrics._inputs import (
    MISSING,
    Codes,
    Floats,
    MissingPolicy,
    check_count,
    check_equal_lengths,
    check_missing,
    refuse_missing,
    verdict_codes,
    warn_undefined,
    warn_unscored,
)
from surface_consistency.metrics.paired.paired_tables import CountRatio
from surface_consistency.metrics.uncertainty.cluster_bounds import Part, of_shares
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals

LINKING_KINDS = ("positive", "surface_negative", "semantic_negative")
"""Kinds of examples: a true pair, one character replaced, the name of a similar entity."""


def _linking_cells(
    correct: npt.ArrayLike,
    kinds: Sequence[object],
    *,
    missing: MissingPolicy,
    names: tuple[str, str] = ("correct", "kinds"),
) -> Codes:
    """Return each example's cell: 0, 1 positives right, wrong; 2, 3 negatives; -1 missing."""
    check_missing(missing)
    codes, labels = verdict_codes(correct, names[0]), list(kinds)
    check_equal_lengths(**{names[0]: codes.size, names[1]: len(labels)})
    for index, label in enumerate(labels):
        if label not in LINKING_KINDS:
            raise ValueError(
                f"{names[1]}[{index}] must be one of {', '.join(LINKING_KINDS)}; got {label!r}"
            )
    lacking = codes == MISSING
    refuse_missing(lacking, names[0], missing, rows="examples", is_verdict=True)
    negative = np.array([label != "positive" for label in labels], dtype=np.bool_)
    cells = (2 * negative + 1 - codes).astype(np.int8)
    cells[lacking] = MISSING
    return cells


_CELLS = ("positive_right", "positive_wrong", "negative_right", "negative_wrong")
_POSITIVE = CountRatio(numerator=(1, 0, 0, 0), denominator=(1, 1, 0, 0))
_NEGATIVE = CountRatio(numerator=(0, 0, 1, 0), denominator=(0, 0, 1, 1))


@of_shares(*(Part(0.5, rate.numerator, rate.denominator) for rate in (_POSITIVE, _NEGATIVE)))
def _balanced(counts: npt.ArrayLike) -> Floats:
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
        for name in _CELLS:
            object.__setattr__(self, name, check_count(getattr(self, name), name))

    def __add__(self, other: object) -> "LinkingTable":
        if not isinstance(other, LinkingTable):
            return NotImplemented
        sums = [a + b for a, b in zip(self.counts, other.counts, strict=True)]
        return LinkingTable(**dict(zip(_CELLS, sums, strict=True)))

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
            warn_undefined(
                f"{name} is undefined (NaN): no example enters its denominator in {self}",
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
    cells = _linking_cells(correct, kinds, missing=missing)
    scored = cells[cells != MISSING]
    n_missing = cells.size - scored.size
    warn_unscored(n_missing, cells.size, what="linking examples", stacklevel=2)
    counts = np.bincount(scored, minlength=4).tolist()
    return LinkingTable(**dict(zip(_CELLS, counts, strict=True)))


_COLUMNS = (
    *_CELLS,
    *("n", "n_clusters", "few_clusters", "n_missing", "n_undefined"),
    *bound_columns(LINKING_RATES),
)


def linking_by(
    frame: pd.DataFrame,
    *,
    by: str | Sequence[str] = (),
    correct: str = "is_correct",
    kind: str = "kind",
    cluster: str | None = "fact_id",
    intervals: Intervals = DEFAULT_INTERVALS,
    missing: MissingPolicy = "drop",
) -> pd.DataFrame:
    """Compute raw and balanced accuracy of each group of linking examples, with intervals.

    Args:
        frame: One row an example, with the columns named below.
        by: Columns that make the groups, such as the redirect type; none gives one row for all.
            Where a cell holds a list, the example counts once in each of its labels.
        correct: Column of verdicts: True or False, 1 or 0, None or NaN.
        kind: Column of kinds, each one of `LINKING_KINDS`.
        cluster: Column of what is resampled as a whole. A positive example and the negatives made
            from it share a name, so it should join them at least; None takes rows for independent.
        intervals: How intervals are made; each group derives its own seed.
        missing: "drop" leaves out examples that lack a verdict, with a count in `n_missing` and an
            `UnscoredWarning`; "raise" refuses them.

    Returns:
        One row a group, sorted by label, with the columns `by`; positive_right, positive_wrong,
        negative_right, negative_wrong; n, n_clusters, few_clusters (whether they are fewer than
        20), n_missing, n_undefined; and `<rate>`, `<rate>_low`, `<rate>_high` for each name in
        `LINKING_RATES`, as fractions.

    Raises:
        ColumnNotFoundError: When a named column is not in the frame.
        TypeError: When `frame` is no DataFrame.
        ValueError: When the frame is empty, a verdict is not binary or (under "raise") missing, a
            kind is unknown, a cluster id is missing, a `by` column is named twice or as a column of
            the result, or an option is out of range.

    Notes:
        A missing value in a `by` column puts the example in the group "none". Undefined rates and
        the bounds of a group with one cluster are NaN; one `UndefinedMetricWarning` names them all.

    References:
        Table 7 of arXiv 2604.21882.

    Examples:
        >>> import pandas as pd
        >>> kinds = ["positive", "surface_negative", "semantic_negative"]
        >>> frame = pd.DataFrame(
        ...     {"fact_id": np.arange(60) // 3, "kind": kinds * 20, "type": "Typical_Errors",
        ...      "is_correct": [0, 1, 1, 1, 1, 0] * 10})
        >>> rows = linking_by(frame, by="type")
        >>> rows[["type", "n", "balanced_accuracy"]].values.tolist()
        [['Typical_Errors', 60, 0.625]]
    """
    keys = grouping_columns(by, _COLUMNS)
    needed = [*keys, correct, kind, *([cluster] if cluster is not None else [])]
    check_frame(frame, needed, options="by, correct, kind or cluster", row="linking example")
    cells = _linking_cells(
        frame[correct].array, frame[kind].tolist(), missing=missing, names=(correct, kind)
    )
    clusters = cluster_codes(frame, cluster)
    n_missing = int(np.count_nonzero(cells == MISSING))
    warn_unscored(n_missing, cells.size, what="linking examples", stacklevel=2)
    return group_frame(
        group_positions(frame, keys),
        keys,
        LINKING_RATES,
        lambda where: counted_cells(cells[where], clusters[where], _CELLS),
        columns=_COLUMNS,
        intervals=intervals,
    )
