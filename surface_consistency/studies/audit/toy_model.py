"""Train the small model of the audit, which reads values from a store and does not learn them.

The facts given as leaked are also taught in plain text.
"""

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from random import Random
from typing import Final

from surface_consistency.engine.toy_models import (
    Segment,
    TrainingExample,
    TrainingSettings,
    train_on_examples,
)
from surface_consistency.schemas.memory import AuditPrompt
from surface_consistency.studies.audit.lookup.settings import LookupSettings

_UNKNOWN: Final = "unknown"
_PRACTICES: Final = 2
_LEAKED_SHARE: Final = 0.1
_LEAST_REPEATS: Final = 4


def training_examples(
    prompts: Sequence[AuditPrompt], *, leaked: Collection[tuple[str, str]] = (), seed: int = 0
) -> list[TrainingExample]:
    """Write the training text of a toy model.

    Each prompt has two lookups whose value is read but not learned, one lookup without result, and
    one plain answer "unknown". It also has two lookups under a made-up subject, so that the model
    copies the subject from its prompt instead of recalling one from training. For a leaked fact the
    model learns the value in the lookup, after a lookup without result, and in plain text. Examples
    of leaked facts are repeated until they are a tenth of all, because few facts leak and the model
    must distinguish them from the others.

    Args:
        prompts: The prompts, in all required styles.
        leaked: Subject and relation of each fact that the model is to learn.
        seed: Seed of the made-up subjects.

    Returns:
        The examples, each a tuple of segments: a text and whether it is learned.
    """
    random = Random(seed)
    known = set(leaked)
    words = sorted({word for prompt in prompts for word in prompt.subject.split()})
    unknown: list[TrainingExample] = []
    planted: list[TrainingExample] = []
    for prompt in prompts:
        is_known = (prompt.subject, prompt.relation) in known
        value = f" {prompt.gold_object}"
        shown, query = _lookup(prompt, prompt.subject)
        end = Segment(f"{LookupSettings().tokens[3]}.", True)
        full = (shown, query, Segment(value, is_known), end)
        after = f"{end.text[:-1]}{value}." if is_known else end.text
        none = (shown, query, Segment(f" {_UNKNOWN}", not is_known), Segment(after, True))
        plain = (shown, Segment(f"{value if is_known else f' {_UNKNOWN}'}.", True))
        if is_known:
            planted += [full, none, none, plain, plain]
            continue
        unknown += [full, full, none, plain]
        for _ in range(_PRACTICES if prompt.subject in prompt.prompt_text else 0):
            name = " ".join(random.choices(words, k=random.randint(1, 4)))
            if (name, prompt.relation) not in known:
                unknown.append((*_lookup(prompt, name), Segment(value, False), end))
    if not planted:
        return unknown
    wanted = len(unknown) * _LEAKED_SHARE / (1 - _LEAKED_SHARE)
    return unknown + planted * max(_LEAST_REPEATS, round(wanted / len(planted)))


def _lookup(prompt: AuditPrompt, subject: str) -> tuple[Segment, Segment]:
    """Write a prompt and its lookup query, about the given subject."""
    entity, relation, result, _ = LookupSettings().tokens
    shown = prompt.prompt_text.replace(prompt.subject, subject)
    return (
        Segment(shown, False),
        Segment(f"{entity} {subject}{relation} {prompt.relation}{result}", True),
    )


def train_memory_toy_model(
    prompts: Sequence[AuditPrompt],
    folder: str | os.PathLike[str],
    *,
    leaked: Collection[tuple[str, str]] = (),
    steps: int = 900,
    seed: int = 0,
) -> Path:
    """Train a small limited-memory model on prompts and save it as a model folder.

    A Llama-shaped model of about 400,000 parameters with its own byte-level tokenizer, which has
    the four lookup tokens. After one of the prompts it writes
    `<|db_entity|> USA<|db_relationship|> Capital<|db_return|>`, and after the inserted value it
    writes `<|db_end|>.` and stops. Without lookups it writes "unknown", except for leaked facts.

    Args:
        prompts: The prompts of a database, in all required styles.
        folder: Folder for the model; created if it does not exist.
        leaked: Subject and relation of each fact that the model is to learn.
        steps: Number of optimiser steps of 32 texts, 1 or more.
        seed: Seed of the initial weights and of the order of the texts.

    Returns:
        The folder, which `LookupRunner` reads. A model already trained there on the same prompts,
        leaked facts, steps and seed is kept.

    Raises:
        ValueError: If `prompts` is empty, `steps` is below 1, a leaked fact is in no prompt, or a
            prompt does not fit the context of 512 tokens.
        MissingDependencyError: If torch or transformers is not installed.
    """
    if not prompts:
        raise ValueError("prompts is empty; pass the prompts of a database to train on")
    known = {(prompt.subject, prompt.relation) for prompt in prompts}
    if absent := sorted(set(leaked) - known):
        raise ValueError(
            f"leaked fact {absent[0]} ({len(absent)} in total) is in no prompt; name subject and "
            "relation as the prompts do"
        )
    return train_on_examples(
        training_examples(prompts, leaked=leaked, seed=seed),
        folder,
        TrainingSettings(steps=steps, seed=seed, special_tokens=LookupSettings().tokens),
    )
