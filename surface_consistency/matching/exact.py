"""Exact match: the prediction equals an accepted answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from surface_consistency.matching.rule import Normalizer, Rule, plain_keys


class EqualityRule(Rule[dict[str, int]]):
    """A rule that accepts a prediction whose key equals that of an accepted answer."""

    __slots__ = ()

    def prepare(self, references: Sequence[str], keys: Sequence[str]) -> dict[str, int]:
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
    """Accepts a prediction that equals an accepted answer.

    The first study of RedirectQA states only that answers were scored by exact match (完全一致).
    This rule tests equality of the strings without surrounding white space, including case and
    punctuation. The score is 1.0 or 0.0.

    Notes:
        A full stop after the answer makes it incorrect, unless `normalize` removes it. An empty
        prediction is incorrect.

    References:
        The RedirectQA study of January 2025 (in Japanese), section 3.

    Examples:
        >>> rule = ExactRule()
        >>> rule(" London", ["London"]).is_match, rule("London.", ["London"]).is_match
        (True, False)
    """

    name: ClassVar[str] = "exact"

    normalize: Normalizer | None = None
    """Function applied to all texts first; None, the default, leaves them unchanged."""

    def keys(self, texts: Sequence[str]) -> list[str]:
        """Return the texts without surrounding white space, normalised if `normalize` is set."""
        return [key.strip() for key in plain_keys(texts, self.normalize)]
