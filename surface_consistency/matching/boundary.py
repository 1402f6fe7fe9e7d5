"""Containment of whole words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import ClassVar

from surface_consistency.matching.rule import Normalizer, Rule, padded_keys
from surface_consistency.text import normalize

_DENIAL = re.compile(
    r" (?:not|never|neither|nor|cannot|instead of|rather than"
    r"|(?:is|was|are|were|do|does|did|has|have|had|ca|could|would|should|wo)n['’ ]t)"
    r"(?: (?:a|an|the|at|by|for|from|in|of|on|to|with))* $",
    re.IGNORECASE,
)


def first_affirmed(key: str, needles: Sequence[str]) -> int:
    """Return the position of the first answer that occurs outside negated answers.

    Args:
        key: Words between single spaces, with a space at both ends.
        needles: Answers in the same form.

    Returns:
        The position; -1 if no answer occurs, or each occurrence overlaps a negated one.

    Examples:
        >>> first_affirmed(" not mark twain ", [" mark twain ", " twain "])
        -1
        >>> first_affirmed(" not twain but samuel clemens ", [" twain ", " samuel clemens "])
        1
    """
    spans = [
        (position, start, start + len(needle) - 1)
        for position, needle in enumerate(needles)
        for start in starts(key, needle)
    ]
    denied = [
        (start, end) for _, start, end in spans if _DENIAL.search(key, 0, start + 1) is not None
    ]
    for position, start, end in spans:
        if not any(start < last and first < end for first, last in denied):
            return position
    return -1


def starts(key: str, needle: str) -> Iterator[int]:
    """Find a needle in a key.

    Args:
        key: Any text.
        needle: A text that is not empty.

    Yields:
        The position of every occurrence of the needle.
    """
    start = key.find(needle)
    while start >= 0:
        yield start
        start = key.find(needle, start + 1)


BoundaryAnswers = tuple[tuple[str, ...], tuple[tuple[int, str], ...]]
"""The words of each answer with a space at both ends; and position and raw form of each answer
without letter or number, such as "!!!". Plain tuples: the garbage collector need not visit them."""

_FIRST_CHARACTER = itemgetter(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryRule(Rule[BoundaryAnswers]):
    """Accepts a prediction that contains an accepted answer as whole words.

    Both sides are normalised and split into words; the words of the answer must be consecutive
    words of the prediction. Numbers are whole words, and "C++" is not "C": see `text.normalize`.
    The match has the first answer found; the score is 1.0 or 0.0.

    Notes:
        Scripts without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) have no word
        boundaries: each of their characters is a word, so the rule is containment. A run of
        Katakana is one word ("ラン" is not in "イラン"). Korean words include their particles, so
        "서울" is not found in "서울은". An answer without letter or number ("!!!") is searched
        between white space in the prediction without normalisation. An empty prediction is
        incorrect.

    References:
        The boundary that the rule of Mallen et al. (2023) lacks; negations:
        https://github.com/EleutherAI/lm-evaluation-harness/pull/621.

    Examples:
        >>> rule = BoundaryRule()
        >>> rule("It is Tirana.", ["Iran"]).is_match
        False
        >>> rule("In IRAN, of course", ["Persia", "Iran"]).reference
        'Iran'
        >>> BoundaryRule(reject_negated=True)("not Mark Twain", ["Mark Twain"]).is_match
        False
    """

    name: ClassVar[str] = "boundary"

    normalize: Normalizer | None = normalize
    """Applied to both sides first. The default ignores case, punctuation and Unicode variants, but
    not diacritics and articles. With None the texts are unchanged, and words are separated by white
    space."""

    reject_negated: bool = False
    """Ignore occurrences that follow an English negation, directly or with articles and
    prepositions between ("not Mark Twain"). With this option an additional answer can remove a
    match, since a longer part of the text can be negated."""

    def keys(self, texts: Sequence[str]) -> list[str]:
        """Return the words of each text between spaces."""
        return padded_keys(texts, self.normalize)

    def prepare(self, references: Sequence[str], keys: Sequence[str]) -> BoundaryAnswers:
        """Return the words of the answers, and the answers without words in their raw form."""
        wordless: tuple[tuple[int, str], ...] = ()
        if not all(map(str.isalnum, map(_FIRST_CHARACTER, keys))):
            wordless = tuple(
                (position, _spaced(references[position]))
                for position, key in enumerate(keys)
                if not any(map(str.isalnum, key))
            )
        return tuple(keys), wordless

    def judge(self, prediction: str, key: str, prepared: BoundaryAnswers) -> tuple[int, float]:
        """Find the first answer that the prediction contains."""
        needles, wordless = prepared
        if wordless or self.reject_negated:
            return self._match_special(prediction, key, prepared)
        for needle in needles:
            if needle in key:
                return needles.index(needle), 1.0
        return -1, 0.0

    def _match_special(
        self, prediction: str, key: str, prepared: BoundaryAnswers
    ) -> tuple[int, float]:
        """Find the first answer, with negations and answers without words taken into account."""
        needles, wordless = prepared
        if self.reject_negated:
            worded = first_affirmed(key, needles)
        else:
            worded = next((at for at, needle in enumerate(needles) if needle in key), -1)
        raw = _spaced(prediction)
        positions = [position for position, needle in wordless if needle in raw]
        position = min([*positions, worded] if worded >= 0 else positions, default=-1)
        return position, 0.0 if position < 0 else 1.0


def _spaced(text: str) -> str:
    """Put single spaces between and around the words of a text."""
    return f" {' '.join(text.split())} "
