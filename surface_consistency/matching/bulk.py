"""Matching rules over columns of predictions and references."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from math import isnan, nan
from types import NoneType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from surface_consistency.matching.rule import Rule, check_references, one_reference
from surface_consistency.matching.rules import foldable_rule
from surface_consistency.truth import NoTruthValue

_MAX_ANSWERS = 120_000


class AnswerSets:
    """Cache of the prepared answer sets of one rule; it is cleared when it becomes too large."""

    def __init__(self, rule: Rule[Any]) -> None:
        self._rule = rule
        self._prepared: dict[tuple[str, ...], Any] = {(): None}
        self._n_answers = 0

    def get(self, rows: Sequence[tuple[str, ...]], first_row: int) -> list[Any]:
        """Return the prepared answer set of each row.

        Args:
            rows: Answer sets; an empty one gives None.
            first_row: Number of the first row in messages.

        Returns:
            One prepared set per row.

        Raises:
            TypeError: If an answer is not a string; names the row.
            ValueError: If an answer is blank; names the row.
        """
        if self._n_answers > _MAX_ANSWERS:
            self._prepared, self._n_answers = {(): None}, 0
        prepared = self._prepared
        places: dict[tuple[str, ...], int] = {}
        row_places = [places.setdefault(references, len(places)) for references in rows]
        new = [references for references in places if references not in prepared]
        if new:
            texts = list(chain.from_iterable(new))
            _check(texts, rows, first_row)
            self._add(new, texts, prepared)
        distinct = [prepared[references] for references in places]
        return [distinct[place] for place in row_places]

    def _add(
        self, new: list[tuple[str, ...]], texts: list[str], prepared: dict[tuple[str, ...], Any]
    ) -> None:
        """Prepare answer sets, after computing the keys of all their answers at once."""
        keys = tuple(self._rule.keys(texts))
        start = 0
        for references in new:
            end = start + len(references)
            prepared[references] = self._rule.prepare(references, keys[start:end])
            start = end
        self._n_answers += len(texts)


def _check(texts: list[str], rows: Sequence[tuple[str, ...]], first_row: int) -> None:
    """Raise the error of the first invalid answer set, with its row."""
    if set(map(type, texts)) <= {str} and "" not in texts and not any(map(str.isspace, texts)):
        return
    for row, references in enumerate(rows, first_row):
        try:
            if references:
                check_references(references)
        except (TypeError, ValueError) as error:
            raise type(error)(f"row {row}: {error}") from None


@lru_cache(maxsize=8)
def answer_sets(rule: Rule[Any]) -> AnswerSets:
    """Return the prepared answer sets of a rule, shared by all calls with that rule.

    Args:
        rule: A rule; equal rules share the cache.
    """
    return AnswerSets(rule)


NO_ANSWERS = "no accepted answers"
"""Reason for a row without accepted answers."""

NO_PREDICTION = "no prediction"
"""Reason for a row without prediction."""

_ROWS_AT_ONCE = 2_048


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatchColumns(NoTruthValue):
    """Labels of one rule, with one entry per row in every column."""

    truth = "all(columns.is_match), or len(columns)"

    rule: str
    """Name of the rule."""

    is_match: list[bool | None]
    """Whether the rule accepts the prediction; None for unscored rows."""

    reference: list[str | None]
    """The reference that matched, as it was given; None if none did."""

    score: npt.NDArray[np.float64]
    """Score of the best answer, in [0, 1], higher is better; NaN for unscored rows."""

    reason: list[str | None]
    """Why the row is unscored; None if it is scored."""

    n_unscored: int
    """Number of unscored rows."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.is_match)


def match_many(
    predictions: Sequence[str],
    references: Sequence[str | Sequence[str]],
    *,
    rule: str | Rule[Any] = "popqa",
    fold_accents: bool = False,
) -> npt.NDArray[np.bool_]:
    """Score many predictions by a rule, each as `match` would.

    Args:
        predictions: The scored parts of the outputs, shape `(n_rows,)`: a list, an array, or a
            column of pandas, Arrow, polars or `datasets`.
        references: Accepted answers of each row, shape `(n_rows,)`; a string is one reference.
        rule: As for `match`.
        fold_accents: As for `match`.

    Returns:
        Whether each prediction matches, shape `(n_rows,)`.

    Raises:
        TypeError: If a prediction or a reference is not a string, or a column is one string.
        ValueError: If the lengths differ, the rule is unknown, a prediction or the references of a
            row are missing, or a reference is blank or a list written as text. The message names
            the row, from 0.

    Notes:
        A missing prediction has no score: pass "" to count it as incorrect, or exclude the row.
        `match_columns` keeps such rows unscored, and returns scores and matched references too.

    References:
        Those of the rules' classes, such as `PopqaRule`.

    Examples:
        >>> match_many(["It is Paris.", "Bonn"], ["Paris", ["Berlin"]]).tolist()
        [True, False]
    """
    columns = match_columns(
        predictions, references, rule=rule, fold_accents=fold_accents, on_missing="raise"
    )
    return np.array(columns.is_match, dtype=np.bool_)


def _listed(column: Sequence[Any]) -> list[Any]:
    """Return a column of any library as a list of Python values."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def match_columns(
    predictions: Sequence[str | None],
    references: Sequence[str | Sequence[str] | None],
    *,
    rule: str | Rule[Any] = "popqa",
    fold_accents: bool = False,
    on_missing: Literal["unscored", "raise"] = "unscored",
    first_row: int = 0,
) -> MatchColumns:
    """Score many predictions by a rule, each as `match` would; predictions may be missing.

    The key of every distinct prediction and answer set is computed once. Prepared answer sets are
    cached between calls, up to a fixed number of answers, so that the predictions of a second model
    on the same questions cost less. Predictions are not cached between chunks of rows.

    Args:
        predictions: As for `match_many`; None (or NaN or NA, as in pandas) if missing.
        references: As for `match_many`; None if missing.
        rule: As for `match`.
        fold_accents: As for `match`.
        on_missing: How to treat a row without prediction or without accepted answers: "unscored",
            the default, returns None and the reason; "raise" raises ValueError.
        first_row: Number of the first row in messages, for callers that score a file in parts.
            Default is 0.

    Returns:
        The labels, scores, matched references and reasons in columns.

    Raises:
        TypeError: If a prediction or a reference is not a string, or a column is one string.
        ValueError: If the columns differ in length, the rule or `on_missing` is unknown, an
            accepted answer is blank, or an entry is missing and `on_missing` is "raise".

    Notes:
        No rows give empty columns. An empty prediction is not missing: it is incorrect.

    References:
        Those of the rules' classes, such as `PopqaRule`.

    Examples:
        >>> columns = match_columns(["Paris.", None], [["Paris"], ["Rome"]], rule="boundary")
        >>> columns.is_match, columns.reference, columns.score.tolist()
        ([True, None], ['Paris', None], [1.0, nan])
        >>> columns.reason
        [None, 'no prediction']
    """
    chosen = foldable_rule(rule, fold_accents=fold_accents)
    if on_missing not in ("unscored", "raise"):
        raise ValueError(f"`on_missing` must be 'unscored' or 'raise', got {on_missing!r}")
    for name, column in (("predictions", predictions), ("references", references)):
        if isinstance(column, str):
            raise TypeError(
                f"`{name}` must have one entry per row, got the string {column!r}; pass a list"
            )
    if len(predictions) != len(references):
        raise ValueError(
            "`predictions` and `references` must have one entry per row, "
            f"got {len(predictions)} and {len(references)}"
        )
    is_match: list[bool | None] = []
    matched: list[str | None] = []
    score: list[float] = []
    reason: list[str | None] = []
    all_predictions, all_answers = _listed(predictions), _listed(references)
    for begin in range(0, len(all_predictions), _ROWS_AT_ONCE):
        start, end = first_row + begin, begin + _ROWS_AT_ONCE
        texts = _texts(all_predictions[begin:end], start)
        sets = _sets(all_answers[begin:end], start)
        if on_missing == "raise":
            _raise_on_missing(texts, sets, start)
        verdicts = _score_rows(chosen, texts, sets, start)
        is_match += [None if made is None else made[0] >= 0 for made in verdicts]
        matched += [
            None if made is None or made[0] < 0 else accepted[made[0]]
            for made, accepted in zip(verdicts, sets, strict=True)
        ]
        score += [nan if made is None else made[1] for made in verdicts]
        reason += [
            None if made is not None else _reason(text)
            for made, text in zip(verdicts, texts, strict=True)
        ]
    return MatchColumns(
        rule=chosen.name,
        is_match=is_match,
        reference=matched,
        score=np.array(score, dtype=np.float64),
        reason=reason,
        n_unscored=len(reason) - reason.count(None),
    )


def _score_rows(
    rule: Rule[Any], texts: Sequence[str | None], sets: Sequence[tuple[str, ...]], start: int
) -> list[tuple[int, float] | None]:
    """Score rows; None if the prediction or the references are missing."""
    prepared = answer_sets(rule).get(sets, start)
    distinct = [text for text in dict.fromkeys(texts) if text is not None]
    keys = dict(zip(distinct, rule.keys(distinct), strict=True))
    score = rule.judge
    return [
        score(text, keys[text], ready) if text is not None and accepted else None
        for text, accepted, ready in zip(texts, sets, prepared, strict=True)
    ]


def _raise_on_missing(
    texts: Sequence[str | None], sets: Sequence[tuple[str, ...]], start: int
) -> None:
    """Raise an error if a row has no prediction or no accepted answers."""
    for row, (text, accepted) in enumerate(zip(texts, sets, strict=True), start):
        if text is None or not accepted:
            blank = ", pass '' to count the prediction as incorrect," * (text is None)
            raise ValueError(
                f"row {row}: {_reason(text)}; exclude the row{blank} or use "
                "surface_consistency.matching.match_columns, which keeps the row"
            )


def _reason(text: str | None) -> str:
    """Return why a row is unscored."""
    return NO_PREDICTION if text is None else NO_ANSWERS


def _texts(texts: list[Any], start: int) -> list[str | None]:
    """Return the predictions of rows from `start` on, None if missing."""
    if set(map(type, texts)) <= {str, NoneType}:
        return texts
    for row, text in enumerate(texts, start):
        if not isinstance(text, str) and not _is_missing(text):
            kind = type(text).__name__
            raise TypeError(f"row {row}: `predictions` must be strings or None, got {kind}")
    return [text if isinstance(text, str) else None for text in texts]


def _sets(sets: list[Any], start: int) -> list[tuple[str, ...]]:
    """Return the accepted answers of rows from `start` on, () if missing."""
    if set(map(type, sets)) <= {tuple, list}:
        return list(map(tuple, sets))
    for row, accepted in enumerate(sets, start):
        if isinstance(accepted, str):
            try:
                sets[row - start] = one_reference(accepted)
            except ValueError as error:
                raise ValueError(f"row {row}: {error}") from None
        elif not (_is_missing(accepted) or isinstance(accepted, Iterable)):
            raise TypeError(
                f"row {row}: `references` must be strings or lists of strings, got {accepted!r}"
            )
    return [() if _is_missing(accepted) else tuple(accepted) for accepted in sets]


def _is_missing(value: object) -> bool:
    """Return whether a value is None, or the NaN or NA that pandas writes for it."""
    is_nan = isinstance(value, float | np.floating) and isnan(value)
    return value is None or is_nan or type(value).__name__ == "NAType"
