"""From the entries of a store to its index."""

import os
from collections.abc import Sequence
from pathlib import Path

from surface_consistency.retrieval._ranking.key_table import KeyTable
from surface_consistency.retrieval.encoders.encoder import Encoder
from surface_consistency.retrieval.index._build import BLOCK, index_from_cache, index_of_table
from surface_consistency.retrieval.index.embedding_index import EmbeddingIndex
from surface_consistency.schemas.memory import Triplet

__all__ = ["build_index", "cached_index"]


def build_index(
    triplets: Sequence[Triplet],
    encoder: Encoder,
    *,
    folder: str | os.PathLike[str] | None = None,
    block_size: int = BLOCK,
) -> EmbeddingIndex:
    """Encode the distinct keys of a store, block by block.

    Args:
        triplets: The entries of the store.
        encoder: What encodes; each distinct key is given to it once.
        folder: Where the index is written, a folder of its own; the index then never stands in
            memory as a whole, and what is returned is mapped from the file. None to keep it in
            memory.
        block_size: Keys that are encoded at a time, at least 1.

    Returns:
        The index. That of an empty store is empty and is not written.

    Raises:
        RetrievalError: If a vector is not finite or longer than 1 (names the key), or the folder
            cannot be written or holds something else than an index.
        ValueError: If `block_size` is below 1.
    """
    place = None if folder is None else Path(folder)
    return index_of_table(KeyTable.of(triplets), encoder, folder=place, block_size=block_size)


def cached_index(
    triplets: Sequence[Triplet],
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
        triplets: The entries of the store.
        encoder: What encodes.
        cache_dir: Folder of all indices; made where it is missing.
        verify: Whether the digest of the vectors is checked on loading.

    Returns:
        The index, mapped from its file.

    Raises:
        RetrievalError: As in `build_index`.
    """
    table = KeyTable.of(triplets)
    return index_from_cache(table, encoder, cache_dir=Path(cache_dir), verify=verify)
