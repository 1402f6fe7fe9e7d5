"""Curves over run lengths, from observed, resampled and null counts."""

import math

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics.alignment._streaks import slopes
from surface_consistency.metrics.alignment.momentum_curve import MomentumCurve, MomentumPoint
from surface_consistency.metrics.uncertainty.interval import percentile_interval

__all__ = ["curve_of", "undefined_parts"]

_Integers = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]


def curve_of(
    streak: int, counts: _Integers, drawn: _Floats, without: _Floats, confidence: float
) -> MomentumCurve:
    """Build the curve of one kind of run.

    `counts` has shape `(n_lengths, 2)`; resamples and null draws come before those axes.
    """
    observed = counts.astype(np.float64)
    share, shares, null_shares = _shares(observed), _shares(drawn), _shares(without)
    points = tuple(
        MomentumPoint(
            length=length,
            n=int(counts[length, 0]),
            n_correct=int(counts[length, 1]),
            probability=float(share[length]),
            interval=percentile_interval(shares[:, length], confidence=confidence),
            null_probability=_mean(null_shares[:, length]),
            null_interval=percentile_interval(null_shares[:, length], confidence=confidence),
        )
        for length in range(len(counts))
    )
    slope, null_slopes = float(slopes(observed)), slopes(without)
    return MomentumCurve(
        streak=streak,
        points=points,
        slope=slope,
        slope_interval=percentile_interval(slopes(drawn), confidence=confidence),
        null_slope=_mean(null_slopes),
        null_slope_interval=percentile_interval(null_slopes, confidence=confidence),
        p_value=_p_value(slope, null_slopes),
    )


def undefined_parts(curve: MomentumCurve) -> list[str]:
    """Name what is NaN in a curve."""
    lengths = [str(point.length) for point in curve.points if point.n == 0]
    parts = [f"P(correct) after runs of {curve.streak}s of length {', '.join(lengths)}"]
    if math.isnan(curve.slope):
        parts.append(f"the slope after runs of {curve.streak}s")
    return parts if lengths else parts[1:]


def _shares(counts: _Floats) -> _Floats:
    """Return right slots over slots; NaN where there are none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(counts[..., 1] / counts[..., 0])


def _mean(values: _Floats) -> float:
    """Return the mean of the values that are not NaN; NaN without any."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else math.nan


def _p_value(slope: float, null_slopes: _Floats) -> float:
    """Return twice the smaller tail of the null slopes, the observed one counted in."""
    defined = null_slopes[~np.isnan(null_slopes)]
    if math.isnan(slope) or not defined.size:
        return math.nan
    # Equal slopes may differ in the last bits.
    margin = 1e-12 * max(1.0, abs(slope))
    above = int(np.count_nonzero(defined >= slope - margin))
    below = int(np.count_nonzero(defined <= slope + margin))
    return min(1.0, 2 * (1 + min(above, below)) / (1 + defined.size))
