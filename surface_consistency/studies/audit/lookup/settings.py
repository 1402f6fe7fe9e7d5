"""Decoding settings and lookup tokens of limited-memory models."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from surface_consistency.errors import RunnerError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupSettings:
    """The decoding of limited-memory models; the defaults are the published values."""

    entity_token: str = "<|db_entity|>"
    """Token that starts a lookup and its entity."""

    relation_token: str = "<|db_relationship|>"
    """Token that starts the relation."""

    return_token: str = "<|db_return|>"
    """Token that requests the result."""

    end_token: str = "<|db_end|>"
    """Token that ends the result."""

    repetition_penalty: float = 1.2
    """Factor by which the logit of an earlier token is divided if positive, else multiplied; 1 is
    off."""

    entity_bias: float = 4.0
    """Added to the logit of the entity token."""

    other_bias: float = 2.0
    """Added to the logits of the other three."""

    biases_allowed: bool = False
    """Whether the biases are also applied to prompts in the mode "allow"; the published audit does
    not use them with retrieval off."""

    max_lookups: int = 4
    """Maximum number of lookups per prompt; after the last one the lookup tokens are forbidden."""

    null_text: str = "unknown"
    """Text that is inserted if there is no value; may be empty."""

    def __post_init__(self) -> None:
        """Check the values."""
        if self.repetition_penalty <= 0:
            raise ValueError(
                f"`repetition_penalty` must be above 0 (1 is off), got {self.repetition_penalty!r}"
            )
        if self.max_lookups < 0:
            raise ValueError(f"`max_lookups` must be 0 or more, got {self.max_lookups}")
        if len(set(self.tokens)) < len(self.tokens) or not all(self.tokens):
            raise ValueError(f"the four lookup tokens must differ and not be empty: {self.tokens}")

    @property
    def tokens(self) -> tuple[str, str, str, str]:
        """The four lookup tokens in the order of a lookup."""
        return self.entity_token, self.relation_token, self.return_token, self.end_token


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenIds:
    """The lookup tokens as numbers."""

    entity: int
    relation: int
    result: int
    end: int

    @property
    def all(self) -> tuple[int, int, int, int]:
        """All four, in the order of a lookup."""
        return self.entity, self.relation, self.result, self.end


def find_tokens(
    tokenizer: "PreTrainedTokenizerBase", settings: LookupSettings, *, label: str, size: int
) -> TokenIds:
    """Find the lookup tokens in a tokenizer.

    Args:
        tokenizer: A tokenizer of transformers.
        settings: Names the tokens.
        label: Name of the model, for errors.
        size: Rows of the model's embedding table.

    Returns:
        Their numbers.

    Raises:
        RunnerError: If the tokenizer or the model does not have them.
    """
    vocabulary = tokenizer.get_vocab()
    missing = [token for token in settings.tokens if token not in vocabulary]
    if missing:
        raise RunnerError(
            f"the tokenizer of {label} has no lookup tokens {', '.join(missing)}; use a "
            "limited-memory model, set the names of its tokens (entity_token, relation_token, "
            "return_token, end_token), or put facts before its prompts (`runner` "
            "transformers; in Python RetrievalAugmentedRunner)"
        )
    ids = [vocabulary[token] for token in settings.tokens]
    if max(ids) >= size:
        raise RunnerError(
            f"the tokenizer of {label} numbers a lookup token {max(ids)}, but the model has "
            f"{size} tokens; it was not trained on them: resize_token_embeddings and train it, "
            "or use a limited-memory model"
        )
    return TokenIds(entity=ids[0], relation=ids[1], result=ids[2], end=ids[3])
