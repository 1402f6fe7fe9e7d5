"""What a retriever is, anything that ranks the entries of a store, and which entry answers."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, get_args, runtime_checkable

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from surface_consistency.schemas.memory import Candidate, LookupQuery

Deleted = Sequence[npt.ArrayLike | None] | None
"""For each query the indices of the entries that do not exist for it; None where all exist."""
Fallback = Literal["abstain", "top1_anyway"]
"""What happens where no candidate reaches the threshold: nothing, or the closest one is taken."""

_FALLBACKS = get_args(Fallback)


class Hits(NamedTuple):
    """Result of `Retriever.search`: the closest entries of each query, closest first."""

    indices: npt.NDArray[np.int64]
    """Entries, as indices into the store's triplets, shape (n_queries, k); -1 where there are
    fewer than k."""
    scores: npt.NDArray[np.float32]
    """Their scores, shape (n_queries, k); higher is closer, -inf where there is no entry."""


@runtime_checkable
class Retriever(Protocol):
    """Ranks the entries of one store; any class with these two members is a retriever.

    Deletion is applied before the ranks are given: a deleted entry takes no slot of the k, and
    nothing is rebuilt. Equal scores are ranked by index, lowest first, and a query's hits do not
    depend on the queries beside it.
    """

    def fingerprint(self) -> dict[str, JsonValue]:
        """Tell what decides the ranking: kind, settings, model, and the store's content.

        Returns:
            Plain JSON values. Under "content" stands the `content_digest` of the store, by which
            a `TripletStore` refuses a retriever of another store.
        """

    def search(self, queries: Sequence[LookupQuery], *, k: int, deleted: Deleted = None) -> Hits:
        """Rank the entries for each query.

        Args:
            queries: What is looked up; any strings, empty ones too.
            k: How many entries each query gets at most, at least 1.
            deleted: Entries that do not exist for a query, one array of indices a query.

        Returns:
            Indices and scores, one row a query.

        Raises:
            ValueError: If `k` is below 1, or `deleted` does not fit the queries or the store.
            RunnerError: If a score is not a number; names the entries or the query.
        """


def lookup_key(entity: str, relation: str) -> str:
    """Return the text of a lookup, or of an entry, that retrievers compare.

    Entity and relation, each in lower case, with underscores as spaces and without surrounding
    white space, joined by one space; the value is no part of it (limited-memory LMs, published
    retriever).

    Args:
        entity: Entity of a lookup, or subject of an entry.
        relation: Relation of either.

    Returns:
        The key; a single space when both parts are blank.

    Examples:
        >>> lookup_key(" New_York", "Capital Of ")
        'new york capital of'
    """
    return " ".join(map(lookup_part, (entity, relation)))


def lookup_part(text: str) -> str:
    """Return an entity or relation as `lookup_key` joins it."""
    return text.lower().replace("_", " ").strip()


def check_policy(threshold: float | None, fallback: Fallback) -> None:
    """Refuse a policy that is none.

    Args:
        threshold: Lowest score that is accepted; None for no limit.
        fallback: What happens below it.

    Raises:
        ValueError: If the threshold is NaN or there is no such fallback.
    """
    if threshold is not None and threshold != threshold:
        raise ValueError("threshold must be a number or None; got NaN")
    if fallback not in _FALLBACKS:
        raise ValueError(f"fallback must be one of {', '.join(_FALLBACKS)}; got {fallback!r}")


def select_candidate(
    retained: Sequence[Candidate], *, threshold: float | None, fallback: Fallback = "abstain"
) -> tuple[Candidate | None, bool]:
    """Choose the closest candidate whose score is at least the threshold.

    Works on the candidates of a stored trace, so another threshold needs no other search. Scores
    are of single precision, so a score of 0.7, which is 0.69999999 there, meets a threshold of 0.7.

    Args:
        retained: The candidates after masking, closest first.
        threshold: Lowest score that is accepted; None for no limit.
        fallback: "abstain" answers nothing where none is accepted; "top1_anyway" then takes the
            closest, as the published audit does.

    Returns:
        The candidate, None on abstention, and whether it is a fallback below the threshold.

    Raises:
        ValueError: If the threshold is NaN or there is no such fallback.
    """
    check_policy(threshold, fallback)
    if not retained:
        return None, False
    with np.errstate(over="ignore"):
        lowest = -np.inf if threshold is None else min(threshold, float(np.float32(threshold)))
    if retained[0].score >= lowest:
        return retained[0], False
    return (retained[0], True) if fallback == "top1_anyway" else (None, False)
