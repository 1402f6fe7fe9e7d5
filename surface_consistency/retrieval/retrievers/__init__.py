"""Retrievers: by embedding, by words, by letters, and several as one."""

from surface_consistency.retrieval.retrievers.bm25_retriever import BM25Retriever
from surface_consistency.retrieval.retrievers.embedding_retriever import EmbeddingRetriever
from surface_consistency.retrieval.retrievers.faiss_retriever import FaissRetriever
from surface_consistency.retrieval.retrievers.fuzzy_retriever import FuzzyRetriever, FuzzyScorer
from surface_consistency.retrieval.retrievers.hybrid_retriever import HybridRetriever

__all__ = [
    "BM25Retriever",
    "EmbeddingRetriever",
    "FaissRetriever",
    "FuzzyRetriever",
    "FuzzyScorer",
    "HybridRetriever",
]
