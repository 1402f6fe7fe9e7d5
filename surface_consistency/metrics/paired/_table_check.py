"""The check that functions of a paired table share."""

from surface_consistency.metrics.paired.table import PairedTable

__all__ = ["check_table"]


def check_table(table: object) -> PairedTable:
    """Return the table when it is one."""
    if not isinstance(table, PairedTable):
        raise TypeError(
            f"table must be a PairedTable; got {type(table).__name__}: count verdicts with "
            "paired_table"
        )
    return table
