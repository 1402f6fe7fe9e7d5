"""Choose the clustering column by one rule, for rows, sums and frames of results.

Questions on the same passage, article or video have dependent scores, so a column that names such
a context is the clustering column. A topic or a category is only a label of items, which does not
change the analysis; a note reports it.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics.uncertainty.intervals import effective_number, enough_clusters
from surface_consistency.results.names import is_context

ITEMS_ALONE: Final = "items, assumed to be independent"
"""Note if each item is a cluster."""

_MOST_LABELS: Final = 3

_Numbers: TypeAlias = npt.NDArray[np.int64]


class ClusterChoice(NamedTuple):
    """The columns of the clusters."""

    names: tuple[str, ...]
    """The columns; empty if each item is a cluster."""

    note: str
    """Description of the clusters, with the reason for the choice."""

    labels: Mapping[str, int] = MappingProxyType({})
    """Number of values of each column that only labels the items but has enough values to cluster
    by; empty if a column was chosen."""


def found_cluster(
    frame: pd.DataFrame, names: Iterable[str], items: _Numbers, tasks: _Numbers, note: str
) -> tuple[ClusterChoice, _Numbers]:
    """Choose the clustering column of rows.

    Args:
        frame: The rows.
        names: Columns that may group the items. An item with an empty cell of a context is a
            cluster. A label with empty cells is not a candidate.
        items: Number of the item of each row, from 0 without gaps.
        tasks: Number of the task of each row.
        note: Note if each item is a cluster.

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
            # One row of an item may have a value that another row lacks.
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
    """Choose the clustering column.

    Args:
        sizes: Sizes of the groups by task, for each column that groups the items. A column is a
            candidate only if each item has one value in it.
        n_items: Number of items of all tasks.
        items: Note if each item is a cluster.
        gaps: Number of items by column that form a group because their cell is empty.

    Returns:
        The finest column that names a shared context and has enough clusters in each task; if no
        column qualifies, the items.
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
            f"; {name} groups them into {n[name]:,}{empty}, too few in a task for inference: the "
            "intervals are valid only for these groups "
            f"({'fill its empty cells; ' * bool(empty)}`cluster` {name} clusters by them)"
        )
    labels = [name for name in enough if not is_context(name)][:_MOST_LABELS]
    return ClusterChoice((), f"{items}{few}", {name: enough[name] for name in labels})


def is_enough(sizes: npt.NDArray[Any]) -> bool:
    """Check whether clusters of these sizes are enough for an interval.

    Args:
        sizes: Number of items of each cluster.

    Returns:
        True if they are enough.
    """
    return bool(enough_clusters(effective_number(np.asarray(sizes, dtype=np.float64))))
