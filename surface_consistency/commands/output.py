"""What commands print."""

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from surface_consistency.report.numbers import table_text

if TYPE_CHECKING:
    from surface_consistency.studies.reporting import Reported

__all__ = ["finish"]


def finish(reported: "Reported", out: Path, *, as_json: bool) -> None:
    """Print the main table and where the files are.

    Args:
        reported: The page and its tables.
        out: Folder of the results.
        as_json: Whether to print one JSON object with all tables; undefined numbers are null.
    """
    for warning in reported.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if as_json:
        tables = {
            name: [
                {key: _plain(value) for key, value in row.items()}
                for row in table.frame.to_dict(orient="records")
            ]
            for name, table in reported.tables.items()
        }
        told = {"out": str(out), "report": str(reported.page), "tables": tables}
        print(json.dumps(told, ensure_ascii=False))
        return
    print(table_text(reported.tables["overall"]))
    for note in reported.notes:
        print(f"note: {note}")
    print(f"\nreport: {reported.page}\ntables: {out / 'tables'}")


def _plain(value: object) -> object:
    """Turn a cell into what JSON knows."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if value is None or value != value:
        return None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | list) else str(value)
