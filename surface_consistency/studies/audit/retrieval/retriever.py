"""The interface of retrievers, which rank the entries of a store, and the choice of an entry."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, get_args, runtime_checkable

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from surface_consistency.schemas.memory import Candidate, LookupQuery

Deleted = Sequence[npt.ArrayLike | None] | None
"""For each query the indices of the entries that are deleted for it; None for no deletion."""
Fallback = Literal["abstain", "top1_anyway"]
"""Result if no candidate reaches the threshold: none, or the closest one."""

_FALLBACKS = get_args(Fallback)


class Hits(NamedTuple):
    """Result of `Retriever.search`: the closest entries of each query, closest first."""

    indices: npt.NDArray[np.int64]
    """Entries, as indices into the store's triplets, shape (n_queries, k); -1 for missing hits
    if there are fewer than k."""
    scores: npt.NDArray[np.float32]
    """Their scores, shape (n_queries, k); higher is closer, -inf for missing hits."""


@runtime_checkable
class Retriever(Protocol):
    """Ranks the entries of one store; any class with these two members is a retriever.

    Deletion is applied before the ranking: a deleted entry is not one of the k hits, and the index
    is not rebuilt. Equal scores are ranked by index, lowest first, and a query's hits do not depend
    on the other queries.
    """

    def fingerprint(self) -> dict[str, JsonValue]:
        """Return everything that affects the ranking: kind, settings, model, store content.

        Returns:
            Plain JSON values. The value of "content" is the `content_digest` of the store, by which
            a `TripletStore` rejects a retriever of another store.
        """

    def search(self, queries: Sequence[LookupQuery], *, k: int, deleted: Deleted = None) -> Hits:
        """Rank the entries for each query.

        Args:
            queries: The lookup queries; any strings, also empty ones.
            k: Maximum number of entries per query, at least 1.
            deleted: Entries that are deleted for a query, one array of indices per query.

        Returns:
            Indices and scores, one row per query.

        Raises:
            ValueError: If `k` is below 1, or `deleted` does not match the queries or the store.
            RunnerError: If a score is not a number; the message names the entries or the query.
        """


def lookup_key(entity: str, relation: str) -> str:
    """Return the text of a lookup or of an entry that retrievers compare.

    The key is entity and relation, without the value, joined by one space. Each is in lower case,
    with underscores as spaces and without surrounding white space (limited-memory LMs, published
    retriever).

    Args:
        entity: Entity of a lookup, or subject of an entry.
        relation: Relation of either.

    Returns:
        The key; a single space if both parts are blank.

    Examples:
        >>> lookup_key(" New_York", "Capital Of ")
        'new york capital of'
    """
    return " ".join(map(lookup_part, (entity, relation)))


def lookup_part(text: str) -> str:
    """Return an entity or relation in the form that `lookup_key` joins."""
    return text.lower().replace("_", " ").strip()


def check_policy(threshold: float | None, fallback: Fallback) -> None:
    """Check a threshold and a fallback.

    Args:
        threshold: Minimum score that is accepted; None for no limit.
        fallback: Result if no score reaches it.

    Raises:
        ValueError: If the threshold is NaN or the fallback is unknown.
    """
    if threshold is not None and threshold != threshold:
        raise ValueError("threshold must be a number or None; got NaN")
    if fallback not in _FALLBACKS:
        raise ValueError(f"fallback must be one of {', '.join(_FALLBACKS)}; got {fallback!r}")


def select_candidate(
    retained: Sequence[Candidate], *, threshold: float | None, fallback: Fallback = "abstain"
) -> tuple[Candidate | None, bool]:
    """Select the closest candidate whose score is at least the threshold.

    Works on the candidates of a stored trace, so another threshold does not need another search.
    Scores have single precision: a score of 0.7, stored as 0.69999999, meets a threshold of 0.7.

    Args:
        retained: The candidates after masking, closest first.
        threshold: Minimum score that is accepted; None for no limit.
        fallback: If no candidate is accepted, "abstain" selects none, and "top1_anyway" the
            closest one, as the published audit does.

    Returns:
        The candidate, None on abstention, and whether it is a fallback below the threshold.

    Raises:
        ValueError: If the threshold is NaN or the fallback is unknown.
    """
    check_policy(threshold, fallback)
    if not retained:
        return None, False
    with np.errstate(over="ignore"):
        lowest = -np.inf if threshold is None else min(threshold, float(np.float32(threshold)))
    if retained[0].score >= lowest:
        return retained[0], False
    return (retained[0], True) if fallback == "top1_anyway" else (None, False)
