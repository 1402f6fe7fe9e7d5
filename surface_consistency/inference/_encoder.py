"""Prompts to token ids."""

import hashlib
import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from surface_consistency.errors import RunnerError
from surface_consistency.schemas.prompts import Prompt

__all__ = ["Encoder"]

_CHUNK = 1024


class Encoder:
    """Tokenises texts as the tokenizer does by default, and chats by its template.

    Args:
        tokenizer: A tokenizer of transformers.
        label: Name of the model, for errors.
        vocabulary: Rows of the model's embedding table.
        chat_options: Variables for the chat template.
    """

    def __init__(
        self,
        tokenizer: Any,  # noqa: ANN401
        *,
        label: str,
        vocabulary: int,
        chat_options: Mapping[str, JsonValue],
    ) -> None:
        self.tokenizer = tokenizer
        self._label = label
        self._vocabulary = vocabulary
        self._chat_options = dict(chat_options)

    def encode(self, prompts: Sequence[Prompt]) -> "Iterator[array[int]]":
        """Yield the token ids of each prompt, special tokens included."""
        for start in range(0, len(prompts), _CHUNK):
            chunk = prompts[start : start + _CHUNK]
            texts = {prompt.id: prompt.text for prompt in chunk if prompt.text is not None}
            chats = {prompt.id: self._render(prompt) for prompt in chunk if prompt.text is None}
            ids = self._tokenise(texts, special=True) | self._tokenise(chats, special=False)
            for prompt in chunk:
                yield self._checked(prompt, ids[prompt.id])

    def template_digest(self) -> str | None:
        """Return a digest of the chat template and its variables; None without a template."""
        template = self.tokenizer.chat_template
        if not template:
            return None
        content = json.dumps([template, self._chat_options], sort_keys=True)
        return hashlib.sha256(content.encode("utf-8")).hexdigest()[:16]

    def _tokenise(self, texts: Mapping[str, str], *, special: bool) -> dict[str, list[int]]:
        """Tokenise texts by name."""
        if not texts:
            return {}
        batch = self.tokenizer(
            list(texts.values()),
            add_special_tokens=special,
            return_attention_mask=False,
            verbose=False,
        )
        return dict(zip(texts, batch["input_ids"], strict=True))

    def _render(self, prompt: Prompt) -> str:
        """Write a conversation as the model's chat template has it."""
        from jinja2 import TemplateError

        if not self.tokenizer.chat_template:
            raise RunnerError(
                f"{self._label} has no chat template, so it cannot answer the conversation of "
                f"prompt {prompt.id!r}; use completion prompts, or an instruction-tuned model"
            )
        turns = [{"role": turn.role, "content": turn.content} for turn in prompt.messages or ()]
        try:
            rendered: str = self.tokenizer.apply_chat_template(
                turns, add_generation_prompt=True, tokenize=False, **self._chat_options
            )
        except TemplateError as error:
            raise RunnerError(
                f"the chat template of {self._label} refuses prompt {prompt.id!r}: {error}; change "
                "the roles of its messages"
            ) from error
        return rendered

    def _checked(self, prompt: Prompt, ids: list[int]) -> "array[int]":
        """Refuse what the model cannot read; give an empty prompt its start token."""
        if not ids:
            if self.tokenizer.bos_token_id is None:
                raise RunnerError(
                    f"prompt {prompt.id!r} has no tokens and {self._label} has no start token; "
                    "give it some text"
                )
            ids = [self.tokenizer.bos_token_id]
        if max(ids) >= self._vocabulary:
            raise RunnerError(
                f"the tokenizer of {self._label} gives prompt {prompt.id!r} token {max(ids)}, but "
                f"the model knows {self._vocabulary}; tokenizer and model do not belong together"
            )
        return array("i", ids)
