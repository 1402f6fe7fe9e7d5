"""Quantiles of resampled values, some of which may be undefined or infinite."""

import math

import numpy as np
import numpy.typing as npt

__all__ = ["quantiles"]


def quantiles(values: npt.NDArray[np.float64], levels: tuple[float, ...]) -> tuple[float, ...]:
    """Return the linearly interpolated quantiles of the values that are not NaN."""
    n_defined = int(np.count_nonzero(~np.isnan(values)))
    if n_defined == 0:
        return tuple(math.nan for _ in levels)
    positions = [level * (n_defined - 1) for level in levels]
    below = [math.floor(position) for position in positions]
    above = [min(index + 1, n_defined - 1) for index in below]
    # NaN goes to the end, so that the order statistics of the rest keep their places.
    ordered = np.partition(values, sorted({*below, *above}))
    return tuple(
        _between(float(ordered[low]), float(ordered[high]), position - low)
        for low, high, position in zip(below, above, positions, strict=True)
    )


def _between(low: float, high: float, share: float) -> float:
    """Interpolate without turning two equal infinities, or a share of 0, into NaN."""
    if low == high or share == 0.0:
        return low
    return low + (high - low) * share
