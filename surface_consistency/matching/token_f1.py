"""Overlap of words: an F1 like that of SQuAD, on this package's own normal form."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

from surface_consistency.matching.rule import Normalizer, Rule, padded_keys
from surface_consistency.text import normalize

_ARTICLES = frozenset({"a", "an", "the"})


TokenAnswers = tuple[tuple[tuple[str, ...], ...], frozenset[str], frozenset[int]]
"""For each answer its words without articles; all words of all answers; and the positions of the
answers that repeat a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenF1Rule(Rule[TokenAnswers]):
    """Accepts a prediction whose word F1 with an accepted answer reaches the threshold.

    With `c` words in common (with multiplicity), F1 is 2c / (words of the prediction + words of the
    answer). The score is the highest F1 over the answers, and the match has the answer with that
    F1, the first among equals. The articles "a", "an" and "the" are excluded. The formula is that
    of SQuAD, but the words are not: `SquadF1Rule` returns the score of SQuAD's script.

    Raises:
        ValueError: If `threshold` is not in (0, 1].

    Notes:
        Unlike in SQuAD's script, punctuation separates words ("letter–word" is two words, and
        "U.S.A." is three, none of them in "USA"), and diacritics count by their Unicode normal
        form. Order is ignored. A long prediction scores low even if it contains the answer, so
        score first lines. A text of articles only keeps them. In scripts without spaces each
        character is a word. An empty prediction scores 0.0.

    References:
        Rajpurkar et al. (2016), "SQuAD: 100,000+ Questions for Machine Comprehension of Text",
        section 6.1.

    Examples:
        >>> TokenF1Rule()("George Bush", ["George W. Bush"])
        Match(is_match=True, reference='George W. Bush', score=0.8, rule='token_f1')
        >>> TokenF1Rule()("George Washington", ["George W. Bush"])
        Match(is_match=False, reference=None, score=0.4, rule='token_f1')
    """

    name: ClassVar[str] = "token_f1"

    threshold: float = 0.8
    """Minimum F1 of a match, in (0, 1]. The default accepts "George Bush" for "George W. Bush", but
    not a shared first name, which scores at most 0.5 between two-word names."""

    normalize: Normalizer | None = normalize
    """Function applied to all texts first. With None the texts are unchanged."""

    def __post_init__(self) -> None:
        """Raise an error for a threshold outside (0, 1]."""
        if not 0.0 < self.threshold <= 1.0:
            raise ValueError(f"`threshold` must be in (0, 1], got {self.threshold!r}")

    def keys(self, texts: Sequence[str]) -> list[str]:
        """Return the words of each text between spaces."""
        return padded_keys(texts, self.normalize)

    def prepare(self, references: Sequence[str], keys: Sequence[str]) -> TokenAnswers:
        """Split the answers into words."""
        lists = tuple([tuple(_without_articles(key.split())) for key in keys])
        repeated = [place for place, words in enumerate(lists) if len({*words}) < len(words)]
        return lists, frozenset(chain.from_iterable(lists)), frozenset(repeated)

    def judge(self, prediction: str, key: str, prepared: TokenAnswers) -> tuple[int, float]:
        """Find the answer with the highest F1, the first among equals."""
        lists, vocabulary, repeated = prepared
        words = key.split()
        if vocabulary.isdisjoint(words):
            return -1, 0.0
        words = _without_articles(words)
        counts, n_words = Counter(words if repeated else ()), len(words)
        occurs = {*words}.__contains__
        best, position = 0.0, -1
        for place, answer in enumerate(lists):
            is_plain = place not in repeated
            common = map(occurs, answer) if is_plain else (counts & Counter(answer)).values()
            n_common = sum(common)
            score = 2 * n_common / (n_words + len(answer))
            if score > best:
                best, position = score, place
        return position if best >= self.threshold else -1, best


def _without_articles(words: list[str]) -> list[str]:
    """Return the words that are not articles, or all words if all are articles."""
    return [word for word in words if word not in _ARTICLES] or words
