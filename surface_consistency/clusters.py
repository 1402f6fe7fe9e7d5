"""Minimum numbers of clusters: for a reliable interval, and for any inference.

Metrics and pages read the same two numbers, so that pages and tables mark the same rows.
"""

from typing import Final

FEW_CLUSTERS: Final = 20
"""Groups with fewer clusters are marked: their intervals are valid, but wide and uncertain."""

LEAST_CLUSTERS: Final = 4
"""Minimum effective number of clusters, below which nothing is inferred: three facts, or one with
half of all pairs, give too little information on the variance between facts."""
