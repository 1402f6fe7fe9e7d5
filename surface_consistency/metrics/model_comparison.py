"""Models compared on the same pairs, with an interval of each difference."""

import itertools
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.errors import UnscoredWarning
from surface_consistency.metrics._groups import (
    check_frame,
    cluster_codes,
    group_seed,
    root_seed,
)
from surface_consistency.metrics._inputs import (
    MISSING,
    Codes,
    Flags,
    Floats,
    Integers,
    MissingPolicy,
    check_confidence_level,
    check_n_resamples,
    outcome_cells,
    warn_undefined,
)
from surface_consistency.metrics.bootstrap import (
    IntervalMethod,
    Statistic,
    check_interval_method,
    group_values,
    resample_counts,
)
from surface_consistency.metrics.intervals import (
    FEW_CLUSTERS,
    Part,
    jackknife_p_value,
    of_shares,
    share_sums,
)
from surface_consistency.metrics.paired_tables import PAIRED_RATES

__all__ = ["compare_models", "model_difference"]

_Pairs: TypeAlias = Literal["common", "pairwise"]


class _ModelCells(NamedTuple):
    """What a comparison of models needs of a frame."""

    models: list[object]
    """The models, in the order of their first row."""

    grid: Codes
    """Cell of each pair and model, shape `(n_pairs, n_models)`; -1 where it is missing."""

    clusters: Integers
    """Cluster of each pair."""


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
    """Match the rows of the models by pair."""
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
    if missing == "raise" and (grid == MISSING).any():
        pair, position = np.argwhere(grid == MISSING)[0]
        raise ValueError(
            f"model {models[position]!r} has no row for pair {pairs[pair]!r}: score it, or pass "
            "missing='drop' to compare on the pairs that all models have"
        )
    return _ModelCells(list(models), grid, _clusters_of_pairs(frame, cluster, pair_id, pair_codes))


def _scored(cells: _ModelCells, couple: tuple[int, int], pairs: _Pairs, column: str) -> Flags:
    """Tell which pairs the comparison of two models rests on."""
    asked = cells.grid if pairs == "common" else cells.grid[:, list(couple)]
    complete = (asked != MISSING).all(axis=1)
    if not complete.any():
        names = cells.models if pairs == "common" else [cells.models[k] for k in couple]
        remedy = "" if pairs == "pairwise" else "; pairs='pairwise' needs two at a time to meet"
        raise ValueError(
            f"no pair of column {column!r} is answered by all of the models {names}: check that "
            f"their ids name the same pairs{remedy}"
        )
    return np.asarray(complete)


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


def _joint_sums(grid: Codes, clusters: Integers) -> Floats:
    """Count in each cluster the pairs by the cells of two models, shape `(n_clusters, 16)`."""
    distinct, codes = np.unique(clusters, return_inverse=True)
    flat = codes * 16 + 4 * grid[:, 0].astype(np.int64) + grid[:, 1]
    counted = np.bincount(flat, minlength=distinct.size * 16)
    return counted.astype(np.float64).reshape(distinct.size, 16)


_COLUMNS = (
    *("rate", "model_a", "model_b", "value_a", "value_b"),
    *("difference", "difference_low", "difference_high", "p_value"),
    *("n", "n_clusters", "few_clusters", "n_missing", "n_undefined"),
)


def compare_models(
    frame: pd.DataFrame,
    *,
    model: str = "model",
    pair_id: str = "pair_id",
    rate: str | Sequence[str] | Mapping[str, Statistic] = "consistency",
    reference: object = None,
    pairs: _Pairs = "common",
    first: str = "first_correct",
    second: str = "second_correct",
    cluster: str | None = "fact_id",
    interval: IntervalMethod = "auto",
    confidence_level: float = 0.95,
    n_resamples: int = 10_000,
    rng: np.random.Generator | int | None = 0,
    missing: MissingPolicy = "drop",
) -> pd.DataFrame:
    """Compare models on the pairs that all, or each two, of them answered.

    Models that answer the same questions are right and wrong together, so the interval of their
    difference is not that of two separate rates: it takes into account how far the two go together
    from cluster to cluster.

    Args:
        frame: One row a pair and model, with the columns named below.
        model: Column of the model.
        pair_id: Column of pair ids, by which the rows of the models are matched.
        rate: Names in `PAIRED_RATES`, or statistics of summed counts by name.
        reference: Model that all others are compared with; None compares every two models.
        pairs: "common" compares on the pairs that all models answered, so that rows go together;
            "pairwise" each two models on the pairs that these two did, so that a model which
            answered few leaves the others as they are.
        first: Column of verdicts under the first condition.
        second: Column of verdicts under the second condition.
        cluster: Column of what belongs together; None takes each pair for a cluster.
        interval: How intervals are made: "auto", "percentile" or "bca", as in `cluster_bootstrap`.
        confidence_level: Nominal coverage of the intervals, in (0, 1).
        n_resamples: Number of resamples, shared by the rates of two models; "auto" takes none.
        rng: Seed of the resampling, at least 0; generator to draw it from; or None for a fresh one.
        missing: "drop" leaves out pairs that lack a verdict, with a count in `n_missing` and an
            `UnscoredWarning`; "raise" refuses them.

    Returns:
        One row for each rate and two models, with rate, model_a, model_b, value_a, value_b,
        difference (value_b - value_a), difference_low and difference_high, p_value (two-sided, of
        no difference, in [0, 1]), n (pairs), n_clusters, few_clusters (whether they are fewer than
        20), n_missing, n_undefined (resamples that left the difference undefined). Models are in
        the order of their first row.

    Raises:
        ColumnNotFoundError: When a named column is not in the frame; the message lists those seen.
        TypeError: When `frame` is no DataFrame or `n_resamples` no integer.
        ValueError: When a pair stands twice for one model or belongs to two clusters, there are
            fewer than two models, the reference is none of them, no pair is answered by all, a
            rate is unknown, or a verdict is not binary or (under "raise") missing.

    Notes:
        Swapping the two models flips the sign of the difference, and neither other models nor
        their order change a row, but for the pairs that "common" leaves. The p-value is 1 less the
        level at which the interval first reaches 0; under "percentile" and "bca" it is twice the
        smaller share of resampled differences on either side of 0, with one added above and below
        the line, and cannot be 0. Differences of shares have MOVER intervals, others (of kappa, or
        of a function of one's own) jackknife t intervals, undefined where no cluster differs.
        Adjust p by `with_adjusted_p_values` when there are many models. Undefined differences, and
        the bounds with a single cluster, are NaN, with an `UndefinedMetricWarning`.

    References:
        G. Y. Zou and A. Donner, Statistics in Medicine 27, 2008 (MOVER); Efron and Tibshirani, An
        Introduction to the Bootstrap, 1993, section 15.4 and chapter 16.

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
    if pairs not in ("common", "pairwise"):
        raise ValueError(f"pairs must be 'common' or 'pairwise'; got {pairs!r}")
    check_interval_method(interval)
    cells = _model_cells(
        frame, model, pair_id, first=first, second=second, cluster=cluster, missing=missing
    )
    couples = _couples(cells.models, reference)
    scored = {couple: _scored(cells, couple, pairs, pair_id) for couple in couples}
    n_missing = max(int(np.count_nonzero(~kept)) for kept in scored.values())
    if n_missing:
        warnings.warn(
            f"{n_missing} of {len(cells.grid)} pairs lack a verdict of some model and were left "
            f"out{' for all' if pairs == 'common' else ' of some comparisons'}",
            UnscoredWarning,
            stacklevel=2,
        )
    options = _Options(interval, confidence_level, n_resamples, root_seed(rng))
    found = {
        couple: _compared(cells, couple, kept, rates, options) for couple, kept in scored.items()
    }
    rows = [found[couple][name] for name in rates for couple in couples]
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


class _Options(NamedTuple):
    """How differences are bounded."""

    interval: IntervalMethod
    level: float
    n_resamples: int
    seed: int


def _compared(
    cells: _ModelCells,
    couple: tuple[int, int],
    kept: Flags,
    rates: Mapping[str, Statistic],
    options: _Options,
) -> dict[str, dict[str, object]]:
    """Return the row of each rate for two models."""
    # The draws must not depend on the place of a model among others.
    order = sorted(couple, key=lambda place: repr(cells.models[place]))
    sums = _joint_sums(cells.grid[kept][:, order], cells.clusters[kept])
    sign = 1.0 if order[0] == couple[0] else -1.0
    labels: tuple[object, ...] = tuple(repr(cells.models[place]) for place in order)
    seed = group_seed(options.seed, ["model", "model"], labels)
    differences = {name: model_difference(rate) for name, rate in rates.items()}
    found = group_values(
        sums,
        differences,
        confidence_level=options.level,
        n_resamples=options.n_resamples,
        method=options.interval,
        rng=np.random.default_rng(seed),
    )
    drawn: Floats | None = None
    if options.interval != "auto" and len(sums) > 1:
        drawn = resample_counts(
            sums, n_resamples=options.n_resamples, rng=np.random.default_rng(seed)
        )
    rows: dict[str, dict[str, object]] = {}
    totals = sums.sum(axis=0)
    for name, rate in rates.items():
        value = found[name]
        with np.errstate(divide="ignore", invalid="ignore"):
            of_model = [float(np.asarray(rate(part))) for part in _margins(totals)]
        ends = (value.low, value.high) if sign > 0.0 else (-value.high, -value.low)
        if math.isnan(value.value):
            ends = (math.nan, math.nan)
        rows[name] = {
            "rate": name,
            "model_a": cells.models[couple[0]],
            "model_b": cells.models[couple[1]],
            "value_a": of_model[order.index(couple[0])],
            "value_b": of_model[order.index(couple[1])],
            "difference": sign * value.value + 0.0,
            "difference_low": ends[0] + 0.0,
            "difference_high": ends[1] + 0.0,
            "p_value": _p_value(differences[name], sums, drawn, value.value),
            "n": int(np.count_nonzero(kept)),
            "n_clusters": len(sums),
            "few_clusters": len(sums) < FEW_CLUSTERS,
            "n_missing": int(np.count_nonzero(~kept)),
            "n_undefined": value.n_undefined,
        }
    return rows


def model_difference(rate: Statistic) -> Statistic:
    """Return the rate of the second model less that of the first, of `_joint_sums`."""

    def difference(sums: Floats) -> Floats:
        """Subtract the two rates."""
        first, second = _margins(sums)
        return np.asarray(np.asarray(rate(second)) - np.asarray(rate(first)), dtype=np.float64)

    parts: tuple[Part, ...] = getattr(rate, "parts", ())
    if not parts or getattr(rate, "link", None) is not None:
        return difference
    if all(set(part.below) == {1} for part in parts):
        # Of the same pairs: what counts is by how much each pair's share in the rate changes.
        weights = np.sum([part.weight * np.asarray(part.above) for part in parts], axis=0)
        change = np.subtract.outer(weights, weights).T.ravel()
        size = float(np.abs(change).max()) or 1.0
        joint = [
            Part(sign * size, tuple((np.maximum(sign * change, 0.0) / size).tolist()), (1.0,) * 16)
            for sign in (1.0, -1.0)
        ]
        return of_shares(*joint)(difference)
    joint = []
    for part in parts:
        above, below = np.asarray(part.above), np.asarray(part.below)
        # Cell 4 i + j of a pair is i for the first model and j for the second.
        second = (tuple(np.tile(side, 4).tolist()) for side in (above, below))
        first = (tuple(np.repeat(side, 4).tolist()) for side in (above, below))
        joint += [Part(part.weight, *second), Part(-part.weight, *first)]
    return of_shares(*joint)(difference)


def _margins(sums: Floats) -> tuple[Floats, Floats]:
    """Return the counts of the first and of the second model, shape `(..., 4)` each."""
    square = np.reshape(sums, (*np.shape(sums)[:-1], 4, 4))
    return square.sum(axis=-1), square.sum(axis=-2)


def _p_value(statistic: Statistic, sums: Floats, drawn: Floats | None, estimate: float) -> float:
    """Return the two-sided p-value of no difference, of the intervals or of the resamples."""
    if math.isnan(estimate) or len(sums) < 2:
        return math.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        if drawn is not None:
            values = np.asarray(statistic(drawn), dtype=np.float64)
            defined = values[~np.isnan(values)]
            fewest = min(np.count_nonzero(defined <= 0.0), np.count_nonzero(defined >= 0.0))
            return min(1.0, 2.0 * (fewest + 1) / (defined.size + 1)) if defined.size else math.nan
        found = share_sums(getattr(statistic, "parts", ()), sums) if _has_parts(statistic) else None
        if found is not None:
            return found.p_value()
        left_out = np.asarray(statistic(sums.sum(axis=0) - sums), dtype=np.float64)
    return jackknife_p_value(estimate, left_out)


def _has_parts(statistic: Statistic) -> bool:
    """Tell whether a statistic is a sum of shares."""
    return bool(getattr(statistic, "parts", ()))
