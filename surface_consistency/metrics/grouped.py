"""Paired metrics of every group of a tidy frame."""

import math
import operator
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import ColumnNotFoundError, UndefinedMetricWarning
from surface_consistency.metrics._checks import check_confidence, check_n_resamples
from surface_consistency.metrics._groups import (
    check_pair_ids,
    group_name,
    group_positions,
    group_seed,
)
from surface_consistency.metrics._verdicts import (
    MISSING,
    MissingPolicy,
    outcome_cells,
    warn_unscored,
)
from surface_consistency.metrics.bootstrap import resample_counts
from surface_consistency.metrics.interval import percentile_interval
from surface_consistency.metrics.mcnemar import mcnemar
from surface_consistency.metrics.rates import PAIRED_RATES
from surface_consistency.metrics.table import PairedTable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["paired_by"]

_CELLS = ("both", "first_only", "second_only", "neither")
_COUNTS = (*_CELLS, "n", "n_clusters", "n_missing", "n_undefined")
_MCNEMAR = ("mcnemar_statistic", "mcnemar_p_value", "mcnemar_method")


def paired_by(
    frame: "pd.DataFrame",
    *,
    by: str | Sequence[str] = (),
    first: str = "first_correct",
    second: str = "second_correct",
    cluster: str | None = "fact_id",
    pair_id: str | None = None,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
    missing: MissingPolicy = "drop",
) -> "pd.DataFrame":
    """Compute the paired metrics of each group, with cluster-bootstrap intervals.

    Args:
        frame: One row a pair, with the columns named below.
        by: Columns that make the groups; none of them gives one row for all pairs. Where a cell
            holds a list (the categories of a pair), the pair counts once in each of its labels.
        first: Column of verdicts under the first condition: True or False, 1 or 0, None or NaN.
        second: Column of verdicts under the second condition.
        cluster: Column of what is resampled as a whole, the fact or the subject; None takes each
            row for a cluster of its own.
        pair_id: Column of pair ids, to make sure that no pair stands twice in one group; None
            skips the check.
        confidence: Nominal coverage of the intervals, in (0, 1).
        n_resamples: Number of resamples of each group; all rates of a group share them.
        seed: Seed of the resampling, at least 0.
        missing: "drop" leaves out pairs that lack a verdict, with a count in `n_missing` and an
            `UnscoredWarning`; "raise" refuses them.

    Returns:
        One row a group, sorted by label, with the columns `by`; both, first_only, second_only,
        neither; n (their sum), n_clusters, n_missing, n_undefined (the most resamples that left any
        one rate undefined); `<rate>`, `<rate>_low`, `<rate>_high` for each name in `PAIRED_RATES`;
        mcnemar_statistic, mcnemar_p_value, mcnemar_method. Rates are fractions, not percent.

    Raises:
        ColumnNotFoundError: When a named column is not in the frame; the message lists those seen.
        TypeError: When `frame` is no DataFrame, or `seed` or `n_resamples` no integer.
        ValueError: When the frame is empty, a verdict is not binary or (under "raise") missing, a
            cluster id is missing, a pair id stands twice in a group, a `by` column is named twice
            or as a column of the result, or an option is out of range.

    Notes:
        An empty list or missing value in a `by` column puts the pair in the group "none", so that
        no pair is lost. Labels repeated within a pair count once; list labels of two `by` columns
        are crossed. Undefined rates and the bounds of a group with a single cluster are NaN; one
        `UndefinedMetricWarning` names them all. A group of pairs without verdicts keeps its row.
        Where no resample varies (no pair flips), the interval has no width: see `wilson_interval`.
        A group's numbers depend on its own pairs, the seed and its labels alone, not on the order
        of the rows or on other groups. McNemar's p-value takes pairs for independent.

    References:
        Nishida et al. 2026, arXiv 2604.21882, section 3.2 and figure 2.

    Examples:
        >>> import pandas as pd
        >>> categories = [["from surnames"], ["from surnames", "from plurals"], ["from plurals"]]
        >>> frame = pd.DataFrame(
        ...     {"fact_id": range(30), "category": categories * 10,
        ...      "first_correct": [1, 0, 1] * 10, "second_correct": [0, 0, 1] * 10})
        >>> rows = paired_by(frame, by="category", n_resamples=1000)
        >>> rows[["category", "both", "first_only", "neither", "n", "flip_rate"]].values.tolist()
        [['from plurals', 10, 0, 10, 20, 0.0], ['from surnames', 0, 10, 10, 20, 0.5]]
    """
    import pandas as pd

    keys = _checked_keys(by)
    check_confidence(confidence)
    n_resamples, seed = check_n_resamples(n_resamples), _checked_seed(seed)
    _check_frame(frame, [*keys, first, second, *filter(None, (cluster, pair_id))])
    cells = outcome_cells(
        frame[first].array, frame[second].array, missing=missing, names=(first, second)
    )
    clusters = _cluster_codes(frame, cluster)
    groups = group_positions(frame, keys)
    if pair_id is not None:
        check_pair_ids(frame[pair_id], pair_id, keys, groups)
    warn_unscored(int(np.count_nonzero(cells == MISSING)), cells.size, stacklevel=2)
    rows = []
    for key, positions in groups.items():
        row = dict(zip(keys, key, strict=True))
        rng = np.random.default_rng(group_seed(seed, keys, key))
        row |= _metrics(cells[positions], clusters[positions], confidence, n_resamples, rng)
        rows.append(row)
    _warn_undefined(rows, keys)
    return pd.DataFrame(rows, columns=[*keys, *_result_columns()])


def _result_columns() -> list[str]:
    """Return the columns of the result that are not grouping columns, in order."""
    rates = [column for rate in PAIRED_RATES for column in (rate, f"{rate}_low", f"{rate}_high")]
    return [*_COUNTS, *rates, *_MCNEMAR]


def _checked_keys(by: str | Sequence[str]) -> list[str]:
    """Return the grouping columns as a list, refusing names that would collide."""
    keys = [by] if isinstance(by, str) else list(by)
    if len(set(keys)) != len(keys):
        raise ValueError(f"by names a column twice: {keys}")
    clashes = sorted(set(keys) & set(_result_columns()))
    if clashes:
        raise ValueError(
            f"by column {clashes[0]!r} has the name of a column of the result; rename it"
        )
    return keys


def _checked_seed(seed: object) -> int:
    """Return the seed as an integer of at least 0."""
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise TypeError(
            f"seed must be an integer, so that groups do not share a stream; got {seed!r}"
        )
    number = operator.index(seed)
    if number < 0:
        raise ValueError(f"seed must be at least 0; got {number}")
    return number


def _check_frame(frame: object, needed: list[str]) -> None:
    """Make sure of a frame with rows and with each needed column once."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            f"frame must be a pandas DataFrame, one row a pair; got {type(frame).__name__}: "
            "build one with pandas.DataFrame(...)"
        )
    seen = list(frame.columns)
    for column in needed:
        if column not in seen:
            raise ColumnNotFoundError(
                f"column {column!r} is not in the frame, which has {seen}: "
                "name the right one through by, first, second, cluster or pair_id"
            )
        if seen.count(column) > 1:
            raise ValueError(f"column {column!r} stands {seen.count(column)} times in the frame")
    if frame.empty:
        raise ValueError("frame has no rows: there are no pairs to count")


def _cluster_codes(frame: "pd.DataFrame", cluster: str | None) -> npt.NDArray[np.int64]:
    """Number the clusters of the rows."""
    import pandas as pd

    if cluster is None:
        return np.arange(len(frame))
    codes, _ = pd.factorize(frame[cluster])
    if (codes < 0).any():
        raise ValueError(
            f"column {cluster!r} has no cluster id in row {int(np.argmax(codes < 0))}: fill it in, "
            "or pass cluster=None to take each row for a cluster of its own"
        )
    return codes.astype(np.int64)


def _metrics(
    cells: npt.NDArray[np.int8],
    clusters: npt.NDArray[np.int64],
    confidence: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> dict[str, object]:
    """Return the metrics of one group by column name."""
    scored = cells != MISSING
    counts = _sum_by_cluster(cells[scored], clusters[scored])
    totals = counts.sum(axis=0)
    table = PairedTable(**{name: int(x) for name, x in zip(_CELLS, totals, strict=True)})
    test = mcnemar(table)
    row: dict[str, object] = {
        **dict(zip(_CELLS, table.counts, strict=True)),
        "n": table.n,
        "n_clusters": len(counts),
        "n_missing": int(np.count_nonzero(~scored)),
        "n_undefined": 0,
    }
    drawn = np.empty((0, len(_CELLS)))
    if len(counts) > 1:
        drawn = resample_counts(counts, n_resamples=n_resamples, rng=rng)
    undefined = []
    for name, rate in PAIRED_RATES.items():
        values = rate(drawn)
        interval = percentile_interval(values, confidence=confidence)
        undefined.append(int(np.count_nonzero(np.isnan(values))))
        row |= {name: float(rate(totals)), f"{name}_low": interval.low}
        row |= {f"{name}_high": interval.high}
    row["n_undefined"] = max(undefined)
    return row | dict(zip(_MCNEMAR, (test.statistic, test.p_value, test.method), strict=True))


def _sum_by_cluster(
    cells: npt.NDArray[np.int8], clusters: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Count the cells of each cluster, shape `(n_clusters, 4)`."""
    distinct, codes = np.unique(clusters, return_inverse=True)
    flat = np.bincount(4 * codes + cells, minlength=4 * distinct.size)
    return flat.astype(np.int64).reshape(-1, 4)


def _warn_undefined(rows: list[dict[str, object]], keys: list[str]) -> None:
    """Say in one warning which numbers are NaN, in how many groups, and one group each."""
    where: dict[str, list[str]] = {}
    for row in rows:
        group = group_name(keys, tuple(row[key] for key in keys))
        for name in PAIRED_RATES:
            value = row[name]
            if isinstance(value, float) and math.isnan(value):
                where.setdefault(name, []).append(group)
        if row["n_clusters"] == 1:
            where.setdefault("all intervals (one cluster)", []).append(group)
    if where:
        parts = [f"{name} ({len(found)}, such as {found[0]})" for name, found in where.items()]
        warnings.warn(
            f"undefined (NaN) in some of {len(rows)} groups: {'; '.join(parts)}",
            UndefinedMetricWarning,
            stacklevel=3,
        )
