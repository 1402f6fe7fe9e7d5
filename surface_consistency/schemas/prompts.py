"""Prompts, and the parameters of decoding."""

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
    """The speaker."""

    content: str
    """The text of the turn."""


class Prompt(Record):
    """One request to a model: either a text to continue or a conversation to answer."""

    id: NonEmpty
    """The caller's identifier; generations are returned under it."""

    text: str | None = None
    """Text to continue; None when `messages` is given."""

    messages: Items[Message] | None = None
    """Conversation to answer, rendered by the model's chat template; None when `text` is given."""

    group: str | None = None
    """Prompts of a group begin with the same text; runners reuse this shared prefix."""

    options: Items[NonEmpty] | None = None
    """Continuations of which the model chooses the most probable, each with the text that follows
    the prompt, including its leading space; None if the model generates text."""

    contexts: Items[str] | None = None
    """The context of each option, used instead of `text`. Needed if the options fill a gap within a
    sentence; the text after the gap is then part of each option. None if all options follow
    `text`."""

    condition: str | None = None
    """Further input on which the answer depends, such as the state of a store that the model reads.
    Prompts of equal content and different conditions are sent separately."""

    vocabulary_moments: bool = False
    """Add the mean and standard deviation of the vocabulary's log-probabilities to the scores of
    options."""

    @model_validator(mode="after")
    def _has_one_content(self) -> "Prompt":
        """Raise an error for a prompt without content, or with two contents."""
        if (self.text is None) == (self.messages is None):
            raise ValueError("a prompt must have either `text` or `messages`, and not both")
        if self.messages is not None and not self.messages:
            raise ValueError("`messages` must contain at least one message")
        if self.contexts is not None and len(self.contexts) != len(self.options or ()):
            raise ValueError(
                f"`contexts` must contain one text per option, got {len(self.contexts)} for "
                f"{len(self.options or ())} options"
            )
        offered = list(zip(self.contexts or self.options or (), self.options or (), strict=True))
        if self.options is not None and len(set(offered)) < max(len(offered), 1):
            raise ValueError("`options` must contain at least one option, and no option twice")
        return self

    def model_copy(
        self, *, update: Mapping[str, Any] | None = None, deep: bool = False
    ) -> "Prompt":
        """Return a copy without the cached key of the old content; see `pydantic.BaseModel`."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("key", None)
        return copied

    @cached_property
    def key(self) -> str:
        """SHA-256 of content, options and condition (32 hex digits); equal for equal requests."""
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
    """Parameters of decoding."""

    max_new_tokens: int = Field(default=15, ge=1)
    """Maximum number of new tokens, or only of the answer's tokens if `max_reasoning_tokens` is
    given."""

    max_reasoning_tokens: int | None = Field(default=None, ge=1)
    """Maximum number of tokens of reasoning before the answer. If None, `max_new_tokens` limits
    both together."""

    reasoning_tags: Items[NonEmpty] | None = None
    """Opening and closing tags of reasoning, alternating, in addition to
    `models.reasoning.REASONING_TAGS`."""

    reasoning_opened: bool | None = None
    """Whether each prompt ends within reasoning, so that an answer begins after a closing tag;
    None to let the runner detect it."""

    stop: Items[NonEmpty] = ("\n",)
    """Strings that end the answer once it has begun; empty to generate up to the limit."""

    temperature: float = Field(default=0.0, ge=0.0)
    """0 is greedy decoding."""

    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    """Nucleus sampling mass; not used at temperature 0."""

    seed: int | None = None
    """Seed of sampling; not used at temperature 0."""

    @model_validator(mode="after")
    def _has_pairs(self) -> "GenerationParams":
        """Raise an error for an opening tag without a closing tag."""
        if len(self.reasoning_tags or ()) % 2:
            raise ValueError("`reasoning_tags` must contain pairs of an opening and a closing tag")
        return self

    @property
    def max_tokens(self) -> int:
        """Maximum number of all new tokens, of reasoning and answer together."""
        return self.max_new_tokens + (self.max_reasoning_tokens or 0)
