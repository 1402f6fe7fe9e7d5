"""Importance of each component for each token of an answer, and minimal sets of components."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from surface_consistency.errors import RunnerError
from surface_consistency.studies.mechanism.ablation.components import Component, n_inputs
from surface_consistency.studies.mechanism.ablation.engine import AblationModel
from surface_consistency.studies.mechanism.ablation.readout import (
    Flags,
    Positions,
    Readout,
    ReadoutKind,
    Replacement,
)

_Floats = npt.NDArray[np.float64]
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizedAnswer:
    """A text and the answer in it."""

    ids: Sequence[int]
    """Token ids of one text without padding: the prompt, then the answer."""

    start: int
    """Position of the answer's first token, at least 1."""

    stop: int | None = None
    """Position after its last token; None for the end of the text. Later tokens have no effect."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AblationScores:
    """Result of `ablate`."""

    base: _Floats
    """Readout of each token in the unmodified model, `(n_tokens,)`."""

    ablated: _Floats
    """Readout of each token with one component ablated, `(n_tokens, n_components)`."""

    floor: _Floats
    """Readout of each token with all components ablated, `(n_tokens,)`: the contribution of
    embedding, biases and norms alone."""

    is_greedy: Flags
    """Whether the model would generate each token under greedy decoding, `(n_tokens,)`."""

    components: tuple[Component, ...]
    """The components, by column."""

    readout: Readout = field(repr=False)
    """The text, the ablated positions, and the kind of readout."""

    fingerprint: dict[str, JsonValue]
    """How it was computed; see `AblationModel.fingerprint`."""

    @property
    def change(self) -> _Floats:
        """Contribution of each component to each token's readout, `(n_tokens, n_components)`."""
        return self.base[:, None] - self.ablated

    def recovery(self, values: npt.ArrayLike) -> _Floats:
        """Compute the proportion of each token's readout that remains.

        Args:
            values: Readouts, `(n_tokens, ...)`.

        Returns:
            1 - (base - value) / |base|, which is value / base for a positive base; of the same
            shape. NaN if the base is 0.
        """
        array = np.asarray(values, dtype=np.float64)
        return _shares(self.base.reshape(-1, *[1] * (array.ndim - 1)), array)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredSet:
    """The components that one token needs; empty by default."""

    components: tuple[int, ...] = ()
    """Columns of the selected components, in the order in which they were tried."""

    recovery: float = np.nan
    """Proportion of the token's readout in a run with only these components; may exceed 1."""

    is_reached: bool = False
    """Whether the recovery reaches the threshold."""

    joint: float = np.nan
    """Proportion of the readout that is lost if all of them are ablated together."""

    sum_of_parts: float = np.nan
    """Sum of the proportions that are lost if each is ablated alone; equals `joint` if the effects
    of components are additive."""


def ablate(
    model: AblationModel,
    answer: TokenizedAnswer,
    *,
    positions: Positions = "all",
    readout: ReadoutKind = "centred_logit",
    replacement: Replacement | None = None,
    max_rows: int | None = None,
) -> AblationScores:
    """Ablate each component separately, and compute the readout of every token of an answer.

    Args:
        model: A model returned by `prepare_model`.
        answer: The text and the answer in it; the readouts are those of the answer's tokens.
        positions: "all" ablates a component at every position. "answer" ablates it only from the
            prompt's last token on, and reuses the prompt's keys and values. It is faster, but a
            different definition: the values computed at the prompt's positions remain. "last"
            ablates it only at the prompt's last token.
        readout: "logit" is that of SLAQ. "centred_logit" is the logit minus the mean of all logits.
            It does not change if a constant is added to all logits, which leaves the probabilities
            unchanged; libraries that centre the unembedding do this. "log_probability" is the
            natural logarithm of the probability.
        replacement: Values that replace a component, as from `mean_replacement`; None for zero.
        max_rows: Maximum number of rows of a batch; None for as many as fit in one GiB of
            activations. Halved if the device is out of memory.

    Returns:
        The readouts of the unmodified model, with each component ablated, and with all ablated.

    Raises:
        ValueError: If the answer is empty or at the start of the text, the text is padded, or a
            token is unknown; if the replacement is from a model of another shape or from the other
            side of the output projection; or if an option has an unknown value.
        TypeError: If the ids are not those of one text.
        RunnerError: If the text does not fit the model's context.
        RunnerError: If the model returns values that are not finite, or a single row does not fit.

    Notes:
        One forward pass computes all components and all tokens. The model is set to evaluation mode
        and back. All values are computed in the model's dtype, the readout in 32 bits.

    References:
        SLAQ, arXiv 2510.11218, section 5.1 (zero ablation; positions are not stated there).
    """
    stop = len(answer.ids) if answer.stop is None else answer.stop
    _check_text(model, answer.ids, answer.start, stop)
    _check_options(positions, readout, max_rows)
    _check_replacement(model, replacement)
    read = Readout(
        ids=tuple(int(token) for token in answer.ids[:stop]),
        start=answer.start,
        positions=positions,
        kind=readout,
        replacement=replacement,
    )
    n_components = len(model.map)
    ablated = np.zeros((n_components + 2, n_components), dtype=bool)
    ablated[1:-1] = np.eye(n_components, dtype=bool)
    ablated[-1] = True
    is_untouched = np.arange(len(ablated)) == 0
    results = model.evaluate(read, ablated, greedy=is_untouched, max_rows=max_rows)
    return AblationScores(
        base=results.values[0],
        ablated=results.values[1:-1].T.copy(),
        floor=results.values[-1],
        is_greedy=results.is_greedy[0],
        components=model.map.components,
        readout=read,
        fingerprint=model.fingerprint(),
    )


def recover(
    model: AblationModel,
    scores: AblationScores,
    *,
    tokens: Sequence[int] | None = None,
    threshold: float = 0.9,
    max_rows: int | None = None,
) -> list[RecoveredSet]:
    """Find the smallest set of the most important components that recovers each token.

    Sets grow by one component; ties are in the order of the columns. Recovery does not always
    increase with the size of a set, so every size is run until one reaches the threshold. Sizes are
    run in rounds of 1, 2, 4, ... sizes, whose rows are in common batches.

    Args:
        model: The model of the scores, as returned by `prepare_model`.
        scores: Result of `ablate`; defines text, positions, readout and replacement.
        tokens: Numbers of the tokens; None for all.
        threshold: Proportion of the unmodified readout to recover, in (0, 1]; 0.9 in the paper.
        max_rows: Maximum number of rows of a batch; see `ablate`.

    Returns:
        One set per token. If no set reaches the threshold, all components, with `is_reached`
        False. A token whose base is 0 has a recovery of NaN and `is_reached` False.

    Raises:
        ValueError: If an option is out of range.

    Notes:
        Recovery is 1 - (base - value) / |base|, which is value / base for a positive base. The
        readout without any component counts towards it (`AblationScores.floor`), so 90 % of a logit
        is not 90 % of the contribution of the components.

    References:
        SLAQ, arXiv 2510.11218, section 5.1 (sets C_t). The paper does not state how recovery is
        measured. Its sets always recover their token, which suggests that the model was run with
        each set.
    """
    if not 0.0 < threshold <= 1.0:
        raise ValueError(f"threshold must be in (0, 1], such as 0.9; got {threshold!r}")
    _check_options(scores.readout.positions, scores.readout.kind, max_rows)
    n_tokens = len(scores.base)
    wanted = list(range(n_tokens)) if tokens is None else [int(token) for token in tokens]
    if not wanted:
        return []
    if any(not 0 <= token < n_tokens for token in wanted):
        raise ValueError(f"tokens must be numbers of the {n_tokens} tokens; got {wanted}")
    tried = np.argsort(-scores.change[wanted], axis=1, kind="stable")
    # Later tokens have no effect on the readouts of these tokens.
    stop = scores.readout.start + max(wanted) + 1
    scores = replace(scores, readout=replace(scores.readout, ids=scores.readout.ids[:stop]))
    sizes, recoveries = _search(model, scores, wanted, tried, threshold, max_rows)
    chosen = [tried[row, :size] for row, size in enumerate(sizes)]
    joint = _joint(model, scores, wanted, chosen, max_rows)
    shares = 1.0 - scores.recovery(scores.ablated)
    return [
        RecoveredSet(
            components=tuple(int(column) for column in columns),
            recovery=recovery,
            is_reached=bool(recovery >= threshold - _ROUNDING),
            joint=effect,
            sum_of_parts=float(shares[token, columns].sum()),
        )
        for token, columns, recovery, effect in zip(wanted, chosen, recoveries, joint, strict=True)
    ]


def _check_text(model: AblationModel, ids: Sequence[int], start: int, stop: int) -> None:
    """Raise an error for a text that the engine cannot process."""
    if not all(isinstance(token, int | np.integer) for token in ids):
        raise TypeError(
            "ids must be integers, the tokens of one text without padding; ablate the texts of a "
            "batch one by one"
        )
    if not 0 <= start < stop <= len(ids):
        raise ValueError(
            f"the answer must contain a token of the text; got tokens {start} to {stop} of "
            f"{len(ids)}"
        )
    if start == 0:
        raise ValueError(
            "the answer starts with the first token of the text, which has no prediction; put a "
            "prompt or the start token before it"
        )
    config = model.model.config.get_text_config()
    padding = getattr(config, "pad_token_id", None)
    ends = [getattr(config, name, None) for name in ("bos_token_id", "eos_token_id")]
    known = {t for end in ends for t in (end if isinstance(end, list) else [end])}
    if padding is not None and padding not in known and padding in (ids[0], ids[stop - 1]):
        raise ValueError(
            f"the text begins or ends with the padding token {padding}; give one text without "
            "padding"
        )
    strange = [token for token in ids[:stop] if not 0 <= token < model.vocabulary]
    if strange:
        raise ValueError(
            f"token {strange[0]} is not one of the model's {model.vocabulary} tokens; use the "
            "tokenizer of this model"
        )
    if model.context is not None and stop > model.context:
        raise RunnerError(
            f"the text has {stop:,} tokens up to the end of the answer; the context of the model "
            f"is {model.context:,}"
        )


def _check_options(positions: str, readout: str, max_rows: int | None) -> None:
    """Raise an error for unknown values of options."""
    if positions not in ("all", "answer", "last"):
        raise ValueError(f"positions must be 'all', 'answer' or 'last'; got {positions!r}")
    if readout not in ("logit", "centred_logit", "log_probability"):
        raise ValueError(
            f"readout must be 'logit', 'centred_logit' or 'log_probability'; got {readout!r}"
        )
    if max_rows is not None and max_rows < 1:
        raise ValueError(f"max_rows must be at least 1; got {max_rows}")


def _check_replacement(model: AblationModel, replacement: Replacement | None) -> None:
    """Reject values from a model of another shape, or from the other side of the projections."""
    if replacement is None:
        return
    if replacement.is_behind_projection != model.map.is_behind_projection:
        raise ValueError(
            "the replacement was recorded on the other side of the output projections; prepare "
            "both models with unit='attention', or neither"
        )
    hidden = model.model.config.get_text_config().hidden_size
    widths = [
        (hidden if model.map.is_behind_projection else n_inputs(points.projection), hidden)
        for points in model.map.hook_points
    ]
    layers = zip(replacement.attention, replacement.mlps, strict=True)
    others = [(heads.shape[-1], mlp.shape[-1]) for heads, mlp in layers]
    if widths != others:
        raise ValueError(
            f"the replacement has {len(others)} layers of widths {sorted(set(others))}, the model "
            f"{len(widths)} of {sorted(set(widths))}; record it with a model of the same shape"
        )


def _search(
    model: AblationModel,
    scores: AblationScores,
    wanted: Sequence[int],
    tried: npt.NDArray[np.int64],
    threshold: float,
    max_rows: int | None,
) -> tuple[list[int], list[float]]:
    """Find the size and the recovery of each token's set."""
    largest = tried.shape[1]
    sizes, recoveries = [largest] * len(wanted), [float("nan")] * len(wanted)
    open_rows = [row for row, token in enumerate(wanted) if scores.base[token] != 0]
    begin, n_new = 1, 1
    while open_rows and begin <= largest:
        tested = range(begin, min(begin + n_new, largest + 1))
        ablated = np.ones((len(open_rows) * len(tested), len(model.map)), dtype=bool)
        for place, (row, size) in enumerate((r, k) for r in open_rows for k in tested):
            ablated[place, tried[row, :size]] = False
        of_row = np.repeat([wanted[row] for row in open_rows], len(tested))
        results = model.evaluate(scores.readout, ablated, tokens=of_row, max_rows=max_rows)
        shares = _shares(scores.base[of_row], results.values).reshape(len(open_rows), -1)
        reached = shares >= threshold - _ROUNDING
        for place, row in enumerate(list(open_rows)):
            if reached[place].any():
                at = int(np.argmax(reached[place]))
                sizes[row], recoveries[row] = tested[at], float(shares[place, at])
                open_rows.remove(row)
            else:
                recoveries[row] = float(shares[place, -1])
        begin, n_new = begin + n_new, 2 * n_new
    return sizes, recoveries


def _joint(
    model: AblationModel,
    scores: AblationScores,
    wanted: Sequence[int],
    chosen: Sequence[npt.NDArray[np.int64]],
    max_rows: int | None,
) -> list[float]:
    """Ablate all components of each token's set, and return the lost proportion."""
    ablated = np.zeros((len(wanted), len(model.map)), dtype=bool)
    for row, columns in enumerate(chosen):
        ablated[row, columns] = True
    of_row = np.asarray(wanted, dtype=np.int64)
    results = model.evaluate(scores.readout, ablated, tokens=of_row, max_rows=max_rows)
    return [float(1.0 - share) for share in _shares(scores.base[of_row], results.values)]


def _shares(base: _Floats, values: _Floats) -> _Floats:
    """Compute each value as a proportion of the unmodified readout."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(base == 0, np.nan, 1.0 - (base - values) / np.abs(base)))
