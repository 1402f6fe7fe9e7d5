"""The answer as the published audit of forgetting took it, with its faults."""

import html
import re
from collections.abc import Sequence

from surface_consistency.matching.audit.markup import LOOKUP_TOKENS, parse_lookups, strip_lookups
from surface_consistency.schemas.memory import Lookup

__all__ = ["published_answer", "published_clean"]

_LEAD_INS = ("the answer is ", "it is ", "it's ")
_SECTIONS = re.compile(r"\n(?:Question:|Context:|Fact:|Prompt:|Answer:|\n)")
_MARKUP = re.compile(r"<\|db_[^|]+\|>.*?<\|db_end\|>", re.DOTALL)
_TAGS = re.compile(r"<[^>]+>")
_SENTENCE_END = re.compile(r"""(?<=[.!?])\s+(?=[A-Z"'])""")
_QUOTES = " \t\n\r\"'`"


def published_clean(text: str) -> str:
    """Cut a text as the published code does.

    The first "sentence" ends at any full stop before a capital letter, and punctuation goes from
    both ends: "George W. Bush" becomes "George W", ".us" becomes "us".

    Args:
        text: A continuation or a value of a store.

    Returns:
        The answer.
    """
    text = text.strip()
    while text.lower().startswith("answer:"):
        text = text[len("answer:") :].strip()
    for lead_in in _LEAD_INS:
        if text.lower().startswith(lead_in):
            text = text[len(lead_in) :].strip()
            break
    text = html.unescape(_SECTIONS.split(text, maxsplit=1)[0].strip())
    text = _TAGS.sub(" ", _MARKUP.sub(" ", text))
    text = " ".join(text.split()).strip(_QUOTES)
    return _SENTENCE_END.split(text, maxsplit=1)[0].strip().strip(_QUOTES + ",;:.")


def published_answer(text: str, *, prompt_text: str = "", lookups: Sequence[Lookup] = ()) -> str:
    """Return the answer by the rule of the published audit (arXiv 2607.00605).

    Where the store answered a lookup, the answer is its first value, whatever the model wrote
    around it. Without a store, it is the first value that the model made up itself if the prompt
    is a question or has a blank ("____"), else its text without lookups.

    Args:
        text: The continuation, as a runner gives it.
        prompt_text: What the model read.
        lookups: The lookups that a store answered.

    Returns:
        The answer, cut at the first full stop before a capital letter; that is a fault, kept.

    Examples:
        >>> published_answer("George W. Bush")
        'George W'
    """
    written = parse_lookups(text)
    if lookups and LOOKUP_TOKENS[2] in text:
        return published_clean(next((found.value for found in written if found.value), ""))
    values = [published_clean(found.value or "") for found in written if found.is_closed]
    values = [value for value in values if value]
    plain = published_clean(strip_lookups(text, values="drop"))
    asks = prompt_text.strip().endswith("?") or "____" in prompt_text
    if values and (asks or not plain):
        return values[0]
    return plain
