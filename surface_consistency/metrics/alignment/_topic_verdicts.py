"""Verdicts laid out by topic, permutation and slot, read and checked."""

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.vectors import check_missing
from surface_consistency.metrics._shared.verdicts import MISSING, MissingPolicy, verdict_codes

__all__ = ["Codes", "response_codes", "short_codes"]

Codes = npt.NDArray[np.int8]
"""1 right, 0 wrong, -1 missing."""

_TWO_AXES = "(n_topics, n_slots)"
_THREE_AXES = "(n_topics, n_permutations, n_slots)"


def short_codes(values: npt.ArrayLike, name: str, *, missing: MissingPolicy) -> Codes:
    """Read verdicts of shape `(n_topics, n_slots)`."""
    return _codes(values, name, {2: _TWO_AXES}, missing)


def response_codes(values: npt.ArrayLike, name: str, *, missing: MissingPolicy) -> Codes:
    """Read verdicts of long responses; one response a topic counts as one permutation."""
    codes = _codes(values, name, {2: _TWO_AXES, 3: _THREE_AXES}, missing)
    return codes[:, None, :] if codes.ndim == 2 else codes


def _codes(
    values: npt.ArrayLike, name: str, shapes: dict[int, str], missing: MissingPolicy
) -> Codes:
    """Map verdicts to codes, naming topic and slot of what is no verdict, or is not there."""
    check_missing(missing)
    array = _array(values, name, shapes)
    kind = array.dtype.kind
    if kind == "b" or (kind in "iuf" and bool(((array == 0) | (array == 1)).all())):
        return array.astype(np.int8)
    if kind == "f" and bool(((array == 0) | (array == 1) | (array != array)).all()):
        codes = np.where(array != array, MISSING, array == 1).astype(np.int8)
    else:
        codes = np.empty(array.shape, dtype=np.int8)
        for place in np.ndindex(array.shape[:-1]):
            label = ", ".join(map(str, place))
            codes[place] = verdict_codes(array[place], f"{name}[{label}]")
    absent = codes == MISSING
    if missing == "raise" and absent.any():
        label = ", ".join(str(int(index)) for index in np.argwhere(absent)[0])
        raise ValueError(
            f"{name}[{label}] has no verdict (in all {int(absent.sum())} of {codes.size} are "
            "missing): judge them, or pass missing='drop' to leave them out"
        )
    return codes


def _array(values: npt.ArrayLike, name: str, shapes: dict[int, str]) -> npt.NDArray[np.generic]:
    """Return an array of numbers, or of objects where the input is not of one kind."""
    expected = " or ".join(shapes.values())
    if isinstance(values, np.ma.MaskedArray):
        # `tolist` turns masked entries into None, where `asarray` would lay them bare.
        values = values.tolist()
    array: npt.NDArray[np.generic]
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"{name} must have the same number of slots in every row, shape {expected}"
        ) from error
    if array.dtype.kind not in "biuf":
        # Built anew from the input: a list that mixes types has become all strings by now.
        array = np.asarray(values, dtype=object)
    if array.ndim not in shapes:
        raise ValueError(f"{name} must have shape {expected}; got {array.shape}")
    if 0 in array.shape:
        raise ValueError(f"{name} is empty, shape {array.shape}: there is nothing to score")
    return array
