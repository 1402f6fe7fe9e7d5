"""Read the first sheet of a workbook (.xlsx), such as results of VLMEvalKit.

Texts, numbers and truth values are read; for formulas, the stored value is read (ECMA-376, part 1,
section 18.3). A sheet is parsed while it is unpacked, with one row in memory at a time.
"""

import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from xml.etree import ElementTree
from xml.parsers import expat

from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import (
    DEEPEST,
    LONGEST_LINE,
    UnpackedSize,
    check_columns,
    shown,
    unpacked,
)
from surface_consistency.rows.cells import count_of

_SHEET: Final = re.compile(r"xl/worksheets/sheet(\d{1,9})\.xml")
_SHARED: Final = "xl/sharedStrings.xml"
_REFERENCE: Final = re.compile(r"([A-Z]{0,3})[0-9]{0,7}")
_NUMBER: Final = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")
_PIECE: Final = 2**16
_LONGEST_TAG: Final = 2**20
_MOST_ROWS: Final = 1_048_576
_MOST_COLUMNS: Final = 16_384
"""Maximum number of columns of a sheet of Excel."""

_MOST_ELEMENTS: Final = 10 * _MOST_COLUMNS


def is_workbook(file: Path) -> bool:
    """Return whether an archive is a workbook, by its members."""
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
        Columns without a name are dropped.

    Raises:
        DataError: If the workbook is damaged.
        RecordError: If it exceeds the limit of `UnpackedSize`, has more rows or columns than a
            sheet of Excel or a row of more than `LONGEST_LINE` characters, or names a column twice.
    """
    size = UnpackedSize(file)
    try:
        with zipfile.ZipFile(file) as archive:
            sheets = filter(None, map(_SHEET.fullmatch, archive.namelist()))
            first = min(sheets, key=lambda name: int(name[1]))[0]
            shared = []
            if _SHARED in archive.namelist():
                shared = [_text(item) for item in _parsed(archive, _SHARED, size, "si")]
            rows = _rows(_parsed(archive, first, size, "row"), shared)
            _, header = next(rows, (0, {}))
            names = {column: str(name) for column, name in header.items() if name is not None}
            check_columns(list(names.values()), str(file))
            for number, cells in rows:
                size.add(0, len(names))
                yield number, {name: cells.get(column) for column, name in names.items()}
    except (zipfile.BadZipFile, expat.ExpatError, ValueError, IndexError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{file}: not a workbook that can be read ({error}): copy it again, or "
            "export its sheet as CSV"
        ) from error


def _parsed(
    archive: zipfile.ZipFile, name: str, size: UnpackedSize, wanted: str
) -> Iterator[ElementTree.Element]:
    """Parse a part of the workbook, and yield its elements of a name with their content."""
    elements = _Elements(f"{size.path} ({name})", wanted)
    parser, n_bytes = expat.ParserCreate(namespace_separator="}"), 0
    parser.StartElementHandler, parser.EndElementHandler = elements.start, elements.end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = elements.data, elements.doctype
    with archive.open(name) as member, unpacked(member, size, b"<") as content:
        while piece := content.read(_PIECE):
            parser.Parse(piece, False)
            n_bytes += len(piece)
            elements.check(n_bytes - parser.CurrentByteIndex, _LONGEST_TAG, "bytes of a tag")
            yield from elements.found
            elements.found.clear()
    parser.Parse(b"", True)


class _Elements:
    """Elements of one name, built from the events of a parser, with limits of their size."""

    def __init__(self, place: str, wanted: str) -> None:
        self.found: list[ElementTree.Element] = []
        self._place, self._wanted = place, wanted
        self._depth = self._n_found = self._n_inside = self._n_characters = 0
        self._builder: ElementTree.TreeBuilder | None = None
        self._outer = 0

    def check(self, number: int, maximum: int, what: str) -> None:
        """Raise an error if a number exceeds its maximum."""
        if number > maximum:
            raise RecordError(
                f"{self._place}: more than {maximum:,} {what}; export the sheet as CSV"
            )

    def doctype(self, *_: object) -> None:
        """Raise an error for a document type, which may define entities."""
        raise DataError(f"{self._place}: it defines a document type; export the sheet as CSV")

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Open an element."""
        tag = name.rpartition("}")[2]
        self._depth += 1
        self.check(self._depth, DEEPEST, "levels of nesting")
        if self._builder is None and tag == self._wanted:
            self._builder, self._outer = ElementTree.TreeBuilder(), self._depth
            self._n_found, self._n_inside, self._n_characters = self._n_found + 1, 0, 0
            self.check(self._n_found if tag == "row" else 0, _MOST_ROWS, "rows")
        if self._builder is not None:
            self._builder.start(tag, dict(attributes))
            self._n_inside += 1
            self.check(self._n_inside, _MOST_ELEMENTS, "elements of a row")

    def end(self, name: str) -> None:
        """Close an element."""
        if self._builder is not None:
            self._builder.end(name.rpartition("}")[2])
            if self._depth == self._outer:
                self.found.append(self._builder.close())
                self._builder = None
        self._depth -= 1

    def data(self, text: str) -> None:
        """Add text to the open element."""
        if self._builder is not None:
            self._builder.data(text)
            self._n_characters += len(text)
            self.check(self._n_characters, LONGEST_LINE, "characters of a row")


def _text(element: ElementTree.Element) -> str:
    """Join the runs of a text."""
    return "".join(node.text or "" for node in element.iter("t"))


def _rows(
    rows: Iterator[ElementTree.Element], shared: list[str]
) -> Iterator[tuple[int, dict[int, object]]]:
    """Read the cells of each row by the number of their column."""
    for number, row in enumerate(rows, start=1):
        cells: dict[int, object] = {}
        for place, cell in enumerate(row):
            column = _column(cell.get("r") or "", place)
            cells[column] = _value(cell, shared)
        yield count_of(row.get("r")) or number, cells


def _column(reference: str, place: int) -> int:
    """Return the number of a column by its letters ("C7" is 2), or without letters by its place."""
    named = _REFERENCE.fullmatch(reference)
    if named is None:
        raise ValueError(
            f"{shown(reference, 20)} is not a cell: at most three letters and seven digits"
        )
    number = 0
    for letter in named[1]:
        number = 26 * number + ord(letter) - ord("A") + 1
    column = number - 1 if number else place
    if column >= _MOST_COLUMNS:
        raise ValueError(f"cell {shown(reference)} is beyond the last column of a sheet, XFD")
    return column


def _value(cell: ElementTree.Element, shared: list[str]) -> object:
    """Read a cell as text, number or truth value; None if it is empty or an error."""
    kind = cell.get("t", "n")
    if kind == "inlineStr":
        return _text(cell)
    stored = next((node.text for node in cell if node.tag == "v"), None)
    if stored is None or kind == "e":
        return None
    if kind == "s":
        return shared[count_of(stored) or 0]
    if kind == "b":
        return stored == "1"
    if kind != "n":
        return stored
    if not _NUMBER.fullmatch(stored):
        raise ValueError(f"{shown(stored)} is not a number in the digits 0 to 9")
    number = float(stored)
    return int(number) if number.is_integer() else number
