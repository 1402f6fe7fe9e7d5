"""A table with what its columns mean, so that nobody who sets it has to guess from their names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pandas as pd

from surface_consistency.errors import ColumnNotFoundError

ColumnKind = Literal[
    "label", "count", "rate", "difference", "number", "decimal", "p_value", "verdict", "square"
]
"""How a cell is set: text; a whole number; a fraction in [0, 1], shown in percent; a difference in
[-1, 1], shown in points with its sign; a number as it is; a number with three decimals, such as a
correlation; a p-value; right, wrong or not judged; or the paired square of the counts that
`Column.cells` names."""

Direction = Literal["higher", "lower", "neither"]
"""Which values are better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What one column of a frame means and how it is shown."""

    key: str
    """Name of the frame's column; for a square, any name of its own."""

    title: str
    """Heading, in the words of the field."""

    kind: ColumnKind = "label"
    """How its cells are set."""

    unit: str = ""
    """Unit under the heading, such as "right, %"; none by default."""

    low: str | None = None
    """Column of the lower bound of the interval; None without one."""

    high: str | None = None
    """Column of the upper bound of the interval; None without one."""

    star: str | None = None
    """Column of p-values: a cell whose p-value is below 0.01 has an asterisk; None for none."""

    beside: tuple[str, str, str] | None = None
    """Column of a number that follows a cell, its kind, and its form such as "({} %)"; None for
    none."""

    cells: tuple[str, str, str, str] | None = None
    """For a square: columns of both, first only, second only, neither."""

    group: str = ""
    """Heading that neighbouring columns share; none by default."""

    direction: Direction = "neither"
    """Which values are better."""

    on_phones: bool = True
    """Whether narrow screens show it."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """Wording of labels for people; a label that is not there is shown as it is."""

    @property
    def frame_columns(self) -> tuple[str, ...]:
        """Columns of the frame that a cell is set from: value or counts, and what follows it."""
        bounds = (self.low, self.high, self.star, (self.beside or (None,))[0])
        return (*(self.cells or (self.key,)), *(name for name in bounds if name is not None))


def interval_column(
    key: str,
    title: str,
    kind: ColumnKind = "rate",
    unit: str = "",
    *,
    direction: Direction = "neither",
    on_phones: bool = True,
) -> Column:
    """Describe a column whose interval stands in the columns `<key>_low` and `<key>_high`.

    Args:
        key: Name of the frame's column.
        title: Heading.
        kind: How its cells are set.
        unit: Unit under the heading; none by default.
        direction: Which values are better.
        on_phones: Whether narrow screens show it.

    Returns:
        The column.
    """
    low, high = f"{key}_low", f"{key}_high"
    return Column(
        key=key, title=title, kind=kind, unit=unit, low=low, high=high,
        direction=direction, on_phones=on_phones,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """A frame, its caption and a spec for each column that people see.

    The CSV file holds the whole frame; pages and terminals show the columns of the spec, in its
    order.

    Raises:
        ColumnNotFoundError: If the spec names a column that the frame does not have.
    """

    frame: pd.DataFrame
    """The numbers: rates and differences as fractions."""

    caption: str
    """What the table shows, in one sentence or less."""

    columns: Sequence[Column]
    """The columns that are shown."""

    note: str = ""
    """What limits the numbers, below the table; none by default."""

    model: str | None = "model"
    """Column that names the run of a row; None where rows are of no run."""

    cluster_column: str | None = None
    """Column of the number of clusters, by which rows on few are faded; None for none."""

    label: str = ""
    """Label of the table in LaTeX, which pages then contain; "" for none."""

    def __post_init__(self) -> None:
        """Refuse a spec of columns that are not there."""
        wanted = [name for column in self.columns for name in column.frame_columns]
        missing = [name for name in dict.fromkeys(wanted) if name not in self.frame]
        if missing:
            raise ColumnNotFoundError(
                f"table {self.caption!r} has no column {', '.join(map(repr, missing))}; its frame "
                f"has {', '.join(map(repr, self.frame.columns))}"
            )
