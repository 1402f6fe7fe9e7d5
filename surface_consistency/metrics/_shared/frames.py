"""Checks of frames and of the options that functions over frames share."""

import operator
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import ColumnNotFoundError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["check_frame", "checked_seed", "cluster_codes", "column_names", "grouping_columns"]


def column_names(columns: str | Sequence[str]) -> list[str]:
    """Return one name or several as a list."""
    return [columns] if isinstance(columns, str) else list(columns)


def grouping_columns(by: str | Sequence[str], result_columns: Iterable[str]) -> list[str]:
    """Return the grouping columns as a list, refusing names that would collide."""
    keys = column_names(by)
    if len(set(keys)) != len(keys):
        raise ValueError(f"by names a column twice: {keys}")
    clashes = sorted(set(keys) & set(result_columns))
    if clashes:
        raise ValueError(
            f"by column {clashes[0]!r} has the name of a column of the result; rename it"
        )
    return keys


def checked_seed(seed: object) -> int:
    """Return the seed as an integer of at least 0."""
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise TypeError(
            f"seed must be an integer, so that groups do not share a stream; got {seed!r}"
        )
    number = operator.index(seed)
    if number < 0:
        raise ValueError(f"seed must be at least 0; got {number}")
    return number


def check_frame(frame: object, needed: Sequence[str], *, options: str, row: str = "pair") -> None:
    """Make sure of a frame with rows and with each needed column once."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            f"frame must be a pandas DataFrame, one row a {row}; got {type(frame).__name__}: "
            "build one with pandas.DataFrame(...)"
        )
    seen = list(frame.columns)
    for column in needed:
        if column not in seen:
            raise ColumnNotFoundError(
                f"column {column!r} is not in the frame, which has {seen}: "
                f"name the right one through {options}"
            )
        if seen.count(column) > 1:
            raise ValueError(f"column {column!r} stands {seen.count(column)} times in the frame")
    if frame.empty:
        raise ValueError(f"frame has no rows: there are no {row}s to count")


def cluster_codes(frame: "pd.DataFrame", cluster: str | None) -> npt.NDArray[np.int64]:
    """Number the clusters of the rows."""
    import pandas as pd

    if cluster is None:
        return np.arange(len(frame))
    codes, _ = pd.factorize(frame[cluster])
    if (codes < 0).any():
        raise ValueError(
            f"column {cluster!r} has no cluster id in row {int(np.argmax(codes < 0))}: fill it in, "
            "or pass cluster=None to take each row for a cluster of its own"
        )
    return codes.astype(np.int64)
