"""Several models on the same items: paired differences of their means, ranks, one test of all."""

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
    worth_of_clusters,
)
from surface_consistency.metrics.uncertainty.means import MeanT, distances
from surface_consistency.reading import shown

Conclusion: TypeAlias = Literal[
    "better", "worse", "equivalent", "no significant difference", "not inferred"
]
"""What a difference shows; "no significant difference" does not mean equal."""

VERDICTS: Final = (0.0, 1.0)
"""Scale of scores that are verdicts, or shares of them."""

MOST_PAIRS: Final = 20_000
"""Maximum number of pairs of models that are compared without a baseline: those of 200 models."""

MOST_GROUPS: Final = 1_000
"""Maximum number of tasks, or of slices of a column."""

MOST_GROUP_PAIRS: Final = 300_000
"""Maximum number of pairs of models in all groups of a column."""

# Cells of an array, clusters by tasks by pairs, so that it fits the cache of a processor.
_CELLS_AT_ONCE: Final = 2**17
_CELLS: Final = ("both", "reference_only", "model_only", "neither")
_DIFFERENCE: Final = ("difference", "difference_low", "difference_high")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelComparisonResult:
    """Result of `compare_models`."""

    models: pd.DataFrame
    """One row per model, the best mean first: model, n, n_clusters, n_missing, mean, mean_low,
    mean_high, not_inferred (why the mean has no interval; empty if it has one), rank, rank_low,
    rank_high, may_be_best (whether no model is shown to be above it)."""
    differences: pd.DataFrame
    """One row a model and reference; see `compare_models`."""
    groups: pd.DataFrame
    """The differences within each task and slice: by (the column), group, and the columns of a
    difference, and unlike_overall: if it is significant by Holm, "opposite" to that of all items,
    or "significant" while that of all items is not; else empty."""
    means: pd.DataFrame
    """The mean of each model within each task and slice: by, group, model, n, n_clusters, mean,
    mean_low, mean_high, not_inferred."""
    equality: dict[str, Any] | None
    """The test that all models are alike, as `equality_test` returns it; None for two models."""
    n_items: int
    """Items that all models have a score for."""
    n_items_of_any: int
    """Items that any model has a row for."""
    scale: tuple[float, float]
    """Least and largest score that there can be; infinite where that is not known."""
    is_verdicts: bool
    """Whether every score is 0 or 1."""
    n_effective: float
    """Effective number of clusters, by Kish, of the task with the fewest: that of equal clusters
    which are worth as much."""
    cells: Floats | None = None
    """Of two models with verdicts, the paired table of each cluster of a task, the reference
    first: both, reference only, model only, neither; shape `(n_clusters, 4)`. None of others."""


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

    A difference is that of the model less that of the reference, over the items that all models
    have a score for, so that all rows are of the same items. Of several tasks it is the mean of the
    differences of each task, all tasks weighing alike; `pooled_difference` is that over all items.
    Interval and p-value are of one t over clusters, for verdicts and for scores on any scale. A
    single model has its mean with an interval, and no difference.

    Args:
        frame: One row a model and item: verdicts (True, False, 1, 0) or scores; NaN where missing.
        model: Column of the models.
        item: Column or columns that tell items of a task apart.
        score: Column of the scores.
        task: Column of the tasks; None for one.
        cluster: Column or columns of what belongs together, such as the passage of several
            questions; None takes each item for a cluster of its own. Clusters may span tasks.
        by: Columns of slices, whose cells hold a label or a list of labels.
        baseline: Label of the model that all others are held against; None compares all pairs, the
            one that comes first in the frame being the reference.
        margin: Difference that counts as none, above 0, in the unit of the scores.
        scale: Least and largest score that there can be; None for 0 and 1 where all scores lie
            there, and else for no limits.
        higher_is_better: Whether a higher score is the better one; False for losses.
        test: "auto" is the t of the interval. By name, for verdicts of one task, the forms of
            `paired_by`; the interval is then the exact test's own, and NaN for the others.
        intervals: Level of the intervals and of all conclusions; their method is "auto".

    Returns:
        The frames of `ModelComparisonResult`. `differences` has model, reference, n, n_clusters,
        few_clusters (fewer than 20), not_inferred (why there is neither interval nor test; empty
        where there is), model_mean, reference_mean, difference, p_value, p_value_holm (corrected
        for all rows), test; pooled_difference with its p-value; for verdicts both, reference_only,
        model_only, neither; with a margin p_equivalent (the larger of both one-sided tests),
        p_not_worse (of non-inferiority), p_worse (of being worse by more than the margin; without
        one, by anything), each also corrected as `<name>_holm`; conclusion. Bounds of a number x
        are `x_low` and `x_high`.

    Raises:
        ColumnNotFoundError: When a named column is not in the frame.
        TypeError: When `frame` is no DataFrame, or a score no number.
        ValueError: When a row names no model or task, a model has two scores of one item, the
            baseline is none of them, no item has a score of every model,
            a score is infinite or outside the scale, an item lies in two clusters, the margin takes
            in the whole scale, or an option is out of range.

    Notes:
        "equivalent" needs p_equivalent below half of 1 less the level after Holm's correction, so
        that of two models the interval lies within the margin; it goes before "better" and "worse",
        which need p_value_holm below 1 less the level. "no significant difference" is all else,
        which does not mean equal. The family of Holm's correction is the table; in `groups`, all
        rows of a column. Of scores that are no verdicts, what few differences cannot show is that
        of differences as large as were seen (their mean square over their mean size); means are
        measured from the nearer end of the scale, with distances for differences, and have the t of
        clusters if the scale has no ends. So no number depends on the unit.
        Ranks come from all pairs at once (`rank_intervals`), whatever the baseline.
        An item that one model has no score for is left out for all, and counted. NaN wherever
        clusters are fewer than four, one holds most items, or scores without limits differ by the
        same in all of them; an `UndefinedMetricWarning` says so where that is all.

    References:
        E. Miller, arXiv 2411.00640, 2024, section 4 (paired differences, clusters whole); D. J.
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
    """Compare models by the sums of their scores, which is what `compare_models` computes from.

    Args:
        totals: Sums over the items that all models have a score for.
        groups: Sums within tasks and slices, each with its column and label.
        n_missing: Items that each model has no score of.
        n_items_of_any: Items that any model has a row for.
        baseline: As for `compare_models`, as are all further options.
        margin: Difference that counts as none.
        scale: Least and largest score that there can be.
        higher_is_better: Whether a higher score is the better one.
        test: Form of the test.
        intervals: Level of the intervals.

    Returns:
        As `compare_models`.

    Raises:
        ValueError: For what `compare_models` refuses of scores and options.
    """
    _check_options(margin, test, intervals)
    known = _checked_scale(totals, scale)
    if margin is not None and margin >= known[1] - known[0]:
        raise ValueError(
            f"margin {margin:g} includes the whole scale, {known[0]:g} to {known[1]:g}; give it in "
            "the unit of the scores, such as 0.02 for 2 points of verdicts"
        )
    if test != "auto" and not (totals.is_verdicts and totals.n_tasks == 1):
        raise ValueError(
            f"test={shown(test)} is for verdicts of one task; take the t of test='auto'"
        )
    rules = _Rules(known, margin, higher_is_better, test, intervals, totals.is_verdicts)
    pairs = _pairs(totals.models, baseline)
    differences = _differences(totals, rules, pairs)
    if len(differences) and "" not in set(differences["not_inferred"]):
        warn_undefined(f"no difference is inferred (NaN): {differences['not_inferred'].iloc[0]}")
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
            float(worth_of_clusters(totals.sizes[totals.tasks == task]))
            for task in range(totals.n_tasks)
        ),
        cells=totals.cells(int(pairs.one[0]), int(pairs.other[0])) if has_cells else None,
    )


def _check_options(margin: float | None, test: PairedTest, intervals: Intervals) -> None:
    """Refuse options that are out of range."""
    check_test(test)
    if margin is not None and not 0.0 < margin < math.inf:
        raise ValueError(f"margin must be above 0 and finite; got {shown(margin)}")
    if intervals.method != "auto":
        raise ValueError(
            f"intervals of models are made by method='auto' alone; got {shown(intervals.method)}"
        )


class _Rules(NamedTuple):
    """How differences are inferred and what they are called."""

    scale: tuple[float, float]
    margin: float | None
    higher_is_better: bool
    test: PairedTest
    intervals: Intervals
    is_verdicts: bool


class _Pairs(NamedTuple):
    """Numbers of the models that are compared."""

    one: Integers
    other: Integers
    """The references."""


def _checked_scale(totals: ScoreTotals, scale: tuple[float, float] | None) -> tuple[float, float]:
    """Return the scale, refusing scores outside it."""
    low, high = totals.ends
    if not math.isfinite(low + high):
        raise ValueError(f"scores must be finite or missing; they lie between {low} and {high}")
    if scale is None:
        is_share = low >= VERDICTS[0] and high <= VERDICTS[1]
        return VERDICTS if is_share else (-math.inf, math.inf)
    if not scale[0] < scale[1]:
        raise ValueError(f"scale must be the least and the largest score; got {scale}")
    if low < scale[0] or high > scale[1]:
        raise ValueError(
            f"scores lie between {low:g} and {high:g}, outside the scale {scale[0]:g} to "
            f"{scale[1]:g}; name the scale that they are on"
        )
    return (float(scale[0]), float(scale[1]))


def _inferred(
    totals: ScoreTotals, values: Floats, ends: tuple[float, float], reaches: Floats, events: Floats
) -> ClusterT:
    """Infer the mean over the tasks of what models, or their differences, score.

    Values have shape `(n, n_rows)`, reaches and events `(n, n_tasks)`.
    """
    n_tasks, (places, n_places) = totals.n_tasks, totals.places()
    # No event, and so no mean square, may have an infinite reach.
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
        are_apart=totals.are_apart,
    )
    if inferred is None:  # pragma: no cover - scores within their scale make means
        raise ValueError(f"scores lie outside their scale {ends}")
    return inferred


def _between(totals: ScoreTotals, rules: _Rules, one: Integers, other: Integers) -> ClusterT:
    """Infer the difference of each two models, whose events are as large as they were seen."""
    most, pairs = rules.scale[1] - rules.scale[0], totals.pair(one, other)
    sizes, squares = totals.sizes_of_gaps.T[pairs], totals.squares_of_gaps.T[pairs]
    reaches = np.divide(squares, sizes, out=np.full(sizes.shape, most), where=sizes > 0.0)
    events = sizes / np.bincount(totals.tasks, weights=totals.sizes)
    # Few at a time, so that arrays of all their clusters remain small.
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
    """Return numbers with their bounds, by column."""
    low, high = inferred.bounds(confidence)
    return {name: inferred.value, f"{name}_low": low, f"{name}_high": high}


def _pairs(models: list[str], baseline: str | None) -> _Pairs:
    """List which models are compared, each with its reference."""
    n = len(models)
    if baseline is None and math.comb(n, 2) > MOST_PAIRS:
        raise ValueError(
            f"{n:,} models make {math.comb(n, 2):,} pairs, and at most {MOST_PAIRS:,} are compared "
            "without `baseline`: name the model that all others are compared with"
        )
    if baseline is None:
        other, one = np.triu_indices(n, 1)
        return _Pairs(one, other)
    if baseline not in models:
        raise ValueError(f"baseline={shown(baseline)} is none of the models, which are {models}")
    place = models.index(baseline)
    one = np.delete(np.arange(n), place)
    return _Pairs(one, np.full_like(one, place))


def _compared(totals: ScoreTotals, rules: _Rules, pairs: _Pairs) -> tuple[pd.DataFrame, ClusterT]:
    """Return the row of each two models on the same items, and their inference."""
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
    """Compare the models over tasks that weigh alike and over all items."""
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
    """Return the frame of differences of a single model, which has no row."""
    names = [
        *("model", "reference", "n", "n_clusters", "few_clusters", "not_inferred", "model_mean"),
        *("reference_mean", *_DIFFERENCE, "p_value", "test", *(f"pooled_{x}" for x in _DIFFERENCE)),
        *("pooled_p_value", "p_worse", "p_value_holm", "p_worse_holm", "conclusion"),
    ]
    return pd.DataFrame(columns=names, dtype=np.float64)


def _tested(totals: ScoreTotals, rules: _Rules, one: int, other: int) -> dict[str, object]:
    """Return p-value and bounds of a test by name."""
    row = run_test(totals.cells(one, other), rules.test, rules.intervals)
    return {
        "p_value": row["p_value"],
        "test": row["test"],
        "difference_low": row["accuracy_difference_low"],
        "difference_high": row["accuracy_difference_high"],
    }


def _above(inferred: ClusterT, null: float) -> Floats:
    """Return the one-sided p-values of being above a value."""
    tail = inferred.p_value(null) / 2.0
    return np.where(inferred.value > null, tail, 1.0 - tail)


def _margin_p_values(inferred: ClusterT, rules: _Rules) -> dict[str, Floats | float]:
    """Return the one-sided p-values around the margin."""
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
    """Correct the p-values of a family and say what each row shows."""
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
    """Return the mean of each model with its interval, a row a model."""
    means = _means(totals, rules)
    counts = {"model": totals.models, "n": totals.n_items, "n_clusters": totals.n_clusters}
    bounded = _bounded(means, "mean", rules.intervals.confidence)
    frame = pd.DataFrame(counts | bounded | {"not_inferred": means.inferred.reasons()})
    bounds = ["mean_low", "mean_high"]
    frame[bounds] = frame[bounds].clip(*rules.scale)
    return frame


def _group_means(groups: Sequence[tuple[str, str, ScoreTotals]], rules: _Rules) -> pd.DataFrame:
    """Return the means within each task and slice."""
    keys = ["by", "group"]
    parts = [
        _mean_rows(part, rules).assign(by=column, group=label) for column, label, part in groups
    ]
    columns = [*keys, "model", "n", "n_clusters", "mean", "mean_low", "mean_high"]
    columns.append("not_inferred")
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def _ranked(totals: ScoreTotals, rules: _Rules) -> pd.DataFrame:
    """Return the means and the ranks that the data allow, a row a model."""
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
    """Compare the models within each task and slice."""
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
    """Yield the items of each task, if there are several, and of each slice, all tasks as one."""
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
    """Refuse more groups of a column than can be compared."""
    most = min(MOST_GROUPS, MOST_GROUP_PAIRS // max(n_pairs, 1))
    if n_groups > most and n_groups > 1:
        raise ValueError(
            f"`{option}`{column} has {n_groups:,} groups; the maximum for this number of pairs of "
            f"models is {most:,}: name a column with fewer values, or compare fewer models, such "
            "as all with one by `baseline`"
        )


def rank_intervals(
    p_above: npt.ArrayLike, *, confidence: float = 0.95
) -> tuple[Integers, Integers]:
    """Bound the ranks of all models at once.

    Model j is surely above model k where the one-sided test of that is rejected after Holm's
    correction for all n(n - 1) such tests. The rank of j then lies in
    [1 + number surely above j, n - number surely below j].

    Args:
        p_above: One-sided p-values, shape `(n_models, n_models)`: in row j and column k that of the
            hypothesis that j is not above k. The diagonal is not read; NaN where there is no test.
        confidence: Probability that all intervals hold their ranks, in (0, 1).

    Returns:
        Lower and upper bounds, each of shape `(n_models,)`; rank 1 is that of the largest mean.

    Raises:
        ValueError: When `p_above` is not square, a p-value is not in [0, 1] or `confidence`
            not in (0, 1).

    Notes:
        All intervals hold together with that probability, whatever the dependence of the tests.
        Models of equal means have all ranks between them. A test that could not be made decides
        nothing, so the interval is wide; it does not count as a test.

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
        raise ValueError(f"p_above must be square, a row a model; got shape {tests.shape}")
    np.fill_diagonal(tests, np.nan)
    adjusted = adjust_p_values(tests.ravel()).reshape(tests.shape)
    is_above = adjusted < 1.0 - confidence
    return 1 + is_above.sum(axis=0), len(tests) - is_above.sum(axis=1)
