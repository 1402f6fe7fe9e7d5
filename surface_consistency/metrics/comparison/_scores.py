"""Scores of several models side by side, an item a row, and what their clusters sum to."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics._groups import check_frame, column_names
from surface_consistency.metrics._inputs import Floats, Integers, numeric_vector


class ModelScores(NamedTuple):
    """The scores of all models side by side, an item a row."""

    values: Floats
    """Shape `(n_items, n_models)`, NaN where missing."""
    tasks: Integers
    clusters: Integers
    models: list[str]
    task_names: list[str]
    labels: pd.DataFrame
    """The cells of slices, an item a row."""

    def at(self, rows: npt.NDArray[Any]) -> "ModelScores":
        """Return some items."""
        return self._replace(
            values=self.values[rows],
            tasks=self.tasks[rows],
            clusters=self.clusters[rows],
            labels=self.labels[rows] if rows.dtype == bool else self.labels.iloc[rows],
        )

    def whole(self) -> "ModelScores":
        """Return the items that all models have a score for, and their tasks."""
        is_whole = np.asarray(~np.isnan(self.values).any(axis=1))
        if is_whole.all():
            return self
        if not is_whole.any():
            n_scores = (~np.isnan(self.values)).sum(axis=0)
            held = ", ".join(f"{name} {n:,}" for name, n in zip(self.models, n_scores, strict=True))
            empty = [name for name, n in zip(self.models, n_scores, strict=True) if not n]
            remedy = (
                f"leave {', '.join(empty)} out"
                if empty
                else "leave a model out, or name what tells items apart"
            )
            raise ValueError(
                "no item has a score of every model, so there is nothing to compare (items with a "
                f"score: {held}); {remedy}"
            )
        part = self.at(is_whole)
        shared, tasks = np.unique(part.tasks, return_inverse=True)
        return part._replace(tasks=tasks, task_names=[self.task_names[task] for task in shared])


def _codes(frame: pd.DataFrame, columns: Sequence[str]) -> Integers:
    """Number the rows by what stands in some columns."""
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
    """Lay rows of a model and item side by side."""
    clusters, slices = column_names(cluster or ()), column_names(by)
    tasks = column_names(task or ())
    needed = [model, *items, score, *tasks, *clusters, *slices]
    check_frame(frame, needed, options="model, item, score, task, cluster or by", row="score")
    for column in (model, *tasks):
        if frame[column].isna().any():
            place = int(np.argmax(frame[column].isna()))
            raise ValueError(f"column {column!r} is empty in row {place}: fill it in")
    of_model, held = pd.factorize(frame[model])
    of_label, labels = pd.factorize(pd.Index(held).astype(str))
    columns, models = of_label[of_model], [str(label) for label in labels]
    if len(models) < 2:
        raise ValueError(f"there must be two models or more to compare; got {models}")
    rows = _codes(frame, [*tasks, *items])
    first = np.empty(int(rows.max()) + 1, dtype=np.int64)
    first[rows[::-1]] = np.arange(len(rows))[::-1]
    cells = rows * len(models) + columns
    _refuse_repeats(frame, cells, [model, *tasks, *items])
    values = np.full(len(first) * len(models), np.nan)
    values[cells] = numeric_vector(frame[score].array, score)
    of_rows = _codes(frame, clusters) if clusters else rows
    for column in clusters:
        if frame[column].isna().any():
            place = int(np.argmax(frame[column].isna()))
            raise ValueError(
                f"column {column!r} has no cluster id in row {place}: fill it in, or pass "
                "cluster=None to take each item for a cluster of its own"
            )
    moved = of_rows != of_rows[first][rows]
    if moved.any():
        place = int(np.argmax(moved))
        raise ValueError(
            f"item {_named(frame, place, [*tasks, *items])} lies in one cluster for "
            f"{frame[model].iloc[int(first[rows[place]])]!r} and in another for "
            f"{frame[model].iloc[place]!r}: columns {clusters} must agree between models"
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
    """Name a row by its cells."""
    return ", ".join(f"{column}={frame[column].iloc[place]!r}" for column in columns)


def _refuse_repeats(frame: pd.DataFrame, cells: Integers, columns: Sequence[str]) -> None:
    """Refuse two scores of one model and item."""
    if np.bincount(cells).max(initial=0) < 2:
        return
    order = np.argsort(cells, kind="stable")
    again = np.flatnonzero(np.diff(cells[order]) == 0)
    if again.size:
        place = int(order[again[0] + 1])
        raise ValueError(
            f"{again.size:,} rows repeat a model and item, such as "
            f"{_named(frame, place, columns)}: average repeats, or name what tells items apart"
        )


class ScoreTotals(NamedTuple):
    """Sums of scores, a row a cluster of a task."""

    values: Floats
    """Shape `(n_rows, n_models)`."""
    sizes: Floats
    """Items of each row."""
    tasks: Integers
    clusters: Integers
    n_tasks: int
    n_clusters: int

    def means(self) -> Floats:
        """Return the mean of each model over the tasks, which weigh alike."""
        sums = np.zeros((self.n_tasks, self.values.shape[1]))
        np.add.at(sums, self.tasks, self.values)
        sizes = np.bincount(self.tasks, weights=self.sizes)
        return np.asarray((sums / sizes[:, None]).mean(axis=0))

    def sums(self, values: Floats) -> Floats:
        """Return what the clusters hold above 0, below 0, and in number, for each task."""
        parts = np.maximum(values, 0.0), np.maximum(-values, 0.0), self.sizes
        if self.n_tasks == 1:
            return np.column_stack(parts)
        sums = np.zeros((self.n_clusters, 3, self.n_tasks))
        for place, part in enumerate(parts):
            sums[self.clusters, place, self.tasks] = part
        return sums.reshape(self.n_clusters, -1)

    def of_clusters(self) -> "ScoreTotals":
        """Take all tasks for one, a row a cluster."""
        if self.n_tasks == 1:
            return self
        values = np.zeros((self.n_clusters, self.values.shape[1]))
        np.add.at(values, self.clusters, self.values)
        return self._replace(
            values=values,
            sizes=np.bincount(self.clusters, weights=self.sizes).astype(np.float64),
            tasks=np.zeros(self.n_clusters, dtype=np.int64),
            clusters=np.arange(self.n_clusters),
            n_tasks=1,
        )

    def weighed(self) -> "ScoreTotals":
        """Return what clusters hold where each task weighs as much as any other."""
        if self.n_tasks == 1:
            return self
        of_task = np.bincount(self.tasks, weights=self.sizes)[self.tasks]
        shares = self._replace(values=self.values / of_task[:, None], sizes=self.sizes / of_task)
        return shares.of_clusters()


def score_totals(scores: ModelScores) -> ScoreTotals:
    """Sum the scores of each cluster of a task."""
    cells = scores.clusters * len(scores.task_names) + scores.tasks
    keys, first, rows = np.unique(cells, return_index=True, return_inverse=True)
    values = scores.values
    if len(keys) < len(cells):
        values = np.column_stack(
            [np.bincount(rows, weights=column, minlength=len(keys)) for column in values.T]
        )
    else:
        values = values[first]
    clusters, tasks = (
        np.unique(codes[first], return_inverse=True) for codes in (scores.clusters, scores.tasks)
    )
    return ScoreTotals(
        values=values,
        sizes=np.bincount(rows, minlength=len(keys)).astype(np.float64),
        tasks=tasks[1],
        clusters=clusters[1],
        n_tasks=len(tasks[0]),
        n_clusters=len(clusters[0]),
    )
