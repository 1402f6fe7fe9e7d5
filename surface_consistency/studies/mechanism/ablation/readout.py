"""Readouts of a text under ablation, and the hooks that change the rows of a batch in the model."""

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
"""Positions at which components are ablated: all; those that generate the answer; or only the token
before the answer, which predicts its first token. The latter two are different definitions, because
the values computed at the prompt's positions remain."""

ReadoutKind = Literal["logit", "centred_logit", "log_probability"]
"""Readout of a token of the answer: its logit; its logit minus the mean of all logits; or the
logarithm of its probability."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replacement:
    """Values that replace components; not used for zero ablation."""

    kind: Literal["mean", "resample"]
    """The mean over texts, or the values under one other text."""

    attention: "tuple[torch.Tensor, ...]" = field(repr=False)
    """Input of the output projection of each layer, `(n_positions, n_heads * head_size)`."""

    mlps: "tuple[torch.Tensor, ...]" = field(repr=False)
    """Output of the MLP of each layer, `(n_positions, hidden_size)`."""

    start: int | None = None
    """Position among these of the first answer token; None for a mean, which has no position."""

    is_behind_projection: bool = False
    """Whether `attention` contains outputs of the projections, `(n_positions, hidden_size)`."""

    def values(
        self, kind: Literal["attention", "mlps"], layer: int, positions: range, start: int
    ) -> "torch.Tensor":
        """Return the replacement values for some positions of a text.

        Args:
            kind: Attention or MLP.
            layer: The layer.
            positions: The positions.
            start: Position of the text's first answer token, at which the two texts are aligned.
                Positions beyond an end of the other text have the values of its outermost position.

        Returns:
            `(len(positions), width)`, or `(1, width)` for a mean.
        """
        stored: torch.Tensor = getattr(self, kind)[layer]
        if self.start is None:
            return stored
        shift = self.start - start
        return stored[[min(max(place + shift, 0), len(stored) - 1) for place in positions]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Readout:
    """The tokens that are read, the kind of readout, and the kind of ablation."""

    ids: tuple[int, ...]
    """Token ids of the text, up to the last token that is read."""

    start: int
    """Position of the first token that is read: the first token of the answer."""

    positions: Positions = "all"
    """Positions at which components are ablated."""

    kind: ReadoutKind = "centred_logit"
    """Kind of readout of each token."""

    replacement: Replacement | None = None
    """Values that replace a component; None for zero."""

    @property
    def gold(self) -> list[int]:
        """The tokens that are read."""
        return list(self.ids[self.start :])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Result:
    """Readouts of the rows of an ablation."""

    values: npt.NDArray[np.float64]
    """Readout of each row's tokens, `(n_rows, n_tokens)`, or `(n_rows,)` for one token per row."""

    is_greedy: npt.NDArray[np.bool_]
    """Whether each token is the most probable one, `(n_requested, n_tokens)`, for the rows for
    which this was requested."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerRows:
    """The rows of a batch at one layer."""

    parents: npt.NDArray[np.int64] | None
    """For each row its parent row in the layer below; None if no row is split."""

    ablated: Flags
    """Components of this layer that each row ablates, `(n_rows, n_components_of_the_layer)`, the
    MLP last."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Rows of one forward pass."""

    readout: Readout
    """The readout."""

    layers: list[LayerRows]
    """The rows at each layer."""

    first: int
    """First position of the model's input at which components are ablated."""

    offset: int
    """Number of positions of the text that are in a cache, before those of the input."""

    n_inputs: int
    """Number of positions of the input."""


def split_rows(
    parents: npt.NDArray[np.int64],
) -> Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]:
    """Make the hook that splits rows before a layer; each new row is a copy of its parent."""

    def split(
        module: Any,  # noqa: ANN401
        args: tuple[Any, ...],
        options: dict[str, Any],
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        hidden = args[0] if args else options["hidden_states"]
        hidden = hidden[parents.tolist()]
        if args:
            return (hidden, *args[1:]), options
        return args, {**options, "hidden_states": hidden}

    return split


def keep_last_positions(n_read: int, n_inputs: int) -> Callable[..., tuple[Any, ...]]:
    """Make the hook that passes only the last positions to a module."""

    def keep(module: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:  # noqa: ANN401
        if args and args[0].dim() == 3 and args[0].shape[1] == n_inputs:
            return (args[0][:, -n_read:].contiguous(), *args[1:])
        return args

    return keep


def pad_with_zeros(values: "torch.Tensor", n_read: int, n_inputs: int) -> "torch.Tensor":
    """Add zeros for the positions that a module did not process."""
    if values.dim() != 3 or values.shape[1] != n_read:
        return values
    import torch

    zeros = values.new_zeros(values.shape[0], n_inputs - n_read, values.shape[2])
    return torch.cat([zeros, values], dim=1)


def change_output(output: Any, change: "Callable[[torch.Tensor], torch.Tensor]") -> Any:  # noqa: ANN401
    """Change the output of a module; if it is a tuple, as for experts with a router, its first."""
    return (change(output[0]), *output[1:]) if isinstance(output, tuple) else change(output)


def replace_slices(
    values: "torch.Tensor", ablated: Flags, batch: Batch, replacement: "torch.Tensor | None"
) -> "torch.Tensor":
    """Replace slices of some rows by zeros or by other values.

    Args:
        values: `(n_rows, n_positions, width)`, or with rows and positions in one axis; the last
            positions of the input.
        ablated: Slices of each row that are ablated, `(n_rows, n_slices)`.
        batch: The batch, with the first position of the input at which they are ablated.
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
    """Make the class of a cached prompt on first use, when transformers is imported."""
    import torch
    from transformers.cache_utils import DynamicLayer

    class FixedLayer(DynamicLayer):  # type: ignore[no-untyped-call]
        """Keys and values of one prompt, which precede those of every row and do not change."""

        def update(
            self,
            key_states: torch.Tensor,
            value_states: torch.Tensor,
            *args: object,
            **kwargs: object,
        ) -> tuple[torch.Tensor, torch.Tensor]:
            """Return the prompt followed by the new columns, without storing these."""
            n_rows = key_states.shape[0]
            keys: Any = self.keys
            values: Any = self.values
            return (
                torch.cat([keys.expand(n_rows, -1, -1, -1), key_states], dim=-2),
                torch.cat([values.expand(n_rows, -1, -1, -1), value_states], dim=-2),
            )

    return FixedLayer
