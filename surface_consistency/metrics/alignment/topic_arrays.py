"""Verdicts of short and long answers, from a tidy frame to arrays by topic."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.frames import check_frame
from surface_consistency.metrics._shared.vectors import numeric_vector
from surface_consistency.metrics._shared.verdicts import MISSING, verdict_codes
from surface_consistency.metrics.alignment.slot_orders import by_slot

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TopicArraysResult", "topic_arrays"]

_Integers = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TopicArraysResult:
    """Result of `topic_arrays`: the inputs of the metrics of short and long answers."""

    topics: tuple[object, ...]
    """Labels of the topics, in order of first appearance; the first axis of the arrays."""
    short: _Floats
    """Verdicts on the short answers, `(n_topics, n_slots)`, by sub-question; NaN where missing."""
    long: _Floats
    """Verdicts on the long answers, `(n_topics, n_permutations, n_slots)`, by sub-question; NaN
    where missing. Sub-questions and permutations stand in order of first appearance."""
    orders: _Integers
    """The sub-question (from 0) in each slot, of the shape of `long`."""

    @property
    def slots(self) -> _Floats:
        """Verdicts on the long answers in slot order, as `momentum` takes them."""
        return by_slot(self.long, self.orders).astype(np.float64)


def topic_arrays(
    frame: "pd.DataFrame",
    *,
    topic: str = "topic_id",
    question: str = "question_id",
    permutation: str = "permutation",
    slot: str = "slot",
    short: str = "first_correct",
    long: str = "second_correct",
) -> TopicArraysResult:
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
        The arrays, with NaN for missing verdicts.

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
        >>> arrays.long.tolist(), arrays.orders.tolist()
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
    _check_cells(cells, shape, labels, [question, permutation])
    laid_out = {name: _verdicts(frame[name].array, name, cells, shape) for name in (short, long)}
    places = np.empty(shape, dtype=np.int64)
    places.ravel()[cells] = _slot_numbers(frame[slot].array, slot)
    _check_slots(places, labels, slot)
    _check_short(laid_out[short], labels, short)
    return TopicArraysResult(
        topics=tuple(labels),
        short=laid_out[short][:, 0, :],
        long=laid_out[long],
        orders=np.argsort(places, axis=-1),
    )


def _numbered(frame: "pd.DataFrame", columns: list[str]) -> tuple[list[object], _Integers]:
    """Number the distinct labels of the columns in order of first appearance."""
    import pandas as pd

    for column in columns:
        absent = frame[column].isna().to_numpy()
        if absent.any():
            raise ValueError(f"column {column!r} has no value in row {int(np.argmax(absent))}")
    if len(columns) == 1:
        codes, labels = pd.factorize(frame[columns[0]])
    else:
        codes, labels = pd.factorize(pd.MultiIndex.from_frame(frame[columns]))
    return list(labels), codes.astype(np.int64)


def _numbers_within(
    frame: "pd.DataFrame", topic: str, column: str, topics: _Integers
) -> tuple[_Integers, int]:
    """Number a column's labels within each topic, and return how many each topic has."""
    _, codes = _numbered(frame, [topic, column])
    first_rows = np.unique(codes, return_index=True)[1]
    of_pair = topics[first_rows]
    counts = np.bincount(of_pair)
    if counts.min() != counts.max():
        few, many = int(counts.argmin()), int(counts.argmax())
        names = [frame[topic].iloc[int(first_rows[of_pair == code][0])] for code in (few, many)]
        raise ValueError(
            f"topics must have equally many values of {column!r}: {names[0]!r} has "
            f"{counts[few]} and {names[1]!r} has {counts[many]}"
        )
    by_topic = np.argsort(of_pair, kind="stable")
    numbers = np.empty(len(of_pair), dtype=np.int64)
    numbers[by_topic] = np.tile(np.arange(counts[0]), len(counts))
    return numbers[codes], int(counts[0])


def _check_cells(
    cells: _Integers, shape: tuple[int, ...], labels: list[object], columns: list[str]
) -> None:
    """Refuse rows that stand twice, or are not there."""
    found = np.bincount(cells, minlength=int(np.prod(shape))).reshape(len(labels), -1)
    wrong = (found != 1).any(axis=1)
    if wrong.any():
        index = int(np.argmax(wrong))
        raise ValueError(
            f"topic {labels[index]!r} must have one row for each pair of {columns[0]!r} and "
            f"{columns[1]!r}: {int((found[index] == 0).sum())} are not there and "
            f"{int((found[index] > 1).sum())} stand there more than once"
        )


def _verdicts(
    values: npt.ArrayLike, name: str, cells: _Integers, shape: tuple[int, ...]
) -> _Floats:
    """Return a column of verdicts as an array by topic, permutation and sub-question."""
    codes = verdict_codes(values, name)
    verdicts = np.empty(shape)
    verdicts.ravel()[cells] = np.where(codes == MISSING, np.nan, codes)
    return verdicts


def _slot_numbers(values: npt.ArrayLike, name: str) -> _Integers:
    """Return a column of slots as integers from 0."""
    numbers = numeric_vector(values, name)
    if not bool((numbers == np.floor(numbers)).all()):
        raise ValueError(f"column {name!r} must hold the number of the slot, from 1, in every row")
    return numbers.astype(np.int64) - 1


def _check_slots(places: _Integers, labels: list[object], name: str) -> None:
    """Refuse long queries whose slots are not 1 to `n_slots`, each once."""
    n_slots = places.shape[-1]
    wrong = (np.sort(places, axis=-1) != np.arange(n_slots)).any(axis=-1)
    if wrong.any():
        topic, permutation = (int(index) for index in np.argwhere(wrong)[0])
        raise ValueError(
            f"column {name!r} must hold 1 to {n_slots} once in each long query: in topic "
            f"{labels[topic]!r} one holds {sorted((places[topic, permutation] + 1).tolist())}"
        )


def _check_short(verdicts: _Floats, labels: list[object], name: str) -> None:
    """Refuse short verdicts that differ between the permutations of the long query."""
    same = (verdicts == verdicts[:, :1]) | (np.isnan(verdicts) & np.isnan(verdicts[:, :1]))
    if not same.all():
        topic = int(np.argwhere(~same)[0, 0])
        raise ValueError(
            f"column {name!r} differs between rows of one sub-question of topic "
            f"{labels[topic]!r}: the short answer is one, whatever the order of the long query"
        )
