"""Texts whose probability a model tells, and what it told."""

import hashlib
import json
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Literal

from pydantic import Field, model_validator

from surface_consistency.schemas._record import Items, NonEmpty, Record

OptionScore = Literal["sum", "per_token", "per_character"]
"""How options of unequal length are compared: by the sum of their log-probabilities, or by its mean
over tokens, or over characters."""


class ScoringRequest(Record):
    """One text whose probability is asked for, given what stands before it."""

    id: NonEmpty
    """The caller's identifier; scores come back under it."""

    context: str = ""
    """What stands before; empty to score a whole text."""

    continuation: NonEmpty
    """What is scored, with the space that parts it from the context, if any."""

    group: str | None = None
    """Requests of one group begin alike: a hint with which runners reuse the shared prefix; those
    of one context are taken for a group where none is named."""

    bos: Literal["model", "eos", "none"] = "model"
    """What stands before everything. "model": the special tokens that the tokenizer puts there, or
    the model's begin token before a whole text where it puts none; "eos": the end token before a
    whole text and no other special token; "none": nothing, so the first token of a whole text has
    no log-probability, and a rendered conversation keeps the special tokens that it holds."""

    vocabulary_moments: bool = False
    """Whether mean and deviation of the whole vocabulary's log-probabilities are told as well."""

    @cached_property
    def key(self) -> str:
        """SHA-256 of what is asked (32 hex digits), whatever the id."""
        content: list[object] = [self.context, self.continuation, self.bos]
        payload = json.dumps([*content, True] if self.vocabulary_moments else content)
        return hashlib.sha256(payload.encode("ascii")).hexdigest()[:32]


class ScoredText(Record):
    """The log-probability of each token of a continuation, in nats."""

    request_id: NonEmpty
    """Identifier of the request."""

    log_probabilities: Items[float | None]
    """Log-probability of each token given all before it, at most 0; None for a first token that
    has nothing before it. Without `token_ids` and `tokens` one number, the sum."""

    token_ids: Items[int] | None = None
    """The tokens; None where nobody told them, or only their sum was stored."""

    tokens: Items[str] | None = None
    """Texts of the tokens, as a server tells them; None where nobody did."""

    n_context_tokens: int | None = Field(default=None, ge=0)
    """Tokens before those scored, special ones included; None when that is not known."""

    is_greedy: bool | None = None
    """Whether each token is the most probable one at its place; None when that is not known."""

    boundary: Literal["clean", "moved"] = "clean"
    """"moved" when a token covers the end of the context and the begin of the continuation; it
    counts as one of the continuation."""

    vocabulary_means: Items[float | None] | None = None
    """Mean log-probability of the vocabulary at each token's place, each token weighed by its
    probability; None where it was not asked for or cannot be told."""

    vocabulary_deviations: Items[float | None] | None = None
    """Standard deviation of the same."""

    @model_validator(mode="after")
    def _holds_together(self) -> "ScoredText":
        """Refuse numbers that are no log-probabilities of these tokens."""
        if not self.log_probabilities:
            raise ValueError("a scored text has at least one log-probability")
        for tokens in (self.token_ids, self.tokens):
            if tokens is not None and len(tokens) != len(self.log_probabilities):
                raise ValueError(
                    f"{len(tokens)} tokens have {len(self.log_probabilities)} log-probabilities"
                )
        if self.is_sum and len(self.log_probabilities) != 1:
            raise ValueError("without tokens there is one log-probability, the sum")
        for moments in (self.vocabulary_means, self.vocabulary_deviations):
            if moments is not None and len(moments) != len(self.log_probabilities):
                raise ValueError(
                    f"{len(self.log_probabilities)} log-probabilities have {len(moments)} moments "
                    "of the vocabulary"
                )
        for position, value in enumerate(self.log_probabilities):
            if value is None and (position or self.is_sum):
                raise ValueError("only the first of several tokens may have no log-probability")
            if value is not None and (math.isnan(value) or value > 0.0):
                raise ValueError(f"a log-probability is at most 0, got {value}")
        return self

    @property
    def is_sum(self) -> bool:
        """Whether only the sum over the tokens was stored."""
        return self.token_ids is None and self.tokens is None

    @property
    def log_probability(self) -> float:
        """Sum over the tokens that have one, in nats; NaN when none has."""
        known = [value for value in self.log_probabilities if value is not None]
        return math.fsum(known) if known else math.nan

    @property
    def n_scored(self) -> int | None:
        """Tokens with a log-probability; None where only their sum was stored."""
        if self.is_sum:
            return None
        return sum(value is not None for value in self.log_probabilities)


def best_option(values: Sequence[float]) -> int | None:
    """Tell the option with the greatest score.

    Args:
        values: A score an option, higher is better; equal up to rounding counts as equal.

    Returns:
        Its number from 0; None where two or more share the greatest score or one is NaN, so that
        no option is chosen.

    Examples:
        >>> best_option([-2.0, -1.0]), best_option([-1.0, -1.0])
        (1, None)
    """
    greatest = max(values)
    near = [n for n, v in enumerate(values) if math.isclose(v, greatest, rel_tol=1e-12)]
    return near[0] if len(near) == 1 and not any(map(math.isnan, values)) else None
