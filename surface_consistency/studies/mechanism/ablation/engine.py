"""A model that runs with components taken away, many sets of them in one batch.

A row of a batch is the same text with other components gone. Rows that miss the same up to a layer
are one row up to there, and part where they differ: the batch *grows* from layer to layer, and one
forward of the model gives every component's effect, exactly. No code of the model is touched; rows
part in a hook before each layer.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from surface_consistency.errors import (
    MissingDependencyError,
    RunnerError,
    RunnerOutOfMemoryError,
)
from surface_consistency.models._decoding import model_context
from surface_consistency.models._engine import is_out_of_memory
from surface_consistency.studies.mechanism.ablation.components import (
    ComponentMap,
    Unit,
    find_components,
    n_inputs,
    unwrapped,
)
from surface_consistency.studies.mechanism.ablation.replacement import Replacement

if TYPE_CHECKING:
    import torch

__all__ = ["AblationModel", "Positions", "Reading", "Readout", "Result", "prepare_model"]

Positions = Literal["all", "answer"]
"""Where components are taken away: everywhere, or only where the answer is written. The second is
another definition, since what the prompt's positions computed stays."""

Readout = Literal["logit", "centred_logit", "log_probability"]
"""What is read of the answer's token: its logit; its logit less the mean of all tokens'; or the
logarithm of its probability."""

_Flags = npt.NDArray[np.bool_]
_Mode = Literal["growing", "rows", "single"]

_CANNOT: Final = (
    *(AttributeError, IndexError, NotImplementedError, RuntimeError),
    *(TypeError, ValueError),
)
_ELEMENTS: Final = 2**28  # of the widest activation of a batch: one GiB in 32 bits
_LOGITS: Final = 2**26
_PROBE: Final = (9, 6)  # tokens of the text of the checks, and where its answer starts
_CLOSE_EXACT, _CLOSE_DEVICE, _CLOSE_LOW = 1e-5, 1e-4, 2e-2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """What is read, and under what."""

    ids: tuple[int, ...]
    """Token ids of the text, to the last token that is read."""

    start: int
    """Position of the first token that is read: the answer's first."""

    positions: Positions = "all"
    """Where components are taken away."""

    readout: Readout = "centred_logit"
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

    is_greedy: _Flags | None
    """Whether each token is the most probable of the untouched model, `(n_tokens,)`; None where no
    row is untouched."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Layer:
    """What happens to the rows of a batch at one layer."""

    parents: npt.NDArray[np.int64] | None
    """For each row the one of the layer below that it goes on from; None where none part."""

    away: _Flags
    """What each row loses here, `(n_rows, n_components_of_the_layer)`, the MLP last."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Batch:
    """Rows of one forward."""

    reading: Reading
    """What is read."""

    layers: list[_Layer]
    """The rows at each layer."""

    first: int
    """Position of the model's input from which on components are away."""

    offset: int
    """Positions of the text that stand in a cache, before those of the input."""

    n_inputs: int
    """Positions of the input."""


def prepare_model(
    model: Any,  # noqa: ANN401
    *,
    unit: Unit = "head",
    check: bool = True,
) -> "AblationModel":
    """Find a model's components and hold the fast ways of ablation against the slow one.

    Args:
        model: A causal language model of transformers, on any devices (`device_map` too). Hooks
            that it carries already, such as a steering vector's, stay and are part of what is
            measured.
        unit: What attention is cut into; see `find_components`.
        check: Whether to compare growing batches with one forward a component, the tokens' rows of
            the unembedding with the model's own logits, a last layer that works at the positions
            that are read alone with a whole one, and the prompt's key-value cache with the whole
            text, on a text of nine tokens. What differs is not used, and the fingerprint says so.
            Without, all are trusted.

    Returns:
        The model for `ablate` and `recover`.

    Raises:
        MissingDependencyError: If torch or transformers is not installed.
        UnsupportedModelError: See `find_components`.
        RunnerError: If the model's layers were compiled, or it gives no numbers.
    """
    return AblationModel(model, unit=unit, check=check)


class AblationModel:
    """A model whose components can be taken away; made by `prepare_model`.

    Args:
        model: The model.
        unit: What attention is cut into.
        check: Whether to check the fast ways.
    """

    def __init__(self, model: Any, *, unit: Unit = "head", check: bool = True) -> None:  # noqa: ANN401
        try:
            import torch
            import transformers  # noqa: F401
        except ImportError as error:
            raise MissingDependencyError("ablation", error.name or "torch", "inference") from error
        self.model = unwrapped(model)
        """The model of transformers."""
        self.map: ComponentMap = find_components(self.model, unit=unit)
        """Its components."""
        compiled = [
            name
            for name, module in self.model.named_modules()
            if getattr(module, "_compiled_call_impl", None) is not None
        ]
        if compiled:
            raise RunnerError(
                f"{compiled[0] or type(self.model).__name__} was compiled in place, so hooks would "
                "not reach it; prepare the model before `compile()`"
            )
        self.dtype: torch.dtype = self.model.dtype
        """Number format of the weights."""
        self.mode: _Mode = "growing"
        self.reads_gold_rows = True
        self.reuses_prompt = True
        self.ends_early = True
        self._reasons: dict[str, str] = {}
        self._prompt: tuple[tuple[int, ...], Any] = ((), None)
        self._checked = check
        if check:
            self._check()

    @property
    def context(self) -> int | None:
        """Tokens that the model can read; None where nothing says so."""
        return model_context(self.model)

    @property
    def vocabulary(self) -> int:
        """Tokens that the model knows."""
        return int(self.model.get_input_embeddings().num_embeddings)

    def fingerprint(self) -> dict[str, JsonValue]:
        """Tell what was ablated and in which way, for a line beside the numbers."""
        return {
            "model_type": self.map.model_type,
            "unit": self.map.unit,
            "components": len(self.map),
            "dtype": str(self.dtype).removeprefix("torch."),
            "batches": self._told("mode", self.mode),
            "read_from": self._told(
                "gold", "rows of the unembedding" if self.reads_gold_rows else "the model's logits"
            ),
            "answer_positions": self._told(
                "prompt", "key-value cache" if self.reuses_prompt else "whole text"
            ),
            "last_layer": self._told(
                "end", "positions that are read" if self.ends_early else "all positions"
            ),
            "uncovered": self._reasons.get("uncovered"),
            "checked": self._checked,
        }

    def _told(self, what: str, way: str) -> str:
        """Name a way, and why it is not the fast one."""
        return f"{way} ({self._reasons[what]})" if what in self._reasons else way

    def read_alone(self, ids: Sequence[int]) -> None:
        """Run the untouched model on one text, for hooks of the caller.

        Args:
            ids: Token ids.
        """
        with self._ready():
            self._body(self._tensor([list(ids)]), use_cache=False)

    def evaluate(
        self,
        reading: Reading,
        away: _Flags,
        *,
        tokens: npt.NDArray[np.int64] | None = None,
        max_rows: int | None = None,
    ) -> Result:
        """Run a text with sets of components away.

        Args:
            reading: What is read.
            away: What each row loses, `(n_rows, n_components)`; a row that loses nothing is the
                untouched model.
            tokens: Number of the one token that is read of each row, `(n_rows,)`; None for all.
            max_rows: Rows of a batch at most; None for as many as activations of a GiB hold. Halved
                when the device's memory is full.

        Returns:
            The readouts.

        Raises:
            RunnerOutOfMemoryError: If a single row does not fit.
            RunnerError: If the model gives no numbers.
        """
        n_read = len(reading.gold)
        values = np.empty((len(away), n_read) if tokens is None else len(away))
        limit = self._n_rows(reading) if max_rows is None else max_rows
        limit = 1 if self.mode == "single" else max(limit, 1)
        # Rows that part late stand side by side: the untouched one first.
        waiting = np.lexsort(away.T[::-1])
        greedy: _Flags | None = None
        with self._ready():
            while waiting.size:
                chunk, rest = waiting[:limit], waiting[limit:]
                chosen = None if tokens is None else tokens[chunk]
                part = self._unless_full(reading, away[chunk], chosen)
                if part is None and limit == 1:
                    raise RunnerOutOfMemoryError(
                        f"a text of {len(reading.ids)} tokens does not fit into the memory of "
                        f"{self.model.device} with one row; use dtype='bfloat16', device_map, or a "
                        "shorter text"
                    )
                if part is None:
                    limit = max(1, min(limit, len(chunk)) // 2)
                    continue
                values[chunk], told = part
                greedy = greedy if told is None else told
                waiting = rest
        if not np.isfinite(values).all():
            raise RunnerError(
                f"{self.map.model_type} gives no finite numbers for the tokens of the answer; look "
                "for NaN among its weights, or load it with dtype='float32'"
            )
        return Result(values=values, is_greedy=greedy)

    def _n_rows(self, reading: Reading) -> int:
        """Say how many rows a batch may have without need."""
        widest = max(
            getattr(self._text_config, "intermediate_size", 0) or 0,
            *(n_inputs(seam.projection) for seam in self.map.seams),
        )
        n_read = len(reading.gold)
        rows = _ELEMENTS // max(1, len(reading.ids) * widest)
        if not self.reads_gold_rows:
            rows = min(rows, _LOGITS // (n_read * self.vocabulary))
        return max(4, rows)

    @cached_property
    def _text_config(self) -> Any:  # noqa: ANN401
        """The configuration of the text model."""
        return self.model.config.get_text_config()

    @contextmanager
    def _ready(self) -> Iterator[None]:
        """Turn dropout off for a while, and gradients."""
        import torch

        was_training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                yield
        finally:
            self.model.train(was_training)

    def _unless_full(
        self,
        reading: Reading,
        away: _Flags,
        tokens: npt.NDArray[np.int64] | None,
    ) -> tuple[npt.NDArray[np.float64], _Flags | None] | None:
        """Run a batch; None if the device's memory cannot hold it."""
        import torch

        try:
            return self._run(reading, away, tokens)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return None

    def _run(
        self, reading: Reading, away: _Flags, tokens: npt.NDArray[np.int64] | None
    ) -> tuple[npt.NDArray[np.float64], _Flags | None]:
        """Run a batch."""
        layers, place = self._tree(away)
        outputs = self._forward(reading, layers, len(away))
        values = self._read(outputs, reading, place, tokens)
        greedy = None
        is_base = ~away.any(axis=1)
        if is_base.any():
            base = int(place[int(np.argmax(is_base))])
            told = self._logits(outputs[base : base + 1])[0].argmax(dim=-1).tolist()
            greedy = np.array(told) == np.array(reading.gold)
        return values, greedy

    def _tree(self, away: _Flags) -> tuple[list[_Layer], npt.NDArray[np.int64]]:
        """Say where rows part, and which row of the last layer each of them is."""
        if self.mode != "growing":
            layers = [_Layer(parents=None, away=away[:, here]) for here in self._places]
            return layers, np.arange(len(away))
        layers, place, n_before = [], np.zeros(len(away), dtype=np.int64), 1
        for here in self._places:
            keys = np.concatenate([place[:, None], away[:, here]], axis=1)
            rows, place = np.unique(keys, axis=0, return_inverse=True)
            place = place.reshape(-1)
            parents = None if len(rows) == n_before else rows[:, 0]
            layers.append(_Layer(parents=parents, away=rows[:, 1:].astype(bool)))
            n_before = len(rows)
        return layers, place

    def _forward(self, reading: Reading, layers: list[_Layer], n_rows: int) -> "torch.Tensor":
        """Run the model with hooks; return what is read from at the answer's positions."""
        n_read = len(reading.gold)
        inputs = list(reading.ids[:-1])
        keeps = reading.positions == "answer"
        first = reading.start - 1 if keeps else 0
        options: dict[str, Any] = {"use_cache": False}
        offset = 0
        if keeps and first and self.reuses_prompt:
            options = {"use_cache": True, "past_key_values": self._cached(inputs[:first])}
            inputs, offset, first = inputs[first:], first, 0
        batch = _Batch(
            reading=reading, layers=layers, first=first, offset=offset, n_inputs=len(inputs)
        )
        with ExitStack() as hooks:
            for layer in range(len(layers)):
                for handle in self._hooks(batch, layer):
                    hooks.callback(handle.remove)
            ids = self._tensor([inputs] * (1 if self.mode == "growing" else n_rows))
            if self.reads_gold_rows:
                hidden: torch.Tensor = self._body(ids, **options)
                return hidden[:, -n_read:]
            if "logits_to_keep" in inspect.signature(type(self.model).forward).parameters:
                options["logits_to_keep"] = n_read
            logits: torch.Tensor = self.model(input_ids=ids, **options).logits
            return logits[:, -n_read:]

    def _body(self, ids: "torch.Tensor", **options: Any) -> "torch.Tensor":  # noqa: ANN401
        """Run the model without its head."""
        body = getattr(self.model, self.model.base_model_prefix)
        hidden: torch.Tensor = body(input_ids=ids, **options)[0]
        return hidden

    def _hooks(self, batch: _Batch, layer: int) -> Iterator[Any]:
        """Register what happens at one layer."""
        seam, rows = self.map.seams[layer], batch.layers[layer]
        if rows.parents is not None:
            yield seam.layer.register_forward_pre_hook(_parting(rows.parents), with_kwargs=True)
        heads = np.repeat(rows.away[:, :-1], seam.n_heads // seam.n_units, axis=1)
        mlp = rows.away[:, -1:]
        n_read = len(batch.reading.gold)
        ends = self.ends_early and layer == len(batch.layers) - 1 and n_read < batch.n_inputs
        if ends:
            # What the last layer adds elsewhere is never read.
            for module in (seam.projection, seam.mlp):
                yield module.register_forward_pre_hook(_keeping_last(n_read, batch.n_inputs))
        if heads.any():
            stand_in = self._stand_in(batch, "attention", layer)
            yield seam.projection.register_forward_pre_hook(
                lambda module, args: (_without(args[0], heads, batch, stand_in), *args[1:])
            )
        if mlp.any():
            other = self._stand_in(batch, "mlps", layer)
            yield seam.mlp.register_forward_hook(
                lambda module, args, output: _mapped(
                    output, lambda values: _without(values, mlp, batch, other)
                )
            )
        if ends:
            for module in (seam.projection, seam.mlp):
                yield module.register_forward_hook(
                    lambda module, args, output: _mapped(
                        output, lambda values: _filled(values, n_read, batch.n_inputs)
                    )
                )

    @cached_property
    def _places(self) -> list[npt.NDArray[np.int64]]:
        """The places of each layer's components, the MLP last."""
        layers = np.array([component.layer for component in self.map.components])
        return [np.flatnonzero(layers == layer) for layer in range(len(self.map.seams))]

    def _stand_in(
        self, batch: _Batch, kind: Literal["attention", "mlps"], layer: int
    ) -> "torch.Tensor | None":
        """Take what stands in for the components of a layer, from the first position ablated."""
        reading = batch.reading
        if reading.replacement is None:
            return None
        positions = range(batch.offset + batch.first, len(reading.ids) - 1)
        return reading.replacement.values(kind, layer, positions, reading.start)

    def _cached(self, prompt: list[int]) -> Any:  # noqa: ANN401
        """Give the keys and values of a prompt, computed once, for any number of rows."""
        from transformers import DynamicCache
        from transformers.cache_utils import Cache

        if self._prompt[0] != tuple(prompt):
            cache: Any = DynamicCache(config=self.model.config)
            self._body(self._tensor([prompt]), use_cache=True, past_key_values=cache)
            layers = []
            for layer in cache.layers:
                fixed = _fixed_layer()()
                fixed.lazy_initialization(layer.keys, layer.values)
                fixed.keys, fixed.values = layer.keys, layer.values
                layers.append(fixed)
            self._prompt = (tuple(prompt), Cache(layers=layers))
        return self._prompt[1]

    def _read(
        self,
        outputs: "torch.Tensor",
        reading: Reading,
        place: npt.NDArray[np.int64],
        tokens: npt.NDArray[np.int64] | None,
    ) -> npt.NDArray[np.float64]:
        """Read the tokens of each row."""
        import torch

        gold = self._tensor(reading.gold, outputs.device)
        rows = self._tensor(place.tolist(), outputs.device)
        if tokens is None:
            outputs, wanted = outputs[rows], gold.expand(len(rows), -1)
        else:
            of_row = self._tensor(tokens.tolist(), outputs.device)
            outputs, wanted = outputs[rows, of_row][:, None], gold[of_row][:, None]
        values = torch.cat(
            [
                self._readout(part, tokens_of, reading.readout)
                for part, tokens_of in self._parts(outputs, wanted, reading.readout)
            ]
        )
        array: npt.NDArray[np.float64] = values.double().cpu().numpy()
        return array if tokens is None else array[:, 0]

    def _parts(
        self, outputs: "torch.Tensor", wanted: "torch.Tensor", readout: Readout
    ) -> Iterator[tuple["torch.Tensor", "torch.Tensor"]]:
        """Cut rows so that all their logits fit, where all are needed."""
        size = len(outputs)
        if self.reads_gold_rows and readout == "log_probability":
            size = max(1, _LOGITS // (outputs.shape[1] * self.vocabulary))
        for begin in range(0, len(outputs), max(1, size)):
            yield outputs[begin : begin + size], wanted[begin : begin + size]

    def _readout(
        self, outputs: "torch.Tensor", wanted: "torch.Tensor", readout: Readout
    ) -> "torch.Tensor":
        """Compute the readout of tokens, in 32 bits."""
        if self.reads_gold_rows and readout != "log_probability":
            table: torch.Tensor = self._head.weight
            hidden, wanted = outputs.to(table.device), wanted.to(table.device)
            weights = table[wanted].float()
            biases = 0.0 if self._biases is None else self._biases[wanted].float()
            if readout == "centred_logit":
                mean, bias = self._mean_token
                weights, biases = weights - mean, biases - bias
            values: torch.Tensor = (hidden.float() * weights).sum(dim=-1) + biases
            return values
        logits = self._logits(outputs)
        gold = logits.gather(-1, wanted.to(logits.device)[..., None])[..., 0]
        if readout == "centred_logit":
            return gold - logits.mean(dim=-1)
        return gold - logits.logsumexp(dim=-1) if readout == "log_probability" else gold

    def _logits(self, outputs: "torch.Tensor") -> "torch.Tensor":
        """Give all logits of what was read, in 32 bits."""
        if not self.reads_gold_rows:
            return outputs.float()
        logits: torch.Tensor = self._head(outputs.to(self._head.weight.device)).float()
        return logits

    @property
    def _head(self) -> Any:  # noqa: ANN401
        """The unembedding."""
        return self.model.get_output_embeddings()

    @property
    def _biases(self) -> "torch.Tensor | None":
        """The biases of the unembedding; None without."""
        biases: torch.Tensor | None = getattr(self._head, "bias", None)
        return biases

    @cached_property
    def _mean_token(self) -> tuple["torch.Tensor", "torch.Tensor | float"]:
        """The mean of all rows of the unembedding, and of its biases."""
        bias = 0.0 if self._biases is None else self._biases.float().mean()
        mean: torch.Tensor = self._head.weight.float().mean(dim=0)
        return mean, bias

    def _tensor(self, values: Any, device: Any = None) -> "torch.Tensor":  # noqa: ANN401
        """Put whole numbers on a device, by default that of the embeddings."""
        import torch

        place = self.model.get_input_embeddings().weight.device if device is None else device
        if place.type == "meta":  # Offloaded weights visit their device only while they are used.
            place = self.model.device if self.model.device.type != "meta" else torch.device("cpu")
        return torch.tensor(values, dtype=torch.long, device=place)

    def _check(self) -> None:
        """Find which of the fast ways hold for this model."""
        modes: tuple[_Mode, ...] = ("growing", "rows")
        n_tokens, start = _PROBE
        ids = tuple((7919 * place + 13) % self.vocabulary for place in range(n_tokens))
        reading = Reading(ids=ids, start=start, readout="logit")
        places = [0, len(self.map) // 2, len(self.map) - 1]
        away = np.zeros((4, len(self.map)), dtype=bool)
        away[[1, 2, 3], places] = True
        self.mode, self.reads_gold_rows, self.ends_early = "single", False, False
        slow = self.evaluate(reading, away).values
        scale = max(1.0, float(np.abs(slow).max()))
        for mode in modes:
            self.mode = mode
            reason = self._differs(reading, away, slow, scale)
            if reason is None:
                break
            self._reasons.setdefault("mode", f"growing batches: {reason}")
            self.mode = "single"
        self.ends_early = True
        if reason := self._differs(reading, away, slow, scale):
            self.ends_early = False
            self._reasons["end"] = f"those that are read: {reason}"
        self.reads_gold_rows = True
        if reason := self._differs(reading, away, slow, scale):
            self.reads_gold_rows = False
            self._reasons["gold"] = f"rows of the unembedding: {reason}"
        answer = Reading(ids=ids, start=start, readout="logit", positions="answer")
        ends_early, self.ends_early, self.reuses_prompt = self.ends_early, False, False
        whole = self.evaluate(answer, away).values
        self.ends_early, self.reuses_prompt = ends_early, True
        reason = self._cache_obstacle() or self._differs(answer, away, whole, scale)
        if reason is not None:
            self.reuses_prompt = False
            self._reasons["prompt"] = f"key-value cache: {reason}"
        self._prompt = ((), None)
        if uncovered := self._uncovered(reading, scale):
            self._reasons["uncovered"] = uncovered

    def _differs(
        self, reading: Reading, away: _Flags, expected: npt.NDArray[np.float64], scale: float
    ) -> str | None:
        """Say how a way differs from what it must give; None if it does not."""
        exact = _CLOSE_EXACT if self.model.device.type == "cpu" else _CLOSE_DEVICE
        close = (exact if self.dtype.itemsize >= 4 else _CLOSE_LOW) * scale
        try:
            found = self.evaluate(reading, away).values
        except _CANNOT as error:
            told = str(error).strip().splitlines() or [""]
            return f"the model refuses them ({type(error).__name__}: {told[0][:80]})"
        distance = float(np.abs(found - expected).max())
        return None if distance <= close else f"logits differ by {distance:.1g}"

    def _cache_obstacle(self) -> str | None:
        """Say which kind of cache cannot be shared by rows; None if the model's can."""
        from transformers import DynamicCache
        from transformers.cache_utils import DynamicLayer

        kinds = {type(layer) for layer in DynamicCache(config=self.model.config).layers}
        special = sorted(kind.__name__ for kind in kinds if kind is not DynamicLayer)
        return f"the model caches with {', '.join(special)}" if special else None

    def _uncovered(self, reading: Reading, scale: float) -> str | None:
        """Say if a layer adds more than its heads and its MLP, such as a state-space branch.

        With all of them away, what a layer adds must be biases: the same at every position.
        """
        before: list[torch.Tensor] = []
        after: list[torch.Tensor] = []
        handles = []
        for seam in self.map.seams:
            handles += [
                seam.layer.register_forward_pre_hook(
                    lambda module, args, options: before.append(
                        args[0] if args else options["hidden_states"]
                    ),
                    with_kwargs=True,
                ),
                seam.layer.register_forward_hook(
                    lambda module, args, output: after.append(
                        output[0] if isinstance(output, tuple) else output
                    )
                ),
            ]
        mode, ends_early = self.mode, self.ends_early
        self.mode, self.ends_early = "single", False
        try:
            self.evaluate(reading, np.ones((1, len(self.map)), dtype=bool))
        finally:
            self.mode, self.ends_early = mode, ends_early
            for handle in handles:
                handle.remove()
        for layer, (entry, exit_) in enumerate(zip(before, after, strict=True)):
            added = (exit_ - entry).detach().float()
            spread = float((added - added.mean(dim=-2, keepdim=True)).abs().max())
            size = max(
                float(entry.detach().float().abs().max()), scale if math.isfinite(scale) else 1.0
            )
            if spread > (1e-3 if self.dtype.itemsize >= 4 else 5e-2) * size:
                return (
                    f"layer {layer} adds more than its heads and its MLP; what else it adds stays "
                    "in the floor"
                )
        return None


def _parting(
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


def _keeping_last(n_read: int, n_inputs: int) -> Callable[..., tuple[Any, ...]]:
    """Make the hook with which a module reads the last positions alone."""

    def keep(module: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:  # noqa: ANN401
        if args and args[0].dim() == 3 and args[0].shape[1] == n_inputs:
            return (args[0][:, -n_read:].contiguous(), *args[1:])
        return args

    return keep


def _filled(values: "torch.Tensor", n_read: int, n_inputs: int) -> "torch.Tensor":
    """Put zeros where a module read nothing."""
    if values.dim() != 3 or values.shape[1] != n_read:
        return values
    import torch

    zeros = values.new_zeros(values.shape[0], n_inputs - n_read, values.shape[2])
    return torch.cat([zeros, values], dim=1)


def _mapped(output: Any, change: "Callable[[torch.Tensor], torch.Tensor]") -> Any:  # noqa: ANN401
    """Change what a module gives; of several values, as of experts with their router, the first."""
    return (change(output[0]), *output[1:]) if isinstance(output, tuple) else change(output)


def _without(
    values: "torch.Tensor", away: _Flags, batch: _Batch, stand_in: "torch.Tensor | None"
) -> "torch.Tensor":
    """Take slices of some rows away, or put others in their place.

    Args:
        values: `(n_rows, n_positions, width)`, or with rows and positions in one axis; the last
            positions of the input.
        away: Slices of each row that go, `(n_rows, n_slices)`.
        batch: Tells the position of the input from which on they go.
        stand_in: `(n_inputs - first, width)` or `(1, width)`; None for zero.
    """
    import torch

    n_rows, n_slices = away.shape
    rows = np.flatnonzero(away.any(axis=1))
    if not rows.size:
        return values
    changed = values.reshape(n_rows, -1, n_slices, values.shape[-1] // n_slices).clone()
    first = max(0, batch.first - (batch.n_inputs - changed.shape[1]))
    where = torch.tensor(rows.tolist(), device=values.device)
    gone = torch.tensor(away[rows].tolist(), device=values.device)[:, None, :, None]
    part = changed[where, first:]
    if stand_in is None:
        part = part.masked_fill(gone, 0.0)
    else:
        other = stand_in[-part.shape[1] :].to(part.device, part.dtype)
        part = torch.where(gone, other.reshape(-1, n_slices, part.shape[-1]), part)
    changed[where, first:] = part
    return changed.reshape(values.shape)


@cache
def _fixed_layer() -> Any:  # noqa: ANN401
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
