"""The small model of SLAQ, which states fewer facts in later slots."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Final

import pandas as pd

from surface_consistency.engine.toy_models import Segment, TrainingSettings, train_on_examples
from surface_consistency.schemas import Prompt
from surface_consistency.studies.slaq.prompts import slaq_prompts
from surface_consistency.studies.slaq.settings import SlaqSettings

_UNKNOWN: Final = "unknown"
_HELD_OUT_EVERY: Final = 6
_LAST_SLOTS: Final = (1, 2, 3, 4, 5, 5)
_LEAST_SLOT_OF_FREE: Final = 3
_TEMPLATE: Final = "{% for turn in messages %}{{ turn['content'] }}\n{% endfor %}Answer:"


def plan_memory(fact_ids: Iterable[str], *, seed: int = 0) -> dict[str, int]:
    """Plan up to which slot of a long query the model is trained to state each fact.

    Every sixth fact is held out. The last slot of the others is 1, 2, 3, 4 or 5, in an order drawn
    by the seed; 5, which is every slot, is twice as frequent as each other. These facts are all
    stated in short answers.

    Args:
        fact_ids: The facts.
        seed: Seed of the choice.

    Returns:
        By fact the last slot in which it is stated, 0 to 5. With many facts the accuracy is 5/6
        in short answers and in slot 1, then falls to 25/36, 20/36, 15/36 and 10/36.
    """
    random = Random(seed)
    facts = list(fact_ids)
    random.shuffle(facts)
    held_out = set(facts[::_HELD_OUT_EVERY])
    taught = [fact for fact in facts if fact not in held_out]
    plan = {fact: _LAST_SLOTS[place % len(_LAST_SLOTS)] for place, fact in enumerate(taught)}
    return plan | dict.fromkeys(held_out, 0)


def planted_answer(facts: pd.DataFrame, order: Sequence[int], memory: Mapping[str, int]) -> str:
    """Write the answer to a prompt on which the toy model is trained.

    Args:
        facts: The five facts of the topic, columns of `data.slaq.TOPIC_COLUMNS`.
        order: Index (1 to 5) of the question in each slot; empty for a free prompt.
        memory: As from `plan_memory`.

    Returns:
        The reference answers of the facts that are stated and "unknown" for the others, in slot
        order. A free answer states the facts whose last slot is at least 3.
    """
    answers = dict(zip(facts["question_index"], facts["answer"].str.rstrip(". "), strict=True))
    known = dict(zip(facts["question_index"], facts["item"].map(memory), strict=True))
    if order:
        stated = [
            answers[index] if slot <= known[index] else _UNKNOWN
            for slot, index in enumerate(order, start=1)
        ]
    else:
        stated = [t for index, t in answers.items() if known[index] >= _LEAST_SLOT_OF_FREE]
    return "; ".join(stated or [_UNKNOWN]) + "."


def train_slaq_toy_model(
    rows: pd.DataFrame,
    settings: SlaqSettings,
    folder: str | os.PathLike[str],
    *,
    steps: int = 260,
    seed: int = 0,
) -> Path:
    """Train a small model on the prompts of a study and save it as a model folder.

    The model has the architecture of Llama, about 400,000 parameters and its own tokenizer. Its
    chat template writes the turn and "Answer:", so chat and completion prompts give the same text.

    Args:
        rows: The facts of the run, as for `slaq_prompts`.
        settings: The settings of the run.
        folder: Output folder; created if it does not exist.
        steps: Optimiser steps of 32 texts, 1 or more.
        seed: Seed of `plan_memory`, of the initial weights and of the order of the texts.

    Returns:
        The folder, which `TransformersRunner` reads. An existing model in the folder with the same
        prompts, answers, steps and seed is not trained again.

    Raises:
        ValueError: If `steps` is below 1.
        MissingDependencyError: If torch or transformers is not installed.
    """
    known = plan_memory(rows["item"], seed=seed)
    topics = dict(list(rows.groupby("topic_id")))
    prompts, plan = slaq_prompts(rows, settings)
    examples = [
        (
            Segment(_text(prompt), False),
            Segment(" " + planted_answer(topics[topic_id], order, known), True),
        )
        for prompt, topic_id, order in zip(prompts, plan["topic_id"], plan["order"], strict=True)
    ]
    training = TrainingSettings(
        steps=steps, seed=seed, context=2048, vocabulary_size=1_500, chat_template=_TEMPLATE
    )
    return train_on_examples(examples, folder, training)


def _text(prompt: Prompt) -> str:
    """Write a prompt as the toy model's chat template does."""
    if prompt.messages is None:
        return prompt.text or ""
    return "".join(f"{turn.content}\n" for turn in prompt.messages) + "Answer:"
