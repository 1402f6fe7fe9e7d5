"""The first sheet of a workbook (.xlsx), as VLMEvalKit writes its results.

Read are texts, numbers and verdicts; formulas count by the value that is stored beside them
(ECMA-376, part 1, section 18.3).
"""

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import LONGEST_DOCUMENT, check_columns

_SHEET: Final = re.compile(r"xl/worksheets/sheet(\d+)\.xml")
_SHARED: Final = "xl/sharedStrings.xml"


def is_workbook(file: Path) -> bool:
    """Tell a workbook by what the archive holds."""
    try:
        with zipfile.ZipFile(file) as archive:
            return any(map(_SHEET.fullmatch, archive.namelist()))
    except (zipfile.BadZipFile, OSError):
        return False


def workbook_rows(file: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Read the rows of the first sheet under its first row, which names the columns.

    Args:
        file: The workbook.

    Yields:
        Number of the row in the sheet, from 1, and its cells by column; an empty cell is None.
        Columns without a name are left out.

    Raises:
        DataError: If it is damaged.
        RecordError: If a sheet unpacks to more than `LONGEST_DOCUMENT` bytes, or the header names a
            column twice.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            sheets = filter(None, map(_SHEET.fullmatch, archive.namelist()))
            first = min(sheets, key=lambda name: int(name[1]))[0]
            shared = _shared_texts(archive, file)
            rows = _rows(_parsed(archive, first, file), shared)
            _, header = next(rows, (0, {}))
            names = {column: str(name) for column, name in header.items() if name is not None}
            check_columns(list(names.values()), str(file))
            for number, cells in rows:
                yield number, {name: cells.get(column) for column, name in names.items()}
    except (zipfile.BadZipFile, ElementTree.ParseError, ValueError, IndexError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{file}: not a workbook that can be read ({error}): copy it again, or "
            "export its sheet as CSV"
        ) from error


def _parsed(archive: zipfile.ZipFile, name: str, file: Path) -> ElementTree.Element:
    """Parse a part of the workbook within bounds."""
    size = archive.getinfo(name).file_size
    if size > LONGEST_DOCUMENT:
        raise RecordError(
            f"{file} ({name}): {size:,} bytes, unpacked, are more than the {LONGEST_DOCUMENT:,} "
            "that are read as a whole; export the sheet as CSV"
        )
    content = archive.read(name)
    if b"<!DOCTYPE" in content[:1000]:
        raise DataError(f"{file} ({name}): a workbook defines no document type; do not trust it")
    return ElementTree.fromstring(content)


def _shared_texts(archive: zipfile.ZipFile, file: Path) -> list[str]:
    """Read the texts that cells name by number."""
    if _SHARED not in archive.namelist():
        return []
    return [_text(item) for item in _parsed(archive, _SHARED, file)]


def _text(element: ElementTree.Element) -> str:
    """Join the runs of a text."""
    return "".join(node.text or "" for node in element.iter() if _tag(node) == "t")


def _tag(node: ElementTree.Element) -> str:
    """Name an element without its namespace."""
    return node.tag.rpartition("}")[2]


def _rows(sheet: ElementTree.Element, shared: list[str]) -> Iterator[tuple[int, dict[int, object]]]:
    """Read the cells of each row by the number of their column."""
    rows = (node for node in sheet.iter() if _tag(node) == "row")
    for number, row in enumerate(rows, start=1):
        cells: dict[int, object] = {}
        for place, cell in enumerate(row):
            column = _column(cell.get("r") or "", place)
            cells[column] = _value(cell, shared)
        yield int(row.get("r") or number), cells


def _column(reference: str, place: int) -> int:
    """Number a column by its letters: "C7" is 2; a cell without them by its place."""
    number = 0
    for letter in reference.rstrip("0123456789"):
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1 if number else place


def _value(cell: ElementTree.Element, shared: list[str]) -> object:
    """Read a cell as text, number or verdict; None where it is empty or an error."""
    kind = cell.get("t", "n")
    if kind == "inlineStr":
        return _text(cell)
    stored = next((node.text for node in cell if _tag(node) == "v"), None)
    if stored is None or kind == "e":
        return None
    if kind == "s":
        return shared[int(stored)]
    if kind == "b":
        return stored == "1"
    if kind != "n":
        return stored
    number = float(stored)
    return int(number) if number.is_integer() else number
