"""Nearest entries by the letters of their keys."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from pydantic import JsonValue

from surface_consistency.retrieval._ranking.top_keys import Floats, Scorer
from surface_consistency.retrieval.retrievers._dense_search import DenseSearch
from surface_consistency.schemas.memory import Triplet

__all__ = ["FuzzyRetriever", "FuzzyScorer"]

FuzzyScorer = Literal["ratio", "token_sort_ratio", "token_set_ratio", "WRatio"]
"""A scorer of `rapidfuzz.fuzz`."""

_SCORERS = ("ratio", "token_sort_ratio", "token_set_ratio", "WRatio")


class FuzzyRetriever(DenseSearch):
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
