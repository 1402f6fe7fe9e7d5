"""Compare models on the same items: paired differences of means, ranks and an omnibus test."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.clusters import FEW_CLUSTERS
from surface_consistency.metrics._groups import column_names, group_positions
from surface_consistency.metrics._inputs import (
    Floats,
    Integers,
    check_confidence_level,
    warn_undefined,
)
from surface_consistency.metrics.comparison.equality import equality_test
from surface_consistency.metrics.comparison.totals import (
    ModelScores,
    ScoreTotals,
    model_scores,
    score_totals,
)
from surface_consistency.metrics.paired.mcnemar_tests import PairedTest, check_test, run_test
from surface_consistency.metrics.paired.multiplicity import adjust_p_values, with_adjusted_p_values
from surface_consistency.metrics.uncertainty.cluster_bounds import ClusterT, mean_t
from surface_consistency.metrics.uncertainty.intervals import (
    DEFAULT_INTERVALS,
    Intervals,
    effective_number,
)
from surface_consistency.metrics.uncertainty.means import MeanT, distances
from surface_consistency.reading import shown

Conclusion: TypeAlias = Literal[
    "better", "worse", "equivalent", "no significant difference", "not inferred"
]
"""Conclusion about a difference; "no significant difference" does not mean equal."""

VERDICTS: Final = (0.0, 1.0)
"""Minimum and maximum of correctness labels and of proportions of them."""

MOST_PAIRS: Final = 20_000
"""Maximum number of pairs of models without a baseline, which is that of 200 models."""

MOST_GROUPS: Final = 1_000
"""Maximum number of tasks, or of groups of a `by` column."""

MOST_GROUP_PAIRS: Final = 300_000
"""Maximum number of pairs of models over all groups of a column."""

# Maximum size of an array (clusters by tasks by pairs), so that it fits the processor cache.
_CELLS_AT_ONCE: Final = 2**17
_CELLS: Final = ("both", "reference_only", "model_only", "neither")
_DIFFERENCE: Final = ("difference", "difference_low", "difference_high")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelComparisonResult:
    """Result of `compare_models`."""

    models: pd.DataFrame
    """One row per model, best mean first: model, n, n_clusters, n_missing, mean, mean_low,
    mean_high, not_inferred (why the mean has no interval; empty if it has one), rank, rank_low,
    rank_high, may_be_best (whether no model is significantly better)."""
    differences: pd.DataFrame
    """One row per model and reference; see `compare_models`."""
    groups: pd.DataFrame
    """The differences within each task and group: by (the column), group, the columns of a
    difference, and unlike_overall. This is "opposite" if the difference is significant after Holm's
    correction and has the opposite sign of the overall one. It is "significant" if only the
    difference of the group is significant, otherwise empty."""
    means: pd.DataFrame
    """The mean of each model within each task and group: by, group, model, n, n_clusters, mean,
    mean_low, mean_high, not_inferred."""
    equality: dict[str, Any] | None
    """Test that all models have equal means, from `equality_test`; None for one or two models."""
    n_items: int
    """Number of items for which all models have a score."""
    n_items_of_any: int
    """Number of items for which any model has a row."""
    scale: tuple[float, float]
    """Minimum and maximum possible score; infinite if unknown."""
    is_verdicts: bool
    """Whether every score is a correctness label, 0 or 1."""
    n_effective: float
    """Effective number of clusters (Kish) of the task with the fewest: the number of clusters of
    equal size that would give the same precision."""
    cells: Floats | None = None
    """For two models with correctness labels, the paired table of each cluster of a task, reference
    first: both, reference only, model only, neither; shape `(n_clusters, 4)`. Otherwise None."""


def compare_models(
    frame: pd.DataFrame,
    *,
    model: str = "model",
    item: str | Sequence[str] = "item",
    score: str = "score",
    task: str | None = None,
    cluster: str | Sequence[str] | None = None,
    by: str | Sequence[str] = (),
    baseline: str | None = None,
    margin: float | None = None,
    scale: tuple[float, float] | None = None,
    higher_is_better: bool = True,
    test: PairedTest = "auto",
    intervals: Intervals = DEFAULT_INTERVALS,
) -> ModelComparisonResult:
    """Compare the mean scores of models that answered the same items.

    A difference is the mean of the model minus the mean of the reference, over the items for which
    all models have a score, so that all rows use the same items. With several tasks it is the mean
    of the differences per task, with equal weights; `pooled_difference` is the difference over all
    items. The interval and the p-value come from the same cluster-robust t statistic, for
    correctness labels and for scores on any scale. A single model has a mean with its interval
    and no row of differences.

    Args:
        frame: One row per model and item. Scores are correctness labels (True, False, 1, 0) or
            numbers; NaN if missing.
        model: Column of the models.
        item: Column or columns that identify an item within its task.
        score: Column of the scores.
        task: Column of the tasks; None for a single task.
        cluster: Column or columns of dependent items, such as the passage of several questions;
            None makes each item a separate cluster. Clusters may span tasks.
        by: Columns of groups, whose cells contain a label or a list of labels.
        baseline: Model with which all others are compared. None compares all pairs, with the model
            that comes first in the frame as the reference.
        margin: Equivalence margin, above 0, in the unit of the scores.
        scale: Minimum and maximum possible score. None means 0 and 1 if all scores are in that
            range, otherwise no limits.
        higher_is_better: Whether higher scores are better; False for losses.
        test: "auto" is the t test that matches the interval. For correctness labels of one task it
            can also be a test of `paired_by`; with an exact test the interval is the one that
            matches it, and with others NaN.
        intervals: Confidence level of intervals and conclusions; the method must be "auto".

    Returns:
        The frames of `ModelComparisonResult`. `differences` has the columns model, reference, n,
        n_clusters, few_clusters (fewer than 20), not_inferred (why there is no interval and no
        test; otherwise empty), model_mean, reference_mean, difference, p_value, p_value_holm
        (corrected for all rows), test; pooled_difference and pooled_p_value; for correctness labels
        both, reference_only, model_only, neither; with a margin p_equivalent (the larger p-value of
        the two one-sided tests), p_not_worse (non-inferiority), p_worse (worse by more than the
        margin, or by any amount without a margin), each also corrected as `<name>_holm`;
        conclusion. The bounds of a number x are `x_low` and `x_high`.

    Raises:
        ColumnNotFoundError: If a named column is not in the frame.
        TypeError: If `frame` is not a DataFrame, or a score is not a number.
        ValueError: If a model or task is missing in a row, a model has two scores for one item, the
            baseline is not one of the models, no item has a score for every model, a score is
            infinite or outside the scale, an item is in two clusters, the margin includes the whole
            scale, there are too many models, tasks or groups, or an option is out of range.

    Notes:
        "equivalent" requires p_equivalent below (1 - confidence) / 2 after Holm's correction, so
        that for two models the complete interval is within the margin. It has precedence over
        "better" and "worse", which require p_value_holm below 1 - confidence. Every other row is
        "no significant difference", which does not mean equal. Holm's correction is over all rows
        of `differences`, and in `groups` over all rows of a column. For graded scores, the variance
        term for few events assumes differences of the observed size (mean square divided by mean
        absolute value). The mean of a model is inferred as its distance from the nearer end of the
        scale, with the same term; without ends of the scale, by the plain t over clusters.
        Therefore no result depends on the unit. Rank intervals are simultaneous over all pairs
        (`rank_intervals`), also with a baseline. An item without a score of one model is excluded
        for all models and counted. Results are NaN if there are fewer than four clusters, one
        cluster has most items, or scores without limits differ by the same amount in all clusters.
        If this applies to all rows, an `UndefinedMetricWarning` reports it.

    References:
        E. Miller, arXiv 2411.00640, 2024, section 4 (paired differences, clustering); D. J.
        Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987 (two one-sided tests);
        S. Holm, Scandinavian Journal of Statistics 6, 1979.

    Examples:
        >>> right = {"a": [1, 1, 1, 0, 1, 1, 1, 1] * 9, "b": [1, 0, 1, 0, 1, 0, 1, 1] * 9}
        >>> frame = pd.DataFrame(
        ...     [(name, place, one) for name in right for place, one in enumerate(right[name])],
        ...     columns=["model", "item", "score"])
        >>> rows = compare_models(frame, baseline="a").differences
        >>> rows[["model", "reference", "difference", "conclusion"]].values.tolist()
        [['b', 'a', -0.25, 'worse']]
    """
    scores = model_scores(frame, model, column_names(item), score, task, cluster, by)
    n_of_any, n_missing = len(scores.values), np.isnan(scores.values).sum(axis=0)
    scores = scores.whole()
    n_pairs, has_cells = len(_pairs(scores.models, baseline).one), test != "auto"
    return compare_totals(
        score_totals(scores, has_cells=has_cells or len(scores.models) == 2),
        [
            (column, label, score_totals(part, has_cells=has_cells))
            for column, label, part in _parts(scores, n_pairs)
        ],
        n_missing=n_missing,
        n_items_of_any=n_of_any,
        baseline=baseline,
        margin=margin,
        scale=scale,
        higher_is_better=higher_is_better,
        test=test,
        intervals=intervals,
    )


def compare_totals(
    totals: ScoreTotals,
    groups: Sequence[tuple[str, str, ScoreTotals]],
    *,
    n_missing: Integers,
    n_items_of_any: int,
    baseline: str | None = None,
    margin: float | None = None,
    scale: tuple[float, float] | None = None,
    higher_is_better: bool = True,
    test: PairedTest = "auto",
    intervals: Intervals = DEFAULT_INTERVALS,
) -> ModelComparisonResult:
    """Compare models by sums of their scores over clusters; `compare_models` uses this function.

    Args:
        totals: Sums over the items for which all models have a score.
        groups: Column, label and sums of each task and group.
        n_missing: Number of items without a score, per model.
        n_items_of_any: Number of items for which any model has a row.
        baseline: As for `compare_models`, as are all further options.
        margin: Equivalence margin.
        scale: Minimum and maximum possible score.
        higher_is_better: Whether higher scores are better.
        test: Name of the test.
        intervals: Confidence level of the intervals.

    Returns:
        As `compare_models`.

    Raises:
        ValueError: If scores or options are invalid, as for `compare_models`.
    """
    _check_options(margin, test, intervals)
    known = _checked_scale(totals, scale)
    if margin is not None and margin >= known[1] - known[0]:
        raise ValueError(
            f"margin {margin:g} includes the whole scale, {known[0]:g} to {known[1]:g}; pass it in "
            "the unit of the scores, such as 0.02 for 2 percentage points of accuracy"
        )
    if test != "auto" and not (totals.is_verdicts and totals.n_tasks == 1):
        raise ValueError(
            f"test={shown(test)} needs correctness labels of one task; use test='auto'"
        )
    rules = _Rules(known, margin, higher_is_better, test, intervals, totals.is_verdicts)
    pairs = _pairs(totals.models, baseline)
    differences = _differences(totals, rules, pairs)
    if len(differences) and "" not in set(differences["not_inferred"]):
        warn_undefined(f"no difference is defined (NaN): {differences['not_inferred'].iloc[0]}")
    ranks = _ranked(totals, rules)
    if not pairs.one.size and ranks["mean_low"].isna().all():
        warn_undefined(f"the mean has no interval (NaN): {ranks['not_inferred'].iloc[0]}")
    ranks.insert(3, "n_missing", n_missing)
    weighed = totals.weighed()
    has_cells = len(totals.models) == 2 and totals.is_verdicts
    return ModelComparisonResult(
        models=ranks.sort_values("rank", kind="stable").reset_index(drop=True),
        differences=differences,
        groups=_groups(groups, rules, pairs, differences),
        means=_group_means(groups, rules),
        equality=equality_test(weighed.values, sizes=weighed.sizes)
        if len(totals.models) > 2
        else None,
        n_items=totals.n_items,
        n_items_of_any=n_items_of_any,
        scale=known,
        is_verdicts=totals.is_verdicts,
        n_effective=min(
            float(effective_number(totals.sizes[totals.tasks == task]))
            for task in range(totals.n_tasks)
        ),
        cells=totals.cells(int(pairs.one[0]), int(pairs.other[0])) if has_cells else None,
    )


def _check_options(margin: float | None, test: PairedTest, intervals: Intervals) -> None:
    """Raise an error if an option is out of range."""
    check_test(test)
    if margin is not None and not 0.0 < margin < math.inf:
        raise ValueError(f"margin must be above 0 and finite; got {shown(margin)}")
    if intervals.method != "auto":
        raise ValueError(
            f"intervals of models support only method='auto'; got {shown(intervals.method)}"
        )


class _Rules(NamedTuple):
    """Options for the inference of differences and their conclusions."""

    scale: tuple[float, float]
    margin: float | None
    higher_is_better: bool
    test: PairedTest
    intervals: Intervals
    is_verdicts: bool


class _Pairs(NamedTuple):
    """Indices of the models that are compared."""

    one: Integers
    other: Integers
    """The references."""


def _checked_scale(totals: ScoreTotals, scale: tuple[float, float] | None) -> tuple[float, float]:
    """Return the scale; raise an error if a score is outside it."""
    low, high = totals.ends
    if not math.isfinite(low + high):
        raise ValueError(f"scores must be finite or missing; got scores from {low} to {high}")
    if scale is None:
        is_share = low >= VERDICTS[0] and high <= VERDICTS[1]
        return VERDICTS if is_share else (-math.inf, math.inf)
    if not scale[0] < scale[1]:
        raise ValueError(f"scale must be the minimum and the maximum score; got {scale}")
    if low < scale[0] or high > scale[1]:
        raise ValueError(
            f"scores from {low:g} to {high:g} are outside the scale {scale[0]:g} to "
            f"{scale[1]:g}; pass the scale of the scores"
        )
    return (float(scale[0]), float(scale[1]))


def _inferred(
    totals: ScoreTotals, values: Floats, ends: tuple[float, float], reaches: Floats, events: Floats
) -> ClusterT:
    """Infer the mean over tasks of the scores of models, or of their differences.

    Values have shape `(n, n_rows)`, reaches and events `(n, n_tasks)`.
    """
    n_tasks, (places, n_places) = totals.n_tasks, totals.places()
    # If there are no events, their mean square must not use an infinite reach.
    squares = events * np.where(events > 0.0, reaches, 1.0)
    above, below = np.zeros((len(values), n_tasks, n_places)), np.zeros((n_tasks, n_places))
    above[:, totals.tasks, places] = values
    below[totals.tasks, places] = totals.sizes
    inferred = mean_t(
        above,
        below,
        weights=np.full(n_tasks, 1.0 / n_tasks),
        least=np.full(n_tasks, min(0.0, ends[0])),
        most=np.full(n_tasks, max(0.0, ends[1])),
        reaches=reaches,
        events=events,
        squares=squares,
        times=np.ones(n_places),
        are_disjoint=totals.are_disjoint,
    )
    if inferred is None:  # pragma: no cover - scores within their scale have a mean
        raise ValueError(f"scores are outside their scale {ends}")
    return inferred


def _between(totals: ScoreTotals, rules: _Rules, one: Integers, other: Integers) -> ClusterT:
    """Infer the difference of each two models, with events of the observed size."""
    most, pairs = rules.scale[1] - rules.scale[0], totals.pair(one, other)
    sizes, squares = totals.sizes_of_gaps.T[pairs], totals.squares_of_gaps.T[pairs]
    reaches = np.divide(squares, sizes, out=np.full(sizes.shape, most), where=sizes > 0.0)
    events = sizes / np.bincount(totals.tasks, weights=totals.sizes)
    # Pairs are computed in batches, so that the arrays over all clusters remain small.
    step = max(1, _CELLS_AT_ONCE // (totals.n_tasks * totals.places()[1]))
    models = totals.values.T
    parts = [
        _inferred(
            totals, models[one[at]] - models[other[at]], (-most, most), reaches[at], events[at]
        )
        for at in (slice(start, start + step) for start in range(0, len(pairs), step))
    ]
    return ClusterT._make(map(np.concatenate, zip(*parts, strict=True)))


def _bounded(inferred: ClusterT | MeanT, name: str, confidence: float) -> dict[str, Floats]:
    """Return numbers and their bounds by column."""
    low, high = inferred.bounds(confidence)
    return {name: inferred.value, f"{name}_low": low, f"{name}_high": high}


def _pairs(models: list[str], baseline: str | None) -> _Pairs:
    """List the models that are compared, each with its reference."""
    n = len(models)
    if baseline is None and math.comb(n, 2) > MOST_PAIRS:
        raise ValueError(
            f"{n:,} models make {math.comb(n, 2):,} pairs; the maximum without `baseline` is "
            f"{MOST_PAIRS:,}: pass the model with which all others are compared as `baseline`"
        )
    if baseline is None:
        other, one = np.triu_indices(n, 1)
        return _Pairs(one, other)
    if baseline not in models:
        raise ValueError(f"baseline={shown(baseline)} not found; the models are {models}")
    place = models.index(baseline)
    one = np.delete(np.arange(n), place)
    return _Pairs(one, np.full_like(one, place))


def _compared(totals: ScoreTotals, rules: _Rules, pairs: _Pairs) -> tuple[pd.DataFrame, ClusterT]:
    """Return one row per pair of models on the same items, and the inference."""
    means, names = totals.means(), np.array(totals.models, dtype=object)
    inferred = _between(totals, rules, *pairs)
    rows = {
        "model": names[pairs.one],
        "reference": names[pairs.other],
        "n": totals.n_items,
        "n_clusters": totals.n_clusters,
        "few_clusters": totals.n_clusters < FEW_CLUSTERS,
        "not_inferred": inferred.reasons(),
        "model_mean": means[pairs.one],
        "reference_mean": means[pairs.other],
        **_bounded(inferred, "difference", rules.intervals.confidence),
        "p_value": inferred.p_value(),
    }
    return pd.DataFrame(rows), inferred


def _differences(totals: ScoreTotals, rules: _Rules, pairs: _Pairs) -> pd.DataFrame:
    """Compare the models over equally weighted tasks and over all items."""
    if not pairs.one.size:
        return _no_differences()
    pooled = totals.of_clusters()
    rows, inferred = _compared(totals, rules, pairs)
    of_all = inferred if pooled is totals else _between(pooled, rules, *pairs)
    rows = rows.assign(
        test="t",
        **_bounded(of_all, "pooled_difference", rules.intervals.confidence),
        pooled_p_value=of_all.p_value(),
    )
    if rules.is_verdicts:
        counts = totals.counts(*pairs).astype(np.int64)
        rows = rows.assign(**dict(zip(_CELLS, counts, strict=True)))
    if rules.test != "auto":
        tested = [_tested(totals, rules, *pair) for pair in zip(*pairs, strict=True)]
        rows = rows.assign(**pd.DataFrame(tested))
    return _concluded(rows.assign(**_margin_p_values(inferred, rules)), rules)


def _no_differences() -> pd.DataFrame:
    """Return the empty frame of differences of a single model."""
    names = [
        *("model", "reference", "n", "n_clusters", "few_clusters", "not_inferred", "model_mean"),
        *("reference_mean", *_DIFFERENCE, "p_value", "test", *(f"pooled_{x}" for x in _DIFFERENCE)),
        *("pooled_p_value", "p_worse", "p_value_holm", "p_worse_holm", "conclusion"),
    ]
    return pd.DataFrame(columns=names, dtype=np.float64)


def _tested(totals: ScoreTotals, rules: _Rules, one: int, other: int) -> dict[str, object]:
    """Return p-value and bounds of a named test."""
    row = run_test(totals.cells(one, other), rules.test, rules.intervals)
    return {
        "p_value": row["p_value"],
        "test": row["test"],
        "difference_low": row["accuracy_difference_low"],
        "difference_high": row["accuracy_difference_high"],
    }


def _above(inferred: ClusterT, null: float) -> Floats:
    """Return one-sided p-values for the alternative that the value is above `null`."""
    tail = inferred.p_value(null) / 2.0
    return np.where(inferred.value > null, tail, 1.0 - tail)


def _margin_p_values(inferred: ClusterT, rules: _Rules) -> dict[str, Floats | float]:
    """Return the one-sided p-values for the margin."""
    margin, sign = rules.margin or 0.0, 1.0 if rules.higher_is_better else -1.0
    over, under = _above(inferred, margin), _above(inferred, -margin)
    p_worse = 1.0 - under if sign > 0 else over
    if rules.margin is None:
        return {"p_worse": p_worse}
    p_not_worse = under if sign > 0 else 1.0 - over
    return {
        "margin": margin,
        "p_equivalent": np.maximum(under, 1.0 - over),
        "p_not_worse": p_not_worse,
        "p_worse": p_worse,
    }


def _concluded(rows: pd.DataFrame, rules: _Rules) -> pd.DataFrame:
    """Correct the p-values of a family and add the conclusion of each row."""
    for column in ("p_value", "p_worse", "p_equivalent", "p_not_worse"):
        if column in rows:
            rows = with_adjusted_p_values(rows, column=column)
    difference, low, high = (rows[name] for name in _DIFFERENCE)
    alpha, is_better = (
        1.0 - rules.intervals.confidence,
        (difference > 0.0) == rules.higher_is_better,
    )
    conclusions: dict[Conclusion, Any] = {
        "not inferred": (rows["not_inferred"] != "") | rows["p_value"].isna(),
        "equivalent": rules.margin is not None and rows["p_equivalent_holm"] < alpha / 2.0,
        "no significant difference": (rows["p_value_holm"] >= alpha)
        | ((low <= 0.0) & (high >= 0.0)),
        "better": is_better,
    }
    applies = [np.broadcast_to(one, len(rows)) for one in conclusions.values()]
    found = np.select(applies, [*conclusions], "worse")
    return rows.assign(conclusion=found.astype(object))


def _means(totals: ScoreTotals, rules: _Rules) -> MeanT:
    """Infer the mean of each model."""
    n = np.bincount(totals.tasks, weights=totals.sizes).astype(np.float64)
    of_tasks = (n, totals.of_tasks().T, totals.squares.T)
    seen = distances(totals.values.T, totals.sizes, of_tasks, rules.scale)
    unknown = np.full(seen.reaches.shape, math.nan)
    return seen.mean(_inferred(totals, seen.sums, seen.ends, seen.reaches, unknown))


def _mean_rows(totals: ScoreTotals, rules: _Rules) -> pd.DataFrame:
    """Return the mean of each model with its interval, one row per model."""
    means = _means(totals, rules)
    counts = {"model": totals.models, "n": totals.n_items, "n_clusters": totals.n_clusters}
    bounded = _bounded(means, "mean", rules.intervals.confidence)
    frame = pd.DataFrame(counts | bounded | {"not_inferred": means.inferred.reasons()})
    bounds = ["mean_low", "mean_high"]
    frame[bounds] = frame[bounds].clip(*rules.scale)
    return frame


def _group_means(groups: Sequence[tuple[str, str, ScoreTotals]], rules: _Rules) -> pd.DataFrame:
    """Return the means within each task and group."""
    keys = ["by", "group"]
    parts = [
        _mean_rows(part, rules).assign(by=column, group=label) for column, label, part in groups
    ]
    columns = [*keys, "model", "n", "n_clusters", "mean", "mean_low", "mean_high"]
    columns.append("not_inferred")
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def _ranked(totals: ScoreTotals, rules: _Rules) -> pd.DataFrame:
    """Return the means and the rank intervals, one row per model."""
    n_models = len(totals.models)
    p_above = np.full((n_models, n_models), np.nan)
    pairs = np.triu_indices(n_models, 1)
    if n_models > 1:
        p_values = _above(_between(totals, rules, *pairs), 0.0)
        p_above[pairs] = p_values if rules.higher_is_better else 1.0 - p_values
        p_above.T[pairs] = 1.0 - p_above[pairs]
    low, high = rank_intervals(p_above, confidence=rules.intervals.confidence)
    frame = _mean_rows(totals, rules)
    return frame.assign(
        rank=frame["mean"].rank(method="min", ascending=not rules.higher_is_better).astype(int),
        rank_low=low,
        rank_high=high,
        may_be_best=low == 1,
    )


_GROUP_COLUMNS: Final = (
    *("by", "group", "model", "reference", "n", "n_clusters", "few_clusters", "not_inferred"),
    *(*_DIFFERENCE, "p_value", "p_value_holm", "unlike_overall"),
)


def _groups(
    groups: Sequence[tuple[str, str, ScoreTotals]],
    rules: _Rules,
    pairs: _Pairs,
    whole: pd.DataFrame,
) -> pd.DataFrame:
    """Compare the models within each task and group."""
    if not groups or not pairs.one.size:
        return pd.DataFrame(columns=list(_GROUP_COLUMNS))
    rows = [
        _compared(part, rules, pairs)[0].assign(by=column, group=label)
        for column, label, part in groups
    ]
    joined = pd.concat(rows, ignore_index=True)
    frame = with_adjusted_p_values(joined, column="p_value", within=("by",))
    of_rows = pd.MultiIndex.from_frame(frame[["model", "reference"]])
    overall = whole.set_index(["model", "reference"]).loc[of_rows]
    alpha = 1.0 - rules.intervals.confidence
    is_shown, is_shown_overall = (
        (rows["p_value_holm"] < alpha).to_numpy() for rows in (frame, overall)
    )
    is_opposite = frame["difference"].to_numpy() * overall["difference"].to_numpy() < 0.0
    frame["unlike_overall"] = np.select(
        [is_shown & is_opposite, is_shown & ~is_shown_overall], ["opposite", "significant"], ""
    )
    return frame[list(_GROUP_COLUMNS)]


def _parts(scores: ModelScores, n_pairs: int) -> Iterator[tuple[str, str, ModelScores]]:
    """Yield the items of each task, if there are several, and of each group over all tasks."""
    labels = scores.labels.reset_index(drop=True)
    for column in labels:
        _check_groups("by", f" {column}", labels[column].astype(str).nunique(), n_pairs)
    _check_groups("task", "", len(scores.task_names), n_pairs)
    groups = [
        (str(column), str(key[0]), rows)
        for column in labels
        for key, rows in group_positions(labels, [str(column)]).items()
    ]
    if len(scores.task_names) > 1:
        tasks = [np.flatnonzero(scores.tasks == place) for place in range(len(scores.task_names))]
        groups = [*zip(itertools.repeat("task"), scores.task_names, tasks), *groups]
    for column, label, rows in groups:
        part = scores.at(rows)
        yield column, label, part._replace(tasks=np.zeros_like(part.tasks), task_names=["all"])


def _check_groups(option: str, column: str, n_groups: int, n_pairs: int) -> None:
    """Raise an error if a column has too many groups."""
    most = min(MOST_GROUPS, MOST_GROUP_PAIRS // max(n_pairs, 1))
    if n_groups > most and n_groups > 1:
        raise ValueError(
            f"`{option}`{column} has {n_groups:,} groups; the maximum for this number of pairs of "
            f"models is {most:,}: pass a column with fewer values, or compare fewer models, such "
            "as all with one `baseline`"
        )


def rank_intervals(
    p_above: npt.ArrayLike, *, confidence: float = 0.95
) -> tuple[Integers, Integers]:
    """Return simultaneous confidence intervals for the ranks of all models.

    Model j is significantly above model k if the one-sided test of this is rejected after Holm's
    correction for all n(n - 1) tests. The rank of j is then in
    [1 + number significantly above j, n - number significantly below j].

    Args:
        p_above: One-sided p-values, shape `(n_models, n_models)`. Row j, column k tests the
            hypothesis that j is not above k. The diagonal is ignored; NaN if there is no test.
        confidence: Probability that all intervals contain their ranks, in (0, 1).

    Returns:
        Lower and upper bounds, each of shape `(n_models,)`; rank 1 is the largest mean.

    Raises:
        ValueError: If `p_above` is not square, a p-value is not in [0, 1] or `confidence` is not
            in (0, 1).

    Notes:
        All intervals are valid simultaneously, whatever the dependence of the tests. If models have
        equal means, each of them has all ranks that they span. A missing test (NaN) does not
        exclude any rank, so the interval is wide. It is not counted in the correction.

    References:
        M. Mogstad, J. P. Romano, A. M. Shaikh and D. Wilhelm, Review of Economic Studies 91, 2024,
        section 3 (ranks from simultaneous pairwise decisions); S. Holm, Scandinavian Journal of
        Statistics 6, 1979.

    Examples:
        >>> p_above = [[1, 0.001, 0.3], [0.999, 1, 0.99], [0.7, 0.01, 1]]
        >>> low, high = rank_intervals(p_above)
        >>> low.tolist(), high.tolist()
        ([1, 3, 1], [2, 3, 2])
    """
    check_confidence_level(confidence)
    tests = np.array(p_above, dtype=np.float64)
    if tests.ndim != 2 or tests.shape[0] != tests.shape[1]:
        raise ValueError(f"p_above must be square, one row per model; got shape {tests.shape}")
    np.fill_diagonal(tests, np.nan)
    adjusted = adjust_p_values(tests.ravel()).reshape(tests.shape)
    is_above = adjusted < 1.0 - confidence
    return 1 + is_above.sum(axis=0), len(tests) - is_above.sum(axis=1)
