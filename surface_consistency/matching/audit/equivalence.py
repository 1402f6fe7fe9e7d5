"""When an answer names the gold object: the audit's equivalences by name."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from surface_consistency.text import token_key

__all__ = ["EQUIVALENCES", "Equivalence", "TokenOverlap", "audit_key", "token_overlap"]

_TOKEN = re.compile(r"(?:(?<!\S)[.#@+\u2212-])?(?:\d+\.\d+|\w+(?:[-'’]\w+)*)(?:[+#]+(?!\w))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence:
    """How answers and golds are compared."""

    name: str
    """Name in tables."""

    key: Callable[[str], str]
    """The form in which two names are equal; words with single spaces between."""

    contains: Callable[[str, str], bool]
    """Whether an answer contains a gold; takes the keys of both."""

    scores_aliases: bool
    """Whether precision, recall and F1 are those of the best of gold and aliases, not of the gold
    alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenOverlap:
    """Words that an answer shares with a gold."""

    precision: float
    """Shared words over words of the answer, in [0, 1]."""

    recall: float
    """Shared words over words of the gold, in [0, 1]."""

    f1: float
    """Harmonic mean of both, in [0, 1]; 0 where nothing is shared."""


def audit_key(text: str) -> str:
    """Return the form in which the default equivalence compares names.

    Words as in `token_key`, of the NFKC form and case-folded, but signs that belong to a word stay:
    ".us" is not "US", "-5" not "5", "C++" not "C".

    Args:
        text: An answer or a gold.

    Returns:
        The key; empty for a text without letters and digits.

    Examples:
        >>> audit_key("Washington, D.C."), audit_key(".us"), audit_key("US")
        ('washington d c', '.us', 'us')
    """
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(_TOKEN.findall(plain.replace("’", "'")))


def token_overlap(answer: str, gold: str) -> TokenOverlap:
    """Count the words that two keys share, each as often as both have it.

    Args:
        answer: Key of the answer.
        gold: Key of the gold.

    Returns:
        Precision, recall and F1; all 1 for two empty keys, all 0 where nothing is shared.

    Examples:
        >>> token_overlap("the spice girls", "spice girls").recall
        1.0
    """
    words, wanted = answer.split(), gold.split()
    if not words and not wanted:
        return TokenOverlap(precision=1.0, recall=1.0, f1=1.0)
    n_shared = sum((Counter(words) & Counter(wanted)).values())
    if not n_shared:
        return TokenOverlap(precision=0.0, recall=0.0, f1=0.0)
    precision, recall = n_shared / len(words), n_shared / len(wanted)
    return TokenOverlap(
        precision=precision, recall=recall, f1=2 * precision * recall / (precision + recall)
    )


def _contains_words(answer: str, gold: str) -> bool:
    """Tell whether the gold stands in the answer as whole words."""
    return f" {gold} " in f" {answer} "


def _contains_either_way(answer: str, gold: str) -> bool:
    """Tell whether one is a part of the other, as the published code does: "a" in "washington"."""
    return gold in answer or answer in gold


EQUIVALENCES: Mapping[str, Equivalence] = MappingProxyType(
    {
        "audit": Equivalence(
            name="audit", key=audit_key, contains=_contains_words, scores_aliases=True
        ),
        "published": Equivalence(
            name="published", key=token_key, contains=_contains_either_way, scores_aliases=False
        ),
    }
)
"""The equivalences by name: this package's, and that of the published code."""
