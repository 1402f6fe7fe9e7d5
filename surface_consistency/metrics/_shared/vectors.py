"""Numeric vectors of any common form, checked, with the rows that lack a value left out."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.verdicts import MissingPolicy, is_missing

__all__ = ["Floats", "as_columns", "check_missing", "complete_rows", "numeric_vector"]

Floats: TypeAlias = npt.NDArray[np.float64]
"""An array of floats."""

_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


def numeric_vector(values: npt.ArrayLike, name: str) -> Floats:
    """Return a vector of floats, NaN where a value is missing."""
    if isinstance(values, np.ma.MaskedArray):
        # `tolist` turns masked entries into None, where `asarray` would lay them bare.
        values = np.asarray(values.tolist(), dtype=object)
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional; got shape {array.shape}")
    if array.dtype.kind in "biuf":
        vector = array.astype(np.float64, copy=False)
    else:
        # Built anew from the input: a list that mixes types has become all strings by now.
        objects = np.empty(array.size, dtype=object)
        objects[:] = values
        numbers = (_number(value, index, name) for index, value in enumerate(objects))
        vector = np.fromiter(numbers, dtype=np.float64, count=array.size)
    infinite = np.isinf(vector)
    if infinite.any():
        index = int(np.argmax(infinite))
        raise ValueError(
            f"{name}[{index}] is {vector[index]}: values must be finite; "
            "the logarithm of a zero frequency is not, so drop zeros first (`log_frequency` does)"
        )
    return vector


def as_columns(values: npt.ArrayLike, name: str) -> dict[str, Floats]:
    """Return the columns of a vector or matrix by name, such as `controls[:, 1]`."""
    array = np.asarray(values)
    if array.ndim == 1:
        return {name: numeric_vector(values, name)}
    if array.ndim != 2:
        raise ValueError(
            f"{name} must have shape (n_rows,) or (n_rows, n_columns); got {array.shape}"
        )
    labels = [f"{name}[:, {k}]" for k in range(array.shape[1])]
    return {
        label: numeric_vector(column, label) for label, column in zip(labels, array.T, strict=True)
    }


def complete_rows(
    columns: Mapping[str, Floats], *, missing: MissingPolicy
) -> tuple[dict[str, Floats], int]:
    """Return the rows without a gap in any column, and how many were left out."""
    check_missing(missing)
    first, *others = columns
    n_rows = columns[first].size
    for name in others:
        if columns[name].size != n_rows:
            raise ValueError(
                f"{first} and {name} must have equal lengths; got {n_rows} and {columns[name].size}"
            )
    gaps = np.zeros(n_rows, dtype=np.bool_)
    for name, column in columns.items():
        absent = np.isnan(column)
        if missing == "raise" and absent.any():
            raise ValueError(
                f"{name}[{int(np.argmax(absent))}] is missing (in all {int(absent.sum())} of "
                f"{n_rows}): fill it in, or pass missing='drop' to leave such rows out"
            )
        gaps |= absent
    n_dropped = int(np.count_nonzero(gaps))
    if n_dropped == 0:
        return dict(columns), 0
    return {name: column[~gaps] for name, column in columns.items()}, n_dropped


def check_missing(missing: str) -> None:
    """Refuse an unknown policy."""
    if missing not in ("raise", "drop"):
        raise ValueError(f"missing must be 'raise' or 'drop'; got {missing!r}")


def _number(value: object, index: int, name: str) -> float:
    """Return one object as a float; None, NaN and pandas.NA become NaN."""
    if isinstance(value, _NUMBERS):
        return float(value)
    if is_missing(value):
        return np.nan
    raise TypeError(f"{name}[{index}] is {value!r}, which is no number")
