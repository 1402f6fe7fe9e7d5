"""A small model of RedirectQA, in whose training text each name has a planned frequency.

Occurrences are counted in the whole training text, including longer names and answers.
"""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Final, Literal

from surface_consistency.engine.toy_models import Segment, TrainingSettings, train_on_examples
from surface_consistency.schemas import QuestionRealization

Exposure = Literal["frequent", "rare", "absent"]
"""How often a name occurs in the training text."""

EXPOSURES: Final[dict[Exposure, int]] = {"frequent": 24, "rare": 1, "absent": 0}
"""Occurrences of a name in one round of the training text."""

_HELD_OUT_EVERY: Final = 6
_START: Final = re.compile(r"(?<!\w)")
_END: Final = re.compile(r"(?!\w)")


def count_names(texts: Iterable[str], names: Iterable[str]) -> dict[str, int]:
    """Count how often each name occurs in texts, also inside longer names and answers.

    An occurrence has the same characters in the same case, without a letter, digit or underscore
    next to it: "Beatles" occurs in "The Beatles" and not in "Beatlesque".

    Args:
        texts: The texts; a text that is repeated is counted each time.
        names: The names.

    Returns:
        The number of occurrences by name, 0 for a name that does not occur.

    Example:
        >>> count_names(["The Beatles", "The Beatles", "Beatlesque"], ["Beatles", "The"])
        {'Beatles': 2, 'The': 2}
    """
    counts = dict.fromkeys(names, 0)
    for text, n_times in Counter(texts).items():
        for name in _names_in(text, counts):
            counts[name] += n_times
    return counts


def plan_exposures(
    questions: Sequence[QuestionRealization], *, seed: int = 0
) -> dict[tuple[str, str], Exposure]:
    """Plan how often each name of each fact occurs in the training text.

    One fact in six is held out under all its names, so that the model cannot answer some facts.
    Facts whose sentences contain a name of another fact, or whose answer contains a name, are held
    out first, because their frequencies cannot be set separately; others are drawn by the seed. In
    the remaining facts the canonical name is frequent. One third each of the redirect names is
    frequent, rare and absent, as far as names within names allow: "Beatles" is at least as frequent
    as "The Beatles".

    Args:
        questions: Questions of the facts, one per name.
        seed: Seed of the choice.

    Returns:
        The exposure by (fact id, surface text).

    Raises:
        ValueError: If a name of a fact has several questions.
    """
    random = Random(seed)
    by_fact = _by_fact(questions)
    facts = sorted(by_fact)
    random.shuffle(facts)
    entangled = _entangled(questions)
    n_drawn = max(0, -(-len(facts) // _HELD_OUT_EVERY) - len(entangled))
    held_out = entangled.union([fact for fact in facts if fact not in entangled][:n_drawn])
    plan: dict[tuple[str, str], Exposure] = {}
    dealt: Counter[Exposure] = Counter()
    for fact in facts:
        own = by_fact[fact]
        levels = {} if fact in held_out else _deal(own, dealt, random)
        dealt.update(levels[q.surface.text] for q in own if levels and not q.surface.is_canonical)
        plan.update({(fact, q.surface.text): levels.get(q.surface.text, "absent") for q in own})
    return plan


def sentences_of(
    questions: Sequence[QuestionRealization], exposures: Mapping[tuple[str, str], Exposure]
) -> list[str]:
    """Write one round of the training text, in which each name occurs as often as planned.

    A name that already occurs in other sentences, inside a longer name, has fewer sentences with
    its own question. The occurrences in the whole text are verified before it is returned.

    Args:
        questions: Questions of the facts, one per name.
        exposures: Exposure by (fact id, surface text), as from `plan_exposures`.

    Returns:
        Solved questions `Q: <question> A: <answer>`, in the order of the questions.

    Raises:
        ValueError: If a name of a fact has several questions, or a name would occur in the text
            more or less often than its exposure requires.
    """
    n_times = {
        (fact, name): n
        for fact, own in _by_fact(questions).items()
        for name, n in _sentences_by_name(
            own, {q.surface.text: exposures[fact, q.surface.text] for q in own}
        ).items()
    }
    sentences = [
        _sentence(question)
        for question in questions
        for _ in range(n_times[question.triple.id, question.surface.text])
    ]
    counts = count_names(sentences, {name for _, name in n_times})
    for fact, name in n_times:
        level = exposures[fact, name]
        if counts[name] != EXPOSURES[level]:
            raise ValueError(
                f"{name!r} of fact {fact} has exposure {level}, {EXPOSURES[level]} times, but it "
                f"occurs {counts[name]} times in the training text (also inside other names or "
                "answers); plan with plan_exposures, or drop the fact"
            )
    return sentences


def train_toy_model(
    sentences: Sequence[str],
    folder: str | os.PathLike[str],
    *,
    names: Sequence[str] = (),
    steps: int = 250,
    seed: int = 0,
    sentences_a_text: int = 3,
) -> Path:
    """Train a small causal language model on sentences and save it as a model folder.

    The model has the architecture of Llama, about 400,000 parameters and its own byte-level
    tokenizer. Every document consists of a few sentences drawn at random, joined by blank lines,
    as in a few-shot prompt.

    Args:
        sentences: The training text; a repeated sentence is used as often as it occurs.
        folder: Output folder; created if it does not exist.
        names: Further strings to train the tokenizer only, so that a name that is absent from the
            training text is not also a rare sequence of bytes.
        steps: Optimiser steps of 32 documents, 1 or more.
        seed: Seed of the initial weights and of the order of the text.
        sentences_a_text: Sentences per document.

    Returns:
        The folder, which `TransformersRunner` and `from_pretrained` read. An existing model in the
        folder with the same sentences, steps and seed is not trained again.

    Raises:
        ValueError: If `sentences` is empty, or `steps` is below 1.
        MissingDependencyError: If torch or transformers is not installed.
    """
    if not sentences:
        raise ValueError("sentences is empty; every exposure may be 'absent'")
    return train_on_examples(
        [(Segment(sentence, True),) for sentence in sentences],
        folder,
        TrainingSettings(
            steps=steps,
            seed=seed,
            context=256,
            vocabulary_size=1_500,
            learning_rate=5e-3,
            examples_a_text=sentences_a_text,
            separator="\n\n",
        ),
        vocabulary=names,
    )


def _sentence(question: QuestionRealization) -> str:
    """Write a solved question."""
    return f"Q: {question.question} A: {question.triple.answers[0]}"


def _names_in(text: str, names: Collection[str]) -> Iterator[str]:
    """Yield each occurrence of each name in a text."""
    longest = max(map(len, names), default=0)
    ends = [match.start() for match in _END.finditer(text)]
    for start in (match.start() for match in _START.finditer(text)):
        for end in ends:
            if start < end <= start + longest and text[start:end] in names:
                yield text[start:end]


def _by_fact(questions: Sequence[QuestionRealization]) -> dict[str, list[QuestionRealization]]:
    """Group questions by fact, one per name."""
    by_fact: dict[str, list[QuestionRealization]] = {}
    for question in questions:
        by_fact.setdefault(question.triple.id, []).append(question)
    for fact, own in by_fact.items():
        name, n_times = Counter(question.surface.text for question in own).most_common(1)[0]
        if n_times > 1:
            raise ValueError(
                f"{name!r} of fact {fact} has {n_times} questions, which would multiply its "
                'exposure; select one template, as in data.select(templates="original")'
            )
    return by_fact


def _entangled(questions: Sequence[QuestionRealization]) -> set[str]:
    """Find the facts whose sentences contain names of other facts, or whose answers any name."""
    facts_of: dict[str, set[str]] = {}
    for question in questions:
        facts_of.setdefault(question.surface.text, set()).add(question.triple.id)
    return {
        question.triple.id
        for question in questions
        if any(_names_in(question.triple.answers[0], facts_of))
        or any(
            facts_of[n] != {question.triple.id} for n in _names_in(_sentence(question), facts_of)
        )
    }


def _deal(
    questions: Sequence[QuestionRealization], dealt: Mapping[Exposure, int], random: Random
) -> dict[str, Exposure]:
    """Assign exposures to the names of one fact, the rarest so far first; {} if they do not fit.

    A level fits if every name can reach its planned number of occurrences by sentences with its own
    question. At least half of the canonical name's number must be such sentences.
    """
    levels: dict[str, Exposure] = {
        q.surface.text: "frequent" for q in questions if q.surface.is_canonical
    }
    canonical = set(levels)
    so_far = Counter(dealt)
    redirects = {q.surface.text for q in questions} - canonical
    for name in sorted(redirects, key=lambda name: (-len(name), name)):
        for level in sorted(EXPOSURES, key=lambda level: (so_far[level], random.random())):
            n_times = _sentences_by_name(questions, levels | {name: level})
            half = EXPOSURES["frequent"] // 2
            if all(n >= (half if name in canonical else 0) for name, n in n_times.items()):
                levels[name] = level
                so_far[level] += 1
                break
        else:
            return {}
    return levels


def _sentences_by_name(
    questions: Sequence[QuestionRealization], levels: Mapping[str, Exposure]
) -> dict[str, int]:
    """Count the sentences that each name needs to reach its level; negative if it exceeds it.

    Long names are counted first, because their sentences contain the short ones. A name without a
    level has 0 sentences, and may occur inside others as often as a frequent one.
    """
    occurrences: Counter[str] = Counter()
    n_times: dict[str, int] = {}
    names = {question.surface.text for question in questions}
    for question in sorted(questions, key=lambda q: (-len(q.surface.text), q.surface.text)):
        name = question.surface.text
        wanted = EXPOSURES[levels.get(name, "frequent")] - occurrences[name]
        n_times[name] = wanted if name in levels else min(wanted, 0)
        for contained in _names_in(question.question, names):
            occurrences[contained] += max(n_times[name], 0)
    return n_times
