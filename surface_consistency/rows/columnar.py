"""Checks of the decoded size of untrusted Parquet, Arrow and npz files before they are decoded.

A few bytes of such a file can encode many rows (run-length pages), many long texts (rows that refer
to one text of a dictionary, texts with a common prefix) or large buffers (compression).
"""

import math
import re
import struct
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, Final

from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import (
    CELL_BYTES,
    LONGEST_LINE,
    VALUE_BYTES,
    UnpackedSize,
    check_columns,
    parse_json,
    read_document,
    shown,
    within,
)
from surface_consistency.rows.pages import Chunk, Pages, check_lengths, read_footer, read_pages

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_BATCH: Final = 256
_PIECE: Final = 64_000_000
_NUMBERS: Final = ("BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE")
_COMPRESSION: Final = 3
_STATE: Final = "state.json"
_UNREADABLE: Final = (ValueError, KeyError, TypeError, RecursionError, struct.error, OSError)


def open_parquet(
    path: Path, value_bytes: int = CELL_BYTES, groups: slice = slice(None)
) -> "pq.ParquetFile":
    """Open a Parquet file whose decoded size is within the limit of `UnpackedSize`.

    Args:
        path: The file.
        value_bytes: Memory per value that is read, in bytes, without the characters of texts.
        groups: Row groups that are read; by default all.

    Returns:
        The open file.

    Raises:
        RecordError: If the row groups exceed the limit, or two columns have one name.
        DataError: If its footer or pages are damaged.
        pyarrow.ArrowException: If it is not a Parquet file.
    """
    import pyarrow.parquet as pq

    with _damage(path), path.open("rb") as raw:
        chunks = read_footer(raw)
        file = pq.ParquetFile(path, pre_buffer=False)
    try:
        check_columns(file.schema_arrow.names, str(path))
        _check_parquet(file, path, chunks, groups, value_bytes)
    except BaseException:
        file.close()
        raise
    return file


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Convert errors of a damaged Parquet file."""
    import pyarrow as pa

    try:
        yield
    except (DataError, pa.ArrowException):
        raise
    except (ValueError, OverflowError) as error:
        raise DataError(
            f"{path} is not a readable Parquet file: {str(error)[:200]}; copy or write it again"
        ) from error


def check_cells(columns: "pa.Table | pa.RecordBatch", place: str) -> None:
    """Reject texts of more than `LONGEST_LINE` bytes.

    Args:
        columns: A table, or a part of one.
        place: The file, for messages.

    Raises:
        RecordError: If a text in a column, or in its lists, is longer; the message names the
            column.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, column in zip(columns.schema.names, columns.columns, strict=True):
        if column.nbytes <= LONGEST_LINE:
            continue
        while pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            column = pc.list_flatten(column)
        is_text = re.fullmatch("(large_)?(string|binary)", str(column.type)) is not None
        if is_text and (pc.max(pc.binary_length(column)).as_py() or 0) > LONGEST_LINE:
            raise RecordError(
                f"{place}: a cell of column {shown(name)} has more than {LONGEST_LINE:,} bytes; "
                "shorten it, or drop the column"
            )


def check_arrays(path: Path) -> None:
    """Check that the arrays of an npz file are within the limit of `UnpackedSize`.

    Args:
        path: The file.

    Raises:
        RecordError: If the arrays exceed the limit.
        ValueError: If an array is not as large as its header states, or is compressed in a way that
            numpy does not use.
        zipfile.BadZipFile: If it is not a zip archive.
    """
    size = UnpackedSize(path)
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            size.add(member.file_size)
            check_array(archive, member)


def check_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Check that an array of an npz file is as large as its header states.

    Args:
        archive: The file.
        member: The array.

    Raises:
        ValueError: If its size differs, or it is compressed in a way that numpy does not use.
    """
    from numpy.lib import format as npy

    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{shown(member.filename)} is compressed in a way that numpy does not use")
    with archive.open(member) as file:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        try:
            shape, _, kind = read(file)
        except (SyntaxError, TokenError) as error:
            raise ValueError(f"the header of {shown(member.filename)} is broken") from error
        n_bytes = member.file_size - file.tell()
    if math.prod(shape) * kind.itemsize != n_bytes and not kind.hasobject:
        raise ValueError(
            f"the header of {shown(member.filename)} states an array of shape {shape}, and "
            f"{n_bytes:,} bytes follow"
        )


def _check_parquet(
    file: "pq.ParquetFile",
    path: Path,
    chunks: Sequence[Sequence[Chunk]],
    groups: slice,
    value_bytes: int,
) -> None:
    """Check that the decoded size of row groups is within the limit of `UnpackedSize`.

    A lower bound is computed first. Long texts to which many rows refer are counted only if there
    may be any. The footer may be forged, so the sizes are taken from the page headers.
    """
    size, columns, texts = UnpackedSize(path, value_bytes), range(file.metadata.num_columns), []
    with path.open("rb", buffering=0) as raw, _damage(path):
        further = [_further_bytes(file.schema.column(number)) for number in columns]
        if len(chunks) != file.num_row_groups:
            raise ValueError("its footer is damaged")
        for group in range(len(chunks))[groups]:
            for number, chunk, n_bytes in zip(columns, chunks[group], further, strict=True):
                pages = read_pages(raw, chunk)
                size.add(pages.n_bytes + pages.n_values * n_bytes, pages.n_values)
                column = file.schema.column(number)
                n_levels = (column.max_definition_level > 0) + (column.max_repetition_level > 0)
                for page in pages.delta:
                    check_lengths(raw, page, chunk.codec, n_levels)
                if chunk.is_texts:
                    texts.append((group, number, pages))
    # Chunks below this size are not checked; their sum is below half of the limit.
    most = size.limit // (2 * len(texts) + 2)
    for group, number, pages in texts:
        if pages.n_values * pages.n_bytes > most:
            _add_texts(size, group, file.schema.column(number).path, pages, most)


def _further_bytes(column: "pq.ColumnSchema") -> int:
    """Return the memory of a value in addition to that of a number or text.

    Values of lists, structures, decimals and dates are Python objects.
    """
    kind, path = column.logical_type.type, column.path
    is_plain = kind in ("NONE", "INT") and column.physical_type in _NUMBERS
    is_cell = path == column.name and (is_plain or kind == "STRING")
    return max(int(column.length), 0) + (0 if is_cell else VALUE_BYTES)


def _add_texts(size: UnpackedSize, group: int, name: str, pages: Pages, most: int) -> None:
    """Count the texts of a column chunk, unless they have at most `most` bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    # A text that begins with a prefix of the previous one is not longer than the chunk. pyarrow
    # does not make a dictionary of such texts.
    rows = max(1, _PIECE // pages.n_bytes) if pages.delta else _BATCH
    named = None if pages.delta else [name]
    with pq.ParquetFile(size.path, read_dictionary=named, pre_buffer=False) as file:
        for batch in file.iter_batches(rows, [group], [name], use_threads=False):
            texts = batch.column(0)
            while pa.types.is_nested(texts.type):
                texts = texts.field(0) if pa.types.is_struct(texts.type) else texts.flatten()
            if not pa.types.is_dictionary(texts.type):
                size.add(texts.nbytes)
                continue
            # The first batch contains the complete dictionary; texts without a dictionary are
            # stored as they are.
            lengths = pc.binary_length(texts.dictionary)
            if pages.n_values * (pc.max(lengths).as_py() or 0) <= most:
                return
            size.add(pc.sum(lengths.take(texts.indices)).as_py() or 0)


def check_saved_dataset(folder: Path) -> None:
    """Check the Arrow files of a folder that `Dataset.save_to_disk` wrote.

    Args:
        folder: The folder of a data set, or of several splits.

    Raises:
        RecordError: If their content exceeds the limit of `UnpackedSize`.
        DataError: If a file is compressed or damaged.
    """
    import pyarrow as pa

    try:
        parts = [folder]
        if not (folder / _STATE).is_file():
            splits = _document(folder, "dataset_dict.json")["splits"]
            parts = [_named(folder, name) for name in splits]
        for part in parts:
            for one in _document(part, _STATE)["_data_files"]:
                file = _named(part, one["filename"])
                if file.is_file():
                    _check_arrow(file)
    except DataError:
        raise
    except (*_UNREADABLE, pa.ArrowException) as error:
        raise DataError(
            f"{folder}: not a folder of Dataset.save_to_disk ({str(error)[:200]}); write it again"
        ) from error


def _document(folder: Path, name: str) -> Any:  # noqa: ANN401 - JSON
    """Read a JSON file of a folder that may be untrusted."""
    file = _named(folder, name)
    return parse_json(read_document(file), str(file))


def _named(folder: Path, name: str) -> Path:
    """Return the path of a file of a folder; `datasets` reads a name with a colon as a URL."""
    if ":" in name:
        raise DataError(f"{folder}: {shown(name)} is not the name of a file; write it again")
    return within(folder, name)


def _check_arrow(path: Path) -> None:
    """Count the rows of an Arrow stream; its buffers are those of the file."""
    import pyarrow as pa

    size = UnpackedSize(path)
    with pa.memory_map(str(path)) as file:
        for message in pa.ipc.MessageReader.open_stream(file):
            if message.type == "record batch" and _is_compressed(message.metadata.to_pybytes()):
                raise DataError(
                    f"{path}: its buffers are compressed, which Dataset.save_to_disk does not do; "
                    "write it again"
                )
    with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as batches:
        check_columns(batches.schema.names, str(path))
        if not all(map(_is_plain, batches.schema.types)):
            raise DataError(
                f"{path}: columns of dictionaries or views are not read; write it again"
            )
        for batch in batches:
            size.add(0, batch.num_rows * batch.num_columns)
            batch.validate(full=True)
            check_cells(batch, str(path))


def _is_plain(kind: "pa.DataType") -> bool:
    """Check that the values of a column do not share bytes."""
    children = [kind.field(number).type for number in range(kind.num_fields)]
    is_shared = re.match(r"\w+_view|dictionary|run_end_encoded", str(kind)) is not None
    return not is_shared and all(map(_is_plain, children))


def _is_compressed(header: bytes) -> bool:
    """Check a message of Arrow, a FlatBuffer, for the compression of its buffers."""

    def field(table: int, number: int) -> int:
        """Return the position of a field of a table; 0 if it is missing."""
        layout = table - struct.unpack_from("<i", header, table)[0]
        end = struct.unpack_from("<H", header, layout)[0]
        at = 4 + 2 * number
        offset = struct.unpack_from("<H", header, layout + at)[0] if at < end else 0
        return table + offset if offset else 0

    (root,) = struct.unpack_from("<I", header)
    batch = field(root, 2)
    batch += struct.unpack_from("<I", header, batch)[0]
    return field(batch, _COMPRESSION) != 0
