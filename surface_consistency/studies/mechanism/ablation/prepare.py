"""Prepare a model for ablation: find its components, and test which fast methods are exact."""

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from surface_consistency.studies.mechanism.ablation.components import Unit
from surface_consistency.studies.mechanism.ablation.engine import AblationModel, Mode
from surface_consistency.studies.mechanism.ablation.readout import Flags, Readout

if TYPE_CHECKING:
    import torch

_MODEL_ERRORS: Final = (
    *(AttributeError, IndexError, NotImplementedError, RuntimeError),
    *(TypeError, ValueError),
)
_PROBE: Final = (9, 6)  # number of tokens of the text of the checks, and start of its answer
_CLOSE_EXACT, _CLOSE_DEVICE, _CLOSE_LOW = 1e-5, 1e-4, 2e-2


def prepare_model(
    model: Any,  # noqa: ANN401
    *,
    unit: Unit = "head",
) -> AblationModel:
    """Find a model's components, and compare the fast methods of ablation with the slow one.

    Four fast methods are compared with slow ones on a text of nine tokens: growing batches with one
    forward pass per component; the tokens' rows of the unembedding with the model's own logits; a
    last layer that processes only the positions that are read with a complete one; and the prompt's
    key-value cache with the whole text. A method that differs is not used; the fingerprint contains
    the reason.

    Args:
        model: A causal language model of transformers, on any devices (also with `device_map`).
            Existing hooks, such as those of a steering vector, are kept and are part of the
            measured model.
        unit: Components of attention; see `find_components`.

    Returns:
        The model for `ablate` and `recover`.

    Raises:
        MissingDependencyError: If torch or transformers is not installed.
        RunnerError: See `find_components`.
        RunnerError: If the model's layers were compiled, or it returns values that are not finite.
    """
    prepared = AblationModel(model, unit=unit)
    _find_fast_ways(prepared)
    return prepared


def _find_fast_ways(model: AblationModel) -> None:
    """Find which fast methods are exact for this model."""
    modes: tuple[Mode, ...] = ("growing", "rows")
    n_tokens, start = _PROBE
    ids = tuple((7919 * place + 13) % model.vocabulary for place in range(n_tokens))
    readout = Readout(ids=ids, start=start, kind="logit")
    places = [0, len(model.map) // 2, len(model.map) - 1]
    ablated = np.zeros((4, len(model.map)), dtype=bool)
    ablated[[1, 2, 3], places] = True
    model.mode, model.reads_gold_rows, model.ends_early = "single", False, False
    slow = model.evaluate(readout, ablated).values
    scale = max(1.0, float(np.abs(slow).max()))
    for mode in modes:
        model.mode = mode
        reason = _differs(model, readout, ablated, slow, scale)
        if reason is None:
            break
        model.reasons.setdefault("mode", f"growing batches: {reason}")
        model.mode = "single"
    model.ends_early = True
    if reason := _differs(model, readout, ablated, slow, scale):
        model.ends_early = False
        model.reasons["end"] = f"those that are read: {reason}"
    model.reads_gold_rows = True
    if reason := _differs(model, readout, ablated, slow, scale):
        model.reads_gold_rows = False
        model.reasons["gold"] = f"rows of the unembedding: {reason}"
    answer = Readout(ids=ids, start=start, kind="logit", positions="answer")
    ends_early, model.ends_early, model.reuses_prompt = model.ends_early, False, False
    whole = model.evaluate(answer, ablated).values
    model.ends_early, model.reuses_prompt = ends_early, True
    reason = _cache_obstacle(model) or _differs(model, answer, ablated, whole, scale)
    if reason is not None:
        model.reuses_prompt = False
        model.reasons["prompt"] = f"key-value cache: {reason}"
    model.clear_cache()
    if uncovered := _uncovered(model, readout, scale):
        model.reasons["uncovered"] = uncovered


def _differs(
    model: AblationModel,
    readout: Readout,
    ablated: Flags,
    expected: npt.NDArray[np.float64],
    scale: float,
) -> str | None:
    """Describe how a method differs from the expected values; None if it does not differ."""
    exact = _CLOSE_EXACT if model.model.device.type == "cpu" else _CLOSE_DEVICE
    close = (exact if model.dtype.itemsize >= 4 else _CLOSE_LOW) * scale
    try:
        values = model.evaluate(readout, ablated).values
    except _MODEL_ERRORS as error:
        first, *_ = str(error).strip().splitlines() or [""]
        return f"the model refuses them ({type(error).__name__}: {first[:80]})"
    distance = float(np.abs(values - expected).max())
    return None if distance <= close else f"logits differ by {distance:.1g}"


def _cache_obstacle(model: AblationModel) -> str | None:
    """Describe a kind of cache that rows cannot share; None if rows can share the model's cache."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer

    kinds = {type(layer) for layer in DynamicCache(config=model.model.config).layers}
    special = sorted(kind.__name__ for kind in kinds if kind is not DynamicLayer)
    return f"the model caches with {', '.join(special)}" if special else None


def _uncovered(model: AblationModel, readout: Readout, scale: float) -> str | None:
    """Report a layer that adds more than its heads and its MLP, such as a state-space branch.

    If all of them are ablated, a layer may only add biases, which are equal at every position.
    """
    before: list[torch.Tensor] = []
    after: list[torch.Tensor] = []
    handles = []
    for points in model.map.hook_points:
        handles += [
            points.layer.register_forward_pre_hook(
                lambda module, args, options: before.append(
                    args[0] if args else options["hidden_states"]
                ),
                with_kwargs=True,
            ),
            points.layer.register_forward_hook(
                lambda module, args, output: after.append(
                    output[0] if isinstance(output, tuple) else output
                )
            ),
        ]
    mode, ends_early = model.mode, model.ends_early
    model.mode, model.ends_early = "single", False
    try:
        model.evaluate(readout, np.ones((1, len(model.map)), dtype=bool))
    finally:
        model.mode, model.ends_early = mode, ends_early
        for handle in handles:
            handle.remove()
    for layer, (entry, exit_) in enumerate(zip(before, after, strict=True)):
        added = (exit_ - entry).detach().float()
        spread = float((added - added.mean(dim=-2, keepdim=True)).abs().max())
        size = max(
            float(entry.detach().float().abs().max()), scale if math.isfinite(scale) else 1.0
        )
        if spread > (1e-3 if model.dtype.itemsize >= 4 else 5e-2) * size:
            return (
                f"layer {layer} adds more than its heads and its MLP; what else it adds stays "
                "in the floor"
            )
    return None
