"""From complete vectors, or a bare coefficient, to the result of a correlation."""

import math
import warnings
from collections.abc import Sequence

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics._shared.correlations import (
    correlation_interval,
    correlation_p_values,
    orthonormal_basis,
    residual_direction,
    unit_deviations,
)
from surface_consistency.metrics._shared.ranks import average_ranks
from surface_consistency.metrics._shared.vectors import Floats
from surface_consistency.metrics.frequency.correlation_result import (
    CorrelationMethod,
    CorrelationResult,
)

__all__ = ["check_correlation_method", "correlate", "correlation_result"]


def check_correlation_method(method: str) -> None:
    """Refuse a method that is not one of the two."""
    if method not in ("pearson", "spearman"):
        raise ValueError(f"method must be 'pearson' or 'spearman'; got {method!r}")


def correlate(
    vectors: dict[str, Floats],
    *,
    method: CorrelationMethod,
    confidence: float,
    n_dropped: int,
    stacklevel: int,
) -> CorrelationResult:
    """Correlate the first two of some complete vectors, the others held constant."""
    if method == "spearman":
        vectors = {name: average_ranks(vector) for name, vector in vectors.items()}
    (x_name, x), (y_name, y), *rest = vectors.items()
    units = [unit_deviations(vector) for _, vector in rest]
    basis = orthonormal_basis([unit for unit in units if unit is not None])
    first, first_reason = _direction(x, x_name, basis)
    second, second_reason = _direction(y, y_name, basis)
    coefficient = math.nan
    if first is not None and second is not None and x.size > 2 + len(basis):
        coefficient = min(1.0, max(-1.0, float(first @ second)))
    return correlation_result(
        coefficient,
        n=x.size,
        n_dropped=n_dropped,
        n_controls=len(basis),
        method=method,
        confidence=confidence,
        reasons=[reason for reason in (first_reason, second_reason) if reason],
        stacklevel=stacklevel + 1,
    )


def correlation_result(
    coefficient: float,
    *,
    n: int | None,
    n_dropped: int,
    n_controls: int,
    method: CorrelationMethod,
    confidence: float,
    reasons: list[str],
    stacklevel: int,
) -> CorrelationResult:
    """Add p-value and interval to a coefficient, and warn of what is undefined."""
    p_value = math.nan
    if n is not None and n > n_controls + 2:
        p_value = float(correlation_p_values(coefficient, n - 2 - n_controls))
    interval = correlation_interval(
        coefficient, n=n or 0, n_controls=n_controls, confidence=confidence, method=method
    )
    if math.isnan(coefficient):
        if n is not None and n < 3 + n_controls:
            reasons = [*reasons, _too_few(n, n_controls, 3)]
        _warn(f"the correlation is undefined (NaN): {'; '.join(reasons)}", stacklevel + 1)
    elif n is not None and math.isnan(interval.low):
        _warn(f"the interval is undefined (NaN): {_too_few(n, n_controls, 4)}", stacklevel + 1)
    return CorrelationResult(
        coefficient=coefficient,
        p_value=p_value,
        interval=interval,
        n=n,
        n_dropped=n_dropped,
        n_controls=n_controls,
        method=method,
    )


def _direction(
    vector: Floats, name: str, basis: Sequence[Floats]
) -> tuple[Floats | None, str | None]:
    """Return what the controls leave of a vector, or why that is nothing."""
    unit = unit_deviations(vector)
    if unit is None:
        return None, f"{name} is constant" if vector.size else None
    left = residual_direction(unit, basis)
    return left, None if left is not None else f"{name} is a linear function of the controls"


def _too_few(n: int, n_controls: int, least: int) -> str:
    """Say how many rows there are and how many are needed."""
    controls = f" with {n_controls} controls" if n_controls else ""
    return f"there are {n} rows{controls}, and it needs {least + n_controls}"


def _warn(message: str, stacklevel: int) -> None:
    """Warn of an undefined value where the caller called."""
    warnings.warn(message, UndefinedMetricWarning, stacklevel=stacklevel + 1)
