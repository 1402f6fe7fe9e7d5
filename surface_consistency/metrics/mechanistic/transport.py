"""Answer similarity from token similarities, by optimal transport."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics.mechanistic._token_matrix import token_matrix

__all__ = ["TransportResult", "transport_similarity"]

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TransportResult:
    """Result of `transport_similarity`."""

    similarity: float
    """Mean of the token similarities under the plan, between their smallest and largest."""
    plan: _Floats
    """Share of the answers that each pair of tokens carries, shape `(n_short_tokens,
    n_long_tokens)`; at least 0, its rows and columns summing to the weights."""


def transport_similarity(
    matrix: npt.ArrayLike,
    *,
    short_weights: npt.ArrayLike | None = None,
    long_weights: npt.ArrayLike | None = None,
) -> TransportResult:
    """Match the tokens of two answers so that their total similarity is largest.

    The plan pi maximises sum_ij pi_ij M_ij over pi_ij >= 0 whose rows sum to the weights of the
    short answer's tokens and whose columns to those of the long one; that maximum is the similarity
    of the answers.

    Args:
        matrix: Token similarities M, shape `(n_short_tokens, n_long_tokens)`, as from
            `token_similarity`.
        short_weights: Weight of each token of the short answer; None for equal weights.
        long_weights: Weight of each token of the long answer; None for equal weights.

    Returns:
        The similarity and the plan.

    Raises:
        ValueError: When `matrix` is empty, not two-dimensional or holds a value that is not finite,
            or weights do not fit, are negative or sum to 0.
        RuntimeError: When the linear program cannot be solved.

    Notes:
        The paper does not state the constraints: equal weights that sum to 1 make the result the
        weighted average that it calls it. The similarity is unique, the plan need not be. Swapping
        the answers transposes the plan; the order of tokens does not matter. Adding a constant to M
        adds it to the similarity.

    References:
        SLAQ, arXiv 2510.11218, eq. 9; Rubner, Tomasi and Guibas, International Journal of Computer
        Vision 40, 2000 (earth mover's distance).

    Examples:
        >>> result = transport_similarity([[0.9, 0.1, 0.2], [0.2, 0.8, 0.3]])
        >>> round(result.similarity, 4)
        0.65
        >>> result.plan.round(4).tolist()
        [[0.3333, 0.0, 0.1667], [0.0, 0.3333, 0.1667]]
    """
    similarities = token_matrix(matrix)
    n_short, n_long = similarities.shape
    rows = _weights(short_weights, "short_weights", n_short)
    columns = _weights(long_weights, "long_weights", n_long)
    if n_short == 1 or n_long == 1:
        plan = np.outer(rows, columns)
    else:
        plan = _best_plan(similarities, rows, columns)
    return TransportResult(similarity=float((plan * similarities).sum()), plan=plan)


def _weights(values: npt.ArrayLike | None, name: str, n_tokens: int) -> _Floats:
    """Return the weights of an answer's tokens, summing to 1."""
    if values is None:
        return np.full(n_tokens, 1.0 / n_tokens)
    weights = np.asarray(values, dtype=np.float64)
    if weights.shape != (n_tokens,):
        raise ValueError(f"{name} must have shape ({n_tokens},); got {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any() or weights.sum() <= 0:
        raise ValueError(
            f"{name} must be finite, at least 0, and not all 0; got {weights.tolist()}"
        )
    return np.asarray(weights / weights.sum())


def _best_plan(similarities: _Floats, rows: _Floats, columns: _Floats) -> _Floats:
    """Solve the linear program of transport."""
    from scipy.optimize import linprog

    n_short, n_long = similarities.shape
    sums = np.vstack(
        (
            np.kron(np.eye(n_short), np.ones(n_long)),
            np.kron(np.ones(n_short), np.eye(n_long)),
        )
    )
    # The last column's sum follows from the others; left in, rounding could make it unsolvable.
    solution = linprog(
        -similarities.ravel(),
        A_eq=sums[:-1],
        b_eq=np.r_[rows, columns[:-1]],
        bounds=(0.0, None),
        method="highs",
    )
    if solution.x is None:
        raise RuntimeError(f"the transport plan could not be found: {solution.message}")
    return np.clip(np.asarray(solution.x), 0.0, None).reshape(n_short, n_long)
