"""A database of millions of triplets: Parquet, with an index on disk that is mapped, not loaded.

The index is made once, beside the file or in a cache folder. It holds the distinct subjects,
relations, objects and lookup keys, where each stands, and of every name the hashes of its two keys.
Pages of it are read where a deletion or a lookup needs them.

Kept beside duckdb, measured: a key drops punctuation and folds case, which its `lower` does not
(298 characters, and ".us" is "US"), and a triplet by its number takes it 16 ms, of an index 6 µs.
"""

import hashlib
import logging
import os
import shutil
import sys
import time
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, overload

import filelock
import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.runs.files import file_digest
from surface_consistency.schemas.jsonl import part_beside, remove_abandoned, writing_error
from surface_consistency.schemas.memory import Triplet
from surface_consistency.studies.audit.retrieval.alias_groups import (
    CACHED_KEYS,
    KEYS,
    ROLES,
    KeyName,
    NameKey,
    Role,
)
from surface_consistency.studies.audit.retrieval.index_files import (
    ARRAYS,
    BLOCK,
    hash_key,
    map_array,
    write_index,
)
from surface_consistency.studies.audit.retrieval.retriever import content_digest
from surface_consistency.studies.audit.retrieval.triplet_index import (
    Ids,
    NameColumn,
    TripletIndex,
    join_ranges,
)

_LOG = logging.getLogger(__name__)

# Keys of names hang on what Unicode says of case and letters, which Python renews.
_FORMAT: Final = f"2, Unicode {unicodedata.unidata_version}"
_META: Final = "meta.json"


class _Meta(BaseModel):
    """What an index was made of, and what it holds."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: str
    """Version of the layout, and of Unicode."""

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
        texts: str | list[str]
        if isinstance(place, slice):
            texts = self._texts[place].to_pylist()
        else:
            texts = self._texts[int(place)].as_py()
        return texts

    def __iter__(self) -> Iterator[str]:
        """Read all texts, block by block."""
        for start in range(0, len(self), BLOCK):
            yield from self[start : start + BLOCK]

    def take(self, numbers: Ids) -> list[str]:
        """Read the texts of some numbers."""
        texts: list[str] = self._texts.take(np.asarray(numbers)).to_pylist()
        return texts


class _MappedColumn(NameColumn):
    """A part of all entries, mapped from the folder of an index."""

    __slots__ = ("_hashes",)

    _hashes: Mapping[KeyName, tuple[Ids, Ids]]

    def __init__(self, folder: Path, part: str) -> None:
        arrays = {name: map_array(folder / f"{part}_{name}.npy") for name in ARRAYS}
        super().__init__(names=_Names(folder / f"{part}_names.arrow"), **arrays)
        hashes = {
            label: (
                map_array(folder / f"{part}_{label}_hash.npy"),
                map_array(folder / f"{part}_{label}_id.npy"),
            )
            for label in (KEYS if part in ROLES else ())
        }
        object.__setattr__(self, "_hashes", hashes)

    def with_keys(self, key: NameKey, keys: Collection[str]) -> dict[str, list[int]]:
        """Find the texts that have some keys; see `NameColumn.with_keys`.

        A key in `KEYS` is looked up by its hash, once; one of your own is computed of every text.
        """
        if not isinstance(key, str):
            return super().with_keys(key, keys)
        known = self._by_key.setdefault(key, {})
        new = [one for one in keys if one not in known]
        hashes, numbers = self._hashes[key]
        own = np.array([hash_key(one) for one in new], np.uint32)
        lows, highs = (np.searchsorted(hashes, own, side) for side in ("left", "right"))
        candidates = numbers[join_ranges(lows, highs - lows)]
        known.update((one, []) for one in new)
        of, sought = CACHED_KEYS[key], np.repeat(np.arange(len(new)), highs - lows).tolist()
        names = self.names.take(candidates)  # type: ignore[attr-defined]
        for place, number, name in zip(sought, candidates.tolist(), names, strict=True):
            if of(name) == new[place]:
                known[new[place]].append(number)
        return {one: known[one] for one in keys if known[one]}


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
        for start in range(0, len(self), BLOCK):
            yield from self[start : start + BLOCK]


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
            10,000 characters or not UTF-8 (names file and row, from 1), or the index cannot be
            written, as where something else bears its name.
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
        raise writing_error(place, error) or DataError(
            f"{place}: the index cannot be written ({error}); free disk space, or give another "
            "folder (cache_dir)"
        ) from error
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
        what = "this package or Python" if meta.source == fingerprint else "the file"
        print(f"{place}: {what} has changed since it was indexed", file=sys.stderr, flush=True)
        return None
    if sizes != meta.sizes:
        _LOG.warning("%s: a file of the index is torn; made again", place)
        return None
    return meta


def _make(files: Sequence[Path], fingerprint: str, source: Path, place: Path) -> _Meta:
    """Make an index beside its place and move it there whole."""
    if place.exists() and not _is_index(place):
        raise DataError(
            f"{place} is in the way of the index and is none; move it, or give another folder "
            "(cache_dir)"
        )
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
        write_index(files, draft)
        columns: dict[Role, NameColumn] = {role: _MappedColumn(draft, role) for role in ROLES}
        entries = MappedTriplets(columns, columns["subject"], "")
        meta = _Meta(
            format=_FORMAT,
            source=fingerprint,
            content=content_digest(iter(entries)),
            n_triplets=len(entries),
            sizes={file.name: file.stat().st_size for file in sorted(draft.iterdir())},
        )
        (draft / _META).write_text(meta.model_dump_json(indent=2) + "\n", encoding="utf-8")
        shutil.rmtree(place, ignore_errors=True)
        draft.rename(place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    took = time.monotonic() - began
    print(f"indexed {meta.n_triplets:,} triplets in {took:.0f} s", file=sys.stderr, flush=True)
    return meta


def _is_index(place: Path) -> bool:
    """Tell whether a folder holds files of an index alone, so that it may be replaced."""
    return place.is_dir() and all(
        one.name == _META or one.suffix in (".npy", ".arrow") for one in place.iterdir()
    )


def _fingerprint(files: Sequence[Path]) -> str:
    """Name the content of files by SHA-256."""
    return hashlib.sha256("".join(f"{file_digest(one)}\n" for one in files).encode()).hexdigest()
