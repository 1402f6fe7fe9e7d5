"""What stands in a component's place once it is taken away: nothing, its mean, or another text's.

Zero is what SLAQ does and names as its limitation: no text puts a model there. The mean over texts,
and the values under a counterfactual text of the same form, stay where the model has been.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import torch

    from surface_consistency.studies.mechanism.ablation.engine import AblationModel

__all__ = ["Replacement", "mean_replacement", "resample_replacement"]


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


def mean_replacement(model: "AblationModel", texts: Sequence[Sequence[int]]) -> Replacement:
    """Measure the mean of every component over texts.

    Args:
        model: The model.
        texts: Token ids of each text; the prompts of the study at hand are a good choice.

    Returns:
        The replacement.

    Raises:
        ValueError: If there is no text, or an empty one.

    Notes:
        The mean is over all positions of all texts, each position counting alike; means of long
        texts weigh more.
    """
    if not texts or not all(map(len, texts)):
        raise ValueError("texts must hold at least one text, each with a token")
    sums: Any = None
    for ids in texts:
        attention, mlps = _values(model, ids)
        parts = [part.double().sum(dim=0, keepdim=True) for part in (*attention, *mlps)]
        sums = (
            parts
            if sums is None
            else [total + part for total, part in zip(sums, parts, strict=True)]
        )
    n, n_layers = sum(map(len, texts)), len(model.map.seams)
    means = tuple((total / n).to(model.dtype) for total in sums)
    return Replacement(kind="mean", attention=means[:n_layers], mlps=means[n_layers:])


def resample_replacement(model: "AblationModel", ids: Sequence[int], *, start: int) -> Replacement:
    """Take every component as it is under another text, such as the prompt of another subject.

    Args:
        model: The model.
        ids: Token ids of the other text, its answer included.
        start: Position of the first token of its answer. There it is laid upon the text that is
            ablated, so that the ends of two prompts meet.

    Returns:
        The replacement.

    Raises:
        ValueError: If the text is empty, or `start` is no position of it.
    """
    if not 0 < start <= len(ids):
        raise ValueError(f"start must be a position of a text of {len(ids)} tokens; got {start}")
    attention, mlps = _values(model, ids)
    return Replacement(kind="resample", attention=attention, mlps=mlps, start=start)


def _values(
    model: "AblationModel", ids: Sequence[int]
) -> "tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]":
    """Record what all components do in one text."""
    attention: list[torch.Tensor] = []
    mlps: list[torch.Tensor] = []

    def reading(module: Any, args: Any) -> None:  # noqa: ANN401
        attention.append(args[0].detach().reshape(len(ids), -1).clone())

    def writing(module: Any, args: Any, output: Any) -> None:  # noqa: ANN401
        first = output[0] if isinstance(output, tuple) else output
        mlps.append(first.detach().reshape(len(ids), -1).clone())

    handles = [
        handle
        for seam in model.map.seams
        for handle in (
            seam.projection.register_forward_pre_hook(reading),
            seam.mlp.register_forward_hook(writing),
        )
    ]
    try:
        model.read_alone(ids)
    finally:
        for handle in handles:
            handle.remove()
    return tuple(attention), tuple(mlps)
