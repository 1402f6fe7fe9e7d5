"""Training of toy models: small transformers that are trained from scratch on the facts of a study.

The training data of a downloaded model are unknown. Those of a toy model are known, so that a study
can be tested with it. The `ToyModelSettings` of a study defines the training data.
"""

import hashlib
import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from surface_consistency.errors import MissingDependencyError, RunError
from surface_consistency.models.loading import quiet_bars
from surface_consistency.runs.files import claim_files, write_text

if TYPE_CHECKING:
    import torch
    import transformers

_HIDDEN: Final = 96
_ROWS_A_BATCH: Final = 32
_IGNORED: Final = -100
_RECIPE: Final = "training.json"
_LOG: Final = logging.getLogger(__name__)


class Segment(NamedTuple):
    """A part of an example."""

    text: str
    """The text."""

    is_learned: bool
    """Whether its tokens are training targets; otherwise they are only context."""


TrainingExample = tuple[Segment, ...]
"""One text of the training, in parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """How a toy model is made and trained."""

    steps: int
    """Optimiser steps of 32 texts, 1 or more."""

    seed: int = 0
    """Seed of the initial weights and of the order of the texts."""

    context: int = 512
    """Maximum length of a text in tokens."""

    vocabulary_size: int = 2_000
    """Maximum number of tokens of the tokenizer."""

    special_tokens: tuple[str, ...] = ()
    """Special tokens in addition to the end and padding tokens."""

    chat_template: str | None = None
    """Chat template; None if the toy model accepts only plain text."""

    learning_rate: float = 4e-3
    """Maximum learning rate; it rises over the first tenth of the steps, then falls."""

    examples_a_text: int = 1
    """Number of examples per text. With 1, each text ends with the end token, and the texts of a
    batch have similar lengths. With more, examples are drawn at random and joined, and the text is
    cut to the context without an end token."""

    separator: str = ""
    """Text after each example in a text of several examples; it is learned."""


def train_on_examples(
    examples: Sequence[TrainingExample],
    folder: str | os.PathLike[str],
    settings: TrainingSettings,
    *,
    vocabulary: Sequence[str] = (),
) -> Path:
    """Train a Llama-shaped model of about 400,000 parameters and save it as a model folder.

    Its byte-level tokenizer is trained on the segments of the examples. Training uses one thread,
    because a second one does not speed up so small a model and is slow on shared cores.

    Args:
        examples: The training text; a repeated example is used as often as it occurs.
        folder: Folder of the model; created if it does not exist.
        settings: How it is made and trained.
        vocabulary: Further strings for the tokenizer only.

    Returns:
        The folder, which `from_pretrained` reads. A model that was trained there on the same
        examples with the same settings is kept; another model is replaced.

    Raises:
        ValueError: If there are no examples, fewer than one step, or an example that forms a text
            and is longer than the context.
        MissingDependencyError: If torch or transformers is not installed.
        RunError: If the folder contains a model of other examples or settings, and a run next to
            it has its answers.
        KeyboardInterrupt: If it is interrupted; the message states that training starts again.
    """
    if not examples:
        raise ValueError("examples is empty; a toy model needs training text")
    if settings.steps < 1:
        raise ValueError(f"steps must be 1 or more, got {settings.steps}")
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            "training a toy model", error.name or "torch", "inference"
        ) from error
    target = Path(folder)
    text = json.dumps([examples, list(vocabulary)])
    digest = hashlib.sha256(text.encode("ascii")).hexdigest()
    recipe = json.dumps(asdict(settings) | {"examples": digest}) + "\n"
    if (target / _RECIPE).is_file():
        if (target / _RECIPE).read_text("utf-8") == recipe:
            return target
        if any(target.parent.glob("generations*.jsonl")):
            raise RunError(
                f"{target} contains the model of the answers next to it, which was trained on "
                "other examples or with other settings; choose another folder (`out`)"
            )
    claim_files(target.parent, [target.name])
    _LOG.info("training a small model on %d texts, %d steps", len(examples), settings.steps)
    try:
        return _train(examples, target, settings, vocabulary, recipe)
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(
            "unfinished training is not saved; the same command trains the model from the start"
        ) from error


def _train(
    examples: Sequence[TrainingExample],
    target: Path,
    settings: TrainingSettings,
    vocabulary: Sequence[str],
    recipe: str,
) -> Path:
    """Make tokenizer and model, train the model, and save both."""
    import transformers

    texts = {segment.text for example in examples for segment in example}
    tokenizer = _train_tokenizer(texts.union(vocabulary), settings)
    encoded = _encode(examples, tokenizer, settings)
    if settings.examples_a_text == 1:
        batches = _texts_of_like_length(encoded, Random(settings.seed))
    else:
        batches = _joined_texts(encoded, settings, Random(settings.seed))
    with _seeded(settings.seed):
        model = transformers.LlamaForCausalLM(
            transformers.LlamaConfig(
                vocab_size=len(tokenizer),
                hidden_size=_HIDDEN,
                intermediate_size=3 * _HIDDEN,
                num_hidden_layers=2,
                num_attention_heads=4,
                max_position_embeddings=settings.context,
                tie_word_embeddings=True,
                bos_token_id=tokenizer.eos_token_id,
                eos_token_id=tokenizer.eos_token_id,
                pad_token_id=tokenizer.pad_token_id,
            )
        )
        _fit(model, batches, settings)
    with quiet_bars(transformers.utils.logging):
        model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    write_text(target / _RECIPE, recipe)
    return target


class _Example(NamedTuple):
    """The tokens of a text and its labels, which are -100 for tokens that are not learned."""

    ids: list[int]
    labels: list[int]


def _train_tokenizer(
    texts: set[str], settings: TrainingSettings
) -> "transformers.PreTrainedTokenizerFast":
    """Train a byte-level tokenizer on the texts."""
    import transformers
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    special = [AddedToken(token, special=True) for token in settings.special_tokens]
    trainer = trainers.BpeTrainer(
        vocab_size=settings.vocabulary_size,
        special_tokens=["<eos>", "<pad>", *special],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(sorted(texts), trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=raw,
        eos_token="<eos>",
        bos_token="<eos>",
        pad_token="<pad>",
        model_max_length=settings.context,
    )
    if settings.chat_template is not None:
        tokenizer.chat_template = settings.chat_template
    return tokenizer


def _encode(
    examples: Sequence[TrainingExample],
    tokenizer: "transformers.PreTrainedTokenizerFast",
    settings: TrainingSettings,
) -> list[_Example]:
    """Tokenize examples; each gets an end token if it forms a text."""
    segments = list({segment.text: None for example in examples for segment in example})
    ids_of = dict(zip(segments, tokenizer(segments)["input_ids"], strict=True))
    is_text = settings.examples_a_text == 1
    end = [tokenizer.eos_token_id] if is_text else tokenizer(settings.separator)["input_ids"]
    encoded = []
    for example in examples:
        ids: list[int] = []
        labels: list[int] = []
        for segment in example:
            ids += ids_of[segment.text]
            n_tokens = len(ids_of[segment.text])
            labels += ids_of[segment.text] if segment.is_learned else [_IGNORED] * n_tokens
        if is_text and len(ids) >= settings.context:
            raise ValueError(
                f"an example has {len(ids)} tokens, but the context is {settings.context}; remove "
                f"it: {example[0].text[:60]!r}..."
            )
        encoded.append(_Example(ids + end, labels + end))
    return encoded


def _texts_of_like_length(encoded: Sequence[_Example], random: Random) -> Iterator[list[_Example]]:
    """Yield batches of texts of similar length without end; each epoch has every example once."""
    while True:
        order = random.sample(encoded, len(encoded))
        order.sort(key=lambda example: len(example.ids) // 8)
        batches = [
            order[start : start + _ROWS_A_BATCH] for start in range(0, len(order), _ROWS_A_BATCH)
        ]
        random.shuffle(batches)
        yield from batches


def _joined_texts(
    encoded: Sequence[_Example], settings: TrainingSettings, random: Random
) -> Iterator[list[_Example]]:
    """Yield batches of joined examples without end; each epoch has every example once."""
    batch: list[_Example] = []
    while True:
        order = list(range(len(encoded)))
        random.shuffle(order)
        for start in range(0, len(order), settings.examples_a_text):
            chosen = [encoded[i] for i in order[start : start + settings.examples_a_text]]
            ids = list(chain.from_iterable(example.ids for example in chosen))
            labels = list(chain.from_iterable(example.labels for example in chosen))
            batch.append(_Example(ids[: settings.context], labels[: settings.context]))
            if len(batch) == _ROWS_A_BATCH:
                yield batch
                batch = []


def _fit(
    model: "torch.nn.Module", batches: Iterator[list[_Example]], settings: TrainingSettings
) -> None:
    """Minimise the next-token loss of learned tokens with AdamW and a one-cycle learning rate."""
    import torch

    optimiser = torch.optim.AdamW(
        model.parameters(), lr=settings.learning_rate, weight_decay=0.01, betas=(0.9, 0.98)
    )
    # OneCycleLR divides by the length of the warm-up minus one step: a tenth of ten steps gives 0.
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser,
        max_lr=settings.learning_rate,
        total_steps=settings.steps,
        pct_start=0.1 if settings.steps > 10 else 0.3,
    )
    model.train()
    for _, encoded in zip(range(settings.steps), batches, strict=False):
        width = max(len(example.ids) for example in encoded)
        ids, labels, mask = (
            torch.tensor([row + [fill] * (width - len(row)) for row in rows])
            for rows, fill in (
                ([example.ids for example in encoded], 0),
                ([example.labels for example in encoded], _IGNORED),
                ([[1] * len(example.ids) for example in encoded], 0),
            )
        )
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    model.eval()


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed torch and limit it to one thread within the context, then restore its state."""
    import torch

    n_threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(n_threads)
