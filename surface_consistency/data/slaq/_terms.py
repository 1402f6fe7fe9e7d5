"""Words that carry content, for checks that one text says what another says."""

import re
from collections.abc import Collection
from typing import Final

from surface_consistency.text import normalize, tokenize

__all__ = ["content_words", "numbers_in", "share_found", "word_in"]

_STOP_WORDS: Final = (
    "a about after all also an and any are as at be been before being between both but by can "
    "could did do does during each for from had has have he her here hers him his how i if in "
    "into is it its itself many may might more most much no nor not of on once one only or "
    "other our over per s she should so some such t than that the their them then there these "
    "they this those through to under until up upon was we were what when where which while "
    "who whom whose why will with within would you your name called term known kind type "
)
_STOP: Final = frozenset(_STOP_WORDS.split())
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_STEM: Final = 5


def content_words(text: str) -> list[str]:
    """Return the words of a text that carry content, in order, normalised.

    Args:
        text: Any text.

    Returns:
        The words without function words; numbers stay.

    Examples:
        >>> content_words("When did the First Punic War occur?")
        ['first', 'punic', 'war', 'occur']
    """
    return [word for word in tokenize(normalize(text)) if word not in _STOP]


def word_in(word: str, words: Collection[str]) -> bool:
    """Tell whether a word, or another form of it, is among others.

    Args:
        word: A normalised word.
        words: Normalised words.

    Returns:
        Whether it is there, or one that shares its first letters (five, or all but the last of a
        shorter word) as "occurred" does with "occur". Numbers must be there as they are.

    Examples:
        >>> word_in("occur", {"occurred"}), word_in("1945", {"1946"}), word_in("war", {"wars"})
        (True, False, True)
    """
    if word in words:
        return True
    if any(character.isdigit() for character in word) or len(word) < 3:
        return False
    stem = word[:_STEM] if len(word) > _STEM else word
    return any(
        other.startswith(stem) or (len(other) > 2 and word.startswith(other) and len(word) < 6)
        for other in words
        if not other[0].isdigit()
    )


def share_found(wanted: Collection[str], words: Collection[str]) -> float:
    """Return the share of wanted words that are among others; 1 when none is wanted."""
    if not wanted:
        return 1.0
    return sum(word_in(word, words) for word in wanted) / len(wanted)


def numbers_in(text: str) -> set[str]:
    """Return the numbers of a text as digits, without the commas between thousands."""
    return {found.replace(",", "").rstrip(".") for found in _NUMBER.findall(text)}
