"""The vectors of a store's keys, tied to what they were made of."""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from surface_consistency.retrieval.index._files import read_index, write_index

__all__ = ["EmbeddingIndex", "index_identity", "load_index", "save_index"]

_FORMAT = 1
_BLOCK = 16_384


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EmbeddingIndex:
    """One vector for each distinct key of a store, in order of the key's first entry."""

    vectors: npt.NDArray[np.float32]
    """Shape (n_keys, dimension), each of length 1; of a loaded index, read-only pages of its
    file."""
    identity: str
    """What the vectors were made of: see `index_identity`."""


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
        RetrievalError: If the folder cannot be written, or holds something else.
    """
    vectors = index.vectors
    if not len(vectors):
        raise ValueError("an index without vectors cannot be saved; it costs nothing to build")
    blocks = (vectors[start : start + _BLOCK] for start in range(0, len(vectors), _BLOCK))
    write_index(Path(folder), blocks, identity=index.identity, n_keys=len(vectors))


def load_index(folder: str | os.PathLike[str], *, verify: bool = True) -> EmbeddingIndex:
    """Map an index from disk; its pages are read when they are searched.

    Args:
        folder: Where it was saved.
        verify: Whether the digest of the vectors is checked, which reads them once. Without, a
            missing or short file is still found, changed bytes are not.

    Returns:
        The index.

    Raises:
        RetrievalError: If a file is missing, torn or changed.
    """
    vectors, meta = read_index(Path(folder), verify=verify)
    return EmbeddingIndex(vectors=vectors, identity=meta.identity)
