"""Checks on the loaded model itself: which ways of batching leave its outputs alone."""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from surface_consistency.inference._engine import Batch, Engine

if TYPE_CHECKING:
    import torch

__all__ = ["padding_obstacle", "prefix_obstacle"]

_logger = logging.getLogger(__name__)

_PREFIX, _SHORT, _LONG = 12, 2, 40
_TOLERANCE_EXACT = 1e-3
_TOLERANCE_LOW_PRECISION = 0.15
_CANNOT = (AttributeError, IndexError, NotImplementedError, RuntimeError, TypeError, ValueError)


def padding_obstacle(engine: Engine, *, exact: bool) -> str | None:
    """Say why rows of unequal length cannot share a batch.

    Args:
        engine: The model.
        exact: Whether it computes in 32 bits or more, so that equal means equal.

    Returns:
        The reason, or None when padded rows give the outputs that they give alone.
    """
    rows = _rows(engine)
    try:
        alone = _alone(engine, rows)
    except _CANNOT as error:
        # A context that is shorter than the probe, for one.
        return f"the model refuses the probe ({type(error).__name__})"
    return _compare(engine, Batch(suffixes=rows), alone, exact=exact)


def prefix_obstacle(engine: Engine, *, exact: bool) -> str | None:
    """Say why the keys and values of a shared prefix cannot be reused; if they can, switch it on.

    Args:
        engine: The model.
        exact: Whether it computes in 32 bits or more, so that equal means equal.

    Returns:
        The reason, or None when reuse gives the outputs that each row gives alone.
    """
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
    engine.forget()
    return obstacle


def _rows(engine: Engine) -> list[list[int]]:
    """Make rows of unequal length from the whole vocabulary."""
    vocabulary = engine.model.get_input_embeddings().num_embeddings
    lengths = (_PREFIX + _SHORT, _PREFIX + _LONG, _PREFIX + _SHORT)
    return [
        [(7919 * (17 * row + column) + 13) % vocabulary for column in range(length)]
        for row, length in enumerate(lengths)
    ]


def _alone(engine: Engine, rows: list[list[int]]) -> list["torch.Tensor"]:
    """Compute the first logits of each row by itself."""
    return [_first_logits(engine, Batch(suffixes=[row]))[0] for row in rows]


def _compare(
    engine: Engine, batch: Batch, alone: list["torch.Tensor"], *, exact: bool
) -> str | None:
    """Compare the first logits of a batch with those of its rows alone."""
    tolerance = _TOLERANCE_EXACT if exact else _TOLERANCE_LOW_PRECISION
    try:
        together = _first_logits(engine, batch)
    except _CANNOT as error:
        return f"the model refuses it ({type(error).__name__}: {str(error).splitlines()[0]})"
    for expected, logits in zip(alone, together, strict=True):
        distance = ((logits - expected).norm() / (expected - expected.mean()).norm()).item()
        if not distance <= tolerance:
            _logger.info("logits move by %.2g of their size", distance)
            return "outputs change with it"
    return None


def _first_logits(engine: Engine, batch: Batch) -> "torch.Tensor":
    """Return the logits of each row's first new token."""
    transformers: Any = import_module("transformers")
    config = transformers.GenerationConfig(
        do_sample=False, max_new_tokens=1, output_logits=True, return_dict_in_generate=True
    )
    logits: torch.Tensor = engine.generate(batch, config).logits[0]
    return logits.double()
