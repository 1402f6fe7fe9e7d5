"""Tokenise a prompt with its answer, and locate the tokens of the answer and of a span in it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from surface_consistency.errors import RunnerError
from surface_consistency.models._batching import PromptEncoder
from surface_consistency.models.loading import (
    ModelSource,
    check_dependencies,
    find_model,
    load_model,
)
from surface_consistency.schemas import Prompt
from surface_consistency.studies.mechanism.ablation.components import Unit
from surface_consistency.studies.mechanism.ablation.engine import AblationModel
from surface_consistency.studies.mechanism.ablation.prepare import prepare_model
from surface_consistency.studies.mechanism.ablation.scores import TokenizedAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedAnswer:
    """The tokens of an answer."""

    answer: TokenizedAnswer
    """Prompt and answer, up to the last token of the answer."""

    tokens: tuple[str, ...]
    """Text of each token of the answer."""

    in_span: tuple[bool, ...]
    """Whether each token of the answer contains a character of the span."""


class AnswerEncoder:
    """Tokenises prompt and answer as one text, as a model reads them.

    Args:
        tokenizer: A fast tokenizer of transformers.
        label: Name of the model, for errors.
        vocabulary: Number of tokens of the model's vocabulary.
        chat_options: Variables for the chat template.

    Raises:
        RunnerError: If the tokenizer does not return the characters of its tokens.
    """

    def __init__(
        self,
        tokenizer: Any,  # noqa: ANN401
        *,
        label: str,
        vocabulary: int,
        chat_options: Mapping[str, JsonValue] | None = None,
    ) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise RunnerError(
                f"the tokenizer of {label} does not return the characters of its tokens, so the "
                "tokens of an answer are unknown; save it as a fast tokenizer (tokenizer.json)"
            )
        self._tokenizer = tokenizer
        self._label = label
        self._encoder = PromptEncoder(
            tokenizer=tokenizer, label=label, vocabulary=vocabulary, chat_options=chat_options or {}
        )

    def prompt_ids(self, prompt: Prompt) -> tuple[int, ...]:
        """Tokenise a prompt without an answer.

        Args:
            prompt: The prompt.

        Returns:
            Its tokens, including special tokens.

        Raises:
            RunnerError: If it cannot be tokenised.
        """
        return tuple(next(self._encoder.encode([prompt])))

    def encode(
        self, prompt: Prompt, text: str, *, span: tuple[int, int] | None = None
    ) -> EncodedAnswer:
        """Tokenise a prompt and its answer.

        Args:
            prompt: The prompt.
            text: The answer that follows the prompt; white space at its end is removed.
            span: Start and end of a part of the answer, in characters, end exclusive; None for the
                whole answer.

        Returns:
            The tokens.

        Raises:
            ValueError: If the answer or the span is empty, or the span is not in the answer.
            RunnerError: If the prompt cannot be tokenised, or a token is not in the vocabulary.
        """
        answer = text.rstrip()
        first, last = span or (len(answer) - len(answer.lstrip()), len(answer))
        if not 0 <= first < last <= len(text) or not answer[first:last].strip():
            raise ValueError(
                f"prompt {prompt.id!r}: the span must contain characters of the answer; got "
                f"{first} to {last} of {answer!r}"
            )
        before = prompt.text if prompt.text is not None else self._encoder.render(prompt)
        encoded = self._tokenizer(
            before + answer,
            add_special_tokens=prompt.text is not None,
            return_attention_mask=False,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            verbose=False,
        )
        ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
        special = encoded["special_tokens_mask"]
        n_before = len(before)
        stop = 1 + max(place for place, added in enumerate(special) if not added)
        start = next(
            place for place in range(stop) if not special[place] and offsets[place][1] > n_before
        )
        if start == 0:
            ids, start, stop = self._started(ids), 1, stop + 1
            offsets = [(0, 0), *offsets]
        in_span = tuple(
            begin < n_before + last and end > n_before + first for begin, end in offsets[start:stop]
        )
        # A token of byte-level tokenizers may not cover a whole character.
        if not any(in_span):
            raise ValueError(f"prompt {prompt.id!r}: no token covers {answer[first:last]!r}")
        texts = [(before + answer)[begin:end] for begin, end in offsets[start:stop]]
        return EncodedAnswer(
            answer=TokenizedAnswer(ids=tuple(ids[:stop]), start=start),
            tokens=tuple(texts),
            in_span=in_span,
        )

    def _started(self, ids: list[int]) -> list[int]:
        """Put the start token before a text with an empty prompt."""
        first = self._tokenizer.bos_token_id
        if first is None:
            raise RunnerError(
                f"the prompt of an answer is empty, and {self._label} has no start token; pass a "
                "prompt with text"
            )
        return [first, *ids]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadedModel:
    """Result of `load_ablation_model`."""

    model: AblationModel
    """The model."""

    encoder: AnswerEncoder
    """Tokenises prompts and answers."""

    source: ModelSource
    """Source of the weights."""


def load_ablation_model(
    model: str | os.PathLike[str],
    *,
    revision: str | None = None,
    dtype: str = "auto",
    device: str | None = None,
    device_map: str | None = None,
    unit: Unit = "head",
    trust_remote_code: bool = False,
    chat_options: Mapping[str, JsonValue] | None = None,
) -> LoadedModel:
    """Load a model and its tokenizer for ablation.

    Args:
        model: Folder or hub id.
        revision: Branch, tag or commit of the hub repository.
        dtype: Torch dtype; "auto" for that of the checkpoint. In 16 bits many effects are rounded
            to exactly 0; use "float32" if it fits into memory.
        device: Such as "cuda:1"; None for a GPU if one is available.
        device_map: Placement of weights on several devices by accelerate, instead of `device`:
            "auto", "balanced", "balanced_low_0" or "sequential".
        unit: Components of attention.
        trust_remote_code: Whether code of the repository may run.
        chat_options: Variables for the chat template.

    Returns:
        Model, encoder, and source of the weights.

    Raises:
        MissingDependencyError: If torch or transformers is not installed.
        SourceNotFoundError: If the model is not found or cannot be reached.
        RunnerError: See `find_components`.
        RunnerError: If it cannot be loaded, or the tokenizer does not return characters.
        ValueError: If an option is unknown.
    """
    check_dependencies(dtype, None, device, device_map)
    source = find_model(model, revision)
    loaded, tokenizer = load_model(
        source,
        dtype=dtype,
        device=device,
        quantization=None,
        trust_remote_code=trust_remote_code,
        device_map=device_map,
    )
    prepared = prepare_model(loaded, unit=unit)
    encoder = AnswerEncoder(
        tokenizer, label=source.label, vocabulary=prepared.vocabulary, chat_options=chat_options
    )
    return LoadedModel(model=prepared, encoder=encoder, source=source)
