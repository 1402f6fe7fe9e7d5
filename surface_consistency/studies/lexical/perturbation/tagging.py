"""Part-of-speech tagging of words, and inflection of their synonyms."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, NamedTuple, Protocol, get_args

from surface_consistency.errors import MissingDependencyError
from surface_consistency.studies.lexical.perturbation.wordnet import WordNet
from surface_consistency.studies.lexical.records import PartOfSpeech

Inflector = Callable[[str, str], str | None]
"""Function of a base form and a Penn tag that returns the inflected form, or None."""

_BASE_FORMS: Final = frozenset(("NN", "VB", "VBP", "JJ", "RB"))
_INFLECTED_FORMS: Final = frozenset(("NNS", "VBD", "VBG", "VBN", "VBZ"))


def _words(text: str) -> frozenset[str]:
    """Split a list of words."""
    return frozenset(text.split())


_TOKEN: Final = re.compile(
    r"(?P<closed>[A-Za-z]+n['’]t\b|['’](?:s|re|ve|d|ll|m)\b|[A-Za-z]+['’](?:re|ve|d|ll|m)\b)"
    r"|(?P<word>[A-Za-z]+(?:-[A-Za-z]+)*)|(?P<end>[.!?:;\"“”`\n]+)|(?P<other>\S)"
)
_DETERMINERS: Final = _words(
    "a an the this that these those my your his her its our their some any no every each another "
    "either neither what which whose"
)
_MODALS: Final = _words("can could may might must shall should will would cannot")
_AUXILIARIES: Final = _words(
    "am is are was were be been being have has had having do does did doing done"
)
_PERFECT: Final = _words(
    "am is are was were be been being have has had having get gets got getting"
)
_SUBJECTS: Final = _words("i you he she it we they who")
_CLOSED: Final = (
    _DETERMINERS
    | _MODALS
    | _AUXILIARIES
    | _SUBJECTS
    | _words(
        "me him us them myself yourself himself herself itself ourselves yourselves themselves "
        "mine yours hers ours theirs whom where when why how there here then than as if because "
        "although though unless until while since before after and or but nor so yet for of in on "
        "at by to from with without within into onto upon about above below under over between "
        "among "
        "through during against toward towards across behind beyond near off out up down around "
        "along past per via not never ever also too very just only even still again already always "
        "often all both few many much more most less least several such own other others same "
        "one two three four five six seven eight nine ten hundred thousand first second third "
        "ought let lets someone somebody something anyone anybody anything everyone everybody "
        "everything nobody nothing none yes oh ok okay like s t re ve d ll m don didn doesn"
    )
)
_ORDER: Final = get_args(PartOfSpeech)


class Word(NamedTuple):
    """A word of a text."""

    start: int
    """Position of its first character."""

    end: int
    """Position after its last character."""

    lemma: str
    """Base form, in lower case."""

    tag: str
    """Tag of the Penn Treebank: NN and NNS for common nouns, VB, VBD, VBG, VBN, VBP and VBZ for
    full verbs, JJ, RB; NNP for names, MD for modals, AUX for auxiliaries, and X for others."""

    @property
    def pos(self) -> PartOfSpeech | None:
        """Part of speech, None for words that are never replaced."""
        if self.tag in ("NN", "NNS"):
            return "noun"
        if self.tag.startswith("VB"):
            return "verb"
        return {"JJ": "adjective", "RB": "adverb"}.get(self.tag)  # type: ignore[return-value]


class Tagger(Protocol):
    """Interface of taggers; wrap spaCy or another library to use it."""

    def tag(self, text: str) -> Sequence[Word]:
        """Find the words of a text.

        Args:
            text: The text.

        Returns:
            Its words in order, without overlap; words that are never replaced may be omitted. The
            auxiliaries `be`, `have` and `do` have the tag AUX, not that of a verb.
        """


@dataclass(frozen=True, slots=True)
class _Reading:
    """Base form of a form for each part of speech, and the most frequent part of speech."""

    lemmas: dict[PartOfSpeech, str]
    usual: PartOfSpeech | None
    is_name: bool


class WordNetTagger:
    """Tagger that selects the part of speech with the most frequent sense in WordNet.

    Words of a closed class (pronouns, prepositions, auxiliaries, modals, numbers) are never full
    words; "be", "have" and "do" are always auxiliaries. A capitalised word within a sentence is a
    name; at the start of a sentence it is a name if WordNet has it only as a name or not at all.
    After a determiner a word is not a verb if it can be a noun or adjective. After a modal, "to" or
    a subject pronoun it is a verb if possible. A past form is a participle after "be", "have" or
    "get", also with one word between. The rules are deterministic and use only WordNet. Their
    accuracy has not been measured.

    Args:
        lexicon: WordNet.
    """

    def __init__(self, lexicon: WordNet) -> None:
        self._lexicon = lexicon
        self._reading = lru_cache(maxsize=None)(self._read)

    def tag(self, text: str) -> list[Word]:
        """Find all words of a text; see `Tagger.tag`."""
        words: list[Word] = []
        before, further = "", ""
        is_begin = True
        for match in _TOKEN.finditer(text):
            kind, token = match.lastgroup, match[0]
            if kind == "end":
                is_begin, before, further = True, "", ""
                continue
            folded = token.lower()
            if kind == "word":
                lemma, tag = self._tagged(token, folded, before, further, is_begin)
                words.append(Word(start=match.start(), end=match.end(), lemma=lemma, tag=tag))
            before, further = folded, before
            if kind != "other":
                is_begin = False
        return words

    def _tagged(
        self, token: str, folded: str, before: str, further: str, is_begin: bool
    ) -> tuple[str, str]:
        """Return base form and tag of a word by the two preceding words."""
        if folded in _CLOSED or len(folded) == 1:
            if folded in _MODALS:
                return folded, "MD"
            return folded, "AUX" if folded in _AUXILIARIES else "X"
        reading = self._reading(folded)
        if token[0].isupper() and (not is_begin or reading.is_name):
            return folded, "NNP"
        if reading.usual is None:
            return folded, "X"
        pos: PartOfSpeech = reading.usual
        if before in _DETERMINERS and pos == "verb":
            others: tuple[PartOfSpeech, ...] = ("noun", "adjective")
            pos = next((other for other in others if other in reading.lemmas), pos)
        elif (before in _MODALS or before == "to" or before in _SUBJECTS) and (
            "verb" in reading.lemmas
        ):
            pos = "verb"
        lemma = reading.lemmas[pos]
        return lemma, _form(folded, lemma, pos, is_perfect=bool({before, further} & _PERFECT))

    def _read(self, folded: str) -> _Reading:
        """Look up a form under each part of speech."""
        lemmas: dict[PartOfSpeech, str] = {}
        counts: dict[PartOfSpeech, int] = {}
        for pos in _ORDER:
            bases = self._lexicon.base_forms(folded, pos)
            if bases:
                seen = {base: self._lexicon.sense_count(base, pos) for base in bases}
                lemmas[pos] = max(bases, key=seen.__getitem__)
                counts[pos] = seen[lemmas[pos]]
        if not lemmas:
            return _Reading({}, None, True)
        usual = max(lemmas, key=counts.__getitem__)
        first = self._lexicon.synsets(lemmas[usual], usual)[0]
        as_written = [lemma for lemma in first.lemmas if lemma.lower() == lemmas[usual]]
        return _Reading(lemmas, usual, bool(as_written) and as_written[0][0].isupper())


def _form(folded: str, lemma: str, pos: PartOfSpeech, *, is_perfect: bool) -> str:
    """Return the tag of the form of a word."""
    if pos == "noun":
        return "NN" if folded == lemma else "NNS"
    if pos == "verb":
        if folded == lemma:
            return "VB"
        if folded.endswith("ing"):
            return "VBG"
        if folded.endswith("s"):
            return "VBZ"
        return "VBN" if is_perfect else "VBD"
    return "JJ" if pos == "adjective" else "RB"


def lemminflect_inflector() -> Inflector:
    """Load the inflector of the library lemminflect.

    Returns:
        The inflector. In a lemma of several words it inflects the head, which is the first word of
        a verb and the last of a noun; adjectives and adverbs are unchanged. Words that are not in
        the lexicon of lemminflect are inflected by its rules; capitals are kept. It returns None if
        the tag is not a form of a full word, or the lemma is empty.

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
