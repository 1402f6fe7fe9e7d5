"""Locate the heads and MLPs of a causal language model and their outputs to the residual stream.

A head is a slice of the *input* of its layer's output projection. The output of the projection is
the sum over heads, so a slice of it does not belong to one head. With the unit "attention", the
whole output is one component: attention is cut after the projection, where two models of one shape
can be combined.
"""

import inspect
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import RunnerError

Unit = Literal["head", "kv_group", "attention"]
"""Components of attention: query heads; groups of query heads that share keys and values; or the
whole attention of a layer, which is the output of its output projection."""

_ATTENTION: Final = ("self_attn", "attn", "attention", "self_attention")
_PROJECTION: Final = ("o_proj", "out_proj", "dense", "c_proj")
_MLP: Final = ("mlp", "feed_forward", "ffn", "block_sparse_moe")
_DOWN: Final = ("dense_4h_to_h", "down_proj")
_KV_HEADS: Final = ("num_key_value_heads", "num_kv_heads", "multi_query_group_num")


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A part of a model that is ablated as one unit."""

    kind: Literal["head", "kv_group", "attention", "mlp"]
    """Query head, group of query heads that share keys and values, a layer's attention, or MLP."""

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
    """Modules of one layer to which hooks are added."""

    layer: Any
    """Its module."""

    projection: Any
    """Output projection of its attention; heads are slices of its input."""

    mlp: Any
    """The module whose output the MLP adds to the residual stream."""

    n_heads: int
    """Number of query heads."""

    n_units: int
    """Number of query heads or of groups of them, or 1."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComponentMap:
    """Result of `find_components`."""

    model_type: str
    """Architecture, by its name in the model's configuration."""

    unit: Unit
    """Components of attention."""

    components: tuple[Component, ...]
    """All components: layer by layer, the heads by number and then the MLP."""

    hook_points: tuple[LayerHookPoints, ...] = field(repr=False)
    """Hook points of each layer."""

    def __len__(self) -> int:
        """Return the number of components."""
        return len(self.components)

    @property
    def heads(self) -> npt.NDArray[np.int64]:
        """Indices of the heads or groups among the components."""
        return np.flatnonzero([c.kind != "mlp" for c in self.components])

    @property
    def mlps(self) -> npt.NDArray[np.int64]:
        """Indices of the MLPs among the components."""
        return np.flatnonzero([c.kind == "mlp" for c in self.components])

    @property
    def is_behind_projection(self) -> bool:
        """Whether attention is ablated after its output projection, as one component per layer."""
        return self.unit == "attention"


def find_components(model: Any, *, unit: Unit = "head") -> ComponentMap:  # noqa: ANN401
    """Find the attention heads and MLPs of a causal language model of transformers.

    Args:
        model: The model, with its language-model head. The wrapper of `torch.compile` is removed.
        unit: "head" for query heads, "kv_group" for groups of them that share keys and values (one
            per layer for multi-query attention, the heads if they do not share), "attention" for
            the output of the output projection, including biases.

    Returns:
        The components, layer by layer, heads before the MLP.

    Raises:
        RunnerError: If the model has an encoder, layers without attention (state-space models),
            weights of 8 bits or fewer, or parts that are not found. The message contains the
            architecture, the module and the names that were tried.
        ValueError: If `unit` is unknown.

    Notes:
        Tested for equality with one-by-one ablation on GPT-NeoX, GPT-2, GPT-Neo, OPT, BLOOM, MPT,
        Falcon, Llama, Mistral, Mixtral, Qwen 2 and 3 with their mixtures of experts, Gemma 2 and 3,
        OLMo 2, Phi, Phi-3, Cohere, Granite and gpt-oss. Another architecture is accepted if its
        parts have the names of one of these; `prepare_model` then checks it.
    """
    if unit not in ("head", "kv_group", "attention"):
        raise ValueError(f"unit must be 'head', 'kv_group' or 'attention'; got {unit!r}")
    model = unwrapped(model)
    config = getattr(model, "config", None)
    if config is None or not hasattr(model, "get_output_embeddings"):
        raise RunnerError(
            f"{type(model).__name__} is not a transformers model with a language-model head; load "
            "it with AutoModelForCausalLM"
        )
    config = config.get_text_config(decoder=True) if not config.is_encoder_decoder else config
    name = config.model_type
    if config.is_encoder_decoder:
        raise RunnerError(
            f"{name} is an encoder-decoder, whose components are in two stacks; the engine "
            "supports one. Pass a decoder-only model"
        )
    if model.get_output_embeddings() is None:
        raise RunnerError(
            f"{name} ({type(model).__name__}) has no language-model head and therefore no logits; "
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
    """Return the model inside the wrapper of `torch.compile`, in which hooks have no effect.

    Args:
        model: The model, wrapped or not.

    Returns:
        The model, which shares its weights with the wrapper.
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
        "supports decoders whose layers are in one list"
    )


def _layer_hook_points(layer: Any, number: int, config: Any, unit: Unit) -> LayerHookPoints:  # noqa: ANN401
    """Find the hook points of a layer."""
    where = f"{config.model_type}: layer {number} ({type(layer).__name__})"
    attention = _child(layer, _ATTENTION)
    inner = None if attention is None else _child(attention, _ATTENTION)
    attention = attention if inner is None else inner
    if attention is None:
        raise RunnerError(
            f"{where} has no attention (tried {', '.join(_ATTENTION)}); state-space and recurrent "
            "layers have no heads to ablate"
        )
    projection = _child(attention, _PROJECTION)
    if projection is None:
        raise RunnerError(
            f"{where} has no output projection in {type(attention).__name__} (tried "
            f"{', '.join(_PROJECTION)})"
        )
    mlp = _mlp(layer)
    if mlp is None:
        raise RunnerError(f"{where} has no MLP (tried {', '.join(_MLP)}, and fc1 with fc2)")
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
    """Return the first child that has one of these names; None if there is no such child."""
    import torch

    children = (getattr(module, name, None) for name in names)
    return next((child for child in children if isinstance(child, torch.nn.Module)), None)


def _mlp(layer: Any) -> Any:  # noqa: ANN401
    """Find the module whose output the MLP adds to the residual stream."""
    mlp = _child(layer, _MLP)
    if mlp is None:
        is_opt = _child(layer, ("fc1",)) is not None
        return _child(layer, ("fc2",)) if is_opt else None
    # BLOOM and MPT pass the residual stream to the MLP, which adds it.
    if "residual" in inspect.signature(type(mlp).forward).parameters:
        return _child(mlp, _DOWN)
    return mlp


def _check_weights(module: Any, where: str) -> None:  # noqa: ANN401
    """Reject quantised weights, because their products are not a linear map of the slices."""
    for name, part in module.named_modules():
        weight = getattr(part, "weight", None)
        dtype = getattr(weight, "dtype", None)
        is_float = dtype is None or (dtype.is_floating_point and dtype.itemsize > 1)
        if callable(weight) or not is_float:
            part_name = f"{type(part).__name__}{f' {name!r}' if name else ''}"
            raise RunnerError(
                f"{where} has quantised weights in {part_name}: products of 8 bits or fewer are "
                "rounded by the scale of the row, so the contribution of a component is not exact; "
                "load the model with dtype='bfloat16' or 'float32'"
            )


def _n_heads(projection: Any, config: Any, where: str) -> int:  # noqa: ANN401
    """Count the query heads, and check them against the width of the projection."""
    n_heads = getattr(config, "num_attention_heads", None)
    width = n_inputs(projection)
    if not isinstance(n_heads, int) or n_heads < 1 or width % n_heads:
        raise RunnerError(
            f"{where}: the output projection has {width} inputs, which cannot be divided among "
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
            f"{where}: {n_heads} query heads cannot be divided into {n_groups} groups; use "
            "unit='head'"
        )
    return n_groups
