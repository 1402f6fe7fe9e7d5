"""Selection of the tokens of a continuation, and detection of its end."""

import copy
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from surface_consistency.models.reasoning import ReasoningTags
from surface_consistency.models.runner import cut_at_stop
from surface_consistency.schemas.prompts import GenerationParams

if TYPE_CHECKING:
    import torch
    from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

_SAMPLING_DEFAULTS = {
    "do_sample": False,
    "num_beams": 1,
    "num_return_sequences": 1,
    "temperature": 1.0,
    "top_k": 50,
    "top_p": 1.0,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "min_p": None,
    "top_h": None,
    "penalty_alpha": None,
    "max_length": None,
    "cache_implementation": None,
    "stop_strings": None,
    "return_dict_in_generate": False,
    "use_cache": True,
}
_GREEDY_SETTINGS = (
    "bad_words_ids",
    "begin_suppress_tokens",
    "encoder_no_repeat_ngram_size",
    "encoder_repetition_penalty",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "guidance_scale",
    "min_length",
    "min_new_tokens",
    "no_repeat_ngram_size",
    "repetition_penalty",
    "sequence_bias",
    "suppress_tokens",
)
_CONTEXT_NAMES = ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx", "seq_length")
_NO_LIMIT = 1_000_000
TAIL = 32
"""Number of last tokens that are searched for a closing tag; sufficient even with one byte per
token."""


def greedy_config(
    model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase"
) -> "GenerationConfig":
    """Return a copy of the model's generation settings without sampling, beams or lengths."""
    config = copy.deepcopy(model.generation_config)
    for name, value in _SAMPLING_DEFAULTS.items():
        if hasattr(config, name):
            setattr(config, name, value)
    if config.eos_token_id is None:
        config.eos_token_id = tokenizer.eos_token_id
    if config.pad_token_id is None:
        config.pad_token_id = min(end_tokens(config), default=0)
    return config


def end_tokens(config: "GenerationConfig") -> frozenset[int]:
    """Return the end-of-sequence tokens of generation settings."""
    eos = config.eos_token_id
    if eos is None:
        return frozenset()
    return frozenset([eos] if isinstance(eos, int) else eos)


def greedy_settings(config: "GenerationConfig") -> dict[str, JsonValue]:
    """Return the generation settings that change greedy decoding and differ from the defaults."""
    different = config.to_diff_dict()
    return {name: different[name] for name in _GREEDY_SETTINGS if different.get(name) is not None}


def context_length(model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase") -> int | None:
    """Return the maximum number of tokens of prompt and answer together; None if unknown."""
    known = model_context(model)
    if known is not None:
        return known
    limit = tokenizer.model_max_length
    return int(limit) if limit is not None and limit < _NO_LIMIT else None


def model_context(model: "PreTrainedModel") -> int | None:
    """Return the context length in the model's configuration; None if it contains none.

    Args:
        model: A causal language model of transformers.

    Returns:
        The maximum number of tokens, prompt and continuation together.
    """
    config = model.config.get_text_config()
    values = (getattr(config, name, None) for name in _CONTEXT_NAMES)
    return next((value for value in values if isinstance(value, int) and value > 0), None)


@dataclass(kw_only=True, eq=False)
class StopTracker:
    """Stopping criterion that marks the rows of a batch that have ended, and stores their texts.

    Reasoning is tracked during generation: stop strings end only answers, and reasoning and answer
    each have a separate limit if `params.max_reasoning_tokens` is given.
    """

    tokenizer: Any
    """A tokenizer of transformers."""

    params: GenerationParams
    """Stop strings and limits."""

    tags: ReasoningTags
    """Tags of reasoning."""

    eos: frozenset[int]
    """End-of-sequence tokens."""

    opened: Sequence[bool]
    """Whether the prompt of each row of the batch ends within reasoning."""

    n_prompt: int
    """Number of columns before the first new token."""

    def __post_init__(self) -> None:
        """Initialise the state, in which no row has ended."""
        n_rows = len(self.opened)
        self._rows: list[list[int]] = [[] for _ in range(n_rows)]
        self._texts: list[str | None] = [None] * n_rows
        self._is_cut = [False] * n_rows
        self._is_thinking: list[bool | None] = [
            True if is_open else None for is_open in self.opened
        ]
        self._n_reasoning = [0] * n_rows
        special = {
            number: str(token)
            for number, token in self.tokenizer.added_tokens_decoder.items()
            if token.special
        }
        # Tags that are special tokens are kept, to separate reasoning from the answer.
        self._dropped = {number for number, token in special.items() if not self.tags.has(token)}
        self._keeps_special = len(self._dropped) < len(special)

    def __call__(
        self, input_ids: "torch.Tensor", scores: object, **kwargs: object
    ) -> "torch.Tensor":
        """Process the newest tokens."""
        import torch

        for row, ids in enumerate(input_ids[:, self.n_prompt :].tolist()):
            if self._texts[row] is None:
                self._rows[row] = ids
                self._texts[row] = self._ended(row, ids)
        ended = [text is not None for text in self._texts]
        return torch.tensor(ended, device=input_ids.device)

    def results(self) -> list[tuple[str, bool, int]]:
        """Return text, whether it ended before the limit, and number of tokens of each row."""
        return [
            (self.decode(ids) if text is None else text, text is not None and not is_cut, len(ids))
            for text, is_cut, ids in zip(self._texts, self._is_cut, self._rows, strict=True)
        ]

    def decode(self, ids: Sequence[int]) -> str:
        """Decode tokens unchanged: without special tokens except tags, and with original spaces."""
        if self._keeps_special:
            ids = [number for number in ids if number not in self._dropped]
        text: str = self.tokenizer.decode(
            ids, skip_special_tokens=not self._keeps_special, clean_up_tokenization_spaces=False
        )
        return text

    def _ended(self, row: int, ids: list[int]) -> str | None:
        """Return the text of a row if it ends here, else None."""
        if ids[-1] in self.eos:
            return self.decode(ids[:-1])
        self._follow(row, ids)
        limit = self.params.max_reasoning_tokens
        n_written = len(ids) - self._n_reasoning[row]
        if self._is_thinking[row]:
            self._is_cut[row] = limit is not None and len(ids) >= limit
        else:
            if self.params.stop and (text := self._stopped(row, ids)) is not None:
                return text
            self._is_cut[row] = limit is not None and n_written >= self.params.max_new_tokens
        return self.decode(ids) if self._is_cut[row] else None

    def _follow(self, row: int, ids: list[int]) -> None:
        """Record if the reasoning of a row begins or ends."""
        if self._is_thinking[row] is None:
            self._is_thinking[row] = self.tags.may_open(self.decode(ids))
        if self._is_thinking[row] and self.tags.closing_tag.search(self.decode(ids[-TAIL:])):
            self._is_thinking[row] = False
            self._n_reasoning[row] = len(ids)

    def _stopped(self, row: int, ids: list[int]) -> str | None:
        """Return the text of a row up to a stop string in its answer; None without one."""
        n_reasoning = self._n_reasoning[row]
        text = self.decode(ids[max(0, n_reasoning - TAIL) :] if n_reasoning else ids)
        if not n_reasoning:
            return cut_at_stop(text, self.params.stop)
        answer = text[max(tag.end() for tag in self.tags.closing_tag.finditer(text)) :].lstrip()
        cut = cut_at_stop(answer, self.params.stop)
        return None if cut is None else self.decode(ids).removesuffix(answer[len(cut) :])


class SeededSampling:
    """Logits processor that draws the tokens of each row with a separate random generator.

    Greedy decoding then picks the drawn token. The tokens of a prompt depend only on the seed and
    the prompt's content, not on other prompts of the batch.

    Args:
        params: Temperature, nucleus mass and seed.
        keys: `Prompt.key` of each row.
    """

    def __init__(self, params: GenerationParams, keys: Sequence[str]) -> None:
        self._temperature = params.temperature
        self._top_p = params.top_p
        self._draws = [
            random.Random(None if params.seed is None else f"{params.seed}:{key}") for key in keys
        ]

    def __call__(self, input_ids: "torch.Tensor", scores: "torch.Tensor") -> "torch.Tensor":
        """Set the logits of all tokens except the drawn one to minus infinity."""
        import torch

        probabilities = torch.softmax(scores.double() / self._temperature, dim=-1)
        ordered, tokens = probabilities.sort(dim=-1, descending=True, stable=True)
        before = ordered.cumsum(dim=-1) - ordered
        ordered = ordered.masked_fill(before >= self._top_p, 0.0)
        mass = ordered.cumsum(dim=-1)
        uniform = torch.tensor([draw.random() for draw in self._draws], dtype=torch.float64)
        target = uniform.to(scores.device).unsqueeze(-1) * mass[:, -1:]
        position = torch.searchsorted(mass, target, right=True).clamp(max=mass.shape[-1] - 1)
        chosen = tokens.gather(-1, position)
        return torch.full_like(scores, -torch.inf).scatter(-1, chosen, 0.0)
