"""A key-value cache with room for what is to come: steps write into it instead of copying it."""

from collections.abc import Sequence
from functools import cache
from typing import Any

__all__ = ["roomy_cache"]


def roomy_cache(n_layers: int, *, n_columns: int, prefix: Any, owner: Sequence[int]) -> Any:  # noqa: ANN401
    """Make a cache of transformers that starts with a prefix for each row.

    The library's own growing cache copies all keys and values at every step, which takes most of
    the time of a decoding step on a CPU.

    Args:
        n_layers: Layers of the model.
        n_columns: Columns that the cache will hold at most.
        prefix: Cache of the distinct prefixes; None to start empty.
        owner: Row of `prefix` that each row starts with.

    Returns:
        The cache.
    """
    from transformers.cache_utils import Cache

    layers = [_layer_class()(n_columns) for _ in range(n_layers)]
    if prefix is not None:
        for layer, of_prefix in zip(layers, prefix.layers, strict=True):
            layer.start(of_prefix.keys, of_prefix.values, owner)
    return Cache(layers=layers)


@cache
def _layer_class() -> Any:  # noqa: ANN401
    """Make the class on first use, when transformers is there."""
    import torch
    from transformers.cache_utils import DynamicLayer

    class RoomyLayer(DynamicLayer):  # type: ignore[no-untyped-call]
        """A growing layer whose tensors are views of buffers of full length."""

        def __init__(self, n_columns: int) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self._n_columns = n_columns

        def start(self, keys: torch.Tensor, values: torch.Tensor, owner: Sequence[int]) -> None:
            """Give each row the prefix that it owns."""
            self._reserve(keys, values, len(owner))
            if keys.shape[0] > 1:
                rows = torch.tensor(owner, device=keys.device)
                keys, values = keys[rows], values[rows]
            length = keys.shape[-2]
            self._all_keys[:, :, :length] = keys
            self._all_values[:, :, :length] = values
            self._grow(length)

        def update(
            self,
            key_states: torch.Tensor,
            value_states: torch.Tensor,
            *args: object,
            **kwargs: object,
        ) -> tuple[torch.Tensor, torch.Tensor]:
            """Write new columns behind the old ones."""
            if not self.is_initialized:
                self._reserve(key_states, value_states, key_states.shape[0])
            start = self.get_seq_length()
            end = start + key_states.shape[-2]
            self._all_keys[:, :, start:end] = key_states
            self._all_values[:, :, start:end] = value_states
            return self._grow(end)

        def _reserve(self, keys: torch.Tensor, values: torch.Tensor, n_rows: int) -> None:
            """Allocate buffers like these tensors, with all rows and columns."""
            self.lazy_initialization(keys, values)
            self._all_keys, self._all_values = (
                like.new_empty(n_rows, like.shape[1], self._n_columns, like.shape[-1])
                for like in (keys, values)
            )

        def _grow(self, length: int) -> tuple[torch.Tensor, torch.Tensor]:
            """Show the first columns."""
            keys, values = (buffer[:, :, :length] for buffer in (self._all_keys, self._all_values))
            self.keys, self.values = keys, values
            return keys, values

    return RoomyLayer
