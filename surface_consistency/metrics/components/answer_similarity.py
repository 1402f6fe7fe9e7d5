"""Similarity of two answers by the components of their tokens, by assignment or transport."""

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment, linprog

from surface_consistency.metrics._inputs import Floats, check_choice, warn_undefined
from surface_consistency.metrics.components.components import finite_array
from surface_consistency.metrics.correlation._correlations import average_ranks, unit_deviations

TokenMetric: TypeAlias = Literal["pearson", "spearman", "containment", "iou"]
"""Similarity of two tokens: correlation of importances, or overlap of sets of components."""


def token_similarity(
    short: npt.ArrayLike, long: npt.ArrayLike, *, metric: TokenMetric
) -> npt.NDArray[np.float64]:
    """Return the similarity of each two tokens of two answers, by the components that they use.

    Args:
        short: One row per token of the short answer, shape `(n_short_tokens, n_components)`:
            importances for "pearson" and "spearman"; True or False, whether the component is in the
            minimal set, for "containment" and "iou".
        long: The same for the tokens of the long answer, with the same components.
        metric: "pearson" or "spearman" correlation of importances, or "containment" or "iou"
            (intersection over union) of sets.

    Returns:
        The matrix M of shape `(n_short_tokens, n_long_tokens)`: in [-1, 1] for correlations, in
        [0, 1] for sets; higher is more similar.

    Raises:
        TypeError: If the input of a set metric is not boolean, or that of a correlation is not
            numeric.
        ValueError: If shapes do not match, an importance is not finite, there is a single component
            for a correlation, or `metric` is unknown.

    Notes:
        If the importances of a token are all equal, or its set is empty, its row or column is NaN,
        with an `UndefinedMetricWarning`. Under "iou" an entry is NaN only if both sets are empty.
        Swapping the answers transposes M. The order of the components does not matter.

    References:
        SLAQ, arXiv 2510.11218, eqs. 7 and 8 and section 5.1 (M_ij).

    Examples:
        >>> short, long = [[0.5, 0.3, 0.1, 0.0]], [[0.4, 0.3, 0.2, 0.1], [0.0, 0.1, 0.3, 0.5]]
        >>> token_similarity(short, long, metric="spearman").round(2).tolist()
        [[1.0, -1.0]]
        >>> short, long = [[True, True, False]], [[True, False, True]]
        >>> token_similarity(short, long, metric="containment").tolist()
        [[0.5]]
    """
    check_choice(metric, ("pearson", "spearman", "containment", "iou"), "metric")
    kinds, what = "iuf", "importances"
    if metric in ("containment", "iou"):
        kinds, what = "b", "True or False for each component"
    ours, theirs = (
        finite_array(values, name, "(n_tokens, n_components)", what=what, kinds=kinds)
        for name, values in (("short", short), ("long", long))
    )
    if ours.shape[1] != theirs.shape[1]:
        raise ValueError(
            "short and long must have the same components; got "
            f"{ours.shape[1]} and {theirs.shape[1]}"
        )
    if metric == "pearson" or metric == "spearman":
        if ours.shape[1] < 2:
            raise ValueError("a correlation needs at least two components; got 1")
        similarity = _units(ours, metric) @ _units(theirs, metric).T
        similarity = np.clip(similarity, -1.0, 1.0)
    else:
        similarity = _overlaps(ours, theirs, metric)
    undefined = int(np.isnan(similarity).sum())
    if undefined:
        warn_undefined(
            f"{undefined} of {similarity.size} token similarities are undefined (NaN): a token has "
            "constant importances or no components"
        )
    return np.asarray(similarity)


def _units(rows: Floats, metric: TokenMetric) -> Floats:
    """Return the deviations of each row, or of its ranks, at unit length; NaN if constant."""
    units = np.full(rows.shape, np.nan)
    for token, row in enumerate(rows):
        unit = unit_deviations(average_ranks(row) if metric == "spearman" else row)
        if unit is not None:
            units[token] = unit
    return units


def _overlaps(ours: Floats, theirs: Floats, metric: TokenMetric) -> Floats:
    """Return containment or intersection over union of every two sets."""
    common = ours @ theirs.T
    sizes = ours.sum(axis=1)[:, None], theirs.sum(axis=1)[None, :]
    whole = np.minimum(*sizes) if metric == "containment" else sizes[0] + sizes[1] - common
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(common / whole)


def _token_matrix(matrix: npt.ArrayLike) -> Floats:
    shape = "(n_short_tokens, n_long_tokens)"
    return finite_array(matrix, "matrix", shape, what="similarities")


def assignment_similarity(
    matrix: npt.ArrayLike, *, unmatched: Literal["ignore", "zero"] = "ignore"
) -> float:
    """Return the similarity of two answers under the best one-to-one matching of their tokens.

    Args:
        matrix: Token similarities M, shape `(n_short_tokens, n_long_tokens)`, as from
            `token_similarity`.
        unmatched: Treatment of the unmatched tokens of the longer answer: with "ignore" the result
            is the mean over matched pairs; "zero" counts them as pairs of similarity 0.

    Returns:
        The similarity: the mean over matched pairs, or over the tokens of the longer answer.

    Raises:
        ValueError: If `matrix` is empty, not two-dimensional or has a value that is not finite, or
            `unmatched` is unknown.

    Notes:
        The matching maximises the total similarity. For answers of equal length the result equals
        `transport_similarity`, whose weights are equal. For others "ignore" is at least as large,
        because it may exclude the tokens with the lowest similarity. The paper reports that both
        methods agree, but not how unmatched tokens count. Swapping the answers does not change the
        result.

    References:
        SLAQ, arXiv 2510.11218, appendix A.4 (Hungarian algorithm); H. W. Kuhn, Naval Research
        Logistics Quarterly 2, 1955.

    Examples:
        >>> round(assignment_similarity([[0.9, 0.1, 0.2], [0.2, 0.8, 0.3]]), 4)
        0.85
    """
    check_choice(unmatched, ("ignore", "zero"), "unmatched")
    similarities = _token_matrix(matrix)
    rows, columns = linear_sum_assignment(similarities, maximize=True)
    total = float(similarities[rows, columns].sum())
    fewer, more = sorted(similarities.shape)
    return total / float(fewer if unmatched == "ignore" else more)


def transport_similarity(matrix: npt.ArrayLike) -> float:
    """Return the similarity of two answers under optimal transport between their tokens.

    The similarity is the maximum of sum_ij pi_ij M_ij over plans pi_ij >= 0. The rows of a plan sum
    to equal weights of the tokens of the short answer, and its columns to equal weights of the
    tokens of the long answer; the weights of an answer sum to 1.

    Args:
        matrix: Token similarities M, shape `(n_short_tokens, n_long_tokens)`, as from
            `token_similarity`.

    Returns:
        The similarity.

    Raises:
        ValueError: If `matrix` is empty, not two-dimensional or has a value that is not finite.
        RuntimeError: If the linear program cannot be solved.

    Notes:
        The paper does not state the constraints. With equal weights that sum to 1 the result is a
        weighted average, as the paper calls it. Swapping the answers, or another order of tokens,
        does not change the result. Adding a constant to M adds it to the similarity.

    References:
        SLAQ, arXiv 2510.11218, eq. 9; Rubner, Tomasi and Guibas, International Journal of Computer
        Vision 40, 2000 (earth mover's distance).

    Examples:
        >>> round(transport_similarity([[0.9, 0.1, 0.2], [0.2, 0.8, 0.3]]), 4)
        0.65
    """
    similarities = _token_matrix(matrix)
    if 1 in similarities.shape:
        return float(similarities.mean())
    return float((_best_plan(similarities) * similarities).sum())


def _best_plan(similarities: Floats) -> Floats:
    n_short, n_long = similarities.shape
    weights = np.r_[np.full(n_short, 1.0 / n_short), np.full(n_long - 1, 1.0 / n_long)]
    sums = np.vstack(
        (np.kron(np.eye(n_short), np.ones(n_long)), np.kron(np.ones(n_short), np.eye(n_long)))
    )
    # The sum of the last column is redundant; with it, rounding errors could make the problem
    # infeasible.
    solution = linprog(
        -similarities.ravel(), A_eq=sums[:-1], b_eq=weights, bounds=(0.0, None), method="highs"
    )
    if solution.x is None:
        raise RuntimeError(f"the transport plan could not be found: {solution.message}")
    return np.clip(np.asarray(solution.x), 0.0, None).reshape(n_short, n_long)
