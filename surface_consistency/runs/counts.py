"""Reading of the tables of a counting run."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.rows.columnar import open_parquet


def read_counts(
    path: Path, name: str, *, needed: Sequence[str], what: str, uncounted: str, unmerged: str
) -> tuple[Path, pd.DataFrame]:
    """Read a table of a counting run.

    Args:
        path: Folder of the run, or the file itself.
        name: Name of the file in the folder.
        needed: Required columns.
        what: Description of the rows, for messages.
        uncounted: Remedy if the folder is not that of a count.
        unmerged: Remedy if the folder is that of a count, but the file is missing.

    Returns:
        The file, and its rows.

    Raises:
        DataError: If the file is missing or cannot be read.
        ColumnNotFoundError: If it lacks a column.
    """
    place = path / name if path.is_dir() else path
    if not place.is_file():
        remedy = unmerged if (path / "manifest.json").is_file() else uncounted
        raise DataError(f"{place} is missing: {remedy}")
    try:
        with open_parquet(place) as file:
            rows = file.read().to_pandas()
    except DataError:
        raise
    except (OSError, ValueError) as error:
        raise DataError(f"{place} is not a Parquet file of {what}: {error}") from error
    if lacking := [column for column in needed if column not in rows]:
        raise ColumnNotFoundError(
            f"{place} lacks the column {', '.join(lacking)}; it has {', '.join(rows.columns)}"
        )
    return place, rows
