"""Vectors for the keys of a table, in memory, on disk, or from the cache."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import RetrievalError
from surface_consistency.retrieval._ranking.key_table import KeyTable
from surface_consistency.retrieval.encoders._vectors import check_vectors
from surface_consistency.retrieval.encoders.encoder import Encoder
from surface_consistency.retrieval.index._files import write_index
from surface_consistency.retrieval.index.embedding_index import (
    EmbeddingIndex,
    index_identity,
    load_index,
)

__all__ = ["BLOCK", "index_from_cache", "index_of_table"]

BLOCK = 16_384
_TRIES = 20
_PAUSE_SECONDS = 0.05
_LOG = logging.getLogger(__name__)


def index_of_table(
    table: KeyTable, encoder: Encoder, *, folder: Path | None, block_size: int
) -> EmbeddingIndex:
    """Encode the keys; see `build_index`."""
    if block_size < 1:
        raise ValueError(f"block_size must be at least 1; got {block_size}")
    identity = index_identity(table.content, encoder.fingerprint())
    if not table.n_keys:
        return EmbeddingIndex(vectors=np.empty((0, 0), np.float32), identity=identity)
    blocks = _encoded(table.texts, encoder, block_size)
    if folder is None:
        return EmbeddingIndex(vectors=_stacked(blocks, table.n_keys), identity=identity)
    write_index(folder, blocks, identity=identity, n_keys=table.n_keys)
    return _load_written(folder)


def index_from_cache(
    table: KeyTable, encoder: Encoder, *, cache_dir: Path, verify: bool
) -> EmbeddingIndex:
    """Load the index of a table, or build it where it is missing or broken; see `cached_index`."""
    identity = index_identity(table.content, encoder.fingerprint())
    folder = cache_dir / identity
    if table.n_keys and folder.exists():
        try:
            index = load_index(folder, verify=verify)
            if index.identity == identity and len(index.vectors) == table.n_keys:
                return index
            _LOG.warning("%s: holds another index than its name says; built again", folder)
        except RetrievalError as error:
            _LOG.warning("%s; built again", error)
    return index_of_table(table, encoder, folder=folder, block_size=BLOCK)


def _load_written(folder: Path) -> EmbeddingIndex:
    """Load what was just written; another process may be putting an equal index in its place."""
    for _ in range(_TRIES):
        try:
            return load_index(folder, verify=False)
        except RetrievalError:
            time.sleep(_PAUSE_SECONDS)
    return load_index(folder, verify=False)


def _encoded(
    texts: list[str], encoder: Encoder, block_size: int
) -> Iterator[npt.NDArray[np.float32]]:
    """Yield checked vectors, block by block."""
    dimension = None
    for start in range(0, len(texts), block_size):
        some = texts[start : start + block_size]
        vectors = check_vectors(encoder.encode(some), some)
        if dimension not in (None, vectors.shape[1]):
            raise RetrievalError(
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
