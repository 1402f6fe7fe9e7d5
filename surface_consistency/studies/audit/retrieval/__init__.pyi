from .alias_groups import (
    KEYS as KEYS,
    AliasGroups as AliasGroups,
    NameKey as NameKey,
)
from .canonical import (
    CanonicalDatabase as CanonicalDatabase,
    canonicalise as canonicalise,
)
from .closure import (
    alias_closures as alias_closures,
    similarity_closures as similarity_closures,
)
from .embedding_index import (
    EmbeddingIndex as EmbeddingIndex,
    build_index as build_index,
)
from .parquet import (
    read_parquet as read_parquet,
)
from .retriever import (
    Deleted as Deleted,
    Fallback as Fallback,
    Hits as Hits,
    Retriever as Retriever,
    lookup_key as lookup_key,
    select_candidate as select_candidate,
)
from .retrievers import (
    BM25Retriever as BM25Retriever,
    EmbeddingRetriever as EmbeddingRetriever,
    FuzzyRetriever as FuzzyRetriever,
    FuzzyScorer as FuzzyScorer,
    HybridRetriever as HybridRetriever,
)
from .triplet_store import (
    TripletStore as TripletStore,
)
from .triplets import (
    Triplets as Triplets,
    content_digest as content_digest,
)
from .verification import (
    ClosureReport as ClosureReport,
    DatabaseCoverage as DatabaseCoverage,
    FactClosure as FactClosure,
    database_coverage as database_coverage,
    verify_closures as verify_closures,
)
