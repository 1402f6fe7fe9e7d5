"""What a model wrote."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from surface_consistency.schemas._record import Items, NonEmpty, Record
from surface_consistency.schemas.memory import Lookup
from surface_consistency.schemas.scoring import ScoredText

__all__ = ["Generation", "replace_surrogates"]


def replace_surrogates(text: str) -> str:
    r"""Replace the code points that UTF-8 cannot hold, so that a text can be written.

    Args:
        text: Any text, such as one read from JSON that escapes half a surrogate pair.

    Returns:
        The text with "?" for each surrogate.

    Examples:
        >>> replace_surrogates("Malm\ud800ö")
        'Malm?ö'
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def _writable(value: object) -> object:
    """Replace surrogates in a text and leave everything else to the field."""
    return replace_surrogates(value) if isinstance(value, str) else value


_Writable = Annotated[str, BeforeValidator(_writable)]


class Generation(Record):
    """The continuation of one prompt."""

    prompt_id: NonEmpty
    """Identifier of the prompt."""

    text: _Writable | None
    """What came after the prompt, uncut; None when the model could not be asked. Lone surrogates,
    which no file in UTF-8 can hold, are replaced by "?"."""

    finish_reason: Literal["stop", "length", "error"] = "stop"
    """Why it ended: a stop string or end of sequence, the token limit, or an error."""

    n_prompt_tokens: int | None = Field(default=None, ge=0)
    """Tokens of the prompt; None when the runner does not count them."""

    n_new_tokens: int | None = Field(default=None, ge=0)
    """Tokens written; None when the runner does not count them."""

    error: _Writable | None = None
    """What went wrong, surrogates replaced as in `text`; None unless `finish_reason` is "error"."""

    lookups: Items[Lookup] | None = None
    """Lookups in a store outside the model, in their order; None when the runner makes none."""

    scores: Items[ScoredText] | None = None
    """Log-probabilities of the prompt's options, in their order, when `text` was chosen among them;
    the id of each is the option's number, from "0"."""

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
