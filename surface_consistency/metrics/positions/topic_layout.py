"""Arrange correctness labels of short and long answers by topic, and by slot or sub-question.

A slot is a position in the long query; a sub-question is a fact of the topic. `orders` contains the
sub-question in each slot, and so converts between the two arrangements.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics import _inputs
from surface_consistency.metrics._groups import check_frame
from surface_consistency.reading import shown


def reorder_to_slots(verdicts: npt.ArrayLike, orders: npt.ArrayLike) -> npt.NDArray[np.generic]:
    """Convert labels from the order of the sub-questions to the order of the slots.

    Args:
        verdicts: Correctness labels, with sub-question k in column k, shape `(n_topics, n_slots)`
            or `(n_topics, n_permutations, n_slots)`.
        orders: The sub-question (0 to `n_slots` - 1) in each slot, with the shape of `verdicts`.

    Returns:
        An array of the same shape and type, in which column j is slot j.

    Raises:
        ValueError: If the shapes differ, or a row of `orders` lacks or repeats a sub-question.
        TypeError: If `orders` is not of integers.

    Notes:
        Missing labels remain missing; the values are not checked.

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
    """Return whether each sub-question is in each slot equally often within every topic.

    Args:
        orders: The sub-question in each slot, shape `(n_topics, n_permutations, n_slots)`.

    Returns:
        True for counter-balanced orders, such as a Latin square for each topic.

    Raises:
        ValueError: If the shape is another, or a row lacks or repeats a sub-question.
        TypeError: If `orders` is not of integers.

    Notes:
        Balance requires as many permutations as slots, or a multiple; one order per topic is never
        balanced.

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

    If `slots` is given, it is the required shape, that of the labels called `name`.
    """
    array = np.asarray(orders)
    if slots is not None and array.shape != slots:
        raise ValueError(
            f"{name} and orders must have the same shape, one sub-question per slot; "
            f"got {slots} and {array.shape}"
        )
    if array.dtype.kind not in "iu":
        raise TypeError(
            "orders must be integers, the number of the sub-question in each slot; "
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
            f"{array[topic, permutation].tolist()}: each row must contain the sub-questions "
            f"0 to {n_slots - 1} once"
        )
    return array.astype(np.int64)


def slot_counts(orders: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Count how often each sub-question of each topic is in each slot.

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
    """Arrange the rows of a frame by topic, permutation and sub-question.

    Args:
        frame: One row per sub-question and permutation of its long query.
        topic: Column of the topic.
        question: Column that identifies the sub-questions of a topic.
        permutation: Column that identifies the long queries of a topic.
        slot: Column of the position in the long query, from 1.
        short: Column of correctness labels of the short answer; the same in all rows of a
            sub-question.
        long: Column of correctness labels of the sub-question in the long answer.

    Returns:
        A mapping of arrays whose first axis is the topic: topics, the topic labels in order of
        first appearance; short, the correctness labels of the short answers, `(n_topics, n_slots)`,
        and long, those of the long answers, `(n_topics, n_permutations, n_slots)`, both by
        sub-question and NaN if missing; orders, the sub-question (from 0) in each slot, with the
        shape of long; and slots, the labels of long in slot order, for `momentum`.

    Raises:
        ColumnNotFoundError: If a named column is not in the frame.
        TypeError: If `frame` is not a DataFrame, or a slot is not a number.
        ValueError: If the frame is empty, a label is missing, a row occurs twice, topics have
            unequal numbers of sub-questions or permutations, slots are not 1 to `n_slots` in each
            long query, the short labels of a sub-question differ, or a value is not a correctness
            label. The message names the topic.

    Notes:
        Topics, sub-questions and permutations are in the order of the rows, which does not affect
        any metric.

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
            f"and {shown(columns[1])}: {int((counts[index] == 0).sum())} are missing and "
            f"{int((counts[index] > 1).sum())} occur more than once"
        )
    labels_of = {name: _verdicts(frame[name].array, name, cells, shape) for name in (short, long)}
    places = np.empty(shape, dtype=np.int64)
    numbers = _inputs.numeric_vector(frame[slot].array, slot)
    if not bool((numbers == np.floor(numbers)).all()):
        raise ValueError(
            f"column {shown(slot)} must contain the number of the slot, from 1, in every row"
        )
    places.ravel()[cells] = numbers.astype(np.int64) - 1
    _check_slots(places, labels, slot)
    _check_short(labels_of[short], labels, short)
    orders = np.argsort(places, axis=-1)
    return {
        "topics": np.array(labels, dtype=object),
        "short": labels_of[short][:, 0, :],
        "long": labels_of[long],
        "orders": orders,
        "slots": reorder_to_slots(labels_of[long], orders),
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
    """Number the labels of a column within each topic, and return their number per topic."""
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
    """Return a column of labels as an array by topic, permutation and sub-question."""
    codes = _inputs.verdict_codes(values, name)
    verdicts = np.empty(shape)
    verdicts.ravel()[cells] = np.where(codes == _inputs.MISSING, np.nan, codes)
    return verdicts


def _check_slots(places: _inputs.Integers, labels: list[object], name: str) -> None:
    """Raise an error if the slots of a long query are not 1 to `n_slots`, each once."""
    n_slots = places.shape[-1]
    wrong = (np.sort(places, axis=-1) != np.arange(n_slots)).any(axis=-1)
    if wrong.any():
        topic, permutation = (int(index) for index in np.argwhere(wrong)[0])
        raise ValueError(
            f"column {shown(name)} must contain 1 to {n_slots} once in each long query: in topic "
            f"{shown(labels[topic])} one has {sorted((places[topic, permutation] + 1).tolist())}"
        )


def _check_short(verdicts: _inputs.Floats, labels: list[object], name: str) -> None:
    """Raise an error if short labels differ between the permutations of the long query."""
    same = (verdicts == verdicts[:, :1]) | (np.isnan(verdicts) & np.isnan(verdicts[:, :1]))
    if not same.all():
        topic = int(np.argwhere(~same)[0, 0])
        raise ValueError(
            f"column {shown(name)} differs between rows of one sub-question of topic "
            f"{shown(labels[topic])}: the short answer does not depend on the order of the query"
        )
