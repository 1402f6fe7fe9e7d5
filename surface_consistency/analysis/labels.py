"""Labels of groups in the cells of a table, of which one cell may have several."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

import numpy as np
import pandas as pd

from surface_consistency.errors import ColumnNotFoundError, DataError

_OWN: Final = tuple(f"{n}_{of}" for n in ("first", "second") for of in ("condition", "correct"))


def split_labels(
    frame: pd.DataFrame, columns: Sequence[str], separator: str | None
) -> pd.DataFrame:
    """Read cells that hold several labels.

    Args:
        frame: The outcomes frame.
        columns: Columns of labels.
        separator: What parts the labels of a cell, such as ";"; None where a cell is one label.

    Returns:
        The frame with lists of labels, or None for empty cells without a separator.

    Raises:
        ColumnNotFoundError: If a column is not there; the message lists those seen.
        DataError: If a cell holds what makes no group; names column and cell.
        ValueError: If a separator is given without columns.
    """
    if separator is not None and not columns:
        raise ValueError("`separator` separates the labels of `by`; name its columns by `by`")
    result = frame.copy(deep=False)
    for column in columns:
        if column not in frame.columns:
            raise ColumnNotFoundError(
                f"by={column!r} is not among the columns, which are "
                f"{[name for name in frame.columns if name not in _OWN]}"
            )
        labels = [_labels(value, separator) for value in frame[column].array]
        for label in chain.from_iterable(one if isinstance(one, list) else [one] for one in labels):
            if isinstance(label, Mapping | list | set):
                raise DataError(
                    f"column {column!r} holds {str(label)[:60]!r}, a {type(label).__name__}, which "
                    "makes no group; name a column of texts or numbers, or of lists of them"
                )
        result[column] = pd.Series(labels, index=frame.index, dtype=object)
    return result


def _labels(value: object, separator: str | None) -> object:
    """Return the labels of a cell; an empty one has none."""
    if not isinstance(value, str):
        return value
    if separator is None:
        return value or None
    return [part.strip() for part in value.split(separator) if part.strip()]


def label_list(value: object) -> list[str]:
    """Read the labels of a cell.

    Args:
        value: The cell: a label, several, or what stands for none.

    Returns:
        The labels as text.
    """
    if isinstance(value, list | tuple | np.ndarray):
        return [str(item) for item in value]
    return [] if pd.isna(value) or value == "" else [str(value)]  # type: ignore[call-overload]
