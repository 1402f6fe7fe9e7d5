from .closure import (
    alias_closures as alias_closures,
)
from .embedding_index import (
    build_index as build_index,
)
from .retriever import (
    Retriever as Retriever,
    lookup_key as lookup_key,
)
from .retrievers import (
    BM25Retriever as BM25Retriever,
    EmbeddingRetriever as EmbeddingRetriever,
    FuzzyRetriever as FuzzyRetriever,
    HybridRetriever as HybridRetriever,
)
from .triplet_store import (
    TripletStore as TripletStore,
)
from .triplets import (
    Triplets as Triplets,
)
from .verification import (
    closure_counts as closure_counts,
    database_coverage as database_coverage,
    verify_closures as verify_closures,
)
