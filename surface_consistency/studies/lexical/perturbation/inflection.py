"""The form of a word that takes another's place."""

from collections.abc import Callable
from functools import cache
from typing import Final

from surface_consistency.errors import MissingDependencyError

__all__ = ["Inflector", "lemminflect_inflector"]

Inflector = Callable[[str, str], str | None]
"""Base form and Penn tag to the inflected form; None where there is none."""

_BASE_FORMS: Final = frozenset(("NN", "VB", "VBP", "JJ", "RB"))
_INFLECTED_FORMS: Final = frozenset(("NNS", "VBD", "VBG", "VBN", "VBZ"))


def lemminflect_inflector() -> Inflector:
    """Load the inflector of the library lemminflect.

    Returns:
        The inflector. Of a lemma of several words it inflects the head, the first of a verb and the
        last of a noun; an adjective or adverb stays as it is. Words that lemminflect does not list
        are inflected by its rules, capitals stay where they were. None where the tag is no form of
        a full word, or the lemma is empty.

    Raises:
        MissingDependencyError: If lemminflect is not installed.

    References:
        B. Jascob, LemmInflect, whose forms are those of the NIH SPECIALIST lexicon.

    Examples:
        >>> inflect = lemminflect_inflector()
        >>> inflect("story", "NNS"), inflect("woman", "NNS"), inflect("pick out", "VBD")
        ('stories', 'women', 'picked out')
    """
    try:
        from lemminflect import getInflection
    except ImportError as error:
        raise MissingDependencyError("inflection", "lemminflect", "lexical") from error

    @cache
    def inflect(lemma: str, tag: str) -> str | None:
        """Inflect the head of a lemma."""
        words = lemma.split()
        if not words or tag in _BASE_FORMS:
            return lemma if words else None
        if tag not in _INFLECTED_FORMS:
            return None
        head = -1 if tag == "NNS" else 0
        # The first of several forms is the most usual one.
        words[head] = getInflection(words[head], tag)[0]
        return " ".join(words)

    return inflect
