"""A database of millions of triplets: Parquet, with an index on disk that is mapped, not loaded.

The index is made once, beside the file or in a cache folder. It holds the distinct subjects,
relations, objects and lookup keys, where each stands, and of every name the hashes of its two keys.
Pages of it are read where a deletion or a lookup needs them.
"""

import hashlib
import logging
import os
import shutil
import sys
import time
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, overload

import filelock
import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, ValidationError

from surface_consistency.errors import ColumnNotFoundError, DataError, SourceNotFoundError
from surface_consistency.reading import find_column
from surface_consistency.retrieval.alias_groups import (
    CACHED_KEYS,
    KEYS,
    ROLES,
    KeyName,
    NameKey,
    Role,
    name_key,
)
from surface_consistency.retrieval.retriever import content_digest, lookup_part
from surface_consistency.retrieval.triplet_index import (
    Ids,
    NameColumn,
    TripletIndex,
    group_entries,
)
from surface_consistency.runs.files import file_digest
from surface_consistency.schemas.jsonl import part_beside, remove_abandoned, writing_error
from surface_consistency.schemas.memory import Triplet

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MappedDatabase", "MappedTriplets", "open_database"]

_LOG = logging.getLogger(__name__)

_FORMAT: Final = 1
_META: Final = "meta.json"
_COLUMNS: Final[Mapping[Role, tuple[str, ...]]] = {
    "subject": ("head", "subject", "entity"),
    "relation": ("relation", "relationship"),
    "object": ("tail", "object", "return_value", "value"),
}
_PARTS: Final = (*ROLES, "key")
_ARRAYS: Final = ("ids", "starts", "members")
_LONGEST: Final = 10_000
_BLOCK: Final = 1 << 16


class _Meta(BaseModel):
    """What an index was made of, and what it holds."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: int
    """Version of the layout."""

    source: str
    """Digest of the Parquet files."""

    content: str
    """`content_digest` of the triplets."""

    n_triplets: int
    """Entries."""

    sizes: dict[str, int]
    """Bytes of each file of the index."""


class _Names(Sequence[str]):
    """Texts in an Arrow file, read where they are looked at."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        # The mapping lives as long as the arrays over it.
        (self._texts,) = pa.ipc.open_file(pa.memory_map(str(path))).read_all()[0].chunks or (
            pa.array([], pa.large_string()),
        )

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._texts)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        """Read one text, or a list of some."""
        found: str | list[str]
        if isinstance(place, slice):
            found = self._texts[place].to_pylist()
        else:
            found = self._texts[int(place)].as_py()
        return found

    def __iter__(self) -> Iterator[str]:
        """Read all texts, block by block."""
        for start in range(0, len(self), _BLOCK):
            yield from self[start : start + _BLOCK]

    def take(self, numbers: Ids) -> list[str]:
        """Read the texts of some numbers."""
        found: list[str] = self._texts.take(np.asarray(numbers)).to_pylist()
        return found


class _MappedColumn(NameColumn):
    """A part of all entries, mapped from the folder of an index."""

    __slots__ = ("_hashes",)

    _hashes: Mapping[KeyName, tuple[Ids, Ids]]

    def __init__(self, folder: Path, part: str) -> None:
        arrays = {name: _mapped(folder / f"{part}_{name}.npy") for name in _ARRAYS}
        super().__init__(names=_Names(folder / f"{part}_names.arrow"), **arrays)
        hashes = {
            label: (
                _mapped(folder / f"{part}_{label}_hash.npy"),
                _mapped(folder / f"{part}_{label}_id.npy"),
            )
            for label in (KEYS if part in ROLES else ())
        }
        object.__setattr__(self, "_hashes", hashes)

    def with_keys(self, key: NameKey, keys: Collection[str]) -> dict[str, Ids]:
        """Find the texts that have some keys; see `NameColumn.with_keys`.

        A key in `KEYS` is looked up by its hash; one of your own is computed of every text.
        """
        wanted = list(keys)
        found: dict[str, list[int]] = {}
        of = CACHED_KEYS[key] if isinstance(key, str) else name_key(key)
        if isinstance(key, str):
            hashes, numbers = self._hashes[key]
            own = np.array([_hash(one) for one in wanted], np.uint32)
            lows, highs = (np.searchsorted(hashes, own, side) for side in ("left", "right"))
            for one, low, high in zip(wanted, lows, highs, strict=True):
                for number in sorted(numbers[low:high].tolist()):
                    if of(self.names[number]) == one:
                        found.setdefault(one, []).append(number)
        else:
            sought = set(wanted)
            for number, name in enumerate(self.names):
                if (one := of(name)) in sought:
                    found.setdefault(one, []).append(number)
        return {one: np.array(numbers, np.int64) for one, numbers in found.items()}


class MappedTriplets(Sequence[Triplet]):
    """The entries of a mapped database, read where they are looked at."""

    def __init__(self, columns: Mapping[Role, NameColumn], keys: NameColumn, content: str) -> None:
        self._columns = [(columns[role].names, columns[role].ids) for role in ROLES]
        self.keys = keys
        """Lookup keys of the entries, as retrievers compare them."""
        self.content = content
        """Digest of all entries, as of `content_digest`."""

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.keys.ids)

    @overload
    def __getitem__(self, place: int) -> Triplet: ...
    @overload
    def __getitem__(self, place: slice) -> list[Triplet]: ...
    def __getitem__(self, place: int | slice) -> Triplet | list[Triplet]:
        """Read one entry, or a list of some."""
        if isinstance(place, slice):
            parts = [names.take(ids[place]) for names, ids in self._columns]  # type: ignore[attr-defined]
            return list(map(Triplet, *parts))
        return Triplet(*(names[int(ids[place])] for names, ids in self._columns))

    def __iter__(self) -> Iterator[Triplet]:
        """Read all entries, block by block."""
        for start in range(0, len(self), _BLOCK):
            yield from self[start : start + _BLOCK]


class MappedDatabase(TripletIndex):
    """A database on disk: what takes a `TripletDatabase` takes it too, with equal results.

    Made by `open_database`.

    Args:
        folder: Folder of its index.
        meta: What the index holds.
    """

    def __init__(self, folder: Path, meta: _Meta) -> None:
        columns: dict[Role, NameColumn] = {role: _MappedColumn(folder, role) for role in ROLES}
        keys = _MappedColumn(folder, "key")
        super().__init__(MappedTriplets(columns, keys, meta.content), columns)
        self.folder = folder
        """Where the index lies."""


def open_database(
    path: str | os.PathLike[str], *, cache_dir: str | os.PathLike[str] | None = None
) -> MappedDatabase:
    """Map a Parquet file of triplets, whatever its size.

    At the first call an index is made: `FILE.index` beside the file, or where nothing can be
    written there `$XDG_CACHE_HOME/surface-consistency/triplets` (`~/.cache` where that is not set),
    and standard error says so. It appears whole or not at all, is tied to the file by its SHA-256,
    which every call checks, and is made anew where the file has changed or the index is torn.

    Args:
        path: The file, or a folder of shards whose name ends in `.parquet`. It has the columns
            head, relation and tail, or subject, relation and object, or entity, relationship and
            return_value, in any order and beside any others, all of them text.
        cache_dir: Folder in which indices are kept, in place of these two.

    Returns:
        The database. An entry that stands several times is as many entries.

    Raises:
        SourceNotFoundError: If there is no such file.
        ColumnNotFoundError: If a column is missing, or two could be it.
        DataError: If the file is no Parquet, holds no entry, a cell is empty, missing, longer than
            10,000 characters or not UTF-8, or the index cannot be written; names file and row.
    """
    source = Path(path)
    files = sorted(source.glob("*.parquet")) if source.is_dir() else [source]
    if not files or not source.exists():
        raise SourceNotFoundError(f"no Parquet file {source}; check the path (in {Path.cwd()})")
    fingerprint = _fingerprint(files)
    name = fingerprint[:32]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    places = [
        source.absolute().with_name(f"{source.name}.index"),
        cache / "surface-consistency" / "triplets" / name,
    ]
    if cache_dir is not None:
        places = [Path(cache_dir) / name]
    for place in places:
        if (meta := _read_meta(place, fingerprint)) is not None:
            return MappedDatabase(place, meta)
    place = next((one for one in places if os.access(one.parent, os.W_OK)), places[-1])
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(place.with_name(f".{place.name}.lock")):
            # Another process may have made it while this one waited.
            meta = _read_meta(place, fingerprint) or _make(files, fingerprint, source, place)
    except OSError as error:
        raise writing_error(place, error) or error from error
    return MappedDatabase(place, meta)


def _read_meta(place: Path, fingerprint: str) -> _Meta | None:
    """Read what an index holds; None where there is none, or it is torn or of other files."""
    try:
        meta = _Meta.model_validate_json((place / _META).read_bytes())
        sizes = {name: (place / name).stat().st_size for name in meta.sizes}
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        _LOG.warning("%s: no whole index (%s); made again", place, str(error).splitlines()[0])
        return None
    if meta.format != _FORMAT or meta.source != fingerprint:
        print(f"{place}: the file has changed since it was indexed", file=sys.stderr, flush=True)
        return None
    if sizes != meta.sizes:
        _LOG.warning("%s: a file of the index is torn; made again", place)
        return None
    return meta


def _make(files: Sequence[Path], fingerprint: str, source: Path, place: Path) -> _Meta:
    """Make an index beside its place and move it there whole."""
    n_bytes, began = sum(file.stat().st_size for file in files), time.monotonic()
    print(
        f"indexing the triplets of {source} ({n_bytes / 1e6:,.0f} MB), once: {place}",
        file=sys.stderr,
        flush=True,
    )
    remove_abandoned(place.parent, place.name)
    draft = part_beside(place)
    try:
        draft.mkdir()
        content, n_triplets = _write_index(files, draft)
        meta = _Meta(
            format=_FORMAT,
            source=fingerprint,
            content=content,
            n_triplets=n_triplets,
            sizes={file.name: file.stat().st_size for file in sorted(draft.iterdir())},
        )
        (draft / _META).write_text(meta.model_dump_json(indent=2) + "\n", encoding="utf-8")
        shutil.rmtree(place, ignore_errors=True)
        draft.rename(place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    took = time.monotonic() - began
    print(f"indexed {n_triplets:,} triplets in {took:.0f} s", file=sys.stderr, flush=True)
    return meta


def _write_index(files: Sequence[Path], draft: Path) -> tuple[str, int]:
    """Write the files of an index; return the digest and the number of the entries."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = _find_columns(files)
    joined: list[tuple[pa.Array, Ids]] = []
    for role in ROLES:
        names, ids = _encoded(_read_column(files, wanted[role]), files[0], wanted[role])
        parts = _write_keys(draft, role, names, ids, files[0])
        if role != "object":
            joined.append((pa.concat_arrays(parts), ids))
        _write_column(draft, role, names, ids)
    keys = pa.chunked_array(
        [
            pc.binary_join_element_wise(
                *(
                    parts.take(pa.array(numbers[start : start + _BLOCK]))
                    for parts, numbers in joined
                ),
                pa.scalar(" ", pa.large_string()),
            )
            for start in range(0, len(ids), _BLOCK)
        ]
    )
    _write_column(draft, "key", *_numbered(keys))
    columns: dict[Role, NameColumn] = {
        role: NameColumn(
            names=_Names(draft / f"{role}_names.arrow"),
            **{name: _mapped(draft / f"{role}_{name}.npy") for name in _ARRAYS},
        )
        for role in ROLES
    }
    entries = MappedTriplets(columns, columns["subject"], "")
    return content_digest(iter(entries)), len(entries)


def _find_columns(files: Sequence[Path]) -> dict[Role, str]:
    """Find the columns of the three parts, which all shards must have."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: dict[Role, str] = {}
    for file in files:
        try:
            schema = pq.read_schema(file)
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(
                f"{file} cannot be read as Parquet ({str(error).splitlines()[0]}); write or fetch "
                "it again"
            ) from error
        for role, names in _COLUMNS.items():
            known = [one for name in names if (one := find_column(name, schema.names))]
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
            if found.setdefault(role, known[0]) != known[0]:
                raise ColumnNotFoundError(
                    f"{file}: the {role} stands in {known[0]!r}, in {files[0].name} it stands in "
                    f"{found[role]!r}; give all shards the same columns"
                )
    return found


def _read_column(files: Sequence[Path], name: str) -> "pa.ChunkedArray":
    """Read a column of all files as texts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    chunks = []
    for file in files:
        try:
            with pq.ParquetFile(file) as table:
                for batch in table.iter_batches(columns=[name], batch_size=_BLOCK):
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


def _encoded(texts: "pa.ChunkedArray", file: Path, column: str) -> tuple["pa.Array", Ids]:
    """Number the texts of a column; refuse missing ones and bytes that are no text."""
    import pyarrow as pa

    if not len(texts):
        raise DataError(f"{file}: no triplets; a database needs at least one")
    if texts.null_count:
        row = int(np.flatnonzero(texts.is_null().to_numpy())[0])
        raise DataError(f"{file}: row {row} has no {column}; drop the row, or fill the cell")
    names, ids = _numbered(texts)
    try:
        names.validate(full=True)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{file}: column {column!r} holds bytes that are not UTF-8 ({error}); write it as UTF-8"
        ) from error
    return names, ids


def _write_keys(
    draft: Path, role: Role, names: "pa.Array", ids: Ids, file: Path
) -> list["pa.Array"]:
    """Check the names of a part, write the hashes of their keys, and return their lookup forms."""
    import pyarrow as pa

    functions = {label: name_key(label) for label in KEYS}
    hashes = {label: np.empty(len(names), np.uint32) for label in KEYS}
    parts: list[pa.Array] = []
    for start in range(0, len(names), _BLOCK):
        block = names[start : start + _BLOCK].to_pylist()
        for number, name in enumerate(block, start):
            if not name.strip() or len(name) > _LONGEST:
                row = int(np.flatnonzero(ids == number)[0])
                size = f"of {len(name):,} characters, more than {_LONGEST:,}"
                raise DataError(
                    f"{file}: row {row} has {'an empty ' + role if not name.strip() else role}"
                    f"{' ' + size if name.strip() else ''}; drop the row, or mend the cell"
                )
        for label, of in functions.items():
            hashes[label][start : start + len(block)] = [_hash(of(name)) for name in block]
        if role != "object":
            parts.append(pa.array(map(lookup_part, block), pa.large_string()))
    for label, found in hashes.items():
        order = np.argsort(found, kind="stable")
        np.save(draft / f"{role}_{label}_hash.npy", found[order])
        np.save(draft / f"{role}_{label}_id.npy", order.astype(np.int32))
    return parts


def _write_column(draft: Path, part: str, names: "pa.Array", ids: Ids) -> None:
    """Write the names of a part, and where each stands."""
    import pyarrow as pa

    batch = pa.record_batch([names], ["names"])
    with (
        (draft / f"{part}_names.arrow").open("wb") as file,
        pa.ipc.new_file(file, batch.schema) as writer,
    ):
        writer.write_batch(batch)
    places = group_entries(ids, len(names))
    for name, array in {"ids": ids, **places}.items():
        np.save(draft / f"{part}_{name}.npy", array if name == "starts" else array.astype(np.int32))


def _mapped(path: Path) -> Ids:
    """Map an array."""
    array: npt.NDArray[np.integer[Any]] = np.load(path, mmap_mode="r", allow_pickle=False)
    return array.view(np.ndarray)


def _hash(key: str) -> int:
    """Return a hash of a key that every version of Python and all libraries agree on."""
    return zlib.crc32(key.encode("utf-8", "surrogatepass"))


def _fingerprint(files: Sequence[Path]) -> str:
    """Name the content of files by SHA-256."""
    return hashlib.sha256("".join(f"{file_digest(one)}\n" for one in files).encode()).hexdigest()
