"""Orders of the five sub-questions: a Latin square for each topic."""

import hashlib
from itertools import permutations
from random import Random
from typing import Final

__all__ = ["latin_square_orders"]

_N: Final = 5
_ZIGZAG: Final = (0, 1, 4, 2, 3)
_ARRANGEMENTS: Final = tuple(
    (0, *rest) for rest in permutations(range(1, _N)) if rest[0] < rest[-1]
)


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
