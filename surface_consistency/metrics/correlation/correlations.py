"""Correlations and partial correlations, with any number of control variables."""

import math
import operator
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics import _groups, _inputs
from surface_consistency.metrics.correlation._correlations import (
    CorrelationMethod,
    average_ranks,
    check_correlation_method,
    cluster_inference,
    correlation_interval,
    partial_of_correlations,
    residual_direction,
    unit_deviations,
)
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals


def correlation(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    method: CorrelationMethod = "pearson",
    missing: _inputs.MissingPolicy = "raise",
) -> float:
    """Return the correlation of two vectors.

    Args:
        x: Numbers of shape `(n_rows,)`, such as log frequencies.
        y: Numbers of the same rows, such as accuracies.
        method: "pearson", or "spearman" for the correlation of average ranks.
        missing: "raise" raises an error if a value is None, NaN or `pandas.NA`; "drop" excludes
            such rows.

    Returns:
        The coefficient, in [-1, 1]; positive if both increase together.

    Raises:
        TypeError: If a value is not a number.
        ValueError: If the lengths differ, an input is not one-dimensional, a value is infinite or
            (under "raise") missing, or an option is out of range.

    Notes:
        The result is NaN, with an `UndefinedMetricWarning`, if a vector is constant (up to
        rounding) or fewer than three rows remain. The order of the rows, the scale of the values
        and the order of `x` and `y` do not matter. For an interval and a p-value use
        `correlation_by`.

    References:
        Table 5 of arXiv 2604.21882.

    Examples:
        >>> round(correlation([0.0, 0.7, 1.1, 1.4, 1.6], [0.0, 0.5, 0.5, 0.5, 1.0]), 4)
        0.8911
    """
    return _warned(x, y, None, method, missing)


def partial_correlation(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    controls: npt.ArrayLike,
    *,
    method: CorrelationMethod = "pearson",
    missing: _inputs.MissingPolicy = "raise",
) -> float:
    """Return the correlation of two vectors given any number of control variables.

    It is the correlation of the residuals of `x` and `y` from their regressions on the controls
    and a constant.

    Args:
        x: Numbers of shape `(n_rows,)`, such as log entity frequencies.
        y: Numbers of the same rows, such as accuracies.
        controls: Control variables, of shape `(n_rows,)` or `(n_rows, k)`.
        method: "pearson", or "spearman" to rank every vector first, controls included.
        missing: "raise" raises an error if any value is missing; "drop" excludes such rows, with an
            `UnscoredWarning`.

    Returns:
        The coefficient, in [-1, 1]; positive if both increase together given the controls.

    Raises:
        TypeError: If a value is not a number.
        ValueError: If the lengths differ, `x` or `y` is not one-dimensional or `controls` has more
            than two axes, a value is infinite or (under "raise") missing, or an option is out of
            range.

    Notes:
        The result is NaN, with an `UndefinedMetricWarning`, if `x` or `y` is constant or a linear
        function of the controls, or fewer than 3 + k rows remain, for k controls. A control that is
        constant or a linear function of previous ones does not change the result or count in k.
        Without controls the result is `correlation`. The orders of rows and controls do not matter,
        nor does any invertible linear change of the controls (under "pearson"). For an interval and
        a p-value use `correlation_by`.

        Only linear effects of the controls are removed. Suppose that `x` and `y` are independent
        given a control, but depend on it in another way, such as on its square. Then the population
        value is not 0, and a test of 0 rejects in large samples. Under "spearman" this also occurs
        for monotone dependence, because a regression on ranks is not exact. As a remedy, pass the
        logarithm or powers of a control as further columns.

    References:
        R. A. Fisher, Metron 3, 1924; section 4.3 and table 2 of arXiv 2604.21882.

    Examples:
        >>> entity = [9.2, 7.1, 5.5, 8.8, 3.0, 4.1, 6.3, 2.2]
        >>> surface = [6.1, 6.0, 1.2, 7.5, 2.9, 0.4, 3.3, 1.1]
        >>> accuracy = [1.0, 0.5, 0.5, 1.0, 0.0, 0.5, 0.5, 0.0]
        >>> round(partial_correlation(entity, accuracy, surface), 4)
        0.9278
    """
    return _warned(x, y, controls, method, missing)


def _warned(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    controls: npt.ArrayLike | None,
    method: CorrelationMethod,
    missing: _inputs.MissingPolicy,
) -> float:
    """Return the correlation of vectors, and warn if it is undefined."""
    check_correlation_method(method)
    _inputs.check_same_index(x=x, y=y, controls=controls)
    vectors = {"x": _inputs.numeric_vector(x, "x"), "y": _inputs.numeric_vector(y, "y")}
    kept = {} if controls is None else _inputs.as_columns(controls, "controls")
    n, n_rows = vectors["x"].size, next(iter(kept.values()), vectors["x"]).size
    if len(kept) == n != n_rows:
        raise ValueError(
            f"controls has one row per variable, {n_rows} in all, and must have one row per value "
            f"of x, {n}: pass numpy.column_stack(controls)"
        )
    vectors |= kept
    columns = [*_inputs.complete_rows(vectors, missing=missing)[0].values()]
    lost = n_rows - columns[0].size
    _inputs.warn_unscored(lost, n_rows, what="rows", lack="a value", stacklevel=3)
    coefficient, _, reason = _correlated(_ranked(columns, method))
    if reason:
        _inputs.warn_undefined(f"the correlation is undefined (NaN): {reason}", stacklevel=3)
    return coefficient


def _ranked(columns: list[_inputs.Floats], method: CorrelationMethod) -> list[_inputs.Floats]:
    """Return the columns, or their ranks."""
    return [average_ranks(column) for column in columns] if method == "spearman" else columns


def _correlated(columns: list[_inputs.Floats]) -> tuple[float, list[int], str]:
    """Correlate the first two columns given the others.

    Returns the coefficient, the indices of the other columns that add a dimension, and the reason
    if the coefficient is NaN, else an empty string.
    """
    basis: list[_inputs.Floats] = []
    kept = []
    for place, column in enumerate(columns[2:], start=2):
        unit = unit_deviations(column)
        left = None if unit is None else residual_direction(unit, basis)
        if left is not None:
            basis.append(left)
            kept.append(place)
    n, reasons, sides = columns[0].size, [], []
    for name, column in zip("xy", columns, strict=False):
        unit = unit_deviations(column)
        side = None if unit is None else residual_direction(unit, basis)
        if side is not None:
            sides.append(side)
        elif n:
            kind = "constant" if unit is None else "a linear function of the controls"
            reasons.append(f"{name} is {kind}")
    if n < 3 + len(kept):
        among = f" with {len(kept)} controls" if kept else ""
        reasons.append(f"there are {n} rows{among}, and it needs {3 + len(kept)}")
    if reasons:
        return math.nan, kept, "; ".join(reasons)
    return min(1.0, max(-1.0, float(sides[0] @ sides[1]))), kept, ""


_COLUMNS: Final = (
    *("coefficient", "coefficient_low", "coefficient_high", "p_value"),
    *("n", "n_clusters", "n_controls", "n_missing", "n_undefined", "not_inferred"),
)


def correlation_by(
    frame: pd.DataFrame,
    *,
    x: str,
    y: str,
    controls: str | Sequence[str] = (),
    by: str | Sequence[str] = (),
    cluster: str | None = None,
    method: CorrelationMethod = "pearson",
    intervals: Intervals = DEFAULT_INTERVALS,
    missing: _inputs.MissingPolicy = "drop",
) -> pd.DataFrame:
    """Return the correlation of two columns per group, given any number of control columns.

    Args:
        frame: One row per unit, such as a surface instance, with the columns named below.
        x: Column of numbers, such as log entity frequencies.
        y: Column of numbers, such as accuracies.
        controls: Columns of control variables; an empty tuple gives the plain correlation.
        by: Columns of the groups; an empty tuple gives one row for all rows of the frame.
        cluster: Column of dependent rows, such as the fact; None assumes independent rows.
        method: "pearson", or "spearman" to rank every column first, controls included.
        intervals: Level, method ("auto" or "percentile"), resamples and seed of the intervals.
        missing: "drop" excludes rows with a missing value, with a count in `n_missing` and an
            `UnscoredWarning`; "raise" raises an error.

    Returns:
        One row per group, sorted by label, with the columns `by`; coefficient, coefficient_low and
        coefficient_high; p_value (two-sided, null hypothesis: no correlation; below 1 minus the
        confidence level exactly if the interval excludes 0); n, n_clusters, n_controls (those that
        are neither constant nor linear functions of others), n_missing, n_undefined (resamples in
        which the correlation is undefined) and not_inferred (why numbers are NaN; otherwise empty).

    Raises:
        ColumnNotFoundError: If a named column is not in the frame; the message lists its columns.
        TypeError: If `frame` is not a DataFrame or a value is not a number.
        ValueError: If the frame is empty, a value is infinite or (under "raise") missing, a cluster
            id is missing, or an option is out of range.

    Notes:
        With clusters the interval is a jackknife t interval over clusters on the scale of Fisher's
        z, with Kish's degrees of freedom. For independent rows, and "auto", p-value and interval
        are those of `correlation_interval` with n - 2 - k degrees of freedom. "percentile"
        resamples clusters, or rows. Only linear effects of the controls are removed, so the test of
        0 is not a test of independence given the controls; see `partial_correlation`.

    References:
        Section 4.3 and tables 2 and 5 of arXiv 2604.21882; see `correlation_interval`.

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"fact": [1, 1, 2, 2, 3, 3, 4, 4], "x": [5, 3, 8, 6, 2, 1, 7, 4],
        ...                       "y": [1, 1, 1, 1, 0, 0, 1, 0]})
        >>> correlation_by(frame, x="x", y="y")[["coefficient", "n"]].round(3).values.tolist()
        [[0.732, 8.0]]
        >>> correlation_by(frame, x="x", y="y", cluster="fact")["n_clusters"].tolist()
        [4]
    """
    check_correlation_method(method)
    keys, kept = _groups.grouping_columns(by, _COLUMNS), _groups.column_names(controls)
    needed = [*keys, x, y, *kept, *filter(None, (cluster,))]
    _groups.check_frame(frame, needed, options="x, y, controls, by or cluster", row="row")
    columns = [_inputs.numeric_vector(frame[name].array, name) for name in (x, y, *kept)]
    absent = np.zeros(len(frame), dtype=np.bool_)
    for name, column in zip((x, y, *kept), columns, strict=True):
        _inputs.check_complete(np.isnan(column), name, missing)
        absent |= np.isnan(column)
    _inputs.warn_unscored(int(absent.sum()), absent.size, what="rows", lack="a value", stacklevel=2)
    clusters, seed = _groups.cluster_codes(frame, cluster), _groups.root_seed(intervals.seed)

    def row(key: _groups.GroupKey, places: npt.NDArray[np.intp]) -> dict[str, object]:
        """Return the row of one group."""
        known = places[~absent[places]]
        codes = np.unique(clusters[known], return_inverse=True)[1]
        is_independent = cluster is None and intervals.method == "auto"
        rng = np.random.default_rng(_groups.group_seed(seed, keys, key))
        numbers = _inferred(
            _ranked([column[known] for column in columns], method),
            None if is_independent else codes,
            method,
            intervals,
            rng,
        )
        counts = {"n": known.size, "n_clusters": int(codes.max(initial=-1)) + 1}
        counts["n_missing"] = places.size - known.size
        return dict(zip(keys, key, strict=True)) | counts | numbers

    groups = _groups.group_positions(frame, keys)
    return pd.DataFrame([row(*group) for group in groups.items()], columns=[*keys, *_COLUMNS])


def _inferred(
    columns: list[_inputs.Floats],
    codes: _inputs.Integers | None,
    method: CorrelationMethod,
    intervals: Intervals,
    rng: np.random.Generator,
) -> dict[str, object]:
    """Return the correlation of the first two columns with interval, p-value and reason."""
    coefficient, kept, reason = _correlated(columns)
    low = high = p_value = math.nan
    n_undefined = 0
    if not reason and codes is None:
        low, high, p_value = correlation_interval(
            coefficient,
            df=columns[0].size - 2 - len(kept),
            method=method,
            confidence=intervals.confidence,
        )
        reason = "" if low == low else "the correlation is perfect, so its spread is unknown"
    elif not reason and codes is not None:
        made = cluster_inference(
            np.array([[coefficient]]),
            lambda within, across: partial_of_correlations(within, across)[..., :1, :],
            [columns[0], *(columns[place] for place in kept)],
            [columns[1]],
            codes,
            method=method,
            intervals=intervals,
            rng=rng,
        )
        low, high, p_value = (float(part[0, 0]) for part in made[:3])
        n_undefined = int(made.n_undefined[0, 0])
        reason = "" if low == low else "one cluster, or undefined without one of the clusters"
    return {
        "coefficient": coefficient,
        "coefficient_low": low,
        "coefficient_high": high,
        "p_value": p_value,
        "n_controls": len(kept),
        "n_undefined": n_undefined,
        "not_inferred": reason,
    }


# Published matrices are rounded; a negative eigenvalue this close to zero is rounding error.
_ROUNDING = 1e-8


def partial_correlation_from_matrix(
    matrix: npt.ArrayLike, *, x: int, y: int, controls: int | Sequence[int]
) -> float:
    """Return a partial correlation, computed from the correlation matrix of the variables.

    Use it for published correlations, or for many partial correlations from one matrix. With one
    control z it is (r_xy - r_xz r_yz) / sqrt((1 - r_xz^2) (1 - r_yz^2)).

    Args:
        matrix: Correlations of shape `(n_variables, n_variables)`.
        x: Index of the first variable.
        y: Index of the second variable.
        controls: Indices of the control variables; an empty list gives the entry of the matrix.

    Returns:
        The coefficient, in [-1, 1].

    Raises:
        TypeError: If an index is not an integer, or the matrix is not numeric.
        ValueError: If the matrix is not a correlation matrix: it must be square, finite, symmetric,
            with values in [-1, 1] and a diagonal of 1, and positive semidefinite (up to a rounding
            error of 1e-8). Also if indices repeat or are out of range.

    Notes:
        The result is NaN, with an `UndefinedMetricWarning`, if `x` or `y` is a linear function of
        the controls. Controls that are linear functions of each other count once. Correlations of
        pairwise complete data may give an impossible matrix: use complete rows. For a p-value pass
        the coefficient to `correlation_interval`.

    References:
        G. U. Yule, Proceedings of the Royal Society A 79, 1907; tables 2 and 5 of arXiv 2604.21882.

    Examples:
        >>> pythia_12b = [[1, 0.218, 0.183], [0.218, 1, 0.5648], [0.183, 0.5648, 1]]
        >>> round(partial_correlation_from_matrix(pythia_12b, x=1, y=0, controls=2), 3)
        0.141
    """
    array = np.asarray(matrix)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"matrix must be numeric; got dtype {array.dtype}")
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ValueError(f"matrix must be square; got shape {array.shape}")
    correlations = array.astype(np.float64)
    rules = {
        "must be in [-1, 1]": ~(np.abs(correlations) <= 1.0 + _ROUNDING),
        "must be 1": (np.eye(len(array)) == 1.0) & (np.abs(correlations - 1.0) > _ROUNDING),
        "must equal the entry across the diagonal": (
            np.abs(correlations - correlations.T) > _ROUNDING
        ),
    }
    for rule, bad in rules.items():
        if bad.any():
            i, j = np.argwhere(bad)[0].tolist()
            raise ValueError(f"matrix[{i}, {j}] {rule}; got {correlations[i, j]}")
    lowest = float(np.linalg.eigvalsh(correlations).min(initial=0.0))
    if lowest < -_ROUNDING * len(correlations):
        raise ValueError(
            "matrix is not positive semidefinite, so no data have these correlations: its lowest "
            f"eigenvalue is {lowest:.3g}; compute all of them from the same rows"
        )
    kept = [controls] if isinstance(controls, int | np.integer) else list(controls)
    rows = [operator.index(row) for row in (x, y, *kept)]
    if len({*rows}) < len(rows) or not {*rows} <= {*range(len(array))}:
        raise ValueError(
            f"x, y and controls must be different rows of the matrix, 0 to {len(array) - 1}; got "
            f"{rows}"
        )
    pair, others = rows[:2], rows[2:]
    shared = correlations[np.ix_(others, pair)]
    # The pseudo-inverse counts linearly dependent controls once.
    inverse = np.linalg.pinv(correlations[np.ix_(others, others)], rcond=1e-10, hermitian=True)
    left = correlations[np.ix_(pair, pair)] - shared.T @ inverse @ shared
    if not (np.diag(left) > _ROUNDING).all():
        _inputs.warn_undefined("the correlation is undefined (NaN): the controls determine x or y")
        return math.nan
    return float(np.clip(left[0, 1] / math.sqrt(left[0, 0] * left[1, 1]), -1.0, 1.0))
