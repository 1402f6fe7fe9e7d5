"""What a correlation returns, simple or partial."""

from dataclasses import dataclass
from typing import Literal

from surface_consistency.metrics.uncertainty.interval import Interval

__all__ = ["CorrelationMethod", "CorrelationResult"]

CorrelationMethod = Literal["pearson", "spearman"]
"""Of the values themselves, or of their ranks with ties at the average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelationResult:
    """Result of `correlation`, `partial_correlation` and `partial_correlation_from_matrix`."""

    coefficient: float
    """The (partial) correlation, in [-1, 1]; NaN where undefined."""
    p_value: float
    """Two-sided p-value against no correlation, in [0, 1], rows independent; NaN where
    undefined."""
    interval: Interval
    """Interval of the coefficient by Fisher's z, rows independent; NaN where undefined."""
    n: int | None
    """Rows that entered; None for a matrix given without it."""
    n_dropped: int
    """Rows left out because a value was missing."""
    n_controls: int
    """Controls held constant that are not constant themselves, nor linear in those before them."""
    method: CorrelationMethod
    """Of values ("pearson") or of ranks ("spearman")."""
