"""Conversion of prompts to batches of token ids, with a check of the model's context length."""

import hashlib
import json
import random
from array import array
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import JsonValue

from surface_consistency.errors import RunnerError
from surface_consistency.models._engine import Batch, Tokens, shared_batch
from surface_consistency.models.reasoning import template_tags
from surface_consistency.reading import shown
from surface_consistency.schemas.prompts import Prompt

_CHUNK = 1024


@dataclass(kw_only=True, eq=False)
class PromptEncoder:
    """Tokenises texts with the tokenizer's defaults, and conversations with its chat template."""

    tokenizer: Any
    """A tokenizer of transformers."""

    label: str
    """Name of the model, for error messages."""

    vocabulary: int
    """Number of rows of the model's embedding table."""

    chat_options: Mapping[str, JsonValue]
    """Variables for the chat template."""

    def encode(self, prompts: Sequence[Prompt]) -> "Iterator[array[int]]":
        """Yield the token ids of each prompt, special tokens included.

        Raises:
            RunnerError: If a prompt has no tokens and the model no start token, or a token is not
                in the model's vocabulary; the message names the prompt.
        """
        for start in range(0, len(prompts), _CHUNK):
            chunk = prompts[start : start + _CHUNK]
            texts = {prompt.id: prompt.text for prompt in chunk if prompt.text is not None}
            chats = {prompt.id: self.render(prompt) for prompt in chunk if prompt.text is None}
            ids = self._tokenise(texts, special=True) | self._tokenise(chats, special=False)
            for prompt in chunk:
                yield self._checked(prompt, ids[prompt.id])

    def template_digest(self) -> str | None:
        """Return a digest of the chat template and its variables; None without a template."""
        template = self.tokenizer.chat_template
        if not template:
            return None
        content = json.dumps([template, dict(self.chat_options)], sort_keys=True)
        return hashlib.sha256(content.encode("utf-8")).hexdigest()[:16]

    @cached_property
    def template_tags(self) -> tuple[str, ...]:
        """The reasoning tags in the model's own chat template."""
        template = self.tokenizer.chat_template
        texts = template.values() if isinstance(template, dict) else [template or ""]
        return template_tags("\n".join(texts))

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

    def render(self, prompt: Prompt) -> str:
        """Render a conversation with the model's chat template.

        Raises:
            RunnerError: If the template is missing or rejects the conversation; names the prompt.
        """
        from jinja2 import TemplateError

        if not self.tokenizer.chat_template:
            raise RunnerError(
                f"{self.label} has no chat template, so it cannot answer the conversation of "
                f"prompt {shown(prompt.id)}; omit `chat` (slaq: set `completion`), or use an "
                "instruction-tuned model"
            )
        turns = [{"role": turn.role, "content": turn.content} for turn in prompt.messages or ()]
        try:
            rendered: str = self.tokenizer.apply_chat_template(
                turns, add_generation_prompt=True, tokenize=False, **self.chat_options
            )
        except TemplateError as error:
            raise RunnerError(
                f"the chat template of {self.label} rejects prompt {shown(prompt.id)}: {error}; "
                "change the roles of its messages"
            ) from error
        return rendered

    def _checked(self, prompt: Prompt, ids: list[int]) -> "array[int]":
        """Raise an error for tokens outside the vocabulary; an empty prompt gets a start token."""
        if not ids:
            if self.tokenizer.bos_token_id is None:
                raise RunnerError(
                    f"prompt {shown(prompt.id)} has no tokens and {self.label} has no start token; "
                    "give it some text"
                )
            ids = [self.tokenizer.bos_token_id]
        if max(ids) >= self.vocabulary:
            raise RunnerError(
                f"the tokenizer of {self.label} returns token {max(ids)} for prompt "
                f"{shown(prompt.id)}, but the vocabulary has {self.vocabulary} tokens; use the "
                "tokenizer of the model"
            )
        return array("i", ids)


@dataclass(kw_only=True, eq=False)
class Planner:
    """Divides runs into batches and arranges each batch; caches token ids between the two steps."""

    encoder: PromptEncoder
    """Converts prompts to token ids."""

    label: str
    """Name of the model, for error messages."""

    context: int | None
    """Maximum number of tokens of prompt and answer together; None for no limit."""

    batch_size: int
    """Maximum number of prompts per batch."""

    reuse_prefix: bool
    """Whether rows may share a prefix."""

    shuffle_seed: int | None
    """Seed of a random composition of batches; None for the default order."""

    _encoded: "dict[str, array[int]]" = field(default_factory=dict, init=False)
    _prefixes: dict[str | None, Tokens] = field(default_factory=dict, init=False)

    def limit(self, max_new_tokens: int) -> int | None:
        """Return the maximum number of tokens of a prompt; None for no limit."""
        return None if self.context is None else self.context - max_new_tokens

    def plan(self, prompts: Sequence[Prompt], max_new_tokens: int) -> list[list[Prompt]]:
        """Check all prompts, then divide them into batches."""
        encoded = self._encode(prompts, max_new_tokens)
        members: dict[str | None, list[array[int]]] = {}
        for prompt, ids in zip(prompts, encoded, strict=True):
            members.setdefault(prompt.group, []).append(ids)
        self._prefixes = {group: _shared(rows) for group, rows in members.items()}
        self._encoded = {prompt.key: ids for prompt, ids in zip(prompts, encoded, strict=True)}
        batches = cut_batches(
            [len(ids) for ids in encoded],
            [prompt.group for prompt in prompts],
            batch_size=self.batch_size,
            shuffle_seed=self.shuffle_seed,
        )
        return [[prompts[position] for position in batch] for batch in batches]

    def rows(self, prompts: Sequence[Prompt], max_new_tokens: int) -> "list[array[int]]":
        """Return the token ids of a batch, which need not be one that was planned."""
        new = [prompt for prompt in prompts if prompt.key not in self._encoded]
        encoded = self._encode(new, max_new_tokens)
        self._encoded |= {prompt.key: ids for prompt, ids in zip(new, encoded, strict=True)}
        return [self._encoded[prompt.key] for prompt in prompts]

    def lay_out(self, prompts: Sequence[Prompt], rows: "Sequence[array[int]]") -> Batch:
        """Split rows into shared prefixes and suffixes, if that saves work."""
        if not self.reuse_prefix:
            return Batch(suffixes=rows)
        members: dict[str | None, list[array[int]]] = {}
        for prompt, ids in zip(prompts, rows, strict=True):
            members.setdefault(prompt.group, []).append(ids)
        prefixes = {group: self._prefix(group, of_group) for group, of_group in members.items()}
        return shared_batch(rows, [prefixes[prompt.group] for prompt in prompts])

    def release(self, prompts: Sequence[Prompt]) -> None:
        """Delete the cached token ids of answered prompts."""
        for prompt in prompts:
            self._encoded.pop(prompt.key, None)

    def _prefix(self, group: str | None, rows: "Sequence[array[int]]") -> Tokens:
        """Return the planned prefix of a group, common to its batches, if it fits the rows."""
        planned = self._prefixes.get(group, ())
        n = len(planned)
        if planned and all(len(ids) > n and tuple(ids[:n]) == planned for ids in rows):
            return planned
        return _shared(rows)

    def _encode(self, prompts: Sequence[Prompt], max_new_tokens: int) -> "list[array[int]]":
        """Tokenise prompts, and raise an error if some are too long."""
        encoded = list(self.encoder.encode(prompts))
        limit = self.limit(max_new_tokens)
        if limit is None:
            return encoded
        sizes = {prompt.id: len(ids) for prompt, ids in zip(prompts, encoded, strict=True)}
        too_long = [name for name, size in sizes.items() if size > limit]
        if too_long:
            worst = max(too_long, key=sizes.__getitem__)
            remedy = _remedy(limit + max_new_tokens - sizes[worst])
            raise RunnerError(
                f"prompt {shown(worst)} has {sizes[worst]:,} tokens; {self.label} accepts "
                f"{limit:,} ({self.context:,} minus {max_new_tokens} new ones). "
                f"{len(too_long):,} of {len(prompts):,} prompts are too long: {remedy}"
            )
        return encoded


def _remedy(n_left: int) -> str:
    """Describe how to fit prompts; `n_left` is the context minus the tokens of the longest."""
    fewer = f"set at most {n_left:,} new tokens, " if n_left > 0 else ""
    return f"{fewer}use fewer shots if the study has them, or use a model with a longer context"


def _shared(rows: "Sequence[array[int]]") -> Tokens:
    """Return the longest common token prefix of rows."""
    return tuple(rows[0][: common_prefix_length(rows)])


def common_prefix_length(rows: "Sequence[array[int]]") -> int:
    """Count the common leading tokens of all rows; each row keeps at least one token after them."""
    shortest, longest = min(rows), max(rows)
    limit = min(map(len, rows)) - 1
    for index in range(limit):
        if shortest[index] != longest[index]:
            return index
    return max(limit, 0)


def cut_batches(
    lengths: Sequence[int],
    groups: Sequence[Hashable],
    *,
    batch_size: int,
    shuffle_seed: int | None = None,
) -> list[list[int]]:
    """Divide prompts into batches that keep groups together, longest prompts first.

    Groups of at least half a batch are divided into batches of nearly equal size without other
    prompts; smaller groups are combined and not divided. With a seed, order and division are
    random, but each group is still kept together.

    Returns:
        Positions of the prompts, batch by batch.
    """
    members: dict[Hashable, list[int]] = {}
    for position in sorted(range(len(lengths)), key=lambda item: -lengths[item]):
        members.setdefault(groups[position], []).append(position)
    ordered = list(members.values())
    rng = None if shuffle_seed is None else random.Random(shuffle_seed)
    if rng is not None:
        rng.shuffle(ordered)
        for group in ordered:
            rng.shuffle(group)
    large = [group for group in ordered if 2 * len(group) >= batch_size]
    small = [group for group in ordered if 2 * len(group) < batch_size]
    batches = [batch for group in large for batch in _cut(group, batch_size, rng)]
    return batches + list(_pack(small, batch_size))


def _cut(group: list[int], batch_size: int, rng: random.Random | None) -> Iterator[list[int]]:
    """Divide one large group into nearly equal parts, or at random offsets."""
    if rng is not None:
        first = rng.randint(1, min(batch_size, len(group)))
        yield group[:first]
        for start in range(first, len(group), batch_size):
            yield group[start : start + batch_size]
        return
    n_parts = -(-len(group) // batch_size)
    size, larger = divmod(len(group), n_parts)
    start = 0
    for part in range(n_parts):
        end = start + size + (part < larger)
        yield group[start:end]
        start = end


def _pack(groups: Sequence[list[int]], batch_size: int) -> Iterator[list[int]]:
    """Fill batches with complete small groups."""
    batch: list[int] = []
    for group in groups:
        if batch and len(batch) + len(group) > batch_size:
            yield batch
            batch = []
        batch = batch + group
    if batch:
        yield batch
