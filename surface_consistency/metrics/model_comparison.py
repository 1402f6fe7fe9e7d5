"""Models compared on the same pairs, with an interval of each difference."""

import itertools
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.errors import UnscoredWarning
from surface_consistency.metrics._groups import check_frame, cluster_codes
from surface_consistency.metrics._inputs import (
    MISSING,
    Codes,
    Floats,
    Integers,
    MissingPolicy,
    check_confidence_level,
    check_n_resamples,
    outcome_cells,
    warn_undefined,
)
from surface_consistency.metrics.bootstrap import Statistic, resample_counts
from surface_consistency.metrics.intervals import quantiles
from surface_consistency.metrics.paired_tables import PAIRED_RATES

__all__ = ["compare_models"]


class _ModelCells(NamedTuple):
    """What a comparison of models needs of a frame."""

    models: list[object]
    """The models, in the order of their first row."""

    sums: Floats
    """Counts of each cluster, shape `(n_clusters, n_models * 4)`."""

    n_pairs: int
    """Pairs that all models answered."""

    n_missing: int
    """Pairs that some model did not answer."""


def _model_cells(
    frame: pd.DataFrame,
    model: str,
    pair_id: str,
    *,
    first: str,
    second: str,
    cluster: str | None,
    missing: MissingPolicy,
) -> _ModelCells:
    """Match the rows of the models by pair and sum them within clusters."""
    model_codes, models = pd.factorize(frame[model])
    pair_codes, pairs = pd.factorize(frame[pair_id])
    for codes, column in ((model_codes, model), (pair_codes, pair_id)):
        if (codes < 0).any():
            raise ValueError(f"column {column!r} is empty in row {int(np.argmax(codes < 0))}")
    repeated = frame.duplicated([model, pair_id])
    if repeated.any():
        row = frame[repeated].iloc[0]
        raise ValueError(
            f"column {pair_id!r} holds {row[pair_id]!r} more than once for model {row[model]!r} "
            f"({int(repeated.sum())} rows repeat one): drop the duplicates"
        )
    cells = outcome_cells(
        frame[first].array, frame[second].array, missing=missing, names=(first, second)
    )
    grid = np.full((len(pairs), len(models)), MISSING, dtype=np.int8)
    grid[pair_codes, model_codes] = cells
    complete = (grid != MISSING).all(axis=1)
    if missing == "raise" and not complete.all():
        pair, position = np.argwhere(grid == MISSING)[0]
        raise ValueError(
            f"model {models[position]!r} has no row for pair {pairs[pair]!r}: score it, or pass "
            "missing='drop' to compare on the pairs that all models have"
        )
    if not complete.any():
        raise ValueError(
            f"no pair of column {pair_id!r} is answered by all of the models {list(models)}: "
            "check that their ids name the same pairs"
        )
    clusters = _clusters_of_pairs(frame, cluster, pair_id, pair_codes)[complete]
    return _ModelCells(
        models=list(models),
        sums=_sums(grid[complete], clusters),
        n_pairs=int(complete.sum()),
        n_missing=int((~complete).sum()),
    )


def _clusters_of_pairs(
    frame: pd.DataFrame, cluster: str | None, pair_id: str, pair_codes: npt.NDArray[np.intp]
) -> Integers:
    """Return the cluster of each pair, the same for all models."""
    n_pairs = int(pair_codes.max()) + 1
    if cluster is None:
        return np.arange(n_pairs)
    codes = cluster_codes(frame, cluster)
    of_pair = np.empty(n_pairs, dtype=np.int64)
    of_pair[pair_codes] = codes
    torn = of_pair[pair_codes] != codes
    if torn.any():
        row = frame.iloc[int(np.argmax(torn))]
        raise ValueError(
            f"pair {row[pair_id]!r} belongs to more than one cluster of column {cluster!r}: the "
            "models must agree on the cluster of a pair"
        )
    return of_pair


def _sums(grid: Codes, clusters: Integers) -> Floats:
    """Count the cells of each cluster and model."""
    distinct, codes = np.unique(clusters, return_inverse=True)
    n_models = grid.shape[1]
    flat = (codes[:, None] * n_models + np.arange(n_models)) * 4 + grid
    counted = np.bincount(flat.ravel(), minlength=distinct.size * n_models * 4)
    return counted.astype(np.float64).reshape(distinct.size, n_models * 4)


_COLUMNS = (
    *("rate", "model_a", "model_b", "value_a", "value_b"),
    *("difference", "difference_low", "difference_high", "p_value"),
    *("n", "n_clusters", "n_missing", "n_undefined"),
)


def compare_models(
    frame: pd.DataFrame,
    *,
    model: str = "model",
    pair_id: str = "pair_id",
    rate: str | Sequence[str] | Mapping[str, Statistic] = "consistency",
    reference: object = None,
    first: str = "first_correct",
    second: str = "second_correct",
    cluster: str | None = "fact_id",
    confidence_level: float = 0.95,
    n_resamples: int = 10_000,
    rng: np.random.Generator | int | None = 0,
    missing: MissingPolicy = "drop",
) -> pd.DataFrame:
    """Compare models on the pairs that all of them answered.

    Models that answer the same questions are right and wrong together, so the interval of their
    difference is not that of two separate rates: every resample draws one set of clusters for all
    models, and the difference is taken within it.

    Args:
        frame: One row a pair and model, with the columns named below.
        model: Column of the model.
        pair_id: Column of pair ids, by which the rows of the models are matched.
        rate: Names in `PAIRED_RATES`, or statistics of summed counts by name.
        reference: Model that all others are compared with; None compares every two models.
        first: Column of verdicts under the first condition.
        second: Column of verdicts under the second condition.
        cluster: Column of what is resampled as a whole; None takes each pair for a cluster.
        confidence_level: Nominal coverage of the intervals, in (0, 1).
        n_resamples: Number of resamples, shared by all models and rates.
        rng: Seed, random generator, or None for fresh entropy.
        missing: "drop" compares on the pairs that all models have verdicts for, with a count in
            `n_missing` and an `UnscoredWarning`; "raise" refuses others.

    Returns:
        One row for each rate and two models, with rate, model_a, model_b, value_a, value_b,
        difference (value_b - value_a), difference_low and difference_high (percentile bounds),
        p_value (two-sided, of no difference, in (0, 1]), n (pairs), n_clusters, n_missing,
        n_undefined (resamples that left the difference undefined). Models are in the order of
        their first row.

    Raises:
        ColumnNotFoundError: When a named column is not in the frame; the message lists those seen.
        TypeError: When `frame` is no DataFrame or `n_resamples` no integer.
        ValueError: When a pair stands twice for one model or belongs to two clusters, there are
            fewer than two models, the reference is none of them, no pair is answered by all, a
            rate is unknown, or a verdict is not binary or (under "raise") missing.

    Notes:
        Swapping the two models flips the sign of the difference. The p-value is twice the smaller
        share of resampled differences on either side of 0, with one added above and below the line:
        it agrees with the interval and cannot be 0. Adjust it by `with_adjusted_p_values` when
        there are many models. Undefined differences, and the bounds with a single cluster, are NaN,
        with an `UndefinedMetricWarning`.

    References:
        Efron and Tibshirani, An Introduction to the Bootstrap, 1993, section 15.4 and chapter 16;
        B. Efron, Journal of the American Statistical Association 82, 1987.

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame(
        ...     {"model": ["small"] * 40 + ["large"] * 40, "pair_id": [*range(40)] * 2,
        ...      "first_correct": [1, 0] * 40, "second_correct": [0, 0, 1, 1] * 10 + [1, 0] * 20})
        >>> rows = compare_models(frame, cluster=None)
        >>> rows[["value_a", "value_b", "difference", "n"]].values.tolist()
        [[0.5, 1.0, 0.5, 40.0]]
    """
    check_confidence_level(confidence_level)
    n_resamples = check_n_resamples(n_resamples)
    rates = _rates(rate)
    needed = [model, pair_id, first, second, *filter(None, (cluster,))]
    check_frame(
        frame, needed, options="model, pair_id, first, second or cluster", row="pair and model"
    )
    cells = _model_cells(
        frame, model, pair_id, first=first, second=second, cluster=cluster, missing=missing
    )
    couples = _couples(cells.models, reference)
    if cells.n_missing:
        warnings.warn(
            f"{cells.n_missing} of {cells.n_missing + cells.n_pairs} pairs lack a verdict of some "
            "model and were left out for all",
            UnscoredWarning,
            stacklevel=2,
        )
    rows = _compared(
        cells, couples, rates, confidence_level, n_resamples, np.random.default_rng(rng)
    )
    undefined = [row for row in rows if math.isnan(float(str(row["difference_low"])))]
    if undefined:
        warn_undefined(
            f"undefined (NaN) in {len(undefined)} of {len(rows)} comparisons, such as "
            f"{undefined[0]['rate']} of {undefined[0]['model_a']!r} and "
            f"{undefined[0]['model_b']!r}"
        )
    return pd.DataFrame(rows, columns=list(_COLUMNS))


def _rates(rate: str | Sequence[str] | Mapping[str, Statistic]) -> Mapping[str, Statistic]:
    if isinstance(rate, Mapping):
        return rate
    names = [rate] if isinstance(rate, str) else list(rate)
    for name in names:
        if name not in PAIRED_RATES:
            raise ValueError(f"rate must be among {', '.join(PAIRED_RATES)}; got {name!r}")
    return {name: PAIRED_RATES[name] for name in names}


def _couples(models: Sequence[object], reference: object) -> list[tuple[int, int]]:
    """Return the positions of the models to compare."""
    if len(models) < 2:
        raise ValueError(f"there must be two models to compare; the frame has {list(models)}")
    if reference is None:
        return list(itertools.combinations(range(len(models)), 2))
    if reference not in models:
        raise ValueError(f"reference must be one of the models {list(models)}; got {reference!r}")
    position = list(models).index(reference)
    return [(position, other) for other in range(len(models)) if other != position]


def _compared(
    cells: _ModelCells,
    couples: list[tuple[int, int]],
    rates: Mapping[str, Statistic],
    level: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> list[dict[str, object]]:
    """Return the rows of the result."""
    shape = (-1, len(cells.models), 4)
    totals = cells.sums.sum(axis=0).reshape(shape[1:])
    drawn = np.empty((0, *shape[1:]))
    if len(cells.sums) > 1:
        drawn = resample_counts(cells.sums, n_resamples=n_resamples, rng=rng).reshape(shape)
    rows = []
    for name, statistic in rates.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.asarray(statistic(totals), dtype=np.float64)
            resampled = np.asarray(statistic(drawn), dtype=np.float64)
        for a, b in couples:
            row = {"rate": name, "model_a": cells.models[a], "model_b": cells.models[b]}
            row |= {"value_a": float(values[a]), "value_b": float(values[b])}
            row |= _difference(values[b] - values[a], resampled[:, b] - resampled[:, a], level)
            row |= {"n": cells.n_pairs, "n_clusters": len(cells.sums)}
            rows.append(row | {"n_missing": cells.n_missing})
    return rows


def _difference(estimate: float, drawn: Floats, level: float) -> dict[str, object]:
    """Return a difference with its bounds and p-value."""
    defined = drawn[~np.isnan(drawn)]
    low = high = p_value = math.nan
    if defined.size and not math.isnan(estimate):
        tail = (1.0 - level) / 2.0
        low, high = quantiles(defined, (tail, 1.0 - tail))
        fewest = min(np.count_nonzero(defined <= 0.0), np.count_nonzero(defined >= 0.0))
        p_value = min(1.0, 2.0 * (fewest + 1) / (defined.size + 1))
    return {
        "difference": float(estimate),
        "difference_low": low,
        "difference_high": high,
        "p_value": p_value,
        "n_undefined": drawn.size - defined.size,
    }
