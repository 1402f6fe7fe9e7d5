"""Nearest entries by the words or letters of their keys."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from pydantic import JsonValue

from surface_consistency.errors import MissingDependencyError
from surface_consistency.schemas.memory import LookupQuery, Triplet
from surface_consistency.studies.audit.retrieval._ranking import (
    Floats,
    KeyTable,
    Scorer,
    check_k,
    rank_entries,
    top_keys,
)
from surface_consistency.studies.audit.retrieval.retriever import Deleted, Hits, lookup_key
from surface_consistency.text import normalize, tokenize

__all__ = ["BM25Retriever", "FuzzyRetriever", "FuzzyScorer"]

FuzzyScorer = Literal["ratio", "token_sort_ratio", "token_set_ratio", "WRatio"]
"""A scorer of `rapidfuzz.fuzz`."""
_SCORERS = get_args(FuzzyScorer)


class _WordSearch(ABC):
    """A retriever that scores the keys of a store by their words or letters."""

    _n_rows_at_once = 256
    """Queries that are scored together where the keys are many."""

    def __init__(self, triplets: Sequence[Triplet]) -> None:
        self._table = KeyTable.of(triplets)

    def search(self, queries: Sequence[LookupQuery], *, k: int, deleted: Deleted = None) -> Hits:
        """Rank the entries for each query; see `Retriever.search`."""
        masked = self._table.masked(deleted, len(queries))
        texts = [lookup_key(query.entity, query.relation) for query in queries]
        hits = top_keys(
            self._scorer(texts),
            keys=self._table.texts,
            need=check_k(k) + masked.n_partly,
            masked=masked,
            n_rows_at_once=self._n_rows_at_once,
        )
        return rank_entries(self._table, hits, masked, n_rows=len(queries), k=k)

    @abstractmethod
    def _scorer(self, texts: list[str]) -> Scorer:
        """Return what fills blocks of scores of these queries."""


class BM25Retriever(_WordSearch):
    """Search by BM25 in Lucene's form (the library bm25s, an extra).

    Words are those of `text.tokenize`, so names in scripts without spaces are found too. Only
    entries that share a word with the query are hits: a query of unknown words has none. Scores are
    above 0 and have no upper bound; a threshold for them is a matter of the store.

    Args:
        triplets: The entries of the store.
        k1: How much a repeated word counts.
        b: How much a long key is penalised, in [0, 1].

    Raises:
        MissingDependencyError: If bm25s is not installed.
        ValueError: If `k1` is negative or infinite, or `b` outside [0, 1].
    """

    _n_rows_at_once = 1

    def __init__(self, triplets: Sequence[Triplet], *, k1: float = 1.5, b: float = 0.75) -> None:
        if not 0.0 <= k1 < np.inf or not 0.0 <= b <= 1.0:
            raise ValueError(f"k1 must be finite and at least 0, b in [0, 1]; got k1={k1}, b={b}")
        try:
            import bm25s
        except ImportError as error:
            raise MissingDependencyError("BM25Retriever", "bm25s", "retrieval") from error
        super().__init__(triplets)
        self._settings: dict[str, JsonValue] = {"k1": k1, "b": b, "method": "lucene"}
        words = [_words(text) for text in self._table.texts]
        self._vocabulary = {word for text in words for word in text}
        self._bm25: Any = bm25s.BM25(k1=k1, b=b, method="lucene")
        if self._vocabulary:
            self._bm25.index(words, show_progress=False)

    def fingerprint(self) -> dict[str, JsonValue]:
        """Tell kind, settings and content."""
        return {"retriever": "bm25"} | self._settings | {"content": self._table.content}

    def _scorer(self, texts: list[str]) -> Scorer:
        """Score queries against all keys; those of some rows are kept for their further blocks."""
        wanted = [[word for word in _words(text) if word in self._vocabulary] for text in texts]
        cache: dict[int, Floats] = {}

        def scores_of(row: int) -> Floats:
            if row not in cache:
                cache[row] = self._scores(wanted[row])
            return cache[row]

        def score(rows: slice, columns: slice, out: Floats) -> None:
            if rows.start not in cache:
                cache.clear()
            for place, row in enumerate(range(rows.start, rows.stop)):
                out[place] = scores_of(row)[columns]

        return score

    def _scores(self, words: list[str]) -> Floats:
        """Score all keys; those without any of the words are no hits."""
        if not words:
            return np.full(self._table.n_keys, -np.inf, np.float32)
        scores: Floats = self._bm25.get_scores(words).astype(np.float32)
        return np.where(scores > 0.0, scores, np.float32(-np.inf))


def _words(text: str) -> list[str]:
    """Return the words of a key."""
    return tokenize(normalize(text))


class FuzzyRetriever(_WordSearch):
    """Search by fuzzy string similarity (rapidfuzz); scores in [0, 1], 1 for equal keys.

    Args:
        triplets: The entries of the store.
        scorer: Function of `rapidfuzz.fuzz` that compares a query's key with an entry's.
        workers: Threads; -1 for all cores.

    Raises:
        ValueError: If there is no such scorer.

    Examples:
        >>> from surface_consistency.schemas.memory import LookupQuery, Triplet
        >>> store = [Triplet("France", "capital", "Paris"), Triplet("Chad", "capital", "N'Djamena")]
        >>> query = LookupQuery(entity="Frence", relation="Capital")
        >>> FuzzyRetriever(store).search([query], k=2).indices
        array([[0, 1]])
    """

    def __init__(
        self,
        triplets: Sequence[Triplet],
        *,
        scorer: FuzzyScorer = "token_sort_ratio",
        workers: int = 1,
    ) -> None:
        if scorer not in _SCORERS:
            raise ValueError(f"scorer must be one of {', '.join(_SCORERS)}; got {scorer!r}")
        super().__init__(triplets)
        self._name = scorer
        self._workers = workers

    def fingerprint(self) -> dict[str, JsonValue]:
        """Tell kind, scorer and content."""
        return {"retriever": "fuzzy", "scorer": self._name, "content": self._table.content}

    def _scorer(self, texts: list[str]) -> Scorer:
        """Score blocks with `rapidfuzz.process.cdist`."""
        from rapidfuzz import fuzz, process

        keys = self._table.texts
        scorer: Any = getattr(fuzz, self._name)

        def score(rows: slice, columns: slice, out: Floats) -> None:
            percent = process.cdist(
                texts[rows], keys[columns], scorer=scorer, dtype=np.float32, workers=self._workers
            )
            np.divide(percent, np.float32(100.0), out=out)

        return score
