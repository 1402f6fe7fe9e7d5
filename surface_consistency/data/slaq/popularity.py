"""Halves by page views."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

from surface_consistency.schemas.slaq import SlaqTopic

__all__ = ["PopularityWithin", "popularity_halves"]

PopularityWithin = Literal["category", "all"]
"""Whether topics are compared with those of their category or with all."""


def popularity_halves(
    topics: Sequence[SlaqTopic], *, within: PopularityWithin = "category"
) -> tuple[SlaqTopic, ...]:
    """Say of each topic whether it is in the half with more page views.

    The paper sorts the pages of each category by views and splits the list in half (appendix A.1);
    section 3.2 calls the halves popular and obscure.

    Args:
        topics: The topics of a whole data set; a part would be split at another place.
        within: Compare within categories, as the paper does, or over all topics.

    Returns:
        The topics in their order, with `popularity` set; None where page views are unknown. Of an
        odd number the middle one is obscure, and of equal page views the earlier id is popular; a
        topic that is alone in its category is in neither half.

    Raises:
        ValueError: If `within` is unknown.
    """
    if within not in ("category", "all"):
        raise ValueError(f"within must be one of category, all; got {within!r}")
    groups: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for topic in topics:
        if topic.pageviews is not None:
            key = topic.category if within == "category" else ""
            groups[key].append((-topic.pageviews, topic.id))
    popular = {
        identifier
        for members in groups.values()
        for _, identifier in sorted(members)[: len(members) // 2]
    }
    known = {
        identifier for members in groups.values() if len(members) > 1 for _, identifier in members
    }
    return tuple(
        topic.model_copy(
            update={
                "popularity": None
                if topic.id not in known
                else "popular"
                if topic.id in popular
                else "obscure"
            }
        )
        for topic in topics
    )
