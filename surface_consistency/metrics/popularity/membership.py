"""Membership inference: does the loss of a text suggest that a model was trained on it?"""

import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics.popularity._log_likelihoods import token_rows

__all__ = ["membership_loss", "neighbourhood_score"]


def membership_loss(
    log_likelihoods: Sequence[Sequence[float | None]],
) -> npt.NDArray[np.float64]:
    """Return the loss of each text: its mean negative log-likelihood a token.

    Args:
        log_likelihoods: For each text, the natural log-likelihood of each of its tokens given those
            before; a first token without value (None or NaN) is left out.

    Returns:
        One loss a text, at least 0, shape `(n_texts,)`; lower suggests membership. Its exponential
        is the perplexity.

    Raises:
        ValueError: When a log-likelihood exceeds 0 or is missing after the first token.

    Notes:
        A text without tokens is NaN, with an `UndefinedMetricWarning`.

    References:
        Mireshghallah et al., EMNLP 2022; Ruzzetti, Zanzotto and Caselli, Lexical Popularity,
        section 6 (MIA Loss).

    Examples:
        >>> membership_loss([[None, -2.0, -1.0], [-0.5]]).tolist()
        [1.5, 0.5]
    """
    rows = [row[~np.isnan(row)] for row in token_rows(log_likelihoods)]
    return _with_warning([-row.mean() if row.size else np.nan for row in rows], "tokens")


def neighbourhood_score(
    losses: npt.ArrayLike, neighbour_losses: Sequence[npt.ArrayLike]
) -> npt.NDArray[np.float64]:
    """Return how far the loss of each text lies below that of its perturbed neighbours.

    Args:
        losses: Loss of each text, shape `(n_texts,)`.
        neighbour_losses: For each text, the losses of its neighbours: versions with some words
            replaced.

    Returns:
        Loss less the mean loss of the neighbours, shape `(n_texts,)`; negative, the text being
        likelier than its neighbours, suggests membership.

    Raises:
        ValueError: When the numbers of texts differ, or a loss is not finite.

    Notes:
        A text without neighbours is NaN, with an `UndefinedMetricWarning`. Adding a constant to all
        losses of a text changes nothing.

    References:
        Mattern et al., Findings of ACL 2023; Ruzzetti, Zanzotto and Caselli, Lexical Popularity,
        section 6 (MIA Neighbors).

    Examples:
        >>> neighbourhood_score([2.0, 3.0], [[2.5, 3.5], [3.0]]).tolist()
        [-1.0, 0.0]
    """
    own = np.asarray(losses, dtype=np.float64)
    if own.ndim != 1 or own.size != len(neighbour_losses):
        raise ValueError(
            "losses must hold one loss a text, and neighbour_losses one row a text; got shape "
            f"{own.shape} and {len(neighbour_losses)} rows"
        )
    rows = [np.asarray(row, dtype=np.float64) for row in neighbour_losses]
    for index, row in enumerate(rows):
        if not (np.isfinite(own[index]) and np.isfinite(row).all()):
            raise ValueError(f"text {index} has a loss that is not finite: leave it out first")
    means = _with_warning([row.mean() if row.size else np.nan for row in rows], "neighbours")
    return np.asarray(own - means)


def _with_warning(values: list[float], lacking: str) -> npt.NDArray[np.float64]:
    """Return the values, and say how many are NaN for lack of something."""
    found = np.asarray(values, dtype=np.float64)
    undefined = int(np.count_nonzero(np.isnan(found)))
    if undefined:
        warnings.warn(
            f"{undefined} of {found.size} texts have no {lacking}; their score is NaN",
            UndefinedMetricWarning,
            stacklevel=3,
        )
    return found
