"""Feeding rows to the model, with or without its cache."""

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from surface_consistency.inference._engine import Engine
from surface_consistency.inference._roomy_cache import roomy_cache
from surface_consistency.inference.lookup._row import Row

if TYPE_CHECKING:
    import torch

__all__ = ["CachedFeeder", "PlainFeeder"]


class CachedFeeder:
    """Feeds rows together; keeps the keys and values of all that they have read.

    A row's columns are [padding | prompt | written, or padding while it waits | padding | result |
    written ...]. Padding has mask 0 and no position, so a row's tokens stand at the positions that
    they have alone.

    Args:
        engine: The model; it must keep this package's cache.
    """

    def __init__(self, engine: Engine) -> None:
        from transformers import DynamicCache

        self._model = engine.model
        accepted = inspect.signature(engine.model.forward).parameters
        self._takes_positions = "position_ids" in accepted
        self._last_logits = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        self._n_layers = len(DynamicCache(config=engine.model.config).layers)
        self._cache: Any = None
        self._mask: Any = None
        self._n_columns = 0

    def begin(self, rows: Sequence[Row], owner: Sequence[int], n_left: int) -> "torch.Tensor":
        """Feed each row what it has not read yet.

        Args:
            rows: The rows of this round.
            owner: For each, the number of the row of the last round that it goes on from; empty in
                the first round.
            n_left: Steps that may follow.

        Returns:
            The logits of each row's next token.
        """
        import torch

        new = [row.ids[row.n_read :] for row in rows]
        width = max(map(len, new))
        start, end = self._n_columns, self._n_columns + width
        mask = torch.zeros(len(rows), end + n_left, dtype=torch.long)
        if owner:
            mask[:, :start] = self._mask[list(owner), :start]
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        for number, tokens in enumerate(new):
            ids[number, width - len(tokens) :] = torch.tensor(tokens)
            mask[number, end - len(tokens) : end] = 1
        self._mask = mask
        self._cache = roomy_cache(
            self._n_layers,
            n_columns=end + n_left,
            prefix=self._cache if owner else None,
            owner=owner,
        )
        return self._feed(rows, ids)

    def step(self, rows: Sequence[Row]) -> "torch.Tensor":
        """Feed the newest token of each row that goes on, and padding to the others.

        Args:
            rows: The rows of this round.

        Returns:
            The logits of each row's next token.
        """
        import torch

        goes_on = torch.tensor([row.state == "going" for row in rows], dtype=torch.long)
        self._mask[:, self._n_columns] = goes_on
        return self._feed(rows, torch.tensor([[row.ids[-1]] for row in rows]))

    def _feed(self, rows: Sequence[Row], ids: "torch.Tensor") -> "torch.Tensor":
        """Run the model on new columns."""
        start, self._n_columns = self._n_columns, self._n_columns + ids.shape[1]
        mask = self._mask[:, : self._n_columns]
        positions = (mask.cumsum(dim=-1) - 1).clamp(min=0)[:, start:]
        for row in rows:
            if row.state == "going":
                row.n_read = len(row.ids)
        device = self._model.device
        options = {"position_ids": positions.to(device)} if self._takes_positions else {}
        logits: torch.Tensor = self._model(
            input_ids=ids.to(device),
            attention_mask=mask.to(device),
            past_key_values=self._cache,
            use_cache=True,
            **options,
            **self._last_logits,
        ).logits[:, -1]
        return logits


class PlainFeeder:
    """Feeds one row from its beginning at every step, for models whose cache cannot be shared.

    Args:
        engine: The model.
    """

    def __init__(self, engine: Engine) -> None:
        self._model = engine.model

    def begin(self, rows: Sequence[Row], owner: Sequence[int], n_left: int) -> "torch.Tensor":
        """Feed the row; see `CachedFeeder.begin`."""
        return self.step(rows)

    def step(self, rows: Sequence[Row]) -> "torch.Tensor":
        """Feed the row from its beginning; see `CachedFeeder.step`."""
        import torch

        ids = torch.tensor([row.ids for row in rows], device=self._model.device)
        logits: torch.Tensor = self._model(input_ids=ids, use_cache=False).logits[:, -1]
        return logits
