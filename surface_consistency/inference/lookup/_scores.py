"""From logits to the next token of each row: penalty, biases, forbidden tokens."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from surface_consistency.inference.lookup._row import Row
from surface_consistency.inference.lookup.settings import LookupSettings, TokenIds

if TYPE_CHECKING:
    import torch

__all__ = ["Scorer"]


class Scorer:
    """Chooses the next token of each row, greedily.

    Args:
        rows: The rows.
        device: Where the model's logits are.
        settings: Penalty, biases and the limit of lookups.
        tokens: The lookup tokens.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        *,
        device: "torch.device",
        settings: LookupSettings,
        tokens: TokenIds,
    ) -> None:
        import torch

        self._penalty = settings.repetition_penalty
        width = max(len(row.ids) for row in rows)
        seen = [row.ids + row.ids[:1] * (width - len(row.ids)) for row in rows]
        self._seen = torch.tensor(seen, device=device)
        self._places = torch.tensor(tokens.all, device=device)
        self._biases = torch.tensor([_biases(row, settings) for row in rows], device=device)

    def choose(self, logits: "torch.Tensor") -> list[int]:
        """Return the best token of each row.

        The penalty comes first and the biases after it, as `generate` of transformers orders them.
        """
        import torch

        scores = logits.float()
        if self._penalty != 1.0:
            found = scores.gather(1, self._seen)
            found = torch.where(found < 0, found * self._penalty, found / self._penalty)
            scores = scores.scatter(1, self._seen, found)
        scores[:, self._places] += self._biases
        best = scores.argmax(dim=-1, keepdim=True)
        self._seen = torch.cat([self._seen, best], dim=1)
        tokens: list[int] = best.squeeze(-1).tolist()
        return tokens


def _biases(row: Row, settings: LookupSettings) -> list[float]:
    """Return what is added to the logits of the four lookup tokens."""
    if row.kind == "forbid" or row.n_lookups >= settings.max_lookups:
        return [-math.inf] * 4
    if row.kind == "pause" or settings.biases_allowed:
        return [float(settings.entity_bias)] + [float(settings.other_bias)] * 3
    return [0.0] * 4
