"""The linking probe of every group of a tidy frame."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.checks import check_confidence, check_n_resamples
from surface_consistency.metrics._shared.frames import (
    check_frame,
    checked_seed,
    cluster_codes,
    grouping_columns,
)
from surface_consistency.metrics._shared.group_intervals import group_values
from surface_consistency.metrics._shared.groups import group_positions, group_seed
from surface_consistency.metrics._shared.undefined import warn_undefined_groups
from surface_consistency.metrics._shared.verdicts import MISSING, MissingPolicy
from surface_consistency.metrics.linking._linking_cells import linking_cells, warn_unanswered
from surface_consistency.metrics.linking.linking import LINKING_RATES

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["linking_by"]

_CELLS = ("positive_right", "positive_wrong", "negative_right", "negative_wrong")
_COLUMNS = (
    *(*_CELLS, "n", "n_clusters", "n_missing", "n_undefined"),
    *(column for rate in LINKING_RATES for column in (rate, f"{rate}_low", f"{rate}_high")),
)


def linking_by(
    frame: "pd.DataFrame",
    *,
    by: str | Sequence[str] = (),
    correct: str = "is_correct",
    kind: str = "kind",
    cluster: str | None = "fact_id",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
    missing: MissingPolicy = "drop",
) -> "pd.DataFrame":
    """Compute raw and balanced accuracy of each group of linking examples, with intervals.

    Args:
        frame: One row an example, with the columns named below.
        by: Columns that make the groups, such as the redirect type; none gives one row for all.
            Where a cell holds a list, the example counts once in each of its labels.
        correct: Column of verdicts: True or False, 1 or 0, None or NaN.
        kind: Column of kinds, each one of `LINKING_KINDS`.
        cluster: Column of what is resampled as a whole. A positive example and the negatives made
            from it share a name, so it should join them at least; None takes rows for independent.
        confidence: Nominal coverage of the intervals, in (0, 1).
        n_resamples: Number of resamples of each group.
        seed: Seed of the resampling, at least 0.
        missing: "drop" leaves out examples that lack a verdict, with a count in `n_missing` and an
            `UnscoredWarning`; "raise" refuses them.

    Returns:
        One row a group, sorted by label, with the columns `by`; positive_right, positive_wrong,
        negative_right, negative_wrong; n, n_clusters, n_missing, n_undefined; and `<rate>`,
        `<rate>_low`, `<rate>_high` for each name in `LINKING_RATES`, as fractions.

    Raises:
        ColumnNotFoundError: When a named column is not in the frame.
        TypeError: When `frame` is no DataFrame, or `seed` or `n_resamples` no integer.
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
        >>> rows = linking_by(frame, by="type", n_resamples=500)
        >>> rows[["type", "n", "balanced_accuracy"]].values.tolist()
        [['Typical_Errors', 60, 0.625]]
    """
    import pandas as pd

    keys = grouping_columns(by, _COLUMNS)
    check_confidence(confidence)
    n_resamples, seed = check_n_resamples(n_resamples), checked_seed(seed)
    needed = [*keys, correct, kind, *([cluster] if cluster is not None else [])]
    check_frame(frame, needed, options="by, correct, kind or cluster", row="linking example")
    cells = linking_cells(
        frame[correct].array, frame[kind].tolist(), missing=missing, names=(correct, kind)
    )
    clusters = cluster_codes(frame, cluster)
    warn_unanswered(cells, stacklevel=2)
    rows = []
    for key, positions in group_positions(frame, keys).items():
        row: dict[str, object] = dict(zip(keys, key, strict=True))
        rng = np.random.default_rng(group_seed(seed, keys, key))
        rows.append(
            row | _numbers(cells[positions], clusters[positions], confidence, n_resamples, rng)
        )
    warn_undefined_groups(rows, keys, LINKING_RATES, others={}, stacklevel=2)
    return pd.DataFrame(rows, columns=[*keys, *_COLUMNS])


def _numbers(
    cells: npt.NDArray[np.int8],
    clusters: npt.NDArray[np.int64],
    confidence: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> dict[str, object]:
    """Return the counts and rates of one group by column name."""
    scored = cells != MISSING
    distinct, codes = np.unique(clusters[scored], return_inverse=True)
    flat = np.bincount(4 * codes + cells[scored], minlength=4 * distinct.size)
    counts = flat.astype(np.float64).reshape(-1, 4)
    values = group_values(
        counts,
        LINKING_RATES,
        confidence=confidence,
        n_resamples=n_resamples,
        method="percentile",
        rng=rng,
    )
    row: dict[str, object] = dict(
        zip(_CELLS, (int(count) for count in counts.sum(axis=0)), strict=True)
    )
    row |= {
        "n": int(np.count_nonzero(scored)),
        "n_clusters": len(counts),
        "n_missing": int(np.count_nonzero(~scored)),
        "n_undefined": max(found.n_undefined for found in values.values()),
    }
    for name, found in values.items():
        row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
    return row
