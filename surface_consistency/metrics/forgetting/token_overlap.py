r"""Exact match and token overlap of answers, as the audit of forgetting defines them.

Text is case-folded and cut into the tokens `\d+\.\d+` and `\w+(?:[-']\w+)*`; all else is dropped,
so that ".us" equals "US".
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from surface_consistency.metrics._inputs import check_equal_lengths

_TOKEN = re.compile(r"\d+\.\d+|\w+(?:[-']\w+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOverlapResult:
    """Result of `answer_overlap`."""

    is_exact: bool
    """Whether the prediction is the gold answer or one of its aliases, token by token."""
    precision: float
    """Share of the prediction's tokens that the gold answer has, in [0, 1]."""
    recall: float
    """Share of the gold answer's tokens that the prediction has, in [0, 1]."""
    f1: float
    """Harmonic mean of precision and recall, in [0, 1]; 0 where they share no token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanOverlapResult:
    """Result of `mean_overlap`: means over answers, each with equal weight."""

    exact_match: float
    """Share of exact matches, in [0, 1]; higher is better."""
    precision: float
    """Mean precision, in [0, 1]."""
    recall: float
    """Mean recall, in [0, 1]."""
    f1: float
    """Mean F1, in [0, 1]; not the F1 of mean precision and recall."""
    n: int
    """Number of answers."""


def answer_tokens(text: str) -> list[str]:
    """Cut a text into the tokens by which the audit compares answers.

    Args:
        text: Any text.

    Returns:
        The case-folded tokens in order: decimal numbers, and words with inner hyphens and
        apostrophes.

    Raises:
        TypeError: When `text` is no string.

    Notes:
        Punctuation, currency signs and leading dots go; diacritics stay. A text without letters or
        digits has no tokens.

    References:
        The code of arXiv 2607.00605, `metrics.py` and `equivalence.py`.

    Examples:
        >>> answer_tokens("$69.7 million (state-of-the-art)"), answer_tokens(".us")
        (['69.7', 'million', 'state-of-the-art'], ['us'])
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a string; got {text!r}")
    return _TOKEN.findall(text.casefold())


def answer_overlap(
    prediction: str, gold: str, *, aliases: Sequence[str] = ()
) -> AnswerOverlapResult:
    """Compare a predicted answer with the gold one.

    With o the tokens in common, counted as often as both sides have them: precision = o / tokens of
    the prediction, recall = o / tokens of the gold answer, F1 their harmonic mean.

    Args:
        prediction: The answer, after cleaning.
        gold: Object of the fact, as the data set spells it.
        aliases: Other names of it that count as exact.

    Returns:
        Exact match, precision, recall and F1.

    Raises:
        TypeError: When an argument is no string, or `aliases` is one.
        ValueError: When neither gold nor aliases hold a token, so that nothing could match.

    Notes:
        An exact match of an alias scores 1 throughout; short of that the overlap is with `gold`
        alone, as in the audit. A prediction without tokens scores 0 (the audit gives 1 where the
        gold answer has none either, which is refused here).

    References:
        arXiv 2607.00605, section 4, and its code, `precision_recall_f1` in `metrics.py`.

    Examples:
        >>> overlap = answer_overlap("Sanskrit scholars, poets, musicians", "family of musicians")
        >>> overlap.is_exact, overlap.precision, round(overlap.recall, 3), round(overlap.f1, 3)
        (False, 0.25, 0.333, 0.286)
        >>> answer_overlap("Jorgensen", "Jørgensen", aliases=["Jorgensen"]).f1
        1.0
    """
    if isinstance(aliases, str):
        raise TypeError(f"aliases must be a sequence of strings, not one string; got {aliases!r}")
    predicted, expected = answer_tokens(prediction), answer_tokens(gold)
    accepted = [tokens for tokens in (expected, *map(answer_tokens, aliases)) if tokens]
    if not accepted:
        raise ValueError(
            f"gold {gold!r} and its aliases hold no letter or digit, so that nothing could match"
        )
    if predicted in accepted:
        return AnswerOverlapResult(is_exact=True, precision=1.0, recall=1.0, f1=1.0)
    common = (Counter(predicted) & Counter(expected)).total()
    if common == 0:
        return AnswerOverlapResult(is_exact=False, precision=0.0, recall=0.0, f1=0.0)
    return AnswerOverlapResult(
        is_exact=False,
        precision=common / len(predicted),
        recall=common / len(expected),
        f1=2 * common / (len(predicted) + len(expected)),
    )


def mean_overlap(
    predictions: Sequence[str],
    golds: Sequence[str],
    *,
    aliases: Sequence[Sequence[str]] | None = None,
) -> MeanOverlapResult:
    """Average `answer_overlap` over answers.

    Args:
        predictions: The answers, after cleaning.
        golds: The gold object of each.
        aliases: Other names of each gold object; None for none.

    Returns:
        Mean exact match, precision, recall and F1, and the number of answers.

    Raises:
        TypeError: When an argument is no string, or an entry of `aliases` is one.
        ValueError: When the lengths differ, there are no answers, or a gold answer holds no token.

    Notes:
        The order of the answers does not matter.

    References:
        arXiv 2607.00605, table 5 and figures 5 and 6.

    Examples:
        >>> mean_overlap(["Spice Girls", "1956"], ["Spice Girls", "Bihar, India"]).f1
        0.5
    """
    for name, texts in (("predictions", predictions), ("golds", golds)):
        if isinstance(texts, str):
            raise TypeError(f"{name} must be a sequence of strings, not one string; got {texts!r}")
    names = [()] * len(golds) if aliases is None else list(aliases)
    check_equal_lengths(predictions=len(predictions), golds=len(golds), aliases=len(names))
    if not len(golds):
        raise ValueError("predictions is empty: the mean over no answers is undefined")
    overlaps = [
        answer_overlap(prediction, gold, aliases=others)
        for prediction, gold, others in zip(predictions, golds, names, strict=True)
    ]
    n = len(overlaps)
    return MeanOverlapResult(
        exact_match=sum(overlap.is_exact for overlap in overlaps) / n,
        precision=math.fsum(overlap.precision for overlap in overlaps) / n,
        recall=math.fsum(overlap.recall for overlap in overlaps) / n,
        f1=math.fsum(overlap.f1 for overlap in overlaps) / n,
        n=n,
    )
