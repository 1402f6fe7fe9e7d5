"""Replacement of words of benchmark instances by synonyms."""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from surface_consistency.studies.lexical.perturbation import tagging
from surface_consistency.studies.lexical.perturbation.senses import (
    FirstSense,
    SenseChooser,
    SenseQuestion,
)
from surface_consistency.studies.lexical.perturbation.wordnet import Synset, WordNet
from surface_consistency.studies.lexical.records import (
    BenchmarkInstance,
    Edit,
    PartOfSpeech,
    PerturbedInstance,
)

_VOWELS: Final = frozenset("aeiou")
_WHOLE: Final = float(2**64)

_Key = tuple[str, PartOfSpeech]

_Synonyms = Callable[[str, PartOfSpeech, Sequence[str]], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """Rules of the replacement of words."""

    inflect: tagging.Inflector
    share: float
    may_keep: bool
    multi_word: bool
    synonyms: _Synonyms | None
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The replaceable words of an instance, with their part, and the sense of each lemma."""

    places: list[tuple[int, tagging.Word]]
    senses: dict[_Key, Synset]


def perturb_all(
    instances: Sequence[BenchmarkInstance],
    *,
    lexicon: WordNet,
    tagger: tagging.Tagger | None = None,
    senses: SenseChooser | None = None,
    inflect: tagging.Inflector | None = None,
    pos: Collection[PartOfSpeech] = ("noun", "verb"),
    share: float = 1.0,
    may_keep: bool = False,
    multi_word: bool = False,
    targets: bool = False,
    synonyms: _Synonyms | None = None,
    seed: int = 0,
    draws: Collection[int] = (0,),
) -> Iterator[PerturbedInstance]:
    """Replace words of instances by synonyms; tagging and the choice of senses are done once.

    Args:
        instances: The instances.
        lexicon: WordNet.
        tagger: Tagger that finds the words; `WordNetTagger` if None.
        senses: Chooser of their senses; the most frequent one if None.
        inflect: Function that inflects a synonym like the original word; lemminflect if None.
        pos: Parts of speech to replace.
        share: Proportion of the lemmas with a synonym that are replaced, in (0, 1].
        may_keep: Whether the draw includes the original lemma (not stated in the paper).
        multi_word: Whether a lemma of several words may replace a word.
        targets: Whether the word of a single option, which is to be predicted, is also replaced.
        synonyms: Function that selects the synonyms of a lemma and part of speech for the draw,
            such as that of `match_frequency`; all of them if None. A word is not replaced if the
            selection is empty.
        seed: Seed of the draws.
        draws: Numbers of the draws.

    Yields:
        One perturbed instance per instance and draw, the draws of an instance together. A lemma is
        replaced by the same synonym everywhere in the instance, in all its forms, so the options
        differ in the same positions as before. If a word occurs only in some options and is
        replaced there, the pair is marked as broken. "a" and "an" before a replaced word are
        adapted to its first letter.

    Raises:
        ValueError: If `share` is out of range.
        MissingDependencyError: If `inflect` is None and lemminflect is not installed.

    References:
        Section 5 and appendix A.2 of the study of lexical popularity.
    """
    if not 0.0 < share <= 1.0:
        raise ValueError(f"share must be above 0 and at most 1, got {share}")
    rules = _Rules(
        inflect=inflect or tagging.lemminflect_inflector(),
        share=share,
        may_keep=may_keep,
        multi_word=multi_word,
        synonyms=synonyms,
        seed=seed,
    )
    tagger = tagger or tagging.WordNetTagger(lexicon)
    of_instances: list[tuple[BenchmarkInstance, list[tuple[int, tagging.Word]], int]] = []
    questions: list[tuple[_Key, SenseQuestion]] = []
    for instance in instances:
        places, own = _replaceable(instance, lexicon, tagger, frozenset(pos), targets=targets)
        of_instances.append((instance, places, len(own)))
        questions += own.items()
    chosen = (senses or FirstSense()).choose([question for _, question in questions])
    if len(chosen) != len(questions):
        raise ValueError(
            f"a chooser of senses must return one sense per question, got {len(chosen)} for "
            f"{len(questions)}"
        )
    start = 0
    for instance, places, n_own in of_instances:
        keys = [key for key, _ in questions[start : start + n_own]]
        chosen_senses = zip(keys, chosen[start : start + n_own], strict=True)
        start += n_own
        words = _Found(places=places, senses={key: sense for key, sense in chosen_senses if sense})
        for draw in draws:
            yield _perturbed(instance, words, rules, draw)


def _replaceable(
    instance: BenchmarkInstance,
    lexicon: WordNet,
    tagger: tagging.Tagger,
    pos: frozenset[PartOfSpeech],
    *,
    targets: bool,
) -> tuple[list[tuple[int, tagging.Word]], dict[_Key, SenseQuestion]]:
    """Find the replaceable words, and write one question of sense per lemma, at its first word."""
    parts = instance.parts if len(instance.options) > 1 or targets else (instance.context,)
    places: list[tuple[int, tagging.Word]] = []
    questions: dict[_Key, SenseQuestion] = {}
    for part, text in enumerate(parts):
        for word in tagger.tag(text) if text else ():
            kind = word.pos
            if kind not in pos or kind is None:
                continue
            key = (word.lemma, kind)
            if key not in questions:
                synsets = lexicon.synsets(word.lemma, kind)
                if not synsets:
                    continue
                questions[key] = SenseQuestion(
                    text=text, start=word.start, end=word.end, synsets=synsets
                )
            places.append((part, word))
    return places, questions


def _perturbed(
    instance: BenchmarkInstance, words: _Found, rules: _Rules, draw: int
) -> PerturbedInstance:
    """Replace the words of an instance in one draw."""
    synonyms = {
        key: synonym
        for key, sense in words.senses.items()
        if (synonym := _drawn(key, sense, f"{rules.seed}\n{draw}\n{instance.id}", rules))
    }
    edits = list(_edits(instance, words, synonyms, rules))
    parts = _applied(instance.parts, edits)
    if len(set(parts[1:])) < len(set(instance.options)):
        # Two options contained synonyms of each other and are now equal.
        edits = [edit for edit in edits if edit.part == 0]
        parts = _applied(instance.parts, edits)
    perturbed = instance.model_copy(update={"context": parts[0], "options": parts[1:]})
    return PerturbedInstance(
        instance=perturbed, draw=draw, edits=tuple(edits), is_broken=_is_broken(instance, edits)
    )


def _drawn(key: _Key, sense: Synset, salt: str, rules: _Rules) -> str | None:
    """Draw the synonym of a lemma from `candidate_synonyms`; None to keep the lemma."""
    lemma, pos = key
    candidates = [
        other
        for other in candidate_synonyms(sense, pos, multi_word=rules.multi_word)
        if rules.may_keep or other != lemma
    ]
    if candidates and rules.synonyms is not None:
        candidates = list(rules.synonyms(lemma, pos, candidates))
    if not candidates:
        return None
    digest = hashlib.blake2b(f"{salt}\n{lemma}\n{pos}".encode(), digest_size=16).digest()
    if int.from_bytes(digest[8:]) / _WHOLE >= rules.share:
        return None
    chosen = candidates[int.from_bytes(digest[:8]) % len(candidates)]
    return None if chosen == lemma else chosen


def candidate_synonyms(sense: Synset, pos: PartOfSpeech, *, multi_word: bool = False) -> list[str]:
    """List the lemmas of a sense that may replace a word, without names, numbers and symbols.

    Args:
        sense: The sense.
        pos: Its part of speech; lemmas of at most two letters, mostly units, are excluded unless it
            is a verb.
        multi_word: Whether lemmas of several words are included.

    Returns:
        The lemmas, including that of the word.
    """
    return [
        lemma
        for lemma in sense.lemmas
        if (multi_word or " " not in lemma)
        and lemma.replace(" ", "").replace("-", "").isalpha()
        and lemma == lemma.lower()
        and (len(lemma) > 2 or pos == "verb")
    ]


def _edits(
    instance: BenchmarkInstance, words: _Found, synonyms: dict[_Key, str], rules: _Rules
) -> Iterator[Edit]:
    """Yield the edit of each replaced word, with the inflected synonym."""
    parts = instance.parts
    for part, word in words.places:
        kind = word.pos
        synonym = synonyms.get((word.lemma, kind)) if kind else None
        if kind is None or synonym is None:
            continue
        original = parts[part][word.start : word.end]
        form = rules.inflect(synonym, word.tag)
        if form is None:
            continue
        replacement = _cased(form, original)
        if replacement != original:
            yield Edit(
                part=part,
                start=word.start,
                original=original,
                replacement=replacement,
                lemma=word.lemma,
                synonym=synonym,
                pos=kind,
                synset=words.senses[word.lemma, kind].id,
            )


def _applied(parts: Sequence[str], edits: Sequence[Edit]) -> tuple[str, ...]:
    """Return the parts with their words replaced."""
    texts = []
    for number, text in enumerate(parts):
        pieces, last = [], 0
        for edit in edits:
            if edit.part == number:
                pieces += [_with_article(text[last : edit.start], edit), edit.replacement]
                last = edit.start + len(edit.original)
        texts.append("".join([*pieces, text[last:]]))
    return tuple(texts)


def _with_article(before: str, edit: Edit) -> str:
    """Adapt "a" or "an" directly before a replaced word to its first letter."""
    _, _, article = before.removesuffix(" ").rpartition(" ")
    if not before.endswith(" ") or article.lower() not in ("a", "an"):
        return before
    was, now = edit.original[0].lower() in _VOWELS, edit.replacement[0].lower() in _VOWELS
    if was == now:
        return before
    return f"{before[: len(before) - len(article) - 1]}{article[0]}{'n' if now else ''} "


def _cased(form: str, original: str) -> str:
    """Capitalise a form like the word that it replaces."""
    if len(original) > 1 and original.isupper():
        return form.upper()
    return form[0].upper() + form[1:] if original[0].isupper() else form


def _is_broken(instance: BenchmarkInstance, edits: Sequence[Edit]) -> bool:
    """Return whether the options have different replacements."""
    if len(instance.options) < 2:
        return False
    replaced = [
        Counter((edit.lemma, edit.pos) for edit in edits if edit.part == number)
        for number in range(1, len(instance.options) + 1)
    ]
    return any(counts != replaced[0] for counts in replaced[1:])
