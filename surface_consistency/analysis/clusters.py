"""Which column makes the clusters: one rule for the rows, the sums and the frames of results.

Items of one passage, article or video share what they are asked about, so their scores depend on
each other: a column that names such a context makes the clusters. A topic or a category is only a
label of items, which does not change the analysis; a note reports it.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics.uncertainty.intervals import are_enough, worth_of_clusters
from surface_consistency.results.names import is_context

ITEMS_ALONE: Final = "items, each on its own, as far as the files say"
"""Note on clusters that are items."""

_MOST_LABELS: Final = 3


class ClusterChoice(NamedTuple):
    """The columns of the clusters."""

    names: tuple[str, ...]
    """The columns; none if each item is a cluster."""

    note: str
    """What the clusters are, and why."""

    labels: Mapping[str, int] = MappingProxyType({})
    """Columns that only label the items, of which each could make clusters, and the numbers of
    their values; none if a column was chosen."""


def choose_cluster(
    sizes: Mapping[str, Sequence[npt.NDArray[Any]]], n_items: int, items: str = ITEMS_ALONE
) -> ClusterChoice:
    """Choose the column of the clusters.

    Args:
        sizes: Columns that group the items, each with the sizes of its groups by task. A column is
            a candidate only if each item has one value of it.
        n_items: Number of items of all tasks.
        items: Note on clusters that are items.

    Returns:
        The finest column that names a shared context and makes enough clusters in each task, or
        else the items.
    """
    n = {name: sum(map(len, parts)) for name, parts in sizes.items()}
    finest = sorted((name for name in n if 1 < n[name] < n_items), key=lambda name: -n[name])
    enough = {name: n[name] for name in finest if all(map(is_enough, sizes[name]))}
    few = ""
    for name in filter(is_context, finest):
        groups = f"{name} groups them into {n[name]:,}"
        if name in enough:
            note = f"{name}, a context that items share: {n_items:,} items in {n[name]:,}"
            return ClusterChoice((name,), note)
        few = (
            f"; {groups}, too few in a task to infer anything from: intervals hold for these "
            f"groups alone (`cluster` {name} makes them the clusters)"
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
    return bool(are_enough(worth_of_clusters(np.asarray(sizes, dtype=np.float64))))
