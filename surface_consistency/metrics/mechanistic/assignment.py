"""Answer similarity from token similarities, by matching tokens one to one."""

from dataclasses import dataclass
from typing import Literal

import numpy.typing as npt

from surface_consistency.metrics.mechanistic._token_matrix import token_matrix

__all__ = ["AssignmentResult", "assignment_similarity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentResult:
    """Result of `assignment_similarity`."""

    similarity: float
    """Mean similarity of the matched tokens, or over the longer answer under "zero"."""
    pairs: tuple[tuple[int, int], ...]
    """Matched tokens, the short answer's first, in its order."""
    n_unmatched: int
    """Tokens of the longer answer without a partner."""


def assignment_similarity(
    matrix: npt.ArrayLike, *, unmatched: Literal["ignore", "zero"] = "ignore"
) -> AssignmentResult:
    """Match the tokens of two answers one to one so that their total similarity is largest.

    Args:
        matrix: Token similarities M, shape `(n_short_tokens, n_long_tokens)`, as from
            `token_similarity`.
        unmatched: Tokens of the longer answer that are left over are ignored, so that the result is
            the mean over matched pairs, or count as pairs of similarity 0.

    Returns:
        The similarity, the matched tokens, and how many were left over.

    Raises:
        ValueError: When `matrix` is empty, not two-dimensional or holds a value that is not finite,
            or `unmatched` is unknown.

    Notes:
        Answers of equal length give the similarity of `transport_similarity` with equal weights.
        For others "ignore" is at least as large, since it may drop the tokens that fit worst. The
        paper says that both methods agree and not how leftover tokens count. Swapping the answers
        changes nothing but the order within pairs.

    References:
        SLAQ, arXiv 2510.11218, appendix A.4 (Hungarian algorithm); H. W. Kuhn, Naval Research
        Logistics Quarterly 2, 1955.

    Examples:
        >>> result = assignment_similarity([[0.9, 0.1, 0.2], [0.2, 0.8, 0.3]])
        >>> round(result.similarity, 4), result.pairs, result.n_unmatched
        (0.85, ((0, 0), (1, 1)), 1)
    """
    from scipy.optimize import linear_sum_assignment

    if unmatched not in ("ignore", "zero"):
        raise ValueError(f"unmatched must be 'ignore' or 'zero'; got {unmatched!r}")
    similarities = token_matrix(matrix)
    rows, columns = linear_sum_assignment(similarities, maximize=True)
    total = float(similarities[rows, columns].sum())
    fewer, more = sorted(similarities.shape)
    return AssignmentResult(
        similarity=total / (fewer if unmatched == "ignore" else more),
        pairs=tuple(zip(rows.tolist(), columns.tolist(), strict=True)),
        n_unmatched=more - fewer,
    )
