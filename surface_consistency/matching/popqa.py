"""The rule `popqa`: the prediction contains an accepted answer in one of three case variants."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from surface_consistency.matching.rule import Normalizer, Rule, plain_keys

PopqaAnswers = tuple[tuple[str, ...], tuple[int, ...]]
"""Distinct strings to search, in the order of the answers, and the position of their answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PopqaRule(Rule[PopqaAnswers]):
    """Accepts a prediction that contains an accepted answer: the rule of PopQA and RedirectQA.

    An answer `a` is found in a prediction `p` if `a in p or a.lower() in p or a.capitalize() in p`.
    The comparison is case-sensitive and ignores word boundaries. The match has the first answer
    found; the score is 1.0 or 0.0.

    Notes:
        Without boundaries "Iran" is found in "Tirana", and an answer that is part of the question
        is found if the prediction repeats the question. `.capitalize()` lowers all but the first
        letter ("New York" becomes "New york"), so "NEW YORK" does not contain "New York". An empty
        prediction is incorrect.

    References:
        Mallen et al. (2023), "When Not to Trust Language Models", and their `run_model.py`; used by
        RedirectQA (arXiv 2604.21882), section 2.

    Examples:
        >>> rule = PopqaRule()
        >>> rule("He was a politician.", ["Politician", "statesman"])
        Match(is_match=True, reference='Politician', score=1.0, rule='popqa')
        >>> rule("Tirana", ["Iran"]).is_match, rule("TEHRAN", ["Tehran"]).is_match
        (True, False)
    """

    name: ClassVar[str] = "popqa"

    normalize: Normalizer | None = None
    """Function applied to all texts first; None, the default, leaves them unchanged."""

    def keys(self, texts: Sequence[str]) -> list[str]:
        """Return the texts, normalised if `normalize` is set."""
        return plain_keys(texts, self.normalize)

    def prepare(self, references: Sequence[str], keys: Sequence[str]) -> PopqaAnswers:
        """List the case variants of the answers."""
        owners: dict[str, int] = {}
        for position, key in enumerate(keys):
            for variant in (key, key.lower(), key.capitalize()):
                owners.setdefault(variant, position)
        return tuple(owners), tuple(owners.values())

    def judge(self, prediction: str, key: str, prepared: PopqaAnswers) -> tuple[int, float]:
        """Find the first answer that the prediction contains."""
        needles, owners = prepared
        for needle in needles:
            if needle in key:
                return owners[needles.index(needle)], 1.0
        return -1, 0.0
