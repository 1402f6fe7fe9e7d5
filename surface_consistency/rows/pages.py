"""Sizes of Parquet pages by their own headers, which the reader of pyarrow decodes by.

The footer of a file states sizes too, and pyarrow does not compare the two. A header is a structure
of the Thrift compact protocol; its fields are those of `PageHeader` in the Parquet format
(https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift).
"""

from typing import Any, BinaryIO, Final, NamedTuple

_STARTS: Final = (512, 2**16, 2**24)
"""Bytes that are read of a page for its header; pyarrow reads 16 MiB at most."""

_PAGE_BYTES: Final = 1000
"""Memory and time of reading a page, as bytes."""

_DEEPEST: Final = 8
_DELTA_BYTE_ARRAY: Final = 7
_I32: Final = 5
_STRUCTURE: Final = 12
_SIZE, _PACKED_SIZE, _DICTIONARY_VALUES = (2,), (3,), (7, 1)
_VALUES: Final = ((5, 1), (8, 1))
_ENCODINGS: Final = ((5, 2), (8, 4))
"""Paths of fields in a header, for pages of format 1 and 2."""


class Pages(NamedTuple):
    """Content of the pages of a column chunk, as their headers state it."""

    n_bytes: int
    """Bytes after unpacking, and 1,000 per page."""

    n_values: int
    """Values of the data pages, missing ones included."""

    is_prefixed: bool
    """Whether a page stores texts without the prefix of the one before."""


def read_pages(file: BinaryIO, chunk: Any) -> Pages:  # noqa: ANN401 - of pyarrow
    """Read the page headers of a column chunk.

    Args:
        file: The Parquet file, open for reading.
        chunk: Metadata of the chunk.

    Returns:
        The sums over its pages.

    Raises:
        ValueError: If a header is damaged, or the pages have fewer values than the footer states.
        OSError, OverflowError: If a position is not one of a file.
    """
    at, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset or 0
    # A chunk without rows has no data page, whose position is then 0.
    at = dictionary if dictionary > 0 and (dictionary < at or at == 0) else at
    end = at + chunk.total_compressed_size
    n_bytes = n_values = 0
    is_prefixed = False
    while at < end:
        numbers, length = _header(file, at)
        size, packed = numbers.get(_SIZE, -1), numbers.get(_PACKED_SIZE, -1)
        values = max(numbers.get(path, 0) for path in _VALUES)
        if size < 0 or packed < 0 or numbers.get(_DICTIONARY_VALUES, 0) > size:
            raise ValueError(f"the page at byte {at:,} has a damaged header")
        n_bytes += _PAGE_BYTES + max(size, packed)
        n_values += values
        is_prefixed |= any(numbers.get(path) == _DELTA_BYTE_ARRAY for path in _ENCODINGS)
        at += length + packed
    if n_values < chunk.num_values:
        raise ValueError(
            f"the pages of column {chunk.path_in_schema[:80]!r} have {n_values:,} values, and the "
            f"footer states {chunk.num_values:,}"
        )
    return Pages(n_bytes, n_values, is_prefixed)


def _header(file: BinaryIO, at: int) -> tuple[dict[tuple[int, ...], int], int]:
    """Read the header at a position: its 32-bit numbers by path, and its length."""
    for n_bytes in _STARTS:
        file.seek(at)
        content = file.read(n_bytes)
        parser = _Parser(content)
        try:
            parser.structure(())
        except IndexError:
            if len(content) < n_bytes:
                break
        else:
            return parser.numbers, parser.at
    raise ValueError(f"the page at byte {at:,} has a header that is cut off, or too long")


class _Parser:
    """Parser of one structure of the Thrift compact protocol."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0
        self.numbers: dict[tuple[int, ...], int] = {}

    def structure(self, path: tuple[int, ...]) -> None:
        """Read the fields of a structure up to its end."""
        if len(path) > _DEEPEST:
            raise ValueError("the header of a page is nested too deeply")
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._number()
            if not 0 < field < 2**15:
                raise ValueError(f"the header of a page has a field {field}")
            self._value(head & 15, (*path, field))

    def _value(self, kind: int, path: tuple[int, ...]) -> None:
        """Read a value; numbers of 32 bits are stored."""
        if kind == _STRUCTURE:
            self.structure(path)
        elif kind in (4, _I32, 6):  # Numbers of 16, 32 and 64 bits.
            number = self._number()
            if kind == _I32:
                if not -(2**31) <= number < 2**31:
                    raise ValueError("the header of a page has a number of more than 32 bits")
                self.numbers[path] = number
        elif kind in (3, 7, 8):  # A byte, a number of 8 bytes, and a text.
            n_bytes = self._unsigned() if kind == 8 else {3: 1, 7: 8}[kind]
            self.at += n_bytes
        elif kind not in (1, 2):  # True and false, which have no value.
            raise ValueError(f"the header of a page has a field of the unknown type {kind}")

    def _byte(self) -> int:
        """Read a byte."""
        value = self.content[self.at]
        self.at += 1
        return value

    def _unsigned(self) -> int:
        """Read a number of 7 bits per byte."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("the header of a page has a number that does not end")

    def _number(self) -> int:
        """Read a number with its sign in the last bit."""
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
