"""The long query of a topic, and the balanced orders in which its five parts are asked."""

import hashlib
import re
from dataclasses import dataclass
from itertools import permutations
from random import Random
from typing import Final, Literal

from surface_consistency.studies.slaq.query_records import LongQuery, parse_long_query
from surface_consistency.studies.slaq.records import SlaqTopic

__all__ = ["QueryWording", "TopicQuery", "free_query", "latin_square_orders", "topic_query"]

QueryWording = Literal["auto", "query", "questions"]
"""Where the clauses come from: the topic's own long query, or its short questions. "auto" takes the
query unless a clause of it may point at another ("he", "the latter")."""

_N: Final = 5
_ZIGZAG: Final = (0, 1, 4, 2, 3)
_ARRANGEMENTS: Final = tuple(
    (0, *rest) for rest in permutations(range(1, _N)) if rest[0] < rest[-1]
)
_LABELS: Final = ("(1)", "(2)", "(3)", "(4)", "(5)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicQuery:
    """A long query in parts, and where its wording comes from."""

    query: LongQuery
    """The parts; clause k asks for question k of the topic."""

    is_rebuilt: bool
    """Whether the clauses are the short questions rather than the topic's own long query."""


def topic_query(topic: SlaqTopic, *, wording: QueryWording = "auto") -> TopicQuery:
    """Take a topic's long query apart, or build one from its short questions.

    It is built where the topic's own lists anything but five sub-questions. The clauses of the own
    query are taken to be in the order of the short questions, as the layout of SLAQ has them.

    Args:
        topic: The topic.
        wording: Where the clauses come from; "query" keeps the own wording wherever it parses.

    Returns:
        The query in parts.

    Raises:
        ValueError: If `wording` is unknown.
    """
    if wording not in ("auto", "query", "questions"):
        raise ValueError(f"wording must be one of auto, query, questions; got {wording!r}")
    query = None if wording == "questions" else parse_long_query(topic.long_question)
    if query is None or (wording == "auto" and query.dependent):
        texts = (" ".join(question.question.split()) for question in topic.questions)
        rebuilt = LongQuery(
            lead=f"Discuss the topic {topic.topic.strip()} by answering these questions:",
            clauses=tuple(text if text.endswith(("?", ".", "!")) else f"{text}?" for text in texts),
            labels=_LABELS,
            separator="",
        )
        return TopicQuery(query=rebuilt, is_rebuilt=True)
    if not query.lead:
        query = query.model_copy(update={"lead": f"Discuss {topic.topic} by covering"})
    return TopicQuery(query=query, is_rebuilt=False)


def free_query(topic: SlaqTopic) -> str:
    """Ask for a topic without listing what shall be told.

    Args:
        topic: The topic.

    Returns:
        The query, such as "Tell me about the Punic Wars."
    """
    name = re.sub(r"^The ", "the ", topic.topic.strip())
    mark = "" if name.endswith((".", "?", "!")) else "."
    return f"Tell me about {name}{mark}"


def latin_square_orders(
    n_permutations: int, *, seed: int = 0, topic_id: str = ""
) -> tuple[tuple[int, ...], ...]:
    """Draw orders in which each sub-question stands in each slot equally often.

    Orders come in Latin squares of five, and squares in Williams pairs. With a multiple of five,
    each sub-question stands in each slot exactly `n_permutations / 5` times; with a multiple of
    ten, each also follows each other one equally often (which no single square of five can do).
    With any other number the counts of a sub-question in two slots differ by one at most. Up to
    120 orders are all different; after that they repeat.

    Args:
        n_permutations: How many orders.
        seed: Seed of the draw.
        topic_id: The topic: each draws its own squares, so that no order is favoured over topics.

    Returns:
        For each order the sub-question (1 to 5) in each slot.

    Raises:
        ValueError: If `n_permutations` is below 1.

    References:
        Williams, Australian Journal of Scientific Research A 2, 1949 (balance for what stands
        before); SLAQ, arXiv 2510.11218, section 4.1 (five permutations).

    Examples:
        >>> orders = latin_square_orders(5, seed=1, topic_id="the-punic-wars")
        >>> [sorted(slot) for slot in zip(*orders)] == [[1, 2, 3, 4, 5]] * 5
        True
    """
    if n_permutations < 1:
        raise ValueError(f"n_permutations must be at least 1, got {n_permutations}")
    name = f"{seed}\n{topic_id}"
    random = Random(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))
    arrangements = random.sample(_ARRANGEMENTS, len(_ARRANGEMENTS))
    orders: list[tuple[int, ...]] = []
    pair = 0
    while len(orders) < n_permutations:
        for square in _williams_pair(arrangements[pair % len(arrangements)], random):
            orders.extend(square)
        pair += 1
    return tuple(orders[:n_permutations])


def _williams_pair(arrangement: tuple[int, ...], random: Random) -> list[list[tuple[int, ...]]]:
    """Build a square and its mirror image, squares and rows in random order."""
    squares = []
    for base in random.sample([_ZIGZAG, _ZIGZAG[::-1]], 2):
        shifts = random.sample(range(_N), _N)
        squares.append(
            [tuple(arrangement[(place + shift) % _N] + 1 for place in base) for shift in shifts]
        )
    return squares
