"""The bias-corrected and accelerated interval of a resampled statistic of summed counts."""

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.quantiles import quantiles

__all__ = ["acceleration", "bca_bounds"]

_Floats = npt.NDArray[np.float64]


def acceleration(
    statistic: Callable[[_Floats], npt.ArrayLike], patterns: _Floats, frequencies: _Floats
) -> float:
    """Return the skewness of the leave-one-cluster-out estimates, a sixth of it."""
    total = frequencies @ patterns
    with np.errstate(divide="ignore", invalid="ignore"):
        left_out = np.asarray(statistic(total - patterns), dtype=np.float64)
    influence = np.average(left_out, weights=frequencies) - left_out
    spread = float(frequencies @ influence**2)
    if spread == 0.0:
        return 0.0
    return float(frequencies @ influence**3) / (6.0 * math.sqrt(spread) ** 3)


def bca_bounds(
    values: _Floats, estimate: float, skewness: float, confidence: float
) -> tuple[float, float]:
    """Return the percentile bounds at levels corrected for bias and acceleration."""
    n_defined = int(np.count_nonzero(~np.isnan(values)))
    below = int(np.count_nonzero(values < estimate) + np.count_nonzero(values <= estimate))
    if not 0 < below < 2 * n_defined or not math.isfinite(skewness):
        return math.nan, math.nan
    normal = NormalDist()
    bias = normal.inv_cdf(below / (2 * n_defined))
    tail = (1.0 - confidence) / 2.0
    shifted = (bias + normal.inv_cdf(tail), bias + normal.inv_cdf(1.0 - tail))
    if any(skewness * s >= 1.0 for s in shifted):
        return math.nan, math.nan
    levels = tuple(normal.cdf(bias + s / (1.0 - skewness * s)) for s in shifted)
    low, high = quantiles(values, levels)
    return low, high
