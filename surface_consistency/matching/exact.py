"""The strictest rule: the prediction is an accepted answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from surface_consistency.matching.rule import Match, Normalizer, Rule, plain_keys


class EqualityRule(Rule[dict[str, int]]):
    """A rule that accepts a prediction whose key is that of an accepted answer."""

    __slots__ = ()

    def prepare(self, answers: Sequence[str], keys: Sequence[str]) -> dict[str, int]:
        """Map each distinct answer to its first position."""
        positions: dict[str, int] = {}
        for position, key in enumerate(keys):
            positions.setdefault(key, position)
        return positions

    def judge(self, prediction: str, key: str, prepared: dict[str, int]) -> tuple[int, float]:
        """Look the prediction up."""
        position = prepared.get(key, -1)
        return position, 0.0 if position < 0 else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactRule(EqualityRule):
    """The rule of `match_exact` with its options."""

    name: ClassVar[str] = "exact"

    normalize: Normalizer | None = None
    """Applied to both sides first; None, the default, compares them as they are."""

    def keys(self, texts: Sequence[str]) -> list[str]:
        """Return the texts without surrounding white space, normalised when asked."""
        return [key.strip() for key in plain_keys(texts, self.normalize)]


def match_exact(
    prediction: str, answers: Sequence[str], *, normalize: Normalizer | None = None
) -> Match:
    """Accept a prediction that equals an accepted answer.

    The first study of RedirectQA says only that answers were judged by exact match (完全一致). Here
    that is equality of the strings without surrounding white space, case and punctuation included.

    Args:
        prediction: The judged part of what the model wrote.
        answers: Accepted answers.
        normalize: Applied to both sides first, such as `normalize`. Default is None, which
            compares them as they are.

    Returns:
        The verdict, with the first answer that is equal and a score of 1.0 or 0.0.

    Raises:
        TypeError: If `prediction` is not a string, or `answers` is one.
        ValueError: If there are no accepted answers, or one of them is blank.

    Notes:
        A full stop after the answer makes it wrong; `normalize=normalize` forgives that. An empty
        prediction is wrong.

    References:
        The RedirectQA study of January 2025 (in Japanese), section 3.

    Examples:
        >>> match_exact(" London", ["London"]).is_match
        True
        >>> match_exact("London.", ["London"]).is_match
        False
        >>> from surface_consistency.text import normalize
        >>> match_exact("london.", ["London"], normalize=normalize).answer
        'London'
    """
    return ExactRule(normalize=normalize)(prediction, answers)
