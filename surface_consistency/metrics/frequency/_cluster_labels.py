"""Cluster labels of any hashable kind, numbered."""

from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.verdicts import is_missing

__all__ = ["label_codes"]


def label_codes(clusters: Iterable[Hashable]) -> npt.NDArray[np.int64]:
    """Number the labels in order of first appearance."""
    numbers: dict[Hashable, int] = {}
    labels = list(clusters)
    for index, label in enumerate(labels):
        if is_missing(label):
            raise ValueError(
                f"clusters[{index}] is {label!r}: name the fact or subject that the row belongs to"
            )
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.int64)
