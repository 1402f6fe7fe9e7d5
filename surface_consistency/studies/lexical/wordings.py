"""Perturbed instances: their creation, the targets to score, and the pairs to compare."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

import pandas as pd

from surface_consistency.studies.lexical.perturbation.frequencies import (
    WordFrequency,
    corpus_frequencies,
    match_frequency,
)
from surface_consistency.studies.lexical.perturbation.perturb import candidate_synonyms, perturb_all
from surface_consistency.studies.lexical.perturbation.senses import SenseChooser
from surface_consistency.studies.lexical.perturbation.tagging import lemminflect_inflector
from surface_consistency.studies.lexical.perturbation.wordnet import WordNet
from surface_consistency.studies.lexical.prompts import read_neighbours
from surface_consistency.studies.lexical.quality import rouge_l
from surface_consistency.studies.lexical.records import BenchmarkInstance, PerturbedInstance
from surface_consistency.studies.lexical.settings import LexicalSettings

_ORIGINAL: Final = "original"
_ARMS: Final[tuple[Literal["frequent", "rarer"], ...]] = ("frequent", "rarer")
_NEIGHBOUR_SHARE: Final = 0.3

_Arms = Mapping[str, Mapping[tuple[str, int], PerturbedInstance]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalWordings:
    """Instances in the original words and in other words."""

    originals: Mapping[str, BenchmarkInstance]
    """The instances by fact."""

    perturbed: Sequence[PerturbedInstance]
    """Each draw of each instance in other words."""

    arms: _Arms
    """By arm of the control, fact and draw: the instance with the same words replaced by other
    synonyms; empty without control."""

    words: Mapping[str, list[str]]
    """By fact: the replaced words and all their candidate synonyms."""

    frequency: WordFrequency
    """Frequency of words."""

    lexicon: WordNet
    """WordNet."""

    @property
    def instances(self) -> dict[str, BenchmarkInstance]:
        """All instances in all wordings, by the name of their target."""
        named = {f"{fact}/{_ORIGINAL}": instance for fact, instance in self.originals.items()}
        named |= {f"{_fact(item.instance)}/{item.draw}": item.instance for item in self.perturbed}
        for arm, of_arm in self.arms.items():
            named |= {f"{fact}/{draw}/{arm}": p.instance for (fact, draw), p in of_arm.items()}
        return named

    def targets(self) -> pd.DataFrame:
        """List the targets to score, one row per instance and wording; see `Plan.items`."""
        return pd.DataFrame(
            [
                {
                    "target_id": name,
                    "prompt_id": name,
                    "references": [instance.options[instance.correct]],
                    "item": _fact(instance),
                    "question": instance.context,
                    "correct": instance.correct,
                    "options": list(instance.options),
                    "texts": list(instance.texts),
                    "words": self.words.get(_fact(instance), [])
                    if name.endswith(f"/{_ORIGINAL}")
                    else [],
                }
                for name, instance in self.instances.items()
            ]
        )

    def pairs(self) -> pd.DataFrame:
        """List the pairs, one row per instance and draw; see `Plan.pairs`."""
        return pd.DataFrame(
            [
                _pair(self.originals[_fact(item.instance)], item, self.arms)
                for item in self.perturbed
            ]
        )

    def quality(self) -> pd.DataFrame:
        """Count the replacements and average the similarity of the wordings, by task and draw."""
        rows = [
            {
                "task": item.instance.task,
                "draw": item.draw,
                "is_unchanged": not item.edits,
                "is_broken": item.is_broken,
                "n_edits": len(item.edits),
                "rouge_l": _rouge_l(self.originals[_fact(item.instance)], item.instance),
            }
            for item in self.perturbed
        ]
        return (
            pd.DataFrame(rows)
            .groupby(["task", "draw"], sort=False)
            .agg(
                n=("n_edits", "size"),
                n_unchanged=("is_unchanged", "sum"),
                n_broken=("is_broken", "sum"),
                edits=("n_edits", "mean"),
                rouge_l=("rouge_l", "mean"),
            )
            .reset_index()
        )

    def replaced_words(self) -> pd.DataFrame:
        """Count each replaced word with its synonym, with the frequencies of both."""
        counted = Counter(
            (edit.lemma, edit.synonym, edit.pos) for item in self.perturbed for edit in item.edits
        )
        return pd.DataFrame(
            [
                (lemma, pos, synonym, n, self.frequency(lemma, pos), self.frequency(synonym, pos))
                for (lemma, synonym, pos), n in counted.items()
            ],
            columns=["word", "pos", "synonym", "n", "frequency", "synonym_frequency"],
        )


def reword(
    instances: Sequence[BenchmarkInstance], settings: LexicalSettings, senses: SenseChooser
) -> LexicalWordings:
    """Replace words of instances by synonyms.

    Args:
        instances: The instances.
        settings: The options of the study.
        senses: Chooser of the senses of words.

    Returns:
        The wordings.

    Raises:
        SourceNotFoundError: If WordNet or a file of counts is missing.
        MissingDependencyError: If lemminflect is not installed.
    """
    lexicon = WordNet(settings.wordnet)
    frequency = corpus_frequencies(settings.word_counts or lexicon)
    of_instances = partial(
        perturb_all,
        instances,
        lexicon=lexicon,
        inflect=lemminflect_inflector(),
        pos=settings.pos,
        multi_word=settings.multi_word,
        seed=settings.seed,
        senses=senses,
        share=settings.share,
        may_keep=settings.may_keep,
        targets=settings.targets,
        draws=range(settings.draws),
    )
    perturbed = list(of_instances())
    arms: dict[str, dict[tuple[str, int], PerturbedInstance]] = {}
    if settings.control:
        for arm in _ARMS:
            made = of_instances(synonyms=match_frequency(frequency, arm, within=settings.within))
            arms[arm] = {(_fact(item.instance), item.draw): item for item in made if item.edits}
    return LexicalWordings(
        originals={_fact(instance): instance for instance in instances},
        perturbed=perturbed,
        arms=arms,
        words=_words(perturbed, lexicon, multi_word=settings.multi_word),
        frequency=frequency,
        lexicon=lexicon,
    )


def neighbour_texts(
    instances: Sequence[BenchmarkInstance], settings: LexicalSettings, lexicon: WordNet
) -> dict[str, tuple[str, ...]]:
    """Return the neighbours of the instances' texts: stored ones, or with some words replaced.

    Args:
        instances: The instances.
        settings: The options of the study.
        lexicon: WordNet.

    Returns:
        Neighbours by text.

    Raises:
        SourceNotFoundError: If the file of neighbours is missing.
    """
    if settings.neighbour_file is not None:
        return read_neighbours(settings.neighbour_file)
    texts = list(dict.fromkeys(text for instance in instances for text in instance.texts))
    whole = [
        # The text is the context; the option is a placeholder without a replaceable word.
        BenchmarkInstance(
            id=str(number), task="text", kind="formal", context=text, options=("-",), correct=0
        )
        for number, text in enumerate(texts)
    ]
    neighbours: dict[str, dict[str, None]] = {text: {} for text in texts}
    draws = range(settings.neighbours)
    # In short texts for which no word was drawn, all words are replaced.
    for share in (_NEIGHBOUR_SHARE, 1.0) if settings.neighbours else ():
        lacking = [item for item in whole if not neighbours[item.context]]
        reworded = perturb_all(
            lacking,
            lexicon=lexicon,
            inflect=lemminflect_inflector(),
            pos=settings.pos,
            multi_word=settings.multi_word,
            seed=settings.seed,
            share=share,
            draws=draws,
        )
        for item in reworded:
            text = texts[int(item.instance.id)]
            if item.instance.context != text:
                neighbours[text][item.instance.context] = None
    return {text: tuple(others) for text, others in neighbours.items()}


def _fact(instance: BenchmarkInstance) -> str:
    """Return the name of an instance, unique over all tasks."""
    return f"{instance.task}/{instance.id}"


def _pair(
    original: BenchmarkInstance, perturbed: PerturbedInstance, arms: _Arms
) -> dict[str, object]:
    """Describe a pair, and the control of its words if there is one."""
    replaced = sorted({edit.pos for edit in perturbed.edits})
    fact = _fact(original)
    control: dict[str, object] = {"n_control_edits": None}
    both = [arms.get(arm, {}).get((fact, perturbed.draw)) for arm in _ARMS]
    controls = [item for item in both if item is not None]
    # The required inflected form of one of the two synonyms may not exist.
    is_complete = len(controls) == len(both) and len({_places(item) for item in controls}) == 1
    if arms:
        control["n_control_edits"] = len(controls[0].edits) if is_complete else 0
    for arm, item in zip(_ARMS, both, strict=True):
        has_arm = is_complete and item is not None
        control[f"{arm}_target"] = f"{fact}/{perturbed.draw}/{arm}" if has_arm else None
        control[f"{arm}_surface"] = _surface(item.instance) if item and is_complete else None
    return {
        **control,
        "pair": f"{fact}/{perturbed.draw}",
        "item": fact,
        "context": original.context_id,
        "first_target": f"{fact}/{_ORIGINAL}",
        "second_target": f"{fact}/{perturbed.draw}",
        "task": original.task,
        "kind": original.kind,
        "group": original.group,
        "draw": perturbed.draw,
        "replaced": " and ".join(replaced) or "none",
        "n_edits": len(perturbed.edits),
        "is_broken": perturbed.is_broken,
        "rouge_l": _rouge_l(original, perturbed.instance),
        "first_surface": _surface(original),
        "second_surface": _surface(perturbed.instance),
    }


def _places(perturbed: PerturbedInstance) -> frozenset[tuple[int, int]]:
    """Return the positions of the replaced words."""
    return frozenset((edit.part, edit.start) for edit in perturbed.edits)


def _surface(instance: BenchmarkInstance) -> str:
    """Write context and options on one line."""
    return " | ".join(part for part in instance.parts if part)


def _rouge_l(original: BenchmarkInstance, perturbed: BenchmarkInstance) -> float:
    """Compare the texts with the correct option."""
    return rouge_l(original.texts[original.correct], perturbed.texts[perturbed.correct])


def _words(
    perturbed: Iterable[PerturbedInstance], lexicon: WordNet, *, multi_word: bool
) -> dict[str, list[str]]:
    """List by instance the replaced words and all their candidate synonyms."""
    words_of: dict[str, dict[str, None]] = {}
    known: dict[tuple[str, str], list[str]] = {}
    for item in perturbed:
        words = words_of.setdefault(_fact(item.instance), {})
        for edit in item.edits:
            key = (edit.lemma, edit.synset)
            if key not in known:
                sense = next(
                    sense
                    for sense in lexicon.synsets(edit.lemma, edit.pos)
                    if sense.id == edit.synset
                )
                known[key] = candidate_synonyms(sense, edit.pos, multi_word=multi_word)
            words |= dict.fromkeys([edit.lemma, *known[key]])
    return {fact: list(words) for fact, words in words_of.items()}
