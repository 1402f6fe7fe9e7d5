"""The groups of a frame: which rows each holds, what it is called, and its own seed."""

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.verdicts import is_missing

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "UNLABELLED",
    "GroupKey",
    "check_pair_ids",
    "group_name",
    "group_positions",
    "group_seed",
    "has_list_cells",
    "plain_label",
]

GroupKey: TypeAlias = tuple[object, ...]
"""The labels of a group, one for each grouping column."""

UNLABELLED = "none"
"""Label of the group of pairs whose grouping column is empty."""

_LISTS = (list, tuple, set, frozenset, np.ndarray)


class _Coded(NamedTuple):
    """The labels of the cells of a column, as numbers."""

    labels: list[object]
    """Distinct labels."""

    codes: npt.NDArray[np.intp]
    """Positions in `labels`, cell after cell."""

    sizes: npt.NDArray[np.intp]
    """Number of labels of each cell, at least 1."""


def group_positions(frame: "pd.DataFrame", keys: list[str]) -> dict[GroupKey, npt.NDArray[np.intp]]:
    """Return the row positions of each group, the groups sorted by label."""
    rows = np.arange(len(frame))
    if not keys:
        return {(): rows}
    groups = np.zeros(rows.size, dtype=np.intp)
    columns, coded = [_coded(frame[key]) for key in keys], np.empty((0, rows.size), dtype=np.intp)
    for column in columns:
        # A row stands once for each label of its cell, after each other in the order of the labels.
        sizes = column.sizes[rows]
        starts = (np.cumsum(column.sizes) - column.sizes)[rows]
        places = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
        rows, groups, coded = (np.repeat(part, sizes, axis=-1) for part in (rows, groups, coded))
        coded = np.vstack([coded, column.codes[places]])
        # Numbered anew, so that the product over many columns stays within an integer.
        groups = np.unique(groups * len(column.labels) + coded[-1], return_inverse=True)[1]
    _, first, sizes = np.unique(groups, return_index=True, return_counts=True)
    members = rows[np.argsort(groups, kind="stable")]
    ends = np.cumsum(sizes)
    found: dict[GroupKey, npt.NDArray[np.intp]] = {}
    for group in np.argsort(first):
        labels = zip(columns, coded[:, first[group]], strict=True)
        key = tuple(column.labels[code] for column, code in labels)
        found[key] = members[ends[group] - sizes[group] : ends[group]]
    return {key: found[key] for key in sorted(found, key=_sort_key)}


def _coded(column: "pd.Series[Any]") -> _Coded:
    """Number the labels of a column, refusing a label that its empty cells would take too."""
    import pandas as pd

    numbers: dict[object, int] = {}
    if has_list_cells(column):
        cells = _coded_lists(column, numbers)
        codes = np.asarray([code for cell in cells for code in cell], dtype=np.intp)
        sizes = np.asarray([len(cell) for cell in cells], dtype=np.intp)
    else:
        positions, distinct = pd.factorize(column)
        named = [numbers.setdefault(plain_label(value), len(numbers)) for value in distinct]
        # An empty cell has position -1, that of the last element.
        codes = np.asarray([*named, -1], dtype=np.intp)[positions]
        sizes = np.ones(codes.size, dtype=np.intp)
    is_empty = codes < 0
    if is_empty.any():
        if UNLABELLED in numbers:
            raise ValueError(
                f"column {column.name!r} has empty cells besides the label {UNLABELLED!r}, which "
                "is the name of their group: rename the label, or fill the empty cells in"
            )
        codes[is_empty] = numbers.setdefault(UNLABELLED, len(numbers))
    return _Coded(list(numbers), codes, sizes)


def _coded_lists(column: "pd.Series[Any]", numbers: dict[object, int]) -> list[list[int]]:
    """Number the labels of each cell in `numbers`; an empty cell holds -1 alone."""
    known: dict[tuple[object, ...], list[int]] = {}
    cells = []
    for value in column.array:
        values = tuple(value) if isinstance(value, _LISTS) else (value,)
        codes = known.get(values)
        if codes is None:
            labels = dict.fromkeys(plain_label(label) for label in values if not is_missing(label))
            codes = [numbers.setdefault(label, len(numbers)) for label in labels] or [-1]
            known[values] = codes
        cells.append(codes)
    return cells


def has_list_cells(column: "pd.Series[Any]") -> bool:
    """Tell whether a cell of a column holds several labels."""
    import pandas as pd

    kind = column.dtype
    if isinstance(kind, pd.StringDtype) or (isinstance(kind, np.dtype) and kind != np.object_):
        return False
    return any(issubclass(cell, _LISTS) for cell in set(map(type, column.array)))


def plain_label(label: object) -> object:
    """Turn numpy scalars into Python ones, and whole floats, which gaps make, into integers."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, float) and label.is_integer():
        return int(label)
    return label


def _sort_key(key: GroupKey) -> tuple[tuple[str, object], ...]:
    """Order labels naturally, numbers before text, and other types by what they print."""
    return tuple(
        ("number", label)
        if isinstance(label, int | float)
        else ("text", label if isinstance(label, str) else repr(label))
        for label in key
    )


def check_pair_ids(
    ids: "pd.Series[Any]",
    column: str,
    keys: list[str],
    groups: dict[GroupKey, npt.NDArray[np.intp]],
) -> None:
    """Refuse a pair that stands twice in one group."""
    for key, positions in groups.items():
        members = ids.iloc[positions]
        repeated = members[members.duplicated()]
        if len(repeated):
            raise ValueError(
                f"column {column!r} holds {repeated.iloc[0]!r} more than once "
                f"{group_name(keys, key)} ({len(repeated)} rows repeat an id): drop the "
                "duplicates, or add to by what tells them apart"
            )


def group_name(keys: list[str], key: GroupKey) -> str:
    """Name a group in a message."""
    if not keys:
        return "in the frame"
    return "in group " + ", ".join(f"{k}={v!r}" for k, v in zip(keys, key, strict=True))


def group_seed(seed: int, keys: list[str], key: GroupKey) -> np.random.SeedSequence:
    """Derive a group's seed from its labels, whichever other groups there are."""
    name = "\x1f".join(f"{k}={v!r}" for k, v in zip(keys, key, strict=True))
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return np.random.SeedSequence([seed, *np.frombuffer(digest, dtype="<u4").tolist()])
