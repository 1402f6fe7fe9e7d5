"""Counts of paired verdicts for each cluster, the input of the cluster bootstrap."""

from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.verdicts import (
    MISSING,
    MissingPolicy,
    is_missing,
    outcome_cells,
    warn_unscored,
)

__all__ = ["cluster_counts"]


def cluster_counts(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    clusters: Iterable[Hashable],
    missing: MissingPolicy = "raise",
) -> npt.NDArray[np.int64]:
    """Count the paired verdicts within each cluster.

    Args:
        first: Verdicts under the first condition, shape `(n_pairs,)`, as in `paired_table`.
        second: Verdicts of the same pairs under the second condition.
        clusters: The cluster of each pair, such as its fact or subject: pairs of one cluster share
            an answer and are not independent.
        missing: "raise" refuses missing verdicts; "drop" leaves such pairs out, with an
            `UnscoredWarning` that says how many.

    Returns:
        Counts of shape `(n_clusters, 4)`, columns both, first only, second only, neither; one row
        for each cluster with a scored pair, in order of first appearance.

    Raises:
        ValueError: For what `paired_table` refuses, and when the number of cluster labels is not
            the number of pairs, or a label is missing.

    Notes:
        The column sums are the cells of `paired_table`. No pairs give shape `(0, 4)`.

    References:
        A. C. Davison and D. V. Hinkley, Bootstrap Methods and their Application, Cambridge 1997,
        section 3.8 (resampling of clusters).

    Examples:
        >>> cluster_counts([1, 1, 0], [1, 0, 0], clusters=["Q42", "Q42", "Q213531"]).tolist()
        [[1, 1, 0, 0], [0, 0, 0, 1]]
    """
    cells = outcome_cells(first, second, missing=missing)
    labels = list(clusters)
    if len(labels) != cells.size:
        raise ValueError(
            f"clusters must name one cluster a pair: got {len(labels)} labels "
            f"for {cells.size} pairs"
        )
    for index, label in enumerate(labels):
        if is_missing(label):
            raise ValueError(
                f"clusters[{index}] is {label!r}: name the fact or subject that the pair belongs to"
            )
    scored = np.flatnonzero(cells != MISSING)
    warn_unscored(cells.size - scored.size, cells.size, stacklevel=2)
    rows: dict[Hashable, int] = {}
    codes = [rows.setdefault(labels[index], len(rows)) for index in scored]
    flat = 4 * np.asarray(codes, dtype=np.int64) + cells[scored]
    return np.bincount(flat, minlength=4 * len(rows)).astype(np.int64).reshape(-1, 4)
