"""The vectors of a store, in memory or mapped from a file, with a digest of their inputs."""

import hashlib
import json
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import JsonValue

from surface_consistency.errors import RunnerError
from surface_consistency.models.encoders import Encoder, check_vectors
from surface_consistency.reading import file_digest
from surface_consistency.schemas.jsonl import partial_path, remove_abandoned
from surface_consistency.schemas.memory import Triplet
from surface_consistency.studies.audit.retrieval.triplets import Triplets

BLOCK = 16_384
"""Number of keys that are encoded, and of vectors that are written, at a time."""

_LOG = logging.getLogger(__name__)
_FORMAT = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EmbeddingIndex:
    """One vector for each distinct key of a store, in order of the key's first entry."""

    vectors: npt.NDArray[np.float32]
    """Shape (n_keys, dimension), each of length 1; read-only pages of the file if cached."""
    identity: str
    """Digest of content, model and settings; see `index_identity`."""


def index_identity(content: str, encoder: dict[str, JsonValue]) -> str:
    """Return the name of an index: a digest of content, model and settings.

    It does not depend on a file's name or a number of entries. So the index of one store is never
    used for another store, and equal stores share one index.

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


def build_index(
    triplets: Sequence[Triplet],
    encoder: Encoder,
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    block_size: int = BLOCK,
) -> EmbeddingIndex:
    """Encode the distinct keys of a store, block by block, or load the cached index.

    A cached index is the file `IDENTITY-DIGEST.npy`, which is written atomically; DIGEST is the
    SHA-256 of its bytes. A damaged index is rebuilt, with a warning in the log.

    Args:
        triplets: The entries of the store.
        encoder: The encoder; it encodes each distinct key once.
        cache_dir: Folder of all indices, created if it is missing; the index is then mapped from
            its file and not loaded into memory. None to build it in memory.
        block_size: Number of keys that are encoded at a time, at least 1.

    Returns:
        The index. The index of an empty store is empty and is not written.

    Raises:
        RunnerError: If a vector is not finite or longer than 1 (the message names the key), or the
            folder cannot be written.
        ValueError: If `block_size` is below 1.
    """
    if block_size < 1:
        raise ValueError(f"block_size must be at least 1; got {block_size}")
    store = Triplets.of(triplets)
    texts, identity = store.keys.names, index_identity(store.content, encoder.fingerprint())
    if not len(texts):
        vectors = np.empty((0, 0), np.float32)
    elif cache_dir is None:
        vectors = _stacked(_encoded(texts, encoder, block_size), len(texts))
    else:
        kept = _load(Path(cache_dir), identity, len(texts))
        if kept is None:
            blocks = _encoded(texts, encoder, block_size)
            kept = _write(Path(cache_dir), identity, blocks, len(texts))
        vectors = kept
    return EmbeddingIndex(vectors=vectors, identity=identity)


def _encoded(
    texts: pa.Array, encoder: Encoder, block_size: int
) -> Iterator[npt.NDArray[np.float32]]:
    """Yield checked vectors, block by block."""
    dimension = None
    for start in range(0, len(texts), block_size):
        some = texts[start : start + block_size].to_pylist()
        vectors = check_vectors(encoder.encode(some), some)
        if dimension not in (None, vectors.shape[1]):
            raise RunnerError(
                f"the encoder returned vectors of dimension {dimension}, then of "
                f"{vectors.shape[1]}; all vectors of an encoder must have one dimension"
            )
        dimension = vectors.shape[1]
        yield vectors


def _stacked(blocks: Iterator[npt.NDArray[np.float32]], n_keys: int) -> npt.NDArray[np.float32]:
    """Fill one array, without a second copy of all blocks."""
    vectors, start = np.empty((n_keys, 0), np.float32), 0
    for block in blocks:
        if not start:
            vectors = np.empty((n_keys, block.shape[1]), np.float32)
        vectors[start : start + len(block)] = block
        start += len(block)
    return vectors


def _load(folder: Path, identity: str, n_keys: int) -> npt.NDArray[np.float32] | None:
    """Map a cached index; None if it does not exist or is damaged."""
    for path in sorted(folder.glob(f"{identity}-*.npy")):
        if file_digest(path) == path.stem.rpartition("-")[2]:
            vectors: npt.NDArray[np.float32] = np.load(path, mmap_mode="r", allow_pickle=False)
            if vectors.dtype == np.float32 and vectors.ndim == 2 and len(vectors) == n_keys:
                return np.asarray(vectors)
        _LOG.warning("%s: its bytes do not match its digest; rebuilt", path)
        path.unlink(missing_ok=True)
    return None


def _write(
    folder: Path, identity: str, blocks: Iterator[npt.NDArray[np.float32]], n_keys: int
) -> npt.NDArray[np.float32]:
    """Write the blocks as one array, first to a temporary file, and map it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_abandoned(folder, identity)
        draft = partial_path(folder / identity)
        try:
            with draft.open("wb") as file:
                for number, block in enumerate(blocks):
                    if not number:
                        header = {
                            "descr": "<f4",
                            "fortran_order": False,
                            "shape": (n_keys, block.shape[1]),
                        }
                        np.lib.format.write_array_header_1_0(file, header)
                    file.write(np.ascontiguousarray(block, "<f4").data)
                file.flush()
                os.fsync(file.fileno())
            place = folder / f"{identity}-{file_digest(draft)}.npy"
            draft.replace(place)
        finally:
            draft.unlink(missing_ok=True)
        return np.asarray(np.load(place, mmap_mode="r", allow_pickle=False))
    except OSError as error:
        raise RunnerError(
            f"{folder}: the index cannot be written ({error}); free disk space, or pass another "
            "folder"
        ) from error
