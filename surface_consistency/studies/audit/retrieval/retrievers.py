"""The retrievers: exact embedding search in numpy, search by words or letters, and a hybrid."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from surface_consistency.errors import MissingDependencyError, RunnerError
from surface_consistency.models.encoders import CachedEncoder, Encoder, check_vectors
from surface_consistency.schemas.memory import LookupQuery, Triplet
from surface_consistency.studies.audit.retrieval import _ranking
from surface_consistency.studies.audit.retrieval.embedding_index import build_index
from surface_consistency.studies.audit.retrieval.retriever import (
    Deleted,
    Hits,
    Retriever,
    lookup_key,
)
from surface_consistency.studies.audit.retrieval.triplets import Ints, Triplets
from surface_consistency.text import normalize, tokenize

_SCORER = "token_sort_ratio"
_BM25: dict[str, JsonValue] = {"k1": 1.5, "b": 0.75, "method": "lucene"}
_FUSION, _DEPTH = 60.0, 100
_PAIRS = 8192
_UNIT_ROUNDOFF = 2.0**-24


class EmbeddingRetriever:
    """Exact search over all entries: blocks of scores by matrix product, masked, then ranked.

    Candidates are found by scores in single precision, whose last bits depend on the batch; the
    scores of the few candidates are computed again in double precision, so hits and their order do
    not depend on it.

    Args:
        triplets: The entries of the store.
        encoder: Encoder of keys and queries; a `CachedEncoder` may be shared with the retrievers
            of other stores.
        cache_dir: Folder in which indices are cached; None for no cache.

    Raises:
        RunnerError: If a vector is not finite or longer than 1.

    Notes:
        Entries of equal key (same subject and relation) have equal scores and are ranked by index.
        A store without entries has no hits, and an empty query is encoded unchanged.

    Examples:
        >>> from surface_consistency.schemas.memory import LookupQuery, Triplet
        >>> class Initials:
        ...     def fingerprint(self):
        ...         return {"encoder": "initials"}
        ...
        ...     def encode(self, texts):
        ...         return np.eye(128, dtype=np.float32)[[ord(text[0]) for text in texts]]
        >>> store = [Triplet("France", "capital", "Paris"), Triplet("Chad", "capital", "N'Djamena")]
        >>> retriever = EmbeddingRetriever(store, Initials())
        >>> query = LookupQuery(entity="Chad", relation="capital")
        >>> retriever.search([query], k=1).indices, retriever.search([query], k=2, deleted=[[1]])
        (array([[1]]), Hits(indices=array([[ 0, -1]]), scores=array([[  0., -inf]], dtype=float32)))
    """

    def __init__(
        self,
        triplets: Sequence[Triplet],
        encoder: Encoder,
        *,
        cache_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        self._triplets = Triplets.of(triplets)
        self._keys = self._triplets.keys
        self._encoder = encoder if isinstance(encoder, CachedEncoder) else CachedEncoder(encoder)
        self._encoded_by = encoder.fingerprint()
        self.index = build_index(self._triplets, self._encoder, cache_dir=cache_dir)
        """The vectors that are searched."""
        self._vectors = self.index.vectors

    def fingerprint(self) -> dict[str, JsonValue]:
        """Return kind, encoder and content."""
        return {
            "retriever": "embedding",
            "encoder": self._encoded_by,
            "content": self._triplets.content,
        }

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Encode lookup keys in the same way as keys and queries.

        Args:
            texts: The keys.

        Returns:
            One vector per text, each distinct text encoded once.
        """
        return self._encoder.encode(texts)

    def search(self, queries: Sequence[LookupQuery], *, k: int, deleted: Deleted = None) -> Hits:
        """Rank the entries for each query; see `Retriever.search`.

        Scores are cosine similarities in [-1, 1]. Each distinct query text is encoded once.
        """
        _ranking.check_k(k)
        if not queries or not len(self._keys.names):
            vectors = np.empty((len(queries), self._vectors.shape[1]), np.float32)
        else:
            texts = [lookup_key(query.entity, query.relation) for query in queries]
            vectors = self._encoder.encode(texts)
        return self.search_vectors(vectors, k=k, deleted=deleted)

    def search_vectors(
        self, vectors: npt.NDArray[np.float32], *, k: int, deleted: Deleted = None
    ) -> Hits:
        """Rank the entries for encoded queries.

        Args:
            vectors: Finite vectors of length 1, shape (n_queries, dimension).
            k: Maximum number of entries per query, at least 1.
            deleted: Entries that are deleted for a query.

        Returns:
            Indices and scores, one row per query.

        Raises:
            ValueError: If `k`, the dimension or `deleted` is invalid.
            RunnerError: If a vector is not finite or longer than 1; the message names the query.
        """
        n_rows = len(vectors)
        masked = _ranking.mask(self._keys, deleted, n_rows)
        if vectors.ndim != 2 or vectors.shape[1] != self._vectors.shape[1]:
            raise ValueError(
                f"queries must have the shape (n, {self._vectors.shape[1]}) of the index; got "
                f"{vectors.shape}"
            )
        hits, need = _ranking.NO_HITS, _ranking.check_k(k) + masked.n_partly
        if n_rows and len(self._keys.names):
            queries = check_vectors(vectors, range(n_rows))

            def score(rows: slice, columns: slice, out: _ranking.Floats) -> None:
                np.matmul(queries[rows], self._vectors[columns].T, out=out)

            # A sum of d products of unit vectors is off by at most d roundings, in either score.
            slack = 2.0 * _UNIT_ROUNDOFF * queries.shape[1]
            hits = _ranking.top_keys(
                score, keys=self._keys.names, need=need, masked=masked, slack=slack
            )
            hits = hits._replace(scores=self._exact(queries, hits.rows, hits.keys))
        return _ranking.rank_entries(self._keys, hits, masked, k)

    def _exact(
        self, queries: npt.NDArray[np.float32], rows: Ints, keys: Ints
    ) -> npt.NDArray[np.float32]:
        """Return the scores of pairs, computed in double precision and rounded once."""
        scores = np.empty(len(rows), np.float32)
        for start in range(0, len(rows), _PAIRS):
            some = slice(start, start + _PAIRS)
            ours = queries[rows[some]].astype(np.float64)
            theirs = self._vectors[keys[some]].astype(np.float64)
            scores[some] = np.einsum("ij,ij->i", ours, theirs)
        return scores


class _WordSearch(ABC):
    """A retriever that scores the keys of a store by their words or letters."""

    _n_rows_at_once = 256
    """Number of queries that are scored together if there are many keys."""

    def __init__(self, triplets: Sequence[Triplet]) -> None:
        self._triplets = Triplets.of(triplets)
        self._keys = self._triplets.keys

    def search(self, queries: Sequence[LookupQuery], *, k: int, deleted: Deleted = None) -> Hits:
        """Rank the entries for each query; see `Retriever.search`."""
        masked = _ranking.mask(self._keys, deleted, len(queries))
        texts = [lookup_key(query.entity, query.relation) for query in queries]
        hits = _ranking.top_keys(
            self._scorer(texts),
            keys=self._keys.names,
            need=_ranking.check_k(k) + masked.n_partly,
            masked=masked,
            n_rows_at_once=self._n_rows_at_once,
        )
        return _ranking.rank_entries(self._keys, hits, masked, k)

    @abstractmethod
    def _scorer(self, texts: list[str]) -> _ranking.Scorer:
        """Return the function that fills blocks of scores of these queries."""


class BM25Retriever(_WordSearch):
    """Search by BM25 in Lucene's form (the library bm25s, an extra).

    Words are those of `text.tokenize`, so names in scripts without spaces are also found. Only
    entries that share a word with the query are hits: a query of unknown words has no hits. Scores
    are above 0 and have no upper bound; a suitable threshold depends on the store.

    Args:
        triplets: The entries of the store.

    Raises:
        MissingDependencyError: If bm25s is not installed.
    """

    _n_rows_at_once = 1

    def __init__(self, triplets: Sequence[Triplet]) -> None:
        try:
            import bm25s
        except ImportError as error:
            raise MissingDependencyError("BM25Retriever", "bm25s", "retrieval") from error
        super().__init__(triplets)
        words = [tokenize(normalize(text)) for text in self._keys.names.to_pylist()]
        self._vocabulary = {word for text in words for word in text}
        self._bm25: Any = bm25s.BM25(**_BM25)
        if self._vocabulary:
            self._bm25.index(words, show_progress=False)

    def fingerprint(self) -> dict[str, JsonValue]:
        """Return kind, settings and content."""
        return {"retriever": "bm25"} | _BM25 | {"content": self._triplets.content}

    def _scorer(self, texts: list[str]) -> _ranking.Scorer:
        """Score queries against all keys; scores of current rows are cached for later blocks."""
        wanted = [
            [word for word in tokenize(normalize(text)) if word in self._vocabulary]
            for text in texts
        ]
        cache: dict[int, _ranking.Floats] = {}

        def scores_of(row: int) -> _ranking.Floats:
            if row not in cache:
                cache[row] = self._scores(wanted[row])
            return cache[row]

        def score(rows: slice, columns: slice, out: _ranking.Floats) -> None:
            if rows.start not in cache:
                cache.clear()
            for place, row in enumerate(range(rows.start, rows.stop)):
                out[place] = scores_of(row)[columns]

        return score

    def _scores(self, words: list[str]) -> _ranking.Floats:
        """Score all keys; keys without any of the words are not hits."""
        if not words:
            return np.full(len(self._keys.names), -np.inf, np.float32)
        scores: _ranking.Floats = self._bm25.get_scores(words).astype(np.float32)
        return np.where(scores > 0.0, scores, np.float32(-np.inf))


class FuzzyRetriever(_WordSearch):
    """Search by fuzzy string similarity (`token_sort_ratio` of rapidfuzz).

    Scores are in [0, 1], 1 for equal words in any order.

    Args:
        triplets: The entries of the store.

    Examples:
        >>> from surface_consistency.schemas.memory import LookupQuery, Triplet
        >>> store = [Triplet("France", "capital", "Paris"), Triplet("Chad", "capital", "N'Djamena")]
        >>> query = LookupQuery(entity="Frence", relation="Capital")
        >>> FuzzyRetriever(store).search([query], k=2).indices
        array([[0, 1]])
    """

    def fingerprint(self) -> dict[str, JsonValue]:
        """Return kind, scorer and content."""
        return {"retriever": "fuzzy", "scorer": _SCORER, "content": self._triplets.content}

    def _scorer(self, texts: list[str]) -> _ranking.Scorer:
        """Score blocks with `rapidfuzz.process.cdist`."""
        from rapidfuzz import fuzz, process

        keys = self._keys.names

        def score(rows: slice, columns: slice, out: _ranking.Floats) -> None:
            percent = process.cdist(
                texts[rows],
                keys[columns].to_pylist(),
                scorer=fuzz.token_sort_ratio,
                dtype=np.float32,
            )
            np.divide(percent, np.float32(100.0), out=out)

        return score


class HybridRetriever:
    """Search by reciprocal rank fusion of several retrievers over one store.

    An entry at rank r of a retriever gets 1 / (60 + r), and 0 beyond the first 100 (or `k`). The
    sum is divided by that of an entry that is first everywhere, so scores are in (0, 1] and measure
    ranks, not similarity. Each retriever applies deletion first, so the ranks are those among the
    remaining entries.

    Args:
        retrievers: The retrievers, at least one, all of the same store.

    Raises:
        ValueError: If `retrievers` is empty.
        RunnerError: If the retrievers are of different stores.

    References:
        Cormack, Clarke and Büttcher, SIGIR 2009 (c = 60).
    """

    def __init__(self, retrievers: Sequence[Retriever]) -> None:
        if not retrievers:
            raise ValueError("a hybrid needs at least one retriever; pass the ones to combine")
        contents = {str(one.fingerprint().get("content")) for one in retrievers}
        if len(contents) > 1:
            raise RunnerError(
                "the retrievers of a hybrid were built over different stores (contents "
                f"{', '.join(sorted(content[:12] for content in contents))}); build all of them "
                "over the same store"
            )
        self._retrievers = list(retrievers)

    def fingerprint(self) -> dict[str, JsonValue]:
        """Return the parts, the constants and the content."""
        parts = [one.fingerprint() for one in self._retrievers]
        return {
            "retriever": "hybrid",
            "parts": [*parts],
            "c": _FUSION,
            "depth": _DEPTH,
            "content": parts[0].get("content"),
        }

    @property
    def encode(self) -> Callable[[Sequence[str]], npt.NDArray[np.float32]] | None:
        """The encoder of the first retriever with an encoder; None if no retriever has one."""
        return next((one.encode for one in self._retrievers if hasattr(one, "encode")), None)

    def search(self, queries: Sequence[LookupQuery], *, k: int, deleted: Deleted = None) -> Hits:
        """Rank the entries for each query; see `Retriever.search`."""
        depth, first = max(_DEPTH, _ranking.check_k(k)), _FUSION + 1.0
        pairs, gains = [], []
        for one in self._retrievers:
            indices = one.search(queries, k=depth, deleted=deleted).indices
            rows, ranks = np.nonzero(indices >= 0)
            pairs.append(np.stack([rows, indices[rows, ranks]]))
            gains.append(1 / len(self._retrievers) * first / (first + ranks))
        (rows, entries), place = np.unique(
            np.concatenate(pairs, axis=1), axis=1, return_inverse=True
        )
        scores = np.bincount(place.ravel(), weights=np.concatenate(gains), minlength=len(rows))
        return _ranking.ranked(rows, entries, scores.astype(np.float32), n_rows=len(queries), k=k)
