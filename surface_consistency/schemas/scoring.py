"""Requests for the log-probability of texts, and the results."""

import hashlib
import json
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Literal

from pydantic import Field, model_validator

from surface_consistency.schemas._record import Items, NonEmpty, Record

OptionScore = Literal["sum", "per_token", "per_character"]
"""Score of an option: the sum of its log-probabilities, or their sum divided by the number of
tokens or of characters, for options of unequal length."""


class ScoringRequest(Record):
    """A request for the log-probability of one text, given the text before it."""

    id: NonEmpty
    """The caller's identifier; scores are returned under it."""

    context: str = ""
    """The text before the continuation; empty to score a whole text."""

    continuation: NonEmpty
    """The text that is scored, including the space between it and the context, if any."""

    group: str | None = None
    """Requests of a group begin with the same text; runners reuse this shared prefix. Without a
    group, requests with the same context are a group."""

    bos: Literal["model", "eos", "none"] = "model"
    """Tokens before the text. "model": the special tokens that the tokenizer adds, or, if it adds
    none, the model's begin token before a whole text; "eos": the end token before a whole text and
    no other special token; "none": no tokens, so the first token of a whole text has no
    log-probability. A rendered conversation keeps its special tokens under "none"."""

    vocabulary_moments: bool = False
    """Also return mean and standard deviation of the log-probabilities of the vocabulary."""

    @cached_property
    def key(self) -> str:
        """SHA-256 of the request without its id (32 hex digits)."""
        content: list[object] = [self.context, self.continuation, self.bos]
        payload = json.dumps([*content, True] if self.vocabulary_moments else content)
        return hashlib.sha256(payload.encode("ascii")).hexdigest()[:32]


class ScoredText(Record):
    """The log-probability of each token of a continuation, in nats."""

    request_id: NonEmpty
    """Identifier of the request."""

    log_probabilities: Items[float | None]
    """Log-probability of each token given all tokens before it, at most 0; None for a first token
    without any token before it. Without `token_ids` and `tokens` a single number, the sum."""

    token_ids: Items[int] | None = None
    """The tokens; None if they are unknown or only their sum was stored."""

    tokens: Items[str] | None = None
    """Texts of the tokens, as returned by a server; None if unknown."""

    n_context_tokens: int | None = Field(default=None, ge=0)
    """Number of tokens before the scored ones, special ones included; None if unknown."""

    is_greedy: bool | None = None
    """Whether each token is the most probable one at its position; None if unknown."""

    boundary: Literal["clean", "moved"] = "clean"
    """"moved" if a token covers the end of the context and the start of the continuation; the token
    is then part of the continuation."""

    vocabulary_means: Items[float | None] | None = None
    """Mean log-probability of the vocabulary at each token's position, weighted by probability;
    None if it was not requested or is not available."""

    vocabulary_deviations: Items[float | None] | None = None
    """Standard deviation of the log-probabilities, with the same weights."""

    @model_validator(mode="after")
    def _is_consistent(self) -> "ScoredText":
        """Raise an error for values that are not log-probabilities of these tokens."""
        if not self.log_probabilities:
            raise ValueError("a scored text must have at least one log-probability")
        for tokens in (self.token_ids, self.tokens):
            if tokens is not None and len(tokens) != len(self.log_probabilities):
                raise ValueError(
                    f"{len(tokens)} tokens have {len(self.log_probabilities)} log-probabilities"
                )
        if self.is_sum and len(self.log_probabilities) != 1:
            raise ValueError("without tokens there must be one log-probability, the sum")
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
                raise ValueError(f"a log-probability must be at most 0, got {value}")
        return self

    @property
    def is_sum(self) -> bool:
        """Whether only the sum over the tokens is stored."""
        return self.token_ids is None and self.tokens is None

    @property
    def log_probability(self) -> float:
        """Sum over the tokens that have a log-probability, in nats; NaN if none has one."""
        known = [value for value in self.log_probabilities if value is not None]
        return math.fsum(known) if known else math.nan

    @property
    def n_scored(self) -> int | None:
        """Number of tokens with a log-probability; None if only their sum is stored."""
        if self.is_sum:
            return None
        return sum(value is not None for value in self.log_probabilities)


def best_option(values: Sequence[float]) -> int | None:
    """Return the number of the option with the highest score.

    Args:
        values: One score per option, higher is better; values equal up to rounding are equal.

    Returns:
        The number, from 0; None if several options have the highest score or a score is NaN.

    Examples:
        >>> best_option([-2.0, -1.0]), best_option([-1.0, -1.0])
        (1, None)
    """
    greatest = max(values)
    near = [n for n, v in enumerate(values) if math.isclose(v, greatest, rel_tol=1e-12)]
    return near[0] if len(near) == 1 and not any(map(math.isnan, values)) else None
