"""Partial correlation: what two vectors share beyond what others explain of both."""

import math
import operator
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.checks import check_confidence, check_count
from surface_consistency.metrics._shared.vectors import (
    Floats,
    as_columns,
    complete_rows,
    numeric_vector,
)
from surface_consistency.metrics._shared.verdicts import MissingPolicy
from surface_consistency.metrics.frequency._correlate import (
    check_correlation_method,
    correlate,
    correlation_result,
)
from surface_consistency.metrics.frequency.correlation_result import (
    CorrelationMethod,
    CorrelationResult,
)

__all__ = ["partial_correlation", "partial_correlation_from_matrix"]

# Published matrices are rounded; a negative eigenvalue within this of zero is that.
_ROUNDING = 1e-8
# What the controls leave of a variance of 1: below this it is rounding.
_TINY_VARIANCE = 1e-12


def partial_correlation(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    controls: npt.ArrayLike,
    method: CorrelationMethod = "pearson",
    confidence: float = 0.95,
    missing: MissingPolicy = "raise",
) -> CorrelationResult:
    """Correlate two vectors with any number of others held constant.

    It is the correlation of the residuals of `x` and `y` from their regressions on the controls
    and a constant. With k controls the p-value is that of t = r sqrt(df / (1 - r^2)) on
    df = n - 2 - k degrees of freedom, and the interval tanh(atanh(r) ± z / sqrt(n - k - 3)).

    Args:
        x: Numbers of shape `(n_rows,)`, such as log entity frequencies.
        y: Numbers of the same rows, such as accuracies.
        controls: What is held constant, of shape `(n_rows,)` or `(n_rows, k)`.
        method: "pearson", or "spearman" to rank every vector first, controls included.
        confidence: Nominal coverage of the interval, in (0, 1).
        missing: "raise" refuses rows in which any value is missing; "drop" leaves them out and
            counts them in `n_dropped`.

    Returns:
        Coefficient, in [-1, 1] and positive where both rise together beyond the controls, p-value,
        interval and counts.

    Raises:
        TypeError: When a value is no number.
        ValueError: When the lengths differ, `x` or `y` is not one-dimensional or `controls` has
            more than two axes, a value is infinite or (under "raise") missing, or an option is out
            of range.

    Notes:
        Everything is NaN, with an `UndefinedMetricWarning`, where `x` or `y` is constant or a
        linear function of the controls, or fewer than 3 + k rows are left; with 3 + k rows only
        the interval is. Controls that are constant or linear in those before them change nothing
        and do not count in k. No control at all gives `correlation`. The orders of rows and
        controls do not matter, nor does any invertible linear change of the controls (under
        "pearson"). Rows are taken for independent: see `correlation_bootstrap` where they are not.

    References:
        R. A. Fisher, Metron 3, 1924; section 4.3 and table 2 of arXiv 2604.21882.

    Examples:
        >>> entity = [9.2, 7.1, 5.5, 8.8, 3.0, 4.1, 6.3, 2.2]
        >>> surface = [6.1, 6.0, 1.2, 7.5, 2.9, 0.4, 3.3, 1.1]
        >>> accuracy = [1.0, 0.5, 0.5, 1.0, 0.0, 0.5, 0.5, 0.0]
        >>> result = partial_correlation(entity, accuracy, controls=surface)
        >>> round(result.coefficient, 4), round(result.p_value, 4)
        (0.9278, 0.0026)
    """
    check_confidence(confidence)
    check_correlation_method(method)
    vectors = {"x": numeric_vector(x, "x"), "y": numeric_vector(y, "y")}
    vectors |= as_columns(controls, "controls")
    vectors, n_dropped = complete_rows(vectors, missing=missing)
    return correlate(
        vectors, method=method, confidence=confidence, n_dropped=n_dropped, stacklevel=2
    )


def partial_correlation_from_matrix(
    matrix: npt.ArrayLike,
    *,
    x: int,
    y: int,
    controls: int | Sequence[int],
    n: int | None = None,
    method: CorrelationMethod = "pearson",
    confidence: float = 0.95,
) -> CorrelationResult:
    """Compute a partial correlation from the correlations of the variables.

    Use it on published correlations, or to take many partial correlations from one matrix. With one
    control z it is (r_xy - r_xz r_yz) / sqrt((1 - r_xz^2) (1 - r_yz^2)).

    Args:
        matrix: Correlations of shape `(n_variables, n_variables)`.
        x: Row of the first variable.
        y: Row of the second variable.
        controls: Rows of the variables held constant; none of them gives the entry of the matrix.
        n: Rows of the data behind the matrix; without it p-value and interval are NaN.
        method: What the matrix holds, "pearson" or "spearman" correlations; it bears on the
            interval alone.
        confidence: Nominal coverage of the interval, in (0, 1).

    Returns:
        Coefficient, in [-1, 1], p-value and interval.

    Raises:
        TypeError: When a row is no integer, `n` no integer, or the matrix holds no numbers.
        ValueError: When the matrix cannot be one of correlations: not square, not finite, a value
            outside [-1, 1], another diagonal than 1, not symmetric, or not positive semidefinite
            (1e-8 of rounding is let pass); when rows repeat or lie outside it; or when an option is
            out of range.

    Notes:
        Everything is NaN, with an `UndefinedMetricWarning`, where the controls determine `x` or
        `y`, or `n` is less than 3 + k; see `partial_correlation` for k. Correlations of pairwise
        complete data may make an impossible matrix: use the rows that are complete.

    References:
        G. U. Yule, Proceedings of the Royal Society A 79, 1907; tables 2 and 5 of arXiv 2604.21882.

    Examples:
        >>> pythia_12b = [[1, 0.218, 0.183], [0.218, 1, 0.5648], [0.183, 0.5648, 1]]
        >>> result = partial_correlation_from_matrix(pythia_12b, x=1, y=0, controls=2, n=4284)
        >>> round(result.coefficient, 3), result.p_value < 0.01
        (0.141, True)
    """
    check_confidence(confidence)
    check_correlation_method(method)
    correlations = _checked_matrix(matrix)
    held = [controls] if isinstance(controls, int | np.integer) else list(controls)
    rows = _checked_rows({"x": x, "y": y}, held, len(correlations))
    if n is not None:
        n = check_count(n, "n")
    among = correlations[np.ix_(rows, rows)]
    coefficient, n_controls, reasons = _partial(among)
    if n is not None and n < 3 + n_controls:
        coefficient = math.nan
    return correlation_result(
        coefficient,
        n=n,
        n_dropped=0,
        n_controls=n_controls,
        method=method,
        confidence=confidence,
        reasons=reasons,
        stacklevel=2,
    )


def _partial(among: Floats) -> tuple[float, int, list[str]]:
    """Return the partial correlation of the first two variables, its k, and why it is NaN."""
    values, vectors = np.linalg.eigh(among[2:, 2:])
    kept = values > _TINY_VARIANCE
    loadings = (vectors[:, kept].T @ among[2:, :2]) / np.sqrt(values[kept])[:, None]
    left = among[:2, :2] - loadings.T @ loadings
    reasons = [
        f"the controls determine {name}"
        for name, variance in zip("xy", np.diag(left), strict=True)
        if variance <= _TINY_VARIANCE
    ]
    n_controls = int(np.count_nonzero(kept))
    if reasons:
        return math.nan, n_controls, reasons
    coefficient = float(left[0, 1]) / math.sqrt(float(left[0, 0]) * float(left[1, 1]))
    return min(1.0, max(-1.0, coefficient)), n_controls, reasons


def _checked_matrix(matrix: npt.ArrayLike) -> Floats:
    """Return a matrix that can be one of correlations."""
    array = np.asarray(matrix)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"matrix must hold numbers; got dtype {array.dtype}")
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ValueError(f"matrix must be square; got shape {array.shape}")
    correlations = array.astype(np.float64)
    _refuse(~np.isfinite(correlations), correlations, "must be finite")
    _refuse(np.abs(correlations) > 1.0 + _ROUNDING, correlations, "must lie in [-1, 1]")
    diagonal = np.eye(len(correlations), dtype=np.bool_)
    _refuse(diagonal & (np.abs(correlations - 1.0) > _ROUNDING), correlations, "must be 1")
    _refuse(
        np.abs(correlations - correlations.T) > _ROUNDING,
        correlations,
        "must equal its mirror image across the diagonal",
    )
    lowest = float(np.linalg.eigvalsh(correlations).min(initial=0.0))
    if lowest < -_ROUNDING * len(correlations):
        raise ValueError(
            "matrix is not positive semidefinite, so no data have these correlations: its lowest "
            f"eigenvalue is {lowest:.3g}; take all of them from the same rows"
        )
    return correlations


def _refuse(bad: npt.NDArray[np.bool_], correlations: Floats, rule: str) -> None:
    """Raise for the first entry of a matrix that breaks a rule."""
    if bad.any():
        i, j = (int(k) for k in np.argwhere(bad)[0])
        raise ValueError(f"matrix[{i}, {j}] {rule}; got {correlations[i, j]}")


def _checked_rows(pair: dict[str, int], controls: Sequence[int], size: int) -> list[int]:
    """Return the rows of x, y and the controls, each inside the matrix and named once."""
    named = {**pair, **{f"controls[{k}]": row for k, row in enumerate(controls)}}
    rows: list[int] = []
    for name, value in named.items():
        row = operator.index(value)
        if not 0 <= row < size:
            raise ValueError(f"{name} must be a row of the matrix, 0 to {size - 1}; got {row}")
        if row in rows:
            raise ValueError(f"{name} is row {row}, which another variable is already")
        rows.append(row)
    return rows
