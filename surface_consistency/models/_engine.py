"""Forward passes of a causal language model over batches that share prefixes."""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import torch
    from transformers import Cache, GenerationConfig, PreTrainedModel

Tokens = tuple[int, ...]
"""Token ids that rows may share."""

_WORTHWHILE: Final = 0.75
"""Maximum cost of a batch with shared prefixes, as a proportion of the cost without."""

_logger = logging.getLogger(__name__)

_PREFIX, _SHORT, _LONG = 12, 2, 40
_TOLERANCE_EXACT = 1e-3
_TOLERANCE_LOW_PRECISION = 0.15
_CANNOT = (AttributeError, IndexError, NotImplementedError, RuntimeError, TypeError, ValueError)
_OUT_OF_MEMORY = (
    "CUBLAS_STATUS_ALLOC_FAILED",
    "DefaultCPUAllocator: can't allocate memory",
    "MPS backend out of memory",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows of one call: each has a prefix that other rows may share, and a suffix."""

    suffixes: Sequence[Sequence[int]]
    """Tokens of each row after its prefix; at least one."""

    prefixes: tuple[Tokens, ...] = ()
    """Distinct prefixes; empty if no prefix is shared."""

    owner: Sequence[int] = field(default=())
    """Index in `prefixes` of each row's prefix."""

    @property
    def n_computed(self) -> int:
        """Number of positions that are computed, padding included."""
        n_prefix = len(self.prefixes) * max(map(len, self.prefixes), default=0)
        return n_prefix + len(self.suffixes) * max(map(len, self.suffixes))


def shared_batch(rows: Sequence[Sequence[int]], prefixes: Sequence[Tokens]) -> Batch:
    """Split rows into shared prefixes and suffixes, if that saves work.

    Args:
        rows: The tokens of each row.
        prefixes: The prefix of each row that it may share; may be empty.

    Returns:
        The batch; without prefixes if a row has none, or if less than 25 % of the work is saved.
    """
    plain = Batch(suffixes=rows)
    if not all(prefixes):
        return plain
    distinct = tuple(dict.fromkeys(prefixes))
    batch = Batch(
        prefixes=distinct,
        owner=[distinct.index(prefix) for prefix in prefixes],
        suffixes=[ids[len(prefix) :] for ids, prefix in zip(rows, prefixes, strict=True)],
    )
    return batch if batch.n_computed <= _WORTHWHILE * plain.n_computed else plain


class Engine:
    """Runs a model on batches, and caches the keys and values of the last prefixes.

    The columns of a row are [padding | prefix | padding | suffix]. All rows with the same prefix
    have it in the same columns, so its keys and values are computed once and repeated. Padding has
    mask 0 and no position, so the tokens of a row have the same positions as without padding.

    Args:
        model: A causal language model of transformers.
    """

    def __init__(self, model: "PreTrainedModel") -> None:
        self.model = model
        accepted = signature(model.forward).parameters
        self._takes_positions = "position_ids" in accepted
        self._last_logits = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        self._cache_name = cache_name(model)
        self._cached: tuple[tuple[Tokens, ...], Cache | None] = ((), None)
        self.keeps_cache = False
        """Whether batches use this package's cache, which can start with prefixes."""
        self.is_trained_later = False
        """Whether the model is trained afterwards; tensors of inference mode are then invalid."""

    @property
    def vocabulary(self) -> int:
        """Number of rows of the model's embedding table."""
        embeddings: Any = self.model.get_input_embeddings()
        return int(embeddings.num_embeddings)

    def without_grad(self) -> AbstractContextManager[Any]:
        """Return a context manager without gradients."""
        import torch

        return torch.no_grad() if self.is_trained_later else torch.inference_mode()

    def generate(
        self,
        batch: Batch,
        config: "GenerationConfig",
        *,
        criteria: Sequence[Any] = (),
        processors: Sequence[Any] = (),
    ) -> object:
        """Call the model's `generate`; the first `n_columns(batch)` columns are the prompts.

        The processors are applied after those of the generation settings.
        """
        from transformers import LogitsProcessorList, StoppingCriteriaList

        model: Any = self.model
        ids, mask = self._columns(batch)
        with self.without_grad():
            cache = {self._cache_name: self._cache(batch, config)} if self.keeps_cache else {}
            return model.generate(
                input_ids=ids,
                attention_mask=mask,
                generation_config=config,
                stopping_criteria=StoppingCriteriaList(criteria),
                logits_processor=LogitsProcessorList(processors),
                **cache,
            )

    def read(
        self, ids: "torch.Tensor", mask: "torch.Tensor", cache: "Cache | None"
    ) -> "torch.Tensor":
        """Compute new columns after those of a cache, and add them to the cache.

        `mask` has 1 for tokens and 0 for padding, for all columns up to the last new one.

        Returns:
            The logits of each row's next token.
        """
        options = self._positions(mask, ids.shape[1]) | self._last_logits
        logits: torch.Tensor = self.model(
            input_ids=ids.to(self.model.device),
            attention_mask=mask.to(self.model.device),
            use_cache=True,
            **options,
            **{self._cache_name: cache},
        ).logits[:, -1]
        return logits

    def score(self, batch: Batch, n_last: int) -> "torch.Tensor":
        """Compute the logits of complete rows, without generation.

        Returns:
            The logits after each of the last `n_last` tokens of a row, shape (n_rows, n_last,
            vocabulary); the logits of padding are meaningless.
        """
        ids, mask = self._columns(batch)
        shared = self._start_of(batch, n_columns(batch)) if batch.prefixes else None
        new = ids[:, _width(batch) :]
        options = self._positions(mask, new.shape[1])
        if self._last_logits:
            options["logits_to_keep"] = n_last
        if shared is not None:
            options[self._cache_name] = shared
        with self.without_grad():
            logits: torch.Tensor = self.model(
                input_ids=new, attention_mask=mask, use_cache=shared is not None, **options
            ).logits
        return logits[:, -n_last:]

    def new_cache(self, n_columns: int, *, prefix: "Cache | None", owner: Sequence[int]) -> "Cache":
        """Create a key-value cache for `n_columns`, which is not copied at each step.

        The growing cache of transformers copies all keys and values at every step, which takes most
        of the time of a decoding step on a CPU. Row i starts with row `owner[i]` of `prefix`, a
        cache of distinct prefixes. With None it starts empty.
        """
        from transformers import DynamicCache
        from transformers.cache_utils import Cache

        n_layers = len(DynamicCache(config=self.model.config).layers)
        layers = [_layer_class()(n_columns) for _ in range(n_layers)]
        if prefix is not None:
            beginnings: Sequence[Any] = prefix.layers
            for layer, of_prefix in zip(layers, beginnings, strict=True):
                layer.start(of_prefix.keys, of_prefix.values, owner)
        return Cache(layers=layers)

    def clear_cache(self) -> None:
        """Free the cache of the last prefixes."""
        self._cached = ((), None)

    def _positions(self, mask: "torch.Tensor", n_new: int) -> dict[str, Any]:
        """Return the positions of new tokens without padding, if the model accepts them."""
        positions = (mask.cumsum(dim=-1) - 1).clamp(min=0)[:, -n_new:]
        return {"position_ids": positions.to(self.model.device)} if self._takes_positions else {}

    def _columns(self, batch: Batch) -> tuple["torch.Tensor", "torch.Tensor"]:
        """Return ids and mask of the rows: padded prefix, then padded suffix."""
        width = max(map(len, batch.suffixes))
        left = [_padded(prefix, _width(batch)) for prefix in batch.prefixes]
        ids, mask = [], []
        for row, suffix in enumerate(batch.suffixes):
            tokens, ones = left[batch.owner[row]] if left else ([], [])
            rest, rest_ones = _padded(suffix, width)
            ids.append(tokens + rest)
            mask.append(ones + rest_ones)
        return self._tensor(ids), self._tensor(mask)

    def _cache(self, batch: Batch, config: "GenerationConfig") -> "Cache":
        """Create the cache of a batch and its new tokens."""
        return self._start_of(batch, n_columns(batch) + config.max_new_tokens)

    def _start_of(self, batch: Batch, n_columns: int) -> "Cache":
        """Create a cache in which each row starts with the keys and values of its prefix."""
        if batch.prefixes and self._cached[0] != batch.prefixes:
            self.clear_cache()
            self._cached = (batch.prefixes, self._prefill(batch))
        return self.new_cache(
            n_columns, prefix=self._cached[1] if batch.prefixes else None, owner=batch.owner
        )

    def _prefill(self, batch: Batch) -> "Cache":
        """Compute the keys and values of the distinct prefixes, each once."""
        from transformers import DynamicCache

        rows = [_padded(prefix, _width(batch)) for prefix in batch.prefixes]
        ids, mask = (self._tensor(list(part)) for part in zip(*rows, strict=True))
        cache = DynamicCache(config=self.model.config)
        self.read(ids, mask, cache)
        return cache

    def _tensor(self, rows: list[list[int]]) -> "torch.Tensor":
        """Convert rows of equal length to a tensor on the model's device."""
        import torch

        return torch.tensor(rows, dtype=torch.long, device=self.model.device)


def cache_name(model: "PreTrainedModel") -> str:
    """Return the name of the argument of keys and values: `cache` since transformers 5.24.

    Args:
        model: A model of transformers.

    Returns:
        The keyword of its `forward` and `generate`.
    """
    return "cache" if "cache" in signature(type(model).forward).parameters else "past_key_values"


def is_out_of_memory(error: RuntimeError) -> bool:
    """Return whether an error means that memory is full; only CUDA has its own exception for it.

    Args:
        error: The error of a call of the model.

    Returns:
        Whether the memory of the device, or that of the processor, is full.
    """
    import torch

    return isinstance(error, torch.OutOfMemoryError) or any(
        sign in str(error) for sign in _OUT_OF_MEMORY
    )


def n_columns(batch: Batch) -> int:
    """Count the columns of a batch, including padding."""
    return _width(batch) + max(map(len, batch.suffixes))


def _width(batch: Batch) -> int:
    """Count the columns of the prefixes."""
    return max(map(len, batch.prefixes), default=0)


def _padded(tokens: Sequence[int], width: int) -> tuple[list[int], list[int]]:
    """Pad on the left with the row's first token, which leaves repetition penalties unchanged."""
    n_padding = width - len(tokens)
    return [tokens[0]] * n_padding + list(tokens), [0] * n_padding + [1] * len(tokens)


@cache
def _layer_class() -> Callable[[int], Any]:
    """Create the class on first use, because it needs transformers."""
    import torch
    from transformers.cache_utils import DynamicLayer

    # Before transformers 5 it accepts only the keys.
    n_taken = len(signature(DynamicLayer.lazy_initialization).parameters) - 1

    class PreallocatedLayer(DynamicLayer):  # type: ignore[no-untyped-call]
        """A growing layer whose tensors are views of buffers of full length."""

        def __init__(self, n_columns: int) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self._n_columns = n_columns

        def start(self, keys: torch.Tensor, values: torch.Tensor, owner: Sequence[int]) -> None:
            """Copy the prefix of each row."""
            self._reserve(keys, values, len(owner))
            if keys.shape[0] > 1:
                rows = torch.tensor(owner, device=keys.device)
                keys, values = keys[rows], values[rows]
            length = keys.shape[-2]
            self._all_keys[:, :, :length] = keys
            self._all_values[:, :, :length] = values
            self._grow(length)

        def update(
            self,
            key_states: torch.Tensor,
            value_states: torch.Tensor,
            *args: object,
            **kwargs: object,
        ) -> tuple[torch.Tensor, torch.Tensor]:
            """Write new columns after the old ones."""
            if not self.is_initialized:
                self._reserve(key_states, value_states, key_states.shape[0])
            start = self.get_seq_length()
            end = start + key_states.shape[-2]
            self._all_keys[:, :, start:end] = key_states
            self._all_values[:, :, start:end] = value_states
            return self._grow(end)

        def _reserve(self, keys: torch.Tensor, values: torch.Tensor, n_rows: int) -> None:
            """Allocate buffers of the type of these tensors, with all rows and columns."""
            self.lazy_initialization(*(keys, values)[:n_taken])
            self._all_keys, self._all_values = (
                like.new_empty(n_rows, like.shape[1], self._n_columns, like.shape[-1])
                for like in (keys, values)
            )

        def _grow(self, length: int) -> tuple[torch.Tensor, torch.Tensor]:
            """Return views of the first columns."""
            keys, values = (buffer[:, :, :length] for buffer in (self._all_keys, self._all_values))
            self.keys, self.values = keys, values
            return keys, values

    return PreallocatedLayer


def padding_obstacle(engine: Engine, *, exact: bool) -> str | None:
    """Return why rows of unequal length cannot share a batch; None if outputs are unchanged.

    Args:
        engine: The model.
        exact: Whether the model computes in 32 bits or more, which has a smaller tolerance.
    """
    rows = _rows(engine)
    try:
        alone = _alone(engine, rows)
    except _CANNOT as error:
        # For example, the context may be shorter than the probe.
        return f"the model refuses the probe ({type(error).__name__})"
    return _compare(engine, Batch(suffixes=rows), alone, exact=exact)


def prefix_obstacle(engine: Engine, *, exact: bool) -> str | None:
    """Return why shared prefixes cannot be reused, or enable them; see `padding_obstacle`."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer

    kinds = {type(layer) for layer in DynamicCache(config=engine.model.config).layers}
    special = sorted(kind.__name__ for kind in kinds if kind is not DynamicLayer)
    if special:
        return f"the model caches with {', '.join(special)}"
    rows = _rows(engine)
    alone = _alone(engine, rows)
    batch = Batch(
        prefixes=tuple(tuple(row[:_PREFIX]) for row in rows),
        owner=range(len(rows)),
        suffixes=[row[_PREFIX:] for row in rows],
    )
    engine.keeps_cache = True
    obstacle = _compare(engine, batch, alone, exact=exact)
    engine.keeps_cache = obstacle is None
    engine.clear_cache()
    return obstacle


def _rows(engine: Engine) -> list[list[int]]:
    """Create rows of unequal length from the whole vocabulary."""
    lengths = (_PREFIX + _SHORT, _PREFIX + _LONG, _PREFIX + _SHORT)
    return [
        [(7919 * (17 * row + column) + 13) % engine.vocabulary for column in range(length)]
        for row, length in enumerate(lengths)
    ]


def _alone(engine: Engine, rows: list[list[int]]) -> list["torch.Tensor"]:
    """Compute the first logits of each row in a separate batch."""
    return [_first_logits(engine, Batch(suffixes=[row]))[0] for row in rows]


def _compare(
    engine: Engine, batch: Batch, alone: list["torch.Tensor"], *, exact: bool
) -> str | None:
    """Compare the first logits of a batch with those of separate rows; None if they are equal."""
    tolerance = _TOLERANCE_EXACT if exact else _TOLERANCE_LOW_PRECISION
    try:
        together = _first_logits(engine, batch)
    except _CANNOT as error:
        return f"the model refuses it ({type(error).__name__}: {str(error).splitlines()[0]})"
    for expected, logits in zip(alone, together, strict=True):
        distance = ((logits - expected).norm() / (expected - expected.mean()).norm()).item()
        if not distance <= tolerance:
            _logger.debug("relative change of the logits: %.2g", distance)
            return "outputs change with it"
    return None


def _first_logits(engine: Engine, batch: Batch) -> "torch.Tensor":
    """Return the logits of each row's first new token."""
    from transformers import GenerationConfig

    config = GenerationConfig(  # type: ignore[no-untyped-call]
        do_sample=False, max_new_tokens=1, output_logits=True, return_dict_in_generate=True
    )
    written: Any = engine.generate(batch, config)
    logits: torch.Tensor = written.logits[0]
    return logits.double()
