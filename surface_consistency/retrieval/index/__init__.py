"""The vectors of a store, in memory and on disk, tied to what they were made of."""

from surface_consistency.retrieval.index.build_index import build_index, cached_index
from surface_consistency.retrieval.index.embedding_index import (
    EmbeddingIndex,
    index_identity,
    load_index,
    save_index,
)

__all__ = [
    "EmbeddingIndex",
    "build_index",
    "cached_index",
    "index_identity",
    "load_index",
    "save_index",
]
