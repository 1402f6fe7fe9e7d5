"""Read the labels of groups in a table, in which a cell may have several labels."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import pandas as pd

from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.reading import first_names, shown
from surface_consistency.results.columns import SOURCE
from surface_consistency.rows.cells import is_list
from surface_consistency.text import did_you_mean

_OWN: Final = tuple(f"{n}_{of}" for n in ("first", "second") for of in ("condition", "correct"))


def split_labels(
    frame: pd.DataFrame, columns: Sequence[str], separator: str | None
) -> pd.DataFrame:
    """Split the cells of columns that contain several labels.

    Args:
        frame: The outcomes frame.
        columns: Columns of labels.
        separator: Separator of the labels of a cell, such as ";"; None if a cell is one label.

    Returns:
        The frame with lists of labels, or None for empty cells without a separator.

    Raises:
        ColumnNotFoundError: If a column is not in the frame; the message lists its columns.
        DataError: If a cell is not a label of a group; the message names column and cell.
        ValueError: If a separator is given without columns.
    """
    if separator is not None and not columns:
        raise ValueError("`separator` separates the labels of `by`; name its columns by `by`")
    result = frame.copy(deep=False)
    for column in columns:
        if column not in frame.columns:
            names = frame.attrs.get(SOURCE) or [one for one in map(str, frame) if one not in _OWN]
            raise ColumnNotFoundError(
                f"by={shown(column)} is not among the columns, which are {first_names(names)}"
                f"{did_you_mean(column, names)}"
            )
        labels = [_labels(value, separator) for value in frame[column].array]
        result[column] = check_labels(pd.Series(labels, frame.index, object, column))
    return result


def check_labels(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return the column if every cell is a label or a list of labels; otherwise raise an error.

    Raises:
        DataError: If a cell contains an object or a list of lists; the message names both.
    """
    cells = column if column.dtype == object else ()
    for label in chain.from_iterable(one if is_list(one) else [one] for one in cells):
        if is_list(label) or isinstance(label, Mapping):
            raise DataError(
                f"column {shown(column.name)} contains {shown(label)}, a {type(label).__name__}, "
                "which is not a label of a group; name a column of texts or numbers, or of lists "
                "of them"
            )
    return column


def note_several_labels(frame: pd.DataFrame, columns: Sequence[str]) -> Iterator[str]:
    """Check columns of labels, and report those in which a row has several labels."""
    for name in columns:
        check_labels(frame[name])
        cells = frame[name] if frame[name].dtype == object else ()
        n = sum(is_list(cell) and len({*cell}) > 1 for cell in cells)
        if n:
            yield (
                f"{n:,} of {len(frame):,} rows have several labels in column {name} and count once "
                "for each, so the numbers of its groups add up to more than the number of rows"
            )


def _labels(value: object, separator: str | None) -> object:
    """Return the labels of a cell; an empty cell has no label."""
    if not isinstance(value, str):
        return value
    if separator is None:
        return value or None
    return [part.strip() for part in value.split(separator) if part.strip()]


def label_list(value: object) -> list[str]:
    """Read the labels of a cell.

    Args:
        value: The cell: a label, several labels, or a missing value.

    Returns:
        The labels as text.
    """
    if is_list(value):
        return list(dict.fromkeys(str(item) for item in value if item is not None))
    return [] if pd.isna(value) or value == "" else [str(value)]  # type: ignore[call-overload]
