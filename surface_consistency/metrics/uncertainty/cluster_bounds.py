"""Inference for statistics of clusters: a t interval and the p-value of the same t statistic.

A statistic here is a mean of sums over clusters, such as a proportion; a weighted sum of such
means; a function of one of them with other sums fixed; or any other function, which uses the
jackknife. The variance of a sum of means at a hypothesised value is the jackknife variance over
clusters plus a term for few events. This term is 1 / (1 + e) times the minimum variance of a mean
of that value, for events of the observed size and identical rows within a cluster. Here e is the
effective number of clusters that contribute to the jackknife variance, (sum of squared
influences)^2 / sum of their fourth powers. The term is 0 at the value 0. Therefore, for a
difference, 1 / (1 + e)^2 of its square, divided by the number of clusters, is also added. A
statistic without any event, e = 0, has Wilson's interval with clusters as trials; with many events
the term is close to 0. For a difference, the variance at values farther from 0 than the estimate is
at least Tango's variance: that at the most likely rates of gains and losses under the value, times
the observed design effect. Without it, one-sided tests at a margin would reject too often. The
interval contains the values that the t test does not reject, so p is below 1 minus the confidence
level exactly if the interval excludes the value. Degrees of freedom are the effective number of
clusters (Kish) minus one. Arrays may contain many data sets: clusters are the last axis of means
and the second to last axis of sums.

References:
    B. Efron, The Jackknife, the Bootstrap and Other Resampling Plans, SIAM 1982, chapter 3; E. B.
    Wilson, Journal of the American Statistical Association 22, 1927 (variance at the hypothesised
    value); L. Kish, Survey Sampling, Wiley 1965, section 5.4; F. E. Satterthwaite, Biometrics
    Bulletin 2, 1946 (effective number of contributions to a variance); T. Tango, Statistics in
    Medicine 17, 1998 (variance of a paired difference under a hypothesised value).
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from surface_consistency.clusters import LEAST_CLUSTERS
from surface_consistency.metrics._inputs import Flags, Floats
from surface_consistency.metrics.uncertainty import intervals

Link: TypeAlias = Callable[[Floats, Floats], Floats]
"""A function from means, shape `(...)`, and sums over clusters, `(..., k)`, to a statistic."""


class Part(NamedTuple):
    """A mean of summed counts, and its weight in a sum of such means."""

    weight: float
    """Factor of the mean in the sum."""
    above: tuple[float, ...]
    """Weight of each count in the numerator."""
    below: tuple[float, ...]
    """Weight of each count in the denominator."""
    least: float = 0.0
    """Minimum of the mean, at most 0."""
    most: float = 1.0
    """Maximum of the mean, at least 0; infinite limits mean no bounds."""
    reach: float = math.nan
    """Size of a single event in the averaged values: a variable with the values 0 and `reach` has
    the same mean and mean square. If it is NaN, the limit farther from 0 is used."""
    events: float = math.nan
    """Mean size of the events of a paired difference, which have the size `reach`; NaN if each row
    has at most one event, which the numerator counts, and 0 if rows have several."""


class ShareStatistic:
    """A statistic of summed counts that is a function of means; see `of_shares`."""

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
    """Mark a statistic as a weighted sum of means, or as a function of such a sum."""
    return lambda function: ShareStatistic(function, parts, link)


class ClusterT(NamedTuple):
    """A weighted sum of means of clusters, of one or many data sets, with its t inference."""

    value: Floats
    """The sum, shape `(...)`, as are all fields."""
    variance: Floats
    """Jackknife variance of the sum over clusters, pooled over its means if one has few events."""
    few_events: Floats
    """Variance term for few events at a hypothesised value, divided by the minimum variance at that
    value."""
    few_events_within: Floats
    """Further term at values nearer to 0 than the estimate, for a sum with either sign, divided by
    the difference of their squares. It is close to 0 unless all clusters are equal; without it the
    variance would then be 0, and every value would be rejected."""
    df: Floats
    """Degrees of freedom of the variance."""
    n_effective: Floats
    """Effective number of clusters (Kish) of the mean for which it is smallest."""
    least: Floats
    """Minimum of the sum."""
    most: Floats
    """Maximum of the sum."""
    reach: Floats
    """Size of a single event in the sum; 0 if unknown."""
    events: Floats
    """Mean size of the events with either sign of a paired difference; 0 for other sums."""
    event_size: Floats
    """Mean square of the events divided by their mean size."""
    spread: Floats
    """Variance divided by the variance of a single row at the estimated rates of events: the
    observed design effect divided by the number of rows."""

    @property
    def is_inferred(self) -> Flags:
        """Whether there are enough clusters for inference and the variance between them is known.

        If the sum is equal in all clusters, the variance is unknown in two cases: the sum has no
        bounds, or the events of all rows have one size that is not the distance to a bound.
        """
        size = np.abs(self.value)
        varies = self.variance > (1e-12 * size) ** 2
        is_bounded = np.isfinite(self.least) & (self.few_events > 0.0)
        farthest = np.maximum(-self.least, self.most)
        has_one_size = (size > (1.0 - _ROUNDING) * self.reach) & (self.reach < farthest)
        is_known = varies | (is_bounded & ~has_one_size)
        return np.asarray(intervals.enough_clusters(self.n_effective) & is_known)

    @property
    def not_inferred(self) -> str:
        """Reason why there is no inference for one data set; empty if there is."""
        return self.reasons()[0]

    def reasons(self) -> list[str]:
        """Return the reason why there is no inference for each data set; empty if there is."""
        size = np.atleast_1d(self.n_effective)
        alike = "the values are equal in all clusters, so that their spread is unknown"
        return [
            "" if known else alike if enough else intervals.too_few_clusters(float(n))
            for known, enough, n in zip(
                np.atleast_1d(self.is_inferred), intervals.enough_clusters(size), size, strict=True
            )
        ]

    def variance_at(self, null: Floats | float) -> Floats:
        """Return the variance under hypothesised values."""
        size = np.abs(self.value)
        along = np.asarray(null * np.where(self.value < 0.0, -1.0, 1.0), dtype=np.float64)
        farness = np.abs(null)
        at_zero = self.variance + self.few_events_within * size**2
        seen = self.variance + self.few_events_within * np.maximum(size**2 - farness**2, 0.0)
        unseen = self.few_events * np.maximum(farness * self.reach - farness**2, 0.0)
        is_nearer = (along > 0.0) & (farness <= size)
        far = np.maximum(seen + unseen, np.where(is_nearer, 0.0, self._constrained(along)))
        # On the other side of 0, t is at least its value at 0, so the accepted set is an interval.
        with np.errstate(divide="ignore", invalid="ignore"):
            limit = at_zero * (1.0 + farness / size) ** 2
        opposite = np.where(size > 0.0, np.minimum(far, limit), far)
        return np.asarray(np.where(along > 0.0, far, opposite))

    def _constrained(self, along: Floats) -> Floats:
        """Return Tango's variance of a paired difference at values, signed relative to the data."""
        null, value, events = (
            x / self.event_size for x in (along, np.abs(self.value), self.events)
        )
        value, null = np.where(null < 0.0, -value, value), np.minimum(np.abs(null), 1.0)
        half_b = ((2.0 - value) * null - events) / 2.0
        product = np.maximum(events - value, 0.0) * null * (1.0 - null)
        losses = (np.sqrt(half_b**2 + product) - half_b) / 2.0
        of_row = self.event_size**2 * (2.0 * losses + null * (1.0 - null))
        return np.where(self.events > 0.0, np.nan_to_num(self.spread) * of_row, 0.0)

    def _reached(self, quantile: Floats, side: float, near: Floats, far: Floats) -> Floats:
        """Return the distance from 0 up to which values on a side of the data are not rejected.

        By false position (Illinois), since t is nearly linear in the value.
        """
        start, sign = side * np.abs(self.value), np.where(self.value < 0.0, -side, side)

        def excess(place: Floats) -> Floats:
            """Return by how much the distance of a value exceeds the accepted distance."""
            variance = self.variance_at(sign * place)
            return np.asarray(np.abs(place - start) - quantile * np.sqrt(variance))

        low, high, middle = excess(near), excess(far), far
        # A value that is accepted because its variance is 0 is not the limit.
        low = np.where(low < 0.0, low, -np.abs(high))
        is_all, tolerance, last = high <= 0.0, 1e-13 * far, np.zeros_like(far)
        is_found = is_all
        with np.errstate(divide="ignore", invalid="ignore"):
            for _ in range(_STEPS):
                next_place = np.where(high > low, far - high * (far - near) / (high - low), far)
                # A converged limit is kept, so that it does not depend on the other data sets.
                middle = np.where(is_found, middle, next_place)
                at = excess(middle)
                turn = np.where(at <= 0.0, -1.0, 1.0)
                is_found = is_found | ~(np.abs(at) > tolerance)
                if is_found.all():
                    break
                is_again = turn == last
                high = np.where(turn > 0.0, at, np.where(is_again, high / 2.0, high))
                low = np.where(turn < 0.0, at, np.where(is_again, low / 2.0, low))
                near, far = np.where(turn < 0.0, middle, near), np.where(turn > 0.0, middle, far)
                last = turn
        return np.where(is_all, far, middle)

    def t(self, null: Floats | float = 0.0) -> Floats:
        """Return the t statistic of a hypothesised value; 0 if the value equals the estimate."""
        distance = self.value - null
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = distance / np.sqrt(self.variance_at(null))
        return np.where(self.is_inferred, np.where(distance == 0.0, 0.0, statistic), np.nan)

    def p_value(self, null: Floats | float = 0.0) -> Floats:
        """Return the two-sided p-value of a hypothesised value; NaN if there is no inference."""
        return intervals.t_p_value(self.t(null), self.df)

    def bounds(self, confidence: float) -> tuple[Floats, Floats]:
        """Return the limits at a confidence level: the values at which t equals its quantile."""
        size = np.abs(self.value)
        square = intervals.t_quantile(self.df, confidence) ** 2
        few_events, within, error = (
            square * part for part in (self.few_events, self.few_events_within, self.variance)
        )
        middle, rest = size + few_events * self.reach / 2.0, size**2 - error
        half = np.sqrt(np.maximum(error, 0.0))
        # Solve (value - x)^2 = square variance_at(x) in the direction of the value: beyond it,
        # with no term for few events beyond the reach, and between it and 0.
        outer = _root(1.0 + few_events, middle, rest, 1.0)
        outer = np.where(size + half > self.reach, size + half, outer)
        inner = _root(1.0 + few_events + within, middle, rest - within * size**2, -1.0)
        inner = np.minimum(inner, size)
        if (self.least < 0.0).any():
            quantile, farthest = np.sqrt(square), np.maximum(size + half, self.reach)
            if (self.events > 0.0).any():
                reached = self._reached(quantile, 1.0, size, farthest)
                outer = np.where(self.events > 0.0, reached, outer)
            if (inner <= 0.0).any():
                reached = self._reached(quantile, -1.0, np.zeros_like(size), farthest)
                inner = np.where(inner > 0.0, inner, -reached)
        outer, is_negative = np.maximum(outer, size), self.value < 0.0
        low = np.maximum(np.where(is_negative, -outer, inner), self.least)
        high = np.minimum(np.where(is_negative, -inner, outer), self.most)
        known = self.is_inferred
        return np.where(known, low, np.nan), np.where(known, high, np.nan)


# Maximum number of steps of false position; about eight are enough.
_STEPS: Final = 60


def _root(a: Floats, half_b: Floats, c: Floats, side: float) -> Floats:
    """Return the larger or smaller root of a x^2 - 2 half_b x + c."""
    return np.asarray((half_b + side * np.sqrt(np.maximum(half_b**2 - a * c, 0.0))) / a)


def _distinct(sums: Floats) -> tuple[Floats, Floats]:
    """Return the distinct sums of clusters of one data set, and the number of clusters of each.

    Sums that are not counts, or of several data sets, are returned unchanged, each with number 1.
    """
    base = sums.max(initial=0.0) + 1.0
    n_keys = base ** sums.shape[-1]
    is_counted = sums.ndim == 2 and n_keys < 2**53 and sums.min(initial=0.0) == 0.0
    if not (is_counted and (sums == np.floor(sums)).all()):
        return sums, np.ones(sums.shape[-2])
    # Encode counts as digits of one number, which sorts fast.
    places = base ** np.arange(sums.shape[-1])
    keys, times = np.unique((sums @ places).astype(np.int64), return_counts=True)
    return np.floor(keys[:, None] / places) % base, times.astype(np.float64)


def _rests_on(influences: Floats, times: Floats) -> Floats:
    """Return the effective number of clusters (last axis) in a sum of squares; 0 if it is 0."""
    # Scaled, so that fourth powers of small influences do not underflow.
    largest = np.abs(influences).max(axis=-1, initial=0.0, keepdims=True)
    squares = influences / np.where(largest > 0.0, largest, 1.0)
    squares *= squares
    total = squares @ times
    return np.asarray(total**2 / np.where(total > 0.0, squares**2 @ times, 1.0))


def cluster_t(parts: Sequence[Part], sums: Floats) -> ClusterT | None:
    """Return the inference of a weighted sum of means; None if a mean is not between its limits.

    The sums of clusters have shape `(..., n_clusters, k)`.
    """
    return _cluster_t(_fields(parts), *_distinct(sums))


def _fields(parts: Sequence[Part]) -> list[Floats]:
    """Return each field of parts as an array."""
    return [np.asarray(field, dtype=np.float64) for field in zip(*parts, strict=True)]


# Graded events in more clusters than this (Kish) determine their variance.
_MANY: Final = 10.0
# Tolerance for rounding in a mean of sums over clusters.
_ROUNDING = 1e-9


def _cluster_t(fields: Sequence[Floats], sums: Floats, times: Floats) -> ClusterT | None:
    """Return the inference of one statistic, or of several with equal numbers of parts, first axis.

    `times` is the number of clusters with each of the sums.
    """
    weights, *sides, least, most, reaches, events = fields
    columns = np.swapaxes(sums, -1, -2)
    above, below = (side @ columns for side in sides)
    is_counted = np.isnan(events)
    with np.errstate(divide="ignore", invalid="ignore"):
        size, square = (
            np.abs(sides[0]) ** power @ columns @ times / (below @ times) for power in (1, 2)
        )
    is_known = ~is_counted | (np.isfinite(least) & (sums >= 0.0).all())
    return mean_t(
        above,
        below,
        weights=weights,
        least=least,
        most=most,
        reaches=reaches,
        events=np.where(is_known, np.where(is_counted, size, events), np.nan),
        squares=np.where(is_counted, square, events * reaches),
        times=times,
    )


def mean_t(
    above: Floats,
    below: Floats,
    *,
    weights: Floats,
    least: Floats,
    most: Floats,
    reaches: Floats,
    events: Floats,
    squares: Floats,
    times: Floats,
    are_disjoint: bool = False,
) -> ClusterT | None:
    """Return the inference of weighted sums of means, of one or many data sets.

    Args:
        above: Numerator of each mean within each cluster, shape `(..., n_means, n_clusters)`.
        below: Denominator of each mean within each cluster; the shapes are broadcast.
        weights: Weight of each mean, shape `(..., n_means)`, as are all further fields of `Part`.
        least: Minimum of each mean.
        most: Maximum of each mean.
        reaches: Size of a single event in each mean.
        events: Mean size of the events of a paired difference; NaN if unknown.
        squares: Their mean square.
        times: Number of clusters that each entry of the last axis represents.
        are_disjoint: Whether the clusters of different means are different, so that no cluster
            contributes to two means.

    Returns:
        The inference, with all fields of the same shape; None if a mean is not between its limits.
    """
    if np.isfinite(least).all():
        slack = _ROUNDING * np.maximum(below, 0.0)
        floor, ceiling = (end[..., None] * below for end in (least, most))
        if (above < floor - slack).any() or (above > ceiling + slack).any():
            return None
    of_clusters = np.tile(times, weights.shape[-1]) if are_disjoint else times

    def by_cluster(of_means: Floats) -> Floats:
        """Sum the contributions of a cluster to several means."""
        if are_disjoint:
            return of_means.reshape(*of_means.shape[:-2], -1)
        return np.asarray(of_means.sum(axis=-2))

    with np.errstate(divide="ignore", invalid="ignore"):
        total = below @ times
        share = below / total[..., None]
        means = above @ times / total
        # Change of each mean if a cluster is omitted; a cluster with all rows removes all of it.
        left = np.where(share < 1.0, total[..., None] - below, 1.0)
        moved = weights[..., None] * (above - means[..., None] * below) / left
        variances = _jackknife_variance(moved, below, times)
        rests_on = _rests_on(moved, times)
        # If many clusters contribute evenly to graded events, there is no term for few events.
        is_graded = (least >= 0.0) & (reaches < (1.0 - _ROUNDING) * most)
        if is_graded.any():
            n_holding = np.where(is_graded, intervals.effective_number(above, times), 0.0)
            rests_on = np.where(n_holding > _MANY, np.fmax(rests_on, n_holding**2), rests_on)
        rests_on_sum = rests_on
        variance = variances.sum(axis=-1)
        if weights.shape[-1] > 1:
            moved_sum = by_cluster(moved)
            variance = _jackknife_variance(moved_sum, by_cluster(below), of_clusters)
            rests_on_sum = _rests_on(moved_sum, of_clusters)[..., None]
        crowding = share**2 @ times
        scale = weights**2 * crowding
        unseen = (scale / scale.sum(axis=-1, keepdims=True) / (1.0 + rests_on)).sum(axis=-1)
        unseen_sum = 1.0 / (1.0 + rests_on_sum[..., 0])
        unseen = np.maximum(unseen, unseen_sum)
        # A mean without events uses the pooled variance of the others, as Student's test does.
        pooled = (variances / (scale * crowding)).sum(axis=-1) / (1.0 / crowding).sum(axis=-1)
        borrowed = scale.sum(axis=-1) * pooled - variances.sum(axis=-1)
        weighed = by_cluster(scale[..., None] * share)
        degrees = intervals.effective_number(weighed, of_clusters) - 1.0
        ends = np.sort(weights * np.stack([least, most]), axis=0).sum(axis=-1)
        farthest = np.maximum(-ends[0], ends[1])
        is_given = ~np.isnan(reaches).any(axis=-1)
        reach = np.where(is_given, (np.abs(weights) * reaches).sum(axis=-1), farthest)
        reach = np.where(np.isfinite(reach), reach, 0.0)
        largest = np.where(reach > 0.0, (np.abs(weights) * crowding).max(axis=-1), 0.0)
        value = np.asarray((weights * means).sum(axis=-1))
        variance = np.asarray(variance + unseen * np.maximum(borrowed, 0.0))
        # For a paired difference: the size of its events, and the variance of independent rows.
        size, square = ((weights * x).sum(axis=-1) for x in (events, squares))
        is_paired = (ends[0] < 0.0) & ((weights > 0.0) & ~np.isnan(events)).all(axis=-1)
        of_row = square - value**2
        spread = np.where(of_row > 1e-12 * square, variance / of_row, 0.0)
    of_fields = ClusterT(
        value=value,
        variance=variance,
        few_events=np.asarray(largest * unseen),
        few_events_within=np.where(ends[0] < 0.0, largest * unseen_sum**2, 0.0),
        df=degrees,
        n_effective=np.asarray((1.0 / crowding).min(axis=-1)),
        least=ends[0],
        most=ends[1],
        reach=reach,
        events=np.where(is_paired & (square > 0.0), size, 0.0),
        event_size=np.where(square > 0.0, square / np.where(size > 0.0, size, 1.0), 1.0),
        spread=spread,
    )
    return ClusterT._make(np.broadcast_arrays(*of_fields))


def _jackknife_variance(moved: Floats, sizes: Floats, times: Floats) -> Floats:
    """Return the jackknife variance from the changes when each cluster of size > 0 is omitted."""
    n_clusters = (sizes > 0.0) @ times
    return np.asarray((n_clusters - 1.0) / n_clusters * (moved**2 @ times))


Scale: TypeAlias = Literal["plain", "fisher-z"]
"""The scale on which a jackknife interval is symmetric: the statistic, or its atanh."""


class StudentBounds(NamedTuple):
    """A statistic of clusters, of one or many data sets, with its jackknife t limits."""

    value: Floats
    """The statistic on the scale on which its interval is symmetric, shape `(...)`."""
    error: Floats
    """Its standard error; NaN if the clusters do not determine it."""
    df: Floats
    """Degrees of freedom of the standard error."""
    is_fisher_z: Flags
    """Whether that scale is the atanh of the statistic."""

    def bounds(self, confidence: float) -> tuple[Floats, Floats]:
        """Return the limits at a confidence level, on the scale of the statistic."""
        half = intervals.t_quantile(self.df, confidence) * self.error
        ends = np.stack([self.value - half, self.value + half])
        low, high = np.where(self.is_fisher_z, np.tanh(ends), ends)
        return low, high

    def p_value(self, null: float = 0.0) -> Floats:
        """Return the two-sided p-value of `null`, a value on the scale of the interval."""
        return intervals.t_p_value((self.value - null) / self.error, self.df)


def jackknife(
    estimate: npt.ArrayLike,
    left_out: Floats,
    *,
    scale: Scale = "plain",
    sizes: Floats | None = None,
) -> StudentBounds:
    """Return t limits from the values with one cluster omitted each, along the last axis.

    The limits are NaN if one of the values is undefined or all are equal, so that the variance is
    unknown. If `sizes` of the clusters are given, the degrees of freedom come from the effective
    number of clusters (Kish).
    """
    value, n_clusters = np.asarray(estimate, dtype=np.float64), left_out.shape[-1]
    if n_clusters < 2:
        undefined = np.full(value.shape, np.nan)
        return StudentBounds(value, undefined, undefined, np.asarray(False))
    if scale == "fisher-z":
        with np.errstate(divide="ignore", invalid="ignore"):
            value, left_out = np.arctanh(value), np.arctanh(left_out)
    with np.errstate(invalid="ignore"):
        around = left_out - left_out.mean(axis=-1, keepdims=True)
        # The values for equal clusters may differ in the last bits.
        tiny = np.abs(around).max(axis=-1) <= 1e-13 * (1.0 + np.abs(value))
        variance = (n_clusters - 1.0) / n_clusters * (around**2).sum(axis=-1)
    df = np.maximum((n_clusters if sizes is None else intervals.effective_number(sizes)) - 1.0, 1.0)
    error = np.where(np.isfinite(variance) & ~tiny, np.sqrt(variance), np.nan)
    return StudentBounds(value, error, np.asarray(df), np.asarray(scale == "fisher-z"))


def cluster_ts(
    statistics: Mapping[str, Callable[[Floats], npt.ArrayLike]], sums: Floats
) -> dict[str, ClusterT]:
    """Return, by name, the inference of statistics of the same clusters that are sums of means.

    Statistics with equal numbers of means are computed together; other statistics are omitted.
    """
    alike: dict[int, dict[str, list[Floats]]] = {}
    for name, statistic in statistics.items():
        parts = parts_of(statistic)
        if parts:
            alike.setdefault(len(parts), {})[name] = _fields(parts)
    inferred: dict[str, ClusterT] = {}
    distinct, times = _distinct(sums)
    for fields in alike.values():
        stacked = [np.stack(field) for field in zip(*fields.values(), strict=True)]
        together = _cluster_t(stacked, distinct, times)
        if together is not None:
            inferred |= zip(fields, map(ClusterT._make, zip(*together, strict=True)), strict=True)
    return inferred


def parts_of(statistic: Callable[[Floats], npt.ArrayLike]) -> tuple[Part, ...]:
    """Return the means from which a statistic is computed; empty for other statistics."""
    parts: tuple[Part, ...] = getattr(statistic, "parts", ())
    return parts


def statistic_bounds(
    statistic: Callable[[Floats], npt.ArrayLike], sums: Floats, confidence: float
) -> tuple[Floats, Floats]:
    """Return the limits of a statistic of clusters, `(..., n_clusters, k)`."""
    totals, parts = sums.sum(axis=-2), parts_of(statistic)
    inferred = cluster_t(parts, sums) if parts else None
    if inferred is not None:
        return inferred_bounds(statistic, totals, inferred, confidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = np.asarray(statistic(totals), dtype=np.float64)
        left_out = np.asarray(statistic(totals[..., None, :] - sums), dtype=np.float64)
    low, high = jackknife(estimate, left_out).bounds(confidence)
    too_few = sums.shape[-2] < LEAST_CLUSTERS
    return np.where(too_few, np.nan, low), np.where(too_few, np.nan, high)


def inferred_bounds(
    statistic: Callable[[Floats], npt.ArrayLike],
    totals: Floats,
    inferred: ClusterT,
    confidence: float,
) -> tuple[Floats, Floats]:
    """Return the limits of a statistic of summed counts, `(..., k)`, from its sum of means."""
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = np.asarray(statistic(totals), dtype=np.float64)
    low, high = inferred.bounds(confidence)
    link: Link | None = getattr(statistic, "link", None)
    if link is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = (link(low, totals), link(high, totals))
        # The limit of a ratio without a maximum may be infinite, but must not be undefined.
        low, high = np.minimum(*ends), np.maximum(*ends)
    unknown = np.isnan(estimate) | np.isnan(low) | np.isnan(high)
    low = np.where(unknown, np.nan, np.fmin(low, estimate))
    high = np.where(unknown, np.nan, np.fmax(high, estimate))
    return low, high
