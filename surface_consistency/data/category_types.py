"""The category-to-type table that the hub repository carries beside its rows."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from surface_consistency.data.readers import read_rows
from surface_consistency.errors import SurfaceConsistencyWarning
from surface_consistency.taxonomy import CATEGORIES, parse_category, parse_type

__all__ = ["CATEGORY_TYPES_PATH", "check_category_types", "read_category_types"]

CATEGORY_TYPES_PATH: Final = "metadata/redirect_category_to_type.csv"
"""Where the table stands in the repository and in folders of its layout."""


def read_category_types(path: Path) -> dict[str, str]:
    """Read which type the table gives to each category of the taxonomy.

    Args:
        path: The CSV file. Its columns may have any name and order: the cell that names a category
            and the cell that names a type are recognised by their content.

    Returns:
        Category label to type name, for the rows that name one of the 33 categories and one of the
        three types.

    Raises:
        SourceNotFoundError: If there is no such file.
        RecordError: If a line is broken.
    """
    found: dict[str, str] = {}
    for _, row in read_rows(path):
        cells = [str(cell) for cell in row.values()]
        category = next(filter(None, map(parse_category, cells)), None)
        kind = next(filter(None, map(parse_type, cells)), None)
        if category is not None and kind is not None:
            found[category.label] = kind.name
    return found


def check_category_types(folder: Path) -> None:
    """Warn where a source groups the categories otherwise than the taxonomy of this package.

    Args:
        folder: A folder in the hub's layout; one without the table is passed over.

    Warns:
        SurfaceConsistencyWarning: If the table puts a category under another type, or lacks
            categories that the taxonomy holds. The taxonomy is used all the same.
    """
    path = folder / CATEGORY_TYPES_PATH
    if not path.is_file():
        return
    differences = list(_differences(read_category_types(path)))
    if differences:
        warnings.warn(
            f"{path} differs from the taxonomy of the paper, which is used: "
            f"{'; '.join(differences)}",
            SurfaceConsistencyWarning,
            stacklevel=3,
        )


def _differences(table: dict[str, str]) -> Iterator[str]:
    """Name the categories that the table treats otherwise."""
    for label, category in CATEGORIES.items():
        if label not in table:
            yield f"{label} is not in it"
        elif table[label] != category.type:
            yield f"{label} is {table[label]} there and {category.type} here"
