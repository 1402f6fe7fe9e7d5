"""Which words of a text are nouns and verbs, in which form, and that form of another word."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, NamedTuple, Protocol, get_args

from surface_consistency.errors import MissingDependencyError
from surface_consistency.studies.lexical.perturbation.wordnet import WordNet
from surface_consistency.studies.lexical.records import PartOfSpeech

Inflector = Callable[[str, str], str | None]
"""Base form and Penn tag to the inflected form; None where there is none."""

_BASE_FORMS: Final = frozenset(("NN", "VB", "VBP", "JJ", "RB"))
_INFLECTED_FORMS: Final = frozenset(("NNS", "VBD", "VBG", "VBN", "VBZ"))


def _words(text: str) -> frozenset[str]:
    """Take a list of words apart."""
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
    """Place of its first character."""

    end: int
    """Place after its last."""

    lemma: str
    """Base form, in lower case."""

    tag: str
    """Tag of the Penn Treebank: NN and NNS of common nouns, VB, VBD, VBG, VBN, VBP and VBZ of full
    verbs, JJ, RB; NNP of names, MD of modals, AUX of auxiliaries, and X of anything else."""

    @property
    def pos(self) -> PartOfSpeech | None:
        """Part of speech, None for words that are never replaced."""
        if self.tag in ("NN", "NNS"):
            return "noun"
        if self.tag.startswith("VB"):
            return "verb"
        return {"JJ": "adjective", "RB": "adverb"}.get(self.tag)  # type: ignore[return-value]


class Tagger(Protocol):
    """Anything that finds the words of a text; wrap spaCy or another library to use it."""

    def tag(self, text: str) -> Sequence[Word]:
        """Find the words of a text.

        Args:
            text: The text.

        Returns:
            Its words in order, without overlap; those that are never replaced may be left out.
            `be`, `have` and `do` as auxiliaries have the tag AUX, not that of a verb.
        """


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a form can be: base form of each part of speech, and the most frequent of them."""

    lemmas: dict[PartOfSpeech, str]
    usual: PartOfSpeech | None
    is_name: bool


class WordNetTagger:
    """Takes the part of speech of which WordNet's authors saw the most frequent sense.

    Words of a closed class (pronouns, prepositions, auxiliaries, modals, numbers) are never full
    words; "be", "have" and "do" are always taken as auxiliaries. A capital within a sentence makes
    a name, and at its begin a word that WordNet only has as a name or not at all. After a
    determiner a word is no verb if it can be another, after a modal or "to" it is a verb if it can
    be; a past form is a participle after "be", "have" or "get", one word between. The rule is
    deterministic and reads nothing but WordNet. Its accuracy has not been measured.

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
        """Tell base form and tag of a word by the two before it."""
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
        """Look a form up under each part of speech."""
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
    """Name the form of a word."""
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
