"""Verdicts of short and long answers laid out by topic: from frames, by slot, by sub-question.

A slot is a place in the long query; a sub-question is a fact of the topic. `orders` says which
sub-question stands in which slot, and so turns verdicts laid out one way into the other.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics import _inputs
from surface_consistency.metrics._groups import check_frame
from surface_consistency.reading import shown


def reorder_to_slots(verdicts: npt.ArrayLike, orders: npt.ArrayLike) -> npt.NDArray[np.generic]:
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
        Missing verdicts stay missing, since values are moved and not read.

    References:
        SLAQ, arXiv 2510.11218, section 4.1 (orders), figure 3 (slots).

    Examples:
        >>> reorder_to_slots([[True, False, False]], [[2, 0, 1]]).tolist()
        [[False, True, False]]
    """
    array = np.asarray(verdicts)
    places = checked_orders(orders, slots=array.shape, name="verdicts").reshape(array.shape)
    return np.asarray(np.take_along_axis(array, places, axis=-1))


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


def checked_orders(
    orders: npt.ArrayLike, *, slots: tuple[int, ...] | None = None, name: str = "slots"
) -> npt.NDArray[np.int64]:
    """Return orders as integers, `(n_topics, n_permutations, n_slots)`, each row a permutation.

    With `slots` they must have that shape, which is the one of the verdicts called `name`.
    """
    array = np.asarray(orders)
    if slots is not None and array.shape != slots:
        raise ValueError(
            f"{name} and orders must have the same shape, one sub-question a slot; "
            f"got {slots} and {array.shape}"
        )
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


def topic_arrays(
    frame: pd.DataFrame,
    *,
    topic: str = "topic_id",
    question: str = "question_id",
    permutation: str = "permutation",
    slot: str = "slot",
    short: str = "first_correct",
    long: str = "second_correct",
) -> dict[str, npt.NDArray[Any]]:
    """Lay the rows of a frame out by topic, permutation and sub-question.

    Args:
        frame: One row for each sub-question in each permutation of its long query.
        topic: Column of the topic.
        question: Column that tells the sub-questions of a topic apart.
        permutation: Column that tells the long queries of a topic apart.
        slot: Column of the place in the long query, from 1.
        short: Column of verdicts on the short answer; the same in all rows of a sub-question.
        long: Column of verdicts on the sub-question in the long answer.

    Returns:
        topics, their labels in order of first appearance, which is the first axis of the others;
        short, the verdicts on the short answers, `(n_topics, n_slots)`, and long, those on the long
        answers, `(n_topics, n_permutations, n_slots)`, both by sub-question and NaN if missing;
        orders, the sub-question (from 0) in each slot, of the shape of long; and slots, the
        verdicts of long in slot order, as `momentum` takes them.

    Raises:
        ColumnNotFoundError: When a named column is not in the frame.
        TypeError: When `frame` is no DataFrame, or a slot is no number.
        ValueError: When the frame is empty, a label is missing, a row is there twice, topics have
            unequal numbers of sub-questions or permutations, slots are not 1 to `n_slots` in each
            long query, the short verdicts of a sub-question differ, or a value is no verdict. The
            message names the topic.

    Notes:
        The order of the rows decides the order of topics, sub-questions and permutations, on which
        no metric depends.

    References:
        SLAQ, arXiv 2510.11218, section 4.1: 600 topics, 5 sub-questions, 5 permutations.

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame(
        ...     {"topic_id": "The Punic Wars", "question_id": [1, 2, 1, 2], "slot": [1, 2, 2, 1],
        ...      "permutation": [0, 0, 1, 1], "first_correct": [1, 0, 1, 0],
        ...      "second_correct": [1, 0, 0, 0]})
        >>> arrays = topic_arrays(frame)
        >>> arrays["long"].tolist(), arrays["orders"].tolist()
        ([[[1.0, 0.0], [0.0, 0.0]]], [[[0, 1], [1, 0]]])
    """
    check_frame(
        frame,
        [topic, question, permutation, slot, short, long],
        options="topic, question, permutation, slot, short or long",
        row="sub-question",
    )
    labels, topics = _numbered(frame, [topic])
    questions, n_slots = _numbers_within(frame, topic, question, topics)
    permutations, n_permutations = _numbers_within(frame, topic, permutation, topics)
    shape = (len(labels), n_permutations, n_slots)
    cells = np.ravel_multi_index((topics, permutations, questions), shape)
    columns = [question, permutation]
    counts = np.bincount(cells, minlength=int(np.prod(shape))).reshape(len(labels), -1)
    wrong = (counts != 1).any(axis=1)
    if wrong.any():
        index = int(np.argmax(wrong))
        raise ValueError(
            f"topic {shown(labels[index])} must have one row for each pair of {shown(columns[0])} "
            f"and {shown(columns[1])}: {int((counts[index] == 0).sum())} are not there and "
            f"{int((counts[index] > 1).sum())} stand there more than once"
        )
    laid_out = {name: _verdicts(frame[name].array, name, cells, shape) for name in (short, long)}
    places = np.empty(shape, dtype=np.int64)
    numbers = _inputs.numeric_vector(frame[slot].array, slot)
    if not bool((numbers == np.floor(numbers)).all()):
        raise ValueError(
            f"column {shown(slot)} must hold the number of the slot, from 1, in every row"
        )
    places.ravel()[cells] = numbers.astype(np.int64) - 1
    _check_slots(places, labels, slot)
    _check_short(laid_out[short], labels, short)
    orders = np.argsort(places, axis=-1)
    return {
        "topics": np.array(labels, dtype=object),
        "short": laid_out[short][:, 0, :],
        "long": laid_out[long],
        "orders": orders,
        "slots": reorder_to_slots(laid_out[long], orders),
    }


def _numbered(frame: pd.DataFrame, columns: list[str]) -> tuple[list[object], _inputs.Integers]:
    """Number the distinct labels of the columns in order of first appearance."""
    for column in columns:
        absent = frame[column].isna().to_numpy()
        if absent.any():
            raise ValueError(f"column {shown(column)} has no value in row {int(np.argmax(absent))}")
    if len(columns) == 1:
        codes, labels = pd.factorize(frame[columns[0]])
    else:
        codes, labels = pd.factorize(pd.MultiIndex.from_frame(frame[columns]))
    return list(labels), codes.astype(np.int64)


def _numbers_within(
    frame: pd.DataFrame, topic: str, column: str, topics: _inputs.Integers
) -> tuple[_inputs.Integers, int]:
    """Number a column's labels within each topic, and return how many each topic has."""
    _, codes = _numbered(frame, [topic, column])
    first_rows = np.unique(codes, return_index=True)[1]
    of_pair = topics[first_rows]
    counts = np.bincount(of_pair)
    if counts.min() != counts.max():
        few, many = int(counts.argmin()), int(counts.argmax())
        names = [frame[topic].iloc[int(first_rows[of_pair == code][0])] for code in (few, many)]
        raise ValueError(
            f"topics must have equally many values of {shown(column)}: {shown(names[0])} has "
            f"{counts[few]} and {shown(names[1])} has {counts[many]}"
        )
    by_topic = np.argsort(of_pair, kind="stable")
    numbers = np.empty(len(of_pair), dtype=np.int64)
    numbers[by_topic] = np.tile(np.arange(counts[0]), len(counts))
    return numbers[codes], int(counts[0])


def _verdicts(
    values: npt.ArrayLike, name: str, cells: _inputs.Integers, shape: tuple[int, ...]
) -> _inputs.Floats:
    """Return a column of verdicts as an array by topic, permutation and sub-question."""
    codes = _inputs.verdict_codes(values, name)
    verdicts = np.empty(shape)
    verdicts.ravel()[cells] = np.where(codes == _inputs.MISSING, np.nan, codes)
    return verdicts


def _check_slots(places: _inputs.Integers, labels: list[object], name: str) -> None:
    """Refuse long queries whose slots are not 1 to `n_slots`, each once."""
    n_slots = places.shape[-1]
    wrong = (np.sort(places, axis=-1) != np.arange(n_slots)).any(axis=-1)
    if wrong.any():
        topic, permutation = (int(index) for index in np.argwhere(wrong)[0])
        raise ValueError(
            f"column {shown(name)} must hold 1 to {n_slots} once in each long query: in topic "
            f"{shown(labels[topic])} one holds {sorted((places[topic, permutation] + 1).tolist())}"
        )


def _check_short(verdicts: _inputs.Floats, labels: list[object], name: str) -> None:
    """Refuse short verdicts that differ between the permutations of the long query."""
    same = (verdicts == verdicts[:, :1]) | (np.isnan(verdicts) & np.isnan(verdicts[:, :1]))
    if not same.all():
        topic = int(np.argwhere(~same)[0, 0])
        raise ValueError(
            f"column {shown(name)} differs between rows of one sub-question of topic "
            f"{shown(labels[topic])}: the short answer is one, whatever the order of the long query"
        )
