"""Stores of facts: triplet databases, deletion, retrievers and their traces."""

from surface_consistency.retrieval.bm25_retriever import BM25Retriever
from surface_consistency.retrieval.build_index import build_index, cached_index
from surface_consistency.retrieval.closure import (
    KEYS,
    AliasGroups,
    CanonicalDatabase,
    Closure,
    ClosureReport,
    FactClosure,
    NameKey,
    alias_closure,
    alias_closures,
    canonicalise,
    deleted_entries,
    deletion_masks,
    similarity_closures,
    verify_closures,
)
from surface_consistency.retrieval.content import content_digest
from surface_consistency.retrieval.embedding_index import (
    EmbeddingIndex,
    index_identity,
    load_index,
    save_index,
)
from surface_consistency.retrieval.embedding_retriever import EmbeddingRetriever
from surface_consistency.retrieval.encoder import CachedEncoder, Encoder
from surface_consistency.retrieval.faiss_retriever import FaissRetriever
from surface_consistency.retrieval.fuzzy_retriever import FuzzyRetriever, FuzzyScorer
from surface_consistency.retrieval.hybrid_retriever import HybridRetriever
from surface_consistency.retrieval.lookup_key import lookup_key
from surface_consistency.retrieval.policy import Fallback, Selection, select_candidate
from surface_consistency.retrieval.retriever import Deleted, Hits, Retriever
from surface_consistency.retrieval.sentence_encoder import (
    BUNDLED_MINILM,
    MINILM,
    SentenceEncoder,
    bundled_minilm,
)
from surface_consistency.retrieval.triplet_store import TripletStore

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
    "alias_closure",
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
