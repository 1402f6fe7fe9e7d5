"""Verdicts of any common form, read into the four cells of a paired table."""

import warnings
from typing import Literal

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import UnscoredWarning

__all__ = [
    "MISSING",
    "MissingPolicy",
    "is_missing",
    "outcome_cells",
    "verdict_codes",
    "warn_unscored",
]

MISSING = -1
"""Code of a verdict that is not there, and of a pair that lacks one."""

MissingPolicy = Literal["raise", "drop"]
"""What to do with a pair that lacks a verdict."""

_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
_MISSING_TYPES = frozenset({"NAType", "NaTType", "NoneType"})


def outcome_cells(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    missing: MissingPolicy,
    names: tuple[str, str] = ("first", "second"),
) -> npt.NDArray[np.int8]:
    """Return each pair's cell: 0 both, 1 first only, 2 second only, 3 neither, -1 missing."""
    if missing not in ("raise", "drop"):
        raise ValueError(f"missing must be 'raise' or 'drop'; got {missing!r}")
    codes = [verdict_codes(first, names[0]), verdict_codes(second, names[1])]
    if codes[0].size != codes[1].size:
        raise ValueError(
            f"{names[0]} and {names[1]} must have equal lengths, one verdict a pair; "
            f"got {codes[0].size} and {codes[1].size}"
        )
    if missing == "raise":
        for code, name in zip(codes, names, strict=True):
            _reject_missing(code, name)
    cells = (2 * (1 - codes[0]) + (1 - codes[1])).astype(np.int8)
    cells[(codes[0] == MISSING) | (codes[1] == MISSING)] = MISSING
    return cells


def verdict_codes(values: npt.ArrayLike, name: str) -> npt.NDArray[np.int8]:
    """Return 1 for right, 0 for wrong and -1 for a missing verdict."""
    if isinstance(values, np.ma.MaskedArray):
        # `tolist` turns masked entries into None, where `asarray` would lay them bare.
        values = np.asarray(values.tolist(), dtype=object)
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one-dimensional, one verdict a pair; got shape {array.shape}"
        )
    if array.dtype.kind == "b":
        return array.astype(np.int8)
    if array.dtype.kind in "iuf":
        return _codes_of_numbers(array, name)
    # Built anew from the input: a list that mixes types has become all strings by now.
    objects = np.empty(array.size, dtype=object)
    objects[:] = values
    return np.fromiter(
        (_code_of_object(value, index, name) for index, value in enumerate(objects)),
        dtype=np.int8,
        count=array.size,
    )


def is_missing(value: object) -> bool:
    """Tell whether a value is None, NaN, NaT or pandas.NA."""
    if type(value).__name__ in _MISSING_TYPES:
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def warn_unscored(
    n_missing: int, n_all: int, *, stacklevel: int, what: str = "pairs", lack: str = "a verdict"
) -> None:
    """Say how many pairs, or other units, were left out, where any were."""
    if n_missing:
        warnings.warn(
            f"{n_missing} of {n_all} {what} lack {lack} and were left out",
            UnscoredWarning,
            stacklevel=stacklevel + 1,
        )


def _codes_of_numbers(array: npt.NDArray[np.generic], name: str) -> npt.NDArray[np.int8]:
    """Map a numeric array to codes; NaN is a missing verdict."""
    codes = np.full(array.size, MISSING, dtype=np.int8)
    codes[array == 0] = 0
    codes[array == 1] = 1
    strange = (codes == MISSING) & (array == array)
    if strange.any():
        index = int(np.argmax(strange))
        raise _not_a_verdict(array[index].item(), index, name)
    return codes


def _code_of_object(value: object, index: int, name: str) -> int:
    """Map one Python object to a code; None, NaN and pandas.NA are missing verdicts."""
    if isinstance(value, _NUMBERS) and (value == 0 or value == 1):
        return int(value)
    if is_missing(value):
        return MISSING
    raise _not_a_verdict(value, index, name)


def _not_a_verdict(value: object, index: int, name: str) -> ValueError:
    """Build the error for a value that is no verdict."""
    return ValueError(
        f"{name}[{index}] is {value!r}, which is no verdict: give True or False, 1 or 0, "
        "or None or NaN where the answer was not scored"
    )


def _reject_missing(codes: npt.NDArray[np.int8], name: str) -> None:
    """Raise for the first verdict that is missing."""
    absent = codes == MISSING
    if absent.any():
        raise ValueError(
            f"{name}[{int(np.argmax(absent))}] has no verdict (in all {int(absent.sum())} of "
            f"{codes.size} are missing): score them, or pass missing='drop' to leave such pairs out"
        )
