"""Minimum numbers of clusters: for a reliable interval, and for any inference.

Metrics and pages use the same two numbers, so that pages and tables mark the same rows.
"""

from typing import Final

FEW_CLUSTERS: Final = 20
"""Groups with fewer clusters are marked, because their intervals, though valid, are wide and
uncertain."""

LEAST_CLUSTERS: Final = 4
"""Minimum effective number of clusters for any interval or test. Three facts, or one fact with half
of all pairs, give too little information on the variance between facts."""
