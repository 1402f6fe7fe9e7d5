"""What a momentum analysis returns: two curves over run lengths, beside their null bands."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from surface_consistency.metrics.uncertainty.interval import Interval

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MomentumCurve", "MomentumNull", "MomentumPoint", "MomentumResult"]

MomentumNull = Literal["topic", "topic-and-slot"]
"""What responses without momentum keep: what each topic got right, or each slot's accuracy too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentumPoint:
    """Accuracy after a run of one length."""

    length: int
    """Length of the run that ends just before the slot; 0 when that slot went the other way."""
    n: int
    """Slots that came after such a run."""
    n_correct: int
    """Those of them that were right."""
    probability: float
    """P(correct), `n_correct / n`, in [0, 1]; NaN when no slot came after such a run."""
    interval: Interval
    """Interval of `probability` that resamples topics; NaN bounds where undefined."""
    null_probability: float
    """Mean of P(correct) without momentum, in [0, 1]; NaN where undefined."""
    null_interval: Interval
    """Central part of P(correct) without momentum: the null band."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentumCurve:
    """P(correct) by the length of one kind of run."""

    streak: int
    """1 for runs of right slots, 0 for runs of wrong ones."""
    points: tuple[MomentumPoint, ...]
    """One point for each length from 0 to `n_slots` - 1."""
    slope: float
    """Change of P(correct) with each further slot in the run, by least squares over all slots; NaN
    where all runs are equally long."""
    slope_interval: Interval
    """Interval of `slope` that resamples topics; NaN bounds where undefined."""
    null_slope: float
    """Mean slope without momentum: what topic difficulty alone brings about."""
    null_slope_interval: Interval
    """Central part of the slope without momentum."""
    p_value: float
    """Two-sided p-value of `slope` among the slopes without momentum, in (0, 1]; NaN where the
    slope is undefined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentumResult:
    """Result of `momentum`."""

    correct: MomentumCurve
    """After runs of right slots (figure 3, left)."""
    incorrect: MomentumCurve
    """After runs of wrong slots (figure 3, right)."""
    n_topics: int
    """Topics with a complete response; what the intervals resample."""
    n_responses: int
    """Complete responses, over topics and permutations."""
    n_missing: int
    """Responses left out because a slot in them lacks a verdict."""
    null: MomentumNull
    """Which null band was drawn."""
    n_resamples: int
    """Number of resamples of topics."""
    n_null: int
    """Number of draws of the null band."""

    def to_frame(self) -> "pd.DataFrame":
        """Return the points of both curves, one a row; needs pandas."""
        import pandas as pd

        rows = [
            {
                "streak": curve.streak,
                "length": point.length,
                "n": point.n,
                "n_correct": point.n_correct,
                "probability": point.probability,
                "probability_low": point.interval.low,
                "probability_high": point.interval.high,
                "null_probability": point.null_probability,
                "null_low": point.null_interval.low,
                "null_high": point.null_interval.high,
            }
            for curve in (self.correct, self.incorrect)
            for point in curve.points
        ]
        return pd.DataFrame(rows)
