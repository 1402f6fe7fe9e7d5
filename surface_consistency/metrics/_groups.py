"""Check the columns of a frame, split its rows into groups, and compute statistics per group."""

import hashlib
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.clusters import FEW_CLUSTERS
from surface_consistency.errors import ColumnNotFoundError, DataWarning
from surface_consistency.metrics import _inputs
from surface_consistency.metrics.paired.paired_tables import CountRatio
from surface_consistency.metrics.uncertainty.bootstrap import (
    GroupValue,
    Statistic,
    cluster_sums,
    values_of_groups,
)
from surface_consistency.metrics.uncertainty.intervals import Intervals, check_seed
from surface_consistency.reading import shown


def column_names(columns: str | Sequence[str]) -> list[str]:
    """Return one name or several as a list."""
    return [columns] if isinstance(columns, str) else list(columns)


def grouping_columns(by: str | Sequence[str], result_columns: Iterable[str]) -> list[str]:
    """Return the grouping columns as a list; raise an error if one is a column of the result."""
    keys = column_names(by)
    if len(set(keys)) != len(keys):
        raise ValueError(f"by contains a column twice: {keys}")
    clashes = sorted(set(keys) & set(result_columns))
    if clashes:
        raise ValueError(
            f"by column {shown(clashes[0])} has the name of a column of the result; rename it"
        )
    return keys


def root_seed(rng: object, *, below: int = 2**63) -> int:
    """Return the seed from which each group derives its seed: `rng`, or one drawn from it."""
    seed = check_seed(rng)
    if seed is None:
        seed = np.random.default_rng()
    return seed if isinstance(seed, int) else int(seed.integers(below))


def check_frame(frame: object, needed: Sequence[str], *, options: str, row: str = "pair") -> None:
    """Raise an error if the frame has no rows or does not have each needed column exactly once."""
    if not isinstance(frame, pd.DataFrame):
        module = type(frame).__module__.partition(".")[0]
        remedy = "build one with pandas.DataFrame(...)"
        if hasattr(frame, "to_pandas"):
            remedy = "pass frame.to_pandas()"
        raise TypeError(
            f"frame must be a pandas DataFrame, one row per {row}; got {type(frame).__name__}"
            f"{f' of {module}' if module not in ('builtins', 'numpy') else ''}: {remedy}"
        )
    seen = list(frame.columns)
    for column in needed:
        if column not in seen:
            raise ColumnNotFoundError(
                f"column {shown(column)} not found; pass the name of a column as {options}. "
                f"Columns: {', '.join(map(str, seen))}"
            )
        if seen.count(column) > 1:
            raise ValueError(
                f"column {shown(column)} occurs {seen.count(column)} times in the frame"
            )
    if frame.empty:
        raise ValueError(f"frame has no rows: it needs at least one {row}")


def cluster_codes(frame: pd.DataFrame, cluster: str | None) -> _inputs.Integers:
    """Number the clusters of the rows."""
    if cluster is None:
        return np.arange(len(frame))
    codes, labels = pd.factorize(frame[cluster])
    if labels.dtype == object:
        _inputs.check_label_types(labels, f"column {shown(cluster)}")
    if (codes < 0).any():
        raise ValueError(
            f"column {shown(cluster)} has no cluster id in row {int(np.argmax(codes < 0))}: fill "
            "it in, or pass cluster=None to make each row a separate cluster"
        )
    return codes.astype(np.int64)


GroupKey: TypeAlias = tuple[object, ...]
"""The labels of a group, one per grouping column."""

UNLABELLED = "none"
"""Label of the group of pairs for which the grouping column is empty."""

_LISTS = (list, tuple, set, frozenset, np.ndarray)


class _Coded(NamedTuple):
    """The labels of the cells of a column, as codes."""

    labels: list[object]
    """Distinct labels."""

    codes: npt.NDArray[np.intp]
    """Positions in `labels`, cell by cell."""

    sizes: npt.NDArray[np.intp]
    """Number of labels of each cell, at least 1."""


def group_positions(frame: pd.DataFrame, keys: list[str]) -> dict[GroupKey, npt.NDArray[np.intp]]:
    """Return the row positions of each group, the groups sorted by label."""
    rows = np.arange(len(frame))
    if not keys:
        return {(): rows}
    groups = np.zeros(rows.size, dtype=np.intp)
    columns, coded = [_coded(frame[key]) for key in keys], np.empty((0, rows.size), dtype=np.intp)
    for column in columns:
        # Repeat a row once for each label of its cell, in the order of the labels.
        sizes = column.sizes[rows]
        starts = (np.cumsum(column.sizes) - column.sizes)[rows]
        places = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
        rows, groups, coded = (np.repeat(part, sizes, axis=-1) for part in (rows, groups, coded))
        coded = np.vstack([coded, column.codes[places]])
        # Renumbered, so that the product over many columns fits an integer.
        groups = np.unique(groups * len(column.labels) + coded[-1], return_inverse=True)[1]
    _, first, sizes = np.unique(groups, return_index=True, return_counts=True)
    members = rows[np.argsort(groups, kind="stable")]
    ends = np.cumsum(sizes)
    members_of: dict[GroupKey, npt.NDArray[np.intp]] = {}
    for group in np.argsort(first):
        labels = zip(columns, coded[:, first[group]], strict=True)
        key = tuple(column.labels[code] for column, code in labels)
        members_of[key] = members[ends[group] - sizes[group] : ends[group]]
    return {key: members_of[key] for key in sorted(members_of, key=_sort_key)}


def _coded(column: "pd.Series[Any]") -> _Coded:
    """Number the labels of a column; raise an error if a label is the name for empty cells."""
    numbers: dict[object, int] = {}
    if has_list_cells(column):
        cells = _coded_lists(column, numbers)
        codes = np.asarray([code for cell in cells for code in cell], dtype=np.intp)
        sizes = np.asarray([len(cell) for cell in cells], dtype=np.intp)
    else:
        positions, distinct = pd.factorize(column)
        named = [numbers.setdefault(plain_label(value), len(numbers)) for value in distinct]
        # An empty cell has position -1, the last element.
        codes = np.asarray([*named, -1], dtype=np.intp)[positions]
        sizes = np.ones(codes.size, dtype=np.intp)
    is_empty = codes < 0
    if is_empty.any():
        if UNLABELLED in numbers:
            raise ValueError(
                f"column {shown(column.name)} has empty cells and also the label {UNLABELLED!r}, "
                "which is the name of their group: rename the label, or fill the empty cells in"
            )
        codes[is_empty] = numbers.setdefault(UNLABELLED, len(numbers))
    return _Coded(list(numbers), codes, sizes)


def _coded_lists(column: "pd.Series[Any]", numbers: dict[object, int]) -> list[list[int]]:
    """Number the labels of each cell in `numbers`; an empty cell has only the code -1."""
    known: dict[tuple[object, ...], list[int]] = {}
    cells = []
    for value in column.to_numpy(dtype=object):
        values = tuple(value) if isinstance(value, _LISTS) else (value,)
        codes = known.get(values)
        if codes is None:
            labels = dict.fromkeys(
                plain_label(label) for label in values if not _inputs.is_missing(label)
            )
            codes = [numbers.setdefault(label, len(numbers)) for label in labels] or [-1]
            known[values] = codes
        cells.append(codes)
    return cells


def has_list_cells(column: "pd.Series[Any]") -> bool:
    """Return whether a cell of a column contains several labels."""
    kind = column.dtype
    if isinstance(kind, pd.StringDtype) or (isinstance(kind, np.dtype) and kind != np.object_):
        return False
    return any(issubclass(cell, _LISTS) for cell in set(map(type, column.to_numpy(dtype=object))))


def plain_label(label: object) -> object:
    """Convert numpy scalars to Python ones, and integral floats (from missing values) to int."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, float) and label.is_integer():
        return int(label)
    return label


def _sort_key(key: GroupKey) -> tuple[tuple[str, object], ...]:
    """Sort key of labels: numbers before text, and other types by their representation."""
    return tuple(
        ("number", label)
        if isinstance(label, int | float)
        else ("text", label if isinstance(label, str) else repr(label))
        for label in key
    )


def check_pair_ids(
    ids: "pd.Series[Any]",
    column: str,
    keys: list[str],
    groups: dict[GroupKey, npt.NDArray[np.intp]],
) -> None:
    """Raise an error if a pair occurs twice in one group."""
    for key, positions in groups.items():
        members = ids.iloc[positions]
        repeated = members[members.duplicated()]
        if len(repeated):
            raise ValueError(
                f"column {shown(column)} contains {shown(repeated.iloc[0])} more than once "
                f"{group_name(keys, key)} ({len(repeated)} rows repeat an id): drop the "
                "duplicates, or add a column that distinguishes them to by"
            )


def warn_repeated_rows(
    frame: pd.DataFrame, verdicts: Sequence[str], shared: Iterable[str], *, stacklevel: int
) -> None:
    """Warn of rows that are equal in all columns, if the columns identify the rows.

    They do under three conditions: a column is neither a correctness label nor shared by many rows
    (as groups and clusters are); rows that are equal in all other columns have equal correctness
    labels; and at most half of the rows repeat another one, as if a file was read twice.
    """
    rows, others = np.zeros(len(frame), dtype=np.uint64), [*verdicts, *shared]
    own = [name for name in frame.columns if name not in others and frame[name].dtype != np.bool_]
    if not own:
        return
    for name in [*dict.fromkeys(shared), *own]:
        rows = _next_hash(rows, frame[name])
        if name in own and pd.Series(rows).is_unique:
            return
    is_repeated = pd.Series(rows).duplicated()
    if 2 * is_repeated.sum() > len(frame):
        return
    for name in verdicts:
        rows = _next_hash(rows, frame[name])
    if (is_repeated == pd.Series(rows).duplicated()).all():
        warnings.warn(
            f"{int(is_repeated.sum())} of {len(frame)} rows repeat another in all columns and are "
            "counted again: drop them, or add a column that distinguishes them",
            DataWarning,
            stacklevel=stacklevel + 1,
        )


def _next_hash(rows: npt.NDArray[np.uint64], column: "pd.Series[Any]") -> npt.NDArray[np.uint64]:
    """Combine hashes of rows with one more column; equal content gives equal hashes."""
    if has_list_cells(column):
        column = column.map(repr)
    # An odd factor without a pattern in its bits: 2**61 - 1 is a power of two minus one, and rows
    # with the same value in two columns would then differ in only three bits.
    factor = np.uint64(0x9E3779B97F4A7C15)
    return rows * factor + np.asarray(pd.util.hash_pandas_object(column, index=False), np.uint64)


def group_name(keys: list[str], key: GroupKey) -> str:
    """Return the name of a group for messages."""
    if not keys:
        return "in the frame"
    return "in group " + ", ".join(f"{k}={shown(v)}" for k, v in zip(keys, key, strict=True))


def group_seed(seed: int, keys: list[str], key: GroupKey) -> np.random.SeedSequence:
    """Derive the seed of a group from its labels, independent of other groups."""
    name = "\x1f".join(f"{k}={shown(v)}" for k, v in zip(keys, key, strict=True))
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return np.random.SeedSequence([seed, *np.frombuffer(digest, dtype="<u4").tolist()])


def group_frame(
    groups: dict[GroupKey, npt.NDArray[np.intp]],
    keys: list[str],
    statistics: Mapping[str, Statistic],
    summed: Callable[[npt.NDArray[np.intp]], tuple[dict[str, object], _inputs.Floats]],
    *,
    columns: Sequence[str],
    intervals: Intervals,
    others: Mapping[str, str] = MappingProxyType({}),
) -> pd.DataFrame:
    """Return one row per group: its labels, its counts, each statistic and its bounds.

    `summed` maps the rows of a group to its counts by column, which replace bounds of the same
    name, and to the sums of its clusters. `others` are further columns, by label, that the warning
    lists if they are NaN.
    """
    seed, counted = root_seed(intervals.seed), [summed(rows) for rows in groups.values()]
    seeds = (np.random.default_rng(group_seed(seed, keys, key)) for key in groups)
    drawn = [replace(intervals, seed=one) for one in seeds]
    sums_of_groups = [sums for _, sums in counted]
    of_groups = values_of_groups(zip(sums_of_groups, drawn, strict=True), statistics)
    rows = []
    for key, (counts, sums), values in zip(groups, counted, of_groups, strict=True):
        row: dict[str, object] = dict(zip(keys, key, strict=True))
        row["few_clusters"] = len(sums) < FEW_CLUSTERS
        row["not_inferred"] = _not_inferred(values)
        row["n_undefined"] = max((value.n_undefined for value in values.values()), default=0)
        inferred = [value.inferred for value in values.values() if value.inferred is not None]
        row["n_effective_clusters"] = float(inferred[0].n_effective) if inferred else math.nan
        for name, value in values.items():
            row |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
        for name in conditional_rates(statistics):
            below = sums @ np.asarray(statistics[name].denominator)  # type: ignore[attr-defined]
            n = float(below.sum())
            row[f"{name}_n"] = int(n) if n.is_integer() else n
            row[f"{name}_n_clusters"] = np.count_nonzero(below)
        rows.append(row | counts)
    warn_undefined_groups(rows, keys, statistics, others=others, stacklevel=3)
    return pd.DataFrame(rows, columns=[*keys, *columns])


def _not_inferred(values: Mapping[str, GroupValue]) -> str:
    """Return why statistics of a group have no interval, with their names unless all have none."""
    reasons: dict[str, list[str]] = {}
    for name, value in values.items():
        if value.not_inferred and not math.isnan(value.value):
            reasons.setdefault(value.not_inferred, []).append(name)
    n_defined = sum(not math.isnan(value.value) for value in values.values())
    return "; ".join(
        reason if len(names) == n_defined else f"{', '.join(names)}: {reason}"
        for reason, names in reasons.items()
    )


def counted_cells(
    cells: _inputs.Codes, clusters: _inputs.Integers, names: Sequence[str]
) -> tuple[dict[str, object], _inputs.Floats]:
    """Return the counts of four cells in a group by name, and the sums of its clusters."""
    scored = cells != _inputs.MISSING
    sums = cluster_sums(np.eye(4)[cells[scored]], clusters[scored])
    n = int(np.count_nonzero(scored))
    row: dict[str, object] = {"n": n, "n_clusters": len(sums), "n_missing": cells.size - n}
    return row | dict(zip(names, sums.sum(axis=0).astype(int).tolist(), strict=True)), sums


def bound_columns(statistics: Iterable[str]) -> list[str]:
    """Return the columns of each statistic: its value and its bounds."""
    return [name + end for name in statistics for end in ("", "_low", "_high")]


def conditional_rates(statistics: Mapping[str, Statistic]) -> list[str]:
    """Return the names of rates whose denominator includes only some of the pairs."""
    return [
        name
        for name, one in statistics.items()
        if isinstance(one, CountRatio) and not one.is_odds and 0 in one.denominator[:4]
    ]


def rate_columns(rates: Mapping[str, Statistic]) -> list[str]:
    """Return the columns of rates: values, bounds, and denominators of conditional rates."""
    sizes = [name + end for name in conditional_rates(rates) for end in ("_n", "_n_clusters")]
    return ["n_effective_clusters", *bound_columns(rates), *sizes]


def warn_undefined_groups(
    rows: list[dict[str, object]],
    keys: list[str],
    rates: Iterable[str],
    *,
    others: Mapping[str, str],
    stacklevel: int,
) -> None:
    """Warn of rates and other columns (by label) that are NaN, with numbers of groups and examples.

    Columns whose reason is in `not_inferred` are not repeated, except for groups of one cluster.
    """
    names, where = list(rates), dict[str, list[str]]()
    for row in rows:
        group = group_name(keys, tuple(row[key] for key in keys))
        for name in names:
            if _is_nan(row[name]):
                where.setdefault(name, []).append(group)
        if row["n_clusters"] == 1:
            where.setdefault("all intervals (one cluster)", []).append(group)
        for column, label in others.items():
            if _is_nan(row[column]) and not row["not_inferred"]:
                where.setdefault(label, []).append(group)
    if where:
        parts = [f"{name} ({len(labels)}, such as {labels[0]})" for name, labels in where.items()]
        _inputs.warn_undefined(
            f"undefined (NaN) in some of {len(rows)} groups: {'; '.join(parts)}",
            stacklevel=stacklevel + 1,
        )


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
