"""Arrange the scores of several models by item, and sum them within clusters."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics._groups import check_frame, column_names
from surface_consistency.metrics._inputs import Floats, Integers, numeric_vector
from surface_consistency.reading import first_names, shown

MOST_MODELS: Final = 500
"""Maximum number of models; their ranks need all pairs."""

MOST_CELLS: Final = 2**22
"""Maximum product of the number of tasks and the number of clusters of the largest task."""

_DENSE: Final = 8


class ModelScores(NamedTuple):
    """The scores of all models, one row per item and one column per model."""

    values: Floats
    """Shape `(n_items, n_models)`, NaN where missing."""
    tasks: Integers
    clusters: Integers
    models: list[str]
    task_names: list[str]
    labels: pd.DataFrame
    """The columns of groups, one row per item."""

    def at(self, rows: npt.NDArray[Any]) -> "ModelScores":
        """Return a selection of items."""
        return self._replace(
            values=self.values[rows],
            tasks=self.tasks[rows],
            clusters=self.clusters[rows],
            labels=self.labels[rows] if rows.dtype == bool else self.labels.iloc[rows],
        )

    def whole(self) -> "ModelScores":
        """Return only the items for which all models have a score, and only their tasks."""
        is_whole = np.asarray(~np.isnan(self.values).any(axis=1))
        if is_whole.all():
            return self
        if not is_whole.any():
            n_scores = (~np.isnan(self.values)).sum(axis=0)
            counts = zip(self.models, n_scores, strict=True)
            listed = first_names([f"{name[:40]} {n:,}" for name, n in counts])
            empty = [name for name, n in zip(self.models, n_scores, strict=True) if not n]
            remedy = "drop a model, or pass the columns that identify an item"
            if empty:
                more = f" and {len(empty) - 1:,} more" if empty[1:] else ""
                remedy = f"drop {empty[0][:40]}{more}"
            raise ValueError(
                "no item has a score for every model, so models cannot be compared (items with a "
                f"score: {listed}); {remedy}"
            )
        part = self.at(is_whole)
        shared, tasks = np.unique(part.tasks, return_inverse=True)
        return part._replace(tasks=tasks, task_names=[self.task_names[task] for task in shared])


def _codes(frame: pd.DataFrame, columns: Sequence[str]) -> Integers:
    """Return one integer code per distinct combination of values in the columns."""
    codes = np.zeros(len(frame), dtype=np.int64)
    for column in columns:
        added, labels = pd.factorize(frame[column], use_na_sentinel=False)
        if len(columns) == 1:
            return added.astype(np.int64)
        codes = np.unique(codes * max(len(labels), 1) + added, return_inverse=True)[1]
    return codes


def model_scores(
    frame: pd.DataFrame,
    model: str,
    items: list[str],
    score: str,
    task: str | None,
    cluster: str | Sequence[str] | None,
    by: str | Sequence[str],
) -> ModelScores:
    """Arrange rows per model and item as one row per item and one column per model."""
    clusters, slices = column_names(cluster or ()), column_names(by)
    tasks = column_names(task or ())
    needed = [model, *items, score, *tasks, *clusters, *slices]
    check_frame(frame, needed, options="model, item, score, task, cluster or by", row="score")
    for column in (model, *tasks):
        if frame[column].isna().any():
            place = int(np.argmax(frame[column].isna()))
            raise ValueError(f"column {shown(column)} is empty in row {place}: fill it in")
    of_model, names = pd.factorize(frame[model])
    of_label, labels = pd.factorize(pd.Index(names).astype(str))
    columns, models = of_label[of_model], [str(label) for label in labels]
    rows = _codes(frame, [*tasks, *items])
    first = np.empty(int(rows.max()) + 1, dtype=np.int64)
    first[rows[::-1]] = np.arange(len(rows))[::-1]
    cells = rows * len(models) + columns
    _check_unique(frame, cells, [model, *tasks, *items])
    values = np.full(len(first) * len(models), np.nan)
    values[cells] = numeric_vector(frame[score].array, score)
    of_rows = _codes(frame, clusters) if clusters else rows
    for column in clusters:
        if frame[column].isna().any():
            place = int(np.argmax(frame[column].isna()))
            raise ValueError(
                f"column {shown(column)} has no cluster id in row {place}: fill it in, or pass "
                "cluster=None to make each item a separate cluster"
            )
    moved = of_rows != of_rows[first][rows]
    if moved.any():
        place = int(np.argmax(moved))
        raise ValueError(
            f"item {_named(frame, place, [*tasks, *items])} is in one cluster for "
            f"{shown(frame[model].iloc[int(first[rows[place]])])} and in another for "
            f"{shown(frame[model].iloc[place])}: columns "
            f"{first_names(clusters)} must agree between models"
        )
    task_codes, task_names = np.zeros(len(first), dtype=np.int64), ["all"]
    if task is not None:
        task_codes, names = pd.factorize(frame[task].iloc[first].astype(str))
        task_names = [str(name) for name in names]
    return ModelScores(
        values=values.reshape(len(first), len(models)),
        tasks=task_codes,
        clusters=of_rows[first],
        models=models,
        task_names=task_names,
        labels=frame[slices].iloc[first],
    )


def _named(frame: pd.DataFrame, place: int, columns: Sequence[str]) -> str:
    """Describe a row by its cells."""
    return ", ".join(f"{column}={shown(frame[column].iloc[place])}" for column in columns)


def _check_unique(frame: pd.DataFrame, cells: Integers, columns: Sequence[str]) -> None:
    """Raise an error if a model has two scores for one item."""
    if np.bincount(cells).max(initial=0) < 2:
        return
    order = np.argsort(cells, kind="stable")
    again = np.flatnonzero(np.diff(cells[order]) == 0)
    if again.size:
        place = int(order[again[0] + 1])
        raise ValueError(
            f"{again.size:,} rows repeat a model and item, such as "
            f"{_named(frame, place, columns)}: average repeats, or pass columns that identify items"
        )


class ScoreTotals(NamedTuple):
    """Sums over clusters from which models are compared, one row per cluster of a task.

    Pairs of models are in the order of `itertools.combinations` of their indices.
    """

    values: Floats
    """Sums of the scores, shape `(n_rows, n_models)`."""
    sizes: Floats
    """Number of items of each row."""
    tasks: Integers
    clusters: Integers
    n_tasks: int
    n_clusters: int
    models: list[str]
    task_names: list[str]
    squares: Floats
    """Sum of the squared scores in each task, shape `(n_tasks, n_models)`."""
    sizes_of_gaps: Floats
    """Sum of the absolute differences of each pair in each task, shape `(n_tasks, n_pairs)`."""
    squares_of_gaps: Floats
    """Sum of their squares, of the same shape."""
    ends: tuple[float, float]
    """Lowest and highest observed score."""
    is_verdicts: bool
    """Whether every score is 0 or 1."""
    n_both: Floats
    """Number of items that are correct for both models of a pair: per row, shape `(n_rows,
    n_pairs)`, if requested, otherwise over all rows, shape `(1, n_pairs)`. It is defined only for
    correctness labels."""

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.sizes.sum())

    def pair(self, one: npt.ArrayLike, other: npt.ArrayLike) -> Integers:
        """Return the indices of pairs of models."""
        first, second = np.minimum(one, other), np.maximum(one, other)
        number = first * (2 * len(self.models) - first - 1) // 2 + second - first - 1
        return np.asarray(number, dtype=np.int64)

    def of_tasks(self) -> Floats:
        """Return the sum of each model in each task, shape `(n_tasks, n_models)`."""
        return _summed(self.tasks, self.values, self.n_tasks)

    def means(self) -> Floats:
        """Return the mean of each model over the tasks, with equal weights."""
        sizes = np.bincount(self.tasks, weights=self.sizes)
        return np.asarray((self.of_tasks() / sizes[:, None]).mean(axis=0))

    def counts(self, one: Integers, other: Integers) -> Floats:
        """Return the paired tables over all items, shape `(4, n_pairs)`; see `cells`."""
        both, sums = self.n_both[:, self.pair(one, other)].sum(axis=0), self.values.sum(axis=0)
        first, second = sums[other], sums[one]
        neither = self.sizes.sum() - first - second + both
        return np.stack([both, first - both, second - both, neither])

    def cells(self, one: int, other: int) -> Floats:
        """Return paired tables, columns both, `other` only, `one` only, neither.

        There is one row per cluster of a task if `n_both` has rows, else one row for all items.
        """
        both = self.n_both[:, self.pair(one, other)]
        first, second, sizes = self.values[:, other], self.values[:, one], self.sizes
        if len(both) != len(sizes):
            first, second, sizes = (np.atleast_1d(x.sum()) for x in (first, second, sizes))
        cells = (both, first - both, second - both, sizes - first - second + both)
        return np.column_stack(cells)

    @property
    def are_disjoint(self) -> bool:
        """Whether each cluster has items of only one task."""
        return len(self.sizes) == self.n_clusters

    def places(self) -> tuple[Integers, int]:
        """Return the position of each row within its task, and the number of positions.

        The position is the cluster code if a cluster spans tasks.
        """
        if not self.are_disjoint:
            return self.clusters, self.n_clusters
        order, sizes = np.argsort(self.tasks, kind="stable"), np.bincount(self.tasks)
        places = np.empty_like(order)
        places[order] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return places, int(sizes.max())

    def of_clusters(self) -> "ScoreTotals":
        """Merge all tasks into one, with one row per cluster."""
        if self.n_tasks == 1:
            return self
        return self._replace(
            values=_summed(self.clusters, self.values, self.n_clusters),
            sizes=np.bincount(self.clusters, weights=self.sizes).astype(np.float64),
            tasks=np.zeros(self.n_clusters, dtype=np.int64),
            clusters=np.arange(self.n_clusters),
            n_tasks=1,
            squares=self.squares.sum(axis=0, keepdims=True),
            sizes_of_gaps=self.sizes_of_gaps.sum(axis=0, keepdims=True),
            squares_of_gaps=self.squares_of_gaps.sum(axis=0, keepdims=True),
        )

    def weighed(self) -> "ScoreTotals":
        """Return the sums per cluster with equal weights for the tasks."""
        if self.n_tasks == 1:
            return self
        of_task = np.bincount(self.tasks, weights=self.sizes)[self.tasks]
        shares = self._replace(values=self.values / of_task[:, None], sizes=self.sizes / of_task)
        return shares.of_clusters()


def score_totals(scores: ModelScores, *, has_cells: bool = False) -> ScoreTotals:
    """Sum the scores of each cluster of a task.

    Args:
        scores: Items for which all models have a score.
        has_cells: Whether to compute paired tables per cluster.

    Returns:
        The sums.

    Raises:
        ValueError: If there are more than `MOST_MODELS` models or `MOST_CELLS` cells.
    """
    values, n_tasks, n_models = scores.values, len(scores.task_names), len(scores.models)
    if n_models > MOST_MODELS:
        raise ValueError(
            f"{n_models:,} models make {math.comb(n_models, 2):,} pairs, which their ranks need; "
            f"the maximum is {MOST_MODELS:,} models: remove models from the results"
        )
    rows, first = _numbered(scores.clusters * n_tasks + scores.tasks)
    n_rows, pairs = len(first), [*itertools.combinations(range(values.shape[1]), 2)]

    def summed(column: Floats) -> Floats:
        """Sum a number of each item by row."""
        sums = column[first] if n_rows == len(rows) else np.bincount(rows, column, n_rows)
        return np.asarray(sums, dtype=np.float64)

    is_verdicts = bool(((values == 0.0) | (values == 1.0)).all())
    gaps, squares = np.zeros((2, n_tasks, len(pairs))), np.zeros((n_tasks, values.shape[1]))
    if is_verdicts:
        of_tasks = [values[scores.tasks == task] for task in range(n_tasks)]
        products = [part.T @ part for part in (of_tasks if n_tasks > 1 else [values])]
        places = np.triu_indices(values.shape[1], 1)
        for task, product in enumerate(products):
            squares[task] = ones = np.diag(product)
            gaps[:, task] = ones[places[0]] + ones[places[1]] - 2.0 * product[places]
        n_both = np.sum([product[places] for product in products], axis=0)[None, :]
    else:
        n_both = np.zeros((1, len(pairs)))
        squares = _summed(scores.tasks, values**2, n_tasks)
        ends = np.cumsum(np.arange(values.shape[1])[::-1])
        for one, end in enumerate(ends[:-1]):
            gap = np.abs(values[:, one + 1 :] - values[:, [one]])
            for power in (1, 2):
                at = slice(end - gap.shape[1], end)
                gaps[power - 1, :, at] = _summed(scores.tasks, gap**power, n_tasks)
    if has_cells and is_verdicts:
        n_both = np.column_stack([summed(values[:, a] * values[:, b]) for a, b in pairs])
    clusters, tasks = (
        np.unique(codes[first], return_inverse=True) for codes in (scores.clusters, scores.tasks)
    )
    totals = ScoreTotals(
        values=np.column_stack([summed(column) for column in values.T]),
        sizes=np.bincount(rows, minlength=n_rows).astype(np.float64),
        tasks=tasks[1],
        clusters=clusters[1],
        n_tasks=len(tasks[0]),
        n_clusters=len(clusters[0]),
        models=scores.models,
        task_names=scores.task_names,
        squares=squares,
        sizes_of_gaps=gaps[0],
        squares_of_gaps=gaps[1],
        ends=(float(values.min()), float(values.max())),
        is_verdicts=is_verdicts,
        n_both=n_both,
    )
    n_places = totals.places()[1]
    if n_tasks * n_places > MOST_CELLS:
        raise ValueError(
            f"{n_tasks:,} tasks of up to {n_places:,} clusters are too many to compare (the "
            f"maximum product is {MOST_CELLS:,}): pass a column with fewer tasks as `task`"
        )
    return totals


def _summed(codes: Integers, rows: Floats, n_codes: int) -> Floats:
    """Sum rows by code, shape `(n_codes, n_columns)`."""
    if n_codes == 1:
        return np.asarray(rows.sum(axis=0, keepdims=True))
    columns = [np.bincount(codes, column, n_codes) for column in rows.T]
    return np.column_stack(columns)


def _numbered(cells: Integers) -> tuple[Integers, Integers]:
    """Return consecutive codes of the cells, and one row of each."""
    if cells.max() > _DENSE * len(cells):
        _, first, rows = np.unique(cells, return_index=True, return_inverse=True)
        return rows, first
    of_cell = np.full(int(cells.max()) + 1, -1, dtype=np.int64)
    of_cell[cells] = np.arange(len(cells))
    first = of_cell[of_cell >= 0]
    of_cell[of_cell >= 0] = np.arange(len(first))
    return of_cell[cells], first


def joined_totals(parts: Sequence[ScoreTotals], clusters: Integers) -> ScoreTotals:
    """Join the sums of one task over parts of the items.

    Args:
        parts: The sums.
        clusters: Code of the cluster of each row, for the parts in order.

    Returns:
        The sums over all items, including paired tables of clusters if all parts have them.
    """
    rows, _ = _numbered(clusters)
    sizes = np.bincount(rows, np.concatenate([part.sizes for part in parts]))
    n_rows, is_verdicts = int(rows.max()) + 1, all(part.is_verdicts for part in parts)
    has_cells = all(len(part.n_both) == len(part.sizes) for part in parts)
    n_both = np.concatenate([part.n_both for part in parts])

    def summed(columns: Floats) -> Floats:
        """Sum rows of the parts by cluster."""
        return np.column_stack([np.bincount(rows, column, n_rows) for column in columns.T])

    return parts[0]._replace(
        values=summed(np.concatenate([part.values for part in parts])),
        sizes=sizes.astype(np.float64),
        tasks=np.zeros(n_rows, dtype=np.int64),
        clusters=np.arange(n_rows),
        n_clusters=n_rows,
        squares=np.sum([part.squares for part in parts], axis=0),
        sizes_of_gaps=np.sum([part.sizes_of_gaps for part in parts], axis=0),
        squares_of_gaps=np.sum([part.squares_of_gaps for part in parts], axis=0),
        ends=(min(part.ends[0] for part in parts), max(part.ends[1] for part in parts)),
        is_verdicts=is_verdicts,
        n_both=summed(n_both) if has_cells and n_both.size else n_both.sum(axis=0, keepdims=True),
    )
