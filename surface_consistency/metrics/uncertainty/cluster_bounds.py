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
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import Flags, Floats, Integers
from surface_consistency.metrics.uncertainty.intervals import t_p_value, t_quantile

__all__ = [
    "Link",
    "Part",
    "Scale",
    "ShareStatistic",
    "StudentBounds",
    "SumBounds",
    "jackknife",
    "limits_of_sums",
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


def _wilson_bounds(
    share: Floats, n: Floats, df: Floats, level: npt.ArrayLike
) -> tuple[Floats, Floats]:
    """Return Wilson's limits, with a quantile of t for one of the normal distribution."""
    square = t_quantile(df, level) ** 2
    shrink = 1.0 + square / n
    centre = share + square / (2.0 * n)
    half = np.sqrt(square * (share * (1.0 - share) / n + square / (4.0 * n**2)))
    low = np.where(share <= _ROUNDING, 0.0, np.clip((centre - half) / shrink, 0.0, share))
    high = np.where(share >= 1.0 - _ROUNDING, 1.0, np.clip((centre + half) / shrink, share, 1.0))
    unknown = np.isnan(half)
    return np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)


def _exact_limit(events: Floats, n: Floats, level: npt.ArrayLike) -> Floats:
    """Return the rate at which so many events or more have the chance 1 - level."""
    from scipy.special import betaincinv

    few = (events > 0.0) & (2.0 * events <= n)
    usable = np.where(few, events, 1.0)
    limits = betaincinv(usable, np.where(few, n, 1.0) - usable + 1.0, 1.0 - np.asarray(level))
    return np.where(few, limits, 1.0)


class SumBounds(NamedTuple):
    """A weighted sum of shares of clusters, of one or many data sets, with its limits."""

    weights: Floats
    """Weight of each share, shape `(..., n_shares)`."""
    share: Floats
    """The shares, in [0, 1], shape `(..., n_shares)`."""
    n: Floats
    """Number of independent trials that the clusters are worth to each share."""
    df: Floats
    """Degrees of freedom of the variance of each share between clusters, at least 1."""
    correlations: Floats
    """Correlations of the shares between clusters, shape `(..., n_shares, n_shares)`."""
    n_clusters: Integers
    """Number of clusters, shape `(...)`."""

    @property
    def value(self) -> Floats:
        """The sum, shape `(...)`."""
        return np.asarray((self.weights * self.share).sum(axis=-1))

    def bounds(self, level: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Return the MOVER limits at a level, or at one for each data set, shape `(...)`.

        Those of one share of weight 1 are its own: Wilson's, or those of Clopper and Pearson on one
        side where these are wider.
        """
        share, n, weights, levels = self.share, self.n, self.weights, np.asarray(level)[..., None]
        low, high = _wilson_bounds(share, n, self.df, levels)
        if weights.shape[-1] == 1 and (weights == 1.0).all():
            low = np.minimum(low, _exact_limit(share * n, n, levels))
            high = np.maximum(high, 1.0 - _exact_limit(n - share * n, n, levels))
            return low[..., 0], high[..., 0]
        below, above = weights * (share - low), weights * (high - share)
        down, up = np.where(weights > 0.0, (below, above), (above, below))
        least, most = (limit(weights, 0.0).sum(axis=-1) for limit in (np.minimum, np.maximum))
        low = np.maximum(self.value - self._length(down), least)
        return low, np.minimum(self.value + self._length(up), most)

    def _length(self, steps: Floats) -> Floats:
        """Return the root of the steps' squares and, as far as they go together, products."""
        products = steps[..., :, None] * self.correlations * steps[..., None, :]
        # Shares that go together in all clusters at hand need not in others.
        damping = 1.0 - _PRIOR_CLUSTERS / self.n_clusters[..., None, None]
        products = np.where(products < 0.0, damping * products, products)
        return np.asarray(np.sqrt(np.maximum(products.sum(axis=(-2, -1)), 0.0)))

    def p_value(self, null: float = 0.0) -> Floats:
        """Return 1 less the level at which the interval of each data set first reaches `null`."""
        value = self.value - null
        is_unknown = np.isnan(value) | np.isnan(self.bounds(0.5)[0])

        def left(root: Floats) -> Floats:
            """Return what parts the bound from `null`, whose steps in `root` are nearly equal."""
            low, high = self.bounds(-np.expm1(-(root**2)))
            return np.where(value < 0.0, null - high, low - null)

        # Beyond e^-36 the level rounds to 1, whose quantile is infinite.
        ends = np.zeros(value.shape), np.full(value.shape, 6.0)
        heights, side = (np.abs(value), left(ends[1])), np.zeros(value.shape)
        root = np.where(value == 0.0, *ends)
        is_open = ~is_unknown & (value != 0.0) & (heights[1] <= 0.0)
        # Regula falsi, by the rule of Illinois: an end that stays again has half its height.
        for _ in range(60):
            with np.errstate(divide="ignore", invalid="ignore"):
                step = heights[0] * (ends[1] - ends[0]) / (heights[1] - heights[0])
            root = np.where(is_open, ends[0] - step, root)
            height = left(root)
            is_open &= (np.abs(height) > 1e-13) & (ends[1] - ends[0] > 1e-12)
            if not is_open.any():
                break
            moves = np.where(height < 0.0, 1.0, -1.0)
            halved = [np.where(moves * side > 0.0, old / 2.0, old) for old in heights]
            is_upper = moves > 0.0
            heights = np.where(is_upper, halved[0], height), np.where(is_upper, height, halved[1])
            ends = np.where(is_upper, ends[0], root), np.where(is_upper, root, ends[1])
            side = moves
        return np.where(is_unknown & (value != 0.0), np.nan, np.exp(-(root**2)))


def share_sums(parts: Sequence[Part], sums: Floats) -> SumBounds | None:
    """Return the weighted sum of shares of clusters; None where a part is no share of them."""
    return _share_sums(_weights(parts), sums)


def _weights(parts: Sequence[Part]) -> list[Floats]:
    """Return the weights of parts, and those of the counts above and below the line of each."""
    return [np.asarray(field, dtype=np.float64) for field in zip(*parts, strict=True)]


def _share_sums(fields: Sequence[Floats], sums: Floats) -> SumBounds | None:
    """Return the sums of one statistic, or of several of one number of parts, the first axis."""
    weights, *sides = fields
    above, below = (side @ np.swapaxes(sums, -1, -2) for side in sides)
    slack = _ROUNDING * np.maximum(below, 0.0)
    if (above < -slack).any() or (above > below + slack).any():
        return None
    share, n, df, influences = _spread(np.clip(above, 0.0, below), below)
    lengths = np.sqrt((influences**2).sum(axis=-1))[..., None]
    directions = np.divide(influences, lengths, out=np.zeros_like(influences), where=lengths > 0.0)
    correlations = directions @ np.swapaxes(directions, -1, -2)
    correlations = np.where(np.eye(weights.shape[-1], dtype=np.bool_), 1.0, correlations)
    return SumBounds(weights, share, n, df, correlations, np.asarray(sums.shape[-2]))


Scale: TypeAlias = Literal["plain", "fisher-z"]
"""The scale on which a jackknife interval is symmetric: the statistic's own, or its atanh."""


class StudentBounds(NamedTuple):
    """A statistic of clusters, of one or many data sets, with its jackknife t limits."""

    value: Floats
    """The statistic on the scale on which its interval is symmetric, shape `(...)`."""
    error: Floats
    """Its standard error; NaN where the clusters tell nothing of it."""
    df: Floats
    """Degrees of freedom of the standard error."""
    is_fisher_z: Flags
    """Whether that scale is the atanh of the statistic's own."""

    def bounds(self, level: float) -> tuple[Floats, Floats]:
        """Return the limits at a level, on the statistic's own scale."""
        half = t_quantile(self.df, level) * self.error
        ends = np.stack([self.value - half, self.value + half])
        low, high = np.where(self.is_fisher_z, np.tanh(ends), ends)
        return low, high

    def p_value(self, null: float = 0.0) -> Floats:
        """Return the two-sided p-value of `null`, a value on the scale of the interval."""
        return t_p_value((self.value - null) / self.error, self.df)


def jackknife(
    estimate: npt.ArrayLike,
    left_out: Floats,
    *,
    scale: Scale = "plain",
    sizes: Floats | None = None,
) -> StudentBounds:
    """Return t limits from the values without one cluster each, which are the last axis.

    NaN where one of these is undefined, or all are equal, which tells nothing of the spread. The
    degrees of freedom are those of the clusters' `sizes`, by Kish, where they are given.
    """
    value, n_clusters = np.asarray(estimate, dtype=np.float64), left_out.shape[-1]
    if n_clusters < 2:
        nothing = np.full(value.shape, np.nan)
        return StudentBounds(value, nothing, nothing, np.asarray(False))
    if scale == "fisher-z":
        with np.errstate(divide="ignore", invalid="ignore"):
            value, left_out = np.arctanh(value), np.arctanh(left_out)
    with np.errstate(invalid="ignore"):
        around = left_out - left_out.mean(axis=-1, keepdims=True)
        # The left-out values of equal clusters may differ in the last bits.
        tiny = np.abs(around).max(axis=-1) <= 1e-13 * (1.0 + np.abs(value))
        variance = (n_clusters - 1.0) / n_clusters * (around**2).sum(axis=-1)
    df = np.maximum((n_clusters if sizes is None else _kish(sizes)) - 1.0, 1.0)
    error = np.where(np.isfinite(variance) & ~tiny, np.sqrt(variance), np.nan)
    return StudentBounds(value, error, np.asarray(df), np.asarray(scale == "fisher-z"))


_Limits: TypeAlias = tuple[Floats, Floats]


def limits_of_sums(
    statistics: Mapping[str, Callable[[Floats], npt.ArrayLike]], sums: Floats, level: float
) -> dict[str, _Limits]:
    """Return the limits of the sums of shares behind statistics of the same clusters, by name.

    Those of one number of shares are computed together; statistics of none are left out.
    """
    alike: dict[tuple[int, bool], dict[str, list[Floats]]] = {}
    for name, statistic in statistics.items():
        parts: tuple[Part, ...] = getattr(statistic, "parts", ())
        if parts:
            alike.setdefault((len(parts), parts[0].weight == 1.0), {})[name] = _weights(parts)
    limits: dict[str, _Limits] = {}
    for weights in alike.values():
        added = _share_sums(
            [np.stack(field) for field in zip(*weights.values(), strict=True)], sums
        )
        if added is not None:
            limits |= zip(weights, zip(*added.bounds(level), strict=True), strict=True)
    return limits


def statistic_bounds(
    statistic: Callable[[Floats], npt.ArrayLike],
    sums: Floats,
    level: float,
    limits: _Limits | None = None,
) -> tuple[Floats, Floats, str]:
    """Return the limits of a statistic of clusters, `(..., n_clusters, k)`, and their method.

    Those of its sum of shares are computed where `limits` does not give them.
    """
    totals = sums.sum(axis=-2)
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = np.asarray(statistic(totals), dtype=np.float64)
    parts: tuple[Part, ...] = getattr(statistic, "parts", ())
    if limits is None and parts:
        added = share_sums(parts, sums)
        limits = None if added is None else added.bounds(level)
    if limits is None:
        with np.errstate(divide="ignore", invalid="ignore"):
            left_out = np.asarray(statistic(totals[..., None, :] - sums), dtype=np.float64)
        return *jackknife(estimate, left_out).bounds(level), "jackknife"
    low, high = limits
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
