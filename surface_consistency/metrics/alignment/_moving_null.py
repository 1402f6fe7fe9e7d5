"""Run counts of responses whose sub-questions change places, the same way in all of a topic."""

import itertools

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics.alignment._streaks import (
    STREAKS,
    all_patterns,
    pattern_numbers,
    streak_counts,
)

__all__ = ["null_by_moving"]

_Verdicts = npt.NDArray[np.int8]
_Integers = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]

# Up to so many slots all orders of the sub-questions are listed: 720 of them for six.
_MAX_LISTED_SLOTS = 6
# Bounds a block of topics, or a chunk of moved responses, to some tens of MB.
_CHUNK_CELLS = 2**21


def null_by_moving(
    verdicts: _Verdicts,
    topics: _Integers,
    orders: _Integers,
    n_null: int,
    rng: np.random.Generator,
) -> _Floats:
    """Return run counts of draws without momentum, shape `(n_null, 2, n_slots, 2)`.

    Verdicts and orders have shape `(n_responses, n_slots)`, the verdicts in slot order; topics
    number the topic of each response. Which sub-question is which is drawn anew for each topic.
    """
    n_slots = verdicts.shape[1]
    by_question = np.take_along_axis(verdicts, np.argsort(orders, axis=1), axis=1)
    if n_slots <= _MAX_LISTED_SLOTS:
        counts = _draw_listed(by_question, topics, orders, n_null, rng)
    else:
        counts = _draw_moved(by_question, topics, orders, n_null, rng)
    return counts.reshape(n_null, len(STREAKS), n_slots, 2)


def _draw_listed(
    by_question: _Verdicts,
    topics: _Integers,
    orders: _Integers,
    n_null: int,
    rng: np.random.Generator,
) -> _Floats:
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
    by_question: _Verdicts,
    topics: _Integers,
    orders: _Integers,
    labels: _Integers,
    weights: _Floats,
) -> _Floats:
    """Count the runs of each topic under each order, shape `(n_topics, n_labels, n_counts)`."""
    first, n_patterns = int(topics.min()), len(weights)
    n_topics = int(topics.max()) - first + 1
    listed = np.empty((n_topics, len(labels), weights.shape[1]))
    for number, label in enumerate(labels):
        moved = pattern_numbers(np.take_along_axis(by_question, label[orders], axis=1))
        found = np.bincount(n_patterns * (topics - first) + moved, minlength=n_topics * n_patterns)
        listed[:, number] = found.reshape(n_topics, n_patterns) @ weights
    return listed


def _draw_moved(
    by_question: _Verdicts,
    topics: _Integers,
    orders: _Integers,
    n_null: int,
    rng: np.random.Generator,
) -> _Floats:
    """Draw an order for each topic and count the runs anew, in chunks of bounded size."""
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
