"""The paired table of anyone's verdicts, by group: what `surface-consistency compare` prints.

Two conditions are told by what flips between them, kappa, tests by name and resampled intervals,
which several models have no words for; differences, intervals and p are those of `compare_models`.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

import numpy as np
import pandas as pd

from surface_consistency.analysis.settings import TableSettings
from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.metrics.paired.multiplicity import with_adjusted_p_values
from surface_consistency.metrics.paired.paired_groups import paired_by
from surface_consistency.metrics.paired.paired_tables import PAIRED_RATES
from surface_consistency.metrics.uncertainty.intervals import Intervals
from surface_consistency.tables.table import Column, Table, interval_column
from surface_consistency.tables.tabulation import describe

_RATES: Final = ("consistency", "signed_alignment", "flip_rate", "accuracy_difference")
_CELLS: Final = ("both", "first_only", "second_only", "neither")
_SHOWN: Final = (
    *(*_CELLS, "n", *_RATES, "n_missing", "n_clusters"),
    *("statistic", "p_value", "test", "p_value_holm"),
    *(f"{name}_{end}" for name in _RATES for end in ("low", "high")),
)
_OWN: Final = tuple(f"{n}_{of}" for n in ("first", "second") for of in ("condition", "correct"))
_CLUSTERED: Final = ("obuchowski", "durkalski")


def compare_verdicts(frame: pd.DataFrame, settings: TableSettings | None = None) -> pd.DataFrame:
    """Compute the paired table of each group of an outcomes frame.

    Args:
        frame: The outcomes frame, as from `read_verdicts`; clusters are its `item`.
        settings: By what and how; None for one row of all pairs.

    Returns:
        One row a group: its labels, then both, first_only, second_only, neither, n, n_clusters,
        n_missing; consistency, flip_rate, signed_alignment and accuracy_difference (that of the
        second less that of the first), each with its bounds; statistic, p_value,
        test and p_value_holm, corrected for the number of groups. Undefined
        numbers are NaN, the test of a group without scored pairs among them.

    Raises:
        ColumnNotFoundError: If a column of `by` is not there; the message lists those seen.
        ValueError: If a pair stands twice in a group, a column of `by` has the name of a column of
            the result, or the test is for clusters and there are none.
    """
    settings = settings or TableSettings()
    keys = list(settings.by)
    split = split_labels(frame, keys, settings.separator)
    if settings.test in _CLUSTERED and frame["item"].is_unique:
        raise ValueError(
            f"test={settings.test!r} is for pairs that share clusters, but every pair is a cluster "
            "of its own; name the column of clusters, or take a test for independent pairs"
        )
    rows = paired_by(
        split,
        by=keys,
        pair="pair",
        rates={name: PAIRED_RATES[name] for name in _RATES},
        test=settings.test,
        intervals=Intervals(
            confidence=settings.confidence,
            method=settings.interval,
            resamples=settings.resamples,
            seed=settings.seed,
        ),
    )
    return with_adjusted_p_values(rows)[[*keys, *_SHOWN]]


def verdicts_table(rows: pd.DataFrame, by: Sequence[str], *, first: str, second: str) -> Table:
    """Describe the rows of `compare_verdicts`.

    Args:
        rows: The rows.
        by: Columns of their labels.
        first: Name of the first condition.
        second: Name of the second condition.

    Returns:
        The table: pairs, clusters, cells, rates with their intervals, the accuracy of the second
        condition less that of the first, p, for several groups also after Holm's correction, and
        the form of the test; how many pairs lack a verdict where any does.
    """
    cells = zip(_CELLS, ("Both", f"{first} only", f"{second} only", "Neither"), strict=True)
    holm = Column(key="p_value_holm", title="p", kind="p_value", unit="Holm")
    shown: list[str | Column] = [
        *(Column(key=key, title=key) for key in by),
        "n",
        Column(key="n_clusters", title="Clusters", kind="count"),
        *(Column(key=key, title=title, kind="count") for key, title in cells),
        interval_column("consistency", "Same verdict", "rate", "%"),
        "flip_rate",
        interval_column("accuracy_difference", f"{second} - {first}", "difference", "points"),
        Column(key="p_value", title="p", kind="p_value"),
        *([holm] if len(rows) > 1 else []),
        Column(key="test", title="Test"),
        *(["n_missing"] if rows["n_missing"].any() else []),
    ]
    return describe(rows, f"{second} against {first}", shown, model=None)


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
    """
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
