"""Which prompts share a batch: pure functions over token counts and groups."""

import random
from array import array
from collections.abc import Hashable, Iterator, Sequence

__all__ = ["common_prefix_length", "cut_batches"]


def common_prefix_length(rows: "Sequence[array[int]]") -> int:
    """Count the leading tokens that all rows share, leaving each row at least one token more."""
    shortest, longest = min(rows), max(rows)
    limit = min(map(len, rows)) - 1
    for index in range(limit):
        if shortest[index] != longest[index]:
            return index
    return max(limit, 0)


def cut_batches(
    lengths: Sequence[int],
    groups: Sequence[Hashable],
    *,
    batch_size: int,
    shuffle_seed: int | None = None,
) -> list[list[int]]:
    """Cut prompts into batches that keep groups together, longest prompts first.

    Groups of at least half a batch get batches of their own, of nearly equal size; smaller groups
    are packed whole. With a seed, order and cuts are random, but each group still stays together.

    Args:
        lengths: Tokens of each prompt.
        groups: Group of each prompt.
        batch_size: Prompts a batch at most.
        shuffle_seed: Seed of another composition; None for the ordered one.

    Returns:
        Positions of the prompts, batch by batch.
    """
    members: dict[Hashable, list[int]] = {}
    for position in sorted(range(len(lengths)), key=lambda item: -lengths[item]):
        members.setdefault(groups[position], []).append(position)
    ordered = list(members.values())
    rng = None if shuffle_seed is None else random.Random(shuffle_seed)
    if rng is not None:
        rng.shuffle(ordered)
        for group in ordered:
            rng.shuffle(group)
    large = [group for group in ordered if 2 * len(group) >= batch_size]
    small = [group for group in ordered if 2 * len(group) < batch_size]
    batches = [batch for group in large for batch in _cut(group, batch_size, rng)]
    return batches + list(_pack(small, batch_size))


def _cut(group: list[int], batch_size: int, rng: random.Random | None) -> Iterator[list[int]]:
    """Cut one large group: into nearly equal parts, or at random offsets."""
    if rng is not None:
        first = rng.randint(1, min(batch_size, len(group)))
        yield group[:first]
        for start in range(first, len(group), batch_size):
            yield group[start : start + batch_size]
        return
    n_parts = -(-len(group) // batch_size)
    size, larger = divmod(len(group), n_parts)
    start = 0
    for part in range(n_parts):
        end = start + size + (part < larger)
        yield group[start:end]
        start = end


def _pack(groups: Sequence[list[int]], batch_size: int) -> Iterator[list[int]]:
    """Fill batches with whole small groups."""
    batch: list[int] = []
    for group in groups:
        if batch and len(batch) + len(group) > batch_size:
            yield batch
            batch = []
        batch = batch + group
    if batch:
        yield batch
