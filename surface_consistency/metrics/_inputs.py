"""Check and encode the inputs of metrics: options, correctness labels, numbers and labels."""

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
"""An array of correctness labels: 1 correct, 0 incorrect, -1 missing; or of cells of a table."""

Flags: TypeAlias = npt.NDArray[np.bool_]
"""An array of booleans."""


def check_confidence_level(confidence: float, name: str = "confidence") -> float:
    """Return `confidence` if it is strictly between 0 and 1."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(
            f"{name} must be strictly between 0 and 1, such as 0.95; got {shown(confidence)}"
        )
    return float(confidence)


def check_choice(value: str, choices: Sequence[str], name: str) -> None:
    """Raise an error if a value is not one of the choices of an option."""
    if value not in choices:
        *others, last = map(repr, choices)
        raise ValueError(f"{name} must be {', '.join(others)} or {last}; got {shown(value)}")


def check_count(value: object, name: str) -> int:
    """Return `value` as an `int` if it is an integer of at least 0, and not a bool."""
    if type(value).__name__ in {"bool", "bool_"} or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer count; got {shown(value)}")
    count = operator.index(value)
    if count < 0:
        raise ValueError(f"{name} must be a count of at least 0; got {count}")
    return count


def check_n_resamples(resamples: object, name: str = "resamples") -> int:
    """Return the number of resamples, or of other draws, if it is an integer of at least 1."""
    count = check_count(resamples, name)
    if count == 0:
        raise ValueError(f"{name} must be at least 1 (1,000 or more are recommended); got 0")
    return count


def check_same_index(**inputs: object) -> None:
    """Raise an error if pandas objects have different indices, as rows are matched by position."""
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
                "align them first (pandas.concat([...], axis=1)), or pass .to_numpy() if the "
                "order is correct"
            )


MISSING = -1
"""Code of a missing correctness label, and of a pair without both labels."""

MissingPolicy = Literal["raise", "drop"]
"""Treatment of a pair with a missing label."""

_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
_MISSING_TYPES = frozenset({"NAType", "NaTType", "NoneType"})


def outcome_cells(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    missing: MissingPolicy,
    names: tuple[str, str] = ("first", "second"),
) -> Codes:
    """Return the cell of each pair: 0 both, 1 first only, 2 second only, 3 neither, -1 missing."""
    check_missing(missing)
    check_same_index(**{names[0]: first, names[1]: second})
    codes = [verdict_codes(first, names[0]), verdict_codes(second, names[1])]
    check_equal_lengths(**{name: code.size for name, code in zip(names, codes, strict=True)})
    for code, name in zip(codes, names, strict=True):
        check_complete(code == MISSING, name, missing, rows=row_unit(names), is_verdict=True)
    cells = (2 * (1 - codes[0]) + (1 - codes[1])).astype(np.int8)
    cells[(codes[0] == MISSING) | (codes[1] == MISSING)] = MISSING
    return cells


def row_unit(names: Sequence[str]) -> str:
    """Name the rows of arrays in messages: pairs, or the answers of a single array."""
    return "pairs" if len({*names}) > 1 else "answers"


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
    """Return a scalar of torch or Arrow, which cannot be compared by value, as a Python scalar."""
    if hasattr(value, "as_py"):
        return value.as_py()
    return value.item() if hasattr(value, "detach") and not value.ndim else plain(value)


def plain_list(values: Iterable[Any]) -> list[Any]:
    """Return the values as a list of Python or numpy scalars, which compare by value."""
    values = plain(list(values) if isinstance(values, Iterator) else values)
    if hasattr(values, "to_pylist"):
        return list(values.to_pylist())
    items = list(values.tolist() if isinstance(values, np.ma.MaskedArray) else values)
    wrapped = any(
        hasattr(kind, "detach") or hasattr(kind, "as_py") for kind in set(map(type, items))
    )
    return list(map(_scalar, items)) if wrapped else items


def _vector(values: npt.ArrayLike, name: str, what: str = "") -> npt.NDArray[Any]:
    """Return values as a one-dimensional array, of objects if they are not all numbers."""
    values = plain(values)
    if isinstance(values, np.ma.MaskedArray):
        # `tolist` returns None for masked entries; `asarray` would return the values below them.
        values = np.asarray(values.tolist(), dtype=object)
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one-dimensional, shape (n_rows,); got shape {array.shape}; pass one "
            f"column, or numpy.ravel of every array to pool all values{what}"
        )
    if array.dtype.kind in "biuf":
        return array
    # Filled from the input, because `asarray` converts a list of mixed types to strings.
    objects = np.empty(array.size, dtype=object)
    objects[:] = plain_list(values)  # type: ignore[arg-type]
    return objects


def verdict_codes(values: npt.ArrayLike, name: str) -> Codes:
    """Return 1 for correct, 0 for incorrect and -1 for missing labels."""
    array = _vector(
        values,
        name,
        "; for several forms of an item use surface_consistency.consistency(df), where df has one "
        "row per item and form",
    )
    if array.dtype.kind == "b":
        return array.astype(np.int8)
    if array.dtype.kind in "iuf":
        codes = np.full(array.size, MISSING, dtype=np.int8)
        codes[array == 0] = 0
        codes[array == 1] = 1
        invalid = (codes == MISSING) & (array == array)
        if invalid.any():
            index = int(np.argmax(invalid))
            raise _not_a_verdict(array[index].item(), index, name)
        return codes
    return np.fromiter(
        (_code_of_object(value, index, name) for index, value in enumerate(array)),
        dtype=np.int8,
        count=array.size,
    )


def check_equal_lengths(**lengths: int) -> None:
    """Raise an error if inputs by row have different lengths."""
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
    """Return finite scores, shape `(n_rows, n_scores)`, and labels of the same rows, 1 and 0."""
    features, codes = np.asarray(plain(scores), np.float64), verdict_codes(correct, names[1])
    features = features[:, None] if features.ndim == 1 else features
    if features.ndim != 2 or features.shape[1] == 0 or len(features) != codes.size:
        raise ValueError(
            f"{names[0]} must have one row per label of {names[1]}, shape (n_{row}s, n_{names[0]});"
            f" got {features.shape} for {codes.size} labels"
        )
    if not np.isfinite(features).all():
        place = ", ".join(str(int(index)) for index in np.argwhere(~np.isfinite(features))[0])
        raise ValueError(f"{names[0]}[{place}] is not finite: drop the {row} first")
    if (codes == MISSING).any():
        index = int(np.argmax(codes == MISSING))
        raise ValueError(f"{names[1]}[{index}] has no label: drop the {row} first")
    return features, codes.astype(np.int64)


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, NaT or pandas.NA."""
    if type(value).__name__ in _MISSING_TYPES:
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def warn_undefined(message: str, *, stacklevel: int = 2) -> None:
    """Warn of an undefined result at the caller of the caller (`stacklevel` 2)."""
    warnings.warn(message, UndefinedMetricWarning, stacklevel=stacklevel + 1)


def warn_unscored(
    n_missing: int, n_all: int, *, stacklevel: int, what: str = "pairs", lack: str = "a label"
) -> None:
    """Warn of the number of pairs, or of other units, that are excluded, if there are any."""
    if n_missing:
        warnings.warn(
            f"{n_missing} of {n_all} {what} lack {lack} and are excluded",
            UnscoredWarning,
            stacklevel=stacklevel + 1,
        )


def _code_of_object(value: object, index: int, name: str) -> int:
    """Map one Python object to a code; None, NaN and pandas.NA are missing labels."""
    if isinstance(value, _NUMBERS) and (value == 0 or value == 1):
        return int(value)
    if is_missing(value):
        return MISSING
    raise _not_a_verdict(value, index, name)


def _not_a_verdict(value: object, index: int, name: str) -> ValueError:
    return ValueError(
        f"{name}[{index}] is {shown(value)}, which is not a correctness label: pass True or False, "
        f"1 or 0, or None or NaN if the answer was not scored{_of_text(value)}"
    )


def _of_text(value: object) -> str:
    """Return the remedy for a text in place of a number."""
    if not isinstance(value, str):
        return ""
    return "; convert texts of numbers with pandas.to_numeric, and map words to 0 and 1"


def numeric_vector(values: npt.ArrayLike, name: str) -> Floats:
    """Return a vector of floats, NaN for missing values."""
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
            f"{name}[{index}] is {vector[index]}: values must be finite; pass None or "
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
    """Return the rows without a missing value in any column, and the number of other rows."""
    check_missing(missing)
    first, *others = columns
    for name in others:
        check_equal_lengths(**{first: columns[first].size, name: columns[name].size})
    gaps = np.zeros(columns[first].size, dtype=np.bool_)
    for name, column in columns.items():
        absent = np.isnan(column)
        check_complete(absent, name, missing)
        gaps |= absent
    n_dropped = int(np.count_nonzero(gaps))
    if n_dropped == 0:
        return dict(columns), 0
    return {name: column[~gaps] for name, column in columns.items()}, n_dropped


def check_missing(missing: str) -> None:
    """Raise an error if the policy is unknown."""
    check_choice(missing, ("raise", "drop"), "missing")


def check_complete(
    absent: Flags,
    name: str,
    missing: MissingPolicy,
    *,
    rows: str = "rows",
    is_verdict: bool = False,
) -> None:
    """Raise an error for the first missing value or label, under "raise"."""
    check_missing(missing)
    if missing == "raise" and absent.any():
        counts = f"({int(absent.sum())} of {absent.size}"
        lack = f"is missing {counts} values are missing): fill them in"
        if is_verdict:
            lack = f"has no label {counts} are missing): score the answers"
        raise ValueError(
            f"{name}[{int(np.argmax(absent))}] {lack}, or pass missing='drop' to exclude such "
            f"{rows}"
        )


def _number(value: object, index: int, name: str) -> float:
    """Return one object as a float; None, NaN and pandas.NA become NaN."""
    if isinstance(value, _NUMBERS):
        return float(value)
    if is_missing(value):
        return np.nan
    raise TypeError(f"{name}[{index}] is {shown(value)}, which is not a number{_of_text(value)}")


def label_codes(
    labels: Iterable[Hashable] | None, n: int, name: str, *, row: str = "row"
) -> Integers:
    """Number the labels of `n` rows in order of first appearance; None labels each row separately.

    A missing label (None, NaN, NaT or pandas.NA) or another number of labels is an error.
    """
    if labels is None:
        return np.arange(n, dtype=np.int64)
    factorized = _factorized(labels)
    if factorized is not None and len(factorized[0]) == n:
        check_label_types(factorized[1], name)
        return np.asarray(factorized[0], dtype=np.int64)
    values = plain_list(labels)
    numbers = {label: number for number, label in enumerate(dict.fromkeys(values))}
    if any(map(is_missing, numbers)):
        index = next(place for place, label in enumerate(values) if is_missing(label))
        raise ValueError(
            f"{name}[{index}] is {shown(values[index])}: every {row} needs a label, so fill it in"
        )
    if len(values) != n:
        raise ValueError(
            f"{name} must have one label per {row}; got {len(values)} labels for {n} {row}s"
        )
    check_label_types(numbers, name)
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


def check_label_types(labels: Iterable[Any], name: str) -> None:
    """Raise an error if a text and a number have the same text form, such as "1" and 1.

    Args:
        labels: The distinct labels.
        name: Name of the labels in the message.

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
            f"{name} contains both the text {shown(str(alike[0]))} and {shown(alike[0])}, which "
            "would be two different labels; convert all labels to one type, such as by .astype(str)"
        )
