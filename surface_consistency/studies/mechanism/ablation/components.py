"""Where the heads and MLPs of a causal language model write into its residual stream.

A head is a slice of the *input* of its layer's output projection: the output of that projection is
the sum over heads, and a slice of it belongs to none of them. What all heads of a layer write is
that output: a seam behind the projection, at which two models of one shape can be joined.
"""

import inspect
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import RunnerError

Unit = Literal["head", "kv_group", "attention"]
"""What attention is cut into: query heads; the groups of them that share keys and values; or not at
all, each layer's attention being one component, which is what its output projection gives."""

_ATTENTION: Final = ("self_attn", "attn", "attention", "self_attention")
_PROJECTION: Final = ("o_proj", "out_proj", "dense", "c_proj")
_MLP: Final = ("mlp", "feed_forward", "ffn", "block_sparse_moe")
_DOWN: Final = ("dense_4h_to_h", "down_proj")
_KV_HEADS: Final = ("num_key_value_heads", "num_kv_heads", "multi_query_group_num")


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A part of a model that is taken away as a whole."""

    kind: Literal["head", "kv_group", "attention", "mlp"]
    """Query head, group of query heads with common keys and values, a layer's whole attention, or
    MLP."""

    layer: int
    """Layer, from 0."""

    index: int | None
    """Number of the head or group within its layer, from 0; None for an MLP or whole attention."""

    @property
    def name(self) -> str:
        """Short name: "3.7" is head 7 of layer 3, "3.kv1" a group, "3.attn" all, "3.mlp" MLP."""
        parts = {"mlp": "mlp", "attention": "attn", "kv_group": f"kv{self.index}"}
        return f"{self.layer}.{parts.get(self.kind, self.index)}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerHookPoints:
    """Where one layer is cut."""

    layer: Any
    """Its module."""

    projection: Any
    """Output projection of its attention: heads are slices of the input."""

    mlp: Any
    """The module whose output the MLP adds to the residual stream."""

    n_heads: int
    """Query heads."""

    n_units: int
    """Query heads, groups of them, or 1."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComponentMap:
    """Result of `find_components`."""

    model_type: str
    """Architecture, as the model's configuration names it."""

    unit: Unit
    """What attention is cut into."""

    components: tuple[Component, ...]
    """All components: layer by layer, the heads by number and then the MLP."""

    hook_points: tuple[LayerHookPoints, ...] = field(repr=False)
    """Where each layer is cut."""

    def __len__(self) -> int:
        """Return the number of components."""
        return len(self.components)

    @property
    def heads(self) -> npt.NDArray[np.int64]:
        """Places of the heads or groups among the components."""
        return np.flatnonzero([c.kind != "mlp" for c in self.components])

    @property
    def mlps(self) -> npt.NDArray[np.int64]:
        """Places of the MLPs among the components."""
        return np.flatnonzero([c.kind == "mlp" for c in self.components])

    @property
    def is_behind_projection(self) -> bool:
        """Whether attention is cut behind its output projection, as one component a layer."""
        return self.unit == "attention"


def find_components(model: Any, *, unit: Unit = "head") -> ComponentMap:  # noqa: ANN401
    """Find the attention heads and MLPs of a causal language model of transformers.

    Args:
        model: The model, with its language-model head. One that `torch.compile` wrapped is taken
            as it was before.
        unit: "head" for query heads, "kv_group" for the groups of them that share keys and values
            (one a layer under multi-query attention, the heads themselves without sharing),
            "attention" for what the output projection gives, biases included.

    Returns:
        The components, layer by layer, heads before the MLP.

    Raises:
        RunnerError: If the model reads with an encoder, has layers without attention
            (state-space models), weights of 8 bits or fewer, or parts that are not found; names the
            architecture, the module and what was looked for.
        ValueError: If `unit` is unknown.

    Notes:
        Tested for equality with one-by-one ablation on GPT-NeoX, GPT-2, GPT-Neo, OPT, BLOOM, MPT,
        Falcon, Llama, Mistral, Mixtral, Qwen 2 and 3 with their mixtures of experts, Gemma 2 and 3,
        OLMo 2, Phi, Phi-3, Cohere, Granite and gpt-oss. Another architecture is taken if it names
        its parts as one of these does; `prepare_model` then checks it.
    """
    if unit not in ("head", "kv_group", "attention"):
        raise ValueError(f"unit must be 'head', 'kv_group' or 'attention'; got {unit!r}")
    model = unwrapped(model)
    config = getattr(model, "config", None)
    if config is None or not hasattr(model, "get_output_embeddings"):
        raise RunnerError(
            f"{type(model).__name__} is no model of transformers with a language-model head; load "
            "it with AutoModelForCausalLM"
        )
    config = config.get_text_config(decoder=True) if not config.is_encoder_decoder else config
    name = config.model_type
    if config.is_encoder_decoder:
        raise RunnerError(
            f"{name} is an encoder-decoder: an answer's components stand in two stacks, and the "
            "engine takes one; name a decoder-only model"
        )
    if model.get_output_embeddings() is None:
        raise RunnerError(
            f"{name} ({type(model).__name__}) has no language-model head, so no token has a logit; "
            "load it with AutoModelForCausalLM"
        )
    hook_points = tuple(
        _layer_hook_points(layer, number, config, unit)
        for number, layer in enumerate(_layers(model, config))
    )
    components: list[Component] = []
    for number, points in enumerate(hook_points):
        places = [None] if unit == "attention" else range(points.n_units)
        components += [Component(kind=unit, layer=number, index=place) for place in places]
        components.append(Component(kind="mlp", layer=number, index=None))
    return ComponentMap(
        model_type=name, unit=unit, components=tuple(components), hook_points=hook_points
    )


def unwrapped(model: Any) -> Any:  # noqa: ANN401
    """Take a model out of the wrapper of `torch.compile`, which hooks would not reach.

    Args:
        model: The model, wrapped or not.

    Returns:
        The model, its weights shared with the wrapper.
    """
    return getattr(model, "_orig_mod", model)


def _layers(model: Any, config: Any) -> list[Any]:  # noqa: ANN401
    """Find the list of decoder layers."""
    import torch

    wanted = getattr(config, "num_hidden_layers", None)
    lists = [
        (name, module)
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.ModuleList) and len(module) == wanted
    ]
    if lists:
        return list(lists[0][1])
    raise RunnerError(
        f"{config.model_type}: no list of {wanted} layers in {type(model).__name__}; the engine "
        "takes decoders whose layers stand in one list"
    )


def _layer_hook_points(layer: Any, number: int, config: Any, unit: Unit) -> LayerHookPoints:  # noqa: ANN401
    """Find where a layer is cut."""
    where = f"{config.model_type}: layer {number} ({type(layer).__name__})"
    attention = _child(layer, _ATTENTION)
    inner = None if attention is None else _child(attention, _ATTENTION)
    attention = attention if inner is None else inner
    if attention is None:
        raise RunnerError(
            f"{where} has no attention (looked for {', '.join(_ATTENTION)}); state-space and "
            "recurrent layers have no heads to take away"
        )
    projection = _child(attention, _PROJECTION)
    if projection is None:
        raise RunnerError(
            f"{where} has no output projection in {type(attention).__name__} (looked for "
            f"{', '.join(_PROJECTION)})"
        )
    mlp = _mlp(layer)
    if mlp is None:
        raise RunnerError(f"{where} has no MLP (looked for {', '.join(_MLP)}, and fc1 with fc2)")
    for module in (projection, mlp):
        _check_weights(module, where)
    n_heads = _n_heads(projection, config, where)
    n_units = 1
    if unit != "attention":
        n_units = n_heads if unit == "head" else _n_groups(config, n_heads, where)
    return LayerHookPoints(
        layer=layer, projection=projection, mlp=mlp, n_heads=n_heads, n_units=n_units
    )


def _child(module: Any, names: tuple[str, ...]) -> Any:  # noqa: ANN401
    """Return the first child of these names; None if there is none."""
    import torch

    children = (getattr(module, name, None) for name in names)
    return next((child for child in children if isinstance(child, torch.nn.Module)), None)


def _mlp(layer: Any) -> Any:  # noqa: ANN401
    """Find the module whose output is what the MLP adds."""
    mlp = _child(layer, _MLP)
    if mlp is None:
        is_opt = _child(layer, ("fc1",)) is not None
        return _child(layer, ("fc2",)) if is_opt else None
    # BLOOM and MPT hand the residual stream to the MLP, which adds it.
    if "residual" in inspect.signature(type(mlp).forward).parameters:
        return _child(mlp, _DOWN)
    return mlp


def _check_weights(module: Any, where: str) -> None:  # noqa: ANN401
    """Refuse quantised weights, whose products are no linear map of the slices."""
    for name, part in module.named_modules():
        weight = getattr(part, "weight", None)
        dtype = getattr(weight, "dtype", None)
        is_float = dtype is None or (dtype.is_floating_point and dtype.itemsize > 1)
        if callable(weight) or not is_float:
            part_name = f"{type(part).__name__}{f' {name!r}' if name else ''}"
            raise RunnerError(
                f"{where} has quantised weights in {part_name}: products of 8 bits or fewer are "
                "rounded by the row's own scale, so a component's share is not exact; load the "
                "model with dtype='bfloat16' or 'float32'"
            )


def _n_heads(projection: Any, config: Any, where: str) -> int:  # noqa: ANN401
    """Count the query heads, and hold them against the width of the projection."""
    n_heads = getattr(config, "num_attention_heads", None)
    width = n_inputs(projection)
    if not isinstance(n_heads, int) or n_heads < 1 or width % n_heads:
        raise RunnerError(
            f"{where}: the output projection reads {width} numbers, which are not those of "
            f"{n_heads} heads"
        )
    return n_heads


def n_inputs(projection: Any) -> int:  # noqa: ANN401
    """Count the inputs of a projection.

    Args:
        projection: A `Linear`, or a `Conv1D` of GPT-2, whose weight is transposed.

    Returns:
        The number.
    """
    known = getattr(projection, "in_features", None)
    return int(known if known is not None else projection.weight.shape[0])


def _n_groups(config: Any, n_heads: int, where: str) -> int:  # noqa: ANN401
    """Count the groups of heads that share keys and values."""
    counts = (getattr(config, name, None) for name in _KV_HEADS)
    n_groups = next((count for count in counts if isinstance(count, int)), n_heads)
    if getattr(config, "multi_query", False) and not getattr(
        config, "new_decoder_architecture", False
    ):
        n_groups = 1
    if n_groups < 1 or n_heads % n_groups:
        raise RunnerError(
            f"{where}: {n_heads} query heads do not fall into {n_groups} groups; use unit='head'"
        )
    return n_groups
