"""Columns of numbers within bounds."""

from typing import TYPE_CHECKING

import numpy as np

from surface_consistency.metrics._shared.vectors import Floats, numeric_vector

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["distinct_names", "number_column"]


def number_column(
    frame: "pd.DataFrame", column: str, *, least: float = 0.0, most: float = 1.0
) -> Floats:
    """Return a column of numbers within bounds, NaN where missing."""
    values = numeric_vector(frame[column].array, column)
    outside = (values < least) | (values > most)
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(f"{column}[{row}] must lie in [{least:g}, {most:g}]; got {values[row]:g}")
    return values


def distinct_names(names: list[str], option: str) -> list[str]:
    """Return column names when there is one at least and none stands twice."""
    if not names:
        raise ValueError(f"{option} must name at least one column")
    if len(set(names)) != len(names):
        raise ValueError(f"{option} names a column twice: {names}")
    return names
