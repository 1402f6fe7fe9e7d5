"""Lexical popularity: how common are the n-grams of a test instance in the training data?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import Floats, check_count, warn_undefined


@dataclass(frozen=True, slots=True, kw_only=True)
class PopularityScale:
    """The boundaries of the popularity bins of a test set's n-gram counts.

    Args:
        edges: The inner boundaries in rising order, one fewer than bins: nine for deciles.

    Raises:
        ValueError: When there is no edge, an edge is not finite, or the edges fall.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, section 4.

    Examples:
        >>> PopularityScale(edges=(0.0, 3.0, 20.0)).popularity([0, 1, 3, 4, 500]).tolist()
        [1, 2, 2, 3, 4]
    """

    edges: tuple[float, ...]
    """Inner boundaries in rising order; equal ones leave the bin between them empty."""

    def __post_init__(self) -> None:
        edges = np.asarray(self.edges, dtype=np.float64)
        if edges.ndim != 1 or edges.size == 0 or not np.isfinite(edges).all():
            raise ValueError(f"edges must be a row of finite numbers; got {self.edges!r}")
        if (np.diff(edges) < 0).any():
            raise ValueError(f"edges must not fall; got {self.edges!r}")

    @property
    def n_bins(self) -> int:
        """Number of bins, which is the highest popularity."""
        return len(self.edges) + 1

    def popularity(self, counts: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the bin of each count, from 1 (rarest) to `n_bins`.

        Args:
            counts: Counts in the training data, any shape.

        Returns:
            Popularity of each, of the same shape. A count on a boundary falls below it, so that
            0 always has popularity 1.

        Raises:
            ValueError: When a count is negative or NaN.
        """
        return np.searchsorted(np.asarray(self.edges), _checked(counts), side="left") + 1


def fit_popularity_scale(counts: npt.ArrayLike, *, n_bins: int = 10) -> PopularityScale:
    """Place the boundaries of popularity at the quantiles of a test set's n-gram counts.

    Args:
        counts: Count in the training data of every n-gram of the test set, shape `(n_ngrams,)`;
            with repetition where an n-gram stands in several instances, or each once, as one likes.
        n_bins: Number of bins: 10 for deciles.

    Returns:
        The scale; `n_bins - 1` linearly interpolated quantiles.

    Raises:
        TypeError: When `n_bins` is not an integer.
        ValueError: When `counts` is empty or not one-dimensional, a count is negative, NaN or
            infinite, or `n_bins` is less than 2.

    Notes:
        Where more than a tenth of the counts are equal, as with n-grams that the corpus lacks,
        several boundaries coincide and the bins between them stay empty: the lowest counts keep
        popularity 1 and the next count may have 4. The paper leaves ties and the weight of repeated
        n-grams open.

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
            "counts, so leave the n-gram out or cap its count"
        )
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"counts must hold the n-grams of a test set; got shape {values.shape}")
    if check_count(n_bins, "n_bins") < 2:
        raise ValueError(f"n_bins must be at least 2; got {n_bins}")
    levels = np.arange(1, n_bins) / n_bins
    return PopularityScale(edges=tuple(np.quantile(values, levels).tolist()))


def instance_popularity(
    counts: Sequence[npt.ArrayLike], *, scale: PopularityScale | None = None, n_bins: int = 10
) -> Floats:
    """Return the Instance Popularity Score: the mean popularity of an instance's n-grams.

    Args:
        counts: For each instance, the counts in the training data of its distinct n-grams.
        scale: Boundaries to use; None fits them to all counts given here. Score the perturbed
            version of a test set on the scale of the original, or nothing can be compared.
        n_bins: Number of bins when the scale is fitted here.

    Returns:
        One score an instance, in [1, n_bins], shape `(n_instances,)`; higher is more common.

    Raises:
        TypeError: When `n_bins` is no integer.
        ValueError: When a count is negative, NaN or no number, or infinite and no scale is given,
            an instance's counts are not one-dimensional, or, without a scale, no instance has an
            n-gram or `n_bins` is below 2.

    Notes:
        An instance without n-grams, being shorter than n tokens, is NaN, with an
        `UndefinedMetricWarning`. The order of the n-grams does not matter. The paper takes 7-grams.

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
                f"counts[{index}] must be one-dimensional, one count an n-gram; got {row.shape}"
            )
        if scale is None and np.isinf(row).any():
            raise ValueError(
                f"counts[{index}] holds an infinite count: leave the n-gram out, or pass a scale"
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
    """Return how much a score of the correct option exceeds that of the wrong one, relatively.

    (correct - wrong) / correct, elementwise, of popularity or of a memorization score.

    Args:
        correct: Scores of the correct options, shape `(n_instances,)`.
        wrong: Scores of the wrong options, in the same order.

    Returns:
        The differences, shape `(n_instances,)`. For popularity with ten bins, in [-9, 0.9];
        positive where the correct option is the more common one.

    Raises:
        ValueError: When the two differ in shape or are not one-dimensional.

    Notes:
        A correct score of 0 gives NaN, with an `UndefinedMetricWarning`; popularity is never 0. For
        negative scores, such as log-likelihoods, the sign turns: positive where the correct
        option's is the further from 0. NaN scores give NaN.

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
