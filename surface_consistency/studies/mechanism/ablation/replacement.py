"""What stands in a component's place once it is taken away: nothing, its mean, or another text's.

Zero is what SLAQ does and names as its limitation: no text puts a model there. The mean over texts,
and the values under a counterfactual text of the same form, stay where the model has been.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from surface_consistency.studies.mechanism.ablation.engine import AblationModel
from surface_consistency.studies.mechanism.ablation.readout import Replacement

if TYPE_CHECKING:
    import torch


def mean_replacement(model: AblationModel, texts: Sequence[Sequence[int]]) -> Replacement:
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
    n, n_layers = sum(map(len, texts)), len(model.map.hook_points)
    means = tuple((total / n).to(model.dtype) for total in sums)
    return Replacement(
        kind="mean",
        attention=means[:n_layers],
        mlps=means[n_layers:],
        is_behind_projection=model.map.is_behind_projection,
    )


def resample_replacement(model: AblationModel, ids: Sequence[int], *, start: int) -> Replacement:
    """Take every component as it is under another text, such as the prompt of another subject.

    Args:
        model: The model, or another one of the same shape. What another model's heads hand to its
            output projections means nothing to those of the first: prepare both with
            `unit="attention"`, where the seam lies behind the projections.
        ids: Token ids of the other text, its answer included.
        start: Position of the first token of its answer. There it is laid upon the text that is
            ablated, so that the ends of two prompts meet.

    Returns:
        The replacement.

    Raises:
        ValueError: If the text is empty, or `start` is no position of it.

    Notes:
        With all components replaced, a model that tells positions by rotation gives the other
        text's readouts exactly, if both texts have the same tokens from the one before the answer
        on; and those of another model, if both share embeddings, final norm and unembedding.

    References:
        Vig et al., arXiv 2004.12265; Geiger et al., arXiv 2106.02997 (activation patching, if the
        other text has the same answer after another prompt).
    """
    if not 0 < start <= len(ids):
        raise ValueError(f"start must be a position of a text of {len(ids)} tokens; got {start}")
    attention, mlps = _values(model, ids)
    return Replacement(
        kind="resample",
        attention=attention,
        mlps=mlps,
        start=start,
        is_behind_projection=model.map.is_behind_projection,
    )


def _values(
    model: AblationModel, ids: Sequence[int]
) -> "tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]":
    """Record what all components do in one text."""
    attention: list[torch.Tensor] = []
    mlps: list[torch.Tensor] = []

    def record_input(module: Any, args: Any) -> None:  # noqa: ANN401
        attention.append(args[0].detach().reshape(len(ids), -1).clone())

    def record_output(held: "list[torch.Tensor]") -> Any:  # noqa: ANN401
        def record(module: Any, args: Any, output: Any) -> None:  # noqa: ANN401
            first = output[0] if isinstance(output, tuple) else output
            held.append(first.detach().reshape(len(ids), -1).clone())

        return record

    handles = [
        handle
        for points in model.map.hook_points
        for handle in (
            points.projection.register_forward_hook(record_output(attention))
            if model.map.is_behind_projection
            else points.projection.register_forward_pre_hook(record_input),
            points.mlp.register_forward_hook(record_output(mlps)),
        )
    ]
    try:
        model.read_alone(ids)
    finally:
        for handle in handles:
            handle.remove()
    return tuple(attention), tuple(mlps)
