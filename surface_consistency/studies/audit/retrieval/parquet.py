"""Read databases of millions of triplets: Parquet files, with an index of names and key hashes."""

import hashlib
import logging
import os
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from surface_consistency.errors import ColumnNotFoundError, DataError, SourceNotFoundError
from surface_consistency.reading import file_digest, find_column, shown
from surface_consistency.rows.columnar import open_parquet
from surface_consistency.schemas.jsonl import atomic_path
from surface_consistency.studies.audit.retrieval.alias_groups import (
    KEYS,
    ROLES,
    KeyName,
    NameKey,
    Role,
    name_key,
)
from surface_consistency.studies.audit.retrieval.triplets import TextColumn, Triplets, name_id

_LOG = logging.getLogger(__name__)
# Keys of names depend on the Unicode tables of case and letters, which change with Python.
_FORMAT: Final = f"1, Unicode {unicodedata.unidata_version}"
_COLUMNS: Final[Mapping[Role, tuple[str, ...]]] = {
    "subject": ("head", "subject", "entity"),
    "relation": ("relation", "relationship"),
    "object": ("tail", "object", "return_value", "value"),
}
_LONGEST: Final = 10_000
_SAMPLE: Final = 64


def read_parquet(path: str | os.PathLike[str]) -> Triplets:
    """Read triplets from Parquet.

    The first call checks every name, numbers the names and hashes their keys. The result is the
    Arrow file `FILE.index` next to the file or, if that cannot be written, in
    `$XDG_CACHE_HOME/surface-consistency/triplets` (`~/.cache` by default). Later calls map it and
    read only the parts that they need. The index contains the SHA-256 of the file and is rebuilt
    if the file has changed or the index is damaged.

    Args:
        path: The file, or a folder of shards whose name ends in `.parquet`. It has the columns
            head, relation and tail, or subject, relation and object, or entity, relationship and
            return_value, as text, in any order and with any other columns.

    Returns:
        The database. Repeated entries are kept.

    Raises:
        SourceNotFoundError: If the file does not exist.
        ColumnNotFoundError: If a column is missing or ambiguous.
        DataError: If the file is not Parquet or has no entry, or a cell is empty, missing, longer
            than 10,000 characters or not UTF-8; the message names file and row, from 1.
    """
    source = Path(path)
    files = sorted(source.glob("*.parquet")) if source.is_dir() else [source]
    if not files or not source.exists():
        raise SourceNotFoundError(f"Parquet file {source} not found (in {Path.cwd()})")
    digest = hashlib.sha256("".join(f"{file_digest(one)}\n" for one in files).encode()).hexdigest()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    places = [
        source.with_name(f"{source.name}.index"),
        cache / "surface-consistency" / "triplets" / f"{digest}.index",
    ]
    for place in places:
        if (known := _read_index(place, digest)) is not None:
            return known
    print(f"indexing the triplets of {source}, once", file=sys.stderr, flush=True)
    names = _find_columns(files)
    triplets = Triplets({role: TextColumn.of(_read_column(files, names[role])) for role in ROLES})
    if not len(triplets):
        raise DataError(f"{source}: no triplets; a database needs at least one")
    for role, column in triplets.columns.items():
        _check_names(column, files, names[role], role)
    _write_index(places, digest, triplets)
    return triplets


def _find_columns(files: Sequence[Path]) -> dict[Role, str]:
    """Find the columns of the three parts, which all shards must have."""
    columns: dict[Role, str] = {}
    for file in files:
        with _reading(file), open_parquet(file, groups=slice(0)) as opened:
            schema = opened.schema_arrow
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
            plain = kind.value_type if pa.types.is_dictionary(kind) else kind
            if plain not in (pa.string(), pa.large_string(), pa.string_view()):
                raise DataError(
                    f"{file}: column {shown(known[0])} has the type {kind}; a triplet is three "
                    "texts: write the column as strings"
                )
            if columns.setdefault(role, known[0]) != known[0]:
                raise ColumnNotFoundError(
                    f"{file}: the column of the {role} is {shown(known[0])}, in {files[0].name} it "
                    f"is {shown(columns[role])}; give all shards the same columns"
                )
    return columns


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    """Raise a `DataError` if a file is not Parquet."""
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(
            f"{file} cannot be read as Parquet ({str(error).splitlines()[0]}); write or fetch it "
            "again"
        ) from error


def _read_column(files: Sequence[Path], name: str) -> pa.ChunkedArray:
    """Read a column of all files as texts; missing cells are an error."""
    chunks: list[pa.Array] = []
    for file in files:
        with _reading(file), open_parquet(file) as opened:
            texts = opened.read([name])[name].cast(pa.large_string())
        if texts.null_count:
            row = int(np.flatnonzero(texts.is_null().to_numpy())[0])
            raise DataError(f"{file}: row {row + 1} has no {name}; drop the row, or fill the cell")
        chunks += texts.chunks
    return pa.chunked_array(chunks, pa.large_string())


def _check_names(column: TextColumn, files: Sequence[Path], name: str, role: Role) -> None:
    """Raise an error for names that are blank, too long or not UTF-8."""
    for number, raw in enumerate(column.names.view(pa.large_binary()).to_pylist()):
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            problem = f": column {shown(name)} has bytes that are not UTF-8; write it as UTF-8"
        else:
            if text.strip() and len(text) <= _LONGEST:
                continue
            problem = f" has an empty {role}; drop the row, or correct the cell"
            if text.strip():
                problem = (
                    f" has a {role} of {len(text):,} characters, more than {_LONGEST:,}; drop the "
                    "row, or correct the cell"
                )
        raise DataError(f"{_place(files, int(np.argmax(column.ids == number)))}{problem}")


def _place(files: Sequence[Path], row: int) -> str:
    """Return the shard and the row in it, from 1, of a row of all shards."""
    for file in files:
        n_rows = pq.read_metadata(file).num_rows
        if row < n_rows:
            break
        row -= n_rows
    return f"{file}: row {row + 1}"


def _read_index(place: Path, digest: str) -> Triplets | None:
    """Map an index; None if it does not exist, is damaged or belongs to other triplets."""
    try:
        with pa.memory_map(os.fspath(place)) as mapped, pa.ipc.open_file(mapped) as file:
            (batch,) = file.read_all().to_batches()
        meta = {key.decode(): value.decode() for key, value in batch.schema.metadata.items()}
        if meta["format"] != _FORMAT or meta["source"] != digest:
            print(f"{place}: made for another file or Python", file=sys.stderr, flush=True)
            return None
        batch.validate(full=True)
        columns: dict[Role, TextColumn] = {}
        hashes: dict[tuple[Role, NameKey], npt.NDArray[np.uint64]] = {}
        for role in ROLES:
            encoded = batch[role]
            names = encoded.dictionary.field("name")
            columns[role] = TextColumn(names, encoded.indices.to_numpy())
            for label in KEYS:
                hashes[role, label] = encoded.dictionary.field(label).to_numpy()
                _check_hashes(names, label, hashes[role, label])
        return Triplets(columns, content=meta["content"], hashes=hashes)
    except FileNotFoundError:
        return None
    except (pa.ArrowException, OSError, LookupError, ValueError, AttributeError) as error:
        _LOG.warning("%s: damaged (%s); rebuilt", place, str(error).partition("\n")[0])
        return None


def _check_hashes(names: pa.Array, label: KeyName, hashes: npt.NDArray[np.uint64]) -> None:
    """Compare some of the hashes with the names."""
    of = name_key(label)
    for place in range(0, len(names), max(len(names) // _SAMPLE, 1)):
        if name_id(of(names[place].as_py())) != hashes[place]:
            raise ValueError(f"{shown(names[place])} has another key")


def _write_index(places: Sequence[Path], digest: str, triplets: Triplets) -> None:
    """Write names, numbers and hashes to the first path that can be written."""
    parts = {}
    for role, column in triplets.columns.items():
        hashes = [pa.array(triplets.name_ids(role, label)) for label in KEYS]
        values = pa.StructArray.from_arrays([column.names, *hashes], ["name", *KEYS])
        parts[role] = pa.DictionaryArray.from_arrays(pa.array(column.ids), values)
    table = pa.table(parts).replace_schema_metadata(
        {"format": _FORMAT, "source": digest, "content": triplets.content}
    )
    for place in places:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with atomic_path(place) as draft, pa.ipc.new_file(draft, table.schema) as file:
                file.write_table(table)
            return
        except (OSError, DataError) as error:
            _LOG.warning("no index at %s: %s", place, error)
