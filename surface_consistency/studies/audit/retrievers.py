"""The retrievers of an audit: one a database, all of one kind."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from surface_consistency.errors import RetrievalError
from surface_consistency.retrieval import (
    BUNDLED_MINILM,
    MINILM,
    BM25Retriever,
    CachedEncoder,
    EmbeddingRetriever,
    Encoder,
    FaissRetriever,
    FuzzyRetriever,
    HybridRetriever,
    Retriever,
    SentenceEncoder,
    bundled_minilm,
)
from surface_consistency.schemas.memory import TripletDatabase

__all__ = ["RETRIEVERS", "Retrievers", "retrievers_by_name"]

RETRIEVERS: Final = ("minilm", "faiss", "bm25", "fuzzy", "hybrid")
"""Names that `retrievers_by_name` knows: all-MiniLM-L6-v2 searched by numpy or by FAISS; by words;
by letters; the first and the third together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrievers:
    """Makes the retriever of each database of an audit."""

    make: Callable[[TripletDatabase], Retriever]
    """Makes one."""

    encoder: Encoder | None = None
    """What encodes keys; None for retrievers that compare words or letters."""


def retrievers_by_name(
    name: str,
    *,
    encoder: Encoder | None = None,
    device: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> Retrievers:
    """Find retrievers by name; each distinct text is encoded once for all databases.

    Args:
        name: One of `RETRIEVERS`, or a model of sentence-transformers: a folder, or a hub id with
            its owner.
        encoder: What encodes in place of all-MiniLM-L6-v2; with "minilm", "faiss" and "hybrid".
        device: Device of the encoder; None for the best there is.
        cache_dir: Folder in which indices are kept, under a digest of content, model and settings;
            None to keep none. Without effect on "bm25" and "fuzzy".

    Returns:
        The retrievers.

    Raises:
        ValueError: If there is no such retriever.
        RetrievalError: If the encoder cannot be loaded.
        MissingDependencyError: If a library is not installed.
    """
    if name == "bm25":
        return Retrievers(make=lambda database: BM25Retriever(database.triplets))
    if name == "fuzzy":
        return Retrievers(make=lambda database: FuzzyRetriever(database.triplets))
    if name not in RETRIEVERS and not _is_model(name):
        raise ValueError(
            f"retriever must be one of {', '.join(RETRIEVERS)}, the folder of a model of "
            f"sentence-transformers, or its hub id with the owner; got {name!r}"
        )
    model = _minilm() if name in RETRIEVERS else name
    cached = CachedEncoder(encoder or SentenceEncoder(model, device=device))

    def embedding(database: TripletDatabase) -> EmbeddingRetriever:
        """Make the exact retriever."""
        return EmbeddingRetriever(database.triplets, cached, cache_dir=cache_dir)

    def make(database: TripletDatabase) -> Retriever:
        """Make the retriever of the name."""
        if name == "faiss":
            return FaissRetriever(database.triplets, cached, cache_dir=cache_dir)
        if name == "hybrid":
            return HybridRetriever([embedding(database), BM25Retriever(database.triplets)])
        return embedding(database)

    return Retrievers(make=make, encoder=cached)


def _is_model(name: str) -> bool:
    """Tell whether a name is that of a model rather than a misspelling."""
    return "/" in name or os.sep in name or name in (MINILM, BUNDLED_MINILM)


def _minilm() -> str:
    """Name the copy of all-MiniLM-L6-v2 that is installed, else the one of the hub."""
    try:
        bundled_minilm()
    except RetrievalError:
        return MINILM
    return BUNDLED_MINILM
