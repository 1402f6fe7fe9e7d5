"""How many clusters a number needs: below one of these it is marked, below the other it has none.

Metrics and pages read the same two numbers, so that a page marks what a table marks.
"""

from typing import Final

FEW_CLUSTERS: Final = 20
"""Groups with fewer clusters are marked: their intervals hold, but are wide and rest on little."""

LEAST_CLUSTERS: Final = 4
"""Clusters of equal size, or unequal ones worth as many, below which nothing is inferred: three
facts, or one that holds half of all pairs, tell too little of the spread between facts."""
