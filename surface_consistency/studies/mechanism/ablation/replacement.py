"""Values that replace an ablated component: zero, its mean, or its values under another text.

SLAQ uses zero and names it as a limitation: no text puts a model in this state. The mean over
texts, and the values under a counterfactual text of the same form, are closer to states that occur.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from surface_consistency.studies.mechanism.ablation.engine import AblationModel
from surface_consistency.studies.mechanism.ablation.readout import Replacement

if TYPE_CHECKING:
    import torch


def mean_replacement(model: AblationModel, texts: Sequence[Sequence[int]]) -> Replacement:
    """Compute the mean of every component over texts.

    Args:
        model: The model.
        texts: Token ids of each text, such as the prompts of the study.

    Returns:
        The replacement.

    Raises:
        ValueError: If there is no text, or a text is empty.

    Notes:
        The mean is over all positions of all texts. Every position has the same weight, so long
        texts have more.
    """
    if not texts or not all(map(len, texts)):
        raise ValueError("texts must contain at least one text, each with at least one token")
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
    """Record every component under another text, such as the prompt of another subject.

    Args:
        model: The model, or another one of the same shape. The inputs of output projections are not
            comparable between two models: prepare both models with `unit="attention"`, which cuts
            after the projections.
        ids: Token ids of the other text, including its answer.
        start: Position of the first token of its answer. The two texts are aligned at this token,
            so that their prompts end at the same position.

    Returns:
        The replacement.

    Raises:
        ValueError: If the text is empty, or `start` is not a position of it.

    Notes:
        If all components are replaced, a model with rotary positions returns the other text's
        readouts exactly, provided that both texts have the same tokens from the last token of the
        prompt on. It returns those of another model if both have the same embeddings, final norm
        and unembedding.

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
    """Record the values of all components in one text."""
    attention: list[torch.Tensor] = []
    mlps: list[torch.Tensor] = []

    def record_input(module: Any, args: Any) -> None:  # noqa: ANN401
        attention.append(args[0].detach().reshape(len(ids), -1).clone())

    def record_output(recorded: "list[torch.Tensor]") -> Any:  # noqa: ANN401
        def record(module: Any, args: Any, output: Any) -> None:  # noqa: ANN401
            first = output[0] if isinstance(output, tuple) else output
            recorded.append(first.detach().reshape(len(ids), -1).clone())

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
