"""The five statistics of a frequency analysis for one subset and the models on its rows."""

import math

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.correlations import (
    correlation_interval,
    correlation_p_values,
)
from surface_consistency.metrics._shared.vectors import Floats
from surface_consistency.metrics.frequency._moments import partial_of_correlations
from surface_consistency.metrics.frequency._resampled import data_correlations, drawn_correlations
from surface_consistency.metrics.frequency.correlation_result import CorrelationMethod
from surface_consistency.metrics.frequency.dependent_correlations import (
    DependentCorrelationsResult,
    compare_dependent_correlations,
)
from surface_consistency.metrics.uncertainty.interval import Interval, percentile_interval

__all__ = ["STATISTICS", "model_statistics", "resampled_statistics", "subset_correlations"]

STATISTICS = (
    "entity",
    "surface",
    "entity_given_surface",
    "surface_given_entity",
    "entity_minus_surface",
)
"""The statistics of a frequency analysis, in the order of its result."""

_N_CONTROLS = (0, 0, 1, 1)


def subset_correlations(
    x: list[Floats], y: list[Floats], method: CorrelationMethod
) -> tuple[float, Floats]:
    """Return the entity-surface correlation, and the five statistics by model, shape `(5, m)`."""
    n = x[0].size
    if n < 3:
        return math.nan, np.full((len(STATISTICS), len(y)), np.nan)
    within, across = data_correlations(x, y, method=method)
    estimates = _five(within, across)
    if n < 4:
        estimates[2:4] = np.nan
    return float(within[0, 1]), estimates


def resampled_statistics(
    x: list[Floats],
    y: list[Floats],
    codes: npt.NDArray[np.int64],
    *,
    method: CorrelationMethod,
    n_resamples: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the five statistics of each resample of clusters, shape `(5, m, n_resamples)`."""
    drawn = drawn_correlations(x, y, codes, method=method, n_resamples=n_resamples, rng=rng)
    return np.ascontiguousarray(np.moveaxis(_five(*drawn), 0, -1))


def model_statistics(
    estimates: Floats,
    entity_surface: float,
    resamples: Floats | None,
    *,
    n: int,
    method: CorrelationMethod,
    confidence: float,
) -> list[dict[str, object]]:
    """Return estimate, bounds and p-value of each statistic of one model."""
    comparison = _comparison(estimates, entity_surface, n, confidence)
    rows: list[dict[str, object]] = []
    for k, name in enumerate(STATISTICS):
        estimate = float(estimates[k])
        if k < len(_N_CONTROLS):
            p_value, interval = _independent(estimate, _N_CONTROLS[k], n, method, confidence)
        else:
            p_value = comparison.p_value if comparison else math.nan
            interval = comparison.interval if comparison else percentile_interval([])
        cluster_p_value, n_undefined = math.nan, 0
        if resamples is not None:
            values = resamples[k] if not math.isnan(estimate) else np.empty(0)
            interval = percentile_interval(values, confidence=confidence)
            cluster_p_value = _normal_p_value(estimate, values, is_correlation=k < 4)
            n_undefined = int(np.count_nonzero(np.isnan(values)))
        rows.append(
            {
                "statistic": name,
                "estimate": estimate,
                "low": interval.low,
                "high": interval.high,
                "p_value": p_value,
                "cluster_p_value": cluster_p_value,
                "n_undefined": n_undefined,
            }
        )
    return rows


def _independent(
    estimate: float, n_controls: int, n: int, method: CorrelationMethod, confidence: float
) -> tuple[float, Interval]:
    """Return p-value and interval of a correlation, rows independent."""
    interval = correlation_interval(
        estimate, n=n, n_controls=n_controls, confidence=confidence, method=method
    )
    df = n - 2 - n_controls
    return float(correlation_p_values(estimate, df)) if df > 0 else math.nan, interval


def _normal_p_value(estimate: float, values: Floats, *, is_correlation: bool) -> float:
    """Return the two-sided p-value of an estimate over its spread between resamples."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if is_correlation:
            values, estimate = np.arctanh(values), float(np.arctanh(estimate))
        values = values[np.isfinite(values)]
        if values.size < 2 or not math.isfinite(estimate):
            return math.nan
        spread = float(values.std(ddof=1))
    return math.erfc(abs(estimate) / spread / math.sqrt(2.0)) if spread > 0.0 else math.nan


def _five(within: Floats, across: Floats) -> Floats:
    """Stack the five statistics in front of the models, behind any axis of resamples."""
    partial = partial_of_correlations(within, across)
    difference = across[..., :1, :] - across[..., 1:, :]
    return np.concatenate([across, partial, difference], axis=-2)


def _comparison(
    estimates: Floats, entity_surface: float, n: int, confidence: float
) -> DependentCorrelationsResult | None:
    """Compare the entity correlation with the surface correlation, where that can be done."""
    entity, surface = float(estimates[0]), float(estimates[1])
    if n < 4 or not (max(abs(entity), abs(surface), entity_surface) < 1.0):
        return None
    return compare_dependent_correlations(
        entity, surface, r_kh=entity_surface, n=n, confidence=confidence
    )
