"""Run counts of long answers, observed and drawn without momentum."""

import itertools

import numpy as np

from surface_consistency.metrics._inputs import Codes, Floats, Integers

STREAKS = (1, 0)
"""Labels of the two kinds of runs, in the order of the second axis of `streak_counts`."""


def streak_counts(verdicts: Codes, groups: Integers, n_groups: int) -> Integers:
    """Count slots from the second on by the length of the run before them.

    Labels have shape `(n_responses, n_slots)`, in slot order, and `groups` has the group of each
    response. The counts have shape `(n_groups, 2, n_slots, 2)`: by group, by kind of run (of 1s, of
    0s) and by its length, the number of such slots and the number of correct ones.
    """
    n_slots = verdicts.shape[1]
    size = n_groups * n_slots
    counts = np.zeros((n_groups, len(STREAKS), n_slots, 2), dtype=np.int64)
    for kind, streak in enumerate(STREAKS):
        cells = n_slots * groups
        for slot in range(1, n_slots):
            cells = np.where(verdicts[:, slot - 1] == streak, cells + 1, n_slots * groups)
            right = cells[verdicts[:, slot] == 1]
            counts[:, kind, :, 0] += np.bincount(cells, minlength=size).reshape(n_groups, n_slots)
            counts[:, kind, :, 1] += np.bincount(right, minlength=size).reshape(n_groups, n_slots)
    return counts


def all_patterns(n_slots: int) -> Codes:
    """Return every pattern of labels, shape `(2**n_slots, n_slots)`, in order of its number."""
    return ((np.arange(2**n_slots)[:, None] >> np.arange(n_slots)) & 1).astype(np.int8)


def pattern_numbers(verdicts: Codes) -> Integers:
    """Return the number of each response's pattern."""
    return np.asarray(verdicts.astype(np.int64) @ (1 << np.arange(verdicts.shape[1])))


def slopes(counts: Floats) -> Floats:
    """Return the least-squares slope of correctness on run length, over all slots.

    Counts have shape `(..., n_lengths, 2)`: all slots and correct ones. NaN if all runs have the
    same length.
    """
    lengths = np.arange(counts.shape[-2], dtype=np.float64)
    slots, right = counts[..., 0], counts[..., 1]
    n, total = slots.sum(axis=-1), slots @ lengths
    above = n * (right @ lengths) - total * right.sum(axis=-1)
    below = n * (slots @ lengths**2) - total**2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(below == 0, np.nan, above / below))


MAX_PATTERN_SLOTS = 12
"""Maximum number of slots for which all 2**n_slots patterns are listed."""


_MAX_STEPS = 2000


def null_by_pattern(
    verdicts: Codes, n_null: int, rng: np.random.Generator, *, keep_slots: bool
) -> Floats:
    """Return run counts of draws without momentum, shape `(n_null, 2, n_slots, 2)`.

    All patterns with the given number of correct slots have equal probability. To preserve the
    accuracy of each slot, a pattern x has weight prod_j w_j^x_j (Rasch), with fitted w_j.
    """
    n_slots = verdicts.shape[1]
    patterns = all_patterns(n_slots)
    sums = patterns.sum(axis=1, dtype=np.int64)
    of_sum = np.bincount(verdicts.sum(axis=1, dtype=np.int64), minlength=n_slots + 1)
    if keep_slots:
        right = verdicts.sum(axis=0, dtype=np.int64)
        chances = _fitted_chances(patterns.astype(np.float64), sums, of_sum, right)
    else:
        chances = 1.0 / np.bincount(sums)[sums]
    drawn = np.zeros((n_null, len(patterns)))
    for total, n_responses in enumerate(of_sum):
        members = np.flatnonzero(sums == total)
        drawn[:, members] = rng.multinomial(n_responses, chances[members], size=n_null)
    counts = streak_counts(patterns, np.arange(len(patterns)), len(patterns))
    totals = drawn @ counts.reshape(len(patterns), -1).astype(np.float64)
    return totals.reshape(n_null, len(STREAKS), n_slots, 2)


def _fitted_chances(patterns: Floats, sums: Integers, of_sum: Integers, right: Integers) -> Floats:
    """Return the probability of each pattern given its sum, by scaling slot weights."""
    weights = np.where(right > 0, 1.0, 0.0)
    for _ in range(_MAX_STEPS):
        products = np.where(patterns > 0, weights, 1.0).prod(axis=1)
        of_products = np.bincount(sums, weights=products)
        # If no pattern of a sum is possible, no response has that sum, and its values are not used.
        chances = products / np.where(of_products > 0, of_products, 1.0)[sums]
        expected = (chances * of_sum[sums]) @ patterns
        if np.abs(expected - right).max() <= 1e-9 * of_sum.sum():
            break
        weights = np.divide(weights * right, expected, out=np.zeros_like(weights), where=right > 0)
        weights /= weights.max()
    return np.asarray(chances)


# Maximum number of slots for which all orders of the sub-questions are listed: 720 for six.
_MAX_LISTED_SLOTS = 6
# Size limit of a block of topics, or a chunk of moved responses: some tens of MB.
_CHUNK_CELLS = 2**21


def null_by_moving(
    verdicts: Codes, topics: Integers, orders: Integers, n_null: int, rng: np.random.Generator
) -> Floats:
    """Return run counts of draws without momentum, shape `(n_null, 2, n_slots, 2)`.

    Labels and orders have shape `(n_responses, n_slots)`, the labels in slot order; `topics` has
    the topic of each response. The sub-questions of each topic are permuted in each draw.
    """
    n_slots = verdicts.shape[1]
    by_question = np.take_along_axis(verdicts, np.argsort(orders, axis=1), axis=1)
    if n_slots <= _MAX_LISTED_SLOTS:
        counts = _draw_listed(by_question, topics, orders, n_null, rng)
    else:
        counts = _draw_moved(by_question, topics, orders, n_null, rng)
    return counts.reshape(n_null, len(STREAKS), n_slots, 2)


def _draw_listed(
    by_question: Codes, topics: Integers, orders: Integers, n_null: int, rng: np.random.Generator
) -> Floats:
    """Count the runs of each topic under every order once, and draw among these counts."""
    n_slots = orders.shape[1]
    labels = np.array(list(itertools.permutations(range(n_slots))))
    patterns = all_patterns(n_slots)
    of_pattern = streak_counts(patterns, np.arange(len(patterns)), len(patterns))
    weights = of_pattern.reshape(len(patterns), -1).astype(np.float64)
    counts = np.zeros((n_null, weights.shape[1]))
    size = max(1, _CHUNK_CELLS // (len(labels) * weights.shape[1]))
    for start in range(0, int(topics.max()) + 1, size):
        block = (topics >= start) & (topics < start + size)
        listed = _count_listed(by_question[block], topics[block], orders[block], labels, weights)
        for of_topic in listed:
            counts += of_topic.take(rng.integers(0, len(labels), size=n_null), axis=0)
    return counts


def _count_listed(
    by_question: Codes, topics: Integers, orders: Integers, labels: Integers, weights: Floats
) -> Floats:
    """Count the runs of each topic under each order, shape `(n_topics, n_labels, n_counts)`."""
    first, n_patterns = int(topics.min()), len(weights)
    n_topics = int(topics.max()) - first + 1
    listed = np.empty((n_topics, len(labels), weights.shape[1]))
    for number, label in enumerate(labels):
        moved = pattern_numbers(np.take_along_axis(by_question, label[orders], axis=1))
        pattern_counts = np.bincount(
            n_patterns * (topics - first) + moved, minlength=n_topics * n_patterns
        )
        listed[:, number] = pattern_counts.reshape(n_topics, n_patterns) @ weights
    return listed


def _draw_moved(
    by_question: Codes, topics: Integers, orders: Integers, n_null: int, rng: np.random.Generator
) -> Floats:
    """Draw an order for each topic and count the runs, in chunks of bounded size."""
    (n_responses, n_slots), n_topics = orders.shape, int(topics.max()) + 1
    size = max(1, _CHUNK_CELLS // (n_responses * n_slots))
    counts = []
    for start in range(0, n_null, size):
        n_draws = min(size, n_null - start)
        labels = np.tile(np.arange(n_slots), (n_draws * n_topics, 1))
        labels = rng.permuted(labels, axis=1).reshape(n_draws, n_topics, n_slots)[:, topics]
        places = np.take_along_axis(labels, np.broadcast_to(orders, labels.shape), axis=2)
        moved = np.take_along_axis(np.broadcast_to(by_question, places.shape), places, axis=2)
        draws = np.repeat(np.arange(n_draws), n_responses)
        counts.append(streak_counts(moved.reshape(-1, n_slots), draws, n_draws))
    return np.concatenate(counts).astype(np.float64)
