"""What turns texts into vectors."""

from surface_consistency.retrieval.encoders.encoder import CachedEncoder, Encoder
from surface_consistency.retrieval.encoders.sentence_encoder import (
    BUNDLED_MINILM,
    MINILM,
    SentenceEncoder,
    bundled_minilm,
)

__all__ = [
    "BUNDLED_MINILM",
    "MINILM",
    "CachedEncoder",
    "Encoder",
    "SentenceEncoder",
    "bundled_minilm",
]
