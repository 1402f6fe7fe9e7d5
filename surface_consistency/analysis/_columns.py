"""The frame and the columns that a function of the library is given."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.metrics._groups import column_names, has_list_cells, plain_label
from surface_consistency.metrics._inputs import MissingPolicy, check_choice
from surface_consistency.reading import first_names
from surface_consistency.results.columns import USUAL
from surface_consistency.text import did_you_mean

_OPTIONAL: Final = ("item", "form", "pair", "cluster", "full", "gold_retrieved")


def to_frame(data: object) -> pd.DataFrame:
    """Return data as a frame with a fresh index.

    Args:
        data: A DataFrame; a `datasets.Dataset`, polars or Arrow table; or a list of dictionaries.

    Returns:
        The frame; it is not a copy of a frame's columns.

    Raises:
        TypeError: If the data are of another type.
        ValueError: If they have no rows.
    """
    if isinstance(data, pd.DataFrame):
        frame = data
    elif hasattr(data, "to_pandas"):
        frame = data.to_pandas()
    elif isinstance(data, list) and data and all(isinstance(row, dict) for row in data):
        frame = pd.DataFrame(data)
    else:
        raise TypeError(
            f"df must be a DataFrame, one row per answer or pair; got {type(data).__name__}; pass "
            "pandas.DataFrame(...) of it"
        )
    if frame.empty:
        raise ValueError("df has no rows; pass a DataFrame with one row per answer or pair")
    return frame.reset_index(drop=True)


def find(frame: pd.DataFrame, role: str, name: str, *, default: str = "") -> str:
    """Find the column of an argument.

    Args:
        frame: The frame.
        role: Name of the argument.
        name: Name of the column that it was given.
        default: Its default. If `name` is the default and not in the frame, the one column that has
            a usual name of the role is used.

    Returns:
        The column.

    Raises:
        ColumnNotFoundError: If the column is not in the frame, or several have a usual name.
        ValueError: If the frame has two columns of that name.
    """
    columns = list(frame.columns)
    if columns.count(name) > 1:
        raise ValueError(f"df has {columns.count(name)} columns {name!r}; rename or drop one")
    if name in columns:
        return name
    usual = [one for one in USUAL.get(role, ()) if one in columns] if name == default else []
    if len(usual) == 1:
        return usual[0]
    listed = f"Columns: {first_names(columns)}"
    if usual:
        raise ColumnNotFoundError(
            f"column {name!r} not found, and {' and '.join(map(repr, usual))} could both be it; "
            f"pass {role}= the name of one. {listed}"
        )
    hint = did_you_mean(name, map(str, columns))
    remedy = f"{role}= the name of a column"
    if role in _OPTIONAL:
        remedy = f"{role}=None or the name of a column"
    raise ColumnNotFoundError(f"column {name!r} not found{hint}; pass {remedy}. {listed}")


def find_optional(frame: pd.DataFrame, role: str, name: str | None, default: str) -> str | None:
    """Find the column of an argument whose default column may be absent.

    Args:
        frame: The frame.
        role: Name of the argument.
        name: Name of the column; None for none.
        default: Its default.

    Returns:
        The column; None if there is none.

    Raises:
        ColumnNotFoundError: If another column than the default is named and is not in the frame.
    """
    if name is None or (name == default and name not in frame):
        return None
    return find(frame, role, name)


def averaged(frame: pd.DataFrame, unit: Sequence[str], scores: Sequence[str]) -> pd.DataFrame:
    """Average the repeats of each observation.

    Args:
        frame: The frame.
        unit: Columns that name an observation.
        scores: Columns of scores; missing ones are excluded from the mean.

    Returns:
        One row per observation, with the other columns of its first row.
    """
    numbers = frame.assign(**{name: pd.to_numeric(frame[name]).astype(float) for name in scores})
    groups = numbers.groupby(list(unit), sort=False, dropna=False)
    means = groups[list(scores)].mean().to_numpy()
    first = numbers.drop_duplicates(list(unit)).reset_index(drop=True)
    return first.assign(**dict(zip(scores, means.T, strict=True)))


class Rows(NamedTuple):
    """The rows of a call, with the columns that name them."""

    frame: pd.DataFrame
    keys: list[str]
    """The column of models, if there are several, and the groups."""
    family: list[str]
    """The column of models if there are groups: columns whose rows are one family of tests."""
    cluster: str | None
    """Column of dependent rows."""
    unit: list[str]
    """Columns that name an observation, with the model and the groups."""
    clusters: str
    """What the clusters are, in the plural."""
    is_binary: bool
    """Whether all known scores are 0 or 1."""
    policy: MissingPolicy
    """Policy of the metric for missing scores."""


def prepare(
    frame: pd.DataFrame,
    scores: Sequence[str],
    unit: Sequence[str | None],
    by: str | Sequence[str],
    cluster: str | None,
    item: str | None,
    model: str,
    repeat: str | None,
    missing: str,
    *,
    binary_reason: str = "",
) -> Rows:
    """Check the columns of a call, and decide what makes its groups and clusters.

    Args:
        frame: As of `to_frame`.
        scores: Columns of scores.
        unit: Columns that name an observation of a model, such as item and form; None is skipped.
        by: Columns of groups.
        cluster: Column of dependent rows; None for the item.
        item: Column of items; None if the frame has none.
        model: Column of models; they make groups if there are several.
        repeat: Column of repeats; None if every observation has one row.
        missing: Policy for missing scores.
        binary_reason: Why graded scores are rejected; empty if they are accepted.

    Returns:
        The rows.

    Raises:
        ColumnNotFoundError: If a column is not in the frame.
        DataError: If an observation has several rows, an id is missing, or a column of ids has
            numbers and texts.
        ValueError: If `missing` is unknown, or a score is graded and must not be.
    """
    check_choice(missing, ("drop", "raise", "wrong"), "missing")
    keys = [find(frame, "by", name) for name in column_names(by)]
    has_models = model in frame and model not in keys and frame[model].nunique() > 1
    family = [model] if has_models and keys else []
    keys = [*([model] if has_models else []), *keys]
    chosen = item if cluster is None else find(frame, "cluster", cluster)
    repeats = [] if repeat is None else [find(frame, "repeat", repeat)]
    own = list(filter(None, unit))
    for name in dict.fromkeys(filter(None, [*own, *repeats, chosen])):
        _check_ids(frame[name])
    labels = [name for name in keys if not has_list_cells(frame[name])]
    observation = [*dict.fromkeys([*labels, *own])]
    if own:
        _refuse_duplicates(frame, observation, repeats)
    elif repeats:
        raise ValueError("repeat needs the column of items; pass item= the name of a column")
    if missing == "wrong":
        filled = {name: frame[name].astype(object).where(frame[name].notna(), 0) for name in scores}
        frame = frame.assign(**filled).infer_objects()
    graded = [_graded(frame[name], binary_reason) for name in scores]
    return Rows(
        frame,
        keys,
        family,
        chosen,
        observation,
        "items" if chosen == item else "clusters",
        not any(graded),
        "raise" if missing == "raise" else "drop",
    )


def _graded(column: "pd.Series[Any]", binary_reason: str) -> bool:
    """Tell whether a score is neither 0 nor 1; reject it if there is a reason."""
    known = column.dropna()
    graded = known[~known.isin((0, 1))]
    if len(graded) and binary_reason:
        score = plain_label(graded.iloc[0])
        raise ValueError(
            f"column {column.name!r} has {score!r} in row {graded.index[0]}, which is neither 0 "
            f"nor 1; {binary_reason}; pass a 0/1 column, such as "
            f"(df[{column.name!r}] >= 0.5), or use accuracy, paired or compare for graded scores"
        )
    return bool(len(graded))


def _check_ids(column: "pd.Series[Any]") -> None:
    """Reject missing ids, and ids of which some are numbers and some are texts."""
    if column.isna().any():
        row = int(np.argmax(column.isna()))
        raise DataError(
            f"column {column.name!r} has no id in row {row}; fill it in, or pass another column"
        )
    if column.dtype == object and len({isinstance(value, str) for value in column}) > 1:
        raise DataError(
            f"column {column.name!r} has ids that are texts and ids that are numbers, which never "
            f"match; convert them with df[{column.name!r}].astype(str)"
        )


def _refuse_duplicates(frame: pd.DataFrame, unit: list[str], repeats: list[str]) -> None:
    """Reject observations that have several rows."""
    named = [*unit, *repeats]
    repeated = frame[named].duplicated()
    if not repeated.any():
        return
    row = frame[repeated].iloc[0]
    first = ", ".join(f"{name}={plain_label(row[name])!r}" for name in named)
    remedy = "drop the duplicates"
    if not repeats:
        remedy += (
            ", or, if they are repeated answers to the same prompt, pass repeat= the column that "
            "numbers them, such as the run"
        )
    raise DataError(
        f"{int(repeated.sum()):,} rows have the same {', '.join(named)} as another row, first "
        f"{first}; {remedy}"
    )
