"""Generations, the outputs of a model."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from surface_consistency.schemas._record import Items, NonEmpty, Record
from surface_consistency.schemas.memory import Lookup
from surface_consistency.schemas.scoring import ScoredText

FinishReason = Literal[
    "stop", "length", "error", "unclosed_reasoning", "content_filter", "refusal", "tie"
]
"""How a reply ended: at a stop string or end of sequence ("stop"), at the token limit ("length"),
by an error, within reasoning without a closing tag, by a server's content filter, as a refusal that
the server marks, or with equally probable options ("tie")."""

NO_ANSWER_REASONS: Final = ("error", "unclosed_reasoning", "content_filter", "refusal", "tie")
"""Finish reasons of replies without an answer. Only "error" is sent again on resume."""

_SERVER_ENDS: Final[Mapping[str, FinishReason]] = {
    **dict.fromkeys(("stop", "stop_sequence", "stop_token", "end_turn", "complete"), "stop"),
    **dict.fromkeys(("eos", "eos_token", "completed", ""), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_length", "max_output_tokens"), "length"),
    **dict.fromkeys(("model_length", "token_limit"), "length"),
    **dict.fromkeys(("content_filter", "content_filtered", "safety"), "content_filter"),
    **dict.fromkeys(("sensitive", "recitation", "blocklist", "spii"), "content_filter"),
    **dict.fromkeys(("prohibited_content", "image_safety", "error_toxic"), "content_filter"),
    **dict.fromkeys(("guardrail_intervened", "content_policy_violation"), "content_filter"),
    "refusal": "refusal",
}
"""Kind of each known `finish_reason` of a server, in lower case: OpenAI, Anthropic, Cohere, Gemini,
Bedrock, Mistral, TGI, watsonx and z.AI. Any other is an error, such as "abort" of vLLM, "load" of
Ollama, "insufficient_system_resource" of DeepSeek, and "tool_calls"."""


def server_end(finish_reason: object) -> FinishReason:
    """Return the kind of end that a server states for a reply.

    Args:
        finish_reason: The value of the server's field; letter case is ignored.

    Returns:
        "stop" or "length" for an answer, and for None or "", since some servers do not state it;
        "content_filter" or "refusal"; "error" for everything else.

    Examples:
        >>> server_end("MAX_TOKENS"), server_end("SAFETY"), server_end({"type": "abort"})
        ('length', 'content_filter', 'error')
    """
    end = "" if finish_reason is None else finish_reason
    if not isinstance(end, str):
        return "error"
    # "FinishReason.STOP" is a Python enumeration as text; "content-filter" is another spelling.
    name = end.lower().removeprefix("finishreason.").replace("-", "_")
    return _SERVER_ENDS.get(name, "error")


ANSWER_FIELDS: Final = (
    "text",
    "finish_reason",
    "error",
    "lookups",
    "scores",
    "reasoning",
    "reasoning_source",
)
"""Content of an answer, as fields of `Generation`."""

ANSWERS: Final = ("prompt_id", "prompt_key", *ANSWER_FIELDS)
"""Columns of a frame of answers, all of dtype object: values as in `Generation`, or None."""

answer_values: Final = attrgetter(*ANSWERS)
"""Returns the values of `ANSWERS` of a generation, in their order."""


def replace_surrogates(text: str) -> str:
    r"""Replace the code points that UTF-8 cannot encode, so that a text can be written.

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
    """Replace surrogates in a text, and return any other value unchanged."""
    return replace_surrogates(value) if isinstance(value, str) else value


_Writable = Annotated[str, BeforeValidator(_writable)]


class Generation(Record):
    """The model's output for one prompt."""

    prompt_id: NonEmpty
    """Identifier of the prompt."""

    text: _Writable | None
    """The answer: the output after the prompt, uncut, without reasoning; None if it is missing, for
    the reason in `finish_reason`. Lone surrogates, which UTF-8 cannot encode, are replaced by
    "?"."""

    reasoning: _Writable | None = None
    """Reasoning before the answer, surrogates replaced as in `text`; None if it is absent, or if
    it was not separated from the answer."""

    reasoning_source: str | None = None
    """Source of the separation of reasoning and answer: a tag, "the prompt" if it opened the
    reasoning, or the field of a server's reply; None if nothing was separated."""

    finish_reason: FinishReason = "stop"
    """How the reply ended."""

    n_prompt_tokens: int | None = Field(default=None, ge=0)
    """Number of tokens of the prompt; None if the runner does not count them."""

    n_new_tokens: int | None = Field(default=None, ge=0)
    """Number of new tokens; None if the runner does not count them."""

    error: _Writable | None = None
    """Why there is no answer, surrogates replaced as in `text`; None if there is an answer."""

    lookups: Items[Lookup] | None = None
    """Lookups in a store outside the model, in order; None if the runner makes none."""

    scores: Items[ScoredText] | None = None
    """Log-probabilities of the prompt's options, in their order, if `text` was chosen among them;
    the id of each is the option's number, from "0"."""

    prompt_key: str | None = None
    """`Prompt.key` of the prompt; set by the run log."""

    @model_validator(mode="after")
    def _text_or_error(self) -> "Generation":
        """Raise an error for a missing answer without a reason."""
        if (self.text is None) != (self.finish_reason in NO_ANSWER_REASONS):
            raise ValueError(
                f"`text` must be None exactly for `finish_reason` {' or '.join(NO_ANSWER_REASONS)}"
            )
        if (self.error is None) != (self.text is not None):
            raise ValueError("`error` must be the reason if `text` is None, and else None")
        return self
