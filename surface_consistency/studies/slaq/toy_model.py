"""The small model of SLAQ: facts of topics, fewer of them in later slots."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Final

from surface_consistency.data.slaq_records import SlaqTopic
from surface_consistency.engine.toy_models import Segment, TrainingSettings, train_on_examples
from surface_consistency.schemas import Prompt
from surface_consistency.studies.slaq.prompts import SlaqPrompts
from surface_consistency.studies.slaq.records import PromptTarget

_UNKNOWN: Final = "unknown"
_HELD_OUT_SHARE: Final = 6
_LAST_SLOTS: Final = (1, 2, 3, 4, 5, 5)
_TOLD_FREELY: Final = 3
_TEMPLATE: Final = "{% for turn in messages %}{{ turn['content'] }}\n{% endfor %}Answer:"


def plan_memory(topics: Sequence[SlaqTopic], *, seed: int = 0) -> dict[str, int]:
    """Decide up to which slot of a long query each fact is known.

    Every sixth fact is not known at all. The others come back up to slot 1, 2, 3 or 4 or in every
    slot, the last twice as often, in an order drawn by the seed; asked alone they are all known.

    Args:
        topics: The topics.
        seed: Seed of the choice.

    Returns:
        By question id the last slot in which the fact is known, 0 to 5. With many facts the
        accuracy is 5/6 alone and in slot 1, then falls to 25/36, 20/36, 15/36 and 10/36.
    """
    random = Random(seed)
    facts = [question.id for topic in topics for question in topic.questions]
    random.shuffle(facts)
    held_out = set(facts[::_HELD_OUT_SHARE])
    taught = [fact for fact in facts if fact not in held_out]
    plan = {fact: _LAST_SLOTS[place % len(_LAST_SLOTS)] for place, fact in enumerate(taught)}
    return plan | dict.fromkeys(held_out, 0)


def planted_answer(topic: SlaqTopic, detail: PromptTarget, memory: Mapping[str, int]) -> str:
    """Write what the toy model shall answer to a prompt.

    Args:
        topic: The topic.
        detail: What the prompt asks for.
        memory: As from `plan_memory`.

    Returns:
        The reference answers of what is known and "unknown" for what is not; in slot order for a
        long query. A free answer tells the facts that come back up to slot 3 at least.
    """
    by_index = {question.index: question for question in topic.questions}
    answers = []
    if detail.form == "free":
        known = [q.answer for q in topic.questions if memory[q.id] >= _TOLD_FREELY]
        answers = [answer.rstrip(". ") for answer in known] or [_UNKNOWN]
    else:
        order = detail.order or [k for k, q in by_index.items() if q.id == detail.question_id]
        for slot, index in enumerate(order, start=1):
            question = by_index[index]
            is_known = slot <= memory[question.id]
            answers.append(question.answer.rstrip(". ") if is_known else _UNKNOWN)
    return "; ".join(answers) + "."


def train_slaq_toy_model(
    topics: Sequence[SlaqTopic],
    prompts: SlaqPrompts,
    folder: str | os.PathLike[str],
    *,
    memory: Mapping[str, int] | None = None,
    steps: int = 260,
    seed: int = 0,
) -> Path:
    """Train a small model on the prompts of a study and save it as a model folder.

    A Llama-shaped model of about 400,000 parameters with its own tokenizer, whose chat template
    writes the turn and "Answer:", as the completion style does: both styles ask it the same.

    Args:
        topics: The topics.
        prompts: The prompts that it will be asked, as from `slaq_prompts`.
        folder: Where to save; made if it is not there.
        memory: What it shall know, as from `plan_memory`; None draws it by the seed.
        steps: Optimiser steps of 32 texts, 1 or more.
        seed: Seed of the plan, of the initial weights and of the order of the texts.

    Returns:
        The folder, which `TransformersRunner` reads. A model that was trained there on the same
        prompts, answers, steps and seed is kept as it is.

    Raises:
        ValueError: If there is no prompt, or fewer than one step.
        MissingDependencyError: If torch or transformers is not installed.
    """
    if not prompts.prompts:
        raise ValueError("prompts holds no prompt; a toy model learns from the prompts of a study")
    by_id = {topic.id: topic for topic in topics}
    known = plan_memory(topics, seed=seed) if memory is None else memory
    examples = [
        (
            Segment(_text(prompt), False),
            Segment(" " + planted_answer(by_id[detail.topic_id], detail, known), True),
        )
        for prompt, detail in zip(prompts.prompts, prompts.details, strict=True)
    ]
    settings = TrainingSettings(
        steps=steps,
        seed=seed,
        context=2048,
        vocabulary_size=1_500,
        chat_template=_TEMPLATE,
    )
    return train_on_examples(examples, folder, settings)


def _text(prompt: Prompt) -> str:
    """Write a prompt as the toy model's chat template does."""
    if prompt.messages is None:
        return prompt.text or ""
    return "".join(f"{turn.content}\n" for turn in prompt.messages) + "Answer:"
