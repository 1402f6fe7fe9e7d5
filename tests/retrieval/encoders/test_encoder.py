"""The cache of encoded texts."""

import numpy as np
import pytest

from surface_consistency.errors import RetrievalError
from surface_consistency.retrieval import CachedEncoder, Encoder


def test_cached_encoder_agrees_with_the_encoder(table_encoder):
    texts = ["a", "b", "a", "", "日本"]

    vectors = CachedEncoder(table_encoder()).encode(texts)

    np.testing.assert_array_equal(vectors, table_encoder().encode(texts))
    assert vectors.dtype == np.float32


@pytest.mark.parametrize("max_texts", [0, 1, 3, 100])
def test_cached_encoder_remembers_the_newest(table_encoder, max_texts):
    encoder = table_encoder()
    cached = CachedEncoder(encoder, max_texts=max_texts)
    letters = list("abcde")

    first = cached.encode(letters)
    encoder.seen.clear()
    second = cached.encode(letters)

    np.testing.assert_array_equal(first, second)
    assert encoder.seen == letters[: max(len(letters) - max_texts, 0)]


def test_cached_encoder_is_an_encoder_of_its_encoder(table_encoder):
    cached = CachedEncoder(table_encoder(name="x"))

    assert isinstance(cached, Encoder)
    assert cached.fingerprint() == table_encoder(name="x").fingerprint()


def test_cached_encoder_rejects_negative_sizes_and_wrong_vectors(table_encoder):
    class Short(table_encoder):
        def encode(self, texts):
            return super().encode(texts)[:-1]

    with pytest.raises(ValueError, match="max_texts must be at least 0; got -1"):
        CachedEncoder(table_encoder(), max_texts=-1)
    with pytest.raises(RetrievalError, match=r"shape \(2, dimension\); got shape \(1, 16\)"):
        CachedEncoder(Short()).encode(["a", "b"])


@pytest.mark.parametrize("n_more", [0, 1, 5, 12])
def test_cached_encoder_forgets_nothing_before_it_is_full(table_encoder, n_more):
    """Also when it is more than half full."""
    encoder = table_encoder()
    cached = CachedEncoder(encoder, max_texts=12)
    texts = [f"t{i}" for i in range(7 + n_more)]

    for text in texts:
        cached.encode([text])
    encoder.seen.clear()
    cached.encode(texts[-12:])

    assert encoder.seen == []
