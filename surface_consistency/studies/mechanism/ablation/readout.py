"""What is read of a text under what, and what happens to the rows of a batch inside the model."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch

Flags = npt.NDArray[np.bool_]

Positions = Literal["all", "answer", "last"]
"""Where components are taken away: everywhere; only where the answer is written; or only at the
token before it, which predicts its first. The latter two are other definitions, since what the
prompt's positions computed stays."""

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

    is_behind_projection: bool = False
    """Whether `attention` holds what output projections give, `(n_positions, hidden_size)`."""

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

    is_greedy: npt.NDArray[np.bool_]
    """Whether each token is the most probable one, `(n_asked, n_tokens)`, of the rows for which
    this was asked."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerRows:
    """What happens to the rows of a batch at one layer."""

    parents: npt.NDArray[np.int64] | None
    """For each row the one of the layer below that it goes on from; None where none part."""

    ablated: Flags
    """What each row loses here, `(n_rows, n_components_of_the_layer)`, the MLP last."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Rows of one forward."""

    readout: Readout
    """What is read."""

    layers: list[LayerRows]
    """The rows at each layer."""

    first: int
    """Position of the model's input from which on components are away."""

    offset: int
    """Positions of the text that stand in a cache, before those of the input."""

    n_inputs: int
    """Positions of the input."""


def part_rows(
    parents: npt.NDArray[np.int64],
) -> Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]:
    """Make the hook with which rows part before a layer, each a copy of its parent."""

    def part(
        module: Any,  # noqa: ANN401
        args: tuple[Any, ...],
        options: dict[str, Any],
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        hidden = args[0] if args else options["hidden_states"]
        hidden = hidden[parents.tolist()]
        if args:
            return (hidden, *args[1:]), options
        return args, {**options, "hidden_states": hidden}

    return part


def keep_last_positions(n_read: int, n_inputs: int) -> Callable[..., tuple[Any, ...]]:
    """Make the hook with which a module reads the last positions alone."""

    def keep(module: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:  # noqa: ANN401
        if args and args[0].dim() == 3 and args[0].shape[1] == n_inputs:
            return (args[0][:, -n_read:].contiguous(), *args[1:])
        return args

    return keep


def with_zeros_before(values: "torch.Tensor", n_read: int, n_inputs: int) -> "torch.Tensor":
    """Put zeros where a module read nothing."""
    if values.dim() != 3 or values.shape[1] != n_read:
        return values
    import torch

    zeros = values.new_zeros(values.shape[0], n_inputs - n_read, values.shape[2])
    return torch.cat([zeros, values], dim=1)


def changed_output(output: Any, change: "Callable[[torch.Tensor], torch.Tensor]") -> Any:  # noqa: ANN401
    """Change what a module gives; of several values, as of experts with their router, the first."""
    return (change(output[0]), *output[1:]) if isinstance(output, tuple) else change(output)


def without_slices(
    values: "torch.Tensor", ablated: Flags, batch: Batch, replacement: "torch.Tensor | None"
) -> "torch.Tensor":
    """Take slices of some rows away, or put others in their place.

    Args:
        values: `(n_rows, n_positions, width)`, or with rows and positions in one axis; the last
            positions of the input.
        ablated: Slices of each row that go, `(n_rows, n_slices)`.
        batch: Tells the position of the input from which on they go.
        replacement: `(n_inputs - first, width)` or `(1, width)`; None for zero.
    """
    import torch

    n_rows, n_slices = ablated.shape
    rows = np.flatnonzero(ablated.any(axis=1))
    if not rows.size:
        return values
    changed = values.reshape(n_rows, -1, n_slices, values.shape[-1] // n_slices).clone()
    first = max(0, batch.first - (batch.n_inputs - changed.shape[1]))
    where = torch.tensor(rows.tolist(), device=values.device)
    gone = torch.tensor(ablated[rows].tolist(), device=values.device)[:, None, :, None]
    places = slice(first, first + 1 if batch.readout.positions == "last" else None)
    part = changed[where, places]
    if replacement is None:
        part = part.masked_fill(gone, 0.0)
    else:
        other = replacement[-part.shape[1] :].to(part.device, part.dtype)
        part = torch.where(gone, other.reshape(-1, n_slices, part.shape[-1]), part)
    changed[where, places] = part
    return changed.reshape(values.shape)


@cache
def fixed_layer() -> Any:  # noqa: ANN401
    """Make the class of a cached prompt on first use, when transformers is there."""
    import torch
    from transformers.cache_utils import DynamicLayer

    class FixedLayer(DynamicLayer):  # type: ignore[no-untyped-call]
        """Keys and values of one prompt, which stand before those of every row and stay."""

        def update(
            self,
            key_states: torch.Tensor,
            value_states: torch.Tensor,
            *args: object,
            **kwargs: object,
        ) -> tuple[torch.Tensor, torch.Tensor]:
            """Put the prompt before new columns, and keep nothing of them."""
            n_rows = key_states.shape[0]
            keys: Any = self.keys
            values: Any = self.values
            return (
                torch.cat([keys.expand(n_rows, -1, -1, -1), key_states], dim=-2),
                torch.cat([values.expand(n_rows, -1, -1, -1), value_states], dim=-2),
            )

    return FixedLayer
