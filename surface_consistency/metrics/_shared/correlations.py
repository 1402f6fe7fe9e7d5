"""What correlations share: unit vectors, residuals, p-values and intervals."""

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.vectors import Floats
from surface_consistency.metrics.uncertainty.interval import Interval

__all__ = [
    "TINY_SHARE",
    "correlation_interval",
    "correlation_p_values",
    "orthonormal_basis",
    "residual_direction",
    "unit_deviations",
]

# Below this share of its length, what the controls leave of a vector is rounding.
TINY_SHARE = 1e-10
# scipy.stats.pearsonr draws the same line between a constant and a vector with spread.
_CONSTANT_SHARE = 1e-13
_LARGE, _SMALL = 1e100, 1e-100


def unit_deviations(vector: Floats) -> Floats | None:
    """Return the deviations from the mean at unit length, or None for a constant."""
    largest = float(np.abs(vector).max(initial=0.0))
    if not _SMALL <= largest <= _LARGE and largest > 0.0:
        # Squares would overflow or vanish; powers of two scale without rounding.
        vector = np.ldexp(vector, -math.frexp(largest)[1])
    if vector.size == 0 or (vector == vector[0]).all():
        return None
    mean = vector.mean()
    deviations = vector - mean
    length = math.sqrt(float(deviations @ deviations))
    if length <= _CONSTANT_SHARE * abs(mean):
        return None
    deviations /= length
    return np.asarray(deviations)


def orthonormal_basis(columns: Sequence[Floats]) -> list[Floats]:
    """Return orthonormal vectors that span the unit columns, one for each that adds a direction."""
    basis: list[Floats] = []
    for column in columns:
        left = residual_direction(column, basis)
        if left is not None:
            basis.append(left)
    return basis


def residual_direction(unit: Floats, basis: Sequence[Floats]) -> Floats | None:
    """Return what the basis leaves of a unit vector, at unit length; None where nothing is left."""
    if not basis:
        return unit
    left = unit
    # Twice is enough: the second pass removes what rounding left in the first.
    for _ in range(2):
        for direction in basis:
            left = left - (direction @ left) * direction
    length = math.sqrt(float(left @ left))
    return left / length if length > TINY_SHARE else None


def correlation_p_values(coefficients: npt.ArrayLike, df: npt.ArrayLike) -> Floats:
    """Return two-sided p-values of t = r sqrt(df / (1 - r^2)) on `df` degrees of freedom."""
    from scipy.special import betainc

    r = np.asarray(coefficients, dtype=np.float64)
    return np.asarray(betainc(np.asarray(df) / 2.0, 0.5, (1.0 - r) * (1.0 + r)), dtype=np.float64)


def correlation_interval(
    coefficient: float, *, n: int, n_controls: int, confidence: float, method: str
) -> Interval:
    """Return Fisher's interval, widened after Bonett and Wright for ranks; NaN below 4 + k rows."""
    name = "bonett-wright" if method == "spearman" else "fisher-z"
    spare = n - n_controls - 3
    if math.isnan(coefficient) or spare < 1:
        return Interval(low=math.nan, high=math.nan, confidence=confidence, method=name)
    if abs(coefficient) == 1.0:
        return Interval(low=coefficient, high=coefficient, confidence=confidence, method=name)
    variance = 1.0 / spare
    if method == "spearman":
        variance *= 1.0 + coefficient * coefficient / 2.0
    half = NormalDist().inv_cdf((1.0 + confidence) / 2.0) * math.sqrt(variance)
    centre = math.atanh(coefficient)
    return Interval(
        low=math.tanh(centre - half),
        high=math.tanh(centre + half),
        confidence=confidence,
        method=name,
    )
