"""Cells of a source of verdicts: required columns, verdicts and identifiers."""

from typing import TYPE_CHECKING, Any

from surface_consistency.errors import ColumnNotFoundError
from surface_consistency.metrics._shared.verdicts import is_missing
from surface_consistency.metrics.paired.verdict_cells import parse_verdict

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["as_booleans", "as_text", "identifiers", "need_column", "verdict_column"]


def need_column(frame: "pd.DataFrame", column: str, role: str) -> None:
    """Make sure that a column is there, once."""
    seen = list(frame.columns)
    if column not in seen:
        raise ColumnNotFoundError(
            f"{role}={column!r} is not among the columns, which are {seen}: name the right one"
        )
    if seen.count(column) > 1:
        raise ValueError(f"column {column!r} stands {seen.count(column)} times")


def verdict_column(frame: "pd.DataFrame", column: str) -> "pd.Series[Any]":
    """Read a column of verdicts."""
    found: list[bool | None] = []
    for number, value in enumerate(frame[column].array, start=1):
        try:
            found.append(parse_verdict(value))
        except ValueError as error:
            raise ValueError(f"row {number}, column {column!r}: {error}") from None
    return as_booleans(found, index=frame.index)


def as_booleans(
    values: list[bool | None], index: "pd.Index[Any] | None" = None
) -> "pd.Series[Any]":
    """Return verdicts as nullable booleans."""
    import pandas as pd

    series: pd.Series[Any] = pd.Series(values, index=index, dtype="boolean")
    return series


def identifiers(frame: "pd.DataFrame", column: str) -> list[str]:
    """Return a column of identifiers as text."""
    need_column(frame, column, "column")
    texts = [as_text(value) for value in frame[column].array]
    if "" in texts:
        raise ValueError(
            f"column {column!r} is empty in row {texts.index('') + 1}: every row needs one"
        )
    return texts


def as_text(value: object) -> str:
    """Return an identifier as text, whole floats, which gaps make, as integers."""
    if is_missing(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
