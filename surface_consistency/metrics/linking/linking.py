"""The linking probe, for every group of a tidy frame."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics import _groups, _inputs
from surface_consistency.metrics.paired.paired_tables import CountRatio
from surface_consistency.metrics.uncertainty.cluster_bounds import Part, of_shares
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals
from surface_consistency.reading import shown

LINKING_KINDS = ("positive", "surface_negative", "semantic_negative")
"""Kinds of examples: a true pair, one with a replaced character, one with a similar entity."""


def _linking_cells(
    score: npt.ArrayLike,
    kinds: Sequence[object],
    *,
    missing: _inputs.MissingPolicy,
    names: tuple[str, str],
) -> _inputs.Codes:
    """Return the cell of each example: 0, 1 positives correct, incorrect; 2, 3 negatives; -1."""
    _inputs.check_missing(missing)
    codes, labels = _inputs.verdict_codes(score, names[0]), list(kinds)
    _inputs.check_equal_lengths(**{names[0]: codes.size, names[1]: len(labels)})
    for index, label in enumerate(labels):
        if label not in LINKING_KINDS:
            raise ValueError(
                f"{names[1]}[{index}] must be one of {', '.join(LINKING_KINDS)}; got {shown(label)}"
            )
    lacking = codes == _inputs.MISSING
    _inputs.check_complete(lacking, names[0], missing, rows="examples", is_verdict=True)
    negative = np.array([label != "positive" for label in labels], dtype=np.bool_)
    cells = (2 * negative + 1 - codes).astype(np.int8)
    cells[lacking] = _inputs.MISSING
    return cells


_CELLS = ("positive_right", "positive_wrong", "negative_right", "negative_wrong")
_POSITIVE = CountRatio(numerator=(1, 0, 0, 0), denominator=(1, 1, 0, 0))
_NEGATIVE = CountRatio(numerator=(0, 0, 1, 0), denominator=(0, 0, 1, 1))


@of_shares(*(Part(0.5, rate.numerator, rate.denominator) for rate in (_POSITIVE, _NEGATIVE)))
def _balanced(counts: npt.ArrayLike) -> _inputs.Floats:
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
"""Every rate of the linking probe by name, as a fraction in [0, 1].

raw_accuracy is the proportion of examples answered correctly. positive_accuracy is the proportion
of true pairs answered yes, and negative_accuracy that of false pairs (of both kinds) answered no.
balanced_accuracy is the mean of these two, 0.5 by chance. yes_rate is the proportion answered yes,
which affects raw_accuracy: with w negatives per positive, raw_accuracy is (positive_accuracy + w
negative_accuracy) / (1 + w). Each rate maps counts along the last axis: positives correct and
incorrect, then negatives correct and incorrect.
"""


_COLUMNS = (
    *_CELLS,
    *("n", "n_clusters", "few_clusters", "n_missing", "n_undefined"),
    *("not_inferred", *_groups.rate_columns(LINKING_RATES)),
)


def linking_by(
    frame: pd.DataFrame,
    *,
    by: str | Sequence[str] = (),
    score: str = "correct",
    kind: str = "kind",
    cluster: str | None = "item",
    intervals: Intervals = DEFAULT_INTERVALS,
    missing: _inputs.MissingPolicy = "drop",
) -> pd.DataFrame:
    """Return raw and balanced accuracy of each group of linking examples, with intervals.

    Args:
        frame: One row per example, with the columns named below.
        by: Columns of the groups, such as the redirect type; an empty tuple gives one row for all.
            If a cell contains a list, the example counts once in each of its labels.
        score: Column of correctness labels: True or False, 1 or 0, None or NaN.
        kind: Column of kinds, each one of `LINKING_KINDS`.
        cluster: Column of the clusters. A positive example and the negatives made from it share a
            name, so they should at least be in one cluster; None assumes independent rows.
        intervals: Options of the intervals; each group derives its own seed.
        missing: "drop" excludes examples without a label, with a count in `n_missing` and an
            `UnscoredWarning`; "raise" raises an error.

    Returns:
        One row per group, sorted by label, with the columns `by`; positive_right, positive_wrong,
        negative_right, negative_wrong; n, n_clusters, few_clusters (fewer than 20), n_missing,
        n_undefined, not_inferred (why intervals are NaN), n_effective_clusters (as in `paired_by`);
        and `<rate>`, `<rate>_low`, `<rate>_high` for each name in `LINKING_RATES`, as fractions,
        with `<rate>_n` and `<rate>_n_clusters`, the numbers of examples in the denominator of a
        rate of true or of false pairs and of their clusters.

    Raises:
        ColumnNotFoundError: If a named column is not in the frame.
        TypeError: If `frame` is not a DataFrame.
        ValueError: If the frame is empty, a label is not binary or (under "raise") missing, a kind
            is unknown, a cluster id is missing, a `by` column is named twice or like a column of
            the result, or an option is out of range.

    Notes:
        An example with a missing value in a `by` column is in the group "none". Undefined rates and
        the bounds of a group with one cluster are NaN; one `UndefinedMetricWarning` lists them all.
        To count answers that are neither yes nor no as incorrect, label them False. The order of
        the examples does not matter.

    References:
        Appendix B.5 and table 7 of arXiv 2604.21882; Brodersen et al., ICPR 2010 (balanced
        accuracy).

    Examples:
        >>> import pandas as pd
        >>> kinds = ["positive", "surface_negative", "semantic_negative"]
        >>> frame = pd.DataFrame(
        ...     {"item": np.arange(60) // 3, "kind": kinds * 20, "type": "Typical_Errors",
        ...      "correct": [0, 1, 1, 1, 1, 0] * 10})
        >>> rows = linking_by(frame, by="type")
        >>> rows[["type", "n", "balanced_accuracy"]].values.tolist()
        [['Typical_Errors', 60, 0.625]]
    """
    keys = _groups.grouping_columns(by, _COLUMNS)
    needed = [*keys, score, kind, *([cluster] if cluster is not None else [])]
    _groups.check_frame(frame, needed, options="by, score, kind or cluster", row="linking example")
    cells = _linking_cells(
        frame[score].array, frame[kind].tolist(), missing=missing, names=(score, kind)
    )
    clusters = _groups.cluster_codes(frame, cluster)
    n_missing = int(np.count_nonzero(cells == _inputs.MISSING))
    _inputs.warn_unscored(n_missing, cells.size, what="linking examples", stacklevel=2)
    return _groups.group_frame(
        _groups.group_positions(frame, keys),
        keys,
        LINKING_RATES,
        lambda where: _groups.counted_cells(cells[where], clusters[where], _CELLS),
        columns=_COLUMNS,
        intervals=intervals,
    )
