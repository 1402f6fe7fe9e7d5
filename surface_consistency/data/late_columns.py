"""Columns that appear after the rows that the mapping was made from."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from surface_consistency.data.columns import Candidates, resolve_columns
from surface_consistency.data.readers import Row
from surface_consistency.errors import RecordError

__all__ = ["refuse_late_columns"]


def refuse_late_columns(
    rows: Iterable[Row],
    columns: Collection[str],
    candidates: Candidates,
    *,
    overrides: Mapping[str, str] | None = None,
) -> Iterator[Row]:
    """Pass rows on, and refuse one with a column that would have changed the mapping.

    Args:
        rows: The rows with their places.
        columns: Columns of the rows that were looked at for the mapping.
        candidates: The declared mapping.
        overrides: As for `resolve_columns`.

    Yields:
        The rows.

    Raises:
        RecordError: At the first row with such a column, which would else go unread.
    """
    seen = list(columns)
    known = set(seen)
    resolved = resolve_columns(seen, candidates, overrides=overrides)
    for place, row in rows:
        for column in () if known.issuperset(row) else row:
            if column in known:
                continue
            known.add(column)
            seen.append(column)
            if resolve_columns(seen, candidates, overrides=overrides) != resolved:
                raise RecordError(
                    f"{place}: column {column!r} appears here for the first time, too late to be "
                    "read; give it to the first row too (null where it is empty), or move this row "
                    "to the front"
                )
        yield place, row
