"""Adjust p-values for the number of tests."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.errors import ColumnNotFoundError
from surface_consistency.metrics._groups import group_positions, has_list_cells
from surface_consistency.metrics._inputs import check_choice
from surface_consistency.reading import shown

AdjustMethod = Literal["holm", "benjamini-hochberg", "benjamini-yekutieli"]
"""Controlled error: the probability of any false finding (Holm), or the false discovery rate."""

_METHODS = ("holm", "benjamini-hochberg", "benjamini-yekutieli")


def adjust_p_values(
    p_values: npt.ArrayLike, *, method: AdjustMethod = "holm"
) -> npt.NDArray[np.float64]:
    """Adjust p-values for the number of tests.

    With the m p-values in increasing order, "holm" multiplies the i-th by m - i + 1 and takes
    running maxima; "benjamini-hochberg" multiplies it by m / i and takes running minima from the
    largest down; "benjamini-yekutieli" is that times 1 + 1/2 + ... + 1/m.

    Args:
        p_values: The p-values, shape `(n_tests,)`; NaN for a missing test.
        method: "holm" controls the probability of any false finding; "benjamini-hochberg" the
            expected proportion of false findings among all findings (false discovery rate), for
            tests that are independent or positively dependent; "benjamini-yekutieli" the same
            proportion under any dependence.

    Returns:
        The adjusted p-values in the given order, in [0, 1] and at least as large as the raw ones.

    Raises:
        ValueError: If `p_values` is not one-dimensional, a p-value is not in [0, 1], or `method`
            is unknown.

    Notes:
        NaN remains NaN and does not count as a test. Equal p-values have equal adjusted ones.
        Groups with common pairs, such as redirect categories if a pair has several, are dependent:
        "holm" and "benjamini-yekutieli" are valid under any dependence.

    References:
        S. Holm, Scandinavian Journal of Statistics 6, 1979; Y. Benjamini and Y. Hochberg, Journal
        of the Royal Statistical Society B 57, 1995; Y. Benjamini and D. Yekutieli, Annals of
        Statistics 29, 2001.

    Examples:
        >>> adjust_p_values([0.01, 0.04, 0.03]).round(6).tolist()
        [0.03, 0.06, 0.06]
        >>> adjust_p_values([0.01, 0.04, 0.03], method="benjamini-hochberg").round(6).tolist()
        [0.03, 0.04, 0.04]
    """
    check_choice(method, _METHODS, "method")
    raw = np.asarray(p_values, dtype=np.float64)
    if raw.ndim != 1:
        raise ValueError(f"p_values must be one-dimensional; got shape {raw.shape}")
    outside = (raw < 0.0) | (raw > 1.0)
    if outside.any():
        index = int(np.argmax(outside))
        raise ValueError(f"p_values[{index}] must be in [0, 1]; got {raw[index]}")
    adjusted = np.full(raw.size, np.nan)
    tested = np.flatnonzero(~np.isnan(raw))
    order = tested[np.argsort(raw[tested], kind="stable")]
    n_tests = order.size
    ranks = np.arange(1, n_tests + 1)
    if method == "holm":
        scaled = np.maximum.accumulate(raw[order] * (n_tests - ranks + 1))
    else:
        penalty = float((1.0 / ranks).sum()) if method == "benjamini-yekutieli" else 1.0
        scaled = np.minimum.accumulate((raw[order] * (n_tests * penalty / ranks))[::-1])[::-1]
    # Rounding must not make an adjusted value smaller than the raw one.
    adjusted[order] = np.clip(np.maximum(scaled, raw[order]), 0.0, 1.0)
    return adjusted


def with_adjusted_p_values(
    rows: pd.DataFrame,
    *,
    column: str = "p_value",
    method: AdjustMethod = "holm",
    within: str | Sequence[str] = (),
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Add a column of adjusted p-values to a table of groups, such as `paired_by` returns.

    Args:
        rows: One row per group, with a column of p-values.
        column: Column of the p-values.
        method: As for `adjust_p_values`.
        within: Columns that define families of tests, such as the model; an empty tuple makes all
            rows one family.
        confidence: An error is raised if no test of a family can be significant at 1 - confidence
            after Holm's correction. This concerns simulated tests, such as those of `momentum`:
            their smallest attainable p-values are read from `<column>_smallest`, and the number of
            draws from `n_null`.

    Returns:
        A copy of the table with one more column at its end, `<column>_<method>` with underscores
        instead of hyphens, such as `p_value_holm`.

    Raises:
        ColumnNotFoundError: If a named column is not in the table; the message lists its columns.
        ValueError: If `adjust_p_values` rejects the p-values or the method; if a cell of `within`
            is a list, so that a test would be in several families; if a column of `within` has
            empty cells and also a label "none"; and if even the smallest attainable p-values of a
            family are not significant after Holm's correction.

    Notes:
        NaN, as for a group without pairs, remains NaN and does not count as a test. For a table
        without rows, the new column is empty.

    References:
        S. Holm, Scandinavian Journal of Statistics 6, 1979.

    Examples:
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"group": ["a", "b"], "p_value": [0.01, 0.2]})
        >>> with_adjusted_p_values(rows)["p_value_holm"].tolist()
        [0.02, 0.2]
    """
    keys = [within] if isinstance(within, str) else list(within)
    seen = list(rows.columns)
    for name in (column, *keys):
        if name not in seen:
            raise ColumnNotFoundError(f"column {shown(name)} not found. Columns: {seen}")
    for name in keys:
        if has_list_cells(rows[name]):
            raise ValueError(
                f"column {shown(name)} of within contains lists, but a test belongs to one family: "
                "give each row one label"
            )
    raw = rows[column].to_numpy(dtype=np.float64)
    adjusted = adjust_p_values(raw, method=method)
    for positions in group_positions(rows, keys).values():
        family = rows.iloc[positions]
        if method == "holm" and {f"{column}_smallest", "n_null"} <= set(seen):
            _check_attainable(family[family[column].notna()], column, 1.0 - confidence)
        adjusted[positions] = adjust_p_values(raw[positions], method=method)
    return rows.assign(**{f"{column}_{method.replace('-', '_')}": adjusted})


def _check_attainable(family: pd.DataFrame, column: str, alpha: float) -> None:
    """Raise an error if Holm's correction of simulated p-values can never reject."""
    smallest = float(family[f"{column}_smallest"].min())
    ratio = len(family) * smallest / alpha
    if ratio >= 1.0 - 1e-9:
        n_null = int((1 + family["n_null"].max()) * ratio + 1e-9)
        raise ValueError(
            f"Holm's correction of {len(family)} p-values of column {shown(column)} can never be "
            f"below {alpha:g}, because none can be smaller than {smallest:.3g}: draw "
            f"n_null={n_null} null samples or more, or correct fewer tests together"
        )
