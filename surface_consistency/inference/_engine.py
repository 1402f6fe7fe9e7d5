"""Batches of token ids through a causal language model, the shared prefixes computed once."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from surface_consistency.inference._roomy_cache import roomy_cache

if TYPE_CHECKING:
    import torch

__all__ = ["Batch", "Engine", "Tokens", "n_columns"]

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows of one call: each a prefix that it shares with others, and the rest."""

    suffixes: Sequence[Sequence[int]]
    """Tokens of each row after its prefix; at least one."""

    prefixes: tuple[Tokens, ...] = ()
    """Distinct prefixes; empty when nothing is shared."""

    owner: Sequence[int] = field(default=())
    """Position in `prefixes` of each row's prefix."""


class Engine:
    """Runs `generate` on batches; keeps the cache of the last prefixes for the next batch.

    A row is laid out as [padding | prefix | padding | suffix]. All rows of one prefix then hold it
    in the same columns, so its keys and values are computed once and repeated; padding has mask 0
    and no position, so a row's tokens stand at the positions they have without padding.

    Args:
        model: A causal language model of transformers.
    """

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        self.model = model
        accepted = inspect.signature(model.forward).parameters
        self._takes_positions = "position_ids" in accepted
        self._prefill_options = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        self._cached: tuple[tuple[Tokens, ...], Any] = ((), None)
        self.keeps_cache = False
        """Whether batches get this package's cache, which can start with prefixes."""

    def generate(
        self,
        batch: Batch,
        config: Any,  # noqa: ANN401
        *,
        criteria: Sequence[Any] = (),
        processors: Sequence[Any] = (),
    ) -> Any:  # noqa: ANN401
        """Call the model's `generate` on a batch.

        Args:
            batch: The rows.
            config: Generation settings.
            criteria: Stopping criteria.
            processors: Logits processors, after those of the settings.

        Returns:
            What `generate` returns; the first `n_columns(batch)` columns are the prompts.
        """
        import torch
        from transformers import LogitsProcessorList, StoppingCriteriaList

        ids, mask = self._columns(batch)
        with torch.inference_mode():
            cache = {"past_key_values": self._cache(batch, config)} if self.keeps_cache else {}
            return self.model.generate(
                input_ids=ids,
                attention_mask=mask,
                generation_config=config,
                stopping_criteria=StoppingCriteriaList(criteria),
                logits_processor=LogitsProcessorList(processors),
                **cache,
            )

    def forget(self) -> None:
        """Free the cache of the last prefixes."""
        self._cached = ((), None)

    def _columns(self, batch: Batch) -> tuple["torch.Tensor", "torch.Tensor"]:
        """Lay the rows out: padded prefix, then padded suffix."""
        width = max(map(len, batch.suffixes))
        left = [_padded(prefix, _width(batch)) for prefix in batch.prefixes]
        ids, mask = [], []
        for row, suffix in enumerate(batch.suffixes):
            tokens, ones = left[batch.owner[row]] if left else ([], [])
            rest, rest_ones = _padded(suffix, width)
            ids.append(tokens + rest)
            mask.append(ones + rest_ones)
        return self._tensor(ids), self._tensor(mask)

    def _cache(self, batch: Batch, config: Any) -> Any:  # noqa: ANN401
        """Make the cache of a batch: each row starts with the keys and values of its prefix."""
        from transformers import DynamicCache

        if batch.prefixes and self._cached[0] != batch.prefixes:
            self.forget()
            self._cached = (batch.prefixes, self._prefill(batch))
        return roomy_cache(
            len(DynamicCache(config=self.model.config).layers),
            n_columns=n_columns(batch) + config.max_new_tokens,
            prefix=self._cached[1] if batch.prefixes else None,
            owner=batch.owner,
        )

    def _prefill(self, batch: Batch) -> Any:  # noqa: ANN401
        """Compute the keys and values of the distinct prefixes, each once."""
        from transformers import DynamicCache

        rows = [_padded(prefix, _width(batch)) for prefix in batch.prefixes]
        ids, mask = (self._tensor(list(part)) for part in zip(*rows, strict=True))
        positions = (mask.cumsum(dim=-1) - 1).clamp(min=0)
        options = {"position_ids": positions} if self._takes_positions else {}
        cache = DynamicCache(config=self.model.config)
        self.model(
            input_ids=ids,
            attention_mask=mask,
            past_key_values=cache,
            use_cache=True,
            **options,
            **self._prefill_options,
        )
        return cache

    def _tensor(self, rows: list[list[int]]) -> "torch.Tensor":
        """Put rows of equal length on the model's device."""
        import torch

        return torch.tensor(rows, dtype=torch.long, device=self.model.device)


def n_columns(batch: Batch) -> int:
    """Count the columns of a batch, padding included."""
    return _width(batch) + max(map(len, batch.suffixes))


def _width(batch: Batch) -> int:
    """Count the columns of the prefixes."""
    return max(map(len, batch.prefixes), default=0)


def _padded(tokens: Sequence[int], width: int) -> tuple[list[int], list[int]]:
    """Pad on the left with the row's own first token: a penalty on tokens seen stays the same."""
    n_padding = width - len(tokens)
    return [tokens[0]] * n_padding + list(tokens), [0] * n_padding + [1] * len(tokens)
