"""The groups of a frame: which rows each holds, what it is called, and its own seed."""

import hashlib
from typing import TYPE_CHECKING, Any, TypeAlias

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
    "plain_label",
]

GroupKey: TypeAlias = tuple[object, ...]
"""The labels of a group, one for each grouping column."""

UNLABELLED = "none"
"""Label of the group of pairs whose grouping column is empty."""

_LISTS = (list, tuple, set, frozenset, np.ndarray)


def group_positions(frame: "pd.DataFrame", keys: list[str]) -> dict[GroupKey, npt.NDArray[np.intp]]:
    """Return the row positions of each group, the groups sorted by label."""
    import pandas as pd

    if not keys:
        return {(): np.arange(len(frame))}
    cells = {key: [_labels(value) for value in frame[key].array] for key in keys}
    labels = pd.DataFrame(cells, dtype=object)
    for key in keys:
        labels = labels.explode(key)
    groups: dict[GroupKey, list[int]] = {}
    for position, *values in labels.itertuples(name=None):
        groups.setdefault(tuple(values), []).append(position)
    return {key: np.asarray(groups[key], dtype=np.intp) for key in sorted(groups, key=_sort_key)}


def _labels(value: object) -> list[object]:
    """Return the distinct labels of one cell as plain Python values."""
    values = value if isinstance(value, _LISTS) else (value,)
    labels = dict.fromkeys(plain_label(label) for label in values if not is_missing(label))
    return list(labels) or [UNLABELLED]


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
