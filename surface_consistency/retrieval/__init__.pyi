from .alias_groups import KEYS as KEYS
from .alias_groups import AliasGroups as AliasGroups
from .alias_groups import NameKey as NameKey
from .canonical import CanonicalDatabase as CanonicalDatabase
from .canonical import canonicalise as canonicalise
from .closure import (
    Closure as Closure,
)
from .closure import (
    alias_closures as alias_closures,
)
from .closure import (
    deleted_entries as deleted_entries,
)
from .closure import (
    deletion_masks as deletion_masks,
)
from .closure import (
    similarity_closures as similarity_closures,
)
from .embedding_index import (
    EmbeddingIndex as EmbeddingIndex,
)
from .embedding_index import (
    build_index as build_index,
)
from .embedding_index import (
    cached_index as cached_index,
)
from .embedding_index import (
    index_identity as index_identity,
)
from .embedding_index import (
    load_index as load_index,
)
from .embedding_index import (
    save_index as save_index,
)
from .encoders import (
    BUNDLED_MINILM as BUNDLED_MINILM,
)
from .encoders import (
    MINILM as MINILM,
)
from .encoders import (
    CachedEncoder as CachedEncoder,
)
from .encoders import (
    Encoder as Encoder,
)
from .encoders import (
    SentenceEncoder as SentenceEncoder,
)
from .encoders import (
    bundled_minilm as bundled_minilm,
)
from .hybrid_retriever import HybridRetriever as HybridRetriever
from .policy import (
    Fallback as Fallback,
)
from .policy import (
    Selection as Selection,
)
from .policy import (
    select_candidate as select_candidate,
)
from .retriever import (
    Deleted as Deleted,
)
from .retriever import (
    Hits as Hits,
)
from .retriever import (
    Retriever as Retriever,
)
from .retriever import (
    content_digest as content_digest,
)
from .retriever import (
    lookup_key as lookup_key,
)
from .triplet_store import TripletStore as TripletStore
from .vector_retrievers import (
    EmbeddingRetriever as EmbeddingRetriever,
)
from .vector_retrievers import (
    FaissRetriever as FaissRetriever,
)
from .verification import (
    ClosureReport as ClosureReport,
)
from .verification import (
    FactClosure as FactClosure,
)
from .verification import (
    verify_closures as verify_closures,
)
from .word_retrievers import (
    BM25Retriever as BM25Retriever,
)
from .word_retrievers import (
    FuzzyRetriever as FuzzyRetriever,
)
from .word_retrievers import (
    FuzzyScorer as FuzzyScorer,
)
