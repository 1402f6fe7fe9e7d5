"""What a model wrote."""

from typing import Literal

from pydantic import Field, model_validator

from surface_consistency.schemas._record import NonEmpty, Record

__all__ = ["Generation"]


class Generation(Record):
    """The continuation of one prompt."""

    prompt_id: NonEmpty
    """Identifier of the prompt."""

    text: str | None
    """What came after the prompt, uncut; None when the model could not be asked."""

    finish_reason: Literal["stop", "length", "error"] = "stop"
    """Why it ended: a stop string or end of sequence, the token limit, or an error."""

    n_prompt_tokens: int | None = Field(default=None, ge=0)
    """Tokens of the prompt; None when the runner does not count them."""

    n_new_tokens: int | None = Field(default=None, ge=0)
    """Tokens written; None when the runner does not count them."""

    error: str | None = None
    """What went wrong; None unless `finish_reason` is "error"."""

    prompt_key: str | None = None
    """`Prompt.key` of what was asked; set by the run log."""

    @model_validator(mode="after")
    def _text_or_error(self) -> "Generation":
        """Refuse an answer that is missing without a reason."""
        if (self.text is None) != (self.finish_reason == "error"):
            raise ValueError('`text` is None exactly when `finish_reason` is "error"')
        if (self.error is None) != (self.finish_reason != "error"):
            raise ValueError('`error` tells the reason exactly when `finish_reason` is "error"')
        return self
