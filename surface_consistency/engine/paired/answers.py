"""Proportion of pairs with the same answer, in addition to the same correctness label.

Two different incorrect answers have the same correctness label. The outcomes contain both texts, so
the proportion of pairs with the same answer can be computed as well.
"""

import warnings
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.matching.bulk import match_columns
from surface_consistency.matching.rule import Rule
from surface_consistency.metrics import PAIRED_RATES, paired_by
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals
from surface_consistency.text import padded_words

TEXTS: Final = ("first_prediction", "second_prediction")
"""Columns of the scored part of both answers."""

_AMONG: Final = ("all", "both wrong")
_Pair: TypeAlias = tuple[str, str]


def same_answers(
    first: Sequence[str | None],
    second: Sequence[str | None],
    *,
    rule: str | Rule[Any] | None = None,
) -> list[bool | None]:
    """Return for each pair of answers whether they are the same.

    Args:
        first: Answers under the first condition, `(n_pairs,)`; None for a missing answer.
        second: Answers under the second condition, in the same order.
        rule: Two answers are the same if this matching rule accepts one of them as the answer to
            the other; None, the default, compares their words in normal form, in order.

    Returns:
        For each pair whether the answers are the same; None if one is missing or blank.

    Raises:
        ValueError: If the answers differ in number, or there is no such rule.

    Notes:
        By a rule of containment "Paris" equals "Paris, France", and also "not Paris".

    Examples:
        >>> same_answers(["Paris.", "Paris, France", ""], ["paris", "Paris", "Rome"])
        [True, False, None]
        >>> same_answers(["Paris, France"], ["Paris"], rule="boundary")
        [True]
    """
    if len(first) != len(second):
        raise ValueError(
            f"`first` and `second` must have equal lengths, got {len(first)} and {len(second)}"
        )
    return _same(_answered(first, second), rule)


def _same(pairs: Sequence[_Pair | None], rule: str | Rule[Any] | None) -> list[bool | None]:
    """Return for each pair of answers whether they are the same; None for a missing pair."""
    distinct = [pair for pair in dict.fromkeys(pairs) if pair is not None]
    known: dict[_Pair | None, bool] = dict(zip(distinct, _compare(distinct, rule), strict=True))
    return [known.get(pair) for pair in pairs]


def _answered(first: Sequence[object], second: Sequence[object]) -> list[_Pair | None]:
    """Combine both answers of each pair; None if one is missing or blank."""
    return [
        (one, other)
        if isinstance(one, str) and isinstance(other, str) and one.strip() and other.strip()
        else None
        for one, other in zip(first, second, strict=True)
    ]


def _compare(pairs: Sequence[_Pair], rule: str | Rule[Any] | None) -> list[bool]:
    """Return for each pair of answers whether they are the same by a rule or by their words."""
    ones, others = ([pair[side] for pair in pairs] for side in (0, 1))
    if rule is None:
        words = zip(padded_words(ones), padded_words(others), strict=True)
        return [one == other for one, other in words]
    there, back = (
        match_columns(texts, [(answer,) for answer in answers], rule=rule).is_match
        for texts, answers in ((ones, others), (others, ones))
    )
    return [bool(a or b) for a, b in zip(there, back, strict=True)]


def answer_agreement(
    frame: pd.DataFrame,
    *,
    by: Sequence[str] = ("model",),
    cluster: str = "item",
    rule: str | Rule[Any] = "token_f1",
    intervals: Intervals = DEFAULT_INTERVALS,
) -> pd.DataFrame:
    """Compute the proportion of pairs with the same answer, for all pairs and both incorrect.

    Args:
        frame: Outcomes: first_correct, second_correct, first_prediction, second_prediction, and the
            columns named below.
        by: Columns that make groups.
        cluster: Clustering column of the intervals.
        rule: As for `same_answers`, for the second of the two proportions.
        intervals: How intervals are made.

    Returns:
        Two rows per group: the columns `by`; among, "all" or "both wrong"; n (pairs with both
        labels and both answers), n_clusters; same_answer, the proportion of pairs whose answers
        have the same words, and same_by_rule, the proportion whose answers are the same by the
        rule, each in [0, 1] with `_low` and `_high`. Rows without a pair are omitted.

    Raises:
        ColumnNotFoundError: If a column is missing.

    Notes:
        Two correct answers may differ only in wording. Two incorrect answers may differ in content
        or only in wording; the two proportions are bounds on how many have the same content. Pairs
        with a missing or blank answer are excluded. Intervals are those of `paired_by`.

    References:
        SLAQ, arXiv 2510.11218, limitations: two different incorrect answers count as aligned.

    Examples:
        >>> frame = pd.DataFrame(
        ...     {"model": "m", "item": range(4), "first_correct": [1, 0, 0, 1],
        ...      "second_correct": [1, 0, 0, 0], "first_prediction": ["a1", "b", "c", "d"],
        ...      "second_prediction": ["a1", "b", "x", "y"]})
        >>> rows = answer_agreement(frame)
        >>> rows[["among", "n", "same_answer"]].values.tolist()
        [['all', 4, 0.5], ['both wrong', 2, 0.5]]
    """
    pairs = _answered(*(frame[name].to_numpy(dtype=object).tolist() for name in TEXTS))
    verdicts = frame[["first_correct", "second_correct"]].astype("boolean")
    is_scored = verdicts.notna().all(axis=1).to_numpy()
    is_wrong = is_scored & ~verdicts.ne(False).fillna(True).any(axis=1).to_numpy(dtype=bool)
    is_answered = is_scored & np.array([pair is not None for pair in pairs], dtype=bool)
    if not is_answered.any():
        return pd.DataFrame()
    tables: list[pd.DataFrame] = []
    for name, compared_by in (("same_answer", None), ("same_by_rule", rule)):
        outcomes = frame[list(dict.fromkeys([*by, cluster]))].assign(
            present=1, same=[bool(same) for same in _same(pairs, compared_by)]
        )
        parts = [outcomes[is_answered], outcomes[is_answered & is_wrong]]
        table = _proportions(parts, list(by), cluster, intervals)
        ends = ("", "_low", "_high")
        table = table.rename(columns={f"second_accuracy{end}": name + end for end in ends})
        heads = [] if tables else [*by, "among", "n", "n_clusters"]
        tables.append(table[[*heads, *(name + end for end in ends)]])
    return pd.concat(tables, axis=1)


def _proportions(
    parts: Sequence[pd.DataFrame], by: list[str], cluster: str, intervals: Intervals
) -> pd.DataFrame:
    """Compute the proportion of pairs with the same answer, as `second_accuracy` of `paired_by`."""
    both = pd.concat(
        [part.assign(among=name) for name, part in zip(_AMONG, parts, strict=True)],
        ignore_index=True,
    )
    with warnings.catch_warnings():
        # A single cluster has no interval; the table shows that.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return paired_by(
            both,
            by=[*by, "among"],
            first="present",
            second="same",
            cluster=cluster,
            rates={"second_accuracy": PAIRED_RATES["second_accuracy"]},
            intervals=intervals,
        )
