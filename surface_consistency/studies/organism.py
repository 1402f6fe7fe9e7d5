"""A model organism: a small transformer trained from scratch on facts with planted frequencies.

What a downloaded model has seen is unknown; here each name's number of occurrences is set, so a
study can be checked against what the model was taught.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, Literal

from surface_consistency.errors import MissingDependencyError
from surface_consistency.inference._loading import quiet_bars
from surface_consistency.runs.files import write_text
from surface_consistency.schemas import QuestionRealization

if TYPE_CHECKING:
    import torch
    import transformers

__all__ = ["EXPOSURES", "Exposure", "plan_exposures", "sentences_of", "train_organism"]

Exposure = Literal["frequent", "rare", "absent"]
"""How often the training text asks for a fact under a name."""

EXPOSURES: Final[dict[Exposure, int]] = {"frequent": 24, "rare": 1, "absent": 0}
"""Occurrences of a question in one round of the training text."""

_HELD_OUT_SHARE: Final = 6
_CONTEXT: Final = 256
_SENTENCES_A_DOCUMENT: Final = 3
_DOCUMENTS_A_BATCH: Final = 32
_LEARNING_RATE: Final = 5e-3
_RECIPE: Final = "training.json"


def plan_exposures(
    questions: Sequence[QuestionRealization], *, seed: int = 0
) -> dict[tuple[str, str], Exposure]:
    """Decide how often each name of each fact is taught.

    Every sixth fact is held out under all its names, so that there are facts the model does not
    know. Of the others the canonical name is frequent, and the redirect names are frequent, rare
    and absent in equal parts, in an order drawn by the seed.

    Args:
        questions: Questions of the facts.
        seed: Seed of the choice.

    Returns:
        The exposure by (fact id, surface text).
    """
    random = Random(seed)
    facts = sorted({question.triple.id for question in questions})
    random.shuffle(facts)
    held_out = set(facts[::_HELD_OUT_SHARE])
    canonical = sorted({(q.triple.id, q.surface.text) for q in questions if q.surface.is_canonical})
    redirects = sorted(
        {(q.triple.id, q.surface.text) for q in questions if not q.surface.is_canonical}
        - set(canonical)
    )
    random.shuffle(redirects)
    plan: dict[tuple[str, str], Exposure] = dict.fromkeys(canonical, "frequent")
    levels = tuple(EXPOSURES)
    taught = (name for name in redirects if name[0] not in held_out)
    plan.update({name: levels[number % len(levels)] for number, name in enumerate(taught)})
    return plan | {name: "absent" for name in chain(canonical, redirects) if name[0] in held_out}


def sentences_of(
    questions: Sequence[QuestionRealization], exposures: Mapping[tuple[str, str], Exposure]
) -> list[str]:
    """Write one round of the training text: each question as often as its exposure says.

    Args:
        questions: Questions of the facts, all templates wanted in the text.
        exposures: Exposure by (fact id, surface text).

    Returns:
        Solved questions `Q: <question> A: <answer>`, in the order of the questions.
    """
    return [
        f"Q: {question.question} A: {question.triple.answers[0]}"
        for question in questions
        for _ in range(EXPOSURES[exposures[question.triple.id, question.surface.text]])
    ]


def train_organism(
    sentences: Sequence[str],
    folder: str | os.PathLike[str],
    *,
    names: Sequence[str] = (),
    steps: int = 250,
    seed: int = 0,
) -> Path:
    """Train a small causal language model on sentences and save it as a model folder.

    A Llama-shaped model of about 400,000 parameters with its own byte-level tokenizer; every
    document is a few sentences drawn at random, joined by blank lines, as in a few-shot prompt.

    Args:
        sentences: The training text; a sentence that stands there more often is seen more often.
        folder: Where to save; made if it is not there.
        names: Further strings for the tokenizer alone, so that a name the model has never seen is
            not also a rare string of bytes.
        steps: Optimiser steps of 32 documents, 1 or more.
        seed: Seed of the initial weights and of the order of the text.

    Returns:
        The folder, which `TransformersRunner` and `from_pretrained` read. A model that was trained
        there on the same sentences, steps and seed is kept as it is.

    Raises:
        ValueError: If there are no sentences, or fewer than one step.
        MissingDependencyError: If torch or transformers is not installed.
    """
    if not sentences:
        raise ValueError("sentences is empty; every exposure may be 'absent'")
    if steps < 1:
        raise ValueError(f"steps must be 1 or more, got {steps}")
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError as error:
        raise MissingDependencyError(
            "training a model organism", error.name or "torch", "inference"
        ) from error
    target = Path(folder)
    recipe = _recipe(sentences, names, steps=steps, seed=seed)
    if (target / _RECIPE).is_file() and (target / _RECIPE).read_text("utf-8") == recipe:
        return target
    tokenizer = _train_tokenizer([*sentences, *names])
    with _seeded(seed):
        config = transformers.LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=96,
            intermediate_size=288,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=_CONTEXT,
            tie_word_embeddings=True,
            bos_token_id=tokenizer.eos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
        model = transformers.LlamaForCausalLM(config)
        _fit(model, _batches(sentences, tokenizer, Random(seed)), steps=steps)
    with quiet_bars(transformers.utils.logging):
        model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    write_text(target / _RECIPE, recipe)
    return target


def _recipe(sentences: Sequence[str], names: Sequence[str], *, steps: int, seed: int) -> str:
    """Name everything that decides the trained model, to tell whether it is there already."""
    text = json.dumps([list(sentences), list(names)])
    digest = hashlib.sha256(text.encode("ascii")).hexdigest()
    return json.dumps({"steps": steps, "seed": seed, "sentences": digest}) + "\n"


def _train_tokenizer(texts: Sequence[str]) -> "transformers.PreTrainedTokenizerFast":
    """Train a byte-level tokenizer on the text."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1_500,
        special_tokens=["<eos>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(sorted(set(texts)), trainer)
    return transformers.PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=raw,
        eos_token="<eos>",
        bos_token="<eos>",
        pad_token="<pad>",
        model_max_length=_CONTEXT,
    )


def _batches(
    sentences: Sequence[str], tokenizer: "transformers.PreTrainedTokenizerFast", random: Random
) -> Iterator[list[list[int]]]:
    """Give batches of token ids for ever; each round shows every sentence once."""
    encoded = tokenizer([sentence + "\n\n" for sentence in sentences])["input_ids"]
    documents: list[list[int]] = []
    while True:
        order = list(range(len(encoded)))
        random.shuffle(order)
        for start in range(0, len(order), _SENTENCES_A_DOCUMENT):
            chosen = order[start : start + _SENTENCES_A_DOCUMENT]
            documents.append(list(chain.from_iterable(encoded[i] for i in chosen))[:_CONTEXT])
            if len(documents) == _DOCUMENTS_A_BATCH:
                yield documents
                documents = []


def _fit(model: "torch.nn.Module", batches: Iterator[list[list[int]]], *, steps: int) -> None:
    """Minimise the next-token loss with AdamW under a one-cycle learning rate."""
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
    for _, documents in zip(range(steps), batches, strict=False):
        width = max(map(len, documents))
        ids = torch.tensor([document + [0] * (width - len(document)) for document in documents])
        mask = torch.tensor(
            [[1] * len(document) + [0] * (width - len(document)) for document in documents]
        )
        labels = ids.masked_fill(mask == 0, -100)
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    model.eval()


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed torch and keep it to one thread for a while, then give its state back.

    So small a model gains nothing from a second thread, and loses much where cores are shared.
    """
    import torch

    n_threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(n_threads)
