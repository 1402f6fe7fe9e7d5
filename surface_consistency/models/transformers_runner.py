"""The default runner for causal language models of transformers; `minimal` is a simpler one."""

import copy
import os
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

from pydantic import JsonValue

from surface_consistency.errors import RunnerOutOfMemoryError
from surface_consistency.models import _decoding, _engine
from surface_consistency.models._batching import Planner, PromptEncoder
from surface_consistency.models._token_scores import TokenScorer
from surface_consistency.models.loading import (
    ModelSource,
    check_dependencies,
    find_model,
    load_model,
)
from surface_consistency.models.reasoning import ReasoningTags, reasoning_tags, separate_reasoning
from surface_consistency.models.runner import Runner
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.prompts import GenerationParams, Prompt
from surface_consistency.schemas.scoring import ScoredText, ScoringRequest

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

T = TypeVar("T")


class TransformersRunner(Runner):
    """Queries a causal language model on this machine.

    Prompts are tokenised whole, batched by group and length, and padded on the left. The longest
    token prefix common to the prompts of a group is computed once, and its keys and values are
    reused; the answers equal those of prompts sent one by one. Models that do not support this
    (sliding windows, recurrent states) run in plain batches, which the fingerprint records.

    At temperature 0 decoding is greedy, with the penalties in the model's own generation settings.
    Otherwise the tokens of each prompt are drawn by the seed and the prompt's content.

    Reasoning is separated from answers by the known tags, those in the model's chat template and
    those of `GenerationParams.reasoning_tags`; a template that ends with an opening tag opens the
    reasoning. Tags that are special tokens are detected too.

    Args:
        model: Folder of a model and its tokenizer, hub id, or GGUF file.
        revision: Branch, tag or commit of the hub repository; resolved to a commit.
        dtype: Torch dtype; "auto" is that of the checkpoint.
        device: Device, such as "cuda:1"; None for a GPU if there is one.
        device_map: How to distribute weights over devices by accelerate, instead of `device`:
            "auto", "balanced", "balanced_low_0", "sequential", or the device of each module.
        quantization: "int8" or "int4" to load in 8 or 4 bits by bitsandbytes, on a CUDA GPU.
        batch_size: Maximum number of prompts per batch.
        reuse_prefix: Whether to reuse shared prefixes.
        trust_remote_code: Whether code of the repository may be run.
        shuffle_seed: Seed of a random composition of batches, to measure the effect of batching on
            answers; None for the default order.
        chat_options: Variables for the chat template, such as {"enable_thinking": False}.
        gguf_file: GGUF file of the folder or repository with weights and tokenizer; the weights are
            dequantised to `dtype`.

    Raises:
        MissingDependencyError: If torch, transformers, bitsandbytes or another library that the
            model needs is not installed.
        SourceNotFoundError: If the model is not found or cannot be reached.
        RunnerError: If it cannot be loaded, is gated, or the device is not available.
        ValueError: If an option is out of range.
    """

    name: str = "transformers"
    """The runner's name."""

    _smaller = ", dtype='bfloat16' or quantization='int8'"

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        revision: str | None = None,
        dtype: str = "auto",
        device: str | None = None,
        device_map: str | Mapping[str, str | int] | None = None,
        quantization: Literal["int8", "int4"] | None = None,
        batch_size: int = 32,
        reuse_prefix: bool = True,
        trust_remote_code: bool = False,
        shuffle_seed: int | None = None,
        chat_options: Mapping[str, JsonValue] | None = None,
        gguf_file: str | None = None,
    ) -> None:
        self.check_options(
            dtype=dtype,
            device=device,
            device_map=device_map,
            quantization=quantization,
            batch_size=batch_size,
        )
        self._source = find_model(model, revision, gguf_file)
        loaded, tokenizer = load_model(
            self._source,
            dtype=dtype,
            device=device,
            quantization=quantization,
            device_map=device_map,
            trust_remote_code=trust_remote_code,
        )
        self._quantization = quantization
        # transformers stores no map if all weights are on one device.
        spread = getattr(loaded, "hf_device_map", None) or {"": loaded.device}
        self._devices: list[JsonValue] = []
        if device_map is not None:
            self._devices += sorted({str(place) for place in spread.values()})
        self._set_up(
            _engine.Engine(loaded),
            tokenizer,
            batch_size=batch_size,
            reuse_prefix=reuse_prefix,
            shuffle_seed=shuffle_seed,
            chat_options=chat_options or {},
        )

    @staticmethod
    def check_options(
        *,
        dtype: str = "auto",
        device: str | None = None,
        device_map: str | Mapping[str, str | int] | None = None,
        quantization: Literal["int8", "int4"] | None = None,
        batch_size: int = 32,
        **others: object,
    ) -> None:
        """Check options before the model is available.

        Args:
            dtype: As for the runner.
            device: As for the runner.
            device_map: As for the runner.
            quantization: As for the runner.
            batch_size: As for the runner.
            others: Further options of the runner, which are not checked.

        Raises:
            ValueError: If a value is not allowed, or two options cannot be combined.
            MissingDependencyError: If a library is missing.
            RunnerError: If quantised loading is requested without a CUDA GPU.
        """
        if batch_size < 1:
            raise ValueError(f"`batch_size` must be at least 1, got {batch_size}")
        check_dependencies(dtype, quantization, device, device_map)

    @classmethod
    def of_model(
        cls,
        model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase",
        *,
        label: str,
        batch_size: int = 32,
    ) -> "TransformersRunner":
        """Return a runner of a model in memory, for example during training.

        The generation settings of the model become greedy, and it is queried in its current mode:
        call `eval` first, and restore both afterwards. `clear_cache` removes cached keys and
        values, which are outdated after a change of the weights.

        Args:
            model: A causal language model of transformers.
            tokenizer: Its tokenizer.
            label: Name of the model in errors and fingerprints.
            batch_size: Maximum number of prompts per batch.

        Returns:
            The runner.

        Raises:
            ValueError: If `batch_size` is less than 1.
        """
        if batch_size < 1:
            raise ValueError(f"`batch_size` must be at least 1, got {batch_size}")
        runner = cls.__new__(cls)
        runner._source = ModelSource(location=label, label=label)
        runner._quantization = None
        runner._devices = []
        engine = _engine.Engine(model)
        engine.is_trained_later = True
        runner._set_up(
            engine,
            tokenizer,
            batch_size=batch_size,
            reuse_prefix=True,
            shuffle_seed=None,
            chat_options={},
        )
        return runner

    def clear_cache(self) -> None:
        """Free cached keys and values, which are incorrect after a change of the weights."""
        self._engine.clear_cache()

    def _set_up(
        self,
        engine: _engine.Engine,
        tokenizer: "PreTrainedTokenizerBase",
        *,
        batch_size: int,
        reuse_prefix: bool,
        shuffle_seed: int | None,
        chat_options: Mapping[str, JsonValue],
    ) -> None:
        """Detect the features that the model supports, and set up the planner."""
        loaded = engine.model
        self._engine = engine
        self._encoder = PromptEncoder(
            tokenizer=tokenizer,
            label=self._source.label,
            vocabulary=engine.vocabulary,
            chat_options=chat_options,
        )
        loaded.generation_config = _decoding.greedy_config(loaded, tokenizer)
        self._shuffle_seed = shuffle_seed
        exact = self._quantization is None and loaded.dtype.itemsize >= 4
        obstacle = _engine.padding_obstacle(self._engine, exact=exact)
        self._padding = "left" if obstacle is None else f"one by one: {obstacle}"
        if reuse_prefix and obstacle is None:
            obstacle = _engine.prefix_obstacle(self._engine, exact=exact)
        can_reuse = reuse_prefix and obstacle is None
        self._prefix_policy = "on" if can_reuse else "off"
        if reuse_prefix and obstacle is not None:
            self._prefix_policy = f"not possible: {obstacle}"
        self._planner = Planner(
            encoder=self._encoder,
            label=self._source.label,
            context=_decoding.context_length(loaded, tokenizer),
            batch_size=batch_size if self._padding == "left" else 1,
            reuse_prefix=can_reuse,
            shuffle_seed=shuffle_seed,
        )

    def rebatched(self, seed: int) -> "TransformersRunner":
        """Return a runner with the same model in memory and another composition of batches.

        Args:
            seed: Seed of the other composition.

        Returns:
            The runner.
        """
        other = copy.copy(self)
        other._shuffle_seed = seed
        other._planner = replace(self._planner, shuffle_seed=seed)
        return other

    def fingerprint(self) -> dict[str, JsonValue]:
        """Return model, revision, dtype, batching, templates and versions of libraries."""
        import torch
        import transformers

        model = self._engine.model
        seed = self._shuffle_seed
        return {
            "runner": self.name,
            "model": self._source.label,
            "revision": self._source.revision,
            "digest": self._source.digest,
            "dtype": str(model.dtype).removeprefix("torch."),
            "quantization": self._quantization,
            "device": model.device.type,
            "attention": model.config._attn_implementation,
            "batch_size": self._planner.batch_size,
            "layout": "grouped by length" if seed is None else f"shuffled {seed}",
            "padding": self._padding,
            "prefix_reuse": self._prefix_policy,
            "chat_template": self._encoder.template_digest(),
            "reasoning_tags": list(self._encoder.template_tags),
            "generation_config": _decoding.greedy_settings(model.generation_config),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            **({"devices": self._devices} if self._devices else {}),
        }

    def count_tokens(self, prompt: Prompt) -> int:
        """Count the tokens of a prompt in the model's input.

        Args:
            prompt: A text or a conversation.

        Returns:
            The number of tokens, special ones included.
        """
        return len(next(self._encoder.encode([prompt])))

    def fits(self, prompt: Prompt, params: GenerationParams) -> bool:
        """Return whether a prompt and its new tokens fit the model's context.

        Args:
            prompt: A text or a conversation.
            params: How to decode.

        Returns:
            Whether `generate` accepts it.
        """
        limit = self._planner.limit(params.max_tokens)
        return limit is None or self.count_tokens(prompt) <= limit

    def plan(
        self, prompts: Sequence[Prompt], params: GenerationParams
    ) -> Iterator[Sequence[Prompt]]:
        """Check the length of every prompt, then divide the run into batches.

        Args:
            prompts: All prompts of the run.
            params: How to decode.

        Returns:
            The batches: groups together, longest prompts first.

        Raises:
            RunnerError: If a prompt and its new tokens do not fit the model's context; the message
                contains the prompt, its tokens and the limit.
            RunnerError: If a prompt cannot be tokenised.
        """
        return iter(self._planner.plan(prompts, params.max_tokens))

    def generate(self, prompts: Sequence[Prompt], params: GenerationParams) -> Iterator[Generation]:
        """Answer prompts; if there is more than one batch, they are planned first.

        Args:
            prompts: The prompts.
            params: How to decode.

        Yields:
            One generation for each prompt. The text ends before the first stop string; reasoning
            and line breaks before the answer do not stop it.

        Raises:
            RunnerError: If a prompt does not fit the model's context.
            RunnerOutOfMemoryError: If the batch does not fit the device.
        """
        if len(prompts) > self._planner.batch_size:
            for batch in self.plan(prompts, params):
                yield from self._answer(batch, params)
        elif prompts:
            yield from self._answer(prompts, params)

    def render(self, prompt: Prompt) -> str:
        """Render a conversation with the model's chat template; see `Runner.render`."""
        return self._encoder.render(prompt)

    def score(self, requests: Sequence[ScoringRequest]) -> Iterator[ScoredText]:
        """Compute the log-probability of texts, each given the text before it.

        Context and continuation are tokenised as one text. The log-probabilities are those of the
        model's logits without the penalties of its generation settings, computed in 32 bits for
        any dtype. They equal those of texts scored one by one.

        Args:
            requests: The texts; ids are unique.

        Yields:
            One scored text for each request, in the order of the batches.

        Raises:
            RunnerError: If a text does not fit the model's context.
            RunnerError: If the tokenizer does not return the characters of its tokens, a
                continuation has no tokens, the token of `bos` does not exist, or the model's logits
                are NaN.
            RunnerOutOfMemoryError: If a single text does not fit the device.
        """
        scorer = TokenScorer(
            engine=self._engine,
            tokenizer=self._encoder.tokenizer,
            label=self._source.label,
            context=self._planner.context,
            batch_size=self._planner.batch_size,
            reuse_prefix=self._planner.reuse_prefix,
            shuffle_seed=self._shuffle_seed,
        )
        waiting = list(scorer.batches(requests))[::-1]
        while waiting:
            batch = waiting.pop()
            scored = self._unless_full(partial(scorer.score, batch))
            if scored is not None:
                yield from scored
            elif len(batch) > 1:
                half = len(batch) // 2
                waiting += [batch[half:], batch[:half]]
            else:
                raise self._too_large("text", 1, len(batch[0][0].ids))

    def _answer(self, prompts: Sequence[Prompt], params: GenerationParams) -> list[Generation]:
        """Answer one batch."""
        rows = self._planner.rows(prompts, params.max_tokens)
        generations = self._unless_full(lambda: self._generate_batch(prompts, rows, params))
        if generations is None:
            raise self._too_large("prompts", len(rows), max(map(len, rows)))
        self._planner.release(prompts)
        return generations

    def _unless_full(self, work: Callable[[], T]) -> T | None:
        """Return the result of a call; None, with caches freed, if the device's memory is full."""
        import torch

        try:
            with self._engine.without_grad():
                return work()
        except RuntimeError as error:
            if not _engine.is_out_of_memory(error):
                raise
        self._engine.clear_cache()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return None

    def _too_large(self, what: str, n: int, n_tokens: int) -> RunnerOutOfMemoryError:
        """Return the error for a batch that does not fit the device."""
        return RunnerOutOfMemoryError(
            f"{n} {what} of up to {n_tokens} tokens do not fit into the memory of "
            f"{self._engine.model.device}; use a smaller batch_size{self._smaller}"
        )

    def _generate_batch(
        self, prompts: Sequence[Prompt], rows: "Sequence[array[int]]", params: GenerationParams
    ) -> list[Generation]:
        """Run one batch through the model."""
        batch = self._planner.lay_out(prompts, rows)
        config = copy.deepcopy(self._engine.model.generation_config)
        config.max_new_tokens = params.max_tokens
        tags = reasoning_tags((*(params.reasoning_tags or ()), *self._encoder.template_tags))
        opened = [self._is_opened(tags, ids, params) for ids in rows]
        tracker = _decoding.StopTracker(
            tokenizer=self._encoder.tokenizer,
            params=params,
            tags=tags,
            eos=_decoding.end_tokens(config),
            opened=opened,
            n_prompt=_engine.n_columns(batch),
        )
        processors = []
        if params.temperature > 0:
            processors.append(_decoding.SeededSampling(params, [prompt.key for prompt in prompts]))
        self._engine.generate(batch, config, criteria=[tracker], processors=processors)
        return [
            separate_reasoning(
                Generation(
                    prompt_id=prompt.id,
                    text=text,
                    finish_reason="stop" if ended else "length",
                    n_prompt_tokens=len(ids),
                    n_new_tokens=n_new,
                ),
                params,
                tags=self._encoder.template_tags,
                opened=is_opened or None,
            )
            for prompt, ids, is_opened, (text, ended, n_new) in zip(
                prompts, rows, opened, tracker.results(), strict=True
            )
        ]

    def _is_opened(self, tags: ReasoningTags, ids: "array[int]", params: GenerationParams) -> bool:
        """Return whether a prompt ends within reasoning, as with many chat templates."""
        if params.reasoning_opened is not None:
            return params.reasoning_opened
        end = self._encoder.tokenizer.decode(
            list(ids[-_decoding.TAIL :]), skip_special_tokens=False
        )
        return tags.is_opened_by(end)
