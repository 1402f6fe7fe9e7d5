"""Which column makes the clusters: one rule for the rows, the sums and the frames of results.

Items of one passage, article or video share what they are asked about, so their scores depend on
each other: a column that names such a context makes the clusters. A topic or a category is only a
label of items, which does not change the analysis; a note reports it.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics.uncertainty.intervals import effective_number, enough_clusters
from surface_consistency.results.names import is_context

ITEMS_ALONE: Final = "items, each on its own, as far as the files say"
"""Note on clusters that are items."""

_MOST_LABELS: Final = 3

_Numbers: TypeAlias = npt.NDArray[np.int64]


class ClusterChoice(NamedTuple):
    """The columns of the clusters."""

    names: tuple[str, ...]
    """The columns; none if each item is a cluster."""

    note: str
    """What the clusters are, and why."""

    labels: Mapping[str, int] = MappingProxyType({})
    """Columns that only label the items, of which each could make clusters, and the numbers of
    their values; none if a column was chosen."""


def found_cluster(
    frame: pd.DataFrame, names: Iterable[str], items: _Numbers, tasks: _Numbers, note: str
) -> tuple[ClusterChoice, _Numbers]:
    """Choose the column of the clusters of rows.

    Args:
        frame: The rows.
        names: Columns that may group the items. An empty cell is not a context: its item
            is a cluster. A label with empty cells is not a candidate.
        items: Number of the item of each row, from 0 without gaps.
        tasks: Number of its task.
        note: Note on clusters that are items.

    Returns:
        The choice, and the number of the cluster of each row.
    """
    first = np.zeros(items.max() + 1, dtype=np.int64)
    first[items[::-1]] = np.arange(len(items))[::-1]
    of_task, n_tasks = tasks[first], int(tasks.max()) + 1
    sizes, gaps = {}, {}
    known: dict[tuple[str, ...], _Numbers] = {(): items}
    for name in names:
        is_blank = frame[name] == ""
        column = frame[name].mask(is_blank) if is_blank.any() else frame[name]
        own = pd.factorize(column)[0].astype(np.int64)
        if (is_gap := own < 0).any():
            # One row of an item may have what another lacks.
            np.maximum.at(of_item := np.full(len(first), -1), items, own)
            own[is_gap] = of_item[items[is_gap]]
            is_gap = own < 0
            if is_gap.any() and not is_context(name):
                continue
            own[is_gap] = len(own) + items[is_gap]
        codes = pd.factorize(own * n_tasks + tasks)[0].astype(np.int64, copy=False)
        if (codes[first][items] == codes).all():
            known[name,], gaps[name] = codes, int(is_gap[first].sum())
            counts = (np.bincount(codes[first][of_task == task]) for task in range(n_tasks))
            sizes[name] = [one[one > 0] for one in counts]
    choice = choose_cluster(sizes, len(first), note, gaps)
    return choice, known[choice.names]


def choose_cluster(
    sizes: Mapping[str, Sequence[_Numbers]], n_items: int, items: str, gaps: Mapping[str, int]
) -> ClusterChoice:
    """Choose the column of the clusters.

    Args:
        sizes: Columns that group the items, each with the sizes of its groups by task. A column is
            a candidate only if each item has one value of it.
        n_items: Number of items of all tasks.
        items: Note on clusters that are items.
        gaps: Items of a column that are groups because their cell is empty.

    Returns:
        The finest column that names a shared context and makes enough clusters in each task, or
        else the items.
    """
    n = {name: sum(map(len, parts)) for name, parts in sizes.items()}
    finest = sorted((name for name in n if 1 < n[name] < n_items), key=lambda name: -n[name])
    enough = {name: n[name] for name in finest if all(map(is_enough, sizes[name]))}
    few = ""
    for name in filter(is_context, finest):
        empty = f" ({gaps[name]:,} without {name})" if gaps.get(name) else ""
        if name in enough:
            note = f"{name}, a context that items share: {n_items:,} items in {n[name]:,}{empty}"
            return ClusterChoice((name,), note)
        few = (
            f"; {name} groups them into {n[name]:,}{empty}, too few in a task to infer anything "
            "from: intervals hold for these groups alone "
            f"({'fill its empty cells; ' * bool(empty)}`cluster` {name} makes them the clusters)"
        )
    labels = [name for name in enough if not is_context(name)][:_MOST_LABELS]
    return ClusterChoice((), f"{items}{few}", {name: enough[name] for name in labels})


def is_enough(sizes: npt.NDArray[Any]) -> bool:
    """Check whether clusters of these sizes are enough for an interval.

    Args:
        sizes: Items of each cluster.

    Returns:
        Whether they are.
    """
    return bool(enough_clusters(effective_number(np.asarray(sizes, dtype=np.float64))))
