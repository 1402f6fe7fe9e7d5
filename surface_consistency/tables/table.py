"""A table with a description of each column, from which pages and terminals format it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pandas as pd

from surface_consistency.errors import ColumnNotFoundError

ColumnKind = Literal[
    "label", "count", "rate", "difference", "number", "decimal", "p_value", "verdict", "square"
]
"""Format of a cell: text; an integer; a fraction in [0, 1], shown in percent; a difference in [-1,
1], shown in points with its sign; a plain number; a number with three decimals, such as a
correlation; a p-value; a correctness label; or a small mosaic plot ("square") of the counts in
`Column.cells`."""

Direction = Literal["higher", "lower", "neither"]
"""Values that are better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Meaning and format of one column of a frame."""

    key: str
    """Name of the column of the frame; for a square, any other name."""

    title: str
    """Heading."""

    kind: ColumnKind = "label"
    """How its cells are formatted."""

    unit: str = ""
    """Unit below the heading, such as "correct, %"; none by default."""

    low: str | None = None
    """Column of the lower bound of the interval; None without one."""

    high: str | None = None
    """Column of the upper bound of the interval; None without one."""

    star: str | None = None
    """Column of p-values: a cell with p < 0.01 has an asterisk; None without asterisks."""

    beside: tuple[str, str, str] | None = None
    """Column of a number that follows in the cell, its kind, and its format, such as "({} %)"; None
    without one."""

    cells: tuple[str, str, str, str] | None = None
    """For a square: columns of both, first only, second only, neither."""

    group: str = ""
    """Common heading of neighbouring columns; none by default."""

    direction: Direction = "neither"
    """Values that are better."""

    on_phones: bool = True
    """Whether narrow screens show it."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """Display names of labels; other labels are shown unchanged."""

    @property
    def frame_columns(self) -> tuple[str, ...]:
        """Columns of the frame that a cell shows: value or counts, bounds and further numbers."""
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
    """Describe a column whose interval is in the columns `<key>_low` and `<key>_high`.

    Args:
        key: Name of the column of the frame.
        title: Heading.
        kind: How its cells are formatted.
        unit: Unit below the heading; none by default.
        direction: Values that are better.
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
    """A frame, its caption and a description of each column that is shown.

    The CSV file contains the entire frame; pages and terminals show the described columns in order.

    Raises:
        ColumnNotFoundError: If a description names a column that the frame does not have.
    """

    frame: pd.DataFrame
    """The numbers: rates and differences as fractions."""

    caption: str
    """Caption, at most one sentence."""

    columns: Sequence[Column]
    """The columns that are shown."""

    note: str = ""
    """Note below the table on the limitations of the numbers; none by default."""

    model: str | None = "model"
    """Column of the name of the run; None if rows do not belong to single runs."""

    cluster_column: str | None = None
    """Column of the number of clusters, by which rows with few clusters are faded; None for no
    fading."""

    label: str = ""
    """Label for LaTeX, which pages then offer; "" without one."""

    def __post_init__(self) -> None:
        """Check that the frame has all described columns."""
        wanted = [name for column in self.columns for name in column.frame_columns]
        missing = [name for name in dict.fromkeys(wanted) if name not in self.frame]
        if missing:
            raise ColumnNotFoundError(
                f"table {self.caption!r} has no column {', '.join(map(repr, missing))}; its frame "
                f"has {', '.join(map(repr, self.frame.columns))}"
            )
