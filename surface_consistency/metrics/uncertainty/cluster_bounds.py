"""Limits of statistics of clusters that hold near 0 and 1 and with few clusters.

Every statistic here is a share of what clusters hold, a weighted sum of such shares, a function of
one of them while other sums are held as they are, or none of these. The first have Wilson's
interval with the number of independent trials that the clusters are worth, and where events are few
the exact one-sided limit, since Wilson's interval of a single event holds in 0.84 of data sets at
the worst rate, however many trials there are; sums of them the MOVER interval from Wilson's limits;
functions of one the image of its limits; the rest a jackknife t interval. Arrays may hold many data
sets: clusters are the last axis of shares, and the last but one of sums.

References:
    L. D. Brown, T. T. Cai and A. DasGupta, Statistical Science 16, 2001, section 4.1.1 (limits of
    few events).
"""

import functools
import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import Floats
from surface_consistency.metrics.uncertainty.intervals import t_p_value, t_quantile

__all__ = [
    "Link",
    "Part",
    "Scale",
    "ShareStatistic",
    "SumBounds",
    "jackknife_bounds",
    "jackknife_p_value",
    "of_shares",
    "share_sums",
    "statistic_bounds",
]

Link: TypeAlias = Callable[[Floats, Floats], Floats]
"""Maps shares, of shape `(...)`, and sums over clusters, `(..., k)`, to values of a statistic."""


class Part(NamedTuple):
    """A share of summed counts, and its weight in a sum of such shares."""

    weight: float
    """What it is multiplied by."""
    above: tuple[float, ...]
    """Weight of each count above the line."""
    below: tuple[float, ...]
    """Weight of each count below the line; never less than what stands above."""


class ShareStatistic:
    """A statistic of summed counts that says of which shares it is made; see `of_shares`."""

    parts: tuple[Part, ...]
    link: Link | None

    def __init__(
        self, function: Callable[[Any], Floats], parts: tuple[Part, ...], link: Link | None
    ) -> None:
        functools.update_wrapper(self, function)
        self._function, self.parts, self.link = function, parts, link

    def __call__(self, counts: npt.ArrayLike) -> Floats:
        """Return the statistic of each row of counts, of shape `(...)` for counts `(..., k)`."""
        return self._function(counts)


def of_shares(
    *parts: Part, link: Link | None = None
) -> Callable[[Callable[[Any], Floats]], ShareStatistic]:
    """Mark a statistic as a weighted sum of shares, or as a function of such a sum."""
    return lambda function: ShareStatistic(function, parts, link)


# Weight, in clusters, of the belief that rows of a cluster are copies of each other, against what
# the clusters with and without the event say of that; all that is left where one of them is empty.
_PRIOR_CLUSTERS = 0.5
# What rounding may make of a share of 0 or 1.
_ROUNDING = 1e-9


class _Spread(NamedTuple):
    """What the interval of a share takes, at any level."""

    share: Floats
    """The share, shape `(...)`."""
    n: Floats
    """Number of independent trials that the clusters are worth."""
    df: Floats
    """Degrees of freedom of the variance between clusters, at least 1."""
    influence: Floats
    """What each cluster adds to the share, shape `(..., n_clusters)`."""


def _kish(sizes: Floats) -> Floats:
    """Return the number of equal parts that unequal ones are worth, (sum)^2 / sum of squares."""
    squares = (sizes**2).sum(axis=-1)
    return np.asarray(sizes.sum(axis=-1) ** 2 / np.where(squares > 0.0, squares, 1.0))


def _spread(above: Floats, below: Floats) -> _Spread:
    """Return a share of clusters, and how much they vary in it.

    The variance is that of the jackknife over clusters. Its ratio to the binomial one, the design
    effect, is no less than 1 where whole things are counted, and is drawn to that of clusters of
    copies, n / Kish's number of clusters, with the weight of half a cluster.
    """
    total, n_clusters = below.sum(axis=-1), np.count_nonzero(below > 0.0, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = above.sum(axis=-1) / total
        weight = below / total[..., None]
        influence = (above - share[..., None] * below) / total[..., None] / (1.0 - weight)
        # A single cluster tells nothing but its own share, which counts as one trial.
        influence = np.where(weight < 1.0, influence, 0.0)
        variance = (n_clusters - 1.0) / n_clusters * (influence**2).sum(axis=-1)
        is_whole = ((above == np.floor(above)) & (below == np.floor(below))).all(axis=-1)
        variation = share * (1.0 - share)
        effect = np.where(variation > 0.0, variance * total / variation, 0.0)
    effect = np.where(is_whole, np.maximum(effect, 1.0), effect)
    # Single trials have the binomial variance, which nothing need be estimated for.
    effect = np.where(is_whole & (below <= 1.0).all(axis=-1), 1.0, effect)
    events = np.minimum(_kish(above), _kish(below - above)) * (n_clusters > 1)
    clusters = _kish(below)
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = (events * effect + _PRIOR_CLUSTERS * total / clusters) / (events + _PRIOR_CLUSTERS)
        n = total / effect
    return _Spread(share, n, np.maximum(clusters - 1.0, 1.0), influence)


def _wilson_bounds(spread: _Spread, level: float) -> tuple[Floats, Floats]:
    """Return Wilson's limits, with a quantile of t for one of the normal distribution."""
    square, share = t_quantile(spread.df, level) ** 2, spread.share
    shrink = 1.0 + square / spread.n
    centre = share + square / (2.0 * spread.n)
    half = np.sqrt(square * (share * (1.0 - share) / spread.n + square / (4.0 * spread.n**2)))
    low = np.where(share <= _ROUNDING, 0.0, np.clip((centre - half) / shrink, 0.0, share))
    high = np.where(share >= 1.0 - _ROUNDING, 1.0, np.clip((centre + half) / shrink, share, 1.0))
    unknown = np.isnan(half)
    return np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)


def _share_bounds(spread: _Spread, level: float) -> tuple[Floats, Floats]:
    """Return Wilson's limits, or those of Clopper and Pearson on one side where these are wider."""
    low, high = _wilson_bounds(spread, level)
    events, n = spread.share * spread.n, spread.n
    return (
        np.minimum(low, _exact_limit(events, n, level)),
        np.maximum(high, 1.0 - _exact_limit(n - events, n, level)),
    )


def _exact_limit(events: Floats, n: Floats, level: float) -> Floats:
    """Return the rate at which so many events or more have the chance 1 - level."""
    from scipy.special import betaincinv

    few = (events > 0.0) & (2.0 * events <= n)
    usable = np.where(few, events, 1.0)
    limits = betaincinv(usable, np.where(few, n, 1.0) - usable + 1.0, 1.0 - level)
    return np.where(few, limits, 1.0)


class SumBounds(NamedTuple):
    """A weighted sum of shares of clusters, with its limits at any level."""

    weights: Floats
    """Weight of each share, shape `(n_shares,)`."""
    spreads: tuple[_Spread, ...]
    """The shares."""
    correlations: Floats
    """Correlations of the shares between clusters, shape `(..., n_shares, n_shares)`."""

    @property
    def value(self) -> Floats:
        """The sum, shape `(...)`."""
        return np.asarray(sum(w * s.share for w, s in zip(self.weights, self.spreads, strict=True)))

    def bounds(self, level: float) -> tuple[Floats, Floats]:
        """Return the MOVER limits: of one share of weight 1 they are its own."""
        if len(self.spreads) == 1 and self.weights[0] == 1.0:
            return _share_bounds(self.spreads[0], level)
        limits = [_wilson_bounds(spread, level) for spread in self.spreads]
        down, up = [], []
        for weight, spread, (low, high) in zip(self.weights, self.spreads, limits, strict=True):
            sides = (weight * (spread.share - low), weight * (high - spread.share))
            down.append(sides[0] if weight > 0.0 else sides[1])
            up.append(sides[1] if weight > 0.0 else sides[0])
        value, reach = self.value, (np.minimum(self.weights, 0), np.maximum(self.weights, 0))
        low = np.maximum(value - self._length(down), reach[0].sum())
        return low, np.minimum(value + self._length(up), reach[1].sum())

    def _length(self, steps: list[Floats]) -> Floats:
        """Return the root of the steps' squares and, as far as they go together, products."""
        stacked = np.stack(steps, axis=-1)
        products = stacked[..., :, None] * self.correlations * stacked[..., None, :]
        # Shares that go together in all clusters at hand need not in others.
        kept = 1.0 - _PRIOR_CLUSTERS / self.spreads[0].influence.shape[-1]
        products = np.where(products < 0.0, kept * products, products)
        return np.asarray(np.sqrt(np.maximum(products.sum(axis=(-2, -1)), 0.0)))

    def p_value(self, null: float = 0.0) -> float:
        """Return 1 less the level at which the interval of one data set first reaches `null`."""
        value = float(self.value) - null
        if value == 0.0 or math.isnan(value) or math.isnan(float(self.bounds(0.5)[0])):
            return 1.0 if value == 0.0 else math.nan
        side, sign = int(value < 0.0), math.copysign(1.0, value)

        def left(root: float) -> float:
            """Return what parts the bound from `null`, whose steps in `root` are nearly equal."""
            return sign * (float(self.bounds(-math.expm1(-(root**2)))[side]) - null)

        # Beyond e^-36 the level rounds to 1, whose quantile is infinite.
        ends, heights, moved = [0.0, 6.0], [abs(value), left(6.0)], -1
        if heights[1] > 0.0:
            return math.exp(-36.0)
        # Regula falsi, by the rule of Illinois: an end that stays again has half its height.
        for _ in range(60):
            root = ends[0] - heights[0] * (ends[1] - ends[0]) / (heights[1] - heights[0])
            found = left(root)
            if abs(found) <= 1e-13 or ends[1] - ends[0] <= 1e-12:
                break
            end = int(found < 0.0)
            if moved == end:
                heights[1 - end] /= 2.0
            ends[end], heights[end], moved = root, found, end
        return math.exp(-(root**2))


def share_sums(parts: tuple[Part, ...], sums: Floats) -> SumBounds | None:
    """Return the weighted sum of shares of clusters; None where a part is no share of them."""
    spreads = []
    for part in parts:
        above = sums @ np.asarray(part.above, dtype=np.float64)
        below = sums @ np.asarray(part.below, dtype=np.float64)
        slack = _ROUNDING * np.maximum(below, 0.0)
        if (above < -slack).any() or (above > below + slack).any():
            return None
        spreads.append(_spread(np.clip(above, 0.0, below), below))
    weights = np.asarray([part.weight for part in parts], dtype=np.float64)
    influences = np.stack([spread.influence for spread in spreads], axis=-2)
    lengths = np.sqrt((influences**2).sum(axis=-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        directions = influences / lengths[..., None]
    directions = np.where(lengths[..., None] > 0.0, directions, 0.0)
    correlations = directions @ np.swapaxes(directions, -1, -2)
    diagonal = np.eye(len(spreads), dtype=np.bool_)
    return SumBounds(weights, tuple(spreads), np.where(diagonal, 1.0, correlations))


Scale: TypeAlias = Literal["plain", "fisher-z"]
"""The scale on which a jackknife interval is symmetric: the statistic's own, or its atanh."""


def _jackknife(
    estimate: Floats, left_out: Floats, scale: Scale, sizes: Floats | None
) -> tuple[Floats, Floats, Floats]:
    """Return the estimate on its scale, its standard error and the degrees of freedom."""
    n_clusters = left_out.shape[-1]
    if scale == "fisher-z":
        with np.errstate(divide="ignore", invalid="ignore"):
            estimate, left_out = np.arctanh(estimate), np.arctanh(left_out)
    with np.errstate(invalid="ignore"):
        around = left_out - left_out.mean(axis=-1, keepdims=True)
        # The left-out values of equal clusters may differ in the last bits.
        tiny = np.abs(around).max(axis=-1) <= 1e-13 * (1.0 + np.abs(estimate))
        variance = (n_clusters - 1.0) / n_clusters * (around**2).sum(axis=-1)
    clusters = np.asarray(float(n_clusters)) if sizes is None else _kish(sizes)
    df = np.where(n_clusters > 1, np.maximum(clusters - 1.0, 1.0), np.nan)
    error = np.where(np.isfinite(variance) & ~tiny, np.sqrt(variance), np.nan)
    return estimate, error, df


def jackknife_bounds(
    estimate: npt.ArrayLike,
    left_out: Floats,
    level: float,
    *,
    scale: Scale = "plain",
    sizes: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Return t limits from the values without one cluster each, which are the last axis.

    NaN where one of these is undefined, or all are equal, which tells nothing of the spread. The
    degrees of freedom are those of the clusters' `sizes`, by Kish, where they are given.
    """
    if left_out.shape[-1] < 2:
        nothing = np.full(np.shape(estimate), np.nan)
        return nothing, nothing
    centre, error, df = _jackknife(np.asarray(estimate, np.float64), left_out, scale, sizes)
    half = t_quantile(df, level) * error
    if scale == "plain":
        return np.asarray(centre - half), np.asarray(centre + half)
    return np.tanh(centre - half), np.tanh(centre + half)


def jackknife_p_value(
    estimate: float, left_out: Floats, *, scale: Scale = "plain", sizes: Floats | None = None
) -> float:
    """Return the two-sided p-value that goes with `jackknife_bounds`, of one data set."""
    if left_out.shape[-1] < 2:
        return math.nan
    centre, error, df = _jackknife(np.asarray(estimate), left_out, scale, sizes)
    if math.isnan(float(error)):
        return math.nan
    return t_p_value(float(centre / error), float(df))


def statistic_bounds(
    statistic: Callable[[Floats], npt.ArrayLike], sums: Floats, level: float
) -> tuple[Floats, Floats, str]:
    """Return the limits of a statistic of clusters, `(..., n_clusters, k)`, and their method."""
    totals = sums.sum(axis=-2)
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = np.asarray(statistic(totals), dtype=np.float64)
    parts: tuple[Part, ...] = getattr(statistic, "parts", ())
    found = share_sums(parts, sums) if parts else None
    if found is None:
        with np.errstate(divide="ignore", invalid="ignore"):
            left_out = np.asarray(statistic(totals[..., None, :] - sums), dtype=np.float64)
        return *jackknife_bounds(estimate, left_out, level), "jackknife"
    low, high = found.bounds(level)
    link: Link | None = getattr(statistic, "link", None)
    if link is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = (link(low, totals), link(high, totals))
        # Of a ratio that has no largest value the limit may be infinite, but not undefined.
        low, high = np.minimum(*ends), np.maximum(*ends)
    unknown = np.isnan(estimate) | np.isnan(low) | np.isnan(high)
    low = np.where(unknown, np.nan, np.fmin(low, estimate))
    high = np.where(unknown, np.nan, np.fmax(high, estimate))
    return low, high, "wilson" if len(parts) == 1 else "mover"
