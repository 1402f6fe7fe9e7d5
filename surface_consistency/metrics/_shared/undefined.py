"""One warning for all numbers of a grouped result that are NaN."""

import math
import warnings
from collections.abc import Iterable, Mapping

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics._shared.groups import group_name

__all__ = ["warn_undefined_groups"]


def warn_undefined_groups(
    rows: list[dict[str, object]],
    keys: list[str],
    rates: Iterable[str],
    *,
    others: Mapping[str, str],
    stacklevel: int,
) -> None:
    """Say which rates and other columns (by label) are NaN, in how many groups, and one each."""
    names, where = list(rates), dict[str, list[str]]()
    for row in rows:
        group = group_name(keys, tuple(row[key] for key in keys))
        for name in names:
            if _is_nan(row[name]):
                where.setdefault(name, []).append(group)
            elif _is_nan(row[f"{name}_low"]) and row["n_clusters"] != 1:
                where.setdefault(f"interval of {name}", []).append(group)
        if row["n_clusters"] == 1:
            where.setdefault("all intervals (one cluster)", []).append(group)
        for column, label in others.items():
            if _is_nan(row[column]):
                where.setdefault(label, []).append(group)
    if where:
        parts = [f"{name} ({len(found)}, such as {found[0]})" for name, found in where.items()]
        warnings.warn(
            f"undefined (NaN) in some of {len(rows)} groups: {'; '.join(parts)}",
            UndefinedMetricWarning,
            stacklevel=stacklevel + 1,
        )


def _is_nan(value: object) -> bool:
    """Tell whether a number is NaN."""
    return isinstance(value, float) and math.isnan(value)
