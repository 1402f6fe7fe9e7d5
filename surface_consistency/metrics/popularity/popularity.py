"""Lexical popularity: how common the n-grams of a test instance are in the training data."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import Floats, check_count, warn_undefined


@dataclass(frozen=True, slots=True, kw_only=True)
class PopularityScale:
    """Boundaries of the popularity bins of n-gram counts of a test set.

    Args:
        edges: The inner boundaries in increasing order, one fewer than the number of bins: nine for
            deciles.

    Raises:
        ValueError: If there is no edge, an edge is not finite, or the edges decrease.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, section 4.

    Examples:
        >>> PopularityScale(edges=(0.0, 3.0, 20.0)).popularity([0, 1, 3, 4, 500]).tolist()
        [1, 2, 2, 3, 4]
    """

    edges: tuple[float, ...]
    """Inner boundaries in increasing order; the bin between two equal ones is empty."""

    def __post_init__(self) -> None:
        edges = np.asarray(self.edges, dtype=np.float64)
        if edges.ndim != 1 or edges.size == 0 or not np.isfinite(edges).all():
            raise ValueError(f"edges must be finite numbers, at least one; got {self.edges!r}")
        if (np.diff(edges) < 0).any():
            raise ValueError(f"edges must not decrease; got {self.edges!r}")

    @property
    def n_bins(self) -> int:
        """Number of bins, which is also the highest popularity."""
        return len(self.edges) + 1

    def popularity(self, counts: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the bin of each count, from 1 (rarest) to `n_bins`.

        Args:
            counts: Counts in the training data, any shape.

        Returns:
            Popularity of each, of the same shape. A count equal to a boundary is in the bin below
            it, so 0 always has popularity 1.

        Raises:
            ValueError: If a count is negative or NaN.
        """
        return np.searchsorted(np.asarray(self.edges), _checked(counts), side="left") + 1


def fit_popularity_scale(counts: npt.ArrayLike, *, n_bins: int = 10) -> PopularityScale:
    """Return popularity bins with boundaries at the quantiles of the n-gram counts of a test set.

    Args:
        counts: Count in the training data of every n-gram of the test set, shape `(n_ngrams,)`. An
            n-gram that occurs in several instances can be repeated or included once.
        n_bins: Number of bins: 10 for deciles.

    Returns:
        The scale; `n_bins - 1` linearly interpolated quantiles.

    Raises:
        TypeError: If `n_bins` is not an integer.
        ValueError: If `counts` is empty or not one-dimensional, a count is negative, NaN or
            infinite, or `n_bins` is less than 2.

    Notes:
        If more than a tenth of the counts are equal, as for n-grams that are not in the corpus,
        several boundaries coincide and the bins between them are empty. The lowest counts then have
        popularity 1, and the next count may have 4. The paper does not specify the treatment of
        ties and the weight of repeated n-grams.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, section 4.

    Examples:
        >>> scale = fit_popularity_scale(range(1, 101))
        >>> len(scale.edges), scale.edges[0], scale.popularity([1, 10, 11, 100]).tolist()
        (9, 10.9, [1, 1, 2, 10])
    """
    values = _checked(counts)
    if np.isinf(values).any():
        raise ValueError(
            f"counts[{int(np.argmax(np.isinf(values)))}] is infinite: boundaries need finite "
            "counts, so drop the n-gram or cap its count"
        )
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"counts must be one-dimensional and not empty; got shape {values.shape}")
    if check_count(n_bins, "n_bins") < 2:
        raise ValueError(f"n_bins must be at least 2; got {n_bins}")
    levels = np.arange(1, n_bins) / n_bins
    return PopularityScale(edges=tuple(np.quantile(values, levels).tolist()))


def instance_popularity(
    counts: Sequence[npt.ArrayLike], *, scale: PopularityScale | None = None, n_bins: int = 10
) -> Floats:
    """Return the Instance Popularity Score, the mean popularity of the n-grams of an instance.

    Args:
        counts: For each instance, the counts in the training data of its distinct n-grams.
        scale: Boundaries of the bins; None computes them from `counts`. Score the perturbed version
            of a test set on the scale of the original, otherwise the scores are not comparable.
        n_bins: Number of bins if `scale` is None.

    Returns:
        One score per instance, in [1, n_bins], shape `(n_instances,)`; higher is more common.

    Raises:
        TypeError: If `n_bins` is not an integer.
        ValueError: If a count is negative, NaN or not a number, or infinite without a scale, the
            counts of an instance are not one-dimensional, or, without a scale, no instance has an
            n-gram or `n_bins` is below 2.

    Notes:
        For an instance without n-grams (shorter than n tokens) the score is NaN, with an
        `UndefinedMetricWarning`. The order of the n-grams does not matter. The paper uses 7-grams.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, section 4, the equation of IPS.

    Examples:
        >>> instance_popularity([[0, 0, 5], [5, 9, 40]], n_bins=4).round(3).tolist()
        [1.333, 3.333]
    """
    rows = [_checked(row) for row in counts]
    for index, row in enumerate(rows):
        if row.ndim != 1:
            raise ValueError(
                f"counts[{index}] must be one-dimensional, one count per n-gram; got {row.shape}"
            )
        if scale is None and np.isinf(row).any():
            raise ValueError(
                f"counts[{index}] has an infinite count: drop the n-gram, or pass a scale"
            )
    joined = np.concatenate(rows) if rows else np.empty(0)
    levels = fit_popularity_scale(joined, n_bins=n_bins) if scale is None else scale
    lengths = np.asarray([row.size for row in rows], dtype=np.int64)
    owner = np.repeat(np.arange(len(rows)), lengths)
    summed = np.bincount(owner, weights=levels.popularity(joined), minlength=len(rows))
    empty = int(np.count_nonzero(lengths == 0))
    if empty:
        warn_undefined(f"{empty} of {len(rows)} instances have no n-gram; their popularity is NaN")
    return np.asarray(np.divide(summed, lengths, out=np.full(len(rows), np.nan), where=lengths > 0))


def relative_difference(correct: npt.ArrayLike, wrong: npt.ArrayLike) -> Floats:
    """Return the relative difference of a score between the correct and the incorrect option.

    (correct - wrong) / correct, elementwise, of popularity or of a memorization score.

    Args:
        correct: Scores of the correct options, shape `(n_instances,)`.
        wrong: Scores of the incorrect options, in the same order.

    Returns:
        The differences, shape `(n_instances,)`. For popularity with ten bins, in [-9, 0.9];
        positive if the correct option is more common.

    Raises:
        ValueError: If the two differ in shape or are not one-dimensional.

    Notes:
        If the score of the correct option is 0, the result is NaN, with an
        `UndefinedMetricWarning`; popularity is never 0. For negative scores, such as
        log-likelihoods, the sign is reversed: it is positive if the score of the correct option is
        farther from 0. A NaN score gives NaN.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, sections 4 and 6.

    Examples:
        >>> relative_difference([8.0, 2.0], [4.0, 5.0]).tolist()
        [0.5, -1.5]
    """
    first, second = np.asarray(correct, dtype=np.float64), np.asarray(wrong, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(
            "correct and wrong must be one-dimensional and equally long; got shapes "
            f"{first.shape} and {second.shape}"
        )
    zeros = int(np.count_nonzero(first == 0.0))
    if zeros:
        warn_undefined(
            f"the relative difference is undefined (NaN) for {zeros} correct scores of 0"
        )
    return np.asarray(
        np.divide(first - second, first, out=np.full(first.shape, np.nan), where=first != 0.0)
    )


def _checked(counts: npt.ArrayLike) -> Floats:
    values = np.asarray(counts, dtype=np.float64)
    if not (values >= 0.0).all():
        bad = values[~(values >= 0.0)].ravel()[0]
        raise ValueError(f"counts must be at least 0; got {bad}")
    return values
