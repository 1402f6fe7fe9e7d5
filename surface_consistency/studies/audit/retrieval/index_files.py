"""The files of a mapped database: written from Parquet, one array or list of texts each."""

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.reading import find_column
from surface_consistency.studies.audit.retrieval.alias_groups import KEYS, ROLES, Role, name_key
from surface_consistency.studies.audit.retrieval.retriever import lookup_part
from surface_consistency.studies.audit.retrieval.triplet_index import Ids, group_entries

if TYPE_CHECKING:
    import pyarrow as pa

ARRAYS: Final = ("ids", "starts", "members")
"""Fields of a column that are arrays, a file each."""
BLOCK: Final = 1 << 16
"""Texts and entries that are read at a time."""
_COLUMNS: Final[Mapping[Role, tuple[str, ...]]] = {
    "subject": ("head", "subject", "entity"),
    "relation": ("relation", "relationship"),
    "object": ("tail", "object", "return_value", "value"),
}
_LONGEST: Final = 10_000
_MOST: Final = 2**31 - 1


def write_index(files: Sequence[Path], folder: Path) -> None:
    """Write subjects, relations, objects and lookup keys of Parquet files.

    Args:
        files: The shards of a database, in order.
        folder: Where the files go.

    Raises:
        ColumnNotFoundError: If a column is missing, or two could be it.
        DataError: If a file is no Parquet or holds what is no triplet; names file and row.
        OSError: If the folder cannot be written.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = _find_columns(files)
    joined: list[tuple[pa.Array, Ids]] = []
    for role in ROLES:
        names, ids = _encoded(_read_column(files, wanted[role]), files, wanted[role])
        parts = _write_keys(folder, role, names, ids, files)
        if role != "object":
            joined.append((pa.concat_arrays(parts), ids))
        _write_column(folder, role, names, ids)
    keys = pa.chunked_array(
        [
            pc.binary_join_element_wise(
                *(
                    parts.take(pa.array(numbers[start : start + BLOCK]))
                    for parts, numbers in joined
                ),
                pa.scalar(" ", pa.large_string()),
            )
            for start in range(0, len(ids), BLOCK)
        ]
    )
    _write_column(folder, "key", *_numbered(keys))


def _find_columns(files: Sequence[Path]) -> dict[Role, str]:
    """Find the columns of the three parts, which all shards must have."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[Role, str] = {}
    for file in files:
        try:
            schema = pq.read_schema(file)
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(
                f"{file} cannot be read as Parquet ({str(error).splitlines()[0]}); write or fetch "
                "it again"
            ) from error
        for role, names in _COLUMNS.items():
            meant = {find_column(name, schema.names) for name in names}
            known = [name for name in schema.names if name in meant]
            if len(known) != 1:
                several = f"could be {' or '.join(map(repr, known))}" if known else "is missing"
                raise ColumnNotFoundError(
                    f"{file}: the column of the {role} {several}; a store of triplets has the "
                    f"columns head, relation and tail (or {', '.join(names[1:])}), and this file "
                    f"has {', '.join(map(repr, schema.names)) or 'none'}: rename its columns"
                )
            kind = schema.field(known[0]).type
            texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
            plain = kind.value_type if pa.types.is_dictionary(kind) else kind
            if not any(is_text(plain) for is_text in texts):
                raise DataError(
                    f"{file}: column {known[0]!r} holds {kind}; a triplet is three texts: write "
                    "the column as strings"
                )
            if columns.setdefault(role, known[0]) != known[0]:
                raise ColumnNotFoundError(
                    f"{file}: the {role} stands in {known[0]!r}, in {files[0].name} it stands in "
                    f"{columns[role]!r}; give all shards the same columns"
                )
    return columns


def _read_column(files: Sequence[Path], name: str) -> "pa.ChunkedArray":
    """Read a column of all files as texts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    chunks = []
    for file in files:
        try:
            with pq.ParquetFile(file) as table:
                for batch in table.iter_batches(columns=[name], batch_size=BLOCK):
                    chunks.append(batch.column(0).cast(pa.large_string()))
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(
                f"{file} cannot be read as Parquet ({str(error).splitlines()[0]}); write or fetch "
                "it again"
            ) from error
    return pa.chunked_array(chunks, pa.large_string())


def _numbered(texts: "pa.ChunkedArray") -> tuple["pa.Array", Ids]:
    """Number texts in order of their first place."""
    # All chunks have one dictionary, since they are encoded in one call.
    encoded = texts.dictionary_encode()
    ids = [chunk.indices.to_numpy() for chunk in encoded.chunks]
    return encoded.chunk(0).dictionary, np.concatenate(ids)


def _encoded(
    texts: "pa.ChunkedArray", files: Sequence[Path], column: str
) -> tuple["pa.Array", Ids]:
    """Number the texts of a column; refuse missing ones and bytes that are no text."""
    import pyarrow as pa

    if not 0 < len(texts) <= _MOST:
        raise DataError(
            f"{files[0]}: {len(texts) or 'no'} triplets; a database has 1 to {_MOST:,} of them"
        )
    if texts.null_count:
        place = _place(files, texts.is_null().to_numpy())
        raise DataError(f"{place} has no {column}; drop the row, or fill the cell")
    names, ids = _numbered(texts)
    try:
        names.validate(full=True)
    except pa.ArrowInvalid as error:
        raw = names.view(pa.large_binary()).to_pylist()
        broken = next(place for place, name in enumerate(raw) if not _is_text(name))
        raise DataError(
            f"{_place(files, ids == broken)}: column {column!r} holds bytes that are not UTF-8; "
            "write it as UTF-8"
        ) from error
    return names, ids


def _is_text(raw: bytes) -> bool:
    """Tell whether bytes are UTF-8."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _place(files: Sequence[Path], is_meant: npt.NDArray[np.bool_]) -> str:
    """Name the shard and the row in it, from 1, of the first of some rows of all shards."""
    import pyarrow.parquet as pq

    row = int(np.flatnonzero(is_meant)[0])
    for file in files:
        n_rows = pq.read_metadata(file).num_rows
        if row < n_rows:
            break
        row -= n_rows
    return f"{file}: row {row + 1}"


def _write_keys(
    folder: Path, role: Role, names: "pa.Array", ids: Ids, files: Sequence[Path]
) -> list["pa.Array"]:
    """Check the names of a part, write the hashes of their keys, and return their lookup forms."""
    import pyarrow as pa

    functions = {label: name_key(label) for label in KEYS}
    hashes = {label: np.empty(len(names), np.uint32) for label in KEYS}
    parts: list[pa.Array] = []
    for start in range(0, len(names), BLOCK):
        block = names[start : start + BLOCK].to_pylist()
        for number, name in enumerate(block, start):
            if not name.strip() or len(name) > _LONGEST:
                place = _place(files, ids == number)
                size = f"of {len(name):,} characters, more than {_LONGEST:,}"
                raise DataError(
                    f"{place} has {'an empty ' + role if not name.strip() else role}"
                    f"{' ' + size if name.strip() else ''}; drop the row, or mend the cell"
                )
        for label, of in functions.items():
            hashes[label][start : start + len(block)] = [hash_key(of(name)) for name in block]
        if role != "object":
            parts.append(pa.array(map(lookup_part, block), pa.large_string()))
    for label, label_hashes in hashes.items():
        order = np.argsort(label_hashes, kind="stable")
        np.save(folder / f"{role}_{label}_hash.npy", label_hashes[order])
        np.save(folder / f"{role}_{label}_id.npy", order.astype(np.int32))
    return parts


def _write_column(folder: Path, part: str, names: "pa.Array", ids: Ids) -> None:
    """Write the names of a part, and where each stands."""
    import pyarrow as pa

    batch = pa.record_batch([names], ["names"])
    with (
        (folder / f"{part}_names.arrow").open("wb") as file,
        pa.ipc.new_file(file, batch.schema) as writer,
    ):
        writer.write_batch(batch)
    places = group_entries(ids, len(names))
    for name, array in {"ids": ids, **places}.items():
        np.save(
            folder / f"{part}_{name}.npy", array if name == "starts" else array.astype(np.int32)
        )


def map_array(path: Path) -> Ids:
    """Map an array; its pages are read where they are looked at.

    Args:
        path: Its file.

    Returns:
        The array, read-only.
    """
    array: npt.NDArray[np.integer[Any]] = np.load(path, mmap_mode="r", allow_pickle=False)
    return array.view(np.ndarray)


def hash_key(key: str) -> int:
    """Hash a key as every version of Python and all libraries do.

    Args:
        key: The key of a name.

    Returns:
        CRC-32, of which different keys may have the same.
    """
    return zlib.crc32(key.encode("utf-8", "surrogatepass"))
