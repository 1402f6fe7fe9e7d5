"""Tables that a counting run wrote."""

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
        needed: Columns that it must have.
        what: What the rows are, for messages.
        uncounted: What to give, where the folder is that of no count.
        unmerged: How the file comes about, where it is.

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
        raise DataError(f"{place} is no Parquet file of {what}: {error}") from error
    if lacking := [column for column in needed if column not in rows]:
        raise ColumnNotFoundError(
            f"{place} lacks the column {', '.join(lacking)}; it has {', '.join(rows.columns)}"
        )
    return place, rows
