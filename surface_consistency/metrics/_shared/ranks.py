"""Ranks with ties at their average."""

import numpy as np

from surface_consistency.metrics._shared.vectors import Floats

__all__ = ["average_ranks"]


def average_ranks(values: Floats) -> Floats:
    """Return the ranks from 1 on; equal values share the mean of their ranks."""
    order = np.argsort(values)
    ordered = values[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if values.size else order
    ends = np.r_[starts[1:], values.size]
    ranks = np.empty(values.size)
    ranks[order] = np.repeat((starts + ends + 1) / 2.0, ends - starts)
    return ranks
