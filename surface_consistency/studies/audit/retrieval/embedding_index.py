"""The vectors of a store, in memory and on disk, tied to what they were made of."""

import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from surface_consistency.errors import RunnerError
from surface_consistency.models.encoders import Encoder, check_vectors
from surface_consistency.schemas.memory import Triplet
from surface_consistency.studies.audit.retrieval._ranking import KeyTable

BLOCK = 16_384
"""Keys that are encoded, and vectors that are written, at a time."""

_LOG = logging.getLogger(__name__)

_FORMAT = 1
_FILES = _VECTORS, _META = "vectors.npy", "meta.json"
_TRIES_TO_LOAD, _PAUSE_SECONDS = 20, 0.05
_TRIES_TO_MOVE = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EmbeddingIndex:
    """One vector for each distinct key of a store, in order of the key's first entry."""

    vectors: npt.NDArray[np.float32]
    """Shape (n_keys, dimension), each of length 1; of a loaded index, read-only pages of its
    file."""
    identity: str
    """What the vectors were made of: see `index_identity`."""


class _Meta(BaseModel):
    """What `meta.json` holds."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    identity: str
    """What the vectors were made of."""
    n_keys: int
    """Number of vectors."""
    dimension: int
    """Length of each."""
    vectors_sha256: str
    """Digest of `vectors.npy`, all bytes of it."""


def index_identity(content: str, encoder: dict[str, JsonValue]) -> str:
    """Return the name of an index: a digest of content, model and settings.

    Neither a file's name nor a number of entries is part of it, so no store is answered from the
    index of another, and equal stores share one.

    Args:
        content: The `content_digest` of the store.
        encoder: The fingerprint of the encoder.

    Returns:
        SHA-256 as 64 hex digits.

    Examples:
        >>> one = index_identity("a1", {"model": "m"})
        >>> one == index_identity("a2", {"model": "m"}), one == index_identity("a1", {"model": "n"})
        (False, False)
    """
    parts = {"format": _FORMAT, "content": content, "encoder": encoder}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def save_index(index: EmbeddingIndex, folder: str | os.PathLike[str]) -> None:
    """Write an index: beside its place first, then moved there as one.

    Args:
        index: What is written; an empty one cannot be.
        folder: Where `vectors.npy` and `meta.json` go, a folder of its own; an index that is there
            is replaced.

    Raises:
        ValueError: If the index holds no vector.
        RunnerError: If the folder cannot be written, or holds something else.
    """
    vectors = index.vectors
    if not len(vectors):
        raise ValueError("an index without vectors cannot be saved; it costs nothing to build")
    blocks = (vectors[start : start + BLOCK] for start in range(0, len(vectors), BLOCK))
    _write(Path(folder), blocks, identity=index.identity, n_keys=len(vectors))


def load_index(folder: str | os.PathLike[str], *, verify: bool = True) -> EmbeddingIndex:
    """Map an index from disk; its pages are read when they are searched.

    Args:
        folder: Where it was saved.
        verify: Whether the digest of the vectors is checked, which reads them once. Without, a
            missing or short file is still found, changed bytes are not.

    Returns:
        The index.

    Raises:
        RunnerError: If a file is missing, torn or changed.
    """
    place, remedy = Path(folder), "delete the folder and build the index again"
    try:
        meta = _Meta.model_validate_json((place / _META).read_bytes())
        mapped = np.load(place / _VECTORS, mmap_mode="r", allow_pickle=False)
        digest = _digest(place / _VECTORS) if verify else meta.vectors_sha256
    except ValidationError as error:
        raise RunnerError(f"{place / _META}: torn or of another kind; {remedy}") from error
    except (OSError, ValueError, EOFError) as error:
        raise RunnerError(f"{place}: no whole index ({error}); {remedy}") from error
    vectors: npt.NDArray[np.float32] = np.asarray(mapped)
    if vectors.dtype != np.float32 or vectors.shape != (meta.n_keys, meta.dimension):
        raise RunnerError(
            f"{place / _VECTORS}: holds {vectors.shape} of {vectors.dtype}, but its meta.json "
            f"says ({meta.n_keys}, {meta.dimension}) of float32; {remedy}"
        )
    if digest != meta.vectors_sha256:
        raise RunnerError(
            f"{place / _VECTORS}: its bytes are not those that were written; {remedy}"
        )
    return EmbeddingIndex(vectors=vectors, identity=meta.identity)


def build_index(
    triplets: Sequence[Triplet] | KeyTable,
    encoder: Encoder,
    *,
    folder: str | os.PathLike[str] | None = None,
    block_size: int = BLOCK,
) -> EmbeddingIndex:
    """Encode the distinct keys of a store, block by block.

    Args:
        triplets: The entries of the store, or their table of keys.
        encoder: What encodes; each distinct key is given to it once.
        folder: Where the index is written, a folder of its own; the index then never stands in
            memory as a whole, and what is returned is mapped from the file. None to keep it in
            memory.
        block_size: Keys that are encoded at a time, at least 1.

    Returns:
        The index. That of an empty store is empty and is not written.

    Raises:
        RunnerError: If a vector is not finite or longer than 1 (names the key), or the folder
            cannot be written or holds something else than an index.
        ValueError: If `block_size` is below 1.
    """
    if block_size < 1:
        raise ValueError(f"block_size must be at least 1; got {block_size}")
    table = KeyTable.of(triplets)
    identity = index_identity(table.content, encoder.fingerprint())
    if not table.n_keys:
        return EmbeddingIndex(vectors=np.empty((0, 0), np.float32), identity=identity)
    blocks = _encoded(table.texts, encoder, block_size)
    if folder is None:
        return EmbeddingIndex(vectors=_stacked(blocks, table.n_keys), identity=identity)
    _write(Path(folder), blocks, identity=identity, n_keys=table.n_keys)
    for _ in range(_TRIES_TO_LOAD):
        # Another process may be putting an equal index in its place.
        with suppress(RunnerError):
            return load_index(folder, verify=False)
        time.sleep(_PAUSE_SECONDS)
    return load_index(folder, verify=False)


def cached_index(
    triplets: Sequence[Triplet] | KeyTable,
    encoder: Encoder,
    *,
    cache_dir: str | os.PathLike[str],
    verify: bool = True,
) -> EmbeddingIndex:
    """Load a store's index from a cache, or build it there.

    An index lies in a folder named by `index_identity`. It is written beside its place and moved
    there as one, so a killed build leaves none; one that is torn or changed is built again, with a
    message in the log of the process.

    Args:
        triplets: The entries of the store, or their table of keys.
        encoder: What encodes.
        cache_dir: Folder of all indices; made where it is missing.
        verify: Whether the digest of the vectors is checked on loading.

    Returns:
        The index, mapped from its file.

    Raises:
        RunnerError: As in `build_index`.
    """
    table = KeyTable.of(triplets)
    identity = index_identity(table.content, encoder.fingerprint())
    folder = Path(cache_dir) / identity
    if table.n_keys and folder.exists():
        try:
            index = load_index(folder, verify=verify)
            if index.identity == identity and len(index.vectors) == table.n_keys:
                return index
            _LOG.warning("%s: holds another index than its name says; built again", folder)
        except RunnerError as error:
            _LOG.warning("%s; built again", error)
    return build_index(table, encoder, folder=folder)


def _encoded(
    texts: Sequence[str], encoder: Encoder, block_size: int
) -> Iterator[npt.NDArray[np.float32]]:
    """Yield checked vectors, block by block."""
    dimension = None
    for start in range(0, len(texts), block_size):
        some = texts[start : start + block_size]
        vectors = check_vectors(encoder.encode(some), some)
        if dimension not in (None, vectors.shape[1]):
            raise RunnerError(
                f"the encoder returned vectors of dimension {dimension}, then of "
                f"{vectors.shape[1]}; an encoder must keep to one"
            )
        dimension = vectors.shape[1]
        yield vectors


def _stacked(blocks: Iterator[npt.NDArray[np.float32]], n_keys: int) -> npt.NDArray[np.float32]:
    """Fill one array, without a second copy of all blocks."""
    first = next(blocks)
    vectors = np.empty((n_keys, first.shape[1]), np.float32)
    vectors[: len(first)] = first
    done = len(first)
    for block in blocks:
        vectors[done : done + len(block)] = block
        done += len(block)
    return vectors


def _write(
    folder: Path, blocks: Iterable[npt.NDArray[np.float32]], *, identity: str, n_keys: int
) -> None:
    """Write an index beside its place, then move it there as one."""
    _check_place(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name[:16]}-", dir=folder.parent))
        try:
            digest, dimension = _write_vectors(draft / _VECTORS, blocks, n_keys)
            meta = _Meta(
                identity=identity, n_keys=n_keys, dimension=dimension, vectors_sha256=digest
            )
            with (draft / _META).open("wb") as file:
                file.write(meta.model_dump_json(indent=2).encode())
                file.flush()
                os.fsync(file.fileno())
            draft.chmod(0o755)
            _publish(draft, folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise RunnerError(
            f"{folder}: the index cannot be written ({error.strerror or error}); free disk space "
            "or choose another folder"
        ) from error


def _write_vectors(
    path: Path, blocks: Iterable[npt.NDArray[np.float32]], n_keys: int
) -> tuple[str, int]:
    """Write the blocks as one array; return digest and dimension."""
    digest, dimension, n_written = hashlib.sha256(), 0, 0
    with path.open("w+b") as file:
        for block in blocks:
            if not n_written:
                dimension = block.shape[1]
                shape = (n_keys, dimension)
                header = {"descr": "<f4", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
                file.seek(0)
                digest.update(file.read())
            data = np.ascontiguousarray(block, dtype="<f4")
            file.write(data.data)
            digest.update(data.data)
            n_written += len(data)
        file.flush()
        os.fsync(file.fileno())
    if n_written != n_keys:
        raise ValueError(f"an index of {n_keys} keys got {n_written} vectors")
    return digest.hexdigest(), dimension


def _check_place(folder: Path) -> None:
    """Refuse a place where something else than an index would be lost."""
    if folder.is_dir():
        others = sorted(path.name for path in folder.iterdir() if path.name not in _FILES)
    else:
        others = [folder.name] if folder.exists() else []
    if others:
        raise RunnerError(
            f"{folder}: holds {others[0]}, which is no part of an index, and is left as it is; "
            "choose a folder of its own for the index"
        )


def _publish(draft: Path, folder: Path) -> None:
    """Move a finished index to its place; what stands there is moved away first."""
    for _ in range(_TRIES_TO_MOVE):
        with suppress(OSError):
            draft.rename(folder)
            return
        _check_place(folder)
        old = Path(tempfile.mkdtemp(prefix=".old-", dir=folder.parent))
        with suppress(FileNotFoundError):
            folder.rename(old / folder.name)
        shutil.rmtree(old, ignore_errors=True)
    draft.rename(folder)


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
