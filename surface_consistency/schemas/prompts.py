"""What is sent to a model, and how it shall write."""

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

from pydantic import Field, model_validator

from surface_consistency.schemas._record import Items, NonEmpty, Record

PromptFormat = Literal["completion", "chat"]
"""Plain text to continue, or turns for the chat template of an instruction-tuned model."""


class Message(Record):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    """Who speaks."""

    content: str
    """What is said."""


class Prompt(Record):
    """One request to a model: either a text to continue or a conversation to answer."""

    id: NonEmpty
    """The caller's identifier; generations come back under it."""

    text: str | None = None
    """Text to continue; None when `messages` is given."""

    messages: Items[Message] | None = None
    """Conversation to answer, rendered by the model's chat template; None when `text` is given."""

    group: str | None = None
    """Prompts of one group start alike: a hint with which runners reuse the shared prefix."""

    options: Items[NonEmpty] | None = None
    """Continuations among which the model chooses by their probability, each as it would stand
    after the text, its space included; None to let it write."""

    contexts: Items[str] | None = None
    """A text before each option instead of `text`, where what the options fill in stands within a
    sentence whose end they have in common; None where all stand after `text`."""

    condition: str | None = None
    """What the answer depends on besides the content, such as the state of a store that the model
    reads: prompts of equal content and other conditions are asked apart."""

    vocabulary_moments: bool = False
    """Whether the scores of options tell mean and deviation of the whole vocabulary as well."""

    @model_validator(mode="after")
    def _has_one_content(self) -> "Prompt":
        """Refuse a prompt with no content or with two."""
        if (self.text is None) == (self.messages is None):
            raise ValueError("a prompt has either `text` or `messages`, exactly one of them")
        if self.messages is not None and not self.messages:
            raise ValueError("`messages` holds at least one message")
        if self.contexts is not None and len(self.contexts) != len(self.options or ()):
            raise ValueError(
                f"`contexts` holds a text for each option, got {len(self.contexts)} for "
                f"{len(self.options or ())} options"
            )
        offered = list(zip(self.contexts or self.options or (), self.options or (), strict=True))
        if self.options is not None and len(set(offered)) < max(len(offered), 1):
            raise ValueError("`options` holds at least one option, and none of them twice")
        return self

    def model_copy(
        self, *, update: Mapping[str, Any] | None = None, deep: bool = False
    ) -> "Prompt":
        """Copy, without the key of the content before the update; see `pydantic.BaseModel`."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("key", None)
        return copied

    @cached_property
    def key(self) -> str:
        """SHA-256 of content, options and condition: equal for prompts that ask the same."""
        content: dict[str, object] = (
            {"text": self.text}
            if self.messages is None
            else {"messages": [[turn.role, turn.content] for turn in self.messages]}
        )
        if self.options is not None:
            content["options"] = list(self.options)
        if self.contexts is not None:
            content["contexts"] = list(self.contexts)
        if self.condition is not None:
            content["condition"] = self.condition
        if self.vocabulary_moments:
            content["vocabulary_moments"] = True
        payload = json.dumps(content, ensure_ascii=True, sort_keys=True)
        return hashlib.sha256(payload.encode("ascii")).hexdigest()[:32]


class GenerationParams(Record):
    """How a model writes its continuation."""

    max_new_tokens: int = Field(default=15, ge=1)
    """Upper limit of new tokens; of the answer alone where `max_reasoning_tokens` is given."""

    max_reasoning_tokens: int | None = Field(default=None, ge=1)
    """Upper limit of the tokens of reasoning before the answer; None when both share
    `max_new_tokens`."""

    reasoning_tags: Items[NonEmpty] | None = None
    """Opening and closing tags between which the model thinks, in turn, besides those that
    `models.reasoning.REASONING_TAGS` knows."""

    reasoning_opened: bool | None = None
    """Whether each prompt ends within reasoning, so that an answer begins behind a closing tag;
    None for what the runner knows."""

    stop: Items[NonEmpty] = ("\n",)
    """Strings that end the answer once it has begun; empty to write on to the limit."""

    temperature: float = Field(default=0.0, ge=0.0)
    """0 is greedy decoding."""

    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    """Nucleus sampling mass; without effect at temperature 0."""

    seed: int | None = None
    """Seed of sampling; without effect at temperature 0."""

    @model_validator(mode="after")
    def _has_pairs(self) -> "GenerationParams":
        """Refuse an opening tag without a closing one."""
        if len(self.reasoning_tags or ()) % 2:
            raise ValueError("`reasoning_tags` holds an opening and a closing tag, in turn")
        return self

    @property
    def max_tokens(self) -> int:
        """Upper limit of all new tokens, those of reasoning and answer."""
        return self.max_new_tokens + (self.max_reasoning_tokens or 0)
