"""What a model's own configuration says about decoding and context."""

import copy
from typing import Any

from pydantic import JsonValue

__all__ = ["context_length", "end_tokens", "greedy_config", "greedy_settings"]

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


def greedy_config(model: Any, tokenizer: Any) -> Any:  # noqa: ANN401
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


def end_tokens(config: Any) -> frozenset[int]:  # noqa: ANN401
    """Return the end-of-sequence tokens of generation settings."""
    eos = config.eos_token_id
    if eos is None:
        return frozenset()
    return frozenset([eos] if isinstance(eos, int) else eos)


def greedy_settings(config: Any) -> dict[str, JsonValue]:  # noqa: ANN401
    """Return those generation settings that change greedy decoding and differ from none."""
    different = config.to_diff_dict()
    return {name: different[name] for name in _GREEDY_SETTINGS if different.get(name) is not None}


def context_length(model: Any, tokenizer: Any) -> int | None:  # noqa: ANN401
    """Return how many tokens the model can read and write together; None when nothing says so."""
    config = model.config.get_text_config()
    for name in _CONTEXT_NAMES:
        value = getattr(config, name, None)
        if isinstance(value, int) and value > 0:
            return value
    limit = tokenizer.model_max_length
    return int(limit) if limit is not None and limit < _NO_LIMIT else None
