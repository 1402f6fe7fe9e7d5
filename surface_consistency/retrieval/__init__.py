"""Stores of facts: triplet databases, deletion, retrievers and their traces."""

from typing import TYPE_CHECKING

from surface_consistency._lazy import attach

if TYPE_CHECKING:
    from surface_consistency.retrieval.alias_groups import KEYS, AliasGroups, NameKey
    from surface_consistency.retrieval.canonical import CanonicalDatabase, canonicalise
    from surface_consistency.retrieval.closure import (
        Closure,
        alias_closures,
        deleted_entries,
        deletion_masks,
        similarity_closures,
    )
    from surface_consistency.retrieval.embedding_index import (
        EmbeddingIndex,
        build_index,
        cached_index,
        index_identity,
        load_index,
        save_index,
    )
    from surface_consistency.retrieval.encoders import (
        BUNDLED_MINILM,
        MINILM,
        CachedEncoder,
        Encoder,
        SentenceEncoder,
        bundled_minilm,
    )
    from surface_consistency.retrieval.hybrid_retriever import HybridRetriever
    from surface_consistency.retrieval.policy import Fallback, Selection, select_candidate
    from surface_consistency.retrieval.retriever import (
        Deleted,
        Hits,
        Retriever,
        content_digest,
        lookup_key,
    )
    from surface_consistency.retrieval.triplet_store import TripletStore
    from surface_consistency.retrieval.vector_retrievers import EmbeddingRetriever, FaissRetriever
    from surface_consistency.retrieval.verification import (
        ClosureReport,
        FactClosure,
        verify_closures,
    )
    from surface_consistency.retrieval.word_retrievers import (
        BM25Retriever,
        FuzzyRetriever,
        FuzzyScorer,
    )

__all__ = [
    "BUNDLED_MINILM",
    "KEYS",
    "MINILM",
    "AliasGroups",
    "BM25Retriever",
    "CachedEncoder",
    "CanonicalDatabase",
    "Closure",
    "ClosureReport",
    "Deleted",
    "EmbeddingIndex",
    "EmbeddingRetriever",
    "Encoder",
    "FactClosure",
    "FaissRetriever",
    "Fallback",
    "FuzzyRetriever",
    "FuzzyScorer",
    "Hits",
    "HybridRetriever",
    "NameKey",
    "Retriever",
    "Selection",
    "SentenceEncoder",
    "TripletStore",
    "alias_closures",
    "build_index",
    "bundled_minilm",
    "cached_index",
    "canonicalise",
    "content_digest",
    "deleted_entries",
    "deletion_masks",
    "index_identity",
    "load_index",
    "lookup_key",
    "save_index",
    "select_candidate",
    "similarity_closures",
    "verify_closures",
]

_MODULES = {
    "alias_groups": "AliasGroups KEYS NameKey",
    "canonical": "CanonicalDatabase canonicalise",
    "closure": "Closure alias_closures deleted_entries deletion_masks similarity_closures",
    "embedding_index": "EmbeddingIndex build_index cached_index index_identity load_index "
    "save_index",
    "encoders": "BUNDLED_MINILM CachedEncoder Encoder MINILM SentenceEncoder bundled_minilm",
    "hybrid_retriever": "HybridRetriever",
    "policy": "Fallback Selection select_candidate",
    "retriever": "Deleted Hits Retriever content_digest lookup_key",
    "triplet_store": "TripletStore",
    "vector_retrievers": "EmbeddingRetriever FaissRetriever",
    "verification": "ClosureReport FactClosure verify_closures",
    "word_retrievers": "BM25Retriever FuzzyRetriever FuzzyScorer",
}

__getattr__, __dir__ = attach(
    __name__, {name: module for module, names in _MODULES.items() for name in names.split()}
)
