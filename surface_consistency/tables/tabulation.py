"""From a frame to a described table: group, compute, lay out, describe."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from math import nan
from typing import TYPE_CHECKING, TypeAlias

import pandas as pd

from surface_consistency.errors import ColumnNotFoundError
from surface_consistency.tables.columns import COLUMNS
from surface_consistency.tables.table import Column, Table

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Row: TypeAlias = "Mapping[str, object] | DataclassInstance"
"""A row of a table: the result of a metric, or values by column."""

Statistic: TypeAlias = "Callable[[pd.DataFrame], Row | Iterable[Row] | None]"
"""Computes from the rows of a group one row of a table, several, or None for none."""

_INTERVAL = "_interval"


def spread(
    result: "DataclassInstance | type[DataclassInstance]",
    names: Iterable[str] | Mapping[str, str] | None = None,
) -> dict[str, object]:
    """Lay the result of a metric out as columns, the interval of `x` as `x_low` and `x_high`.

    Args:
        result: A dataclass whose fields `x_interval` hold intervals, with bounds `low` and `high`,
            or None, as those of `surface_consistency.metrics` do; or its class, for a group that
            has no result.
        names: Fields that are laid out, each with its interval; a mapping gives the columns other
            names. All by default.

    Returns:
        Values by column, in the order of the fields or of `names`; bounds are NaN where an interval
        is None, and everything is NaN for a class.

    Raises:
        ValueError: If a name is no field of the result.

    Examples:
        >>> from surface_consistency.metrics import clustered_auc
        >>> area = clustered_auc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], [1, 2, 3, 4])
        >>> list(spread(area, {"auc": "area"}))
        ['area', 'area_low', 'area_high']
    """
    known = [field.name for field in fields(result)]
    if names is None:
        names = [name for name in known if not name.endswith(_INTERVAL)]
    columns = names if isinstance(names, Mapping) else {name: name for name in names}
    unknown = [name for name in columns if name not in known]
    if unknown:
        kind = result if isinstance(result, type) else type(result)
        raise ValueError(
            f"{kind.__name__} has no field {', '.join(map(repr, unknown))}; name some of "
            f"{', '.join(known)}"
        )
    row: dict[str, object] = {}
    for name, column in columns.items():
        row[column] = nan if isinstance(result, type) else getattr(result, name)
        if name + _INTERVAL in known:
            bounds = None if isinstance(result, type) else getattr(result, name + _INTERVAL)
            row[f"{column}_low"] = nan if bounds is None else bounds.low
            row[f"{column}_high"] = nan if bounds is None else bounds.high
    return row


def tabulate(frame: pd.DataFrame, by: Sequence[str], statistic: Statistic) -> pd.DataFrame:
    """Compute a statistic of each group of rows.

    Args:
        frame: Rows, such as the outcomes of several runs.
        by: Columns that name a group, the outermost first; none for a single group of all rows.
        statistic: Computes from the rows of a group a row of the table: the result of a metric,
            laid out by `spread`, or values by column; several such rows; or None for no row.

    Returns:
        One row for each that the statistic gave: the columns of `by`, then its own. Groups stand in
        the order in which they first appear, those of one outer group together; rows without a
        value in a column of `by` make a group too. Where no group gives a row, an empty frame with
        the columns of `by`.

    Raises:
        ColumnNotFoundError: If the frame lacks a column of `by`.
        ValueError: If a row of the statistic names a column of `by`.

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
    """Part rows into groups: nested, each level in order of first appearance."""
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
    """Lay out what a statistic gave of a group."""
    if given is None:
        return
    if isinstance(given, Mapping) or is_dataclass(given):
        given = [given]
    for row in given:
        cells = row if isinstance(row, Mapping) else spread(row)
        twice = [name for name in by if name in cells]
        if twice:
            raise ValueError(
                f"the statistic gives {', '.join(map(repr, twice))}, by which the frame is "
                "grouped; give that column another name"
            )
        yield cells


def describe(
    frame: pd.DataFrame,
    caption: str,
    shown: str | Iterable[str | Column],
    catalogue: Mapping[str, Column] = COLUMNS,
    *,
    titles: Mapping[str, str] | None = None,
    note: str = "",
    model: str | None = "model",
    cluster_column: str | None = None,
) -> Table:
    """Make a table of a frame whose columns a catalogue describes.

    Args:
        frame: The numbers, such as those of `tabulate`.
        caption: What the table shows, in one sentence or less.
        shown: Keys of the columns that people see, in order: one string with spaces between them,
            or several such strings, and descriptions of columns that are this table's alone.
        catalogue: Descriptions by key.
        titles: Headings of this table by key, in place of those in the catalogue.
        note: What limits the numbers, below the table; none by default.
        model: Column that names the run of a row; None where rows are of no run.
        cluster_column: Column of the number of clusters, by which rows on few are faded; or None.

    Returns:
        The table. A frame without rows gets the shown columns that it lacks, empty.

    Raises:
        ValueError: If the catalogue lacks a key, or `titles` names a column that is not shown.
        ColumnNotFoundError: If a frame with rows lacks a shown column.

    Examples:
        >>> numbers = pd.DataFrame({"model": ["a"], "n": [20], "p_value": [0.03]})
        >>> table = describe(numbers, "Flips of names", "model n p_value", titles={"n": "Names"})
        >>> [column.title for column in table.columns]
        ['Model', 'Names', 'p']
    """
    parts = shown.split() if isinstance(shown, str) else _split(shown)
    columns = [_described(part, catalogue, caption) for part in parts]
    for key, title in (titles or {}).items():
        places = [place for place, column in enumerate(columns) if column.key == key]
        if not places:
            raise ValueError(f"table {caption!r} shows no column {key!r} that titles could head")
        columns[places[0]] = replace(columns[places[0]], title=title)
    if frame.empty:
        wanted = [name for column in columns for name in column.frame_columns]
        frame = frame.reindex(columns=list(dict.fromkeys([*frame.columns, *wanted])))
    return Table(
        frame=frame,
        caption=caption,
        columns=columns,
        note=note,
        model=model,
        cluster_column=cluster_column,
    )


def _split(shown: Iterable[str | Column]) -> Iterator[str | Column]:
    """Part strings of several keys."""
    for part in shown:
        if isinstance(part, str):
            yield from part.split()
        else:
            yield part


def _described(part: str | Column, catalogue: Mapping[str, Column], caption: str) -> Column:
    """Look a key up; a description stands for itself."""
    if isinstance(part, Column):
        return part
    if part not in catalogue:
        raise ValueError(
            f"table {caption!r} shows {part!r}, which its catalogue does not describe; add a "
            f"Column of that key, or show some of {', '.join(catalogue)}"
        )
    return catalogue[part]
