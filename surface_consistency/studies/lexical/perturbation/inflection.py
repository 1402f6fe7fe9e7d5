"""The form of a word that takes another's place."""

from collections.abc import Callable
from typing import Final

from surface_consistency.errors import MissingDependencyError
from surface_consistency.studies.lexical.perturbation.wordnet import WordNet

__all__ = ["Inflector", "RuleInflector", "lemminflect_inflector"]

Inflector = Callable[[str, str], str | None]
"""Base form and Penn tag to the inflected form; None where there is none."""


def _words(text: str) -> frozenset[str]:
    """Take a list of words apart."""
    return frozenset(text.split())


_VOWELS: Final = frozenset("aeiou")
_DOUBLED: Final = frozenset("bdgmnprt")
_SAME_PARTICIPLE: Final = _words("become come outrun overcome overrun rerun run forerun")
"""Verbs whose participle is the base form although their past is another."""

_SAME_PAST: Final = _words(
    "bet broadcast burst cast cost cut forecast hit hurt let offset put quit read reset rid set "
    "shed shut slit split spread thrust upset"
)
"""Verbs with one form for base, past and participle; WordNet lists no form of theirs."""

_SAME_PLURAL: Final = _words(
    "aircraft bison cod deer fish grouse moose offspring salmon series sheep shrimp species "
    "spacecraft swine trout"
)
_OES: Final = _words(
    "do domino echo embargo forgo go hero mosquito potato tomato torpedo undergo veto"
)
_HARD_CH: Final = _words("epoch eunuch matriarch monarch patriarch stomach")


class RuleInflector:
    """Inflects by rules of spelling, and by WordNet's exception lists where forms are irregular.

    Args:
        lexicon: WordNet.

    Examples:
        >>> inflect = RuleInflector(WordNet("tests/perturbation/wordnet"))
        >>> inflect("story", "NNS"), inflect("choose", "VBN"), inflect("utilise", "VBG")
        ('stories', 'chosen', 'utilising')
    """

    def __init__(self, lexicon: WordNet) -> None:
        self._nouns = lexicon.irregular_forms("noun")
        self._verbs = lexicon.irregular_forms("verb")

    def __call__(self, lemma: str, tag: str) -> str | None:
        """Inflect a word.

        Args:
            lemma: Base form; of several words the head is inflected, the first of a verb and the
                last of a noun.
            tag: Penn tag.

        Returns:
            The form; that of adjectives and adverbs is the base form; None where the tag is no form
            of a full word.
        """
        if tag in ("NN", "VB", "VBP", "JJ", "RB"):
            return lemma
        if tag == "NNS":
            rest, space, head = lemma.rpartition(" ")
            return rest + space + self._plural(head)
        if tag in ("VBD", "VBG", "VBN", "VBZ"):
            head, space, rest = lemma.partition(" ")
            return self._verb(head, tag) + space + rest
        return None

    def _plural(self, noun: str) -> str:
        """Make a plural."""
        if noun in _SAME_PLURAL:
            return noun
        irregular = self._nouns.get(noun)
        return irregular[0] if irregular else _with_s(noun)

    def _verb(self, verb: str, tag: str) -> str:
        """Make a form of a verb."""
        irregular = self._verbs.get(verb, ())
        if tag == "VBZ":
            return next((form for form in irregular if form.endswith("s")), _with_s(verb))
        if tag == "VBG":
            return next(
                (form for form in irregular if form.endswith("ing")), _with_ending(verb, "ing")
            )
        if verb in _SAME_PAST or (tag == "VBN" and verb in _SAME_PARTICIPLE):
            return verb
        past = [form for form in irregular if not form.endswith(("ing", "s"))]
        if not past:
            return _with_ending(verb, "ed")
        participles = [form for form in past if _is_participle(form, past)]
        chosen = participles if tag == "VBN" else [form for form in past if form not in participles]
        return (chosen or past)[0]


def lemminflect_inflector() -> Inflector:
    """Load the inflector of the library lemminflect, which knows more irregular forms.

    Returns:
        The inflector.

    Raises:
        MissingDependencyError: If lemminflect is not installed.
    """
    try:
        import lemminflect
    except ImportError as error:
        raise MissingDependencyError("this inflector", "lemminflect", "lexical") from error

    def inflect(lemma: str, tag: str) -> str | None:
        """Inflect the head of a lemma."""
        if tag.startswith("NN"):
            rest, space, head = lemma.rpartition(" ")
            forms = lemminflect.getInflection(head, tag)
            return rest + space + forms[0] if forms else None
        head, space, rest = lemma.partition(" ")
        forms = lemminflect.getInflection(head, tag)
        return forms[0] + space + rest if forms else None

    return inflect


def _with_s(word: str) -> str:
    """Add the ending of plurals and third persons."""
    if word.endswith("y") and word[-2:-1] not in _VOWELS:
        return f"{word[:-1]}ies"
    if word in _OES or (word.endswith(("s", "x", "z", "ch", "sh")) and word not in _HARD_CH):
        return f"{word}es"
    return f"{word}s"


def _with_ending(verb: str, ending: str) -> str:
    """Add "ed" or "ing"."""
    if ending == "ing" and verb.endswith("ie"):
        return f"{verb[:-2]}ying"
    if verb.endswith("e") and (ending == "ed" or not verb.endswith(("ee", "oe", "ye"))):
        return verb[:-1] + ending
    if ending == "ed" and verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        return f"{verb[:-1]}ied"
    if _is_doubled(verb):
        return verb + verb[-1] + ending
    return verb + ending


def _is_doubled(verb: str) -> bool:
    """Tell whether the last consonant is doubled: after one vowel in a verb of one syllable."""
    stem = verb.removeprefix("qu") if verb.startswith("qu") else verb
    vowels = [letter for letter in stem if letter in _VOWELS]
    return (
        len(vowels) == 1
        and len(stem) > 1
        and stem[-1] in _DOUBLED
        and stem[-2] in _VOWELS
        and len(verb) > 2
    )


def _is_participle(form: str, past: list[str]) -> bool:
    """Tell which of several past forms is the participle: sung, written, done."""
    sung = {other.replace("a", "u") for other in past if "a" in other} & set(past)
    if sung:
        return form in sung
    return len(past) > 1 and form.endswith(("n", "ne"))
