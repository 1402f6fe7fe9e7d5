"""The surface instances of a frame, read once, and the subsets that a frequency analysis takes."""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import UnscoredWarning
from surface_consistency.metrics._shared.frames import cluster_codes
from surface_consistency.metrics._shared.vectors import Floats
from surface_consistency.metrics._shared.verdicts import MISSING, MissingPolicy, verdict_codes
from surface_consistency.metrics.frequency._number_columns import number_column

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SUBSETS", "FrequencyRows", "SubsetRows", "read_rows", "take_subset", "warn_missing"]

SUBSETS = ("overall", "canonical", "redirect", "redirect_high_frequency")
"""The subsets of a frequency analysis, in the order of its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrequencyRows:
    """Surface instances as arrays, one entry a row of the frame."""

    entity: Floats
    """Entity frequencies; NaN where missing."""
    surface: Floats
    """Surface frequencies; NaN where missing."""
    canonical: npt.NDArray[np.bool_]
    """Whether the surface is the canonical one."""
    accuracies: Floats
    """Accuracies, shape `(n_rows, n_models)`; NaN where missing."""
    clusters: npt.NDArray[np.int64]
    """Cluster codes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetRows:
    """What the filters leave of a subset, and the numbers of rows that they dropped."""

    positions: npt.NDArray[np.intp]
    """Rows whose two frequencies can be used."""
    n_zero: int
    """Rows with a frequency of zero."""
    n_below: int
    """Rows whose surface frequency is above zero and at most the threshold."""
    n_missing: int
    """Rows that lack a frequency."""


def read_rows(
    frame: "pd.DataFrame",
    *,
    accuracies: list[str],
    entity_frequency: str,
    surface_frequency: str,
    is_canonical: str,
    cluster: str | None,
    missing: MissingPolicy,
) -> FrequencyRows:
    """Read and check the columns of a frame."""
    columns = {
        name: number_column(frame, name, most=np.inf)
        for name in (entity_frequency, surface_frequency)
    }
    columns |= {name: number_column(frame, name) for name in accuracies}
    if missing == "raise":
        _refuse_missing(columns)
    canonical = verdict_codes(frame[is_canonical].array, is_canonical)
    if (canonical == MISSING).any():
        row = int(np.argmax(canonical == MISSING))
        raise ValueError(f"{is_canonical}[{row}] is missing: say whether the surface is canonical")
    return FrequencyRows(
        entity=columns[entity_frequency],
        surface=columns[surface_frequency],
        canonical=canonical == 1,
        accuracies=np.column_stack([columns[name] for name in accuracies]),
        clusters=cluster_codes(frame, cluster),
    )


def take_subset(
    rows: FrequencyRows, positions: npt.NDArray[np.intp], subset: str, threshold: float
) -> SubsetRows:
    """Return the usable rows of a subset of some rows."""
    if subset != "overall":
        positions = positions[rows.canonical[positions] == (subset == "canonical")]
    entity, surface = rows.entity[positions], rows.surface[positions]
    absent = np.isnan(entity) | np.isnan(surface)
    zero = ~absent & ((entity == 0.0) | (surface == 0.0))
    below = np.zeros(positions.size, dtype=np.bool_)
    if subset == "redirect_high_frequency":
        below = ~absent & ~zero & (surface <= threshold)
    return SubsetRows(
        positions=positions[~(absent | zero | below)],
        n_zero=int(np.count_nonzero(zero)),
        n_below=int(np.count_nonzero(below)),
        n_missing=int(np.count_nonzero(absent)),
    )


def warn_missing(rows: FrequencyRows, n_rows: int, *, stacklevel: int) -> None:
    """Say how many rows lack a frequency or an accuracy, where any do."""
    lacking = np.isnan(rows.entity) | np.isnan(rows.surface)
    lacking |= np.isnan(rows.accuracies).any(axis=1)
    if lacking.any():
        warnings.warn(
            f"{int(lacking.sum())} of {n_rows} surface instances lack a frequency or an accuracy "
            "and were left out where it is needed",
            UnscoredWarning,
            stacklevel=stacklevel + 1,
        )


def _refuse_missing(columns: dict[str, Floats]) -> None:
    """Raise for the first column with a gap."""
    for name, column in columns.items():
        absent = np.isnan(column)
        if absent.any():
            raise ValueError(
                f"{name}[{int(np.argmax(absent))}] is missing (in all {int(absent.sum())} of "
                f"{column.size}): fill it in, or pass missing='drop' to leave such rows out"
            )
