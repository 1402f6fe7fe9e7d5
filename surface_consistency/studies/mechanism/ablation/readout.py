"""What is read of a text, under what, and what stands in a component's place meanwhile."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch

__all__ = ["Positions", "Readout", "ReadoutKind", "Replacement", "Result"]


Positions = Literal["all", "answer"]
"""Where components are taken away: everywhere, or only where the answer is written. The second is
another definition, since what the prompt's positions computed stays."""

ReadoutKind = Literal["logit", "centred_logit", "log_probability"]
"""What is read of the answer's token: its logit; its logit less the mean of all tokens'; or the
logarithm of its probability."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replacement:
    """Values that stand in for components; zero ablation has none."""

    kind: Literal["mean", "resample"]
    """The mean over texts, or the values under one other text."""

    attention: "tuple[torch.Tensor, ...]" = field(repr=False)
    """For each layer what its output projection reads, `(n_positions, n_heads * head_size)`."""

    mlps: "tuple[torch.Tensor, ...]" = field(repr=False)
    """For each layer what its MLP adds, `(n_positions, hidden_size)`."""

    start: int | None = None
    """Position among these of the first answer token; None for a mean, which is of no position."""

    def values(
        self, kind: Literal["attention", "mlps"], layer: int, positions: range, start: int
    ) -> "torch.Tensor":
        """Take the values that stand at some positions of a text.

        Args:
            kind: Of the attention or of the MLP.
            layer: The layer.
            positions: The positions.
            start: Position of the text's first answer token, at which the two texts are laid upon
                each other; beyond the ends of the other text its last values there are taken.

        Returns:
            `(len(positions), width)`, or `(1, width)` for a mean.
        """
        held: torch.Tensor = getattr(self, kind)[layer]
        if self.start is None:
            return held
        shift = self.start - start
        return held[[min(max(place + shift, 0), len(held) - 1) for place in positions]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Readout:
    """What is read, and under what."""

    ids: tuple[int, ...]
    """Token ids of the text, to the last token that is read."""

    start: int
    """Position of the first token that is read: the answer's first."""

    positions: Positions = "all"
    """Where components are taken away."""

    kind: ReadoutKind = "centred_logit"
    """What is read of each token."""

    replacement: Replacement | None = None
    """What stands in for a component; None for zero."""

    @property
    def gold(self) -> list[int]:
        """The tokens that are read."""
        return list(self.ids[self.start :])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Result:
    """Values of rows."""

    values: npt.NDArray[np.float64]
    """Readout of each row's tokens, `(n_rows, n_tokens)`, or `(n_rows,)` of one token each."""

    is_greedy: npt.NDArray[np.bool_] | None
    """Whether each token is the most probable of the untouched model, `(n_tokens,)`; None where no
    row is untouched."""
