"""Run a model with components ablated, many sets of components in one batch.

The rows of a batch are one text with different components ablated. Rows that ablate the same
components up to a layer are one row up to this layer and are split at the layer at which they
differ. The batch *grows* from layer to layer, and one forward pass computes the exact effect of
every component. The code of the model is not changed; a hook before each layer splits rows.
"""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from surface_consistency.errors import MissingDependencyError, RunnerError, RunnerOutOfMemoryError
from surface_consistency.models._decoding import model_context
from surface_consistency.models._engine import cache_name, is_out_of_memory
from surface_consistency.studies.mechanism.ablation import components
from surface_consistency.studies.mechanism.ablation.readout import (
    Batch,
    Flags,
    LayerRows,
    Readout,
    ReadoutKind,
    Result,
    change_output,
    fixed_layer,
    keep_last_positions,
    pad_with_zeros,
    replace_slices,
    split_rows,
)

if TYPE_CHECKING:
    import torch
    from torch.utils.hooks import RemovableHandle

Mode = Literal["growing", "rows", "single"]
"""Rows of a batch: split from layer to layer, each complete from the start, or one at a time."""

_ELEMENTS: Final = 2**28  # elements of the widest activation of a batch: one GiB in 32 bits
_LOGITS: Final = 2**26


class AblationModel:
    """A model whose components can be ablated; made by `prepare_model`.

    Args:
        model: The model.
        unit: Components of attention.
    """

    def __init__(self, model: Any, *, unit: components.Unit = "head") -> None:  # noqa: ANN401
        try:
            import torch
            import transformers  # noqa: F401
        except ImportError as error:
            raise MissingDependencyError("ablation", error.name or "torch", "inference") from error
        self.model = components.unwrapped(model)
        """The model of transformers."""
        self.map: components.ComponentMap = components.find_components(self.model, unit=unit)
        """Its components."""
        compiled = [
            name
            for name, module in self.model.named_modules()
            if getattr(module, "_compiled_call_impl", None) is not None
        ]
        if compiled:
            raise RunnerError(
                f"{compiled[0] or type(self.model).__name__} was compiled in place, so hooks would "
                "have no effect; prepare the model before `compile()`"
            )
        self.dtype: torch.dtype = self.model.dtype
        """Dtype of the weights."""
        self.mode: Mode = "growing"
        self.reads_gold_rows = True
        self.reuses_prompt = True
        self.ends_early = True
        self.reasons: dict[str, str] = {}
        """Reasons for which fast methods are not used, by the name of the method."""
        self._prompt: tuple[tuple[int, ...], Any] = ((), None)
        self._cache_name = cache_name(self.model)

    @property
    def context(self) -> int | None:
        """Size of the context in tokens; None if the configuration does not contain it."""
        return model_context(self.model)

    @property
    def vocabulary(self) -> int:
        """Number of tokens of the vocabulary."""
        return int(self.model.get_input_embeddings().num_embeddings)

    def fingerprint(self) -> dict[str, JsonValue]:
        """Return the model type, the components and the methods of ablation, for the report."""
        return {
            "model_type": self.map.model_type,
            "unit": self.map.unit,
            "components": len(self.map),
            "dtype": str(self.dtype).removeprefix("torch."),
            "batches": self._way("mode", self.mode),
            "read_from": self._way(
                "gold", "rows of the unembedding" if self.reads_gold_rows else "the model's logits"
            ),
            "answer_positions": self._way(
                "prompt", "key-value cache" if self.reuses_prompt else "whole text"
            ),
            "last_layer": self._way(
                "end", "positions that are read" if self.ends_early else "all positions"
            ),
            "uncovered": self.reasons.get("uncovered"),
        }

    def _way(self, what: str, way: str) -> str:
        """Return the name of a method, with the reason if it is not the fast one."""
        return f"{way} ({self.reasons[what]})" if what in self.reasons else way

    def read_alone(self, ids: Sequence[int]) -> None:
        """Run the unmodified model on one text, for hooks of the caller.

        Args:
            ids: Token ids.
        """
        with self._ready():
            self._body(self._tensor([list(ids)]), use_cache=False)

    def clear_cache(self) -> None:
        """Delete the cached keys and values of the last prompt."""
        self._prompt = ((), None)

    def evaluate(
        self,
        readout: Readout,
        ablated: Flags,
        *,
        tokens: npt.NDArray[np.int64] | None = None,
        greedy: Flags | None = None,
        max_rows: int | None = None,
    ) -> Result:
        """Run a text with sets of components ablated.

        Args:
            readout: The readout.
            ablated: Components that each row ablates, `(n_rows, n_components)`; a row without any
                is the unmodified model.
            tokens: Number of the token that is read in each row, `(n_rows,)`; None for all tokens.
            greedy: Rows for which to compute whether the tokens are the most probable ones,
                `(n_rows,)`; None for no row. It needs all logits of these rows.
            max_rows: Maximum number of rows of a batch; None for as many as fit in one GiB of
                activations. Halved if the device is out of memory.

        Returns:
            The readouts.

        Raises:
            RunnerOutOfMemoryError: If a single row does not fit.
            RunnerError: If the model returns values that are not finite.
        """
        n_read = len(readout.gold)
        values = np.empty((len(ablated), n_read) if tokens is None else len(ablated))
        limit = self._n_rows(readout) if max_rows is None else max_rows
        limit = 1 if self.mode == "single" else max(limit, 1)
        # Rows that are split late are adjacent; the unmodified one is first.
        waiting = np.lexsort(ablated.T[::-1])
        requested = np.zeros(len(ablated), dtype=bool) if greedy is None else greedy
        is_greedy = np.zeros((len(ablated), n_read), dtype=bool)
        with self._ready():
            while waiting.size:
                chunk, rest = waiting[:limit], waiting[limit:]
                chosen = None if tokens is None else tokens[chunk]
                part = self._unless_full(readout, ablated[chunk], chosen, requested[chunk])
                if part is None and limit == 1:
                    raise RunnerOutOfMemoryError(
                        f"a text of {len(readout.ids)} tokens does not fit into the memory of "
                        f"{self.model.device} with one row; use dtype='bfloat16', device_map, or a "
                        "shorter text"
                    )
                if part is None:
                    limit = max(1, min(limit, len(chunk)) // 2)
                    continue
                values[chunk], is_greedy[chunk[requested[chunk]]] = part
                waiting = rest
        if not np.isfinite(values).all():
            raise RunnerError(
                f"{self.map.model_type} returns values that are not finite for the tokens of the "
                "answer; check its weights for NaN, or load it with dtype='float32'"
            )
        return Result(values=values, is_greedy=is_greedy[requested])

    def _n_rows(self, readout: Readout) -> int:
        """Return the default maximum number of rows of a batch."""
        widest = max(
            getattr(self._text_config, "intermediate_size", 0) or 0,
            *(components.n_inputs(points.projection) for points in self.map.hook_points),
        )
        n_read = len(readout.gold)
        rows = _ELEMENTS // max(1, len(readout.ids) * widest)
        if not self.reads_gold_rows:
            rows = min(rows, _LOGITS // (n_read * self.vocabulary))
        return max(4, rows)

    @cached_property
    def _text_config(self) -> Any:  # noqa: ANN401
        """The configuration of the text model."""
        return self.model.config.get_text_config()

    @contextmanager
    def _ready(self) -> Iterator[None]:
        """Disable dropout and gradients temporarily."""
        import torch

        was_training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                yield
        finally:
            self.model.train(was_training)

    def _unless_full(
        self, readout: Readout, ablated: Flags, tokens: npt.NDArray[np.int64] | None, greedy: Flags
    ) -> tuple[npt.NDArray[np.float64], Flags] | None:
        """Run a batch; None if the device is out of memory."""
        import torch

        try:
            return self._run(readout, ablated, tokens, greedy)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return None

    def _run(
        self, readout: Readout, ablated: Flags, tokens: npt.NDArray[np.int64] | None, greedy: Flags
    ) -> tuple[npt.NDArray[np.float64], Flags]:
        """Run a batch."""
        layers, place = self._tree(ablated)
        outputs = self._forward(readout, layers, len(ablated))
        values = self._read(outputs, readout, place, tokens)
        return values, self._is_greedy(outputs, readout, place[greedy])

    def _tree(self, ablated: Flags) -> tuple[list[LayerRows], npt.NDArray[np.int64]]:
        """Return the rows at each layer, and the row of the last layer for each row."""
        if self.mode != "growing":
            layers = [LayerRows(parents=None, ablated=ablated[:, here]) for here in self._places]
            return layers, np.arange(len(ablated))
        layers, place, n_before = [], np.zeros(len(ablated), dtype=np.int64), 1
        for here in self._places:
            keys = np.concatenate([place[:, None], ablated[:, here]], axis=1)
            rows, place = np.unique(keys, axis=0, return_inverse=True)
            place = place.reshape(-1)
            parents = None if len(rows) == n_before else rows[:, 0]
            layers.append(LayerRows(parents=parents, ablated=rows[:, 1:].astype(bool)))
            n_before = len(rows)
        return layers, place

    def _forward(self, readout: Readout, layers: list[LayerRows], n_rows: int) -> "torch.Tensor":
        """Run the model with hooks; return hidden states or logits at the answer's positions."""
        n_read = len(readout.gold)
        inputs = list(readout.ids[:-1])
        keeps = readout.positions != "all"
        first, offset = (readout.start - 1 if keeps else 0), 0
        options: dict[str, Any] = {"use_cache": False}
        if keeps and first and self.reuses_prompt:
            options = {"use_cache": True, self._cache_name: self._cached(inputs[:first])}
            inputs, offset, first = inputs[first:], first, 0
        batch = Batch(
            readout=readout, layers=layers, first=first, offset=offset, n_inputs=len(inputs)
        )
        with ExitStack() as handles:
            for layer in range(len(layers)):
                for handle in self._hooks(batch, layer):
                    handles.callback(handle.remove)
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
        # Gemma 3 of transformers 4 has no attribute of the name in its `base_model_prefix`.
        body = getattr(self.model, self.model.base_model_prefix, None) or self.model.model
        hidden: torch.Tensor = body(input_ids=ids, **options)[0]
        return hidden

    def _hooks(self, batch: Batch, layer: int) -> Iterator[Any]:
        """Register the hooks of one layer."""
        points, rows = self.map.hook_points[layer], batch.layers[layer]
        if rows.parents is not None:
            yield points.layer.register_forward_pre_hook(split_rows(rows.parents), with_kwargs=True)
        heads, mlp = rows.ablated[:, :-1], rows.ablated[:, -1:]
        n_read = len(batch.readout.gold)
        ends = self.ends_early and layer == len(batch.layers) - 1 and n_read < batch.n_inputs
        if ends:
            # The output of the last layer at other positions is never read.
            for module in (points.projection, points.mlp):
                yield module.register_forward_pre_hook(keep_last_positions(n_read, batch.n_inputs))
        if heads.any() and not self.map.is_behind_projection:
            slices = np.repeat(heads, points.n_heads // points.n_units, axis=1)
            replacement = self._replacement_values(batch, "attention", layer)
            yield points.projection.register_forward_pre_hook(
                lambda module, args: (
                    replace_slices(args[0], slices, batch, replacement),
                    *args[1:],
                )
            )
        elif heads.any():
            yield self._output_hook(points.projection, heads, batch, "attention", layer)
        if mlp.any():
            yield self._output_hook(points.mlp, mlp, batch, "mlps", layer)
        if ends:
            for module in (points.projection, points.mlp):
                yield module.register_forward_hook(
                    lambda module, args, output: change_output(
                        output, lambda values: pad_with_zeros(values, n_read, batch.n_inputs)
                    )
                )

    def _output_hook(
        self,
        module: "torch.nn.Module",
        gone: Flags,
        batch: Batch,
        kind: Literal["attention", "mlps"],
        layer: int,
    ) -> "RemovableHandle":
        """Register the hook that replaces the output of a module by zeros or by other values."""
        other = self._replacement_values(batch, kind, layer)
        return module.register_forward_hook(
            lambda module, args, output: change_output(
                output, lambda values: replace_slices(values, gone, batch, other)
            )
        )

    @cached_property
    def _places(self) -> list[npt.NDArray[np.int64]]:
        """The places of each layer's components, the MLP last."""
        layers = np.array([component.layer for component in self.map.components])
        return [np.flatnonzero(layers == layer) for layer in range(len(self.map.hook_points))]

    def _replacement_values(
        self, batch: Batch, kind: Literal["attention", "mlps"], layer: int
    ) -> "torch.Tensor | None":
        """Return the replacement values of a layer, from the first ablated position on."""
        readout = batch.readout
        if readout.replacement is None:
            return None
        first = batch.offset + batch.first
        stop = first + 1 if readout.positions == "last" else len(readout.ids) - 1
        return readout.replacement.values(kind, layer, range(first, stop), readout.start)

    def _cached(self, prompt: list[int]) -> Any:  # noqa: ANN401
        """Return the keys and values of a prompt, computed once, for any number of rows."""
        from transformers import DynamicCache
        from transformers.cache_utils import Cache

        if self._prompt[0] != tuple(prompt):
            cache: Any = DynamicCache(config=self.model.config)
            self._body(self._tensor([prompt]), use_cache=True, **{self._cache_name: cache})
            layers = []
            for layer in cache.layers:
                fixed = fixed_layer()()
                fixed.lazy_initialization(layer.keys, layer.values)
                fixed.keys, fixed.values = layer.keys, layer.values
                layers.append(fixed)
            self._prompt = (tuple(prompt), Cache(layers=layers))
        return self._prompt[1]

    def _read(
        self,
        outputs: "torch.Tensor",
        readout: Readout,
        place: npt.NDArray[np.int64],
        tokens: npt.NDArray[np.int64] | None,
    ) -> npt.NDArray[np.float64]:
        """Read the tokens of each row."""
        import torch

        gold = self._tensor(readout.gold, outputs.device)
        rows = self._tensor(place.tolist(), outputs.device)
        if tokens is None:
            outputs, wanted = outputs[rows], gold.expand(len(rows), -1)
        else:
            of_row = self._tensor(tokens.tolist(), outputs.device)
            outputs, wanted = outputs[rows, of_row][:, None], gold[of_row][:, None]
        values = torch.cat(
            [
                self._readout(part, tokens_of, readout.kind)
                for part, tokens_of in self._parts(outputs, wanted, readout.kind)
            ]
        )
        array: npt.NDArray[np.float64] = values.double().cpu().numpy()
        return array if tokens is None else array[:, 0]

    def _is_greedy(
        self, outputs: "torch.Tensor", readout: Readout, place: npt.NDArray[np.int64]
    ) -> Flags:
        """Compute whether the tokens of some rows are the most probable ones."""
        gold = self._tensor(readout.gold, outputs.device).expand(len(place), -1)
        best = [
            self._logits(part).argmax(dim=-1).to(wanted.device) == wanted
            for part, wanted in self._parts(outputs[place.tolist()], gold, "log_probability")
        ]
        flags = [row for part in best for row in part.tolist()]
        return np.array(flags, dtype=bool).reshape(len(place), len(readout.gold))

    def _parts(
        self, outputs: "torch.Tensor", wanted: "torch.Tensor", kind: ReadoutKind
    ) -> Iterator[tuple["torch.Tensor", "torch.Tensor"]]:
        """Split rows into parts whose logits fit into memory, if all logits are needed."""
        size = len(outputs)
        if self.reads_gold_rows and kind == "log_probability":
            size = max(1, _LOGITS // (outputs.shape[1] * self.vocabulary))
        for begin in range(0, len(outputs), max(1, size)):
            yield outputs[begin : begin + size], wanted[begin : begin + size]

    def _readout(
        self, outputs: "torch.Tensor", wanted: "torch.Tensor", kind: ReadoutKind
    ) -> "torch.Tensor":
        """Compute the readout of tokens, in 32 bits."""
        if self.reads_gold_rows and kind != "log_probability":
            table: torch.Tensor = self._head.weight
            hidden, wanted = outputs.to(table.device), wanted.to(table.device)
            weights = table[wanted].float()
            biases = 0.0 if self._biases is None else self._biases[wanted].float()
            if kind == "centred_logit":
                mean, bias = self._mean_token
                weights, biases = weights - mean, biases - bias
            values: torch.Tensor = (hidden.float() * weights).sum(dim=-1) + biases
            return values
        logits = self._logits(outputs)
        gold = logits.gather(-1, wanted.to(logits.device)[..., None])[..., 0]
        if kind == "centred_logit":
            return gold - logits.mean(dim=-1)
        return gold - logits.logsumexp(dim=-1) if kind == "log_probability" else gold

    def _logits(self, outputs: "torch.Tensor") -> "torch.Tensor":
        """Compute all logits of the outputs, in 32 bits."""
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
        """The biases of the unembedding; None if it has no biases."""
        biases: torch.Tensor | None = getattr(self._head, "bias", None)
        return biases

    @cached_property
    def _mean_token(self) -> tuple["torch.Tensor", "torch.Tensor | float"]:
        """The mean of all rows of the unembedding, and of its biases."""
        bias = 0.0 if self._biases is None else self._biases.float().mean()
        mean: torch.Tensor = self._head.weight.float().mean(dim=0)
        return mean, bias

    def _tensor(self, values: Any, device: Any = None) -> "torch.Tensor":  # noqa: ANN401
        """Put integers on a device, by default that of the embeddings."""
        import torch

        place = self.model.get_input_embeddings().weight.device if device is None else device
        if place.type == "meta":  # Offloaded weights are on their device only while they are used.
            place = self.model.device if self.model.device.type != "meta" else torch.device("cpu")
        return torch.tensor(values, dtype=torch.long, device=place)
