"""Samples of lm-evaluation-harness, as its `--log_samples` writes them, laid flat."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from surface_consistency.errors import DataError

__all__ = ["flatten_samples", "is_sample"]

_FIELDS: Final = frozenset(
    {
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash"),
    }
)


def is_sample(row: Mapping[str, Any]) -> bool:
    """Tell a sample by its fields."""
    return isinstance(row.get("doc"), Mapping) and ("resps" in row or "filtered_resps" in row)


def flatten_samples(
    rows: Sequence[Mapping[str, Any]], sample_filter: str | None
) -> tuple[list[dict[str, Any] | None], str | None]:
    """Lay samples flat: None for those of another filter, and the name of their one metric.

    The fields of `doc` go by their own names, or as "doc.<name>" where the sample itself has that
    name. The metric is None where there are several.
    """
    filters = sorted({str(row["filter"]) for row in rows if "filter" in row})
    if sample_filter is None and len(filters) > 1:
        raise DataError(
            f"the samples are scored under several filters, {', '.join(filters)}: choose one "
            "through sample_filter"
        )
    if sample_filter is not None and sample_filter not in filters:
        raise DataError(
            f"no sample is scored under the filter {sample_filter!r}; there are "
            f"{', '.join(filters) or 'no filters'}"
        )
    metrics = sorted({name for row in rows for name in _metrics(row)})
    kept = [
        _flat(row) if sample_filter is None or row.get("filter") == sample_filter else None
        for row in rows
    ]
    return kept, metrics[0] if len(metrics) == 1 else None


def _metrics(row: Mapping[str, Any]) -> list[str]:
    """Return the names of the metrics of a sample; earlier versions do not list them."""
    listed = row.get("metrics")
    return list(listed) if isinstance(listed, list) else [n for n in row if n not in _FIELDS]


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sample's number and scores beside the fields of its document."""
    fields = {name: value for name, value in row.items() if name == "doc_id" or name not in _FIELDS}
    for name, value in row["doc"].items():
        fields[f"doc.{name}" if name in fields else name] = value
    return fields
