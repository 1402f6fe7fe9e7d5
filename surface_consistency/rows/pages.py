"""Positions and sizes of Parquet pages, read from the footer and from the headers of the pages.

The reader of pyarrow decodes pages by their headers and does not compare these with the footer. If
the metadata of a column chunk contradicts the schema, reading it ends the process without an
exception. pyarrow also allocates memory for the stated number of items of a list. Therefore the
footer is also parsed here. Footer and page headers are structures of the Thrift compact protocol;
their fields are those of `FileMetaData` and `PageHeader` in the Parquet format
(https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift).
"""

from typing import Any, BinaryIO, Final, NamedTuple

_STARTS: Final = (512, 2**16, 2**24)
"""Number of bytes of a page that are read for its header; pyarrow reads at most 16 MiB."""

_PAGE_BYTES: Final = 1000
"""Cost of reading a page in memory and time, as bytes."""

_MAGIC: Final = b"PAR1"
_DEEPEST: Final = 16
_DELTA_LENGTHS, _DELTA_BYTE_ARRAY = 6, 7
_CODECS: Final = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
_BYTE_ARRAY: Final = 6
_BITS: Final = {4: 16, 5: 32, 6: 64}
_FALSE, _I32, _I64, _LIST, _STRUCTURE = 2, 5, 6, 9, 12
"""Types of the protocol: bits of each integer, and the types that are read."""

Fields = dict[tuple[int, int], Any]
"""Values of a structure by the number of the field and its type."""


class Chunk(NamedTuple):
    """Metadata of a column chunk."""

    is_texts: bool
    codec: int
    num_values: int
    total_compressed_size: int
    data_page_offset: int
    dictionary_page_offset: int


class DeltaPage(NamedTuple):
    """A page that stores the lengths of its texts as differences."""

    at: int
    size: int
    packed_size: int
    n_values: int
    n_lists: int
    """Number of lists of lengths: those of prefixes, and those of the texts without them."""

    levels: int | None
    """Number of bytes of the levels before the values, which format 2 does not compress."""

    is_packed: bool


class Pages(NamedTuple):
    """Size of the pages of a column chunk, according to their headers."""

    n_bytes: int
    """Number of bytes after decompression, plus 1,000 per page."""

    n_values: int
    """Number of values in the data pages, missing ones included."""

    delta: list[DeltaPage]


def read_footer(file: BinaryIO) -> list[list[Chunk]]:
    """Read the column chunks of each row group from the footer of a Parquet file.

    Args:
        file: The file, open for reading.

    Returns:
        The chunks; an empty list if the end of the file is not that of a Parquet file.

    Raises:
        ValueError: If the footer is damaged.
    """
    size = file.seek(0, 2)
    file.seek(max(size - 8, 0))
    end = file.read()
    if len(end) < 8 or not end.endswith(_MAGIC):
        return []
    length = int.from_bytes(end[:4], "little")
    if length > size - 8:
        raise ValueError(f"its footer of {length:,} bytes is longer than the file")
    file.seek(size - 8 - length)
    try:
        groups = _Parser(file.read(length)).structure()[4, _LIST]
        return [[_chunk(chunk[3, _STRUCTURE]) for chunk in group[1, _LIST]] for group in groups]
    except (IndexError, KeyError, TypeError) as error:
        raise ValueError("its footer is damaged") from error


def _chunk(fields: Fields) -> Chunk:
    """Make a chunk of the fields of `ColumnMetaData`."""
    n_values, n_bytes, at = (fields[number, _I64] for number in (5, 7, 9))
    is_texts, first = fields[1, _I32] == _BYTE_ARRAY, fields.get((11, _I64), 0)
    return Chunk(is_texts, fields[4, _I32], n_values, n_bytes, at, first)


def read_pages(file: BinaryIO, chunk: Chunk) -> Pages:
    """Read the page headers of a column chunk.

    Args:
        file: The Parquet file, open for reading.
        chunk: Metadata of the chunk.

    Returns:
        The sums over its pages.

    Raises:
        ValueError: If a header is damaged, or the pages have fewer values than the footer states.
        OSError, OverflowError: If a position is outside the file.
    """
    at, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
    # A chunk without rows has no data page, whose position is then 0.
    at = dictionary if dictionary > 0 and (dictionary < at or at == 0) else at
    start, end = at, at + chunk.total_compressed_size
    n_bytes = n_values = 0
    delta = []
    while at < end:
        header, length = _header(file, at)
        size, packed = header.get((2, _I32), -1), header.get((3, _I32), -1)
        first, second, dictionary_page = (header.get((n, _STRUCTURE), {}) for n in (5, 8, 7))
        if size < 0 or packed < 0 or dictionary_page.get((1, _I32), 0) > size:
            raise ValueError(f"the page at byte {at:,} has a damaged header")
        n_bytes += _PAGE_BYTES + max(size, packed)
        values = max(first.get((1, _I32), 0), second.get((1, _I32), 0))
        n_values += values
        encodings = (first.get((2, _I32)), second.get((4, _I32)))
        if _DELTA_LENGTHS in encodings or _DELTA_BYTE_ARRAY in encodings:
            n_lists = 2 if _DELTA_BYTE_ARRAY in encodings else 1
            levels = second.get((5, _I32), 0) + second.get((6, _I32), 0) if second else None
            is_packed = (7, _FALSE) not in second
            delta.append(DeltaPage(at + length, size, packed, values, n_lists, levels, is_packed))
        at += length + packed
    if n_values < chunk.num_values:
        raise ValueError(
            f"the pages from byte {start:,} on have {n_values:,} values, and the footer states "
            f"{chunk.num_values:,}"
        )
    return Pages(n_bytes, n_values, delta)


def check_lengths(file: BinaryIO, page: DeltaPage, codec: int, n_levels: int) -> None:
    """Check that a page does not state more lengths of texts than it has values.

    pyarrow reads as many lengths as the page states, regardless of its header.

    Args:
        file: The Parquet file, open for reading.
        page: The page, whose size is within the limit.
        codec: Codec of the chunk.
        n_levels: Number of lists of levels before the values, in format 1.

    Raises:
        ValueError: If it states more, or is damaged.
    """
    import pyarrow as pa

    file.seek(page.at)
    start = page.levels or 0
    content = file.read(page.packed_size)[start:]
    if codec and page.is_packed:
        if codec not in _CODECS:
            raise ValueError(f"texts of the codec {codec} and this encoding are not read")
        content = pa.decompress(content, page.size - start, _CODECS[codec], asbytes=True)
    parser = _Parser(content)
    try:
        for _ in range(n_levels if page.levels is None else 0):
            parser.at += 4 + int.from_bytes(content[parser.at : parser.at + 4], "little")
        for _ in range(page.n_lists):
            parser.lengths(page.n_values)
    except (IndexError, ZeroDivisionError) as error:
        raise ValueError(f"the page before byte {page.at:,} has damaged lengths") from error


def _header(file: BinaryIO, at: int) -> tuple[Fields, int]:
    """Read the header at a position, and its length."""
    for n_bytes in _STARTS:
        file.seek(at)
        content = file.read(n_bytes)
        parser = _Parser(content)
        try:
            return parser.structure(), parser.at
        except IndexError:
            if len(content) < n_bytes:
                break
    raise ValueError(f"the page at byte {at:,} has a header that is cut off, or too long")


class _Parser:
    """Parser of one structure of the Thrift compact protocol."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def structure(self, depth: int = 0) -> Fields:
        """Read the fields of a structure up to its end."""
        if depth > _DEEPEST:
            raise ValueError("its metadata is nested too deeply")
        fields: Fields = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._number(16)
            kind = head & 15
            # pyarrow merges two structures of the same field.
            if not 0 < field < 2**15 or (field, kind) in fields:
                raise ValueError(f"its metadata has a field {field}, or has it twice")
            # True and false are types of a field, without a value.
            fields[field, kind] = None if kind in (1, 2) else self._value(kind, depth + 1)
        return fields

    def lengths(self, most: int) -> None:
        """Skip the numbers of a list with the encoding DELTA_BINARY_PACKED."""
        n_block, n_parts, n, _ = (self._unsigned() for _ in range(4))
        if n > most:
            raise ValueError(f"a page states {n:,} lengths of texts for {most:,} values")
        n_part, n = n_block // n_parts, n - 1
        while n > 0:
            self._unsigned()
            widths = self.content[self.at : self.at + n_parts]
            self.at += n_parts
            for width in widths[: -(-n // n_part)]:
                self.at += width * n_part // 8
            n -= n_block

    def _value(self, kind: int, depth: int) -> Any:  # noqa: ANN401 - of each type
        """Read a value; integers, structures and lists of structures are returned."""
        if kind == _STRUCTURE:
            return self.structure(depth)
        if kind in _BITS:
            return self._number(_BITS[kind])
        if kind == _LIST:
            head = self._byte()
            length = head >> 4 if head >> 4 < 15 else self._unsigned()
            if length > len(self.content) - self.at:
                raise IndexError("a list is longer than the content")
            values = (self._value(head & 15, depth + 1) for _ in range(length))
            return [value for value in values if isinstance(value, dict)]
        if kind not in (1, 2, 3, 7, 8):  # A truth value in a list, a byte, 8 bytes, a text.
            raise ValueError(f"its metadata has a field of the unknown type {kind}")
        n_bytes = self._unsigned() if kind == 8 else 8 if kind == 7 else 1
        self.at += n_bytes
        return None

    def _byte(self) -> int:
        """Read a byte."""
        value = self.content[self.at]
        self.at += 1
        return value

    def _unsigned(self) -> int:
        """Read a number of 7 bits per byte."""
        value, shift = self._byte(), 7
        # The highest bit of a byte states that another byte follows.
        while value >> shift:
            if shift > 63:
                raise ValueError("its metadata has a number that does not end")
            value += (self._byte() - 1) << shift
            shift += 7
        return value

    def _number(self, n_bits: int) -> int:
        """Read an integer with its sign in the last bit."""
        value = self._unsigned()
        if value >= 2**n_bits:
            raise ValueError(f"its metadata has an integer of more than {n_bits} bits")
        return (value >> 1) ^ -(value & 1)
