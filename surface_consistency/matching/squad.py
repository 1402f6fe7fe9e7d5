"""The two scores of SQuAD's evaluation script: exact match and F1 of normalised words."""

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from surface_consistency.matching.exact import EqualityRule
from surface_consistency.matching.rule import Rule

SquadVersion = Literal["1.1", "2.0"]

_ARTICLES = re.compile(r"\b(a|an|the)\b", re.UNICODE)
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def _squad_key(text: str) -> str:
    """Lower a text, delete ASCII punctuation, blank articles, and join its words by spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


@dataclass(frozen=True, slots=True, kw_only=True)
class SquadEmRule(EqualityRule):
    """Accepts a prediction that equals an accepted answer in SQuAD's normal form: its exact match.

    The normal form lowers the text, deletes ASCII punctuation, replaces the words "a", "an" and
    "the" by spaces, and joins the words by single spaces. The score is 1.0 or 0.0.

    Notes:
        Punctuation is deleted and not replaced by spaces: "U.S.A." equals "USA", and "letter-word"
        is one word. Punctuation other than ASCII ("“", "–") is kept. Two texts without any words
        after this ("The" and "!!!") are equal, in the scripts of both versions.

    References:
        `exact_match_score` of SQuAD's `evaluate-v1.1.py`; Rajpurkar et al. (2016), "SQuAD: 100,000+
        Questions for Machine Comprehension of Text", section 6.1.

    Examples:
        >>> SquadEmRule()("the U.S.A.", ["USA"]).is_match
        True
    """

    name: ClassVar[str] = "squad_em"

    def keys(self, texts: Sequence[str]) -> list[str]:
        """Return SQuAD's normal form of each text."""
        return [_squad_key(text) for text in texts]


SquadAnswers = tuple[tuple[tuple[str, ...], Counter[str]], ...]
"""For each answer its words, and the number of occurrences of each word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SquadF1Rule(Rule[SquadAnswers]):
    """Scores a prediction by the F1 of SQuAD's evaluation script, the maximum over the answers.

    Precision is the proportion of the prediction's words that the answer contains, recall the
    proportion of the answer's words that the prediction contains, both with multiplicity. F1 is
    2 precision recall / (precision + recall), on the normal form that `SquadEmRule` describes.

    Raises:
        ValueError: If `threshold` is not in (0, 1] or `version` is unknown.

    Notes:
        The score equals the script's to the last bit, in [0, 1] instead of percent. Under version
        1.1 an answer of articles or punctuation only ("The The", "!!!") does not match itself. For
        scripts without spaces a whole phrase is one word: see the rule `segmented`.

    References:
        `f1_score` of SQuAD's `evaluate-v1.1.py`, `compute_f1` of `evaluate-v2.0.py`; Rajpurkar et
        al. (2016), section 6.1; Rajpurkar et al. (2018), "Know What You Don't Know".

    Examples:
        >>> SquadF1Rule()("the U.S.A.", ["USA"]).score
        1.0
        >>> SquadF1Rule()("George Bush", ["George W. Bush"]).score
        0.8
    """

    name: ClassVar[str] = "squad_f1"

    threshold: float = 0.8
    """Minimum F1 of a match, in (0, 1]. SQuAD has no threshold, since it averages the score; the
    default is that of `TokenF1Rule`."""

    version: SquadVersion = "1.1"
    """Script that defines the score of a text without any words. "1.1" scores it 0.0 with every
    text. "2.0", whose unanswerable questions have the empty answer, scores it 1.0 with another such
    text and 0.0 with any other."""

    def __post_init__(self) -> None:
        """Raise an error for a threshold outside (0, 1] or an unknown version."""
        if not 0.0 < self.threshold <= 1.0:
            raise ValueError(f"`threshold` must be in (0, 1], got {self.threshold!r}")
        if self.version not in ("1.1", "2.0"):
            raise ValueError(f"`version` must be '1.1' or '2.0', got {self.version!r}")

    def keys(self, texts: Sequence[str]) -> list[str]:
        """Return SQuAD's normal form of each text."""
        return [_squad_key(text) for text in texts]

    def prepare(self, references: Sequence[str], keys: Sequence[str]) -> SquadAnswers:
        """Count the words of the answers."""
        lists = [tuple(key.split()) for key in keys]
        return tuple((words, Counter(words)) for words in lists)

    def judge(self, prediction: str, key: str, prepared: SquadAnswers) -> tuple[int, float]:
        """Find the answer with the highest F1, the first among equals."""
        words = key.split()
        counts = Counter(words)
        best, position = 0.0, -1
        for place, (answer, answer_counts) in enumerate(prepared):
            score = self._f1(words, counts, answer, answer_counts)
            if score > best:
                best, position = score, place
        return position if best >= self.threshold else -1, best

    def _f1(
        self,
        words: Sequence[str],
        counts: Counter[str],
        answer: Sequence[str],
        answer_counts: Counter[str],
    ) -> float:
        """Return F1 as the scripts compute it, to the last bit."""
        if self.version == "2.0" and not (words and answer):
            return float(not words and not answer)
        n_common = sum((counts & answer_counts).values())
        if not n_common:
            return 0.0
        precision, recall = n_common / len(words), n_common / len(answer)
        return (2 * precision * recall) / (precision + recall)
