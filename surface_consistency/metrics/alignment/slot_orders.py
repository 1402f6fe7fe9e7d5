"""Orders of the sub-questions in long queries: from slots to sub-questions, back, and balance.

A slot is a place in the long query; a sub-question is a fact of the topic. `orders` says which
sub-question stands in which slot, and so turns verdicts laid out one way into the other.
"""

import numpy as np
import numpy.typing as npt

__all__ = ["by_question", "by_slot", "checked_orders", "is_balanced", "slot_counts"]


def by_slot(verdicts: npt.ArrayLike, orders: npt.ArrayLike) -> npt.NDArray[np.generic]:
    """Lay verdicts out by slot, given them by sub-question.

    Args:
        verdicts: Column k is sub-question k, shape `(n_topics, n_slots)` or
            `(n_topics, n_permutations, n_slots)`.
        orders: The sub-question (0 to `n_slots` - 1) in each slot, of the shape of `verdicts`.

    Returns:
        An array of the same shape and type whose column j is slot j.

    Raises:
        ValueError: When the shapes differ, or a row of `orders` lacks or repeats a sub-question.
        TypeError: When `orders` holds anything but integers.

    Notes:
        The inverse of `by_question`.

    References:
        SLAQ, arXiv 2510.11218, section 4.1 (orders), figure 3 (slots).

    Examples:
        >>> by_slot([[True, False, False]], [[2, 0, 1]]).tolist()
        [[False, True, False]]
    """
    array, places = _same_shape(verdicts, orders)
    return np.asarray(np.take_along_axis(array, places, axis=-1))


def by_question(verdicts: npt.ArrayLike, orders: npt.ArrayLike) -> npt.NDArray[np.generic]:
    """Lay verdicts out by sub-question, given them by slot.

    Args:
        verdicts: Column j is slot j, shape `(n_topics, n_slots)` or
            `(n_topics, n_permutations, n_slots)`.
        orders: The sub-question (0 to `n_slots` - 1) in each slot, of the shape of `verdicts`.

    Returns:
        An array of the same shape and type whose column k is sub-question k, as `alignment_scores`
        takes it.

    Raises:
        ValueError: When the shapes differ, or a row of `orders` lacks or repeats a sub-question.
        TypeError: When `orders` holds anything but integers.

    Notes:
        The inverse of `by_slot`.

    References:
        SLAQ, arXiv 2510.11218, section 4.1 (orders), figure 3 (slots).

    Examples:
        >>> by_question([[False, True, False]], [[2, 0, 1]]).tolist()
        [[True, False, False]]
    """
    array, places = _same_shape(verdicts, orders)
    return np.asarray(np.take_along_axis(array, np.argsort(places, axis=-1), axis=-1))


def is_balanced(orders: npt.ArrayLike) -> bool:
    """Tell whether each sub-question stands in each slot equally often within every topic.

    Args:
        orders: The sub-question in each slot, shape `(n_topics, n_permutations, n_slots)`.

    Returns:
        True for counter-balanced orders, such as a Latin square for each topic.

    Raises:
        ValueError: When the shape is another, or a row lacks or repeats a sub-question.
        TypeError: When `orders` holds anything but integers.

    Notes:
        Needs as many permutations as slots, or a multiple; one order a topic is never balanced.

    References:
        Bradley, Journal of the American Statistical Association 53, 1958 (Latin squares against
        order effects).

    Examples:
        >>> is_balanced([[[0, 1, 2], [1, 2, 0], [2, 0, 1]]]), is_balanced([[[0, 1, 2]] * 3])
        (True, False)
    """
    counts = slot_counts(checked_orders(orders))
    return bool((counts == counts[:, :1, :1]).all())


def checked_orders(orders: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return orders as integers, `(n_topics, n_permutations, n_slots)`, each row a permutation."""
    array = np.asarray(orders)
    if array.dtype.kind not in "iu":
        raise TypeError(
            "orders must hold integers, the number of the sub-question in each slot; "
            f"got dtype {array.dtype}"
        )
    if array.ndim not in (2, 3) or 0 in array.shape:
        raise ValueError(
            "orders must have shape (n_topics, n_slots) or (n_topics, n_permutations, n_slots); "
            f"got {array.shape}"
        )
    if array.ndim == 2:
        array = array[:, None, :]
    n_slots = array.shape[-1]
    wrong = (np.sort(array, axis=-1) != np.arange(n_slots)).any(axis=-1)
    if wrong.any():
        topic, permutation = (int(index) for index in np.argwhere(wrong)[0])
        raise ValueError(
            f"orders of topic {topic}, permutation {permutation} is "
            f"{array[topic, permutation].tolist()}: each row must hold the sub-questions "
            f"0 to {n_slots - 1} once"
        )
    return array.astype(np.int64)


def slot_counts(orders: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Count how often each sub-question of each topic stands in each slot.

    The result has shape `(n_topics, n_questions, n_slots)`; `orders` comes from `checked_orders`.
    """
    n_topics, _, n_slots = orders.shape
    topics = n_slots * np.arange(n_topics)[:, None, None]
    cells = n_slots * (topics + orders) + np.arange(n_slots)
    counts = np.bincount(cells.ravel(), minlength=n_topics * n_slots * n_slots)
    return counts.astype(np.int64).reshape(n_topics, n_slots, n_slots)


def _same_shape(
    verdicts: npt.ArrayLike, orders: npt.ArrayLike
) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.int64]]:
    """Return verdicts, and orders of the same shape."""
    array, places = np.asarray(verdicts), checked_orders(orders)
    if array.shape != np.shape(orders):
        raise ValueError(
            "verdicts and orders must have the same shape, one sub-question a slot; "
            f"got {array.shape} and {np.shape(orders)}"
        )
    return array, places.reshape(array.shape)
