"""Correlation and partial correlation of vectors, with p-value and interval."""

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import (
    Flags,
    Floats,
    MissingPolicy,
    as_columns,
    check_confidence_level,
    check_count,
    check_same_index,
    complete_rows,
    numeric_vector,
    warn_undefined,
)
from surface_consistency.metrics.correlation._correlations import (
    CorrelationMethod,
    average_ranks,
    check_correlation_method,
    correlation_inference,
    orthonormal_basis,
    residual_direction,
    unit_deviations,
)
from surface_consistency.metrics.uncertainty.intervals import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelationResult:
    """Result of `correlation`, `partial_correlation` and `partial_correlation_from_matrix`."""

    coefficient: float
    """The (partial) correlation, in [-1, 1]; NaN where undefined."""
    p_value: float
    """Two-sided p-value against no correlation, in [0, 1], rows independent; NaN where
    undefined."""
    coefficient_interval: Interval
    """Interval of the coefficient on the scale of Fisher's z, rows independent; it leaves out 0
    where the p-value is below 1 less its level, and only there. NaN where that is."""
    n: int | None
    """Rows that entered; None for a matrix given without it."""
    n_dropped: int
    """Rows left out because a value was missing."""
    n_controls: int
    """Controls held constant that are not constant themselves, nor linear in those before them."""
    method: CorrelationMethod
    """Of values ("pearson") or of ranks ("spearman")."""


def _correlate(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    controls: npt.ArrayLike | None,
    *,
    method: CorrelationMethod,
    confidence_level: float,
    missing: MissingPolicy,
) -> CorrelationResult:
    """Check the vectors and correlate the first two, the controls held constant."""
    check_confidence_level(confidence_level)
    check_correlation_method(method)
    check_same_index(x=x, y=y, controls=controls)
    vectors = {"x": numeric_vector(x, "x"), "y": numeric_vector(y, "y")}
    vectors |= {} if controls is None else as_columns(controls, "controls")
    vectors, n_dropped = complete_rows(vectors, missing=missing)
    if method == "spearman":
        vectors = {name: average_ranks(vector) for name, vector in vectors.items()}
    first, second, *rest = vectors.values()
    units = [unit_deviations(vector) for vector in rest]
    basis = orthonormal_basis([unit for unit in units if unit is not None])
    (one, one_reason), (other, other_reason) = (
        _direction(vector, name, basis) for name, vector in zip("xy", (first, second), strict=True)
    )
    coefficient = math.nan
    if one is not None and other is not None and first.size > 2 + len(basis):
        coefficient = min(1.0, max(-1.0, float(one @ other)))
    return _correlation_result(
        coefficient,
        n=first.size,
        n_dropped=n_dropped,
        n_controls=len(basis),
        method=method,
        confidence_level=confidence_level,
        reasons=[reason for reason in (one_reason, other_reason) if reason],
        stacklevel=4,
    )


def _correlation_result(
    coefficient: float,
    *,
    n: int | None,
    n_dropped: int,
    n_controls: int,
    method: CorrelationMethod,
    confidence_level: float,
    reasons: list[str],
    stacklevel: int,
) -> CorrelationResult:
    """Add p-value and interval to a coefficient, and warn of what is undefined."""
    df = 0 if n is None else n - 2 - n_controls
    p_value, interval = correlation_inference(
        coefficient, df=df, confidence_level=confidence_level, method=method
    )
    if math.isnan(coefficient):
        if n is not None and df < 1:
            controls = f" with {n_controls} controls" if n_controls else ""
            reasons = [*reasons, f"there are {n} rows{controls}, and it needs {3 + n_controls}"]
        warn_undefined(
            f"the correlation is undefined (NaN): {'; '.join(reasons)}", stacklevel=stacklevel
        )
    elif n is not None and math.isnan(p_value):
        warn_undefined(
            "the p-value and the interval are undefined (NaN): the correlation is perfect, which "
            "tells nothing of its spread",
            stacklevel=stacklevel,
        )
    return CorrelationResult(
        coefficient=coefficient,
        p_value=p_value,
        coefficient_interval=interval,
        n=n,
        n_dropped=n_dropped,
        n_controls=n_controls,
        method=method,
    )


def _direction(
    vector: Floats, name: str, basis: Sequence[Floats]
) -> tuple[Floats | None, str | None]:
    """Return what the controls leave of a vector, or why that is nothing."""
    unit = unit_deviations(vector)
    if unit is None:
        return None, f"{name} is constant" if vector.size else None
    left = residual_direction(unit, basis)
    return left, None if left is not None else f"{name} is a linear function of the controls"


def correlation(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    method: CorrelationMethod = "pearson",
    confidence_level: float = 0.95,
    missing: MissingPolicy = "raise",
) -> CorrelationResult:
    """Correlate two vectors, rows taken for independent.

    The p-value is that of t = r sqrt((n - 2) / (1 - r^2)) on n - 2 degrees of freedom. The interval
    is tanh(atanh(r) ± atanh(c)), where c is the least correlation that this test rejects; Fisher's
    1.96 / sqrt(n - 3) for atanh(c) is nearly the same. For ranks atanh(c) is stretched by
    sqrt(1 + rho^2 / 2), rho being the bound itself.

    Args:
        x: Numbers of shape `(n_rows,)`, such as log frequencies.
        y: Numbers of the same rows, such as accuracies.
        method: "pearson", or "spearman" for the correlation of average ranks.
        confidence_level: Nominal coverage of the interval, in (0, 1).
        missing: What to do with rows in which a value is None, NaN or `pandas.NA`: "raise" refuses
            them, "drop" leaves them out and counts them in `n_dropped`.

    Returns:
        Coefficient, in [-1, 1] and positive where both rise together, p-value, interval and counts.

    Raises:
        TypeError: When a value is no number.
        ValueError: When the lengths differ, an input is not one-dimensional, a value is infinite
            or (under "raise") missing, or an option is out of range.

    Notes:
        Everything is NaN, with an `UndefinedMetricWarning`, where a vector is constant (up to
        rounding) or fewer than three rows are left; where the correlation is perfect, p-value and
        interval are. The order of the rows and the scale of the values do not matter; swapping `x`
        and `y` changes nothing. Where rows share facts, see `correlation_bootstrap`.

    References:
        R. A. Fisher, Biometrika 10, 1915; D. G. Bonett and T. A. Wright, Psychometrika 65, 2000
        (ranks); table 5 of arXiv 2604.21882.

    Examples:
        >>> result = correlation([0.0, 0.7, 1.1, 1.4, 1.6], [0.0, 0.5, 0.5, 0.5, 1.0])
        >>> round(result.coefficient, 4), round(result.p_value, 4), result.n
        (0.8911, 0.0424, 5)
    """
    return _correlate(x, y, None, method=method, confidence_level=confidence_level, missing=missing)


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
    confidence_level: float = 0.95,
    missing: MissingPolicy = "raise",
) -> CorrelationResult:
    """Correlate two vectors with any number of others held constant, rows independent.

    It is the correlation of the residuals of `x` and `y` from their regressions on the controls
    and a constant. With k controls the p-value is that of t = r sqrt(df / (1 - r^2)) on
    df = n - 2 - k degrees of freedom, and the interval that of `correlation` for it.

    Args:
        x: Numbers of shape `(n_rows,)`, such as log entity frequencies.
        y: Numbers of the same rows, such as accuracies.
        controls: What is held constant, of shape `(n_rows,)` or `(n_rows, k)`.
        method: "pearson", or "spearman" to rank every vector first, controls included.
        confidence_level: Nominal coverage of the interval, in (0, 1).
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
        linear function of the controls, or fewer than 3 + k rows are left. Controls that are
        constant or linear in those before them change nothing and do not count in k. No control at
        all gives `correlation`. The orders of rows and controls do not matter, nor does any
        invertible linear change of the controls (under "pearson"). See `correlation_bootstrap`
        where rows are not independent.

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
    return _correlate(
        x, y, controls, method=method, confidence_level=confidence_level, missing=missing
    )


def partial_correlation_from_matrix(
    matrix: npt.ArrayLike,
    *,
    x: int,
    y: int,
    controls: int | Sequence[int],
    n: int | None = None,
    method: CorrelationMethod = "pearson",
    confidence_level: float = 0.95,
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
        confidence_level: Nominal coverage of the interval, in (0, 1).

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
    check_confidence_level(confidence_level)
    check_correlation_method(method)
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
    held = [controls] if isinstance(controls, int | np.integer) else list(controls)
    rows = _checked_rows({"x": x, "y": y}, held, len(correlations))
    if n is not None:
        n = check_count(n, "n")
    among = correlations[np.ix_(rows, rows)]
    coefficient, n_controls, reasons = _partial(among)
    if n is not None and n < 3 + n_controls:
        coefficient = math.nan
    return _correlation_result(
        coefficient,
        n=n,
        n_dropped=0,
        n_controls=n_controls,
        method=method,
        confidence_level=confidence_level,
        reasons=reasons,
        stacklevel=3,
    )


def _partial(among: Floats) -> tuple[float, int, list[str]]:
    """Return the partial correlation of the first two variables, its k, and why it is NaN."""
    values, vectors = np.linalg.eigh(among[2:, 2:])
    independent = values > _TINY_VARIANCE
    loadings = (vectors[:, independent].T @ among[2:, :2]) / np.sqrt(values[independent])[:, None]
    left = among[:2, :2] - loadings.T @ loadings
    reasons = [
        f"the controls determine {name}"
        for name, variance in zip("xy", np.diag(left), strict=True)
        if variance <= _TINY_VARIANCE
    ]
    n_controls = int(np.count_nonzero(independent))
    if reasons:
        return math.nan, n_controls, reasons
    coefficient = float(left[0, 1]) / math.sqrt(float(left[0, 0]) * float(left[1, 1]))
    return min(1.0, max(-1.0, coefficient)), n_controls, reasons


def _refuse(bad: Flags, correlations: Floats, rule: str) -> None:
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
