"""From prompts to batches of token ids, checked against the model's context."""

from array import array
from collections.abc import Sequence

from surface_consistency.errors import PromptTooLongError
from surface_consistency.inference._encoder import Encoder
from surface_consistency.inference._engine import Batch, Tokens
from surface_consistency.inference._layout import common_prefix_length, cut_batches
from surface_consistency.schemas.prompts import Prompt

__all__ = ["Planner"]

_WORTHWHILE = 0.75


class Planner:
    """Cuts runs into batches and lays batches out; remembers token ids between the two.

    Args:
        encoder: Prompts to token ids.
        label: Name of the model, for errors.
        context: Tokens that the model can read and write together; None for no limit.
        batch_size: Prompts a batch at most.
        reuse_prefix: Whether rows may share a prefix.
        shuffle_seed: Seed of another composition of batches.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        label: str,
        context: int | None,
        batch_size: int,
        reuse_prefix: bool,
        shuffle_seed: int | None,
    ) -> None:
        self.batch_size = batch_size
        self._encoder = encoder
        self._label = label
        self._context = context
        self._reuse_prefix = reuse_prefix
        self._shuffle_seed = shuffle_seed
        self._encoded: dict[str, array[int]] = {}
        self._prefixes: dict[str | None, Tokens] = {}

    def relaid(self, seed: int) -> "Planner":
        """Give a planner with another batch composition."""
        return Planner(
            self._encoder,
            label=self._label,
            context=self._context,
            batch_size=self.batch_size,
            reuse_prefix=self._reuse_prefix,
            shuffle_seed=seed,
        )

    def limit(self, max_new_tokens: int) -> int | None:
        """Return how many tokens a prompt may have; None for no limit."""
        return None if self._context is None else self._context - max_new_tokens

    def plan(self, prompts: Sequence[Prompt], max_new_tokens: int) -> list[list[Prompt]]:
        """Check all prompts, then cut them into batches."""
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
            shuffle_seed=self._shuffle_seed,
        )
        return [[prompts[position] for position in batch] for batch in batches]

    def rows(self, prompts: Sequence[Prompt], max_new_tokens: int) -> "list[array[int]]":
        """Return the token ids of a batch, planned or not."""
        new = [prompt for prompt in prompts if prompt.key not in self._encoded]
        encoded = self._encode(new, max_new_tokens)
        self._encoded |= {prompt.key: ids for prompt, ids in zip(new, encoded, strict=True)}
        return [self._encoded[prompt.key] for prompt in prompts]

    def lay_out(self, prompts: Sequence[Prompt], rows: "Sequence[array[int]]") -> Batch:
        """Split rows into shared prefixes and the rest, where that saves work."""
        plain = Batch(suffixes=rows)
        if not self._reuse_prefix:
            return plain
        members: dict[str | None, list[array[int]]] = {}
        for prompt, ids in zip(prompts, rows, strict=True):
            members.setdefault(prompt.group, []).append(ids)
        prefixes = {group: self._prefix(group, of_group) for group, of_group in members.items()}
        distinct = tuple(dict.fromkeys(prefixes.values()))
        if not all(distinct):
            return plain
        own = [prefixes[prompt.group] for prompt in prompts]
        batch = Batch(
            prefixes=distinct,
            owner=[distinct.index(prefix) for prefix in own],
            suffixes=[ids[len(prefix) :] for ids, prefix in zip(rows, own, strict=True)],
        )
        return batch if _n_computed(batch) <= _WORTHWHILE * _n_computed(plain) else plain

    def release(self, prompts: Sequence[Prompt]) -> None:
        """Forget the token ids of answered prompts."""
        for prompt in prompts:
            self._encoded.pop(prompt.key, None)

    def _prefix(self, group: str | None, rows: "Sequence[array[int]]") -> Tokens:
        """Take the prefix planned for a group, so that all its batches share it, if it fits."""
        planned = self._prefixes.get(group, ())
        n = len(planned)
        if planned and all(len(ids) > n and tuple(ids[:n]) == planned for ids in rows):
            return planned
        return _shared(rows)

    def _encode(self, prompts: Sequence[Prompt], max_new_tokens: int) -> "list[array[int]]":
        """Tokenise prompts and refuse those that do not fit."""
        encoded = list(self._encoder.encode(prompts))
        limit = self.limit(max_new_tokens)
        if limit is None:
            return encoded
        sizes = {prompt.id: len(ids) for prompt, ids in zip(prompts, encoded, strict=True)}
        too_long = [name for name, size in sizes.items() if size > limit]
        if too_long:
            worst = max(too_long, key=sizes.__getitem__)
            raise PromptTooLongError(
                f"prompt {worst!r} has {sizes[worst]:,} tokens; {self._label} takes {limit:,} "
                f"({self._context:,} less {max_new_tokens} new ones). {len(too_long):,} of "
                f"{len(prompts):,} prompts are too long: use fewer shots, or let demonstrations be "
                "truncated"
            )
        return encoded


def _shared(rows: "Sequence[array[int]]") -> Tokens:
    """Return the longest common token prefix of rows."""
    return tuple(rows[0][: common_prefix_length(rows)])


def _n_computed(batch: Batch) -> int:
    """Count the positions that a batch computes, padding included."""
    n_prefix = len(batch.prefixes) * max(map(len, batch.prefixes), default=0)
    return n_prefix + len(batch.suffixes) * max(map(len, batch.suffixes))
