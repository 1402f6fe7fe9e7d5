"""What an encoder is, and one that encodes each text once."""

from collections.abc import Sequence
from itertools import islice
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from surface_consistency.retrieval.encoders._vectors import check_vectors

__all__ = ["CachedEncoder", "Encoder"]


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into vectors; any class with these two members is an encoder."""

    def fingerprint(self) -> dict[str, JsonValue]:
        """Tell what decides the vectors: model, weights, tokenizer, length limit.

        Returns:
            Plain JSON values. An index on disk is only used under an equal fingerprint.
        """

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Encode texts.

        Args:
            texts: Any texts, empty ones too; at least one.

        Returns:
            One vector a text, of length 1 (or 0), shape (n_texts, dimension).
        """


class CachedEncoder:
    """Encodes each distinct text once and remembers its vector.

    Hand one to the retrievers of several stores, and what they share is encoded once.

    Args:
        encoder: What encodes.
        max_texts: How many texts are remembered; the oldest go first.

    Raises:
        ValueError: If `max_texts` is negative.
    """

    def __init__(self, encoder: Encoder, *, max_texts: int = 65_536) -> None:
        if max_texts < 0:
            raise ValueError(f"max_texts must be at least 0; got {max_texts}")
        self._encoder = encoder
        self._max_texts = max_texts
        self._vectors: dict[str, npt.NDArray[np.float32]] = {}

    def fingerprint(self) -> dict[str, JsonValue]:
        """Return the fingerprint of the encoder within."""
        return self._encoder.fingerprint()

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Encode the texts that are new, once each, and look up the rest.

        Args:
            texts: Any texts; may repeat. At least one.

        Returns:
            One vector a text, shape (n_texts, dimension).

        Raises:
            RetrievalError: If the encoder returns something else than such vectors.
        """
        known = self._vectors
        new = list(dict.fromkeys(text for text in texts if text not in known))
        if new:
            encoded = check_vectors(self._encoder.encode(new), new)
            fresh = dict(zip(new, encoded, strict=True))
        else:
            fresh = {}
        vectors = np.stack([fresh[text] if text in fresh else known[text] for text in texts])
        self._remember(fresh)
        return vectors

    def _remember(self, fresh: dict[str, npt.NDArray[np.float32]]) -> None:
        """Keep copies, so that a kept vector does not keep its whole batch."""
        for text in list(fresh)[-self._max_texts :] if self._max_texts else ():
            self._vectors[text] = fresh[text].copy()
        n_over = max(len(self._vectors) - self._max_texts, 0)
        for text in list(islice(self._vectors, n_over)):
            del self._vectors[text]
