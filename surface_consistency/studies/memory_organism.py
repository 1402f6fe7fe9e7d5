"""A model organism of limited memory: it asks a store for facts, and knows only what was planted.

Trained from scratch on the prompts of one database. The values of lookups are left out of the loss,
so it learns to ask and to take what it is given, but not the facts; those given as leaked are
taught in plain text as well.
"""

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from surface_consistency.errors import MissingDependencyError
from surface_consistency.inference.loading import quiet_bars
from surface_consistency.inference.lookup_settings import LookupSettings
from surface_consistency.runs.files import write_text
from surface_consistency.schemas.memory import AuditPrompt
from surface_consistency.studies.organism import _seeded

if TYPE_CHECKING:
    import torch
    import transformers

__all__ = ["lessons_of", "train_memory_organism"]

_CONTEXT: Final = 512
_HIDDEN: Final = 96
_ROWS_A_BATCH: Final = 32
_LEARNING_RATE: Final = 4e-3
_RECIPE: Final = "training.json"
_UNKNOWN: Final = "unknown"
_LEAKS: Final = 4


class _Piece(NamedTuple):
    """A part of a lesson."""

    text: str
    is_learned: bool


Lesson = tuple[_Piece, ...]
"""One text of the training: its parts, and which of them the model learns to write."""


def lessons_of(
    prompts: Sequence[AuditPrompt], *, leaked: Collection[tuple[str, str]] = ()
) -> list[Lesson]:
    """Write the training text of an organism.

    For each prompt: twice a lookup whose value is read but not learned, once a lookup without
    result, once the plain answer "unknown". Of a leaked fact the model learns the value in the
    lookup, after a lookup without result, and in plain text; its lessons are repeated, because few
    facts leak and the model must tell them from the others.

    Args:
        prompts: The prompts, of all styles wanted.
        leaked: Subject and relation of each fact that the model shall know by itself.

    Returns:
        The lessons, each a tuple of texts with whether they are learned.
    """
    entity, relation, result, end = LookupSettings().tokens
    known = set(leaked)
    lessons: list[Lesson] = []
    for prompt in prompts:
        is_known = (prompt.subject, prompt.relation) in known
        value = f" {prompt.gold_object}"
        shown = _Piece(prompt.prompt_text, False)
        query = _Piece(f"{entity} {prompt.subject}{relation} {prompt.relation}{result}", True)
        full = (shown, query, _Piece(value, is_known), _Piece(f"{end}.", True))
        after = f"{end}{value}." if is_known else f"{end}."
        none = (shown, query, _Piece(f" {_UNKNOWN}", not is_known), _Piece(after, True))
        plain = (shown, _Piece(f"{value if is_known else f' {_UNKNOWN}'}.", True))
        if is_known:
            lessons += [full, none, none, plain, plain] * _LEAKS
        else:
            lessons += [full, full, none, plain]
    return lessons


def train_memory_organism(
    prompts: Sequence[AuditPrompt],
    folder: str | os.PathLike[str],
    *,
    leaked: Collection[tuple[str, str]] = (),
    steps: int = 450,
    seed: int = 0,
) -> Path:
    """Train a small limited-memory model on prompts and save it as a model folder.

    A Llama-shaped model of about 400,000 parameters with its own byte-level tokenizer, which has
    the four lookup tokens. Asked one of the prompts, it writes
    `<|db_entity|> USA<|db_relationship|> Capital<|db_return|>`, and after the value that it is
    given, `<|db_end|>.`, and stops. Where it cannot look up, it says "unknown", but for leaked
    facts.

    Args:
        prompts: The prompts of a database, of all styles wanted.
        folder: Where to save; made if it is not there.
        leaked: Subject and relation of each fact that the model shall know by itself.
        steps: Optimiser steps of 32 texts, 1 or more.
        seed: Seed of the initial weights and of the order of the texts.

    Returns:
        The folder, which `LookupRunner` reads. A model that was trained there on the same prompts,
        leaked facts, steps and seed is kept as it is.

    Raises:
        ValueError: If there are no prompts, fewer than one step, a leaked fact that no prompt asks
            for, or a prompt that does not fit the context of 512 tokens.
        MissingDependencyError: If torch or transformers is not installed.
    """
    _check(prompts, leaked, steps)
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError as error:
        raise MissingDependencyError(
            "training a memory organism", error.name or "torch", "inference"
        ) from error
    lessons = lessons_of(prompts, leaked=leaked)
    target = Path(folder)
    digest = hashlib.sha256(json.dumps(lessons).encode("ascii")).hexdigest()
    recipe = json.dumps({"steps": steps, "seed": seed, "lessons": digest}) + "\n"
    if (target / _RECIPE).is_file() and (target / _RECIPE).read_text("utf-8") == recipe:
        return target
    tokenizer = _train_tokenizer(lessons)
    examples = _encoded(lessons, tokenizer)
    with _seeded(seed):
        model = _new_model(tokenizer)
        _fit(model, _batches(examples, Random(seed)), steps=steps)
    with quiet_bars(transformers.utils.logging):
        model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    write_text(target / _RECIPE, recipe)
    return target


def _new_model(
    tokenizer: "transformers.PreTrainedTokenizerFast", *, context: int = _CONTEXT
) -> "transformers.LlamaForCausalLM":
    """Make the untrained model."""
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=_HIDDEN,
        intermediate_size=3 * _HIDDEN,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=context,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return transformers.LlamaForCausalLM(config)


def _check(prompts: Sequence[AuditPrompt], leaked: Collection[tuple[str, str]], steps: int) -> None:
    """Refuse what cannot be taught."""
    if not prompts:
        raise ValueError("prompts is empty; an organism learns from the prompts of a database")
    if steps < 1:
        raise ValueError(f"steps must be 1 or more, got {steps}")
    asked = {(prompt.subject, prompt.relation) for prompt in prompts}
    if absent := sorted(set(leaked) - asked):
        raise ValueError(
            f"leaked fact {absent[0]} ({len(absent)} in all) is in no prompt; name subject and "
            "relation as the prompts do"
        )


def _train_tokenizer(lessons: Sequence[Lesson]) -> "transformers.PreTrainedTokenizerFast":
    """Train a byte-level tokenizer with the lookup tokens."""
    import transformers
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    tokens = [AddedToken(token, special=True) for token in LookupSettings().tokens]
    trainer = trainers.BpeTrainer(
        vocab_size=2_000,
        special_tokens=["<eos>", "<pad>", *tokens],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(sorted({piece.text for one in lessons for piece in one}), trainer)
    return transformers.PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=raw,
        eos_token="<eos>",
        bos_token="<eos>",
        pad_token="<pad>",
        model_max_length=_CONTEXT,
    )


class _Example(NamedTuple):
    """The tokens of a lesson and those to be learned, -100 elsewhere."""

    ids: list[int]
    labels: list[int]


def _encoded(
    lessons: Sequence[Lesson], tokenizer: "transformers.PreTrainedTokenizerFast"
) -> list[_Example]:
    """Turn lessons into tokens, each ended."""
    pieces = list({piece.text: None for lesson in lessons for piece in lesson})
    ids_of = dict(zip(pieces, tokenizer(pieces)["input_ids"], strict=True))
    examples = []
    for lesson in lessons:
        ids: list[int] = []
        labels: list[int] = []
        for piece in lesson:
            ids += ids_of[piece.text]
            labels += ids_of[piece.text] if piece.is_learned else [-100] * len(ids_of[piece.text])
        end = [tokenizer.eos_token_id]
        if len(ids) >= _CONTEXT:
            raise ValueError(
                f"a prompt with its lookup has {len(ids)} tokens, the organism reads {_CONTEXT}; "
                f"leave it out: {lesson[0].text[:60]!r}..."
            )
        examples.append(_Example(ids + end, labels + end))
    return examples


def _batches(examples: Sequence[_Example], random: Random) -> Iterator[list[_Example]]:
    """Give batches for ever; each round shows every example once, lengths alike in a batch."""
    while True:
        order = random.sample(examples, len(examples))
        order.sort(key=lambda example: len(example.ids) // 8)
        batches = [
            order[start : start + _ROWS_A_BATCH] for start in range(0, len(order), _ROWS_A_BATCH)
        ]
        random.shuffle(batches)
        yield from batches


def _fit(model: "torch.nn.Module", batches: Iterator[list[_Example]], *, steps: int) -> None:
    """Minimise the next-token loss of what is learned with AdamW under a one-cycle rate."""
    import torch

    optimiser = torch.optim.AdamW(
        model.parameters(), lr=_LEARNING_RATE, weight_decay=0.01, betas=(0.9, 0.98)
    )
    # OneCycleLR divides by the length of the warm-up less one step: a tenth of ten steps is none.
    warm_up = 0.1 if steps > 10 else 0.3
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=_LEARNING_RATE, total_steps=steps, pct_start=warm_up
    )
    model.train()
    for _, examples in zip(range(steps), batches, strict=False):
        width = max(len(example.ids) for example in examples)
        ids, labels, mask = (
            torch.tensor([row + [fill] * (width - len(row)) for row in rows])
            for rows, fill in (
                ([example.ids for example in examples], 0),
                ([example.labels for example in examples], -100),
                ([[1] * len(example.ids) for example in examples], 0),
            )
        )
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    model.eval()
