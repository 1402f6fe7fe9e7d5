"""Functions that compute a table by group, and describe its columns."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import pandas as pd

from surface_consistency.errors import ColumnNotFoundError
from surface_consistency.tables.columns import COLUMNS
from surface_consistency.tables.table import Column, Table

Row: TypeAlias = Mapping[str, object]
"""A row of a table: values by column."""

Statistic: TypeAlias = "Callable[[pd.DataFrame], Row | Iterable[Row] | None]"
"""A function from the rows of a group to one row of a table, several rows, or None."""


def tabulate(frame: pd.DataFrame, by: Sequence[str], statistic: Statistic) -> pd.DataFrame:
    """Compute a statistic of each group of rows.

    Args:
        frame: Rows, such as the outcomes of several runs.
        by: Columns of the groups, the outermost first; empty for one group of all rows.
        statistic: Computes a row of the table from the rows of a group, as values by column; or
            several such rows; or None for no row.

    Returns:
        The rows of the statistic: the columns of `by`, then those of the statistic. Groups are in
        the order of their first row, with the groups of one outer group together. Rows with a
        missing value in a column of `by` are also a group. Without any row, the result is an empty
        frame with the columns of `by`.

    Raises:
        ColumnNotFoundError: If a column of `by` is not in the frame.
        ValueError: If a row of the statistic contains a column of `by`.

    Examples:
        >>> flips = pd.DataFrame({"model": ["a", "b", "a"], "is_flip": [True, False, False]})
        >>> tabulate(flips, ["model"], lambda part: {"flip_rate": part["is_flip"].mean()})
          model  flip_rate
        0     a        0.5
        1     b        0.0
    """
    missing = [name for name in by if name not in frame]
    if missing:
        raise ColumnNotFoundError(
            f"cannot group by {', '.join(map(repr, missing))}: the frame has the columns "
            f"{', '.join(map(repr, frame.columns))}"
        )
    rows = [
        {**keys, **row}
        for keys, part in _groups(frame, by)
        for row in _rows_of_group(statistic(part), by)
    ]
    return pd.DataFrame(rows, columns=None if rows else list(by))


def _groups(
    frame: pd.DataFrame, by: Sequence[str]
) -> Iterator[tuple[dict[str, object], pd.DataFrame]]:
    """Yield nested groups of rows, each level in the order of first rows."""
    if not by:
        yield {}, frame
        return
    levels = [
        frame.groupby(list(by[:depth]), sort=False, dropna=False, observed=True).ngroup()
        for depth in range(1, len(by) + 1)
    ]
    for _, part in frame.groupby([level.to_numpy() for level in levels]):
        yield {name: part[name].iloc[0] for name in by}, part


def _rows_of_group(
    given: "Row | Iterable[Row] | None", by: Sequence[str]
) -> Iterator[Mapping[str, object]]:
    """Yield the rows of the statistic of a group."""
    if given is None:
        return
    for row in [given] if isinstance(given, Mapping) else given:
        twice = [name for name in by if name in row]
        if twice:
            raise ValueError(
                f"the statistic returns {', '.join(map(repr, twice))}, a column by which the frame "
                "is grouped; rename it"
            )
        yield row


def describe(
    frame: pd.DataFrame,
    caption: str,
    shown: str | Iterable[str | Column],
    *,
    titles: Mapping[str, str] | None = None,
    labels: Mapping[str, Mapping[str, str]] | None = None,
    note: str = "",
    model: str | None = "model",
    cluster_column: str | None = "n_clusters",
) -> Table:
    """Return a table of a frame, with the columns as the catalogue describes them.

    Args:
        frame: The numbers, such as those of `tabulate`.
        caption: Caption, at most one sentence.
        shown: The columns that are shown, in order: keys of `COLUMNS`, separated by spaces in one
            or several strings, and descriptions of columns that only this table has. `column:key`
            shows a column of the frame as the entry `key` of the catalogue; `key?` is shown if the
            frame has the column.
        titles: Headings of this table by column, instead of those of the catalogue.
        labels: Display names of the labels of a column, by column.
        note: Note below the table on the limitations of the numbers; none by default.
        model: Column of the name of the run; None if rows do not belong to single runs.
        cluster_column: Column of the number of clusters, by which rows with few clusters are faded,
            if the frame has it; None for no fading.

    Returns:
        The table. In a frame without rows, missing columns are added, empty. In a frame with rows,
        a column whose bounds are missing is shown without an interval.

    Raises:
        ValueError: If the catalogue lacks a key, or `titles` names a column that is not shown.
        ColumnNotFoundError: If a frame with rows lacks a shown column.

    Examples:
        >>> numbers = pd.DataFrame({"model": ["a"], "n": [20], "p_value": [0.03]})
        >>> table = describe(numbers, "Flips of names", "model n:slots p_value")
        >>> [column.title for column in table.columns]
        ['Model', 'Slots', 'p']
    """
    columns = [
        column
        for part in ([shown] if isinstance(shown, str) else shown)
        for key in (part.split() if isinstance(part, str) else [part])
        if (column := _described(key, frame, caption)) is not None
    ]
    for key, title in (titles or {}).items():
        places = [place for place, column in enumerate(columns) if column.key == key]
        if not places:
            raise ValueError(f"table {caption!r} shows no column {key!r} that titles could head")
        columns[places[0]] = replace(columns[places[0]], title=title)
    columns = [
        replace(one, labels=(labels or {})[one.key]) if one.key in (labels or {}) else one
        for one in columns
    ]
    if frame.empty:
        wanted = [name for column in columns for name in column.frame_columns]
        frame = frame.reindex(columns=list(dict.fromkeys([*frame.columns, *wanted])))
    return Table(
        frame=frame,
        caption=caption,
        columns=columns,
        note=note,
        model=model,
        cluster_column=cluster_column if cluster_column in frame else None,
    )


def _described(key: str | Column, frame: pd.DataFrame, caption: str) -> Column | None:
    """Look up the description of a column; None for an optional column that the frame lacks."""
    if isinstance(key, Column):
        return key
    name, _, entry = key.removesuffix("?").partition(":")
    entry = entry or name
    if entry not in COLUMNS:
        raise ValueError(
            f"table {caption!r} shows {entry!r}, which the catalogue does not describe; pass a "
            "Column for it, or add a row to columns.tsv"
        )
    column = COLUMNS[entry]
    if key.endswith("?") and not {*(column.cells or (name,))} <= {*frame.columns}:
        return None
    bounds: tuple[str | None, str | None] = (None, None)
    if column.low is not None and (frame.empty or f"{name}_low" in frame):
        bounds = (f"{name}_low", f"{name}_high")
    return replace(column, key=name, low=bounds[0], high=bounds[1])
