"""What metrics are given, checked and coded: options, verdicts, numbers and labels."""

import operator
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.reading import shown

Floats: TypeAlias = npt.NDArray[np.float64]
"""An array of floats."""

Integers: TypeAlias = npt.NDArray[np.int64]
"""An array of integers."""

Codes: TypeAlias = npt.NDArray[np.int8]
"""An array of verdicts: 1 right, 0 wrong, -1 missing; or of cells of a table."""

Flags: TypeAlias = npt.NDArray[np.bool_]
"""An array of booleans."""


def check_confidence_level(confidence: float, name: str = "confidence") -> float:
    """Return `confidence` when it lies strictly between 0 and 1."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(
            f"{name} must lie strictly between 0 and 1, as in 0.95; got {shown(confidence)}"
        )
    return float(confidence)


def check_choice(value: str, choices: Sequence[str], name: str) -> None:
    """Refuse what is not one of an option's choices."""
    if value not in choices:
        *others, last = map(repr, choices)
        raise ValueError(f"{name} must be {', '.join(others)} or {last}; got {shown(value)}")


def check_count(value: object, name: str) -> int:
    """Return `value` as an `int` when it is a whole number of at least 0, and no bool."""
    if type(value).__name__ in {"bool", "bool_"} or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer count; got {shown(value)}")
    count = operator.index(value)
    if count < 0:
        raise ValueError(f"{name} must be a count of at least 0; got {count}")
    return count


def check_n_resamples(resamples: object, name: str = "resamples") -> int:
    """Return the number of resamples, or of other draws, when it is an integer of at least 1."""
    count = check_count(resamples, name)
    if count == 0:
        raise ValueError(f"{name} must be at least 1, and 1,000 or more to be of use; got 0")
    return count


def check_same_index(**inputs: object) -> None:
    """Refuse pandas objects with unlike indices, since rows are matched by their position."""
    indexed = {
        name: values.index
        for name, values in inputs.items()
        if type(values).__module__.partition(".")[0] == "pandas" and hasattr(values, "index")
    }
    first, *others = indexed or [""]
    for name in others:
        if len(indexed[first]) == len(indexed[name]) and not indexed[first].equals(indexed[name]):
            raise ValueError(
                f"{first} and {name} have different indices, but rows are matched by position: "
                "align them first (pandas.concat([...], axis=1)), or pass .to_numpy() where the "
                "order is right"
            )


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
) -> Codes:
    """Return each pair's cell: 0 both, 1 first only, 2 second only, 3 neither, -1 missing."""
    check_missing(missing)
    check_same_index(**{names[0]: first, names[1]: second})
    codes = [verdict_codes(first, names[0]), verdict_codes(second, names[1])]
    check_equal_lengths(**{name: code.size for name, code in zip(names, codes, strict=True)})
    for code, name in zip(codes, names, strict=True):
        refuse_missing(code == MISSING, name, missing, rows="pairs", is_verdict=True)
    cells = (2 * (1 - codes[0]) + (1 - codes[1])).astype(np.int8)
    cells[(codes[0] == MISSING) | (codes[1] == MISSING)] = MISSING
    return cells


def plain(values: Any) -> Any:  # noqa: ANN401 - any kind of values
    """Return torch tensors as numpy arrays, also within a list; other values as they are."""
    if isinstance(values, Iterator):
        kind = type(values).__name__
        raise TypeError(f"a {kind} can be read only once; pass a list or an array of its values")
    if type(values) in (list, tuple) and any(hasattr(k, "detach") for k in set(map(type, values))):
        return list(map(_scalar, values))
    if not hasattr(values, "detach"):
        return values
    tensor = values.detach().cpu()
    try:
        return tensor.numpy()
    except TypeError:  # numpy has no bfloat16.
        return tensor.float().numpy()


def _scalar(value: Any) -> Any:  # noqa: ANN401 - any kind of value
    """Return a scalar of torch or Arrow, which compares by identity or never, as a Python value."""
    if hasattr(value, "as_py"):
        return value.as_py()
    return value.item() if hasattr(value, "detach") and not value.ndim else plain(value)


def plain_list(values: Iterable[Any]) -> list[Any]:
    """Return the values as a list of Python or numpy scalars, which compare by value."""
    values = plain(list(values) if isinstance(values, Iterator) else values)
    if hasattr(values, "to_pylist"):
        return list(values.to_pylist())
    items = list(values.tolist() if isinstance(values, np.ma.MaskedArray) else values)
    odd = any(hasattr(kind, "detach") or hasattr(kind, "as_py") for kind in set(map(type, items)))
    return list(map(_scalar, items)) if odd else items


def _vector(values: npt.ArrayLike, name: str, what: str = "") -> npt.NDArray[Any]:
    """Return values as a one-dimensional array, of objects if they are not all numbers."""
    values = plain(values)
    if isinstance(values, np.ma.MaskedArray):
        # `tolist` turns masked entries into None, where `asarray` would lay them bare.
        values = np.asarray(values.tolist(), dtype=object)
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional{what}; got shape {array.shape}")
    if array.dtype.kind in "biuf":
        return array
    # Filled from the input: a list that mixes types has become all strings by now.
    objects = np.empty(array.size, dtype=object)
    objects[:] = plain_list(values)  # type: ignore[arg-type]
    return objects


def verdict_codes(values: npt.ArrayLike, name: str) -> Codes:
    """Return 1 for right, 0 for wrong and -1 for a missing verdict."""
    array = _vector(
        values,
        name,
        ", one score per pair (for more forms of an item use surface_consistency.consistency(df))",
    )
    if array.dtype.kind == "b":
        return array.astype(np.int8)
    if array.dtype.kind in "iuf":
        codes = np.full(array.size, MISSING, dtype=np.int8)
        codes[array == 0] = 0
        codes[array == 1] = 1
        strange = (codes == MISSING) & (array == array)
        if strange.any():
            index = int(np.argmax(strange))
            raise _not_a_verdict(array[index].item(), index, name)
        return codes
    return np.fromiter(
        (_code_of_object(value, index, name) for index, value in enumerate(array)),
        dtype=np.int8,
        count=array.size,
    )


def check_equal_lengths(**lengths: int) -> None:
    """Refuse inputs by row that are not equally long."""
    if len(set(lengths.values())) > 1:
        *others, last = lengths
        *sizes, last_size = map(str, lengths.values())
        raise ValueError(
            f"{', '.join(others)} and {last} must have equal lengths; got {', '.join(sizes)} and "
            f"{last_size}"
        )


def scores_and_verdicts(
    scores: npt.ArrayLike,
    correct: npt.ArrayLike,
    *,
    names: tuple[str, str] = ("scores", "correct"),
    row: str = "instance",
) -> tuple[Floats, Integers]:
    """Return finite scores, shape `(n_rows, n_scores)`, and verdicts on the same rows, 1 and 0."""
    features, codes = np.asarray(plain(scores), np.float64), verdict_codes(correct, names[1])
    features = features[:, None] if features.ndim == 1 else features
    if features.ndim != 2 or features.shape[1] == 0 or len(features) != codes.size:
        raise ValueError(
            f"{names[0]} must have one row a verdict of {names[1]}, shape (n_{row}s, n_{names[0]});"
            f" got {features.shape} for {codes.size} verdicts"
        )
    if not np.isfinite(features).all():
        place = ", ".join(str(int(index)) for index in np.argwhere(~np.isfinite(features))[0])
        raise ValueError(f"{names[0]}[{place}] is not finite: leave the {row} out first")
    if (codes == MISSING).any():
        index = int(np.argmax(codes == MISSING))
        raise ValueError(f"{names[1]}[{index}] has no verdict: leave the {row} out first")
    return features, codes.astype(np.int64)


def is_missing(value: object) -> bool:
    """Tell whether a value is None, NaN, NaT or pandas.NA."""
    if type(value).__name__ in _MISSING_TYPES:
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def warn_undefined(message: str, *, stacklevel: int = 2) -> None:
    """Warn of what is undefined where the caller of the caller is (`stacklevel` 2)."""
    warnings.warn(message, UndefinedMetricWarning, stacklevel=stacklevel + 1)


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


def _code_of_object(value: object, index: int, name: str) -> int:
    """Map one Python object to a code; None, NaN and pandas.NA are missing verdicts."""
    if isinstance(value, _NUMBERS) and (value == 0 or value == 1):
        return int(value)
    if is_missing(value):
        return MISSING
    raise _not_a_verdict(value, index, name)


def _not_a_verdict(value: object, index: int, name: str) -> ValueError:
    return ValueError(
        f"{name}[{index}] is {shown(value)}, which is no verdict: give True or False, 1 or 0, "
        "or None or NaN where the answer was not scored"
    )


def numeric_vector(values: npt.ArrayLike, name: str) -> Floats:
    """Return a vector of floats, NaN where a value is missing."""
    array = _vector(values, name)
    if array.dtype != object:
        vector = array.astype(np.float64, copy=False)
    else:
        numbers = (_number(value, index, name) for index, value in enumerate(array))
        vector = np.fromiter(numbers, dtype=np.float64, count=array.size)
    infinite = np.isinf(vector)
    if infinite.any():
        index = int(np.argmax(infinite))
        raise ValueError(
            f"{name}[{index}] is {vector[index]}: values must be finite; give None or "
            "NaN for a missing value, and exclude zeros before taking logarithms"
        )
    return vector


def as_columns(values: npt.ArrayLike, name: str) -> dict[str, Floats]:
    """Return the columns of a vector or matrix by name, such as `controls[:, 1]`."""
    array = np.asarray(plain(values))
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
    for name in others:
        check_equal_lengths(**{first: columns[first].size, name: columns[name].size})
    gaps = np.zeros(columns[first].size, dtype=np.bool_)
    for name, column in columns.items():
        absent = np.isnan(column)
        refuse_missing(absent, name, missing)
        gaps |= absent
    n_dropped = int(np.count_nonzero(gaps))
    if n_dropped == 0:
        return dict(columns), 0
    return {name: column[~gaps] for name, column in columns.items()}, n_dropped


def check_missing(missing: str) -> None:
    """Refuse an unknown policy."""
    check_choice(missing, ("raise", "drop"), "missing")


def refuse_missing(
    absent: Flags,
    name: str,
    missing: MissingPolicy,
    *,
    rows: str = "rows",
    is_verdict: bool = False,
) -> None:
    """Raise for the first of the missing values or verdicts, under "raise"."""
    check_missing(missing)
    if missing == "raise" and absent.any():
        counts = f"(in all {int(absent.sum())} of {absent.size}"
        lack = f"is missing {counts}): fill it in"
        if is_verdict:
            lack = f"has no verdict {counts} are missing): score them"
        raise ValueError(
            f"{name}[{int(np.argmax(absent))}] {lack}, or pass missing='drop' to leave such "
            f"{rows} out"
        )


def _number(value: object, index: int, name: str) -> float:
    """Return one object as a float; None, NaN and pandas.NA become NaN."""
    if isinstance(value, _NUMBERS):
        return float(value)
    if is_missing(value):
        return np.nan
    raise TypeError(f"{name}[{index}] is {shown(value)}, which is no number")


def label_codes(
    labels: Iterable[Hashable] | None, n: int, name: str, *, row: str = "row"
) -> Integers:
    """Number the labels of `n` rows in order of first appearance; None labels each row by itself.

    A missing label (None, NaN, NaT or pandas.NA) is refused, and so is any other number of labels.
    """
    if labels is None:
        return np.arange(n, dtype=np.int64)
    factorized = _factorized(labels)
    if factorized is not None and len(factorized[0]) == n:
        refuse_mixed_labels(factorized[1], name)
        return np.asarray(factorized[0], dtype=np.int64)
    values = plain_list(labels)
    numbers = {label: number for number, label in enumerate(dict.fromkeys(values))}
    if any(map(is_missing, numbers)):
        index = next(place for place, label in enumerate(values) if is_missing(label))
        raise ValueError(
            f"{name}[{index}] is {shown(values[index])}: every {row} needs a label, so name it"
        )
    if len(values) != n:
        raise ValueError(
            f"{name} must hold one label per {row}; got {len(values)} labels for {n} {row}s"
        )
    refuse_mixed_labels(numbers, name)
    return np.fromiter(map(numbers.__getitem__, values), dtype=np.int64, count=n)


def _factorized(labels: Any) -> tuple[Any, Any] | None:  # noqa: ANN401 - any kind of labels
    """Number the labels of a typed array, or a list of texts or integers; None for others."""
    if type(labels) is list and set(map(type, labels)) in ({str}, {int}):
        labels = np.array(labels, dtype=object)
    elif isinstance(labels, np.ndarray):
        if labels.ndim != 1 or labels.dtype.kind not in "biufU" or np.ma.isMaskedArray(labels):
            return None
        labels = labels.astype(object) if labels.dtype.kind == "U" else labels
    elif not hasattr(labels, "factorize") or labels.dtype == np.dtype(object):
        return None
    import pandas as pd

    codes, distinct = pd.factorize(labels)
    return None if (codes < 0).any() else (codes, distinct)


def refuse_mixed_labels(labels: Iterable[Any], name: str) -> None:
    """Refuse labels of which a text and a number are written alike, such as "1" and 1.

    Args:
        labels: The distinct labels.
        name: Their name, for the message.

    Raises:
        ValueError: If there are such labels.
    """
    distinct = set(labels)
    if len(set(map(type, distinct))) < 2:
        return
    texts = {label for label in distinct if isinstance(label, str)}
    others = distinct - texts
    alike = [label for label in others if str(label) in texts] if texts and others else []
    if alike:
        raise ValueError(
            f"{name} holds both the text {shown(str(alike[0]))} and {shown(alike[0])}, which would "
            "be two different labels; convert all labels to one type, such as by .astype(str)"
        )
